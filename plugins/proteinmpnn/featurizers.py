"""What ProteinMPNN sees of a backbone: neighbors, the virtual CB, distances of atoms, places along the chain."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import torch
from protgraph_plugins.proteinmpnn.fields import ATOM_PAIR_RBF, CB, RELATIVE_POSITION
from torch import Tensor

from protgraph import Conformity, EdgeFeaturizer, EdgeList, Residues, TensorFeaturizer
from protgraph.errors import OptionError
from protgraph.featurize.gaussian import SOFTEN, gaussians
from protgraph.structure.neighbors import search as neighbors

__all__ = ["AtomPairRbf", "BackboneKnn", "RelativePosition", "VirtualCb"]
ENTRY_POINTS = {
    "protgraph.featurizers": {
        "atom_pair_rbf": "AtomPairRbf",
        "backbone_knn": "BackboneKnn",
        "relative_position": "RelativePosition",
        "virtual_cb": "VirtualCb",
    },
}

#: Edges of which a thread works out radial bases at once: 512 × 400 float32 are 0.8 MB and stay in a core's cache.
EDGES = 512
#: Coefficients of b × c, b and c: ideal bond lengths and angles at CA (Dauparas et al. 2022, supplement).
CB_CROSS, CB_N, CB_C = -0.58273431, 0.56802827, -0.54067466


class BackboneKnn(EdgeFeaturizer):
    """Edges from the k residues with the nearest CA to each residue, itself the first of them.

    Parameters
    ----------
    k : int
        Neighbors of each residue, itself included; all where a protein has fewer.
    atoms : {"backbone", "ca"}
        Which atoms a residue must have: all four of N, CA, C and O, or CA. One without them has no edges, and is in
        nobody's: where it stands is not known well enough, and its place in the sequence stays.

    Notes
    -----
    Where a protein has fewer than k whole residues, the reference takes others too, as the farthest, what they miss at
    the origin: its numbers then depend on where the protein lies. Elsewhere the two agree.

    References
    ----------
    Dauparas et al. 2022, doi:10.1126/science.add2187, supplement (48 nearest CA).
    """

    loops: ClassVar[bool] = True
    conformity: ClassVar[Conformity] = Conformity(options={"k": 6})  # fewer than the residues of its test proteins

    def __init__(self, *, k: int = 48, atoms: str = "backbone") -> None:
        super().__init__()
        if not (isinstance(k, int) and k >= 1):
            raise OptionError(f"backbone_knn takes a whole number k of at least 1, got {k!r}")
        if atoms not in ("backbone", "ca"):
            raise OptionError(f"backbone_knn: atoms={atoms!r} is none of 'backbone', 'ca'")
        self.k, self.atoms = k, atoms

    def __call__(self, residues: Residues) -> EdgeList:
        mask = residues.backbone_mask
        there = np.flatnonzero(mask.all(1) if self.atoms == "backbone" else mask[:, 1])
        most = max(min(self.k, len(there)) - 1, 0)
        others = neighbors.knn(residues.pos[there], most).reshape(2, len(there), most)  # (2, M, K - 1)
        own = np.broadcast_to(np.arange(len(there))[:, None], (2, len(there), 1))
        source, target = there[np.concatenate([own, others], 2).reshape(2, -1)]
        degree = len(source) // len(residues) if len(there) == len(residues) else None
        return EdgeList(source, target, degree)


class VirtualCb(TensorFeaturizer):
    """Where CB would be, ``CA - 0.583 b × c + 0.568 b - 0.541 c`` with ``b = CA - N`` and ``c = C - CA``.

    Reads
    -----
    backbone : (N, 4, 3), point, Å
    backbone_mask : (N, 4)
    pos : (N, 3), point, Å

    Writes
    ------
    cb : (N, 3), point, Å
        CA where N or C is missing. A mirror image does not mirror it: residues are chiral.

    References
    ----------
    Dauparas et al. 2022, doi:10.1126/science.add2187, supplement.
    """

    reads: ClassVar[tuple[str, ...]] = ("backbone", "backbone_mask", "pos")
    writes: ClassVar[tuple[str, ...]] = (CB.name,)

    def __call__(self, f: Mapping[str, Tensor]) -> dict[str, Tensor]:
        there = f["backbone_mask"][:, :3].all(1)[:, None, None]
        n, ca, c = f["backbone"][:, :3].masked_fill(~there, 0.0).unbind(1)  # no NaN: its gradient would spread
        b, c = ca - n, c - ca
        step = CB_CROSS * torch.linalg.cross(b, c) + CB_N * b + CB_C * c
        return {CB.name: f["pos"] + step}


class AtomPairRbf(TensorFeaturizer):
    """Gaussian radial bases of the distances between all atoms N, CA, C, O, CB of i and all of j.

    ``exp(-((sqrt(|x_a(i) - x_b(j)|² + 1e-6) - μ_k) / σ)²)``, μ_k evenly spaced, both ends included.

    Parameters
    ----------
    bins : int
        Number of centers.
    low, high : float
        First and last center, Å; ``σ = (high - low) / bins``.

    Reads
    -----
    backbone : (N, 4, 3), point, Å
    backbone_mask : (N, 4)
    cb : (N, 3), point, Å
    edges : the edges j → i

    Writes
    ------
    atom_pair_rbf : (E, 25·bins), 0e, dimensionless
        Atom of i slowest (N, CA, C, O, CB), then atom of j, then the bins; 0 where either residue misses an atom.

    References
    ----------
    Dauparas et al. 2022, doi:10.1126/science.add2187, supplement; σ as in their program, without the 1/2 of a normal
    density.
    """

    reads: ClassVar[tuple[str, ...]] = ("backbone", "backbone_mask", "cb", "edges")
    writes: ClassVar[tuple[str, ...]] = (ATOM_PAIR_RBF.name,)

    def __init__(self, *, bins: int = 16, low: float = 2.0, high: float = 22.0) -> None:
        super().__init__()
        if not (isinstance(bins, int) and bins >= 2):
            raise OptionError(f"atom_pair_rbf takes a whole number of bins of at least 2, got {bins!r}")
        if not high > low:
            raise OptionError(f"atom_pair_rbf takes centers from low to high, got {low!r} to {high!r} Å")
        self.bins, self.low, self.high = bins, low, high
        self.declare(atom_pair_rbf=f"{25 * bins}x0e")

    def __call__(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        edges, whole = f["edges"], f["backbone_mask"].all(1)
        backbone = f["backbone"].masked_fill(~whole[:, None, None], 0.0)
        atoms = torch.cat([backbone, f["cb"][:, None]], 1).flatten(1)  # (N, 15)
        basis = self._basis(atoms, edges.index)  # (E, 25 bins)
        if whole.device.type != "cpu" or not bool(whole.all()):  # asking a GPU would wait for it
            basis = basis * (edges.target(whole) & edges.source(whole))[:, None]
        return {ATOM_PAIR_RBF.name: basis}

    def _basis(self, atoms: Tensor, index: Tensor) -> Tensor:
        """``(N, 15)`` and ``(2, E)`` to ``(E, 25 bins)``; on the CPU without gradients some edges at a time."""
        if atoms.requires_grad or atoms.device.type != "cpu" or not index.numel():
            return self._of_edges(atoms, index)
        basis, each = atoms.new_empty(index.size(1), 25 * self.bins), EDGES * torch.get_num_threads()
        for some, into in zip(index.split(each, 1), basis.split(each), strict=True):
            into.copy_(self._of_edges(atoms, some))
        return basis

    def _of_edges(self, atoms: Tensor, index: Tensor) -> Tensor:
        other, own = (atoms.index_select(0, end).t().contiguous().view(5, 3, -1) for end in index)
        distance = (own[:, None] - other).square().sum(2).add(SOFTEN).sqrt()  # (5, 5, E): edges last is fastest
        return gaussians(distance.flatten(0, 1).t().contiguous(), self.bins, self.low, self.high).flatten(1)


class RelativePosition(TensorFeaturizer):
    """Offset along the chain as a category: ``seq_pos[i] - seq_pos[j]`` clipped to ±clip, plus clip; last: other chain.

    Parameters
    ----------
    clip : int
        Largest offset told apart.

    Reads
    -----
    seq_pos, chain : (N,) int64
    edges : the edges j → i

    Writes
    ------
    relative_position : (E,) int64, 2·clip + 2 classes

    Notes
    -----
    ``edge_offset`` has the same, one-hot and counted the other way.

    References
    ----------
    Dauparas et al. 2022, doi:10.1126/science.add2187, supplement (relative positional encoding, ±32).
    """

    reads: ClassVar[tuple[str, ...]] = ("seq_pos", "chain", "edges")
    writes: ClassVar[tuple[str, ...]] = (RELATIVE_POSITION.name,)

    def __init__(self, *, clip: int = 32) -> None:
        super().__init__()
        if not (isinstance(clip, int) and clip >= 1):
            raise OptionError(f"relative_position takes a whole number clip of at least 1, got {clip!r}")
        self.clip = clip
        self.out[RELATIVE_POSITION.name] = RELATIVE_POSITION.as_(RELATIVE_POSITION.name, classes=2 * clip + 2)

    def __call__(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        edges, seq_pos, chain = f["edges"], f["seq_pos"], f["chain"]
        offset = (edges.target(seq_pos) - edges.source(seq_pos)).clamp(-self.clip, self.clip) + self.clip
        same = edges.target(chain) == edges.source(chain)
        return {RELATIVE_POSITION.name: torch.where(same, offset, 2 * self.clip + 1)}
