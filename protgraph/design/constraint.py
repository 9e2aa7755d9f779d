"""Constraints of a design: designed residues, omitted and biased types, profiles and tied residues."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from protgraph.errors import OptionError

__all__ = ["Constraints", "any_in_group", "residues_without_types"]

# Factor of the probability of a type whose log-odds are too low, as in ProteinMPNN.
_UNLIKELY = 1e-3


@dataclass(frozen=True, eq=False)
class Constraints:
    """Constraints for the N residues of a batch and T types.

    Parameters
    ----------
    designed : Tensor
        ``(N,)`` bool, designed residues; the others keep their types.
    omit : Tensor, optional
        ``(N, T)`` or ``(T,)`` bool, types that are never chosen.
    bias : Tensor, optional
        ``(N, T)`` or ``(T,)``, added to the logits before they are divided by the temperature.
    pssm : Tensor, optional
        ``(N, T)`` probabilities of each type, e.g. from an alignment.
    pssm_weight : Tensor, optional
        ``(N,)`` from 0 to 1, weight w of the profile; the weight of the model is 1 − w.
    unlikely : Tensor, optional
        ``(N, T)`` bool, types whose probability is divided by 1001 relative to the others.
    groups : sequence of sequence of int
        Residues of one protein that get the same type: their logits are averaged.
    tie_weight : Tensor, optional
        ``(N,)`` factors of the logits of tied residues before averaging; 1 by default.

    Raises
    ------
    OptionError
        The constraints contradict each other or leave a designed residue without a type.
    """

    designed: Tensor
    omit: Tensor | None = None
    bias: Tensor | None = None
    pssm: Tensor | None = None
    pssm_weight: Tensor | None = None
    unlikely: Tensor | None = None
    groups: Sequence[Sequence[int]] = field(default_factory=tuple)
    tie_weight: Tensor | None = None

    def __post_init__(self) -> None:
        if (self.pssm is None) != (self.pssm_weight is None):
            raise OptionError("pssm and pssm_weight must be given together.")
        if self.pssm_weight is not None and not bool(((self.pssm_weight >= 0) & (self.pssm_weight <= 1)).all()):
            raise OptionError("pssm_weight outside 0 (model only) to 1 (profile only).")
        if self.bias is not None and not bool(self.bias.isfinite().all()):
            raise OptionError("bias must be finite. Use omit for types that are never chosen.")
        for row in residues_without_types(self.designed, self.omit, self.pssm, self.pssm_weight)[:1]:
            raise OptionError(f"all types omitted at residue {row}. Allow at least one.")
        mixed = [g for g in self.groups if len({bool(self.designed[node]) for node in g}) > 1]
        if mixed:
            raise OptionError(
                f"tied residues {list(mixed[0])}: some are designed and some are fixed. Fix all of them or none."
            )

    def shared(self) -> Constraints:
        """Return constraints with equal rows within each group: the union of omitted types, the mean of the rest."""
        changed: dict[str, Tensor | None] = {
            name: any_in_group(getattr(self, name), self.groups) for name in ("omit", "unlikely")
        }
        if self.bias is not None and self.bias.dim() == 2:
            changed["bias"] = _mean_of_group(self.bias, self.groups)
        if self.pssm is not None and self.pssm_weight is not None:
            weight = self.pssm_weight[:, None]
            mean = _mean_of_group(weight, self.groups)
            changed["pssm"] = _mean_of_group(weight * self.pssm, self.groups) / mean.clamp(min=1e-12)
            changed["pssm_weight"] = mean[:, 0]
        return replace(self, **changed) if self.groups else self

    def probabilities(self, logits: Tensor, nodes: Tensor, temperature: float) -> Tensor:
        """Compute the sampling probabilities ``(R, T)`` from the model's logits ``(R, T)`` at nodes ``(R,)``.

        ``softmax((logits + bias) / temperature)`` without the omitted types, mixed with the profile, unlikely types
        scaled down. At temperature 0 the softmax is 1 for the most probable type.
        """
        if self.bias is not None:
            logits = logits + _at(self.bias, nodes).to(logits.dtype)
        omitted = None if self.omit is None else _at(self.omit, nodes)
        if omitted is not None:
            logits = logits.masked_fill(omitted, -torch.inf)
        if temperature > 0:  # subtract the maximum first: no overflow at low temperatures
            p = ((logits - logits.amax(1, keepdim=True)) / temperature).softmax(-1)
        else:
            p = torch.zeros_like(logits).scatter_(1, logits.argmax(1, keepdim=True), 1.0)
        if self.pssm is not None and self.pssm_weight is not None:
            weight = self.pssm_weight[nodes, None].to(p.dtype)
            p = (1 - weight) * p + weight * self.pssm[nodes].to(p.dtype)
        if self.unlikely is not None:
            p = p * (1 + _UNLIKELY - self.unlikely[nodes].to(p.dtype))
        if omitted is not None:
            p = p.masked_fill(omitted, 0.0)
        return p / p.sum(1, keepdim=True)


def _at(table: Tensor, nodes: Tensor) -> Tensor:
    return table.expand(len(nodes), -1) if table.dim() == 1 else table.index_select(0, nodes)


def residues_without_types(
    designed: Tensor, omit: Tensor | None, pssm: Tensor | None, weight: Tensor | None
) -> list[int]:
    """Return the designed residues for which all types, or all that a profile with weight 1 allows, are omitted.

    ``designed`` and ``weight`` are ``(N,)``, ``omit`` is ``(N, T)`` or ``(T,)``, and ``pssm`` is ``(N, T)``, as for
    :class:`Constraints`.
    """
    if omit is None:
        return []
    omitted = omit.expand(len(designed), -1)
    without = omitted.all(1)
    if pssm is not None and weight is not None:
        without = without | ((weight == 1) & (pssm.masked_fill(omitted, 0.0).sum(1) == 0))
    return (without & designed).nonzero().flatten().tolist()


def any_in_group(table: Tensor | None, groups: Sequence[Sequence[int]]) -> Tensor | None:
    """Return ``(N, T)`` bool, the union of the rows of each group; a ``(T,)`` table is returned unchanged."""
    if table is None or table.dim() == 1:
        return table
    table = table.clone()
    for group in groups:
        table[list(group)] = table[list(group)].any(0)
    return table


def _mean_of_group(table: Tensor, groups: Sequence[Sequence[int]]) -> Tensor:
    table = table.clone()
    for group in groups:
        table[list(group)] = table[list(group)].mean(0)
    return table
