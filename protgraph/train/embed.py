"""Compute embeddings with a trained model: one vector per residue and one per protein."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from protgraph.argument_types import check_arguments
from protgraph.data.graph.node_level import residue_nodes
from protgraph.data.graph.protein_graph import collate
from protgraph.data.store.loader import pack
from protgraph.errors import OptionError
from protgraph.failure import Failure
from protgraph.featurize.pipeline import Source
from protgraph.featurize.result import count_notes
from protgraph.file_io import atomic_write
from protgraph.structure.io.read_options import ReadOptions
from protgraph.train.checkpoint import Checkpoint, as_checkpoint
from protgraph.train.config import find_device
from protgraph.train.evaluate import EVALUATION_RESIDUES, evaluation_mode
from protgraph.train.input_warnings import InputChecks, InputWarning
from protgraph.train.predict import featurized_proteins
from protgraph.train.training_set import describe_proteins

__all__ = ["Embeddings", "embed", "embedding_files"]


@dataclass(frozen=True, eq=False)
class Embeddings:
    """Embeddings of P proteins with N residues in all, vectors of width D.

    Parameters
    ----------
    files, names, chains : tuple of str
        File, name, and chains joined by commas of each protein.
    ptr : ndarray
        ``(P + 1,)`` int64: protein p owns the rows ``ptr[p]:ptr[p + 1]``.
    residues : ndarray
        ``(N,)`` str, "A:42": chain, number and insertion code.
    node : ndarray
        ``(N, D)`` float32.
    protein : ndarray
        ``(P, D)`` float32, mean over the residues of each.
    failures : list of Failure
        Files and chains that could not be used.
    notes : tuple of str
        Messages for the user, e.g. that features of a graph store are recomputed, and one for each kind of warning.
    warnings : tuple of InputWarning
        Inputs with missing atoms or residues, or unlike the training set.
    """

    files: tuple[str, ...]
    names: tuple[str, ...]
    chains: tuple[str, ...]
    ptr: np.ndarray
    residues: np.ndarray
    node: np.ndarray
    protein: np.ndarray
    failures: list[Failure]
    notes: tuple[str, ...] = ()
    warnings: tuple[InputWarning, ...] = ()

    def write(self, path: str | Path) -> list[Path]:
        """Write an ``.npz`` or ``.parquet`` file, chosen by the suffix, and return the written files.

        An ``.npz`` file has every array under its name. A ``.parquet`` file has a row per residue (file, protein,
        chains, residue, vector), and ``<name>.protein.parquet`` a row per protein.

        Raises
        ------
        OptionError
            The path has another suffix.
        """
        files = embedding_files(path)
        if len(files) == 1:
            text = {key: np.array(getattr(self, key), dtype=str) for key in ("files", "names", "chains", "residues")}
            with atomic_write(path) as temporary, temporary.open("wb") as file:
                np.savez(file, ptr=self.ptr, node=self.node, protein=self.protein, **text)
            return files
        count = np.diff(self.ptr)
        with atomic_write(files[0]) as residues, atomic_write(files[1]) as proteins:
            _write_parquet(residues, self._repeated(count) | {"residue": self.residues.tolist()}, self.node)
            _write_parquet(proteins, self._repeated(np.ones_like(count)) | {"residues": count.tolist()}, self.protein)
        return files

    def _repeated(self, count: np.ndarray) -> dict[str, list[str]]:
        """Return file, name and chains of each protein, repeated ``count`` ``(P,)`` times."""
        columns = {"file": self.files, "protein": self.names, "chains": self.chains}
        return {key: np.repeat(np.array(value, dtype=str), count).tolist() for key, value in columns.items()}


def embedding_files(path: str | Path) -> list[Path]:
    """Return the files of :meth:`Embeddings.write`: ``path``, and for ``.parquet`` also that of the proteins.

    Raises
    ------
    OptionError
        The path has another suffix than .npz or .parquet.
    """
    path = Path(path)
    if path.suffix not in (".npz", ".parquet"):
        raise OptionError(f"wrong suffix of embeddings: {str(path)!r}. Allowed: .npz, .parquet.")
    return [path] if path.suffix == ".npz" else [path, path.with_suffix(".protein.parquet")]


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

    Parameters
    ----------
    checkpoint, sources, read, device, batch_residues, jobs
        See :func:`protgraph.train.predict`.

    Returns
    -------
    Embeddings
        Values of the field that the model's head reads as ``h``, of any irreps.
    """
    checkpoint = as_checkpoint(checkpoint)
    network = checkpoint.model.to(find_device(device))
    field = network.spec.readout.get("h", "h")
    failures: list[Failure] = []
    notes: list[str] = []
    checks = InputChecks(checkpoint)
    results = checks.watch(featurized_proteins(checkpoint, sources, failures, notes, read=read, jobs=jobs))
    proteins: list[tuple[str, str, str]] = []
    ids: list[str] = []
    node, protein = [torch.empty(0, network.fields[field].dim)], [torch.empty(0, network.fields[field].dim)]
    sizes = [0]
    with evaluation_mode(network) as where:
        for members in pack(results, lambda p: len(p.residues), max_size=batch_residues):
            batch = collate([p.graph for p in members]).to(where)
            f = network.embed(batch)
            checks.check_descriptors(members, describe_proteins(network, f, batch))
            node.append(f[field][residue_nodes(batch)].float().cpu())
            protein.append(f["proteins"].mean(f[field]).float().cpu())
            proteins += [(p.source, p.residues.name, p.chains) for p in members]
            sizes += [len(p.residues) for p in members]
            ids += [i for p in members for i in p.residues.ids]
    columns = tuple(zip(*proteins, strict=True)) or ((), (), ())
    return Embeddings(
        *columns,
        ptr=np.cumsum(sizes),
        residues=np.array(ids, dtype=str),
        node=torch.cat(node).numpy(),
        protein=torch.cat(protein).numpy(),
        failures=failures,
        notes=(*count_notes(notes), *checks.notes),
        warnings=tuple(checks.warnings),
    )


def _write_parquet(path: Path, columns: dict[str, list], vectors: np.ndarray) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    vector = pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), vectors.shape[1])
    pq.write_table(pa.table({**columns, "vector": vector}), path)
