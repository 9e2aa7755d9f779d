"""What a layer can tell apart and what it cannot: its expressivity card, measured on pairs of point clouds.

Nothing is trained. Two clouds are told apart if a network with random weights, in float64, gives different numbers:
what is the same for all weights is the same to rounding, and what differs for some differs for almost all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from protgraph import registry
from protgraph.data.datasets.target import Target
from protgraph.data.graph.protein_graph import ProteinGraph
from protgraph.errors import OptionError, WiringError
from protgraph.model import ModelSpec, ProteinModel, build_model
from protgraph.nn.invariant import invariants
from protgraph.registry.component import ComponentSpec, component
from protgraph.structure import Residues
from protgraph.testing import point_clouds as cloud
from protgraph.testing.point_clouds import PointCloud

__all__ = ["ExpressivitySection", "ExpressivityCard", "block_of", "expressivity_card", "separates"]

RADIAL = component("edge_rbf", bins=8, cutoff=10.0)
#: A point has no side chain: its direction is a vector 0, where a layer has to begin with some.
FEATURES = ("radius", "edge_vector", "edge_distance", "edge_direction", RADIAL, "sidechain_direction")
START = component("embed", reads=["aatype"], dim=64)
#: Fields that a cloud of points has, or can be given, by the local names of layers.
KNOWN = {"edge_attr": "edge_rbf", "edge_kind": "edge_rbf"} | {
    name: name
    for name in ("h", "pos", "frame", "edges", "proteins", "edge_vec", "edge_dist", "edge_direction", "edge_rbf")
}

FOLDS = (2, 3, 5, 10)
CHAINS = (2, 3, 4)
SPARE = 2  # layers beyond those that theory asks for, for networks whose first layer only moves points
SEEDS = 3
TARGET = Target("expressivity_card", "graph", "regression", 1)
#: Relative difference from which outputs differ: far above rounding (1e-13), far below what any path leaves (1e-7).
DIFFERENT = 1e-10


@dataclass(frozen=True)
class ExpressivitySection:
    """A network of one kind of layer: nodes that begin it, and nodes that each further layer adds.

    Where those read frames, all points have one, the same.
    """

    start: tuple[ComponentSpec, ...]
    repeated: tuple[ComponentSpec, ...]

    @property
    def framed(self) -> bool:
        """Whether it reads frames."""
        return any("frame" in n.reads for n in self.repeated)

    def graph(self, depth: int) -> ModelSpec:
        """The network of so many layers."""
        features = (*FEATURES, "residue_frame") if self.framed else FEATURES
        return ModelSpec("expressivity_card", features, (*self.start, *depth * self.repeated))


@dataclass(frozen=True)
class ExpressivityCard:
    """What networks of a layer tell apart.

    Parameters
    ----------
    name : str
    block : ExpressivitySection
        How the networks were wired.
    two_body, three_body : bool
        One layer tells stars with equal distances apart, and those with equal distances and angles.
    mirror : bool
        Three layers tell a star from its mirror image.
    folds : mapping of int to bool
        One layer sees how a star with L-fold symmetry is turned.
    chains : mapping of int to int or None
        The first number of layers that tells the two k-chains apart; None where ``⌊k/2⌋ + 3`` do not.
    """

    name: str
    block: ExpressivitySection
    two_body: bool
    three_body: bool
    mirror: bool
    folds: Mapping[int, bool]
    chains: Mapping[int, int | None]

    def lines(self) -> list[tuple[str, str]]:
        """What was asked, and the answer, in words."""
        said = {True: "yes", False: "no"}
        rows = [
            ("angles between neighbors (2-body twins)", said[self.two_body]),
            ("more than distances and angles (3-body twins)", said[self.three_body]),
            ("left from right (mirror images)", said[self.mirror]),
        ]
        rows += [(f"how a star of {order} rays is turned", said[seen]) for order, seen in self.folds.items()]
        for k, depth in self.chains.items():
            found = "never" if depth is None else f"from {depth} layers on"
            rows.append((f"the ends of a {k}-chain (theory: {k // 2 + 1} layers, or never)", found))
        return rows


def expressivity_card(name: str, options: Mapping[str, Any] | None = None) -> ExpressivityCard:
    """The card of a registered layer.

    Parameters
    ----------
    name : str
        A layer, or ``"gvp"`` or ``"mace"`` for networks of several.
    options : mapping, optional
        Of the layer.

    Raises
    ------
    WiringError
        Where it reads what a cloud of points does not have.
    """
    block = block_of(name, options or {})
    return ExpressivityCard(
        name,
        block,
        two_body=separates(block, cloud.two_body()),
        three_body=separates(block, cloud.three_body()),
        mirror=separates(block, cloud.mirror_images(), depth=3),
        folds={order: separates(block, cloud.fold(order), turned=True) for order in FOLDS},
        chains={k: _first_depth(block, k) for k in CHAINS},
    )


def separates(block: ExpressivitySection, pair: Sequence[PointCloud], *, depth: int = 1, turned: bool = False) -> bool:
    """Whether a network of so many layers gives different numbers for two clouds.

    Parameters
    ----------
    block : ExpressivitySection
    pair : two PointClouds
    depth : int
        Layers.
    turned : bool
        Look at all that the first point has, vectors as they point; otherwise at the invariants of all points.
    """
    for seed in range(SEEDS):
        model = _generic(build_model(block.graph(depth), TARGET, seed=seed).double().eval())
        a, b = (_seen(model, c.residues(framed=block.framed), c, turned=turned) for c in pair)
        if float((a - b).abs().max()) > DIFFERENT * float(a.abs().max()):
            return True
    return False


def block_of(name: str, options: Mapping[str, Any]) -> ExpressivitySection:
    """How a network of this layer is wired on a cloud of points."""
    if name in ("gvp", "gvp_conv"):
        return _gvp(options)
    if name == "mace":
        return _mace(options)
    layer = registry.layers.get(name)
    absent = [local for local in layer.reads if local not in KNOWN]
    if layer.variadic or absent or "h" not in layer.writes or not {"edges", "proteins"} & set(layer.reads):
        why = f"reads {absent[0]!r}, which points have not" if absent else "passes no message from point to point"
        raise WiringError(f"layer {name!r} {why}: a card needs a layer from h of neighbors to h")
    places = [local for local in ("frame", "pos") if local in layer.optional]  # without, it would see no space
    reads = {local: KNOWN[local] for local in (*layer.reads, *places)}
    if "edge_attr" in layer.optional:
        with_edges = ExpressivitySection((START,), (component(name, reads=reads | {"edge_attr": KNOWN["edge_attr"]}, **options),))
        try:
            build_model(with_edges.graph(1), TARGET)
        except WiringError:  # an option decides whether there is such an input
            pass
        else:
            return with_edges
    return ExpressivitySection((START,), (component(name, reads=reads, **options),))


def _gvp(options: Mapping[str, Any]) -> ExpressivitySection:
    """Vectors begin as 0; edges have direction and distance."""
    edge = component("gvp", reads=["edge_rbf", "edge_direction"], irreps="16x0e+1x1o", norm=False, writes={"h": "edge_attr"})
    begin = component("gvp", reads=["h", "sidechain_direction"], irreps="64x0e+16x1o")
    return ExpressivitySection((START, begin, edge), (component("gvp_conv", **options),))


def _mace(options: Mapping[str, Any]) -> ExpressivitySection:
    """Messages of degree ``lmax``, and their products of up to ``correlation`` factors."""
    unknown = sorted(set(options) - {"lmax", "correlation"})
    if unknown:
        raise OptionError(f"the card of mace takes lmax and correlation, not {unknown[0]!r}")
    lmax = int(options.get("lmax", 2))
    irreps = "+".join(f"16x{degree}{'eo'[degree % 2]}" for degree in range(lmax + 1))
    gather = component("tfn", irreps=irreps, lmax=lmax, gate=False, reads={"edge_attr": "edge_rbf"}, writes={"h": "atomic"})
    product = component("product_basis", correlation=int(options.get("correlation", 3)), reads={"h": "atomic"})
    return ExpressivitySection((START,), (gather, product))


def _first_depth(block: ExpressivitySection, k: int) -> int | None:
    depths = range(1, k // 2 + 2 + SPARE)
    return next((d for d in depths if separates(block, cloud.k_chain(k), depth=d)), None)


def _generic(model: ProteinModel) -> ProteinModel:
    """The network with weights of usual size where they begin almost at 0, as those that move points do."""
    for p in model.parameters():
        if p.dim() == 2:
            usual, size = 0.1 / p.size(1) ** 0.5, float(p.detach().square().mean().sqrt())
            p.data *= usual / size if 0 < size < usual else 1.0
    return model


def _seen(model: ProteinModel, residues: Residues, points: PointCloud, *, turned: bool) -> Tensor:
    """What the network makes of a cloud: numbers that do not depend on the order of the points."""
    graph = model.plan.precompute(residues)
    given = ProteinGraph(**{key: value for key, value in graph.items() if key not in ("edge_index", "degree")})
    given.edge_index = torch.from_numpy(points.edge_index.copy())
    with torch.no_grad():
        h = model.embed(given)["h"]
    if turned:
        return h[0]
    x = invariants(h, model.fields["h"])
    g = torch.Generator().manual_seed(0)
    mixed = torch.tanh(x @ torch.randn(x.size(1), 64, generator=g, dtype=x.dtype) / x.size(1) ** 0.5)
    return mixed.sum(0)
