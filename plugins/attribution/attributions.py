"""Attribution of predictions to residues and features by integrated gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from protgraph.argument_types import check_arguments
from protgraph.checkpoint import Checkpoint, as_checkpoint
from protgraph.data.datasets import Target
from protgraph.data.graph import collate, residue_nodes
from protgraph.errors import OptionError, SelectionError
from protgraph.evaluation import device_of
from protgraph.failure import Failure
from protgraph.featurize import GraphResult, Source, count_notes
from protgraph.inference import (
    RESIDUE,
    ResultTable,
    Row,
    choose_value,
    featurized_proteins,
    origin_of,
    residue_keys,
    rows_by_file,
    target_names,
)
from protgraph.model import ProteinModel, find_device
from protgraph.nn import Embed
from protgraph.structure.io import ReadOptions, ResidueValues
from protgraph.wording import count_noun

__all__ = ["Attributions", "IntegratedGradients", "explain", "integrate_gradients"]
ENTRY_POINTS = {"protgraph.functions": {"explain": "explain"}}


@dataclass(frozen=True, eq=False, repr=False)
class Attributions(ResultTable):
    """Table with a row per residue: its attribution, and the part of each field.

    Parameters
    ----------
    columns, rows
        Identity of the residue, ``attribution``, and one column per field, e.g. ``aatype``.
    value : str
        What is explained.
    completeness : tuple of str
        For each protein: sum of attributions, difference of outputs, steps.
    incomplete : int
        Proteins whose attributions do not sum to the difference within 1 %.
    notes, origin
        See :class:`protgraph.inference.Predictions`.
    """

    failures: list[Failure]
    value: str
    completeness: tuple[str, ...] = ()
    incomplete: int = 0
    notes: tuple[str, ...] = ()
    origin: tuple[str, ...] = field(default=())

    def residue_values(self) -> dict[str, ResidueValues]:
        """Return the attributions of each file, by file, to write into structure files."""
        values_of_file = {}
        for file, rows in rows_by_file(self.rows).items():
            chain, number, code, name = (np.array(column) for column in list(zip(*rows, strict=True))[1:5])
            values = np.array([row[len(RESIDUE)] for row in rows], np.float64)
            values_of_file[file] = ResidueValues("attribution", chain, number, code, name, values, origin=self.origin)
        return values_of_file


@check_arguments("checkpoint", "value", "residue", "read", "device", "jobs")
def explain(
    checkpoint: str | Path | Checkpoint,
    sources: Source | Iterable[Source],
    *,
    value: str | None = None,
    residue: str | None = None,
    read: ReadOptions | None = None,
    device: str = "auto",
    jobs: int = 1,
) -> Attributions:
    """Attribute a prediction to the residues of each protein by integrated gradients.

    The explained number is the log-odds of a class or label, before calibration, or the predicted value of a
    regression: its mean over the residues of a protein, or that of one residue.

    Parameters
    ----------
    checkpoint : str, Path or Checkpoint
        Trained model by name, or a file. Predictions per residue or per protein.
    sources, read, device, jobs
        See :func:`protgraph.inference.predict`.
    value : str, optional
        Column of the predictions, as for :meth:`protgraph.inference.Predictions.residue_values`.
    residue : str, optional
        Identifier of the residue whose prediction is explained, e.g. ``"A:42"``. Proteins without it are left out.

    Returns
    -------
    Attributions
        They sum to the difference between the output for the protein and for the baseline, where node features and
        embedded categories have their mean over the protein; see
        :func:`protgraph_plugins.attribution.integrate_gradients`.

    Raises
    ------
    OptionError
        The value cannot be explained.
    SelectionError
        No protein has the residue.
    """
    checkpoint = as_checkpoint(checkpoint)
    members = [member.to(find_device(device)).eval() for member in checkpoint.members]
    target = members[0].target
    name, scalar = _explained(target, value)
    failures: list[Failure] = []
    notes: list[str] = []
    explained: list[tuple[GraphResult, IntegratedGradients]] = []
    for protein in featurized_proteins(checkpoint, sources, failures, notes, read=read, jobs=jobs):
        rows = _rows_of(protein, target, residue)
        if rows is not None:
            graph = collate([protein.graph]).to(device_of(members[0]))

            def mean_of_rows(z: Tensor, rows: Tensor = rows) -> Tensor:
                return scalar(z[rows]).mean()

            explained.append((protein, integrate_gradients(members, graph, mean_of_rows)))
    if residue is not None and not explained and not failures:
        raise SelectionError(f"residue {residue!r} is in no protein. Give chain and number, e.g. 'A:42'.")
    what = f"{name} of {residue}" if residue else f"mean {name}" if target.level == "node" else name
    return _table(checkpoint, explained, failures, what, count_notes(notes))


def _explained(target: Target, value: str | None) -> tuple[str, Callable[[Tensor], Tensor]]:
    """Return the name of the explained number, and a function from logits ``(N, C)`` to it, ``(N,)``."""
    if target.level not in ("node", "graph") or target.is_geometric:
        raise OptionError(
            f"predictions of {target.name!r} per {target.level} cannot be explained. Allowed: per residue "
            "or protein, of classes, labels or numbers."
        )
    names = target_names(target)
    if target.level == "node":
        value = choose_value(target, value).name
    elif value is None:
        value = _only(target, names)
    if value == "confidence":
        return "log-odds of the predicted class", lambda z: _class_log_odds(z, z.detach().argmax(1))
    label = value.removeprefix("p_") if target.kind != "regression" else value
    if label not in names:
        allowed = ", ".join(names if target.kind == "regression" else [f"p_{n}" for n in names])
        raise OptionError(f"value {value!r} cannot be explained. Allowed: {allowed}.")
    column = names.index(label)
    if target.kind == "classification":
        return f"log-odds of {label}", lambda z: _class_log_odds(z, torch.full((len(z),), column, device=z.device))
    return (label if target.kind == "regression" else f"log-odds of {label}"), lambda z: z[:, column]


def _only(target: Target, names: tuple[str, ...]) -> str:
    if target.kind == "classification":
        return f"p_{names[-1]}" if target.size == 2 else "confidence"
    if target.size > 1:
        raise OptionError(
            f"several values per protein. Select one with --value (in Python value=): {', '.join(names)}."
        )
    return names[0]


def _class_log_odds(z: Tensor, classes: Tensor) -> Tensor:
    """Return ``log p / (1 − p)`` of one class of each row."""
    own = torch.nn.functional.one_hot(classes, z.size(1)).bool()
    return z[own] - z.masked_fill(own, -torch.inf).logsumexp(1)


def _rows_of(protein: GraphResult, target: Target, residue: str | None) -> Tensor | None:
    """Return the rows of the logits that are explained; None if the protein does not have the residue."""
    if target.level == "graph":
        if residue is not None:
            raise OptionError(f"residue {residue!r}: the model predicts per protein. Leave the residue out.")
        return torch.zeros(1, dtype=torch.long)
    nodes = residue_nodes(protein.graph).cpu()
    if residue is None:
        return nodes
    places = [i for i, name in enumerate(protein.residues.ids) if name == residue]
    return nodes[places] if places else None


def _table(
    checkpoint: Checkpoint,
    results: list[tuple[GraphResult, IntegratedGradients]],
    failures: list[Failure],
    value: str,
    notes: tuple[str, ...],
) -> Attributions:
    fields = sorted({name for _, result in results for name in result.parts})
    rows: list[Row] = []
    completeness: list[str] = []
    incomplete = 0
    for protein, result in results:
        of_fields = [_per_residue(protein, result.parts[name]) for name in fields if name in result.parts]
        total = np.sum(of_fields, 0)
        columns = zip(total.tolist(), *(of_field.tolist() for of_field in of_fields), strict=True)
        keys = residue_keys(protein.residues)
        rows += [(protein.source, *key, *values) for key, values in zip(keys, columns, strict=True)]
        completeness.append(
            f"{protein.source} {protein.chains}: attributions sum to {result.total:.4f}, difference of outputs "
            f"{result.difference:.4f} ({count_noun(result.steps, 'step')})"
        )
        if not result.is_complete:
            incomplete += 1
    return Attributions(
        (*RESIDUE, "attribution", *fields),
        rows,
        failures,
        value,
        completeness=tuple(completeness),
        incomplete=incomplete,
        notes=notes,
        origin=(*origin_of(checkpoint), f"integrated gradients of {value}"),
    )


def _per_residue(protein: GraphResult, nodes: Tensor) -> np.ndarray:
    """Sum the attributions of the nodes of each residue, ``(L,)``; atoms of ligands have no row."""
    if "atom_type" not in protein.graph:
        return nodes.numpy()
    residue, size = protein.graph.residue.cpu(), len(protein.residues)
    rows = max(size, int(residue.max()) + 1)
    return torch.zeros(rows, dtype=torch.float64).index_add(0, residue, nodes)[:size].numpy()


FEWEST, MOST = 16, 512  # steps
TOLERANCE = 0.01


@dataclass(frozen=True, eq=False)
class IntegratedGradients:
    """Attributions of one output to the inputs of one protein."""

    parts: Mapping[str, Tensor]  # field → ``(N,)`` float64, the attribution of each node's field
    difference: float  # output for the inputs minus output for the baseline
    steps: int  # points of the integral

    @property
    def total(self) -> float:
        """Sum of all attributions; equal to the difference if the integral is exact."""
        return float(sum(part.sum() for part in self.parts.values()))

    @property
    def error(self) -> float:
        """Absolute difference of the two."""
        return abs(self.total - self.difference)

    @property
    def is_complete(self) -> bool:
        """True if the error is at most 1 % of the difference, or 0.001."""
        return self.error <= max(TOLERANCE * abs(self.difference), 1e-3)


def integrate_gradients(
    members: Sequence[ProteinModel], graph: Data, output: Callable[[Tensor], Tensor]
) -> IntegratedGradients:
    """Integrate the gradients of an output between the baseline and the inputs of a protein.

    The attribution of an input x is ``(x − x') ∫₀¹ ∂F/∂x (x' + α (x − x')) dα``, by Gauss–Legendre quadrature, with
    twice as many points until the attributions sum to F(x) − F(x').

    ``output``: ``(N, C)`` mean logits to a scalar, F.

    Notes
    -----
    Inputs are the node features that layers or the head read, and the embedded categories of nodes. The baseline x' of
    scalars and embeddings is their mean over the nodes of the protein, that of vectors is 0. Edges, their features,
    coordinates and masks are those of the protein.

    References
    ----------
    Sundararajan et al. 2017, arXiv:1703.01365.
    """
    states = [_Inputs(member, graph) for member in members]
    for state in states:
        if not state.fields and not state.tables:
            raise OptionError(f"model {state.network.spec.name!r} reads no node features: nothing to attribute to.")
    with torch.no_grad():
        at_baseline = float(output(_mean_logits([state.at(0.0) for state in states])))
        at_input = float(output(_mean_logits([state.at(1.0) for state in states])))
    steps = FEWEST
    while True:
        result = IntegratedGradients(_integral(states, output, steps), at_input - at_baseline, steps)
        if result.is_complete or steps >= MOST:
            return result
        steps *= 2


def _mean_logits(parts: Sequence[Tensor]) -> Tensor:
    return torch.stack(list(parts)).mean(0)


def _integral(states: Sequence[_Inputs], output: Callable[[Tensor], Tensor], steps: int) -> dict[str, Tensor]:
    """Return the sum over quadrature points of weighted gradients times differences, by field."""
    points, weights = np.polynomial.legendre.leggauss(steps)
    sums: dict[str, Tensor] = {}
    for point, weight in zip((points + 1) / 2, weights / 2, strict=True):
        value = output(_mean_logits([state.at(float(point), gradient=True) for state in states]))
        for state in states:
            for name, attribution in state.attributions(value).items():
                sums[name] = sums.get(name, 0) + weight * attribution
    return sums


class _Inputs:
    """Inputs of one model for one protein, at a point between baseline and input."""

    def __init__(self, network: ProteinModel, graph: Data) -> None:
        self.network = network
        self.graph = graph
        with torch.no_grad():
            self.plain = network.fields_of(graph)
        read = set(network.head_reads.values())
        for wires in network.wires:
            read |= set(wires.reads.values())
        self.fields = {name: self.plain[name] for name in sorted(read) if self._is_feature(name)}
        self.tables = []  # field, embedding of its classes
        for wires, layer in network.steps:
            if not isinstance(layer, Embed):
                continue
            for local, name in wires.reads.items():
                is_of_nodes = network.plan.fields[name].rows == "node"
                if local in layer.tables and is_of_nodes:
                    self.tables.append((name, layer.tables[local]))
        self.points: list[tuple[str, Tensor, Tensor]] = []  # field, interpolated input, difference from the baseline

    def _is_feature(self, name: str) -> bool:
        spec, value = self.network.plan.fields.get(name), self.plain.get(name)
        if spec is None or spec.rows != "node" or spec.irreps in ("point", "index", "object") or spec.is_category:
            return False
        return isinstance(value, Tensor) and value.is_floating_point() and not name.endswith("_mask")

    def at(self, alpha: float, *, gradient: bool = False) -> Tensor:
        """Return the logits at ``x' + alpha (x − x')``, with gradients of the interpolated inputs if required."""
        self.points = []
        f: dict[str, Any] = dict(self.plain)
        for name, value in self.fields.items():
            f[name] = self._interpolate(name, value, alpha, gradient=gradient)
        with ExitStack() as stack:
            for name, table in self.tables:
                hook = partial(self._replace, name, alpha, gradient)
                stack.callback(table.register_forward_hook(hook).remove)
            return self.network.head_outputs(self.network.embed_fields(f))["logits"].float()

    def _replace(
        self, name: str, alpha: float, gradient: bool, module: nn.Module, inputs: tuple[Tensor, ...], value: Tensor
    ) -> Tensor:
        return self._interpolate(name, value, alpha, gradient=gradient)

    def _interpolate(self, name: str, value: Tensor, alpha: float, *, gradient: bool) -> Tensor:
        value = value.detach()
        base = self._baseline(name, value)
        point = (base + alpha * (value - base)).requires_grad_(gradient)
        self.points.append((name, point, value - base))
        return point

    def _baseline(self, name: str, value: Tensor) -> Tensor:
        spec = self.network.plan.fields[name]
        mean = value.mean(0, keepdim=True).expand_as(value)
        if spec.is_category or spec.is_scalar:
            return mean
        scalar = torch.tensor(spec.scalar_columns, device=value.device).reshape(value.shape[1:])
        return torch.where(scalar, mean, 0.0)

    def attributions(self, value: Tensor) -> dict[str, Tensor]:
        """Return gradient times difference of each input, summed over its columns, ``(N,)`` float64 on the CPU."""
        gradients = torch.autograd.grad(
            value, [point for _, point, _ in self.points], retain_graph=True, allow_unused=True
        )
        sums: dict[str, Tensor] = {}
        for (name, _, difference), gradient in zip(self.points, gradients, strict=True):
            if gradient is None:
                continue
            own = (gradient * difference).double().flatten(1).sum(1).cpu()
            sums[name] = sums.get(name, 0) + own
        return sums
