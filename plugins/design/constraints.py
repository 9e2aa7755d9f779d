"""Constraints of a design: designed residues, omitted and biased types, profiles and tied residues."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import InitVar, dataclass, field, replace

import torch
from torch import Tensor

from protgraph.errors import OptionError
from protgraph.structure import Residues

__all__ = ["Constraints"]

# Factor of the probability of a type whose log-odds are too low, as in ProteinMPNN.
_UNLIKELY = 1e-3

#: Table → its value for a residue without this constraint.
_NEUTRAL = {"designed": 0, "omit": 0, "bias": 0, "pssm": 0, "pssm_weight": 0, "unlikely": 0, "tie_weight": 1}


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
    residues : Residues, optional
        The residues, for their names in errors. They are not kept.

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
    residues: InitVar[Residues | None] = None

    def __post_init__(self, residues: Residues | None) -> None:
        if (self.pssm is None) != (self.pssm_weight is None):
            raise OptionError("pssm and pssm_weight must be given together.")
        if self.pssm_weight is not None and not bool(((self.pssm_weight >= 0) & (self.pssm_weight <= 1)).all()):
            raise OptionError("pssm_weight outside 0 (model only) to 1 (profile only).")
        if self.bias is not None and not bool(self.bias.isfinite().all()):
            raise OptionError("bias must be finite. Use omit for types that are never chosen.")
        self._check_ties(residues)
        without = self._residues_without_types()
        if without:
            where = f"residue {without[0]}" if residues is None else f"{residues.ids[without[0]]} of {residues.name}"
            raise OptionError(f"all types omitted at {where}. Allow at least one in omit.")

    def _check_ties(self, residues: Residues | None) -> None:
        """Raise if a group has designed and fixed residues."""
        designed = self.designed.tolist() if self.groups else []
        for group in self.groups:
            free = [node for node in group if designed[node]]
            fixed = [node for node in group if not designed[node]]
            if not free or not fixed:
                continue
            if residues is None:
                where = f"{list(group)}"
                first, second = f"residue {free[0]}", f"residue {fixed[0]}"
            else:
                where = f"of {residues.name}"
                first, second = residues.ids[free[0]], residues.ids[fixed[0]]
            raise OptionError(
                f"tied residues {where}: {first} is designed and {second} is fixed. Fix both or design both."
            )

    def _residues_without_types(self) -> list[int]:
        """Return the designed residues for which all types, or all of a profile with weight 1, are omitted."""
        if self.omit is None:
            return []
        omitted = _any_in_group(self.omit, self.groups).expand(len(self.designed), -1)  # (N, T)
        without = omitted.all(1)
        if self.pssm is not None and self.pssm_weight is not None:
            is_empty = self.pssm.masked_fill(omitted, 0.0).sum(1) == 0
            without = without | ((self.pssm_weight == 1) & is_empty)
        return (without & self.designed).nonzero().flatten().tolist()

    @classmethod
    def concatenate(cls, proteins: Sequence[Constraints], device: torch.device) -> Constraints:
        """Return the constraints of a batch from those of its proteins."""
        sizes = [len(c.designed) for c in proteins]
        merged = {}
        for name in _NEUTRAL:
            tables = [getattr(c, name) for c in proteins]
            if any(table is not None for table in tables):
                merged[name] = _concatenated(name, tables, sizes).to(device)

        # Groups, with the numbers of residues in the batch.
        groups = []
        start = 0
        for c, size in zip(proteins, sizes, strict=True):
            for group in c.groups:
                groups.append([start + node for node in group])
            start += size
        return cls(groups=groups, **merged)

    def insert(self, present: Tensor) -> Constraints:
        """Return constraints of M rows: of these N residues where ``present (M,)``; the others are not designed."""
        if bool(present.all()):
            return self
        tables = {}
        for name, neutral in _NEUTRAL.items():
            table = getattr(self, name)
            is_shared = name in ("omit", "bias") and table is not None and table.dim() == 1  # (T,) for all residues
            if table is not None and not is_shared:
                tables[name] = table.new_full((len(present), *table.shape[1:]), neutral)
                tables[name][present] = table
        row = present.nonzero().flatten()  # (N,)
        return replace(self, groups=[row[list(group)].tolist() for group in self.groups], **tables)

    def shared(self) -> Constraints:
        """Return constraints with equal rows within each group: the union of omitted types, the mean of the rest."""
        if not self.groups:
            return self
        changed = {"omit": _any_in_group(self.omit, self.groups), "unlikely": _any_in_group(self.unlikely, self.groups)}
        if self.bias is not None and self.bias.dim() == 2:
            changed["bias"] = _mean_of_group(self.bias, self.groups)
        if self.pssm is not None and self.pssm_weight is not None:
            weight = self.pssm_weight[:, None]
            mean = _mean_of_group(weight, self.groups)
            changed["pssm"] = _mean_of_group(weight * self.pssm, self.groups) / mean.clamp(min=1e-12)
            changed["pssm_weight"] = mean[:, 0]
        return replace(self, **changed)

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
        if temperature > 0:
            below_maximum = logits - logits.amax(1, keepdim=True)  # no overflow at low temperatures
            p = (below_maximum / temperature).softmax(-1)
        else:
            most_probable = logits.argmax(1, keepdim=True)
            p = torch.zeros_like(logits).scatter_(1, most_probable, 1.0)
        if self.pssm is not None and self.pssm_weight is not None:
            weight = self.pssm_weight[nodes, None].to(p.dtype)
            p = (1 - weight) * p + weight * self.pssm[nodes].to(p.dtype)
        if self.unlikely is not None:
            p = p * (1 + _UNLIKELY - self.unlikely[nodes].to(p.dtype))
        if omitted is not None:
            p = p.masked_fill(omitted, 0.0)
        return p / p.sum(1, keepdim=True)


def _concatenated(name: str, tables: Sequence[Tensor | None], sizes: Sequence[int]) -> Tensor:
    """Return the rows of a table of all proteins; those of a protein without the constraint are neutral."""
    example = next(table for table in tables if table is not None)
    width = () if name in ("designed", "pssm_weight", "tie_weight") else example.shape[-1:]
    rows = []
    for table, n in zip(tables, sizes, strict=True):
        rows.append(example.new_full((n, *width), _NEUTRAL[name]) if table is None else table.expand(n, *width))
    return torch.cat(rows)


def _at(table: Tensor, nodes: Tensor) -> Tensor:
    return table.expand(len(nodes), -1) if table.dim() == 1 else table.index_select(0, nodes)


def _any_in_group(table: Tensor | None, groups: Sequence[Sequence[int]]) -> Tensor | None:
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
