"""A causal model node after node: logits of new nodes from what its layers keep of those before."""

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
    """How far a causal model has read the proteins of a batch.

    Parameters
    ----------
    seen : int
        Nodes of each protein so far.
    caches : tuple of KVCache
        What each layer keeps of them, in the order of the layers, and the head.
    """

    seen: int = 0
    caches: tuple[KVCache, ...] = ()


def first_nodes(batch: Batch, length: int) -> Batch:
    """The first nodes of each protein of a batch of equally long ones, with their stored fields.

    Raises
    ------
    WiringError
        The batch has edges, which would lead to nodes that are not there yet.
    """
    if "edge_index" in batch:
        raise WiringError("a protein of which only the beginning is known has no edges; take a model that reads none")
    n = batch.num_graphs
    names = [name for name in batch.keys() if name != "batch" and batch.is_node_attr(name)]  # noqa: SIM118
    tensors = {name: batch[name].unflatten(0, (n, -1))[:, :length].flatten(0, 1) for name in names}
    sizes = (length,) * n
    return make_batch(tensors, sizes=sizes, rows=dict.fromkeys(names, sizes), attributes={})


def incremental_step(model: ProteinModel, batch: Data, progress: IncrementalState | None = None) -> tuple[Tensor, IncrementalState]:
    """Logits of the nodes that a model has not yet seen, as :class:`ProteinModel` itself gives them for a whole batch.

    Parameters
    ----------
    model : ProteinModel
    batch : Data
        All nodes so far, those that were seen before included; equally many in each protein. Stored fields, which
        cost little: layers work on new nodes alone.
    progress : IncrementalState, optional
        What the step before gave; None at the first. It stays as it is, so that one beginning can be continued in
        several ways.

    Returns
    -------
    Tensor, IncrementalState
        ``(B l, C)``, protein after protein, and the progress with the l new nodes of each.

    Raises
    ------
    WiringError
        A layer sees later nodes, or other nodes in a way that cannot go on; with the path of the layer.
    """
    progress = progress or IncrementalState()
    f = _unseen(model, model.fields_of(batch), progress.seen)
    caches = progress.caches or (KVCache(),) * (len(model.wires) + 1)
    kept: list[KVCache] = []
    for w, layer, cache in zip(model.wires, model.layers, caches, strict=False):
        given = {local: f[name] for local, name in w.reads.items()}
        made, cache = _step(layer, given, cache, f"{w.path} ({w.component.name}) of {model.spec.name!r}")
        f |= {name: made[local] for local, name in w.writes.items()}
        kept.append(cache)
    given = {local: f[name] for local, name in model.head_reads.items()}
    made, cache = _step(model.head, given, caches[-1], f"the head of {model.spec.name!r}")
    new = f["proteins"].sizes[0]
    return made["logits"], IncrementalState(progress.seen + new, (*kept, cache))


def _step(layer: GraphLayer, f: Mapping[str, Any], cache: KVCache, path: str) -> tuple[Any, KVCache]:
    try:
        return layer.step(f, cache)
    except WiringError as e:
        raise WiringError(f"{path}: {e}") from e


def _unseen(model: ProteinModel, f: Mapping[str, Any], seen: int) -> dict[str, Any]:
    """Fields of the new nodes of each protein; what is not of nodes stays whole."""
    proteins = f["proteins"]
    b, new = len(proteins), proteins.sizes[0] - seen
    if len(set(proteins.sizes)) > 1 or new < 1:
        raise WiringError(f"proteins of {proteins.sizes} nodes, {seen} seen, do not go on together")
    cut = dict(f)
    for name, value in f.items():
        if isinstance(value, Tensor) and model.plan.fields[name].level == "node":
            cut[name] = value.unflatten(0, (b, -1))[:, seen:].flatten(0, 1)
    batch = proteins.batch.view(b, -1)[:, seen:].flatten()
    return cut | {"proteins": Proteins(batch, (new,) * b, padded=proteins.padded)}
