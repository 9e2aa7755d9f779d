"""Whether a model that is to tell the next residue sees residues that come later: it is tried, not believed."""

from __future__ import annotations

import copy
from collections.abc import Collection

import torch
from torch import Tensor
from torch_geometric.data import Data

from protgraph.data.graph.fields import field
from protgraph.data.store.graph_store import GraphStore
from protgraph.errors import LeakError
from protgraph.model.build import ProteinModel
from protgraph.task.task import Task

__all__ = ["check_causal", "find_leak", "raise_on_leak"]

_CUTS = 6  # places at which what comes later is changed
_LONGEST = 300  # residues of the protein that is tried, where there is one
_SAME = 1e-9  # of the largest logit, in float64: where a sum has other terms that count 0
_TYPES = frozenset({"aatype", "masked"})
#: Where residues are along the sequence; what a causal model may know of all.
_GIVEN = frozenset({"batch", "chain", "decoding_rank", "res_id", "seq_pos"})


def check_causal(model: ProteinModel, store: GraphStore, task: Task) -> None:
    """:func:`raise_on_leak` for a task, on one of its proteins: the longest of moderate length.

    Where the task hides residue types from featurizers, those that graphs show are all that is changed: other fields
    hold none of them, and may be known of all residues (a structure, say).
    """
    fitting = [(size if size <= _LONGEST else -size, number) for number, size in enumerate(store.sizes)]
    fields = _TYPES if "residue_type" in task.inputs.hidden else None
    graph = copy.copy(store[max(fitting)[1]])
    graph.decoding_rank = torch.arange(graph.num_nodes)  # a decoder's order is then the order of nodes
    raise_on_leak(model, graph, why=f"task {task.name!r} asks", fields=fields)


def raise_on_leak(model: ProteinModel, graph: Data, *, why: str, fields: Collection[str] | None = None) -> None:
    """Raise where logits of a residue depend on that residue or on later ones.

    Parameters
    ----------
    model : ProteinModel
        It stays as it is.
    graph : Data
        A protein to try it on, as it is prepared.
    why : str
        Who needs it to be causal, "task 'next_residue' asks".
    fields : collection of str, optional
        What is changed; see :func:`find_leak`.

    Raises
    ------
    LeakError
        With the model, the reason, and a residue whose logits moved with a later one.
    """
    found = find_leak(model, graph, fields)
    if found is not None:
        row, cut = found
        raise LeakError(
            f"model {model.spec.name!r} is not causal, as {why}: what it says of residue {row} moves with residues "
            f"from {cut} on.\n"
            "It may read 'previous' (featurizer 'previous_residue') for 'aatype', and attend with causal=True.\n"
            "Where it ends in a decoder, that layer alone may read 'aatype'."
        )


def find_leak(model: ProteinModel, graph: Data, fields: Collection[str] | None = None) -> tuple[int, int] | None:
    """The first node i whose logits move when nodes from j on, ``j ≥ i``, are changed, and j; None in a causal model.

    Parameters
    ----------
    model : ProteinModel
    graph : Data
    fields : collection of str, optional
        Stored fields of nodes to change; None changes all but the places along the sequence.

    Notes
    -----
    The model is a copy in float64 and evaluation mode,
    with what starts constant (zero weights, say, which would hide all) moved off it.
    """
    tried, n = _moved(model), graph.num_nodes
    names = [name for name in graph.keys() if name != "y" and graph.is_node_attr(name)]  # noqa: SIM118
    names = [name for name in names if (name not in _GIVEN if fields is None else name in fields)]
    with torch.no_grad():
        usual = tried(graph)["logits"]  # (N, C)
        limit = _SAME * usual.abs().max().clamp(min=1e-30)
        for cut in sorted({round(c * (n - 1) / max(_CUTS - 1, 1)) for c in range(_CUTS)}):
            moved = (tried(_changed(graph, names, cut))["logits"] - usual).abs().amax(1)
            rows = (~(moved[: cut + 1] <= limit)).nonzero()
            if rows.numel():
                return int(rows[0]), cut
    return None


def _moved(model: ProteinModel) -> ProteinModel:
    tried = copy.deepcopy(model).cpu().double().eval()
    generator = torch.Generator().manual_seed(0)
    for p in tried.parameters():
        if p.numel() and bool((p == p.flatten()[0]).all()):
            p.data.add_(0.1 * torch.randn(p.shape, generator=generator, dtype=p.dtype))
    return tried


def _changed(graph: Data, names: Collection[str], cut: int) -> Data:
    """The graph with other values of these fields of its nodes from ``cut`` on."""
    generator, other = torch.Generator().manual_seed(cut), copy.copy(graph)
    for name in sorted(names):
        other[name] = torch.cat([graph[name][:cut], _redrawn(name, graph[name][cut:], generator)])
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
