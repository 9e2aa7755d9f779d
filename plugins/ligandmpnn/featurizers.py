"""Features of context atoms without parameters: distances, directions, groups and periods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import torch
from annotated_types import Ge
from protgraph_plugins.ligandmpnn.fields import (
    CONTEXT_DIRECTION,
    CONTEXT_GROUP,
    CONTEXT_PAIR_RBF,
    CONTEXT_PERIOD,
    CONTEXT_RBF,
    num_pairs,
)
from protgraph_plugins.proteinmpnn import SOFTEN, gaussians
from torch import Tensor

from protgraph import TensorFeaturizer
from protgraph.data import Conformity
from protgraph.errors import OptionError
from protgraph.featurize import axes

__all__ = ["ContextDirection", "ContextPairRbf", "ContextPeriodic", "ContextRbf", "group_and_period"]
ENTRY_POINTS = {
    "protgraph.featurizers": {
        "context_direction": "ContextDirection",
        "context_pair_rbf": "ContextPairRbf",
        "context_periodic": "ContextPeriodic",
        "context_rbf": "ContextRbf",
    },
}

PAPER_K = 25
_ATOMS = 5  # N, CA, C, O, CB
_FLAT = 1e-8  # added to the squared distance from the frame axis (Å²) and to the distance from CA (Å)
#: Elements of each period.
_PERIODS = (2, 8, 8, 18, 18, 32, 32)
_NUMBER_OF_ELEMENTS = sum(_PERIODS)


class _OfContext(TensorFeaturizer):
    """Radial bases of k context atoms with ``bins`` centers from ``low`` to ``high``."""

    def __init__(self, *, k: int, bins: int, low: float, high: float) -> None:
        super().__init__()
        name = self.writes[0]
        if not high > low:
            raise OptionError(f"invalid centers of {name}: {low!r} to {high!r} Å. high must be above low.")
        self.k, self.bins, self.low, self.high = k, bins, low, high

    def _declare(self, rows: int, width: int) -> None:
        name = self.writes[0]
        self.out[name] = self.out[name].as_(name, irreps=f"{rows * width}x0e", shape=(rows, width))


class ContextRbf(_OfContext):
    """Gaussian radial bases of the distances from N, CA, C, O and CB of a residue to its context atoms.

    ``exp(-((sqrt(|x_a - y|² + 1e-6) - μ_k) / σ)²)``, μ_k evenly spaced, both ends included.

    Parameters
    ----------
    k : int
        Context atoms of each residue, as in ``context_atoms``.
    bins : int
        Number of centers.
    low, high : float
        First and last center, Å; ``σ = (high - low) / bins``.

    Reads
    -----
    backbone : (N, 4, 3), point, Å
    cb : (N, 3), point, Å
    context_pos : (N, k, 3), point, Å
    context_mask : (N, k)

    Writes
    ------
    context_rbf : (N, k, 5·bins), 0e, dimensionless
        Index order: atom of the residue, bin; 0 for missing context atoms.

    References
    ----------
    Dauparas et al. 2025, doi:10.1038/s41592-025-02626-1, Methods.
    """

    reads: ClassVar[tuple[str, ...]] = ("backbone", "cb", "context_pos", "context_mask")
    writes: ClassVar[tuple[str, ...]] = (CONTEXT_RBF.name,)

    def __init__(
        self,
        *,
        k: Annotated[int, Ge(1)] = PAPER_K,
        bins: Annotated[int, Ge(2)] = 16,
        low: float = 2.0,
        high: float = 22.0,
    ) -> None:
        super().__init__(k=k, bins=bins, low=low, high=high)
        self._declare(k, _ATOMS * bins)

    def __call__(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        mask = f["context_mask"]
        backbone = f["backbone"].masked_fill(~mask.any(1)[:, None, None], 0.0)  # no NaN for residues without context
        atoms = torch.cat([backbone, f["cb"][:, None]], 1)  # (N, 5, 3)
        distance = (f["context_pos"][:, :, None] - atoms[:, None]).square().sum(-1).add(SOFTEN).sqrt()  # (N, k, 5)
        basis = gaussians(distance, self.bins, self.low, self.high).flatten(2)  # (N, k, 5 bins)
        return {CONTEXT_RBF.name: basis * mask[..., None]}


class ContextPairRbf(_OfContext):
    """Gaussian radial bases of the distances between the context atoms of each residue.

    Parameters
    ----------
    k : int
        Context atoms of each residue, as in ``context_atoms``.
    bins : int
        Number of centers.
    low, high : float
        First and last center, Å; ``σ = (high - low) / bins``.

    Reads
    -----
    context_pos : (N, k, 3), point, Å
    context_mask : (N, k)

    Writes
    ------
    context_pair_rbf : (N, k (k + 1) / 2, bins), 0e, dimensionless
        Pairs (a, b) with a ≤ b, row-major, including a = b; 0 if one is missing.

    References
    ----------
    Dauparas et al. 2025, doi:10.1038/s41592-025-02626-1, Methods.
    """

    reads: ClassVar[tuple[str, ...]] = ("context_pos", "context_mask")
    writes: ClassVar[tuple[str, ...]] = (CONTEXT_PAIR_RBF.name,)

    def __init__(
        self,
        *,
        k: Annotated[int, Ge(1)] = PAPER_K,
        bins: Annotated[int, Ge(2)] = 16,
        low: float = 2.0,
        high: float = 22.0,
    ) -> None:
        super().__init__(k=k, bins=bins, low=low, high=high)
        self._declare(num_pairs(k), bins)

    def __call__(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        pos, mask = f["context_pos"], f["context_mask"]
        a, b = torch.triu_indices(self.k, self.k, device=pos.device)
        distance = (pos[:, a] - pos[:, b]).square().sum(-1).add(SOFTEN).sqrt()  # (N, P)
        basis = gaussians(distance, self.bins, self.low, self.high)  # (N, P, bins)
        return {CONTEXT_PAIR_RBF.name: basis * (mask[:, a] & mask[:, b])[..., None]}


class ContextDirection(TensorFeaturizer):
    """Direction of each context atom in the frame of the residue: e₁ along N − CA, e₂ towards C, e₃ = e₁ × e₂.

    With (x, y, z) the vector from CA to the atom in this frame and ``ρ² = x² + y²``: x/ρ, y/ρ, ρ/r and z/r.

    Parameters
    ----------
    k : int
        Context atoms of each residue, as in ``context_atoms``.

    Reads
    -----
    backbone : (N, 4, 3), point, Å
    backbone_mask : (N, 4)
    context_pos : (N, k, 3), point, Å
    context_mask : (N, k)

    Writes
    ------
    context_direction : (N, k, 4), 3x0e+1x0o each, dimensionless
        0 for missing atoms, for atoms at CA, and if N, CA and C do not define a frame.

    Notes
    -----
    As in the published program, ρ² is ``ρ² + 1e-8 Å²`` and r is ``r + 1e-8 Å``.

    References
    ----------
    Dauparas et al. 2025, doi:10.1038/s41592-025-02626-1, Methods (angles of context atoms).
    """

    reads: ClassVar[tuple[str, ...]] = ("backbone", "backbone_mask", "context_pos", "context_mask")
    writes: ClassVar[tuple[str, ...]] = (CONTEXT_DIRECTION.name,)
    # Coordinates of 300 Å are rounded to 1.5e-5 Å, which is large relative to ρ of an atom near the axis.
    conformity: ClassVar[Conformity] = Conformity(tolerance=3e-4)

    def __init__(self, *, k: Annotated[int, Ge(1)] = PAPER_K) -> None:
        super().__init__()
        name = CONTEXT_DIRECTION.name
        self.out[name] = CONTEXT_DIRECTION.as_(name, irreps="+".join(k * ["3x0e+1x0o"]), shape=(k, 4))

    def __call__(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        has_frame = f["backbone_mask"][:, :3].all(1)[:, None, None]
        n, ca, c = f["backbone"][:, :3].masked_fill(~has_frame, 0.0).unbind(1)
        local = torch.einsum("nax,nkx->nka", axes(n - ca, c - ca), f["context_pos"] - ca[:, None])  # (N, k, 3)
        squared = local.square().sum(-1, keepdim=True)
        undefined = (squared == 0) | ~f["context_mask"][..., None]
        r = squared.masked_fill(undefined, 1.0).sqrt() + _FLAT
        rho = (local[..., :2].square().sum(-1, keepdim=True) + _FLAT).sqrt()
        direction = torch.cat([local[..., :2] / rho, rho / r, local[..., 2:] / r], -1)  # (N, k, 4)
        return {CONTEXT_DIRECTION.name: direction.masked_fill(undefined, 0.0)}


class ContextPeriodic(TensorFeaturizer):
    """Group and period of the element of each context atom.

    Parameters
    ----------
    k : int
        Context atoms of each residue, as in ``context_atoms``.

    Reads
    -----
    context_element : (N, k) int64

    Writes
    ------
    context_group : (N, k) int64, 19 classes
        1 to 18, lanthanides and actinides 3; 0 for missing atoms.
    context_period : (N, k) int64, 8 classes
        1 to 7; 0 for missing atoms.

    References
    ----------
    Dauparas et al. 2025, doi:10.1038/s41592-025-02626-1, Methods (element, group and period of context atoms).
    """

    reads: ClassVar[tuple[str, ...]] = ("context_element",)
    writes: ClassVar[tuple[str, ...]] = (CONTEXT_GROUP.name, CONTEXT_PERIOD.name)

    def __init__(self, *, k: Annotated[int, Ge(1)] = PAPER_K) -> None:
        super().__init__()
        for spec in (CONTEXT_GROUP, CONTEXT_PERIOD):
            self.out[spec.name] = spec.as_(spec.name, irreps=f"{k}x0e", shape=(k,))
        self._table = torch.tensor([group_and_period(z) for z in range(_NUMBER_OF_ELEMENTS + 1)])

    def __call__(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        element = f["context_element"]
        if self._table.device != element.device:
            self._table = self._table.to(element.device)
        group, period = self._table[element].unbind(-1)
        return {CONTEXT_GROUP.name: group, CONTEXT_PERIOD.name: period}


def group_and_period(number: int) -> tuple[int, int]:
    """Return group (lanthanides and actinides: 3) and period of an atomic number; (0, 0) for 0.

    Examples
    --------
    >>> group_and_period(26), group_and_period(2), group_and_period(92)
    ((8, 4), (18, 1), (3, 7))
    """
    first = 1
    for period, size in enumerate(_PERIODS, 1):
        place = number - first  # position in the period, from 0
        if 0 <= place < size:
            s_block = place < min(2, size - 1)  # helium is a noble gas
            return place + 1 if s_block else max(place + 19 - size, 3), period
        first += size
    return 0, 0
