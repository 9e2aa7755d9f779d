"""Checks of prepared graphs: models that read the label, and splits that cannot be trained or tested on."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
import torch
from torch import Generator, Tensor
from torch_geometric.data import Data

from protgraph.data.datasets.dataset import TaskData
from protgraph.data.graph.fields import field
from protgraph.data.graph.protein_graph import CA
from protgraph.data.store.graph_store import GraphStore
from protgraph.errors import DatasetError, LeakError, ProtgraphError
from protgraph.failure import Failure
from protgraph.featurize.base import Featurizer
from protgraph.featurize.plan import FeaturePlan, inputs
from protgraph.model.build import ProteinModel
from protgraph.registry.component import ComponentSpec
from protgraph.structure.residues.alphabet import UNKNOWN
from protgraph.task.losses import known_labels
from protgraph.task.task import Task
from protgraph.wording import count_noun

__all__ = [
    "RANKING",
    "check_causal",
    "check_split_labels",
    "check_training",
    "describe_split_overlap",
    "empty_split_error",
    "find_leak",
    "raise_on_leak",
    "reproduces",
    "require_no_leak",
    "with_failures",
]

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

    samples = _samples(task, plan, train, writers)
    if not samples:
        return
    y = np.concatenate([sample.y for sample in samples])

    for name, writer in writers.items():
        values = [sample.fields[name] for sample in samples if name in sample.fields]
        if len(values) < len(samples):  # it varies within a protein
            continue
        how = reproduces(np.concatenate(values), y, per_protein=per_protein)
        if how:
            raise LeakError(
                f"task {task.name!r}: featurizer {writer!r} reproduces its label: field {name!r} {how}, on "
                f"{len(y)} labels of {len(samples)} training proteins.\nRemove the featurizer from the model, or "
                "train the model on another task. A task that allows it names it in readable_featurizers of its "
                "InputMasking."
            )


class _Sample(NamedTuple):
    """Known labels of a protein, ``(K,)`` or ``(K, C)``, and the rows ``(K, W)`` of its fields."""

    y: np.ndarray
    fields: dict[str, np.ndarray]


def _samples(task: Task, plan: FeaturePlan, train: GraphStore, names: Collection[str]) -> list[_Sample]:
    """Return labels and fields of the first proteins, without those that have no known label."""
    most = _PROTEINS_IF_ONE_LABEL if task.target.level == "graph" else _PROTEINS
    samples = []
    for number in range(min(len(train), most)):
        sample = _sample(task, plan, train, number, names)
        if len(sample.y):
            samples.append(sample)
    return samples


def _sample(task: Task, plan: FeaturePlan, train: GraphStore, number: int, names: Collection[str]) -> _Sample:
    """Return the known labels of a protein and its fields; for one label, only the fields that are constant."""
    graph, y = task.inputs.apply(train[number], Generator().manual_seed(number), training=True)
    is_known = known_labels(y)
    if is_known.dim() > 1:
        is_known = is_known.flatten(1).all(1)
    known = is_known.numpy()
    f = plan.expand(inputs(graph))
    fields: dict[str, np.ndarray] = {}
    for name in names:
        value = f[name]
        nodes = plan.fields[name].on
        if nodes:  # of another node set: the mean over the nodes of each residue
            edges = f[f"from_{nodes}"]
            value = edges.mean(edges.source(value.float()))
        x = value.numpy().reshape(len(value), -1)
        if task.target.level != "graph":
            fields[name] = x[known]
        elif (x == x[0]).all():
            fields[name] = x[:1]
    return _Sample(y.numpy()[known], fields)


def _writers(task: Task, plan: FeaturePlan) -> dict[str, str]:
    """Return the node fields that are compared, and the featurizer of each."""
    steps: Sequence[tuple[ComponentSpec, Featurizer]] = plan.structure
    if not task.inputs.causal:
        steps = [*plan.structure, *plan.tensor]
    writers: dict[str, str] = {}
    for component, featurizer in steps:
        if component.name in task.inputs.readable_featurizers:
            continue
        for local in featurizer.out:
            name = component.output_field(local)
            if plan.fields[name].level == "node":
                writers[name] = component.name
    return writers


def reproduces(x: np.ndarray, y: np.ndarray, *, per_protein: bool = False) -> str:
    """Return how a feature reproduces labels, or "" if it does not.

    Classes and yes/no labels: a column, or the rows of the whole field, has at most four distinct values per class, and
    each value occurs with one class only; or for all classes but one, a column separates the class from all others.
    For labels per protein, there is one value per class. Other labels: for each component of a label, the absolute
    Pearson correlation with a column exceeds 0.9999.

    ``x``: ``(K, W)`` feature. ``y``: ``(K,)`` classes, or ``(K, C)`` or ``(K, C, 3)`` floats, all known.
    """
    if y.dtype.kind == "i":
        return _discrete(x, y, per_protein)
    flat = y.reshape(len(y), y.shape[1], -1)  # (K, C, components)
    for column in range(flat.shape[1]):
        label = flat[:, column]
        is_binary = label.shape[1] == 1 and np.isin(label, (0, 1)).all()
        if is_binary:
            how = _discrete(x, label[:, 0].astype(np.int64), per_protein)
        else:
            how = _linear(x, label, per_protein)
        if how:
            return how
    return ""


def _discrete(x: np.ndarray, y: np.ndarray, per_protein: bool) -> str:
    # rare classes are left out
    classes, counts = np.unique(y, return_counts=True)
    fewest = _ROWS_IF_ONE_LABEL if per_protein else _ROWS
    classes = classes[counts >= fewest]
    if len(classes) < 2:
        return ""
    is_frequent = np.isin(y, classes)
    x = x[is_frequent]
    y = y[is_frequent]

    # all columns together, then each
    most = len(classes)
    if not per_protein:
        most *= _STATES
    if _determines(_codes(x), y, most):
        return "determines the class by its value"
    columns = [_codes(x[:, w : w + 1]) for w in range(x.shape[1])]
    for w, codes in enumerate(columns):
        if _determines(codes, y, most):
            return f"determines the class by the value of column {w}"

    # a column for each class, as in a one-hot code; the last class follows from the others
    num_separated = 0
    for c in classes:
        is_class = (y == c).astype(int)
        num_separated += any(_determines(codes, is_class, 2) for codes in columns)
    if num_separated >= len(classes) - 1:
        return "has a column for each class"
    return ""


def _codes(x: np.ndarray) -> np.ndarray:
    """Return the number of the distinct row that each row equals, ``(K,)`` int64."""
    _, number = np.unique(np.nan_to_num(x), axis=0, return_inverse=True)
    return number.reshape(-1)


def _determines(codes: np.ndarray, y: np.ndarray, most: int) -> bool:
    """Return True if there are at most ``most`` codes, and each occurs with one label only."""
    if codes.max() >= most or codes.max() == 0:
        return False
    pairs = np.unique(np.stack([codes, y]), axis=1)
    return pairs.shape[1] == codes.max() + 1


def _linear(x: np.ndarray, label: np.ndarray, per_protein: bool) -> str:
    fewest = _VALUES_IF_ONE_LABEL if per_protein else _VALUES
    if len(label) < fewest:
        return ""
    columns = [_best_column(x, component) for component in label.T]
    if None in columns:
        return ""
    numbers = [str(column) for column in dict.fromkeys(columns)]
    return f"equals the label up to a linear map (column {', '.join(numbers)})"


def _best_column(x: np.ndarray, label: np.ndarray) -> int | None:
    """Return a column whose correlation with the label exceeds the limit; None without one."""
    x = np.nan_to_num(x.astype(np.float64))
    label = label.astype(np.float64)
    x = x - x.mean(0)
    label = label - label.mean()
    scale = np.sqrt((x**2).sum(0) * (label**2).sum())
    if not label.any() or not scale.any():
        return None
    r = np.abs(label @ x) / np.where(scale > 0, scale, np.inf)
    if r.max() <= _CORRELATION:
        return None
    return int(r.argmax())


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
    candidates = []  # the longest of moderate length, else the shortest; the last of equals
    for number, size in enumerate(store.sizes):
        preference = size if size <= _LONGEST else -size
        candidates.append((preference, number))
    _, chosen = max(candidates)
    fields = _TYPES if "residue_type" in task.inputs.hidden else None
    graph = copy.copy(store[chosen])
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
    copied = _randomized(model)
    names = []
    for name in graph.keys():  # noqa: SIM118
        is_chosen = name not in _POSITIONS if fields is None else name in fields
        if is_chosen and name != "y" and graph.is_node_attr(name):
            names.append(name)
    last = graph.num_nodes - 1
    cuts = {round(c * last / (_CUTS - 1)) for c in range(_CUTS)}  # from the first node to the last
    with torch.no_grad():
        reference = copied(graph)["logits"]  # (N, C)
        limit = _SAME * reference.abs().max().clamp(min=1e-30)
        for cut in sorted(cuts):
            logits = copied(_changed(graph, names, cut))["logits"]
            change = (logits - reference).abs().amax(1)
            is_unchanged = change[: cut + 1] <= limit  # False for NaN
            rows = (~is_unchanged).nonzero()
            if rows.numel():
                return int(rows[0]), cut
    return None


def _randomized(model: ProteinModel) -> ProteinModel:
    copied = copy.deepcopy(model).cpu().double().eval()
    generator = torch.Generator().manual_seed(0)
    for p in copied.parameters():
        is_constant = p.numel() > 0 and bool((p == p.flatten()[0]).all())
        if is_constant:
            noise = torch.randn(p.shape, generator=generator, dtype=p.dtype)
            p.data.add_(0.1 * noise)
    return copied


def _changed(graph: Data, names: Collection[str], cut: int) -> Data:
    """Return the graph with other values of these fields for nodes from ``cut`` on."""
    generator = torch.Generator().manual_seed(cut)
    changed = copy.copy(graph)
    for name in sorted(names):
        before = graph[name][:cut]
        after = _redrawn(name, graph[name][cut:], generator)
        changed[name] = torch.cat([before, after])
    return changed


def _redrawn(name: str, value: Tensor, generator: torch.Generator) -> Tensor:
    if value.dtype == torch.bool:
        return ~value
    if value.is_floating_point():
        noise = torch.randn(value.shape, generator=generator, dtype=value.dtype)
        return value + noise
    classes = field(name).classes
    if classes is None:
        return value + 1
    shift = torch.randint(1, classes, value.shape, generator=generator)
    return (value + shift) % classes


# --- splits -----------------------------------------------------------------------------------------------------------

_EXAMPLES = 2  # of shared proteins in a message

_USE = {
    "train": "The model is trained on it",
    "val": "The best epoch is chosen on it",
    "test": "The model is tested on it",
}


@contextmanager
def with_failures(failures: Sequence[Failure]) -> Iterator[None]:
    """Attach the proteins that could not be used to an error of protgraph, as its attribute ``failures``."""
    try:
        yield
    except ProtgraphError as e:
        e.failures = tuple(failures)
        raise


def empty_split_error(
    data: TaskData, split: str, failures: Sequence[Failure], other_splits: Collection[str]
) -> DatasetError:
    """Return the error for a split that has no usable protein."""
    members = {example.id for example in data.examples if example.split == split}
    of_split = [failure for failure in failures if failure.protein in members]
    if of_split:
        first = str(of_split[0]).rstrip(".")
        return DatasetError(
            f"dataset {data.name!r}, task {data.task!r}: {count_noun(len(of_split), 'protein')} of split {split!r} "
            f"could not be used, and no other is in it. The first: {first}. Correct the files or the component."
        )
    only_in = f", only in {', '.join(other_splits)}" if other_splits else ""
    return DatasetError(
        f"dataset {data.name!r} has no protein in split {split!r} for task {data.task!r}{only_in}. {_USE[split]}: "
        f"assign proteins to {split!r}."
    )


def check_training(
    model: ProteinModel, data: TaskData, splits: Mapping[str, GraphStore], task: Task, failures: Sequence[Failure]
) -> tuple[str, ...]:
    """Raise if a model cannot be trained or validated on the splits; return notes about the others."""
    if "val" not in splits:
        raise empty_split_error(data, "val", failures, splits)
    if task.inputs.causal:
        check_causal(model, splits["train"], task)
    return (*check_split_labels(data.name, splits, task), *describe_split_overlap(data.name, splits))


def describe_split_overlap(dataset: str, splits: Mapping[str, GraphStore]) -> tuple[str, ...]:
    """Return a message if a protein is in more than one split, with two examples; else nothing.

    Proteins are the same if their residue types are. If a task hides all types, they are the same if the coordinates
    of their CA atoms are.
    """
    first: dict[bytes, tuple[str, str]] = {}
    shared: dict[bytes, str] = {}
    for split, store in splits.items():
        for i, name in enumerate(store.names):
            key = _identity(store, i)
            if key is None:
                continue
            other, where = first.setdefault(key, (name, split))
            if where != split:
                shared.setdefault(key, f"{other!r} ({where}) = {name!r} ({split})")
    if not shared:
        return ()
    examples = ", ".join(list(shared.values())[:_EXAMPLES])
    number = f"{count_noun(len(shared), 'sequence')} of dataset {dataset!r} {'is' if len(shared) == 1 else 'are'}"
    return (
        f"{number} in more than one split: {examples}. Scores on these splits are not those of unseen "
        "proteins. Assign each sequence to one split.",
    )


def _identity(store: GraphStore, i: int) -> bytes | None:
    """Return a digest of the residue types of a protein, or of the positions of its residues; None without both."""
    types, atoms = store.values("aatype", i), store.values("atom_type", i)
    residues = slice(None) if atoms is None else atoms == CA
    if types is not None and (types[residues] != UNKNOWN).any():
        return _digest(types[residues])
    pos = store.values("pos", i)
    if pos is None or not np.isfinite(pos[residues]).all():
        return None
    return _digest(pos[residues])


def _digest(values: np.ndarray) -> bytes:
    """Return 16 bytes, so that the comparison of many proteins does not keep their residues."""
    return hashlib.blake2b(np.ascontiguousarray(values).data, digest_size=16).digest()


RANKING = ("auprc", "auroc")
"""Metrics that are undefined without a positive and a negative label."""


def check_split_labels(dataset: str, splits: Mapping[str, GraphStore], task: Task) -> tuple[str, ...]:
    """Check that the monitored metric is defined on validation, and return notes on other splits.

    Every split needs a known label; yes/no labels ranked by the area under a curve need positives and negatives. Labels
    per pair, and those that the task draws at random during training, are not checked.
    """
    if task.target.level == "pair" or task.inputs.corrupt is not None:
        return ()
    notes = list(_check_known(dataset, splits, task))
    if task.target.kind != "multilabel" or task.monitor not in RANKING:
        return tuple(notes)
    for split, store in splits.items():
        y = torch.cat([graph.y for graph in store])
        positive, negative = (y == 1).sum(0), (y == 0).sum(0)  # (C,)
        if bool(((positive > 0) & (negative > 0)).any()):
            continue
        summary = (
            f"split {split!r} of dataset {dataset!r} has {count_noun(len(store), 'protein')} with "
            f"{count_noun(int(positive.sum()), 'positive label')} and {int(negative.sum())} negative"
        )
        if split in ("train", "val"):
            raise DatasetError(
                f"task {task.name!r}: {task.monitor} is undefined: {summary}. It needs both. Use --cv 5, another "
                "--seed, or a column 'split' that assigns proteins of both kinds to 'train' and 'val'."
            )
        notes.append(f"{task.monitor} is undefined on {split}: {summary}")
    return tuple(notes)


def _check_known(dataset: str, splits: Mapping[str, GraphStore], task: Task) -> tuple[str, ...]:
    """Return a note on test sets without a known label; raise for train and val."""
    notes = []
    for split, store in splits.items():
        if any(known_labels(graph.y).any() for graph in store):
            continue
        summary = (
            f"split {split!r} of dataset {dataset!r} has {count_noun(len(store), 'protein')} without a known label"
        )
        if split in ("train", "val"):
            raise DatasetError(
                f"task {task.name!r}: {summary}. Assign labeled proteins to 'train' and 'val' in the column 'split', "
                "or remove the column for a random split of the labeled proteins."
            )
        notes.append(f"no score on {split}: {summary}")
    return tuple(notes)
