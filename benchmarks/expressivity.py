"""Expressivity of layers, measured on pairs of point clouds that differ but are hard to distinguish.

``python -m benchmarks.expressivity [LAYER …]`` prints the table of ``benchmarks/README.md``. The point clouds are
those of Joshi et al. 2023, arXiv:2301.09308.

Nothing is trained. Two clouds are distinguished if a network with random weights, in float64, gives different numbers:
an output that is equal for all weights is equal to rounding, and one that differs for some weights differs for almost
all.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from benchmarks import point_clouds as cloud
from benchmarks.point_clouds import PointCloud
from protgraph import registry
from protgraph.data.datasets.target import Target
from protgraph.data.graph.protein_graph import ProteinGraph
from protgraph.errors import OptionError, WiringError
from protgraph.model import ModelSpec, ProteinModel, build_model
from protgraph.nn import GraphLayer
from protgraph.nn.irreps import invariants
from protgraph.registry.component import ComponentSpec, component
from protgraph.structure import Residues

__all__ = ["ExpressivityReport", "PointNetwork", "distinguishes", "measure_expressivity", "network_of"]

RADIAL = component("edge_rbf", bins=8, cutoff=10.0)
#: A point has no side chain: its direction is the vector 0, for layers that start from vectors.
FEATURES = ("radius", "edge_vector", "edge_distance", "edge_direction", RADIAL, "sidechain_direction")
START = component("embed", reads=["aatype"], dim=64)
#: Fields that a point cloud has or can be given, by the local names of layers.
FIELDS = {"edge_attr": "edge_rbf", "edge_kind": "edge_rbf"} | {
    name: name
    for name in ("h", "pos", "frame", "edges", "proteins", "edge_vec", "edge_dist", "edge_direction", "edge_rbf")
}

FOLDS = (2, 3, 5, 10)
CHAINS = (2, 3, 4)
EXTRA_LAYERS = 2  # beyond the number of theory, for networks whose first layer only moves points
SEEDS = 3
TARGET = Target("expressivity", "graph", "regression", 1)
#: Relative difference of outputs that counts as one: above rounding (1e-13), below the effect of any path (1e-7).
DIFFERENT = 1e-10

LAYERS = ("gcn", "gat", "mpnn", "schnet", "gearnet", "egnn", "gvp", "painn", "tfn", "se3_transformer", "mace", "ipa")
COLUMNS = (
    "layer",
    "equal distances, other angles",
    "equal distances and angles",
    "mirror images",
    "rotated stars, rays",
    *(f"layers for {k}-chains" for k in CHAINS),
)


@dataclass(frozen=True)
class PointNetwork:
    """A network of one kind of layer on point clouds: the components that start it, and those that each layer adds.

    If these read frames, all points have the same one.
    """

    start: tuple[ComponentSpec, ...]
    repeated: tuple[ComponentSpec, ...]

    @property
    def has_frames(self) -> bool:
        """True if it reads frames."""
        return any("frame" in n.reads for n in self.repeated)

    def spec(self, depth: int) -> ModelSpec:
        """Return the network with this number of layers."""
        features = (*FEATURES, "residue_frame") if self.has_frames else FEATURES
        return ModelSpec("expressivity", features, (*self.start, *depth * self.repeated))


@dataclass(frozen=True)
class ExpressivityReport:
    """The pairs of point clouds that networks of a layer distinguish.

    Parameters
    ----------
    name : str
    network : PointNetwork
        The networks that were measured.
    two_body, three_body : bool
        One layer distinguishes stars with equal distances, and stars with equal distances and angles.
    mirror : bool
        Three layers distinguish a star from its mirror image.
    folds : mapping of int to bool
        One layer detects how a star with L-fold symmetry is rotated.
    chains : mapping of int to int or None
        The least number of layers that distinguishes the two k-chains; None if ``⌊k/2⌋ + 3`` layers do not.
    """

    name: str
    network: PointNetwork
    two_body: bool
    three_body: bool
    mirror: bool
    folds: Mapping[int, bool]
    chains: Mapping[int, int | None]

    def cells(self) -> list[str]:
        """Return the cells of the table, as :data:`COLUMNS`."""
        found = [self.two_body, self.three_body, self.mirror]
        cells = ["yes" if is_distinguished else "no" for is_distinguished in found]
        detected = [str(order) for order, is_detected in self.folds.items() if is_detected]
        cells.append(", ".join(detected) or "none")
        for depth in self.chains.values():
            cells.append("never" if depth is None else str(depth))
        return [self.name, *cells]


def measure_expressivity(name: str, options: Mapping[str, Any] | None = None) -> ExpressivityReport:
    """Measure the expressivity of a registered layer.

    Parameters
    ----------
    name : str
        A layer, or ``"gvp"`` or ``"mace"`` for networks of several.
    options : mapping, optional
        Options of the layer.

    Raises
    ------
    WiringError
        It reads a field that a point cloud does not have, or passes no messages.
    """
    network = network_of(name, options or {})
    return ExpressivityReport(
        name,
        network,
        two_body=distinguishes(network, cloud.two_body()),
        three_body=distinguishes(network, cloud.three_body()),
        mirror=distinguishes(network, cloud.mirror_images(), depth=3),
        folds={order: distinguishes(network, cloud.fold(order), rotated=True) for order in FOLDS},
        chains={k: _first_depth(network, k) for k in CHAINS},
    )


def distinguishes(network: PointNetwork, pair: Sequence[PointCloud], *, depth: int = 1, rotated: bool = False) -> bool:
    """Return True if a network with this number of layers gives different numbers for two clouds.

    Parameters
    ----------
    network : PointNetwork
    pair : two PointClouds
    depth : int
        Number of layers.
    rotated : bool
        Compare all features of the first point, vectors with their directions; otherwise the invariants of all points.
    """
    for seed in range(SEEDS):
        model = _generic(build_model(network.spec(depth), TARGET, seed=seed).double().eval())
        a, b = (_output(model, c.residues(framed=network.has_frames), c, rotated=rotated) for c in pair)
        if float((a - b).abs().max()) > DIFFERENT * float(a.abs().max()):
            return True
    return False


def network_of(name: str, options: Mapping[str, Any]) -> PointNetwork:
    """Wire a network of a layer on point clouds."""
    if name in ("gvp", "gvp_conv"):
        return _gvp(options)
    if name == "mace":
        return _mace(options)
    layer = registry.layers.get(name)
    _require_messages(name, layer)
    # Without these, the layer has no coordinates.
    places = [local for local in ("frame", "pos") if local in layer.optional]
    reads = {local: FIELDS[local] for local in (*layer.reads, *places)}
    start: tuple[ComponentSpec, ...] = (START,)
    if "v" in layer.optional and "v" in layer.writes:  # vectors beside h: they start as 0, and each layer updates them
        begin = component("irreps_linear", irreps="64x1o", reads=["sidechain_direction"], writes={"h": "v"})
        start, reads = (START, begin), reads | {"v": "v"}
    if "edge_attr" in layer.optional:
        with_edge_attr = component(name, reads=reads | {"edge_attr": FIELDS["edge_attr"]}, **options)
        with_edges = PointNetwork(start, (with_edge_attr,))
        try:
            build_model(with_edges.spec(1), TARGET)
        except WiringError:  # an option decides if there is such an input
            pass
        else:
            return with_edges
    return PointNetwork(start, (component(name, reads=reads, **options),))


def _require_messages(name: str, layer: type[GraphLayer]) -> None:
    """Require a layer that reads neighbors and writes h, of fields that a point cloud has."""
    required = "The report needs a layer from h of neighbors to h."
    for local in layer.reads:
        if local not in FIELDS:
            raise WiringError(f"layer {name!r} reads {local!r}, which a point cloud does not have. {required}")
    if layer.variadic or "h" not in layer.writes or not {"edges", "proteins"} & set(layer.reads):
        raise WiringError(f"layer {name!r} passes no messages. {required}")


def _gvp(options: Mapping[str, Any]) -> PointNetwork:
    """Return a GVP network: node vectors start as 0, edges have a direction and a distance."""
    reads, writes = ["edge_rbf", "edge_direction"], {"h": "edge_attr"}
    edge = component("gvp", reads=reads, irreps="16x0e+1x1o", norm=False, writes=writes)
    begin = component("gvp", reads=["h", "sidechain_direction"], irreps="64x0e+16x1o")
    return PointNetwork((START, begin, edge), (component("gvp_conv", **options),))


def _mace(options: Mapping[str, Any]) -> PointNetwork:
    """Return a MACE network: messages of degree ``lmax``, products of up to ``correlation`` of them."""
    unknown = sorted(set(options) - {"lmax", "correlation"})
    if unknown:
        raise OptionError(f"mace: option {unknown[0]!r} is not allowed in this report. Use lmax or correlation.")
    lmax = int(options.get("lmax", 2))
    irreps = "+".join(f"16x{degree}{'eo'[degree % 2]}" for degree in range(lmax + 1))
    reads, writes = {"edge_attr": "edge_rbf"}, {"h": "atomic"}
    gather = component("tfn", irreps=irreps, lmax=lmax, gate=False, reads=reads, writes=writes)
    product = component("product_basis", correlation=int(options.get("correlation", 3)), reads={"h": "atomic"})
    return PointNetwork((START,), (gather, product))


def _first_depth(network: PointNetwork, k: int) -> int | None:
    depths = range(1, k // 2 + 2 + EXTRA_LAYERS)
    return next((d for d in depths if distinguishes(network, cloud.k_chain(k), depth=d)), None)


def _generic(model: ProteinModel) -> ProteinModel:
    """Scale up weights that start close to 0, as those of layers that move points do."""
    for p in model.parameters():
        if p.dim() == 2:
            usual, size = 0.1 / p.size(1) ** 0.5, float(p.detach().square().mean().sqrt())
            p.data *= usual / size if 0 < size < usual else 1.0
    return model


def _output(model: ProteinModel, residues: Residues, points: PointCloud, *, rotated: bool) -> Tensor:
    """Return the output of a network for a cloud, independent of the order of the points."""
    graph = model.plan.precompute(residues)
    given = ProteinGraph(**{key: value for key, value in graph.items() if key not in ("edge_index", "degree")})
    given.edge_index = torch.from_numpy(points.edge_index.copy())
    with torch.no_grad():
        h = model.embed(given)["h"]
    if rotated:
        return h[0]
    x = invariants(h, model.fields["h"])
    g = torch.Generator().manual_seed(0)
    mixed = torch.tanh(x @ torch.randn(x.size(1), 64, generator=g, dtype=x.dtype) / x.size(1) ** 0.5)
    return mixed.sum(0)


def main() -> None:
    """Print one row per layer, as Markdown."""
    names = sys.argv[1:] or LAYERS
    rows = [COLUMNS, ["---"] * len(COLUMNS), *(measure_expressivity(name).cells() for name in names)]
    for cells in rows:
        print(f"| {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
