"""Features of ProteinMPNN: nearest neighbors, virtual CB, atom distances and sequence offsets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import torch
from annotated_types import Ge
from protgraph_plugins.proteinmpnn.fields import ATOM_PAIR_RBF, CB, RELATIVE_POSITION
from protgraph_plugins.proteinmpnn.gaussian import SOFTEN, gaussians
from protgraph_plugins.proteinmpnn.unresolved_neighbors import farthest_complete, knn_with_unresolved
from torch import Tensor

from protgraph import EdgeFeaturizer, EdgeList, Residues, TensorFeaturizer
from protgraph.data import Conformity
from protgraph.errors import OptionError
from protgraph.structure.descriptors import CB_C, CB_CROSS, CB_N
from protgraph.structure.neighbors import knn

__all__ = ["AtomPairRbf", "BackboneKnn", "RelativePosition", "VirtualCb"]
ENTRY_POINTS = {
    "protgraph.featurizers": {
        "atom_pair_rbf": "AtomPairRbf",
        "backbone_knn": "BackboneKnn",
        "relative_position": "RelativePosition",
        "virtual_cb": "VirtualCb",
    },
}

#: Edges per thread and block of radial bases: 512 × 400 float32 take 0.8 MB and fit the cache of a core.
EDGES = 512


class BackboneKnn(EdgeFeaturizer):
    """Edges to each residue from the k residues with the nearest CA, itself first.

    Parameters
    ----------
    k : int
        Neighbors of each residue, itself included; all residues of smaller proteins.
    atoms : {"backbone", "ca"}
        Required atoms of a residue: N, CA, C and O, or CA. A residue without them has no edges and is not a neighbor of
        any other; it keeps its sequence position.
    unresolved : bool
        True, as in the program: residues without the required atoms have no edges, but are the farthest neighbors of
        the others in a protein of at most k complete ones. Design and scoring insert the missing residues as well.

    Notes
    -----
    The reference takes incomplete residues as neighbors in a protein with at most k complete ones. Otherwise the two
    ways agree.

    References
    ----------
    Dauparas et al. 2022, doi:10.1126/science.add2187, supplement (48 nearest CA).
    """

    loops: ClassVar[bool] = True
    conformity: ClassVar[Conformity] = Conformity(options={"k": 6})  # fewer than the residues of its test proteins

    def __init__(
        self, *, k: Annotated[int, Ge(1)] = 48, atoms: Literal["backbone", "ca"] = "backbone", unresolved: bool = False
    ) -> None:
        super().__init__()
        self.k, self.atoms, self.inserts_unresolved = k, atoms, unresolved

    def __call__(self, residues: Residues) -> EdgeList:
        mask = residues.backbone_mask
        is_complete = mask.all(1) if self.atoms == "backbone" else mask[:, 1]
        complete = np.flatnonzero(is_complete)  # (M,)
        all_complete = len(complete) == len(residues)
        if self.inserts_unresolved and len(complete) <= self.k and not all_complete:
            return EdgeList(*knn_with_unresolved(residues, is_complete, self.k))

        # Each residue itself, then its nearest neighbors, as rows of the complete residues.
        num_others = max(min(self.k, len(complete)) - 1, 0)
        others = knn(residues.pos[complete], num_others).reshape(2, len(complete), num_others)
        itself = np.broadcast_to(np.arange(len(complete))[:, None], (2, len(complete), 1))
        rows = np.concatenate([itself, others], 2).reshape(2, -1)
        source, target = complete[rows]
        degree = num_others + 1 if all_complete and len(complete) else None
        return EdgeList(source, target, degree)


class VirtualCb(TensorFeaturizer):
    """Virtual CB from ideal geometry, ``CA - 0.583 b × c + 0.568 b - 0.541 c`` with ``b = CA - N`` and ``c = C - CA``.

    Reads
    -----
    backbone : (N, 4, 3), point, Å
    backbone_mask : (N, 4)
    pos : (N, 3), point, Å

    Writes
    ------
    cb : (N, 3), point, Å
        CA if N or C is missing. It is not mirrored by a reflection, since residues are chiral.

    References
    ----------
    Dauparas et al. 2022, doi:10.1126/science.add2187, supplement.
    """

    reads: ClassVar[tuple[str, ...]] = ("backbone", "backbone_mask", "pos")
    writes: ClassVar[tuple[str, ...]] = (CB.name,)

    def __call__(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        has_atoms = f["backbone_mask"][:, :3].all(1)[:, None, None]
        atoms = f["backbone"][:, :3].masked_fill(~has_atoms, 0.0)  # NaN would spread through the gradient
        n, ca, c = atoms.unbind(1)
        return {CB.name: f["pos"] + _cb_step(n, ca, c)}


def _cb_step(n: Tensor, ca: Tensor, c: Tensor) -> Tensor:
    """Return the vectors from CA to the virtual CB, ``(N, 3)``."""
    from_n = ca - n
    to_c = c - ca
    return CB_CROSS * torch.linalg.cross(from_n, to_c) + CB_N * from_n + CB_C * to_c


class AtomPairRbf(TensorFeaturizer):
    """Gaussian radial bases of the distances between all atoms N, CA, C, O, CB of i and all of j.

    ``exp(-((sqrt(|x_a(i) - x_b(j)|² + 1e-6) - μ_k) / σ)²)``, μ_k evenly spaced, both ends included.

    Parameters
    ----------
    bins : int
        Number of centers.
    low, high : float
        First and last center, Å; ``σ = (high - low) / bins``.
    unresolved : bool
        True, as in the program, with ``unresolved`` of ``backbone_knn``: missing atoms are at the origin, and the
        distance from CA to that of an incomplete residue is the one to the farthest complete residue.

    Reads
    -----
    backbone : (N, 4, 3), point, Å
    backbone_mask : (N, 4)
    cb : (N, 3), point, Å
    proteins
    edges : the edges j → i

    Writes
    ------
    atom_pair_rbf : (E, 25·bins), 0e, dimensionless
        Index order: atom of i (N, CA, C, O, CB), atom of j, bin; 0 if either residue lacks an atom, unless
        ``unresolved``.

    References
    ----------
    Dauparas et al. 2022, doi:10.1126/science.add2187, supplement; σ as in the reference program, without
    the 1/2 of a normal density.
    """

    reads: ClassVar[tuple[str, ...]] = ("backbone", "backbone_mask", "cb", "proteins", "edges")
    writes: ClassVar[tuple[str, ...]] = (ATOM_PAIR_RBF.name,)

    def __init__(
        self, *, bins: Annotated[int, Ge(2)] = 16, low: float = 2.0, high: float = 22.0, unresolved: bool = False
    ) -> None:
        super().__init__()
        if not high > low:
            raise OptionError(f"invalid centers of atom_pair_rbf: {low!r} to {high!r} Å. high must be above low.")
        self.bins = bins
        self.low = low
        self.high = high
        self.unresolved = unresolved
        self.declare(atom_pair_rbf=f"{25 * bins}x0e")

    def __call__(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        edges, complete = f["edges"], f["backbone_mask"].all(1)
        if self.unresolved:
            return {ATOM_PAIR_RBF.name: self._with_unresolved(f, complete)}
        backbone = f["backbone"].masked_fill(~complete[:, None, None], 0.0)
        atoms = torch.cat([backbone, f["cb"][:, None]], 1).flatten(1)  # (N, 15)
        basis = self._basis(atoms, edges.index)  # (E, 25 bins)
        if complete.device.type != "cpu" or not bool(complete.all()):  # bool() would synchronize with a device
            basis = basis * (edges.target(complete) & edges.source(complete))[:, None]
        return {ATOM_PAIR_RBF.name: basis}

    def _with_unresolved(self, f: Mapping[str, Any], complete: Tensor) -> Tensor:
        """Return ``(E, 25 bins)`` with missing atoms at the origin; edges end at complete residues."""
        index = f["edges"].index
        backbone = f["backbone"].masked_fill(~f["backbone_mask"][..., None], 0.0)
        n, ca, c = backbone[:, :3].unbind(1)
        cb = torch.where(complete[:, None], f["cb"], ca + _cb_step(n, ca, c))
        atoms = torch.cat([backbone, cb[:, None]], 1).flatten(1)  # (N, 15)
        basis = self._basis(atoms, index)
        is_complete = complete[index[0]]  # (E,)
        if is_complete.device.type == "cpu" and bool(is_complete.all()):  # bool() would synchronize with a device
            return basis

        # From CA to the CA of an incomplete residue: the distance to the farthest complete one.
        farthest = farthest_complete(ca, complete, f["proteins"])[index[1]]
        far = gaussians(farthest, self.bins, self.low, self.high)  # (E, bins)
        before, ca_to_ca, after = basis.split([6 * self.bins, self.bins, 18 * self.bins], 1)
        ca_to_ca = torch.where(is_complete[:, None], ca_to_ca, far)
        return torch.cat([before, ca_to_ca, after], 1)

    def _basis(self, atoms: Tensor, index: Tensor) -> Tensor:
        """Return ``(E, 25 bins)`` from ``(N, 15)`` and ``(2, E)``; in blocks of edges on the CPU without gradients."""
        if atoms.requires_grad or atoms.device.type != "cpu" or not index.numel():
            return self._of_edges(atoms, index)
        basis = atoms.new_empty(index.size(1), 25 * self.bins)
        size = EDGES * torch.get_num_threads()
        for index_block, basis_block in zip(index.split(size, 1), basis.split(size), strict=True):
            basis_block.copy_(self._of_edges(atoms, index_block))
        return basis

    def _of_edges(self, atoms: Tensor, index: Tensor) -> Tensor:
        source, target = (atoms.index_select(0, end).t().contiguous().view(5, 3, -1) for end in index)
        vector = target[:, None] - source  # (5, 5, 3, E), edges last for speed
        distance = vector.square().sum(2).add(SOFTEN).sqrt().flatten(0, 1)
        return gaussians(distance.t().contiguous(), self.bins, self.low, self.high).flatten(1)


class RelativePosition(TensorFeaturizer):
    """Sequence offset as a category: ``seq_pos[i] - seq_pos[j]`` clipped to ±clip, plus clip; last: other chain.

    Parameters
    ----------
    clip : int
        Largest offset with a separate class.

    Reads
    -----
    seq_pos, chain : (N,) int64
    edges : the edges j → i

    Writes
    ------
    relative_position : (E,) int64, 2·clip + 2 classes

    Notes
    -----
    ``edge_offset`` is the same one-hot, with the opposite sign.

    References
    ----------
    Dauparas et al. 2022, doi:10.1126/science.add2187, supplement (relative positional encoding, ±32).
    """

    reads: ClassVar[tuple[str, ...]] = ("seq_pos", "chain", "edges")
    writes: ClassVar[tuple[str, ...]] = (RELATIVE_POSITION.name,)

    def __init__(self, *, clip: Annotated[int, Ge(1)] = 32) -> None:
        super().__init__()
        self.clip = clip
        self.out[RELATIVE_POSITION.name] = RELATIVE_POSITION.as_(RELATIVE_POSITION.name, classes=2 * clip + 2)

    def __call__(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        edges, seq_pos, chain = f["edges"], f["seq_pos"], f["chain"]
        offset = edges.target(seq_pos) - edges.source(seq_pos)
        offset_class = offset.clamp(-self.clip, self.clip) + self.clip
        in_one_chain = edges.target(chain) == edges.source(chain)
        return {RELATIVE_POSITION.name: torch.where(in_one_chain, offset_class, 2 * self.clip + 1)}
