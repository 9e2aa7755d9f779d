"""Vectors of the residues of proteins by several models in one pass, kept in files so that a run resumes."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from protgraph_plugins.baseline.window import Window
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
        vectors = {name: np.full((len(one), width), np.nan, np.float16) for name, one in proteins.items()}
        # a protein may come as several chains
        rows_of_id = {name: {key: i for i, key in enumerate(one.ids)} for name, one in proteins.items()}
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
            computed: dict[str, dict[str, np.ndarray]] = {one.example.id: {} for one in chunk}
            for source in self.sources:
                lacking = [one for one in chunk if source.key not in one.stored]
                proteins = {one.example.id: complete_backbone(one.residues.hide("b_factor")) for one in lacking}
                for name, values in source.compute(proteins).items():
                    computed[name][source.key] = values
            for one in chunk:
                arrays = one.stored | self._labels(one) | computed[one.example.id]
                with atomic_write(self.path(one.example)) as temporary, temporary.open("wb") as file:
                    np.savez(file, **arrays)
                report(one.example)

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
            if sum(len(one.residues) for one in chunk) >= _CHUNK:
                yield chunk
                chunk = []
        if chunk:
            yield chunk

    @property
    def _label_key(self) -> str:
        return f"y.{self.splits.task}"

    def _labels(self, one: _ReadExample) -> dict[str, np.ndarray]:
        """Return labels, places in the chain, and whether a residue has a backbone."""
        task, residues = self.splits.task, one.residues
        labels = self.splits.dataset.labels(task, one.example)
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
    is_protein_task = files.splits.target.level == "graph"
    task = files.splits.task
    examples, labels, chains = [], [], []
    vectors: dict[str, list[np.ndarray]] = {source.name: [] for source in files.sources}
    for example in files.splits.examples[split]:
        stored = files.read(example)
        if not stored:
            continue  # it is one of the failures
        chain, y = stored["chain"], stored[f"y.{task}"]
        of_sources = [source.vectors(stored[source.key], chain, stored["seq_pos"]) for source in files.sources]
        usable = stored["has_backbone"].copy()
        for values in of_sources:
            usable &= np.isfinite(values).all(1)
        is_known = y >= 0 if y.dtype.kind == "i" else ~np.isnan(y).any(-1)
        rows = usable if is_protein_task else usable & is_known
        if not rows.any() or not is_known.any():
            continue
        examples.append(example)
        labels.append(y if is_protein_task else y[rows])
        chains.append(np.zeros(1, np.int64) if is_protein_task else chain[rows])
        for source, values in zip(files.sources, of_sources, strict=True):
            used = values[rows]
            vectors[source.name].append(used.mean(0, keepdims=True) if is_protein_task else used)
    if not examples:
        raise DatasetError(
            f"dataset {files.splits.dataset.name!r}, split {split!r}: no residue has N, CA, C, O and a label. "
            "Models of the backbone have no vectors of it."
        )
    sizes = torch.tensor([len(y) for y in labels])
    protein = torch.repeat_interleave(torch.arange(len(labels)), sizes)
    chain_number = torch.from_numpy(np.concatenate(chains)) + 100_000 * protein
    clusters = linked_groups([files.splits.dataset.links(example) for example in examples])
    shared: dict[str, Any] = {
        "y": torch.from_numpy(np.concatenate(labels)),
        "protein": protein,
        "chain": chain_number,
        "names": tuple(example.id for example in examples),
        "clusters": tuple(clusters),
    }
    return {name: ProbeRows(np.concatenate(parts), **shared) for name, parts in vectors.items()}


def check_names(sources: Sequence[VectorSource]) -> None:
    """Raise :class:`OptionError` if two models have one name."""
    names = [source.name for source in sources]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise OptionError(f"bench probes: two models are named {repeated[0]!r}. Rename one of the checkpoint files.")
