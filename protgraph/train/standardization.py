"""Standardization of input features: statistics of the training split, set in the layers that read raw features."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from protgraph.data.graph.fields import FieldSpec
from protgraph.data.store.graph_store import GraphStore
from protgraph.data.store.loader import pack
from protgraph.model.build import ProteinModel
from protgraph.nn.standardize import Standardize
from protgraph.task.task import Task
from protgraph.train.evaluate import collate_evaluation

__all__ = ["standardize_inputs"]

_CONSTANT = 0.01  # columns with a smaller standard deviation have scale 1
_LARGEST = 10.0  # largest absolute value over scale in the training split
_RESIDUES = 20_000  # statistics are of evenly spaced training proteins with about as many residues
_BATCH = 4096


class _Statistics:
    """Statistics of the columns of a field, each ``(F,)`` float64, over the known values of batches."""

    def __init__(self) -> None:
        self.count = self.sum = self.squares = torch.zeros(1, dtype=torch.float64)
        self.largest = torch.zeros(1, dtype=torch.float64)
        self.is_binary = torch.ones(1, dtype=torch.bool)

    def add(self, x: Tensor, *, has_absent: bool = False) -> None:
        """Add a batch ``(N, …)``; with ``has_absent``, without the rows whose columns are all 0."""
        x = x.reshape(len(x), -1).double()
        if has_absent and x.size(1) > 1:
            x = x[(x != 0).any(1)]
        if not len(x):
            return
        known = ~x.isnan()
        x = torch.where(known, x, 0.0)
        self.count, self.sum = self.count + known.sum(0), self.sum + x.sum(0)
        self.squares = self.squares + x.square().sum(0)
        self.largest = torch.maximum(self.largest, x.abs().amax(0))
        self.is_binary = self.is_binary & ((x == 0) | (x == 1)).all(0)

    def mean_and_scale(self, spec: FieldSpec) -> tuple[Tensor, Tensor]:
        """Return mean and scale; 0 and 1 for columns that are not standardized."""
        is_odd = torch.tensor([term.ir.p < 0 for term in spec.o3 for _ in range(term.dim)])
        count = self.count.clamp(min=1)
        mean = torch.where(is_odd, 0.0, self.sum / count)
        sd = (self.squares / count - mean.square()).clamp(min=0).sqrt()
        scale = torch.where(sd >= _CONSTANT, torch.maximum(sd, self.largest / _LARGEST), 1.0)
        return torch.where(self.is_binary, 0.0, mean).float(), torch.where(self.is_binary, 1.0, scale).float()


def standardize_inputs(model: ProteinModel, task: Task, store: GraphStore) -> None:
    """Set mean and scale of the features that enter linear maps, from the training split.

    Notes
    -----
    ``0e`` columns become (x − mean) / scale with the standard deviation as scale. ``0o`` columns, which change sign
    under reflections, become x / scale with the root mean square. The scale is at least a tenth of the largest absolute
    value, so that rarely used columns are not amplified, and 1 for standard deviations below 0.01. Columns of 0 and 1
    only, and fields that a layer wrote, are left as they are. Unknown values (NaN) are not counted. In tasks of
    mutations, neither are rows of a field with 0 in every column: some featurizers compute mutated residues only.
    """
    readers = list(_readers(model))
    names = {field for _, fields in readers for field in fields.values()}
    if not names:
        return
    statistics = _statistics(model, task, store, names)
    for standardize, fields in readers:
        mean, scale = torch.zeros(standardize.width), torch.ones(standardize.width)
        for local, field in fields.items():
            part, one = standardize.columns[local], statistics[field]
            mean[part], scale[part] = one.mean_and_scale(model.plan.fields[field])
        if bool((mean != 0).any() or (scale != 1).any()):
            standardize.set_columns(mean, scale)


def _readers(model: ProteinModel) -> Iterator[tuple[Standardize, dict[str, str]]]:
    """Yield each standardization and the floating-point features that it reads, local name to field."""
    written: set[str] = set()
    for w, layer in zip(model.wires, model.layers, strict=True):
        if isinstance(standardize := getattr(layer, "standardize", None), Standardize):
            reads = {local: w.reads[local] for local in standardize.columns}
            yield (
                standardize,
                {
                    local: field
                    for local, field in reads.items()
                    if field not in written and model.plan.fields[field].dtype.startswith(("float", "bfloat"))
                },
            )
        written |= set(w.writes.values())


def _statistics(model: ProteinModel, task: Task, store: GraphStore, names: set[str]) -> dict[str, _Statistics]:
    """Compute the statistics of fields over the training split, or a sample of its proteins if it is large."""
    step = max(1, round(store.num_residues / _RESIDUES))
    statistics = {name: _Statistics() for name in names}
    with torch.no_grad():
        for members in pack(range(0, len(store), step), lambda i: int(store.sizes[i]), max_size=_BATCH):
            batch = collate_evaluation(store, members, task)
            f = model.fields_of(batch)
            for name, one in statistics.items():
                one.add(f[name], has_absent=task.inputs.mutation_environment is not None)
    return statistics
