"""Refuse models that read the label: featurizers that reproduce it, and causal models that read later residues."""

from __future__ import annotations

import copy
from collections.abc import Collection

import numpy as np
import torch
from torch import Generator, Tensor
from torch_geometric.data import Data

from protgraph.data.graph.fields import field
from protgraph.data.store.graph_store import GraphStore
from protgraph.errors import LeakError
from protgraph.featurize.plan import FeaturePlan, inputs
from protgraph.model.build import ProteinModel
from protgraph.task.losses import known_labels
from protgraph.task.task import Task

__all__ = ["check_causal", "find_leak", "raise_on_leak", "reproduces", "require_no_leak"]

#: Proteins of the sample for labels per residue, and for labels per protein.
_PROTEINS, _PROTEINS_IF_ONE_LABEL = 16, 64
#: Fewest rows of each class, and of values, with which the check is made.
_ROWS, _ROWS_IF_ONE_LABEL = 5, 3
_VALUES, _VALUES_IF_ONE_LABEL = 50, 12
#: Most distinct rows of a discrete feature, per class.
_STATES = 4
_CORRELATION = 0.9999


def require_no_leak(task: Task, plan: FeaturePlan, train: GraphStore) -> None:
    """Raise if a field that a featurizer writes reproduces the label; see :func:`reproduces`.

    Labels per residue are compared with fields of nodes, labels per protein with those that are constant within each
    protein. For a causal task only fields of the structure stage are compared: its models are checked separately.
    """
    writers = _writers(task, plan)
    if not writers or task.target.level not in ("node", "graph"):
        return
    per_protein = task.target.level == "graph"
    most = _PROTEINS_IF_ONE_LABEL if per_protein else _PROTEINS
    y_of_protein, fields_of_protein = [], []
    for number in range(min(len(train), most)):
        y, fields = _sample(task, plan, train, number, writers)
        if len(y):
            y_of_protein.append(y)
            fields_of_protein.append(fields)
    if not y_of_protein:
        return
    y = np.concatenate(y_of_protein)
    for name, writer in writers.items():
        if any(name not in fields for fields in fields_of_protein):  # it varies within a protein
            continue
        how = reproduces(np.concatenate([fields[name] for fields in fields_of_protein]), y, per_protein=per_protein)
        if how:
            raise LeakError(
                f"task {task.name!r}: featurizer {writer!r} reproduces its label: field {name!r} {how}, on "
                f"{len(y)} labels of {len(y_of_protein)} training proteins.\nRemove the featurizer from the model, or "
                "train the model on another task. A task that allows it names it in readable_featurizers of its "
                "InputMasking."
            )


def _sample(
    task: Task, plan: FeaturePlan, train: GraphStore, number: int, names: Collection[str]
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Return the known labels of a protein and the rows of its fields; for one label, of fields that are constant."""
    graph, y = task.inputs.apply(train[number], Generator().manual_seed(number), training=True)
    is_known = known_labels(y)
    known = (is_known.flatten(1).all(1) if is_known.dim() > 1 else is_known).numpy()
    f = plan.expand(inputs(graph))
    values: dict[str, np.ndarray] = {}
    for name in names:
        nodes = plan.fields[name].on
        value = f[f"from_{nodes}"].mean(f[f"from_{nodes}"].source(f[name].float())) if nodes else f[name]
        values[name] = value.numpy().reshape(len(value), -1)
    if task.target.level == "graph":
        return y.numpy()[known], {name: x[:1] for name, x in values.items() if (x == x[0]).all()}
    return y.numpy()[known], {name: x[known] for name, x in values.items()}


def _writers(task: Task, plan: FeaturePlan) -> dict[str, str]:
    """Return the node fields that are compared, and the featurizer of each."""
    stages = [*plan.structure, *([] if task.inputs.causal else plan.tensor)]
    written = ((n.output_field(local), n.name) for n, one in stages for local in one.out)
    return {
        name: writer
        for name, writer in written
        if plan.fields[name].level == "node" and writer not in task.inputs.readable_featurizers
    }


def reproduces(x: np.ndarray, y: np.ndarray, *, per_protein: bool = False) -> str:
    """Return how a feature reproduces labels, or "" if it does not.

    Classes and yes/no labels: a column, or the rows of the whole field, has at most four distinct values per class, and
    each value occurs with one class only; or for all classes but one, a column separates the class from all others.
    For labels per protein, there is one value per class. Other labels: for each component of a label, the absolute
    Pearson correlation with a column exceeds 0.9999.

    Parameters
    ----------
    x : ndarray
        ``(K, W)`` feature.
    y : ndarray
        ``(K,)`` classes, or ``(K, C)`` or ``(K, C, 3)`` floats, all known.
    """
    if y.dtype.kind == "i":
        return _discrete(x, y, per_protein)
    flat = y.reshape(len(y), y.shape[1], -1)  # (K, C, components)
    for column in range(flat.shape[1]):
        label = flat[:, column]
        is_binary = label.shape[1] == 1 and np.isin(label, (0, 1)).all()
        how = _discrete(x, label[:, 0].astype(np.int64), per_protein) if is_binary else _linear(x, label, per_protein)
        if how:
            return how
    return ""


def _discrete(x: np.ndarray, y: np.ndarray, per_protein: bool) -> str:
    classes, counts = np.unique(y, return_counts=True)
    classes = classes[counts >= (_ROWS_IF_ONE_LABEL if per_protein else _ROWS)]  # rarer ones are left out
    if len(classes) < 2:
        return ""
    is_frequent = np.isin(y, classes)
    x, y = x[is_frequent], y[is_frequent]
    most = len(classes) * (1 if per_protein else _STATES)
    if _determines(_codes(x), y, most):
        return "determines the class by its value"
    columns = [_codes(x[:, w : w + 1]) for w in range(x.shape[1])]
    for w, codes in enumerate(columns):
        if _determines(codes, y, most):
            return f"determines the class by the value of column {w}"
    separated = [any(_determines(codes, (y == c).astype(int), 2) for codes in columns) for c in classes]
    return "has a column for each class" if sum(separated) >= len(classes) - 1 > 0 else ""


def _codes(x: np.ndarray) -> np.ndarray:
    """Return the number of the distinct row that each row equals, ``(K,)`` int64."""
    return np.unique(np.nan_to_num(x), axis=0, return_inverse=True)[1].reshape(-1)


def _determines(codes: np.ndarray, y: np.ndarray, most: int) -> bool:
    """Return True if there are at most ``most`` codes, and each occurs with one label only."""
    if codes.max() >= most or codes.max() == 0:
        return False
    return len(np.unique(np.stack([codes, y]), axis=1).T) == codes.max() + 1


def _linear(x: np.ndarray, label: np.ndarray, per_protein: bool) -> str:
    if len(label) < (_VALUES_IF_ONE_LABEL if per_protein else _VALUES):
        return ""
    found = [_best_column(x, part) for part in label.T]
    if None in found:
        return ""
    return f"equals the label up to a linear map (column {', '.join(str(w) for w in dict.fromkeys(found))})"


def _best_column(x: np.ndarray, label: np.ndarray) -> int | None:
    """Return a column whose correlation with the label exceeds the limit; None without one."""
    x, label = np.nan_to_num(x.astype(np.float64)), label.astype(np.float64)
    x, label = x - x.mean(0), label - label.mean()
    scale = np.sqrt((x**2).sum(0) * (label**2).sum())
    if not label.any() or not scale.any():
        return None
    r = np.abs(label @ x) / np.where(scale > 0, scale, np.inf)
    return int(r.argmax()) if r.max() > _CORRELATION else None


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
