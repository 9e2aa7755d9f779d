"""Compute embeddings with a trained model: one vector per residue and one per protein."""

from __future__ import annotations

import hashlib
import json
import struct
import zlib
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import BadZipFile

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from protgraph.argument_types import check_arguments
from protgraph.checkpoint.checkpoint_file import Checkpoint, as_checkpoint
from protgraph.checkpoint.training_set import describe_proteins
from protgraph.data.graph.protein_graph import collate, residue_nodes
from protgraph.errors import DatasetError, Interrupted, OptionError
from protgraph.evaluation.evaluation import EVALUATION_RESIDUES, evaluation_mode
from protgraph.failure import Failure
from protgraph.featurize.pipeline import Source
from protgraph.featurize.result import GraphResult
from protgraph.file_io import atomic_write
from protgraph.inference.input_warnings import InputWarning
from protgraph.inference.model_run import ModelRun
from protgraph.inference.result_table import ResultTable
from protgraph.model.build import ProteinModel, as_model_spec
from protgraph.model.devices import find_device
from protgraph.model.pretrained import published_weights, with_weights
from protgraph.registry import models, trained_models
from protgraph.structure import Residues
from protgraph.structure.io.read_options import ReadOptions
from protgraph.task.input_masking import BACKBONE_ALONE
from protgraph.validation import check_format_version
from protgraph.wording import count_noun

