"""What the CA-only ProteinMPNN sees of a trace: distances and orientations of consecutive CA."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from protgraph_plugins.proteinmpnn.fields import CA_ORIENTATION, CA_PAIR_RBF
from torch import Tensor
from torch.linalg import cross
from torch.nn.functional import normalize

from protgraph import Conformity, TensorFeaturizer
from protgraph.featurize.gaussian import SOFTEN, gaussians

__all__ = ["PUBLISHED_DEFECTS", "QUATERNION_TOLERANCE", "CaOrientation", "CaPairRbf"]
ENTRY_POINTS = {"protgraph.featurizers": {"ca_orientation": "CaOrientation", "ca_pair_rbf": "CaPairRbf"}}

#: Length of a CA–CA step of a trans peptide, Å; others count as no step.
SHORT, LONG = 3.6, 4.0
PUBLISHED_DEFECTS = (
    "faithful to the published weights: where a residue has none before or behind it the origin stands in, and "
    "rotations between frames are taken the wrong way round; corrected=True mends both"
)
#: Float32 error of a quaternion, relative: the root of a difference of numbers near 1.
QUATERNION_TOLERANCE = 1e-3
_FAILS = {"rotation": PUBLISHED_DEFECTS, "float32": PUBLISHED_DEFECTS}
# Of whole proteins also the order of chains in the file counts: the last CA of one is before the first of the next.
_IN_A_MODEL = Conformity(expected_failures={**_FAILS, "reflection": PUBLISHED_DEFECTS, "node_order": PUBLISHED_DEFECTS})


@dataclass(frozen=True, eq=False)
class _Line:
    """``(N, 3)`` positions before and behind each residue, ``(N,)`` whether they are there, and what ends the line."""

    before: Tensor
    behind: Tensor
    has_before: Tensor
    has_behind: Tensor
    near_end: Tensor


def _line(f: Mapping[str, Any], *, within_chains: bool) -> _Line:
    """Who stands next to whom: chain after chain, each by ``seq_pos``; a gap in the numbers parts two residues."""
    pos, chain, seq_pos, batch = f["pos"], f["chain"], f["seq_pos"], f["proteins"].batch
    order = seq_pos.argsort(stable=True)
    for key in (chain, batch):  # the last sort counts most
        order = order[key[order].argsort(stable=True)]
    first, second = order[:-1], order[1:]
    other_chain = chain[first] != chain[second]
    step = (seq_pos[second] - seq_pos[first] == 1) & ~other_chain
    linked = (batch[first] == batch[second]) & (step if within_chains else step | other_chain)
    last = torch.ones_like(order, dtype=torch.bool)
    last[:-1] = batch[first] != batch[second]
    near_end = last.clone()
    near_end[:-1] |= last[1:]

    def neighbor(of: Tensor, who: Tensor) -> tuple[Tensor, Tensor]:
        there = torch.zeros_like(batch, dtype=torch.bool).index_copy(0, of, linked)
        place = torch.arange(len(order), device=order.device).index_copy(0, of, who)
        return pos[place] * there[:, None], there

    before, has_before = neighbor(second, first)
    behind, has_behind = neighbor(first, second)
    ends = torch.zeros_like(near_end).index_copy(0, order, near_end)
    return _Line(before, behind, has_before, has_behind, ends)


class CaPairRbf(TensorFeaturizer):
    """Gaussian radial bases of the distances between the CA before, of and behind i, and those of j.

    Parameters
    ----------
    bins : int
        Number of centers, from 2 to 22 Å.
    corrected : bool
        False, as published: at the ends of a protein and beside gaps the origin stands in for the missing CA, and the
        last CA of a chain is before the first one of the next. True: what is missing has radial bases of 0.

    Reads
    -----
    pos : (N, 3), point, Å
    chain, seq_pos : (N,) int64
    proteins, edges

    Writes
    ------
    ca_pair_rbf : (E, 9·bins), 0e, dimensionless
        CA of i slowest (before, own, behind), then those of j, then the bins.

    References
    ----------
    Dauparas et al. 2022, doi:10.1126/science.add2187, the program's ``CA_ProteinFeatures``.
    """

    reads: ClassVar[tuple[str, ...]] = ("pos", "chain", "seq_pos", "proteins", "edges")
    writes: ClassVar[tuple[str, ...]] = (CA_PAIR_RBF.name,)
    conformity: ClassVar[Conformity] = Conformity(expected_failures={**_FAILS, "reflection": PUBLISHED_DEFECTS})

    def __init__(self, *, bins: int = 16, corrected: bool = False) -> None:
        super().__init__()
        self.bins, self.corrected = bins, corrected
        self.conformity = Conformity() if corrected else _IN_A_MODEL
        self.declare(ca_pair_rbf=f"{9 * bins}x0e")

    def __call__(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        line, edges = _line(f, within_chains=self.corrected), f["edges"]
        three = torch.stack([line.before, f["pos"], line.behind], 1)  # (N, 3, 3)
        own, other = edges.target(three), edges.source(three)
        distance = (own[:, :, None] - other[:, None]).square().sum(-1).add(SOFTEN).sqrt()  # (E, 3, 3)
        basis = gaussians(distance, self.bins, 2.0, 22.0)  # (E, 3, 3, bins)
        if self.corrected:
            there = torch.stack([line.has_before, torch.ones_like(line.has_before), line.has_behind], 1).to(basis.dtype)
            basis = basis * (edges.target(there)[:, :, None] * edges.source(there)[:, None])[..., None]
        return {CA_PAIR_RBF.name: basis.flatten(1)}


class CaOrientation(TensorFeaturizer):
    """Direction to j in the frame of i, and a quaternion of how their frames are turned; frames of CA alone.

    With u the unit steps before and behind i: ``o = unit(u - u')``, ``n = unit(u × u')``, frame ``O = (o, n, o × n)``.

    Parameters
    ----------
    corrected : bool
        False, as published: the quaternion is of ``O_iᵀ O_j``, which turns with the protein, and the origin stands in
        for missing neighbors. True: of ``O_i O_jᵀ``, which does not.

    Reads
    -----
    pos : (N, 3), point, Å
    chain, seq_pos : (N,) int64
    proteins, edges

    Writes
    ------
    ca_orientation : (E, 7), dimensionless
        Direction (3), then the quaternion x, y, z, w; where a frame is missing, 0 but for w, which is 1.

    References
    ----------
    Ingraham et al. 2019, "Generative models for graph-based protein design", NeurIPS 32, eqs. 1–3.
    """

    reads: ClassVar[tuple[str, ...]] = ("pos", "chain", "seq_pos", "proteins", "edges")
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
        own, other = edges.target(frame), edges.source(frame)  # (E, 3, 3)
        direction = normalize((own @ (edges.source(pos) - edges.target(pos))[..., None])[..., 0], dim=-1)
        turn = own @ other.mT if self.corrected else own.mT @ other
        return {CA_ORIENTATION.name: torch.cat([direction, _quaternion(turn)], 1)}

    def _frames(self, pos: Tensor, line: _Line) -> Tensor:
        """``(N, 3, 3)``, rows are axes; 0 without two steps and, as published, for the last two residues."""
        step, next_step = (self._unit(a, b) for a, b in ((line.before, pos), (pos, line.behind)))
        if self.corrected:
            step, next_step = step * line.has_before[:, None], next_step * line.has_behind[:, None]
        axis = normalize(step - next_step, dim=-1)
        normal = normalize(cross(step, next_step, dim=-1), dim=-1)
        frame = torch.stack([axis, normal, cross(axis, normal, dim=-1)], 1)
        none = line.near_end | ~line.has_before  # also behind a gap
        if self.corrected:  # both steps are needed: one alone makes an axis, and signs of rounding errors
            none = (step == 0).all(1) | (next_step == 0).all(1)
        return frame.masked_fill(none[:, None, None], 0.0)

    @staticmethod
    def _unit(start: Tensor, end: Tensor) -> Tensor:
        step = end - start
        length = step.norm(dim=-1, keepdim=True)
        return normalize(step * ((length > SHORT) & (length < LONG)), dim=-1)


def _quaternion(turn: Tensor) -> Tensor:
    """``(E, 3, 3)`` rotations to unit quaternions x, y, z, w ``(E, 4)``; x, y or z is 0 where its sign is undefined."""
    xx, yy, zz = turn.diagonal(dim1=-2, dim2=-1).unbind(-1)
    size = _root(torch.stack([xx - yy - zz, yy - xx - zz, zz - xx - yy], -1).add(1).abs()) / 2
    sign = torch.stack(
        [turn[:, 2, 1] - turn[:, 1, 2], turn[:, 0, 2] - turn[:, 2, 0], turn[:, 1, 0] - turn[:, 0, 1]], -1
    ).sign()
    w = _root((1 + xx + yy + zz).relu()) / 2
    return normalize(torch.cat([sign * size, w[:, None]], -1), dim=-1)


def _root(x: Tensor) -> Tensor:
    """Square roots, with gradient 0 where x is 0."""
    none = x == 0
    return x.masked_fill(none, 1.0).sqrt().masked_fill(none, 0.0)
