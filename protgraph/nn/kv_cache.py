"""What causal layers keep of the nodes that they have seen, so that each is worked out once: state in, state out.

Nothing is kept in a layer. A state is what :meth:`protgraph.nn.module.GraphLayer.step` was given and gives back: tensors
by name, ``(B, T, …)`` for the T nodes so far of each of B proteins. All proteins of a batch go on together.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from protgraph.errors import FieldError
from protgraph.nn.positional_encoding import sequence_place
from protgraph.ops.edges import Proteins

__all__ = ["KVCache", "next_place", "append_to_cache", "cached_length"]

KVCache = Mapping[str, Tensor]


def append_to_cache(state: KVCache | None, proteins: Proteins, new: KVCache) -> dict[str, Tensor]:
    """The state with new nodes after those that it holds.

    Parameters
    ----------
    state : mapping of str to Tensor, optional
        ``(B, T, …)`` each; None before the first node. It stays as it is.
    proteins : Proteins
        The new nodes, equally many in each protein.
    new : mapping of str to Tensor
        ``(B l, …)`` each, of the l new nodes of each protein.

    Raises
    ------
    FieldError
        Proteins have different numbers of new nodes.

    Examples
    --------
    >>> proteins = Proteins(torch.tensor([0, 1]), (1, 1))
    >>> state = remember(None, proteins, {"k": torch.tensor([1.0, 2.0])})
    >>> remember(state, proteins, {"k": torch.tensor([3.0, 4.0])})["k"].tolist()
    [[1.0, 3.0], [2.0, 4.0]]
    """
    if len(set(proteins.sizes)) > 1:
        raise FieldError(f"proteins of a batch go on together; here they have {proteins.sizes} new nodes")
    old, joined = dict(state or {}), {}
    for name, x in new.items():
        x = x.unflatten(0, (len(proteins), -1))  # (B, l, …)
        joined[name] = torch.cat([old[name], x], 1) if name in old else x
    return old | joined


def cached_length(x: Tensor) -> Proteins:
    """The proteins whose nodes a tensor ``(B, T, …)`` of a state holds."""
    b, t = x.shape[:2]
    return Proteins(torch.arange(b, device=x.device).repeat_interleave(t), (t,) * b)


def next_place(f: Mapping[str, Any], state: KVCache | None) -> tuple[Tensor, KVCache | None]:
    """The places ``(B l,)`` of new nodes, as :func:`sequence_place` gives them among all so far, and the state for it.

    ``f`` has ``seq_pos``, ``proteins`` and, where chains are told apart, ``chain``, whose numbers do not fall.
    """
    if "chain" not in f:
        return f["seq_pos"], state
    state = append_to_cache(state, f["proteins"], {name: f[name] for name in ("seq_pos", "chain")})
    place = sequence_place(state["seq_pos"].flatten(), cached_length(state["chain"]), state["chain"].flatten())
    new = f["seq_pos"].numel() // len(f["proteins"])
    return place.view_as(state["chain"])[:, -new:].flatten(), state
