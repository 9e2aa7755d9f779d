"""Features of the CA-only ProteinMPNN: distances and orientations from consecutive CA atoms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from protgraph_plugins.proteinmpnn.fields import CA_ORIENTATION, CA_PAIR_RBF
from protgraph_plugins.proteinmpnn.gaussian import SOFTEN, gaussians
from torch import Tensor
from torch.linalg import cross
from torch.nn.functional import normalize

from protgraph import TensorFeaturizer
from protgraph.data import Conformity

__all__ = ["PUBLISHED_DEFECTS", "QUATERNION_TOLERANCE", "CaOrientation", "CaPairRbf"]
ENTRY_POINTS = {"protgraph.featurizers": {"ca_orientation": "CaOrientation", "ca_pair_rbf": "CaPairRbf"}}

#: Length of a CA–CA step of a trans peptide, Å; other steps are ignored.
SHORT, LONG = 3.6, 4.0
PUBLISHED_DEFECTS = (
    "as in the published weights: the origin replaces the CA missing before or after a residue, and rotations between "
    "frames are taken in the wrong order; corrected=True fixes both"
)
#: Relative float32 error of a quaternion, which has roots of differences of numbers near 1.
QUATERNION_TOLERANCE = 1e-3
_FAILS = {"rotation": PUBLISHED_DEFECTS, "float32": PUBLISHED_DEFECTS}
_IN_A_MODEL = Conformity(expected_failures={**_FAILS, "reflection": PUBLISHED_DEFECTS, "node_order": PUBLISHED_DEFECTS})


@dataclass(frozen=True, eq=False)
class _Line:
    """Positions ``(N, 3)`` before and after each residue, masks ``(N,)`` of them, and of rows at ends of proteins.

    ``near_end`` marks the first and the last two rows of each protein, as the program counts them: unresolved residues
    of a gap are rows of their own.
    """

    before: Tensor
    after: Tensor
    has_before: Tensor
    has_after: Tensor
    near_end: Tensor


def _line(f: Mapping[str, Any], *, within_chains: bool) -> _Line:
    """Find the residues before and after each one, by ``chain_rank`` and ``seq_pos``; gaps separate residues."""
    pos, chain, seq_pos, batch = f["pos"], f["chain_rank"], f["seq_pos"], f["proteins"].batch
    order = seq_pos.argsort(stable=True)
    for key in (chain, batch):  # the last key is the primary one
        order = order[key[order].argsort(stable=True)]
    first, second = order[:-1], order[1:]
    other_chain = chain[first] != chain[second]
    step = (seq_pos[second] - seq_pos[first] == 1) & ~other_chain
    linked = (batch[first] == batch[second]) & (step if within_chains else step | other_chain)
    border = torch.ones_like(order[:1], dtype=torch.bool)
    other_protein = batch[first] != batch[second]
    start, end = torch.cat([border, other_protein]), torch.cat([other_protein, border])
    before_end = torch.cat([end[1:] & linked, ~border])
    near_end = start | before_end | end

    def neighbor(nodes: Tensor, others: Tensor) -> tuple[Tensor, Tensor]:
        there = torch.zeros_like(batch, dtype=torch.bool).index_copy(0, nodes, linked)
        position = torch.arange(len(order), device=order.device).index_copy(0, nodes, others)
        return pos[position] * there[:, None], there

    before, has_before = neighbor(second, first)
    after, has_after = neighbor(first, second)
    ends = torch.zeros_like(near_end).index_copy(0, order, near_end)
    return _Line(before, after, has_before, has_after, ends)


class CaPairRbf(TensorFeaturizer):
    """Gaussian radial bases of the distances between the CA before, of and after i, and those of j.

    Parameters
    ----------
    bins : int
        Number of centers, from 2 to 22 Å.
    corrected : bool
        False, as published: at the ends of a protein and next to gaps the origin replaces the missing CA, and the last
        CA of a chain precedes the first one of the next. True: missing CA have radial bases of 0.

    Reads
    -----
    pos : (N, 3), point, Å
    chain_rank, seq_pos : (N,) int64
    proteins, edges

    Writes
    ------
    ca_pair_rbf : (E, 9·bins), 0e, dimensionless
        Index order: CA of i (before, own, after), CA of j, bin.

    References
    ----------
    Dauparas et al. 2022, doi:10.1126/science.add2187, the program's ``CA_ProteinFeatures``.
    """

    reads: ClassVar[tuple[str, ...]] = ("pos", "chain_rank", "seq_pos", "proteins", "edges")
    writes: ClassVar[tuple[str, ...]] = (CA_PAIR_RBF.name,)
    conformity: ClassVar[Conformity] = Conformity(expected_failures={**_FAILS, "reflection": PUBLISHED_DEFECTS})

    def __init__(self, *, bins: int = 16, corrected: bool = False) -> None:
        super().__init__()
        self.bins, self.corrected = bins, corrected
        self.conformity = Conformity() if corrected else _IN_A_MODEL
        self.declare(ca_pair_rbf=f"{9 * bins}x0e")

    def __call__(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        edges = f["edges"]
        line = _line(f, within_chains=self.corrected)
        three = torch.stack([line.before, f["pos"], line.after], 1)  # (N, 3, 3)
        vector = edges.target(three)[:, :, None] - edges.source(three)[:, None]  # (E, 3, 3, 3)
        distance = vector.square().sum(-1).add(SOFTEN).sqrt()
        basis = gaussians(distance, self.bins, 2.0, 22.0)  # (E, 3, 3, bins)
        if self.corrected:
            has_itself = torch.ones_like(line.has_before)
            has_atom = torch.stack([line.has_before, has_itself, line.has_after], 1).to(basis.dtype)
            has_both = edges.target(has_atom)[:, :, None] * edges.source(has_atom)[:, None]
            basis = basis * has_both[..., None]
        return {CA_PAIR_RBF.name: basis.flatten(1)}


class CaOrientation(TensorFeaturizer):
    """Direction to j in the frame of i, and the quaternion of the rotation between their frames, from CA only.

    With u and u' the unit steps before and after i: ``o = unit(u - u')``, ``n = unit(u × u')``, frame ``O = (o, n, o ×
    n)``.

    Parameters
    ----------
    corrected : bool
        False, as published: quaternion of ``O_iᵀ O_j``, which is not rotation-invariant, and the origin in place of
        missing neighbors. True: quaternion of ``O_i O_jᵀ``, which is invariant.

    Reads
    -----
    pos : (N, 3), point, Å
    chain_rank, seq_pos : (N,) int64
    proteins, edges

    Writes
    ------
    ca_orientation : (E, 7), dimensionless
        Direction (3), then the quaternion x, y, z, w; (0, …, 0, 1) if a frame is missing.

    References
    ----------
    Ingraham et al. 2019, "Generative models for graph-based protein design", NeurIPS 32, eqs. 1–3.
    """

    reads: ClassVar[tuple[str, ...]] = ("pos", "chain_rank", "seq_pos", "proteins", "edges")
    writes: ClassVar[tuple[str, ...]] = (CA_ORIENTATION.name,)
    conformity: ClassVar[Conformity] = Conformity(expected_failures=_FAILS)

    def __init__(self, *, corrected: bool = False) -> None:
        super().__init__()
        self.corrected = corrected
        self.conformity = Conformity(tolerance=QUATERNION_TOLERANCE) if corrected else _IN_A_MODEL

    def __call__(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        pos, edges = f["pos"], f["edges"]
        line = _line(f, within_chains=self.corrected)
        frame = self._frames(pos, line)
        target_frame = edges.target(frame)  # (E, 3, 3)
        source_frame = edges.source(frame)
        vector = edges.source(pos) - edges.target(pos)
        local = (target_frame @ vector[..., None])[..., 0]
        direction = normalize(local, dim=-1)
        if self.corrected:
            rotation = target_frame @ source_frame.mT
        else:
            rotation = target_frame.mT @ source_frame
        return {CA_ORIENTATION.name: torch.cat([direction, _quaternion(rotation)], 1)}

    def _frames(self, pos: Tensor, line: _Line) -> Tensor:
        """Return frames ``(N, 3, 3)``, axes as rows.

        As published: 0 at the ends of a protein; next to a gap only the first axis, from one step. Corrected: 0 without
        two steps.
        """
        step = self._unit(line.before, pos)
        next_step = self._unit(pos, line.after)
        if self.corrected:
            step = step * line.has_before[:, None]
            next_step = next_step * line.has_after[:, None]
        axis = normalize(step - next_step, dim=-1)
        normal = normalize(cross(step, next_step, dim=-1), dim=-1)
        frame = torch.stack([axis, normal, cross(axis, normal, dim=-1)], 1)
        missing = line.near_end
        if self.corrected:  # one step alone gives an axis, and signs from rounding errors
            missing = (step == 0).all(1) | (next_step == 0).all(1)
        return frame.masked_fill(missing[:, None, None], 0.0)

    @staticmethod
    def _unit(start: Tensor, end: Tensor) -> Tensor:
        step = end - start
        length = step.norm(dim=-1, keepdim=True)
        return normalize(step * ((length > SHORT) & (length < LONG)), dim=-1)


def _quaternion(rotation: Tensor) -> Tensor:
    """Convert rotations ``(E, 3, 3)`` to unit quaternions x, y, z, w ``(E, 4)``; components of undefined sign are 0."""
    xx, yy, zz = rotation.diagonal(dim1=-2, dim2=-1).unbind(-1)
    squares = torch.stack([xx - yy - zz, yy - xx - zz, zz - xx - yy], -1).add(1).abs()
    size = _root(squares) / 2
    antisymmetric = torch.stack(
        [
            rotation[:, 2, 1] - rotation[:, 1, 2],
            rotation[:, 0, 2] - rotation[:, 2, 0],
            rotation[:, 1, 0] - rotation[:, 0, 1],
        ],
        -1,
    )
    xyz = antisymmetric.sign() * size
    w = _root((1 + xx + yy + zz).relu()) / 2
    return normalize(torch.cat([xyz, w[:, None]], -1), dim=-1)


def _root(x: Tensor) -> Tensor:
    """Compute square roots, with gradient 0 where x is 0."""
    is_zero = x == 0
    return x.masked_fill(is_zero, 1.0).sqrt().masked_fill(is_zero, 0.0)
