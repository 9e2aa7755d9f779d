"""Attributions: how much each residue's features contribute to a prediction, by integrated gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from protgraph.argument_types import check_arguments
from protgraph.data.datasets.target import Target
from protgraph.data.graph.node_level import residue_nodes
from protgraph.data.graph.protein_graph import collate
from protgraph.errors import OptionError, SelectionError
from protgraph.failure import Failure
from protgraph.featurize.pipeline import Source
from protgraph.featurize.result import GraphResult, count_notes
from protgraph.structure.io.read_options import ReadOptions
from protgraph.structure.io.residue_values import ResidueValues
from protgraph.train.checkpoint import Checkpoint, as_checkpoint
from protgraph.train.config import find_device
from protgraph.train.integrated_gradients import IntegratedGradients, integrate_gradients
from protgraph.train.predict import RESIDUE, featurized_proteins, origin_of
from protgraph.train.result_table import ResultTable, Row
from protgraph.train.value_column import choose_value, target_names
from protgraph.wording import count_noun

__all__ = ["Attributions", "explain"]


@dataclass(frozen=True, eq=False, repr=False)
class Attributions(ResultTable):
    """Table with a row per residue: its attribution, and the part of each field.

    Parameters
    ----------
    columns, rows
        Identity of the residue, ``attribution``, and one column per field, e.g. ``aatype``.
    failures : list of Failure
    value : str
        What is explained.
    completeness : tuple of str
        For each protein: sum of attributions, difference of outputs, steps.
    incomplete : int
        Proteins whose attributions do not sum to the difference within 1 %.
    notes, origin
        See :class:`protgraph.train.Predictions`.
    """

    failures: list[Failure]
    value: str
    completeness: tuple[str, ...] = ()
    incomplete: int = 0
    notes: tuple[str, ...] = ()
    origin: tuple[str, ...] = field(default=())

    def residue_values(self) -> dict[str, ResidueValues]:
        """Return the attributions of each file, by file, to write into structure files."""
        groups: dict[str, list[Row]] = {}
        for row in self.rows:
            groups.setdefault(str(row[0]), []).append(row)
        found = {}
        for file, rows in groups.items():
            chain, number, code, name = (np.array(column) for column in list(zip(*rows, strict=True))[1:5])
            values = np.array([row[len(RESIDUE)] for row in rows], np.float64)
            found[file] = ResidueValues("attribution", chain, number, code, name, values, origin=self.origin)
        return found


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
        See :func:`protgraph.train.predict`.
    value : str, optional
        Column of the predictions, as for :meth:`protgraph.train.Predictions.residue_values`.
    residue : str, optional
        Identifier of the residue whose prediction is explained, e.g. ``"A:42"``. Proteins without it are left out.

    Returns
    -------
    Attributions
        They sum to the difference between the output for the protein and for the baseline, where node features and
        embedded categories have their mean over the protein; see
        :func:`protgraph.train.integrated_gradients.integrate_gradients`.

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
    found: list[tuple[GraphResult, IntegratedGradients]] = []
    for protein in featurized_proteins(checkpoint, sources, failures, notes, read=read, jobs=jobs):
        rows = _rows_of(protein, target, residue)
        if rows is not None:
            where = next((p.device for p in members[0].parameters()), torch.device("cpu"))
            graph = collate([protein.graph]).to(where)
            found.append((protein, integrate_gradients(members, graph, lambda z, rows=rows: scalar(z[rows]).mean())))
    if residue is not None and not found and not failures:
        raise SelectionError(f"residue {residue!r} is in no protein. Give chain and number, e.g. 'A:42'.")
    what = f"{name} of {residue}" if residue else f"mean {name}" if target.level == "node" else name
    return _table(checkpoint, found, failures, what, count_notes(notes))


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
    found: list[tuple[GraphResult, IntegratedGradients]],
    failures: list[Failure],
    what: str,
    notes: tuple[str, ...],
) -> Attributions:
    fields = sorted({name for _, result in found for name in result.parts})
    rows: list[Row] = []
    for protein, result in found:
        parts = [_per_residue(protein, result.parts[name]) for name in fields if name in result.parts]
        total = np.sum(parts, 0)
        r = protein.residues
        keys = zip(*(a.tolist() for a in (r.chain, r.res_id, r.ins_code, r.res_name)), strict=True)
        columns = zip(total.tolist(), *(part.tolist() for part in parts), strict=True)
        rows += [(protein.source, *key, *own) for key, own in zip(keys, columns, strict=True)]
    lines = tuple(
        f"{p.source} {p.chains}: attributions sum to {r.total:.4f}, difference of outputs {r.difference:.4f} "
        f"({count_noun(r.steps, 'step')})"
        for p, r in found
    )
    incomplete = sum(not result.is_complete for _, result in found)
    return Attributions(
        (*RESIDUE, "attribution", *fields),
        rows,
        failures,
        what,
        completeness=lines,
        incomplete=incomplete,
        notes=notes,
        origin=(*origin_of(checkpoint), f"integrated gradients of {what}"),
    )


def _per_residue(protein: GraphResult, nodes: Tensor) -> np.ndarray:
    """Sum the attributions of the nodes of each residue, ``(L,)``; atoms of ligands have no row."""
    if "atom_type" not in protein.graph:
        return nodes.numpy()
    residue, size = protein.graph.residue.cpu(), len(protein.residues)
    rows = max(size, int(residue.max()) + 1)
    return torch.zeros(rows, dtype=torch.float64).index_add(0, residue, nodes)[:size].numpy()
