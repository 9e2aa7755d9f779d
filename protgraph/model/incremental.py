"""Incremental inference with causal models: logits of new nodes from the caches of the earlier ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor
from torch_geometric.data import Batch, Data

from protgraph.data.graph.protein_graph import make_batch
from protgraph.errors import WiringError
from protgraph.model.build import ProteinModel
from protgraph.nn.kv_cache import KVCache
from protgraph.nn.module import GraphLayer
from protgraph.ops import Proteins

__all__ = ["IncrementalState", "first_nodes", "incremental_step"]


@dataclass(frozen=True, eq=False)
class IncrementalState:
    """State of a causal model after some nodes of each protein.

    Parameters
    ----------
    seen : int
        Number of nodes of each protein so far.
    caches : tuple of KVCache
        One cache per layer, and that of the head.
    """

    seen: int = 0
    caches: tuple[KVCache, ...] = ()


def first_nodes(batch: Batch, length: int) -> Batch:
    """Return the first ``length`` nodes of each protein of a batch of equally long ones, with their precomputed fields.

    Raises
    ------
    WiringError
        If the batch has edges, which would lead to later nodes.
    """
    if "edge_index" in batch:
        raise WiringError("incremental inference needs graphs without edges. Use a model that reads no edges.")
    n = batch.num_graphs
    names = [name for name in batch.keys() if name != "batch" and batch.is_node_attr(name)]  # noqa: SIM118
    tensors = {name: batch[name].unflatten(0, (n, -1))[:, :length].flatten(0, 1) for name in names}
    sizes = (length,) * n
    return make_batch(tensors, sizes=sizes, rows=dict.fromkeys(names, sizes), attributes={})


def incremental_step(
    model: ProteinModel, batch: Data, progress: IncrementalState | None = None
) -> tuple[Tensor, IncrementalState]:
    """Compute the logits of new nodes; they equal those of the model for the whole batch.

    Parameters
    ----------
    model : ProteinModel
    batch : Data
        All nodes so far, earlier ones included; equally many per protein. Precomputed fields are cheap; layers run on
        new nodes only.
    progress : IncrementalState, optional
        State of the previous step; None at the first. It is not modified, so several continuations can share it.

    Returns
    -------
    Tensor, IncrementalState
        ``(B l, C)`` logits of the l new nodes of each protein, protein after protein, and the new state.

    Raises
    ------
    WiringError
        If a layer is not causal or cannot run incrementally; with the path of the layer.
    """
    progress = progress or IncrementalState()
    f = _unseen(model, model.fields_of(batch), progress.seen)
    caches = progress.caches or (KVCache(),) * (len(model.wires) + 1)
    new_caches: list[KVCache] = []
    for w, layer, cache in zip(model.wires, model.layers, caches, strict=False):
        inputs = {local: f[name] for local, name in w.reads.items()}
        outputs, cache = _step(layer, inputs, cache, f"{w.path} ({w.component.name}) of {model.spec.name!r}")
        f |= {name: outputs[local] for local, name in w.writes.items()}
        new_caches.append(cache)
    inputs = {local: f[name] for local, name in model.head_reads.items()}
    outputs, cache = _step(model.head, inputs, caches[-1], f"the head of {model.spec.name!r}")
    new = f["proteins"].sizes[0]
    return outputs["logits"], IncrementalState(progress.seen + new, (*new_caches, cache))


def _step(layer: GraphLayer, f: Mapping[str, Any], cache: KVCache, path: str) -> tuple[Any, KVCache]:
    try:
        return layer.step(f, cache)
    except WiringError as e:
        raise WiringError(f"{path}: {e}") from e


def _unseen(model: ProteinModel, f: Mapping[str, Any], seen: int) -> dict[str, Any]:
    """Return the fields of the new nodes of each protein; fields of other levels stay whole."""
    proteins = f["proteins"]
    b, new = len(proteins), proteins.sizes[0] - seen
    if len(set(proteins.sizes)) > 1 or new < 1:
        raise WiringError(
            f"proteins of {proteins.sizes} nodes, {seen} of them done, need equally many new nodes, at least 1."
        )
    cut = dict(f)
    for name, value in f.items():
        if isinstance(value, Tensor) and model.plan.fields[name].level == "node":
            cut[name] = value.unflatten(0, (b, -1))[:, seen:].flatten(0, 1)
    batch = proteins.batch.view(b, -1)[:, seen:].flatten()
    return cut | {"proteins": Proteins(batch, (new,) * b, padded=proteins.padded)}
