"""Whether a model that is to tell the next residue sees residues that come later: it is tried, not believed."""

from __future__ import annotations

import copy

import torch
from torch import Tensor
from torch_geometric.data import Data

from protgraph.data.fields import field
from protgraph.data.store import Store
from protgraph.errors import CausalityError
from protgraph.model.build import GraphModel

__all__ = ["check_causal", "leak", "refuse_leak"]

_CUTS = 6  # places at which what comes later is changed
_LONGEST = 300  # residues of the protein that is tried, where there is one
_SAME = 1e-9  # of the largest logit, in float64: where a sum has other terms that count 0
#: Where residues are along the sequence; what a causal model may know of all.
_GIVEN = frozenset({"batch", "chain", "res_id", "seq_pos"})


def check_causal(model: GraphModel, store: Store, *, task: str) -> None:
    """:func:`refuse_leak` for a task, on one of its proteins: the longest of moderate length."""
    fitting = [(size if size <= _LONGEST else -size, number) for number, size in enumerate(store.sizes)]
    refuse_leak(model, store[max(fitting)[1]], why=f"task {task!r} asks")


def refuse_leak(model: GraphModel, graph: Data, *, why: str) -> None:
    """Raise where logits of a residue depend on that residue or on later ones.

    Parameters
    ----------
    model : GraphModel
        It stays as it is.
    graph : Data
        A protein to try it on, as it is prepared.
    why : str
        Who needs it to be causal, "task 'next_residue' asks".

    Raises
    ------
    CausalityError
        With the model, the reason, and a residue whose logits moved with a later one.
    """
    found = leak(model, graph)
    if found is not None:
        row, cut = found
        raise CausalityError(
            f"model {model.graph.name!r} is not causal, as {why}: what it says of residue {row} moves with residues "
            f"from {cut} on.\n"
            "It may read 'previous' (featurizer 'previous_residue') for 'aatype', and attend with causal=True."
        )


def leak(model: GraphModel, graph: Data) -> tuple[int, int] | None:
    """The first node i whose logits move when nodes from j on, ``j ≥ i``, are changed, and j; None in a causal model.

    Notes
    -----
    All node fields but the places along the sequence are changed. The model is a copy in float64 and evaluation mode,
    with what starts constant (zero weights, say, which would hide all) moved off it.
    """
    tried, n = _moved(model), graph.num_nodes
    with torch.no_grad():
        usual = tried(graph)["logits"]  # (N, C)
        limit = _SAME * usual.abs().max().clamp(min=1e-30)
        for cut in sorted({round(c * (n - 1) / max(_CUTS - 1, 1)) for c in range(_CUTS)}):
            moved = (tried(_changed(graph, cut))["logits"] - usual).abs().amax(1)
            rows = (~(moved[: cut + 1] <= limit)).nonzero()
            if rows.numel():
                return int(rows[0]), cut
    return None


def _moved(model: GraphModel) -> GraphModel:
    tried = copy.deepcopy(model).cpu().double().eval()
    generator = torch.Generator().manual_seed(0)
    for p in tried.parameters():
        if p.numel() and bool((p == p.flatten()[0]).all()):
            p.data.add_(0.1 * torch.randn(p.shape, generator=generator, dtype=p.dtype))
    return tried


def _changed(graph: Data, cut: int) -> Data:
    """The graph with other values of its nodes from ``cut`` on."""
    generator, other = torch.Generator().manual_seed(cut), copy.copy(graph)
    for name, value in graph.items():
        if isinstance(value, Tensor) and name != "y" and graph.is_node_attr(name) and name not in _GIVEN:
            other[name] = torch.cat([value[:cut], _redrawn(name, value[cut:], generator)])
    return other


def _redrawn(name: str, value: Tensor, generator: torch.Generator) -> Tensor:
    if value.dtype == torch.bool:
        return ~value
    if value.is_floating_point():
        return value + torch.randn(value.shape, generator=generator, dtype=value.dtype)
    classes = field(name).classes
    if classes is None:
        return value + 1
    return (value + torch.randint(1, classes, value.shape, generator=generator)) % classes
