"""Predict with a trained model: one row per residue, protein, edge or pair of residues."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import combinations
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from protgraph import __version__
from protgraph.argument_types import check_arguments
from protgraph.checkpoint.checkpoint_file import Checkpoint, as_checkpoint
from protgraph.checkpoint.training_set import describe_proteins
from protgraph.data.datasets.target import Target
from protgraph.data.graph.protein_graph import collate, residue_nodes
from protgraph.errors import Interrupted
from protgraph.evaluation.calibration import CalibrationMap
from protgraph.evaluation.evaluation import EVALUATION_RESIDUES, evaluation_mode, symmetrize_pairs
from protgraph.featurize.pipeline import Source
from protgraph.featurize.result import GraphResult
from protgraph.inference.model_run import ModelRun
from protgraph.inference.prediction_table import Predictions, prediction_columns, target_names
from protgraph.inference.result_table import Row, residue_keys
from protgraph.model.devices import find_device
from protgraph.structure.io.read_options import ReadOptions

__all__ = ["PROTEIN", "RESIDUE", "origin_of", "predict", "probabilities"]

RESIDUE = ("file", "chain", "res_id", "ins_code", "res_name")
PAIR = ("file", *(f"{key}_{side}" for side in (1, 2) for key in RESIDUE[1:]))
PROTEIN = ("file", "protein", "chains", "residues")


@check_arguments("checkpoint", "sources", "read", "device", "batch_residues", "jobs", "calibrated")
def predict(
    checkpoint: str | Path | Checkpoint,
    sources: Source | Iterable[Source],
    *,
    read: ReadOptions | None = None,
    device: str = "auto",
    batch_residues: int = EVALUATION_RESIDUES,
    jobs: int = 1,
    calibrated: bool = True,
) -> Predictions:
    """Predict for structure and sequence files; files that cannot be used are in ``failures``.

    So are proteins for which the model gives NaN or infinity, with the component at fault.

    Each model reads what it was trained on (:attr:`Checkpoint.reads`): each chain alone, all chains together, or parts
    of them, such as each antibody variable fragment alone; ``notes`` say what is left out. The logits of an ensemble
    are the mean of those of its members. A pair of residues is one row, from the separation of the target on; its
    logits are those of both orders, averaged. An edge is one row, from residue 1 (its source) to residue 2 (its
    target), in graph order.

    Parameters
    ----------
    checkpoint : str, Path or Checkpoint
        Trained model by name (``"ligand_site"``), file of :meth:`protgraph.train.FitResult.save`, or its content.
    sources : str, Path, GraphStore or iterable of those
        Files (PDB, mmCIF, BinaryCIF or FASTA, gzipped or not), folders, patterns, archive entries, or graph stores; see
        :func:`protgraph.featurize.iter_graphs`.
    read : ReadOptions, optional
        Chains, model, alternate locations and assembly of every file.
    device : str
        "auto", "cpu", "cuda", "cuda:1".
    batch_residues : int
        Residues per batch; a larger protein is a batch of its own, and so is each protein if pairs are predicted.
    jobs : int
        Processes that read files and make graphs.
    calibrated : bool
        Write calibrated probabilities, if the checkpoint has a calibration. Decisions on yes/no labels do not depend on
        it.

    Raises
    ------
    CheckpointError
        The checkpoint cannot be used here.
    Interrupted
        On Ctrl-C, a KeyboardInterrupt; its attribute ``result`` has the files that were finished.
    """
    checkpoint = as_checkpoint(checkpoint)
    network, *other_members = (member.to(find_device(device)) for member in checkpoint.members)
    target, calibration = network.target, checkpoint.calibration if calibrated else None
    columns, identify = _IDENTITY[target.level]
    run = ModelRun(checkpoint, sources, read=read, jobs=jobs)
    limit = batch_residues if target.level != "pair" else 1
    rows: list[Row] = []
    interruption: KeyboardInterrupt | None = None
    with ExitStack() as stack:
        where, *_ = [stack.enter_context(evaluation_mode(member)) for member in (network, *other_members)]

        def compute(members: list[GraphResult]) -> tuple[Tensor, tuple[Data, Mapping[str, Any], Tensor]]:
            batch = collate([p.graph for p in members]).to(where)
            f = network.embed(batch)
            logits = network.head_outputs(f)["logits"].float().cpu()
            for member in other_members:
                logits = logits + member(batch)["logits"].float().cpu()
            logits = logits / len(checkpoint.members)
            return probabilities(logits, target), (batch, f, logits)

        try:
            for members, (batch, f, logits) in run.outputs(network, compute, max_residues=limit):
                run.checks.check_descriptors(members, describe_proteins(network, f, batch))
                logits = _logits_of_rows(logits, members, batch, target)
                values = prediction_values(logits, target, checkpoint.threshold, calibration)
                for identity, values_of_row in zip(identify(members, target), values, strict=True):
                    rows.append((*identity, *values_of_row))
        except KeyboardInterrupt as e:
            interruption = e
            rows = _without_last_file(rows)  # some of its chains may be missing
    result = Predictions(
        (*columns, *prediction_columns(target)),
        rows,
        run.failures,
        target,
        notes=run.notes,
        warnings=tuple(run.checks.warnings),
        origin=(*origin_of(checkpoint), *(("calibrated probabilities",) if calibration else ())),
        read=read or ReadOptions(),
    )
    if interruption is not None:
        raise Interrupted(interruption, result) from interruption
    return result


def _logits_of_rows(logits: Tensor, members: list[GraphResult], batch: Data, target: Target) -> Tensor:
    """Return the logits of each row of the table: of residues without other nodes, of pairs of both orders."""
    if target.level == "node":
        return logits[residue_nodes(batch).cpu()]
    if target.level == "pair":
        predictions = symmetrize_pairs(logits, members[0].graph)
        assert predictions.pairs is not None
        return predictions.logits[predictions.pairs.separation >= target.separation]
    return logits


def _without_last_file(rows: list[Row]) -> list[Row]:
    return [row for row in rows if row[0] != rows[-1][0]]


def origin_of(checkpoint: Checkpoint) -> tuple[str, ...]:
    """Return the model, the task and the version of a checkpoint, one text each, for headers of written files."""
    return (f"model {checkpoint.model.spec.name}", f"task {checkpoint.task}", f"protgraph {__version__}")


def _residues(members: Sequence[GraphResult], target: Target) -> Iterator[Row]:
    return ((p.source, *key) for p in members for key in residue_keys(p.residues))


def _pairs(members: Sequence[GraphResult], target: Target) -> Iterator[Row]:
    for p in members:
        keys, chain, seq_pos = residue_keys(p.residues), p.residues.chain.tolist(), p.residues.seq_pos.tolist()
        for i, j in combinations(range(len(keys)), 2):
            if chain[i] != chain[j] or abs(seq_pos[i] - seq_pos[j]) >= target.separation:
                yield (p.source, *keys[i], *keys[j])


def _edges(members: Sequence[GraphResult], target: Target) -> Iterator[Row]:
    for p in members:
        keys = residue_keys(p.residues)
        for source, end in p.graph.edge_index.T.tolist():
            yield (p.source, *keys[source], *keys[end])


def _proteins(members: Sequence[GraphResult], target: Target) -> Iterator[Row]:
    return ((p.source, p.residues.name, p.chains, len(p.residues)) for p in members)


_IDENTITY = {
    "node": (RESIDUE, _residues),
    "pair": (PAIR, _pairs),
    "edge": (PAIR, _edges),
    "graph": (PROTEIN, _proteins),
}


def probabilities(logits: Tensor, target: Target) -> Tensor:
    """Return the numbers that are written for logits ``(M, C)`` or ``(M, C, 3)``, of the same shape.

    A logit may be infinite if its probability is 0 or 1.
    """
    if target.kind == "classification":
        return logits.softmax(1)
    return logits.sigmoid() if target.kind == "multilabel" else logits


def prediction_values(
    logits: Tensor, target: Target, threshold: Tensor | None, calibration: CalibrationMap | None = None
) -> list[tuple[str | int | float, ...]]:
    """Return the predicted columns of each row of ``(N, C)`` logits."""
    p = probabilities(logits, target) if calibration is None else calibration.probabilities(logits, target)
    if target.kind == "classification":
        names = target_names(target)
        best = [names[i] for i in logits.argmax(1).tolist()]
        return [(name, *values) for name, values in zip(best, p.tolist(), strict=True)]
    if target.kind == "multilabel":
        is_called = logits >= (torch.zeros(target.size) if threshold is None else threshold)
        rows = []
        for values, calls in zip(p.tolist(), is_called.int().tolist(), strict=True):
            row: list[str | int | float] = []
            for probability, call in zip(values, calls, strict=True):
                row += [probability, call]
            rows.append(tuple(row))
        return rows
    return [tuple(row) for row in p.flatten(1).tolist()]
