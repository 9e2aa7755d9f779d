"""Model family of DimeNet: messages of edges depend on the angles between adjacent edges."""

from __future__ import annotations

from protgraph import ComponentSpec, Family, ModelSpec, component

__all__ = ["FAMILY"]
ENTRY_POINTS = {"protgraph.models": {"dimenet": "FAMILY"}}


def _network(
    name: str,
    interaction: ComponentSpec,
    *,
    dim: int,
    depth: int,
    k: int,
    hidden: int | None,
    layers_of_output: int,
    doc: str,
    offsets: bool = False,
) -> ModelSpec:
    edges = [component("embed", reads=["edge_offset"], dim=16, writes={"h": "edge_attr"})] if offsets else []
    reads = {"edge_attr": "edge_attr"} if offsets else {}
    outputs = [f"out_{number}" for number in range(depth + 1)]
    rounds: list[ComponentSpec] = []
    for number, out in enumerate(outputs):
        if number:
            rounds.append(interaction)
        rounds.append(component("dimenet_output", dim=dim, hidden=hidden, depth=layers_of_output, writes={"h": out}))
    return ModelSpec(
        name,
        features=[
            *("dihedral", component("knn", k=k), "edge_vector", "line_graph"),
            *(["edge_offset"] if offsets else []),
        ],
        layers=[
            component("embed", reads=["aatype", "dihedral", "dihedral_mask"], dim=dim),
            *edges,
            component("dimenet_embed", dim=dim, reads=reads),
            *rounds,
            component("add", reads=outputs),
        ],
        doc=doc,
    )


def _on_pairs(name: str, **options: int) -> ComponentSpec:
    reads = {"h": "edge_h", "node_vec": "edge_vec"}
    return component(name, edges="line", reads=reads, writes={"h": "edge_h"}, **options)


FIRST = "Gasteiger, Groß & Günnemann 2020, arXiv:2003.03123: messages of edges with distances and angles."
SECOND = "Gasteiger et al. 2020, arXiv:2011.14115 (DimeNet++): messages of edges with distances and angles."

FAMILY = Family(
    {
        "small": _network(
            "dimenet", _on_pairs("dimenet_pp"), dim=64, depth=2, k=12, hidden=64, layers_of_output=1, doc=SECOND,
            offsets=True,
        ),
        "gasteiger2020": _network(
            "dimenet.gasteiger2020", _on_pairs("dimenet"), dim=128, depth=6, k=12, hidden=None, layers_of_output=3,
            doc=FIRST,
        ),
        "plus_plus": _network(
            "dimenet.plus_plus", _on_pairs("dimenet_pp", narrow=64), dim=128, depth=4, k=12, hidden=256,
            layers_of_output=3, doc=SECOND,
        ),
    },
    doc="Directional message passing networks (DimeNet, DimeNet++).",
)  # fmt: skip
