"""Key–value cache of causal layers: tensors of the nodes so far, passed in and returned by each step.

Layers hold no state. All proteins of a batch advance by the same number of nodes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from protgraph.errors import FieldError
from protgraph.nn.positional_encoding import position_index
from protgraph.ops import Proteins

__all__ = ["KVCache", "next_position_index"]


@dataclass(frozen=True, eq=False)
class KVCache:
    """Tensors of the T nodes so far of each of B proteins.

    Parameters
    ----------
    tensors : mapping of str to Tensor
        ``(B, T, …)`` each, e.g. keys and values; empty before the first node.

    Examples
    --------
    >>> proteins = Proteins(torch.tensor([0, 1]), (1, 1))
    >>> cache = KVCache().append(proteins, k=torch.tensor([1.0, 2.0]))
    >>> cache.append(proteins, k=torch.tensor([3.0, 4.0]))["k"].tolist()
    [[1.0, 3.0], [2.0, 4.0]]
    """

    tensors: Mapping[str, Tensor] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Tensor:
        return self.tensors[name]

    def __contains__(self, name: object) -> bool:
        return name in self.tensors

    @property
    def length(self) -> int:
        """T, the number of nodes so far of each protein."""
        return max((x.size(1) for x in self.tensors.values()), default=0)

    def proteins(self) -> Proteins:
        """Return the index of the cached nodes by protein."""
        x = next(iter(self.tensors.values()))
        batch = torch.arange(x.size(0), device=x.device).repeat_interleave(self.length)
        return Proteins(batch, (self.length,) * x.size(0))

    def append(self, proteins: Proteins, **new: Tensor) -> KVCache:
        """Return a cache with new nodes after the present ones; this one is unchanged.

        Parameters
        ----------
        proteins : Proteins
            The l new nodes of each protein.
        **new : Tensor
            ``(B l, …)`` each, protein after protein.

        Raises
        ------
        FieldError
            If the proteins have different numbers of new nodes.
        """
        if len(set(proteins.sizes)) > 1:
            raise FieldError(
                f"cannot append nodes to a cache: the proteins have {proteins.sizes} new nodes. "
                "All proteins of a batch must have equally many."
            )
        joined = dict(self.tensors)
        for name, x in new.items():
            x = x.unflatten(0, (len(proteins), -1))  # (B, l, …)
            joined[name] = torch.cat([joined[name], x], 1) if name in joined else x
        return KVCache(joined)


def next_position_index(f: Mapping[str, Any], cache: KVCache) -> tuple[Tensor, KVCache]:
    """Compute the places of new nodes along the sequence, given those so far.

    Parameters
    ----------
    f : mapping of str to Tensor
        ``seq_pos`` ``(B l,)`` int64, ``proteins`` and, if chains are distinguished, ``chain`` ``(B l,)`` int64, whose
        numbers do not decrease.
    cache : KVCache
        Holds ``seq_pos`` and ``chain`` of the earlier nodes.

    Returns
    -------
    Tensor, KVCache
        ``(B l,)`` int64 as :func:`~protgraph.nn.positional_encoding.position_index` gives for all nodes so far, and the
        cache with the new ``seq_pos`` and ``chain``.
    """
    if "chain" not in f:
        return f["seq_pos"], cache
    cache = cache.append(f["proteins"], seq_pos=f["seq_pos"], chain=f["chain"])
    place = position_index(cache["seq_pos"].flatten(), cache.proteins(), cache["chain"].flatten())
    new = f["seq_pos"].numel() // len(f["proteins"])
    return place.view_as(cache["chain"])[:, -new:].flatten(), cache
