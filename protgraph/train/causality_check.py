"""Check empirically that predictions of a causal model do not depend on later residues."""

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

_CUTS = 6  # positions from which on residues are changed
_LONGEST = 300  # residues of the checked protein; longer only if all are
_SAME = 1e-9  # tolerance relative to the largest logit, in float64
_TYPES = frozenset({"aatype", "masked"})
#: Positions along the sequence; a causal model may read them for all residues.
_POSITIONS = frozenset({"batch", "chain", "decoding_rank", "res_id", "seq_pos"})


def check_causal(model: ProteinModel, store: GraphStore, task: Task) -> None:
    """Run :func:`raise_on_leak` on the longest protein of moderate length.

    If the task hides residue types from featurizers, only visible types are changed. Other fields, e.g. coordinates,
    cannot contain them and may be read for all residues.
    """
    candidates = [(size if size <= _LONGEST else -size, number) for number, size in enumerate(store.sizes)]
    fields = _TYPES if "residue_type" in task.inputs.hidden else None
    graph = copy.copy(store[max(candidates)[1]])
    graph.decoding_rank = torch.arange(graph.num_nodes)  # the order of a decoder is the order of nodes
    raise_on_leak(model, graph, why=f"task {task.name!r} requires", fields=fields)


def raise_on_leak(model: ProteinModel, graph: Data, *, why: str, fields: Collection[str] | None = None) -> None:
    """Raise if logits of a residue depend on that residue or on later ones."""
    leak = find_leak(model, graph, fields)
    if leak is not None:
        row, cut = leak
        raise LeakError(
            f"model {model.spec.name!r} is not causal, as {why}: the prediction of residue {row} changes with "
            f"residues from {cut} on.\n"
            "Read 'previous' (featurizer 'previous_residue') instead of 'aatype', and use attention with causal=True.\n"
            "In a model with a decoder, only the decoder may read 'aatype'."
        )


def find_leak(model: ProteinModel, graph: Data, fields: Collection[str] | None = None) -> tuple[int, int] | None:
    """Find a node i whose logits change with nodes from j ≥ i on; return (i, j), or None for a causal model.

    Notes
    -----
    The check uses a copy of the model in float64 and evaluation mode. Constant parameters, e.g. weights of 0 that would
    hide a dependence, get random values.
    """
    copied, n = _randomized(model), graph.num_nodes
    names = [name for name in graph.keys() if name != "y" and graph.is_node_attr(name)]  # noqa: SIM118
    names = [name for name in names if (name not in _POSITIONS if fields is None else name in fields)]
    with torch.no_grad():
        reference = copied(graph)["logits"]  # (N, C)
        limit = _SAME * reference.abs().max().clamp(min=1e-30)
        for cut in sorted({round(c * (n - 1) / max(_CUTS - 1, 1)) for c in range(_CUTS)}):
            change = (copied(_changed(graph, names, cut))["logits"] - reference).abs().amax(1)
            rows = (~(change[: cut + 1] <= limit)).nonzero()
            if rows.numel():
                return int(rows[0]), cut
    return None


def _randomized(model: ProteinModel) -> ProteinModel:
    copied = copy.deepcopy(model).cpu().double().eval()
    generator = torch.Generator().manual_seed(0)
    for p in copied.parameters():
        if p.numel() and bool((p == p.flatten()[0]).all()):
            p.data.add_(0.1 * torch.randn(p.shape, generator=generator, dtype=p.dtype))
    return copied


def _changed(graph: Data, names: Collection[str], cut: int) -> Data:
    """Return the graph with other values of these fields for nodes from ``cut`` on."""
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
