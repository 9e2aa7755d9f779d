"""Vectors of a trained model for one's own structure files: one a residue and one a protein."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from protgraph.data.graph.node_level import residue_nodes
from protgraph.data.graph.protein_graph import collate
from protgraph.errors import OptionError
from protgraph.train.checkpoint import Checkpoint
from protgraph.train.config import find_device
from protgraph.train.evaluate import EVALUATION_RESIDUES, evaluation_mode
from protgraph.train.files import as_checkpoint, in_batches, read_proteins
from protgraph.train.prepare import Failure

__all__ = ["Embeddings", "embed"]


@dataclass(frozen=True, eq=False)
class Embeddings:
    """What a model makes of residues before its head; P proteins of N residues in all, vectors of width D.

    Parameters
    ----------
    files, names, chains : tuple of str
        Of each protein: its file, its name, its chains joined by commas.
    ptr : ndarray
        ``(P + 1,)`` int64: protein p has the residues ``ptr[p]:ptr[p + 1]``.
    residues : ndarray
        ``(N,)`` str, "A:42": chain, number and insertion code.
    node : ndarray
        ``(N, D)`` float32.
    protein : ndarray
        ``(P, D)`` float32, mean over the residues of each.
    failures : list of Failure
        Files and chains that could not be used.
    """

    files: tuple[str, ...]
    names: tuple[str, ...]
    chains: tuple[str, ...]
    ptr: np.ndarray
    residues: np.ndarray
    node: np.ndarray
    protein: np.ndarray
    failures: list[Failure]

    @property
    def exit_code(self) -> int:
        """What a command answers: 0 for all files, 1 where some failed, 2 where all did."""
        return 0 if not self.failures else 1 if self.files else 2

    def write(self, path: str | Path) -> list[Path]:
        """Write by suffix, and say which files were written.

        ``.npz`` holds every array under its name. ``.parquet`` holds a row a residue (file, protein, chains, residue,
        vector); beside it ``<name>.protein.parquet`` a row a protein.
        """
        path = Path(path)
        if path.suffix == ".npz":
            told = {key: np.array(getattr(self, key), dtype=str) for key in ("files", "names", "chains", "residues")}
            np.savez(path, ptr=self.ptr, node=self.node, protein=self.protein, **told)
            return [path]
        if path.suffix == ".parquet":
            whole = path.with_suffix(".protein.parquet")
            count = np.diff(self.ptr)
            _write_parquet(path, self._told(count) | {"residue": self.residues.tolist()}, self.node)
            _write_parquet(whole, self._told(np.ones_like(count)) | {"residues": count.tolist()}, self.protein)
            return [path, whole]
        raise OptionError(f"embeddings are written as .npz or .parquet; got {str(path)!r}")

    def _told(self, count: np.ndarray) -> dict[str, list[str]]:
        """File, name and chains of each protein, as often as ``count`` ``(P,)`` says."""
        columns = {"file": self.files, "protein": self.names, "chains": self.chains}
        return {key: np.repeat(np.array(value, dtype=str), count).tolist() for key, value in columns.items()}


def embed(
    checkpoint: str | Path | Checkpoint,
    files: str | Path | Iterable[str | Path],
    *,
    chains: Sequence[str] | None = None,
    model: int = 1,
    altloc: str = "occupancy",
    assembly: str | None = None,
    device: str = "auto",
    batch_residues: int = EVALUATION_RESIDUES,
) -> Embeddings:
    """Residue and protein vectors for structure files; what cannot be read is listed, and the others go on.

    Parameters
    ----------
    checkpoint, files, chains, model, altloc, assembly, device, batch_residues
        See :func:`protgraph.train.predict`.

    Returns
    -------
    Embeddings
        The field that the model's head reads as ``h``, whatever its irreps.
    """
    checkpoint = as_checkpoint(checkpoint)
    network = checkpoint.model.to(find_device(device))
    field = network.spec.readout.get("h", "h")
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
    told: list[tuple[str, str, str]] = []
    ids: list[str] = []
    node, protein = [torch.empty(0, network.fields[field].dim)], [torch.empty(0, network.fields[field].dim)]
    sizes = [0]
    with evaluation_mode(network) as where:
        for members in in_batches(proteins, batch_residues):
            batch = collate([p.graph for p in members]).to(where)
            f = network.embed(batch)
            node.append(f[field][residue_nodes(batch)].float().cpu())
            protein.append(f["proteins"].mean(f[field]).float().cpu())
            told += [(p.file, p.residues.name, p.chains) for p in members]
            sizes += [len(p.residues) for p in members]
            ids += [i for p in members for i in p.residues.ids]
    columns = tuple(zip(*told, strict=True)) or ((), (), ())
    return Embeddings(
        *columns,
        ptr=np.cumsum(sizes),
        residues=np.array(ids, dtype=str),
        node=torch.cat(node).numpy(),
        protein=torch.cat(protein).numpy(),
        failures=failures,
    )


def _write_parquet(path: Path, columns: dict[str, list], vectors: np.ndarray) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    vector = pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), vectors.shape[1])
    pq.write_table(pa.table({**columns, "vector": vector}), path)
