"""Vectors of the residues of proteins by several models in one pass, kept in files so that a run resumes."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from protgraph_plugins.baseline import Window
from protgraph_plugins.probes.backbone import complete_backbone
from protgraph_plugins.probes.heads import ProbeRows
from protgraph_plugins.probes.tasks import ProbeSplits
from protgraph_plugins.proteinmpnn import published_encoder
from protgraph_plugins.similarity import structural_letters

from protgraph import FieldSpec, build_model
from protgraph.checkpoint import Checkpoint
from protgraph.data.datasets import Example, align, linked_groups
from protgraph.data.graph import field
from protgraph.errors import DatasetError, OptionError, ProtgraphError
from protgraph.featurize import Failure, ProteinRequest
from protgraph.file_io import atomic_write
from protgraph.inference import digest_of_model, embed, embedding_checkpoint
from protgraph.ops import Proteins
from protgraph.registry import tasks
from protgraph.structure import Residues
from protgraph.structure.residues import ALPHABET
from protgraph.task import BACKBONE_ALONE

__all__ = [
    "ModelVectors",
    "ProteinFiles",
    "VectorSource",
    "WindowVectors",
    "check_names",
    "proteinmpnn_vectors",
    "random_vectors",
    "split_rows",
]

_LETTERS = "acdefghiklmnpqrstvwy"  # 3Di, in the order of biotite's alphabet
_WINDOW = 7  # positions to each side
_CHUNK = 4096  # residues that are read before models run
_CHAINS = 100_000  # larger than the number of chains of a protein


class VectorSource(ABC):
    """A way to compute vectors of residues.

    Parameters
    ----------
    name : str
        Name in tables.
    key : str
        Name in files; differs between models with other weights.
    """

    name: str
    key: str

    @abstractmethod
    def compute(self, proteins: Mapping[str, Residues]) -> dict[str, np.ndarray]:
        """Return what is stored of each protein, ``(N, …)``; NaN for residues without a vector."""

    @abstractmethod
    def vectors(self, stored: np.ndarray, chain: np.ndarray, seq_pos: np.ndarray) -> np.ndarray:
        """Return the vectors ``(N, D)`` float32 of one protein from what is stored of it."""


class ModelVectors(VectorSource):
    """Vectors of :func:`protgraph.embed` of a model, rounded to float16.

    Parameters
    ----------
    checkpoint : Checkpoint
    """

    def __init__(self, name: str, checkpoint: Checkpoint) -> None:
        self.name, self.checkpoint = name, checkpoint
        digests = [digest_of_model(member) for member in checkpoint.members]
        content = repr((digests, checkpoint.reads, sorted(checkpoint.hidden), checkpoint.visible_types))
        self.key = f"{_file_name(name)}-{hashlib.sha256(content.encode()).hexdigest()[:12]}"

    @classmethod
    def open(cls, name: str) -> ModelVectors:
        """Return the vectors of a trained model by its name, or of a checkpoint file."""
        return cls(Path(name).stem if Path(name).is_file() else name, embedding_checkpoint(name))

    def compute(self, proteins: Mapping[str, Residues]) -> dict[str, np.ndarray]:
        """Return float16 vectors ``(N, D)``."""
        requests = [ProteinRequest(name, name, read=partial(_same, residues)) for name, residues in proteins.items()]
        # one protein at a time: the last bits depend on the batch, which differs in a run that was interrupted
        result = embed(self.checkpoint, requests, batch_residues=1)
        width = result.node.shape[1]
        vectors = {}
        for name, residues in proteins.items():
            vectors[name] = np.full((len(residues), width), np.nan, np.float16)
        # a protein may come as several chains
        rows_of_id = {name: _row_of_id(residues) for name, residues in proteins.items()}
        for number, name in enumerate(result.files):
            rows = slice(int(result.ptr[number]), int(result.ptr[number + 1]))
            places = [rows_of_id[name][key] for key in result.residues[rows].tolist()]
            vectors[name][places] = result.node[rows]
        return vectors

    def vectors(self, stored: np.ndarray, chain: np.ndarray, seq_pos: np.ndarray) -> np.ndarray:
        """Return the stored vectors as float32."""
        return stored.astype(np.float32)


class WindowVectors(VectorSource):
    """Letters of the residues at ±7 positions of the chain, one-hot: residue types, or 3Di letters of the backbone."""

    def __init__(self, name: str) -> None:
        self.name = self.key = name
        self.size = len(ALPHABET) if name == "residue_type" else len(_LETTERS)
        specs = {name: field(name) for name in ("seq_pos", "chain", "proteins")}
        specs["h"] = FieldSpec("h", "node", f"{self.size}x0e", doc="one-hot letter")
        self._window = Window(specs, size=_WINDOW)

    def compute(self, proteins: Mapping[str, Residues]) -> dict[str, np.ndarray]:
        """Return the number of the letter of each residue, ``(N,)`` uint8; the number of letters if it has none."""
        if self.name == "residue_type":
            return {name: residues.aatype.astype(np.uint8) for name, residues in proteins.items()}
        return {name: _structural_numbers(residues) for name, residues in proteins.items()}

    def vectors(self, stored: np.ndarray, chain: np.ndarray, seq_pos: np.ndarray) -> np.ndarray:
        """Return the one-hot letters of all 15 positions, ``(N, 15 L)``; 0 where there is no residue."""
        one_hot = torch.zeros(len(stored), self.size + 1)
        one_hot[torch.arange(len(stored)), torch.from_numpy(stored.astype(np.int64))] = 1
        fields = {
            "h": one_hot[:, : self.size],
            "seq_pos": torch.from_numpy(seq_pos),
            "chain": torch.from_numpy(chain),
            "proteins": Proteins(torch.zeros(len(stored), dtype=torch.int64), (len(stored),)),
        }
        return self._window(fields)["h"].numpy()


def proteinmpnn_vectors(*, one_chain: bool) -> ModelVectors:
    """Return the vectors of ProteinMPNN's encoder ``v_48_020``, whose weights are part of the package.

    ``one_chain`` reads each chain alone; otherwise all chains of a protein together, as in its training.
    """
    checkpoint = Checkpoint(published_encoder(), "inverse_folding", hidden=BACKBONE_ALONE, one_chain=one_chain)
    return ModelVectors("proteinmpnn.v_48_020", checkpoint)


def random_vectors(model: ModelVectors) -> ModelVectors:
    """Return the vectors of the network of a model with its initial, random weights."""
    first = model.checkpoint.model
    network = build_model(replace(first.spec, weights=""), first.target, seed=0)
    checkpoint = replace(model.checkpoint, model=network, others=(), calibration=None, training_set=None)
    return ModelVectors("random_weights", checkpoint)


def _structural_numbers(residues: Residues) -> np.ndarray:
    """Return the number of the 3Di letter of each residue, ``(N,)`` uint8."""
    numbers = np.full(len(residues), len(_LETTERS), np.uint8)
    for name in residues.chain_names:
        rows = residues.chain == name
        letters = structural_letters(residues.backbone[rows])
        if letters:
            numbers[rows] = [_LETTERS.index(letter) for letter in letters.lower()]
    return numbers


def _row_of_id(residues: Residues) -> dict[str, int]:
    return {key: row for row, key in enumerate(residues.ids)}


def _same(residues: Residues) -> Residues:
    return residues


def _file_name(name: str) -> str:
    return "".join(c if c.isalnum() or c in "-_." else "_" for c in name)


# --- files ---------------------------------------------------------------------------------------------------------


class ProteinFiles:
    """Vectors and labels of the proteins of a task, in one file per protein.

    Parameters
    ----------
    folder : Path
    splits : ProbeSplits
    sources : sequence of VectorSource

    Attributes
    ----------
    failures : list of Failure
        Proteins that could not be read.
    """

    def __init__(self, folder: Path, splits: ProbeSplits, sources: Sequence[VectorSource]) -> None:
        self.splits, self.sources = splits, sources
        self.folder = folder / _file_name(f"{splits.dataset.name}-{splits.dataset.version}")
        self.failures: list[Failure] = []

    def path(self, example: Example) -> Path:
        """Return the file of an example."""
        return self.folder / f"{_file_name(example.id)}.npz"

    def compute(self, report: Callable[[Example], None]) -> None:
        """Compute the vectors that no file has; each structure is read once for all models."""
        examples = [example for members in self.splits.examples.values() for example in members]
        for chunk in self._chunks(examples, report):
            computed: dict[str, dict[str, np.ndarray]] = {protein.example.id: {} for protein in chunk}
            for source in self.sources:
                inputs: dict[str, Residues] = {}
                for protein in chunk:
                    if source.key not in protein.stored:
                        inputs[protein.example.id] = complete_backbone(protein.residues.hide("b_factor"))
                for name, values in source.compute(inputs).items():
                    computed[name][source.key] = values
            for protein in chunk:
                arrays = protein.stored | self._labels(protein) | computed[protein.example.id]
                with atomic_write(self.path(protein.example)) as temporary, temporary.open("wb") as file:
                    np.savez(file, **arrays)
                report(protein.example)

    def read(self, example: Example) -> dict[str, np.ndarray]:
        """Return the arrays of an example; empty if it has no file."""
        path = self.path(example)
        if not path.is_file():
            return {}
        with np.load(path, allow_pickle=False) as file:
            return {key: file[key] for key in file.files}

    def _chunks(self, examples: Sequence[Example], report: Callable[[Example], None]) -> Iterator[list[_ReadExample]]:
        """Read the examples with a missing array, and yield some at a time."""
        needed = {self._label_key, *(source.key for source in self.sources)}
        chunk: list[_ReadExample] = []
        for example in examples:
            stored = self.read(example)
            if needed <= stored.keys():
                report(example)
                continue
            try:
                residues = self.splits.dataset.read(example)
            except ProtgraphError as e:
                self.failures.append(Failure.of(example.path, example.id, e))
                report(example)
                continue
            chunk.append(_ReadExample(example, residues, stored))
            if sum(len(protein.residues) for protein in chunk) >= _CHUNK:
                yield chunk
                chunk = []
        if chunk:
            yield chunk

    @property
    def _label_key(self) -> str:
        return f"y.{self.splits.task}"

    def _labels(self, protein: _ReadExample) -> dict[str, np.ndarray]:
        """Return labels, places in the chain, and whether a residue has a backbone."""
        task, residues = self.splits.task, protein.residues
        labels = self.splits.dataset.labels(task, protein.example)
        y = tasks.get(task).labels(residues) if labels is None else align(labels, residues, strict=False)
        return {
            self._label_key: y,
            "chain": residues.chain_number,
            "seq_pos": residues.seq_pos,
            "has_backbone": complete_backbone(residues).backbone_mask.all(1),
        }


class _ReadExample(NamedTuple):
    example: Example
    residues: Residues  # as in the file
    stored: dict[str, np.ndarray]


# --- rows ----------------------------------------------------------------------------------------------------------


def split_rows(files: ProteinFiles, split: str) -> dict[str, ProbeRows]:
    """Return the vectors of a split by each source, all on the same residues or proteins.

    These are the residues with N, CA, C and O, a known label, and a vector of every model. A task of whole proteins
    has the mean over such residues.

    Raises
    ------
    DatasetError
        There is no such residue.
    """
    proteins: list[_UsableRows] = []
    for example in files.splits.examples[split]:
        stored = files.read(example)
        usable = _usable_rows(files, example, stored) if stored else None  # without a file it is one of the failures
        if usable is not None:
            proteins.append(usable)
    if not proteins:
        raise DatasetError(
            f"dataset {files.splits.dataset.name!r}, split {split!r}: no residue has N, CA, C, O and a label. "
            "Models of the backbone have no vectors of it."
        )
    sizes = torch.tensor([len(protein.y) for protein in proteins])
    number = torch.repeat_interleave(torch.arange(len(proteins)), sizes)
    chain = torch.from_numpy(np.concatenate([protein.chain for protein in proteins]))
    y = torch.from_numpy(np.concatenate([protein.y for protein in proteins]))
    names = tuple(protein.example.id for protein in proteins)
    clusters = tuple(linked_groups([files.splits.dataset.links(protein.example) for protein in proteins]))
    rows = {}
    for source in files.sources:
        vectors = np.concatenate([protein.vectors[source.name] for protein in proteins])
        rows[source.name] = ProbeRows(vectors, y, number, chain + _CHAINS * number, names, clusters)
    return rows


class _UsableRows(NamedTuple):
    example: Example
    y: np.ndarray  # (R,) or (R, 1)
    chain: np.ndarray  # (R,)
    vectors: dict[str, np.ndarray]  # source → (R, D)


def _usable_rows(files: ProteinFiles, example: Example, stored: Mapping[str, np.ndarray]) -> _UsableRows | None:
    """Return the rows of a protein that every model has; None without any."""
    chain, y = stored["chain"], stored[f"y.{files.splits.task}"]
    vectors: dict[str, np.ndarray] = {}
    has_vectors = stored["has_backbone"].copy()
    for source in files.sources:
        vectors[source.name] = source.vectors(stored[source.key], chain, stored["seq_pos"])
        has_vectors &= np.isfinite(vectors[source.name]).all(1)
    is_known = y >= 0 if y.dtype.kind == "i" else ~np.isnan(y).any(-1)
    if not has_vectors.any() or not is_known.any():
        return None
    if files.splits.target.level == "graph":
        means = {name: values[has_vectors].mean(0, keepdims=True) for name, values in vectors.items()}
        return _UsableRows(example, y, np.zeros(1, np.int64), means)
    rows = has_vectors & is_known
    if not rows.any():
        return None
    return _UsableRows(example, y[rows], chain[rows], {name: values[rows] for name, values in vectors.items()})


def check_names(sources: Sequence[VectorSource]) -> None:
    """Raise :class:`OptionError` if two models have one name."""
    names = [source.name for source in sources]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise OptionError(f"bench probes: two models are named {repeated[0]!r}. Rename one of the checkpoint files.")
