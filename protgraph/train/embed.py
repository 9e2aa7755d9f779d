"""Compute embeddings with a trained model: one vector per residue and one per protein."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from protgraph.argument_types import check_arguments
from protgraph.data.graph.node_level import residue_nodes
from protgraph.data.graph.protein_graph import collate
from protgraph.data.store.loader import pack
from protgraph.errors import Interrupted
from protgraph.failure import Failure
from protgraph.featurize.pipeline import Source
from protgraph.featurize.result import GraphResult, count_notes
from protgraph.structure import Residues
from protgraph.structure.io.read_options import ReadOptions
from protgraph.train.checkpoint import Checkpoint, as_checkpoint
from protgraph.train.config import find_device
from protgraph.train.embedding_table import Embeddings, digest_of_model
from protgraph.train.evaluate import EVALUATION_RESIDUES, evaluation_mode
from protgraph.train.finite_output import finite_outputs
from protgraph.train.input_warnings import InputChecks
from protgraph.train.predict import featurized_proteins
from protgraph.train.training_set import describe_proteins

__all__ = ["embed"]


@check_arguments("checkpoint", "sources", "read", "device", "batch_residues", "jobs")
def embed(
    checkpoint: str | Path | Checkpoint,
    sources: Source | Iterable[Source],
    *,
    read: ReadOptions | None = None,
    device: str = "auto",
    batch_residues: int = EVALUATION_RESIDUES,
    jobs: int = 1,
) -> Embeddings:
    """Compute embeddings of residues and proteins; files that cannot be used are in ``failures``.

    So are proteins for which the model gives NaN or infinity, with the component at fault.

    Parameters
    ----------
    checkpoint, sources, read, device, batch_residues, jobs
        See :func:`protgraph.train.predict`.

    Returns
    -------
    Embeddings
        Values of the field that the model's head reads as ``h``, of any irreps.

    Raises
    ------
    Interrupted
        On Ctrl-C, a KeyboardInterrupt; its attribute ``result`` has the files that were finished.
    """
    path = "" if isinstance(checkpoint, Checkpoint) else str(Path(checkpoint).resolve())
    checkpoint = as_checkpoint(checkpoint)
    network = checkpoint.single_model("embed").to(find_device(device))
    field = network.spec.readout.get("h", "h")
    failures: list[Failure] = []
    notes: list[str] = []
    checks = InputChecks(checkpoint, read)
    results = checks.watch(featurized_proteins(checkpoint, sources, failures, notes, read=read, jobs=jobs))
    parts: list[tuple[str, Residues, str, Tensor, Tensor]] = []
    interruption: KeyboardInterrupt | None = None
    with evaluation_mode(network) as where:

        def compute(members: list[GraphResult]) -> tuple[Tensor, tuple[Tensor, Tensor, Tensor]]:
            batch = collate([p.graph for p in members]).to(where)
            f = network.embed(batch)
            mean = f["proteins"].mean(f[field]).float().cpu()
            return mean, (f[field][residue_nodes(batch)].float().cpu(), mean, describe_proteins(network, f, batch))

        batches = pack(results, lambda p: len(p.residues), max_size=batch_residues)
        try:
            for members, (rows, mean, descriptors) in finite_outputs(network, batches, compute, failures):
                checks.check_descriptors(members, descriptors)
                parts += [
                    (p.source, p.residues, p.chains, *own)
                    for p, *own in zip(members, rows.split([len(p.residues) for p in members]), mean, strict=True)
                ]
        except KeyboardInterrupt as e:
            interruption = e
            parts = [part for part in parts if part[0] != parts[-1][0]]  # chains of the last file may be missing
    files, residues, chains, node, protein = tuple(zip(*parts, strict=True)) or ((), (), (), (), ())
    width = network.fields[field].dim
    result = Embeddings(
        files,
        tuple(r.name for r in residues),
        chains,
        ptr=np.cumsum([0, *map(len, residues)]),
        residues=np.array([i for r in residues for i in r.ids], dtype=str),
        node=torch.cat([torch.empty(0, width), *node]).numpy(),
        protein=torch.stack(protein).numpy() if protein else np.empty((0, width), np.float32),
        failures=failures,
        notes=(*count_notes(notes), *checks.notes),
        warnings=tuple(checks.warnings),
        checkpoint=path,
        model_digest=digest_of_model(network),
    )
    if interruption is not None:
        raise Interrupted(interruption, result) from interruption
    return result
