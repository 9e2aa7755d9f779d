"""What a design may be: which residues are chosen, which types are left out or favoured, which residues are alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from protgraph.errors import OptionError

__all__ = ["Constraints"]

# What the reference takes from the logits of a type that is left out: its probability is 0 at every temperature in use.
_NEVER = 1e8


@dataclass(frozen=True, eq=False)
class Constraints:
    """Wishes for the N residues of a batch and T types.

    Parameters
    ----------
    designed : Tensor
        ``(N,)`` bool, which residues are chosen; the others keep their types.
    omit : Tensor, optional
        ``(N, T)`` or ``(T,)`` bool, types that are not to be chosen.
    bias : Tensor, optional
        ``(N, T)`` or ``(T,)``, added to the logits before they are divided by the temperature.
    pssm : Tensor, optional
        ``(N, T)`` probabilities of each type, from an alignment say.
    pssm_weight : Tensor, optional
        ``(N,)`` from 0 to 1: how much they count beside the model's own probabilities.
    groups : sequence of sequence of int
        Residues that are to have one type, of one protein each: their logits are averaged.
    """

    designed: Tensor
    omit: Tensor | None = None
    bias: Tensor | None = None
    pssm: Tensor | None = None
    pssm_weight: Tensor | None = None
    groups: Sequence[Sequence[int]] = field(default_factory=tuple)

    def __post_init__(self) -> None:
        if (self.pssm is None) != (self.pssm_weight is None):
            raise OptionError("pssm and pssm_weight go together: give both or none")
        if self.pssm_weight is not None and not bool(((self.pssm_weight >= 0) & (self.pssm_weight <= 1)).all()):
            raise OptionError("pssm_weight lies from 0 (the model alone) to 1 (the profile alone)")
        if self.omit is not None:
            omitted = self.omit.expand(len(self.designed), -1)
            none = (omitted.all(1) & self.designed).nonzero().flatten()
            if len(none):
                raise OptionError(f"every type is left out at residue {int(none[0])}; leave one to be chosen")
        mixed = [g for g in self.groups if len({bool(self.designed[node]) for node in g}) > 1]
        if mixed:
            raise OptionError(
                f"residues {list(mixed[0])} are tied, but some are designed and some are fixed; fix all of them or none"
            )

    def probabilities(self, logits: Tensor, nodes: Tensor, temperature: float) -> Tensor:
        """``(R, T)`` probabilities from which types are drawn, from the model's logits ``(R, T)`` at nodes ``(R,)``.

        ``softmax((logits + bias) / temperature - 1e8 omit)``, mixed with the profile; at 0 the likeliest type.
        """
        if self.bias is not None:
            logits = logits + _at(self.bias, nodes).to(logits.dtype)
        if temperature > 0:
            logits = logits / temperature
        if self.omit is not None:
            logits = logits - _NEVER * _at(self.omit, nodes).to(logits.dtype)
        if temperature > 0:
            p = logits.softmax(-1)
        else:
            p = torch.zeros_like(logits).scatter_(1, logits.argmax(1, keepdim=True), 1.0)
        if self.pssm is None or self.pssm_weight is None:
            return p
        weight = self.pssm_weight[nodes, None].to(p.dtype)
        mixed = (1 - weight) * p + weight * self.pssm[nodes].to(p.dtype)
        if self.omit is not None:
            mixed = mixed.masked_fill(_at(self.omit, nodes), 0.0)
        return mixed / mixed.sum(1, keepdim=True)


def _at(table: Tensor, nodes: Tensor) -> Tensor:
    return table.expand(len(nodes), -1) if table.dim() == 1 else table.index_select(0, nodes)