__all__ = ["Embeddings", "digest_of_model", "embed", "embedding_checkpoint", "embedding_files"]


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

    The vectors of the members of an ensemble are side by side: those of different members have no common axes, so their
    mean has no meaning, and the dot product of joined vectors is the sum of those of the members.

    Parameters
    ----------
    checkpoint : str, Path or Checkpoint
        See :func:`protgraph.inference.predict`; one member of an ensemble is ``"ligand_site[0]"``. Also a model with
        published weights, ``"proteinmpnn.v_48_020"``: each chain alone, backbone only.
    sources, read, device, batch_residues, jobs
        See :func:`protgraph.inference.predict`.

    Returns
    -------
    Embeddings
        Values of the field that the model's head reads as ``h``, of any irreps; of a model with a decoder and published
        weights, the output of its encoder.

    Raises
    ------
    Interrupted
        On Ctrl-C, a KeyboardInterrupt; its attribute ``result`` has the files that were finished.
    """
    name = "" if isinstance(checkpoint, Checkpoint) else _recorded_name(checkpoint)
    checkpoint = embedding_checkpoint(checkpoint)
    networks = [member.to(find_device(device)) for member in checkpoint.members]
    run = ModelRun(checkpoint, sources, read=read, jobs=jobs)
    embedded: list[_EmbeddedProtein] = []
    interruption: KeyboardInterrupt | None = None
    with ExitStack() as stack:
        where, *_ = [stack.enter_context(evaluation_mode(network)) for network in networks]

        def compute(members: list[GraphResult]) -> tuple[Tensor, tuple[Tensor, Tensor, Tensor]]:
            batch = collate([p.graph for p in members]).to(where)
            fields = [_embedded_fields(network, batch) for network in networks]
            vectors = [f[_field(network)] for f, network in zip(fields, networks, strict=True)]
            mean = torch.cat([fields[0]["proteins"].mean(h) for h in vectors], 1).float().cpu()
            descriptors = torch.zeros(len(members), 0)
            if checkpoint.training_set is not None:
                descriptors = describe_proteins(networks[0], fields[0], batch)
            return mean, (torch.cat(vectors, 1)[residue_nodes(batch)].float().cpu(), mean, descriptors)

        try:
            for members, (rows, mean, descriptors) in run.outputs(networks[0], compute, max_residues=batch_residues):
                run.checks.check_descriptors(members, descriptors)
                embedded += _separated(members, rows, mean)
        except KeyboardInterrupt as e:
            interruption = e
            last_file = embedded[-1].file if embedded else ""  # some of its chains may be missing
            embedded = [p for p in embedded if p.file != last_file]
    width = sum(network.fields[_field(network)].dim for network in networks)
    result = replace(
        _joined(embedded, width, run.failures),
        notes=run.notes,
        warnings=tuple(run.checks.warnings),
        checkpoint=name,
        model_digest=_digest(networks),
    )
    if interruption is not None:
        raise Interrupted(interruption, result) from interruption
    return result


def _separated(members: Sequence[GraphResult], rows: Tensor, means: Tensor) -> list[_EmbeddedProtein]:
    """Return the embeddings of each protein of a batch, from rows ``(N, C)`` of residues and means ``(P, C)``."""
    nodes = rows.split([len(p.residues) for p in members])
    proteins = zip(members, nodes, means, strict=True)
    return [_EmbeddedProtein(p.source, p.residues, p.chains, node, mean) for p, node, mean in proteins]


class _EmbeddedProtein(NamedTuple):
    """Embeddings of the residues ``(N, C)`` and of the protein ``(C,)``."""

    file: str
    residues: Residues
    chains: str
    node: Tensor
    protein: Tensor


def _joined(proteins: Sequence[_EmbeddedProtein], width: int, failures: list[Failure]) -> Embeddings:
    ids: list[str] = []
    for p in proteins:
        ids += p.residues.ids
    none = torch.empty(0, width)
    return Embeddings(
        tuple(p.file for p in proteins),
        tuple(p.residues.name for p in proteins),
        tuple(p.chains for p in proteins),
        ptr=np.cumsum([0, *(len(p.residues) for p in proteins)]),
        residues=np.array(ids, dtype=str),
        node=torch.cat([none, *(p.node for p in proteins)]).numpy(),
        protein=torch.cat([none, *(p.protein.unsqueeze(0) for p in proteins)]).numpy(),
        failures=failures,
    )


def embedding_checkpoint(checkpoint: str | Path | Checkpoint) -> Checkpoint:
    """Return a checkpoint of :func:`protgraph.load_checkpoint`, or one of a model with published weights by its name.

    Of published models with a decoder, the encoder is used: it reads the backbone of each chain. Models that predict
    from complete structures read the same for embeddings.

    Raises
    ------
    CheckpointError
        There is no such checkpoint.
    OptionError
        The published model reads unresolved residues, or parts of a protein that a file does not name, or it has no
        vectors of residues, only outputs.
    """
    name = str(checkpoint)
    if isinstance(checkpoint, Checkpoint) or name not in models or not as_model_spec(name).weights:
        return as_checkpoint(checkpoint)
    spec = as_model_spec(name)
    weights = published_weights(spec)
    model = with_weights(spec, weights)
    if _is_encoder(model):
        if model.plan.inserts_unresolved:
            raise OptionError(f"embed {name!r}: the model reads unresolved residues. Use another one of the family.")
        return Checkpoint(model, "inverse_folding", hidden=BACKBONE_ALONE, one_chain=True)
    if not weights.task:
        raise OptionError(
            f"embed {name!r}: its weights predict {weights.target.name!r} of a part of a protein, which its plugin "
            "selects in Python, not of files. Use a model of 'protgraph list trained_models'."
        )
    if not weights.has_vectors:
        raise OptionError(
            f"embed {name!r}: its head reads the outputs of its networks, and no vectors of residues. Run 'protgraph "
            f"predict {name}' for its predictions, or embed with a model of 'protgraph list trained_models'."
        )
    return as_checkpoint(name)


def _recorded_name(checkpoint: str | Path) -> str:
    """Return the name of a trained or published model, or the absolute path of a file."""
    name = str(checkpoint)
    return name if name.partition("[")[0] in trained_models or name in models else str(Path(checkpoint).resolve())


def _is_encoder(network: ProteinModel) -> bool:
    """Return True for published models with a decoder, of which the encoder is used."""
    return network.decoder is not None and bool(network.spec.weights)


def _field(network: ProteinModel) -> str:
    """Return the name of the embedded field."""
    if _is_encoder(network):
        return network.wires[-1].reads["h"]
    return network.spec.readout.get("h", "h")


def _embedded_fields(network: ProteinModel, batch: Data) -> dict[str, Any]:
    """Return all fields after the last layer, or before the decoder of a published model."""
    return network.embed_fields(network.fields_of(batch), stop=-1 if _is_encoder(network) else None)


def _digest(networks: Sequence[ProteinModel]) -> str:
    """Return the digest of a model, or that of the digests of all members."""
    digests = [digest_of_model(network) for network in networks]
    return digests[0] if len(digests) == 1 else hashlib.sha256("".join(digests).encode()).hexdigest()


EMBEDDINGS_VERSION = 1  # of .npz files; a later one is in their arrays "format_version" and "protgraph"
#: What zipfile and NumPy raise while they read a damaged file; nothing else runs where these are caught.
_DAMAGED = (
    *(BadZipFile, EOFError, struct.error, zlib.error),  # the archive is empty, cut or changed
    *(NotImplementedError, RuntimeError),  # an unknown compression, a member marked as encrypted
    *(KeyError, ValueError),  # an array is missing, or its header or data are wrong
    *(SyntaxError, AttributeError),  # the header of an array is no Python literal, or one of another type
    *(OverflowError, MemoryError),  # the shape in the header of an array is too large
)
_ARRAYS = ("ptr", "node", "protein")
_TEXTS = ("files", "names", "chains", "residues", "checkpoint", "model_digest")


@dataclass(frozen=True, eq=False, repr=False)
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
    checkpoint : str
        Name of the model, or absolute path of the checkpoint; "" if it was given as an object.
    model_digest : str
        SHA-256 of the model and its weights (:func:`digest_of_model`).
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
    checkpoint: str = ""
    model_digest: str = ""

    def __repr__(self) -> str:
        counts = f"{count_noun(len(self.node), 'residue')} of {count_noun(len(self.files), 'protein')}"
        failed = f", {count_noun(len(self.failures), 'failure')}" if self.failures else ""
        return f"Embeddings({counts}, {self.node.shape[1]} wide{failed})"

    def is_of(self, model: ProteinModel | Checkpoint) -> bool:
        """Return True if the embeddings are of this model, or of all members of a checkpoint, with these weights."""
        return self.model_digest == _digest(model.members if isinstance(model, Checkpoint) else [model])

    def write(self, path: str | Path) -> list[Path]:
        """Write an ``.npz`` or ``.parquet`` file, chosen by the suffix, and return the written files.

        An ``.npz`` file has every array under its name. A ``.parquet`` file has a row per residue (file, protein,
        chains, residue, vector), and ``<name>.protein.parquet`` a row per protein. Existing files are replaced.

        Raises
        ------
        OptionError
            The path has another suffix.
        """
        files = embedding_files(path)
        if len(files) == 1:
            with atomic_write(path) as temporary, temporary.open("wb") as file:
                np.savez(
                    file,
                    ptr=self.ptr,
                    node=self.node,
                    protein=self.protein,
                    files=np.array(self.files, dtype=str),
                    names=np.array(self.names, dtype=str),
                    chains=np.array(self.chains, dtype=str),
                    residues=np.array(self.residues, dtype=str),
                    checkpoint=np.array(self.checkpoint, dtype=str),
                    model_digest=np.array(self.model_digest, dtype=str),
                )
            return files
        count = np.diff(self.ptr)
        with atomic_write(files[0]) as residues, atomic_write(files[1]) as proteins:
            _write_parquet(residues, self._repeated(count) | {"residue": self.residues.tolist()}, self.node)
            _write_parquet(proteins, self._repeated(np.ones_like(count)) | {"residues": count.tolist()}, self.protein)
        return files

    def residue_table(self) -> ResultTable:
        """Return a row per residue: file, protein, chains, residue, and the vector."""
        identity = self._repeated(np.diff(self.ptr)) | {"residue": self.residues.tolist()}
        names = (*identity, *(f"v{i}" for i in range(self.node.shape[1])))
        rows = zip(*identity.values(), self.node.tolist(), strict=True)
        return ResultTable(names, [(*row[:-1], *row[-1]) for row in rows])

    @classmethod
    def read(cls, path: str | Path) -> Embeddings:
        """Read an ``.npz`` file of :meth:`write`; failures, notes and warnings are empty.

        Raises
        ------
        DatasetError
            The file cannot be read, or has other arrays.
        """
        failure = f"embeddings cannot be read: {str(path)!r}"
        hint = "Write the file with 'protgraph embed -o FILE.npz'."
        try:
            with np.load(path, allow_pickle=False) as file:
                version = int(file["format_version"]) if "format_version" in file else EMBEDDINGS_VERSION
                writer = str(file["protgraph"]) if "protgraph" in file else None
                where = f"embeddings {str(path)!r}"
                check_format_version(where, version, EMBEDDINGS_VERSION, writer=writer, error=DatasetError)
                arrays = {key: file[key] for key in (*_ARRAYS, *_TEXTS)}
        except DatasetError:
            raise
        except OSError as e:
            raise DatasetError(f"{failure} ({e.strerror or 'not an .npz file'}). {hint}") from e
        except _DAMAGED as e:
            raise DatasetError(f"{failure} (not an .npz file of embeddings). {hint}") from e
        return cls(
            files=tuple(arrays["files"].tolist()),
            names=tuple(arrays["names"].tolist()),
            chains=tuple(arrays["chains"].tolist()),
            ptr=arrays["ptr"],
            residues=arrays["residues"],
            node=arrays["node"],
            protein=arrays["protein"],
            failures=[],
            checkpoint=str(arrays["checkpoint"]),
            model_digest=str(arrays["model_digest"]),
        )

    def _repeated(self, count: np.ndarray) -> dict[str, list[str]]:
        """Return file, name and chains of each protein, repeated ``count`` ``(P,)`` times."""
        columns = {"file": self.files, "protein": self.names, "chains": self.chains}
        return {key: np.repeat(np.array(value, dtype=str), count).tolist() for key, value in columns.items()}


def embedding_files(path: str | Path) -> list[Path]:
    """Return the files of :meth:`Embeddings.write`: ``path``, and for ``.parquet`` also that of the proteins."""
    path = Path(path)
    if path.suffix not in (".npz", ".parquet"):
        raise OptionError(f"wrong suffix of embeddings: {str(path)!r}. Allowed: .npz, .parquet.")
    return [path] if path.suffix == ".npz" else [path, path.with_suffix(".protein.parquet")]


def digest_of_model(model: ProteinModel) -> str:
    """Return the SHA-256 of a model's spec, target and weights as 64 hexadecimal digits."""
    description = {"spec": model.spec.to_dict(), "target": repr(model.target)}
    checksum = hashlib.sha256(json.dumps(description, sort_keys=True).encode())
    for name, weight in sorted(model.state_dict().items()):
        checksum.update(f"\0{name}\0{weight.dtype}\0{tuple(weight.shape)}\0".encode())
        checksum.update(weight.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy())
    return checksum.hexdigest()


def _write_parquet(path: Path, columns: dict[str, list], vectors: np.ndarray) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    vector = pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), vectors.shape[1])
    pq.write_table(pa.table({**columns, "vector": vector}), path)
