"""Tensor field network layer: rotation-equivariant filters on neighbours, fast enough for whole proteins on a CPU."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Literal, NamedTuple

import torch
from e3nn import o3
from torch import Tensor, nn
from torch.nn.functional import linear as linear_map

from protgraph.data.edges import Edges
from protgraph.data.fields import FieldSpec
from protgraph.errors import OptionError
from protgraph.nn.base import GraphLayer
from protgraph.nn.layers.gate import Gate
from protgraph.nn.layers.radial import BesselBasis, polar
from protgraph.nn.tensor_product import ChannelwiseProduct, TensorProductBackend

__all__ = ["TFN"]


class _Path(NamedTuple):
    """One coupling l_in ⊗ l_filter → l_out: its blocks, channels that reach the output block, columns of its tensor."""

    i: int
    s: int
    o: int
    fan_in: int
    columns: slice


class TFN(GraphLayer):
    """``h_i ← Gate( Σ_j (R(d_ij) Y(r_ij)) ⊗ h_j )``: radial network R, spherical harmonics Y of the direction.

    Parameters
    ----------
    fields : mapping of str to FieldSpec
        What ``h``, ``edge_vec`` and, where wired, ``edge_attr`` hold.
    irreps : str
        Of the output, ``"64x0e+16x1o"``; with a gate, even scalars come first.
    lmax : int
        Largest degree of the spherical harmonics.
    mode : {"channelwise", "full"}
        "channelwise": one radial function per channel and path, then a linear map over channels
        (self-interaction). "full": one radial function per pair of channels (e3nn's
        FullyConnectedTensorProduct).
    radial : int
        Hidden width of the radial network R = Linear ∘ ReLU ∘ Linear.
    basis : int
        Bessel functions of the distance that R reads where no ``edge_attr`` is wired.
    cutoff : float
        Where those vanish, Å.
    gate : bool
        Apply :class:`~protgraph.nn.layers.gate.Gate`.
    reduce : {"mean", "sum"}
        Over neighbours.
    average_degree : float
        Divides a sum, so that its scale does not depend on the choice of edges.
    backend : {"e3nn", "cuequivariance"}
        Whose tensor product runs; "cuequivariance" in mode "channelwise" alone.

    Notes
    -----
    Reads ``h`` (N, any irreps), ``edge_vec`` (E, 3) Å, ``edges``; optional ``edge_attr`` (E, scalars), which R
    reads in place of its Bessel basis. Writes ``h`` (N, irreps).

    The sum over neighbours is linear, so it is taken before channels are mixed: no edge ever holds a message of
    the output's width, nor (mode "full") a weight matrix. Coincident nodes have direction 0: they exchange what
    Y_0 carries.

    Deviations from the paper: parity is kept (O(3), not SO(3)); Bessel functions in place of Gaussians; the
    nonlinearity is a gate; paths are normalised as in e3nn. With ``edge_vec`` = pos[j] − pos[i] odd filters have the
    opposite sign of the paper's r_ij, which the weights absorb.

    References
    ----------
    Thomas et al. 2018, arXiv:1802.08219, eqs. 4–7. Mode "full": Joshi et al. 2023, arXiv:2301.09308, and its code
    geometric-gnn-dojo. Normalisation: Geiger & Smidt 2022, arXiv:2207.09453.

    Examples
    --------
    >>> fields = {"h": FieldSpec("h", "node", "8x0e"), "edges": FieldSpec("edges", "edge", "object")}
    >>> fields["edge_vec"] = FieldSpec("edge_vec", "edge", "1x1o")
    >>> TFN(fields, irreps="8x0e+4x1o").out["h"].irreps
    '8x0e+4x1o'
    """

    reads = ("h", "edge_vec", "edges")
    optional = ("edge_attr",)
    writes = ("h",)

    def __init__(
        self,
        fields: Mapping[str, FieldSpec],
        *,
        irreps: str = "64x0e+16x1o",
        lmax: int = 1,
        mode: Literal["channelwise", "full"] = "channelwise",
        radial: int = 16,
        basis: int = 8,
        cutoff: float = 10.0,
        gate: bool = True,
        reduce: Literal["mean", "sum"] = "mean",
        average_degree: float = 1.0,
        backend: TensorProductBackend = "e3nn",
    ) -> None:
        super().__init__(fields)
        if mode not in ("channelwise", "full"):
            raise OptionError(f"tfn: mode {mode!r} is none of 'channelwise', 'full'")
        if reduce not in ("mean", "sum"):
            raise OptionError(f"tfn: reduce {reduce!r} is none of 'mean', 'sum'")
        if backend != "e3nn" and mode == "full":
            raise OptionError(f"tfn: backend {backend!r} runs in mode 'channelwise', not 'full'")
        self.mode, self.reduce, self.average_degree = mode, reduce, average_degree
        self.gate = Gate(irreps) if gate else None
        self.irreps_in = fields["h"].o3
        self.irreps_mid = self.gate.irreps_in if gate else o3.Irreps(irreps).simplify()
        self.irreps_out = self.gate.irreps_out if gate else self.irreps_mid
        self.irreps_sh = o3.Irreps.spherical_harmonics(lmax)
        self.paths = self._couple(lmax)
        given = (self.irreps_in, lmax, self.irreps_mid)
        self.product = None if backend == "e3nn" else ChannelwiseProduct(*given, backend=backend)
        self.basis = None if "edge_attr" in fields else BesselBasis(basis, cutoff)
        width = self.scalar_width("edge_attr") if "edge_attr" in fields else basis
        numel = sum(self._weight_shape(p)[0] * self._weight_shape(p)[1] for p in self.paths)
        self.fc = nn.Sequential(nn.Linear(width, radial), nn.ReLU(), nn.Linear(radial, numel))
        # Weights of unit scale, as e3nn's path normalisation supposes, for edge features of unit scale.
        nn.init.kaiming_normal_(self.fc[0].weight, nonlinearity="relu")
        nn.init.kaiming_normal_(self.fc[2].weight, nonlinearity="linear")
        if mode == "channelwise":
            self.self_interaction = nn.ParameterList(
                torch.randn(self.irreps_in[p.i].mul, self.irreps_mid[p.o].mul) / math.sqrt(p.fan_in) for p in self.paths
            )
        self.declare(h=str(self.irreps_out))

    def _couple(self, lmax: int) -> list[_Path]:
        """Every allowed path in e3nn's order (in, filter, out); sets the matrix that makes all their tensors from Y."""
        triples = [
            (i, s, o)
            for (i, a), (s, b), (o, c) in product(*map(enumerate, (self.irreps_in, self.irreps_sh, self.irreps_mid)))
            if c.ir in a.ir * b.ir
        ]
        reached = {o for _, _, o in triples}
        for o, block in enumerate(self.irreps_mid):
            if o not in reached:
                raise OptionError(f"tfn: {self.irreps_in} ⊗ {self.irreps_sh} never makes {block}; raise lmax={lmax}")
        fan_in = [sum(self.irreps_in[i].mul for i, _, to in triples if to == o) for o in range(len(self.irreps_mid))]
        paths, tensors, at = [], [], 0
        for i, s, o in triples:
            l1, l2, l3 = self.irreps_in[i].ir.l, self.irreps_sh[s].ir.l, self.irreps_mid[o].ir.l
            w3j = o3.wigner_3j(l1, l2, l3, dtype=torch.float64).transpose(0, 1).flatten(1)  # (2l2+1, (2l1+1)(2l3+1))
            tensor = torch.zeros(self.irreps_sh.dim, w3j.size(1), dtype=torch.float64)
            # In mode "channelwise" the weights start at 1 / sqrt(fan_in), as torch's linear maps do: Adam's steps fit.
            norm = fan_in[o] if self.mode == "full" else 1
            tensor[self.irreps_sh.slices()[s]] = w3j * math.sqrt((2 * l3 + 1) / norm)
            paths.append(_Path(i, s, o, fan_in[o], slice(at, at + w3j.size(1))))
            tensors.append(tensor)
            at += w3j.size(1)
        # Neither parameter nor buffer: a round trip through float32 must not blunt it.
        self._exact_coupling = self._coupling = torch.cat(tensors, 1)
        return paths

    def _weight_shape(self, path: _Path) -> tuple[int, int]:
        return self.irreps_in[path.i].mul, self.irreps_mid[path.o].mul if self.mode == "full" else 1

    def forward(self, f: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """``h`` (N, irreps)."""
        h, edges = f["h"], f["edges"]
        distance, direction = polar(f["edge_vec"])
        hidden = self.fc[:2](f["edge_attr"] if self.basis is None else self.basis(distance))  # (E, radial)
        if self.product is None:
            mixed = self._own_product(h, direction, hidden, edges)
        else:
            products = self.product(h, direction, edges, self.fc[2](hidden))  # (E, 2l3+1, U) each
            mixed = (edges.sum(z) @ linear for z, linear in zip(products, self.self_interaction, strict=True))
        out: list[list[Tensor]] = [[] for _ in self.irreps_mid]
        for path, term in zip(self.paths, mixed, strict=True):
            out[path.o].append(term)  # (N, 2l3+1, W)
        h = torch.cat([sum(terms).transpose(1, 2).flatten(1) for terms in out], 1)
        h = h / (edges.count.clamp(min=1).to(h)[:, None] if self.reduce == "mean" else self.average_degree)
        return {"h": h if self.gate is None else self.gate(h)}

    def _own_product(self, h: Tensor, direction: Tensor, hidden: Tensor, edges: Edges) -> Iterator[Tensor]:
        harmonics = o3.spherical_harmonics(self.irreps_sh, direction, normalize=False, normalization="component")
        filters = harmonics @ self._coupling_like(h)  # (E, Σ (2l1+1)(2l3+1))
        combine = self._channelwise if self.mode == "channelwise" else self._full
        return combine(filters, hidden, self._sources(h, edges), edges)

    def _coupling_like(self, x: Tensor) -> Tensor:
        if self._coupling.dtype != x.dtype or self._coupling.device != x.device:
            self._coupling = self._exact_coupling.to(x)
        return self._coupling

    def _sources(self, h: Tensor, edges: Edges) -> list[Tensor]:
        """Each edge's source features, one ``(E, 2l+1, U)`` per input block: components before channels."""
        # A gather per block: splitting one wide gather would copy its whole gradient back together.
        blocks = h.split([block.dim for block in self.irreps_in], 1)
        shapes = [(mul, ir.dim) for mul, ir in self.irreps_in]
        return [edges.source(x.unflatten(1, shape).mT) for x, shape in zip(blocks, shapes, strict=True)]

    def _channelwise(self, filters: Tensor, hidden: Tensor, sources: list[Tensor], edges: Edges) -> Iterator[Tensor]:
        widths = [self._weight_shape(p)[0] for p in self.paths]
        affine = zip(self.fc[2].weight.split(widths), self.fc[2].bias.split(widths), strict=True)
        for path, (weight, bias), linear in zip(self.paths, affine, self.self_interaction, strict=True):
            source = sources[path.i]  # (E, 2l1+1, U)
            weighted = source * linear_map(hidden, weight, bias)[:, None]
            if path.s == 0:  # Y_0 = 1 couples nothing
                yield edges.sum(weighted) @ linear  # (N, 2l1+1, W)
            else:
                coupling = filters[:, path.columns].contiguous().unflatten(1, (source.size(1), -1))  # (E, 2l1+1, 2l3+1)
                yield _neighbour_product(edges, coupling, weighted) @ linear  # (N, 2l3+1, W)

    def _full(self, filters: Tensor, hidden: Tensor, sources: list[Tensor], edges: Edges) -> Iterator[Tensor]:
        # R's last map is linear in its hidden layer, so neighbours are summed per hidden unit and mixed afterwards.
        shapes = [self._weight_shape(p) for p in self.paths]
        affine = torch.cat([self.fc[2].weight, self.fc[2].bias[:, None]], 1)  # (Σ U W, radial + 1)
        hidden = torch.cat([hidden, hidden.new_ones(len(hidden), 1)], 1)
        for path, (u, w), linear in zip(self.paths, shapes, affine.split([u * w for u, w in shapes]), strict=True):
            source = sources[path.i]
            coupling = filters[:, path.columns].contiguous().unflatten(1, (source.size(1), -1))  # (E, 2l1+1, 2l3+1)
            spread = (coupling[..., None] * hidden[:, None, None]).flatten(2)  # (E, 2l1+1, (2l3+1) (radial+1))
            summed = _neighbour_product(edges, spread, source)  # (N, (2l3+1) (radial+1), U)
            linear = linear.unflatten(0, (u, w)).permute(2, 0, 1).flatten(0, 1)  # ((radial+1) U, W)
            yield summed.view(len(summed), coupling.size(2), -1) @ linear  # (N, 2l3+1, W)


def _neighbour_product(edges: Edges, a: Tensor, b: Tensor) -> Tensor:
    """``Σ_j Σ_m a[ij, m, p] b[ij, m, u]``, ``(E, M, P)`` and ``(E, M, U)`` to ``(N, P, U)``."""
    if edges.degree:
        n, k = edges.num_nodes, edges.degree * a.size(1)
        return a.reshape(n, k, -1).mT @ b.reshape(n, k, -1)
    return edges.sum(a.mT @ b)
