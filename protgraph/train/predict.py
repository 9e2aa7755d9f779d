"""Predictions of a trained model for one's own files, as rows per residue, protein, edge or pair of residues."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import torch
from torch import Tensor

from protgraph.data.datasets.target import Target
from protgraph.data.graph.node_level import residue_nodes
from protgraph.data.graph.protein_graph import collate
from protgraph.train.checkpoint import Checkpoint
from protgraph.train.config import find_device
from protgraph.train.evaluate import EVALUATION_RESIDUES, evaluation_mode, symmetrize_pairs
from protgraph.train.files import Protein, as_checkpoint, in_batches, read_proteins
from protgraph.train.prepare import Failure

__all__ = ["Predictions", "predict"]

RESIDUE = ("file", "chain", "res_id", "ins_code", "res_name")
PAIR = ("file", *(f"{key}_{side}" for side in (1, 2) for key in RESIDUE[1:]))
PROTEIN = ("file", "protein", "chains", "residues")

Row = tuple[str | int | float, ...]


@dataclass(frozen=True, eq=False)
class Predictions:
    """A table of predictions, and what could not be predicted.

    Parameters
    ----------
    columns : tuple of str
        What identifies a residue, protein, pair or edge, then what is predicted: for classes ``predicted`` (its name)
        and the probability ``p_<class>`` of each; for yes/no labels ``p_<label>`` and ``predicted_<label>`` (0 or 1, at
        the threshold chosen in training); for values one column each, for vectors and coordinates three.
    rows : list of tuple
        In the order of files, chains and residues.
    failures : list of Failure
        Files and chains without rows.
    """

    columns: tuple[str, ...]
    rows: list[Row]
    failures: list[Failure]

    @property
    def exit_code(self) -> int:
        """What a command answers: 0 for all files, 1 where some failed, 2 where all did."""
        return 0 if not self.failures else 1 if self.rows else 2

    def write_csv(self, path: str | Path) -> None:
        """Write the table; floats with as many digits as tell them apart."""
        _write(path, self.columns, self.rows)


def predict(
    checkpoint: str | Path | Checkpoint,
    files: str | Path | Iterable[str | Path],
    *,
    chains: Sequence[str] | None = None,
    model: int = 1,
    altloc: str = "occupancy",
    assembly: str | None = None,
    device: str = "auto",
    batch_residues: int = EVALUATION_RESIDUES,
) -> Predictions:
    """Predict for structure files; what cannot be read is listed, and the others go on.

    A model that was trained on single chains is given single chains. A pair of residues is one row, from the separation
    on that the target asks about; its logits are the mean of both orders. An edge is one row, from residue 1 (its
    source) to residue 2 (its target), in the order of the graph.

    Parameters
    ----------
    checkpoint : str, Path or Checkpoint
        What :meth:`protgraph.train.FitResult.save` wrote.
    files : str, Path or iterable of those
        PDB, mmCIF, BinaryCIF or FASTA, gzipped or not.
    chains, model, altloc, assembly
        How every file is read: which chains, which model, which alternate locations, which biological assembly; see
        :func:`protgraph.structure.io.sources.entries`.
    device : str
        "auto", "cpu", "cuda", "cuda:1".
    batch_residues : int
        Residues that the model sees at a time; a larger protein goes alone, and so does each where pairs are predicted.

    Raises
    ------
    CheckpointError
        The checkpoint cannot be used here.
    """
    checkpoint = as_checkpoint(checkpoint)
    network, target = checkpoint.model.to(find_device(device)), checkpoint.model.target
    columns, identify = _IDENTITY[target.level]
    failures: list[Failure] = []
    proteins = read_proteins(
        files,
        network.plan,
        failures,
        hidden=checkpoint.hidden,
        one_chain=checkpoint.one_chain,
        visible_types=checkpoint.visible_types,
        chains=chains,
        model=model,
        altloc=altloc,
        assembly=assembly,
    )
    rows: list[Row] = []
    with evaluation_mode(network) as where:
        for members in in_batches(proteins, batch_residues if target.level != "pair" else 1):
            batch = collate([p.graph for p in members])
            logits = network(batch.to(where))["logits"].float().cpu()
            if target.level == "pair":
                logits = symmetrize_pairs(logits, members[0].graph)
                logits = logits.logits[logits.pairs.separation >= target.separation]
            if target.level == "node":
                logits = logits[residue_nodes(batch).cpu()]
            said = _said(logits, target, checkpoint.threshold)
            identities = identify(members, target)
            rows += [(*identity, *values) for identity, values in zip(identities, said, strict=True)]
    return Predictions((*columns, *_columns(target)), rows, failures)


def _keys(p: Protein) -> list[Row]:
    r = p.residues
    return list(zip(*(a.tolist() for a in (r.chain, r.res_id, r.ins_code, r.res_name)), strict=True))


def _residues(members: Sequence[Protein], target: Target) -> Iterator[Row]:
    return ((p.file, *key) for p in members for key in _keys(p))


def _pairs(members: Sequence[Protein], target: Target) -> Iterator[Row]:
    for p in members:
        keys, chain, seq_pos = _keys(p), p.residues.chain.tolist(), p.residues.seq_pos.tolist()
        for i, j in combinations(range(len(keys)), 2):
            if chain[i] != chain[j] or abs(seq_pos[i] - seq_pos[j]) >= target.separation:
                yield (p.file, *keys[i], *keys[j])


def _edges(members: Sequence[Protein], target: Target) -> Iterator[Row]:
    for p in members:
        keys = _keys(p)
        for source, end in p.graph.edge_index.T.tolist():
            yield (p.file, *keys[source], *keys[end])


def _proteins(members: Sequence[Protein], target: Target) -> Iterator[Row]:
    return ((p.file, p.residues.name, p.chains, len(p.residues)) for p in members)


_IDENTITY = {
    "node": (RESIDUE, _residues),
    "pair": (PAIR, _pairs),
    "edge": (PAIR, _edges),
    "graph": (PROTEIN, _proteins),
}


def _names(target: Target) -> tuple[str, ...]:
    if target.names:
        return target.names
    return (target.name,) if target.size == 1 else tuple(map(str, range(target.size)))


def _columns(target: Target) -> tuple[str, ...]:
    names = _names(target)
    if target.kind == "classification":
        return ("predicted", *(f"p_{name}" for name in names))
    if target.kind == "multilabel":
        return tuple(column for name in names for column in (f"p_{name}", f"predicted_{name}"))
    if target.is_geometric:
        return tuple(f"{name}_{axis}" for name in names for axis in "xyz")
    return names


def _said(logits: Tensor, target: Target, threshold: Tensor | None) -> list[tuple[str | int | float, ...]]:
    """The predicted columns of each row of ``(N, C)`` logits."""
    if target.kind == "classification":
        names = _names(target)
        best = [names[i] for i in logits.argmax(1).tolist()]
        return [(name, *p) for name, p in zip(best, logits.softmax(1).tolist(), strict=True)]
    if target.kind == "multilabel":
        yes = logits >= (torch.zeros(target.size) if threshold is None else threshold)
        probabilities, verdicts = logits.sigmoid().tolist(), yes.int().tolist()
        return [
            tuple(v for pair in zip(p, y, strict=True) for v in pair)
            for p, y in zip(probabilities, verdicts, strict=True)
        ]
    return [tuple(row) for row in logits.flatten(1).tolist()]


def _write(path: str | Path, columns: Sequence[str], rows: Iterable[Iterable[object]]) -> None:
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        for row in rows:
            writer.writerow([f"{v:.9g}" if isinstance(v, float) else v for v in row])  # 9 digits tell float32 apart
