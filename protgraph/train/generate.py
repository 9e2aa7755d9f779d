"""Sequences from a causal model, residue after residue, each drawn with the probabilities that the model gives it."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import torch
from torch import Tensor
from torch_geometric.data import Batch

from protgraph.data.graph.protein_graph import collate
from protgraph.errors import CheckpointError, MissingCoordinatesError, OptionError
from protgraph.model.build import ProteinModel
from protgraph.model.incremental import IncrementalState, first_nodes, incremental_step
from protgraph.nn.sampling import check_sampling, sample_classes
from protgraph.structure.io.fasta import FastaRecord
from protgraph.structure.residues.alphabet import ALPHABET, UNKNOWN
from protgraph.train.causality_check import raise_on_leak
from protgraph.train.checkpoint import Checkpoint, as_checkpoint
from protgraph.train.config import find_device
from protgraph.train.evaluate import evaluation_mode

__all__ = ["GeneratedSequence", "generate", "write_generated"]

_TRIED = 24  # residues on which causality is tried
_LINE = 80  # letters a line of FASTA


@dataclass(frozen=True)
class GeneratedSequence:
    """One sequence that a model made.

    Parameters
    ----------
    sequence : str
        One-letter codes, the prompt included.
    prompt : int
        How many of its residues were given.
    log_prob : float
        Mean over the generated residues of ``log p(residue | those before)``, nats: the model's own probability,
        whatever temperature and cuts it was drawn with.
    """

    sequence: str
    prompt: int
    log_prob: float

    @property
    def perplexity(self) -> float:
        """``exp(-log_prob)``: among how many residues, equally probable, the model chose."""
        return math.exp(-self.log_prob)


def generate(
    checkpoint: str | Path | Checkpoint,
    *,
    n: int = 8,
    length: int = 120,
    prompt: str = "",
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    seed: int = 0,
    cache: bool = True,
    device: str = "auto",
    on_residue: Callable[[int], None] | None = None,
) -> list[GeneratedSequence]:
    """Draw sequences from a causal model.

    Parameters
    ----------
    checkpoint : str, Path or Checkpoint
        Of a model trained on ``next_residue``.
    n : int
        Sequences.
    length : int
        Residues of each, the prompt included: one chain.
    prompt : str
        One-letter codes that every sequence begins with.
    temperature, top_k, top_p
        See :func:`protgraph.nn.sampling.sampling_probabilities`.
    seed : int
        The same one gives the same sequences.
    cache : bool
        Keep keys and values of the residues so far, so that a step costs as much as there are; else all is worked out
        again at each. The logits are the same: in float64 to 1e-12, in float32 to 1e-5.
    device : str
        "auto" takes a GPU if there is one.
    on_residue : callable, optional
        Given the number of residues of each sequence so far, after each step.

    Raises
    ------
    OptionError
        An option is impossible, or the prompt holds what is no residue.
    CheckpointError, MissingCoordinatesError, LeakError
        The model tells no residue types, needs a structure, or sees later residues.
    WiringError
        The model reads edges; or a layer cannot go on from earlier residues, and ``cache=False`` does without.
    """
    types = _prompt(prompt, n, length)
    check_sampling(temperature=temperature, top_k=top_k, top_p=top_p, classes=UNKNOWN)
    checkpoint = as_checkpoint(checkpoint)
    _check(checkpoint, length)
    generator = torch.Generator().manual_seed(seed)
    model, whole = checkpoint.model.to(find_device(device)), _proteins(checkpoint, types)
    total, progress = torch.zeros(n, dtype=torch.float64), None
    with evaluation_mode(model) as where:
        for place in range(len(prompt), length):
            batch = first_nodes(_shown(checkpoint, whole, types), place + 1).to(where)
            logits, progress = _next(model, batch, progress, cache=cache)
            chosen = sample_classes(logits, generator=generator, temperature=temperature, top_k=top_k, top_p=top_p)
            total += logits.double().log_softmax(-1).gather(1, chosen[:, None]).squeeze(1).cpu()
            types[:, place] = chosen.cpu()
            if on_residue is not None:
                on_residue(place + 1)
    sequences = ["".join(ALPHABET[t] for t in row) for row in types.tolist()]
    return [GeneratedSequence(s, len(prompt), p / (length - len(prompt))) for s, p in zip(sequences, total.tolist(), strict=True)]


def write_generated(
    path: str | Path, samples: Sequence[GeneratedSequence], *, name: str, settings: Mapping[str, object] = MappingProxyType({})
) -> Path:
    """Write samples as FASTA, each headed by its number, length, prompt, log-probability, perplexity and settings."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    told = "".join(f" {key}={value}" for key, value in settings.items() if value is not None)
    with path.open("w", encoding="utf-8") as file:
        for number, s in enumerate(samples, 1):
            figures = f"log_prob={s.log_prob:.6f} perplexity={s.perplexity:.6f}"
            file.write(f">{name}_{number} length={len(s.sequence)} prompt={s.prompt} {figures}{told}\n")
            file.writelines(f"{s.sequence[i : i + _LINE]}\n" for i in range(0, len(s.sequence), _LINE))
    return path


def _prompt(prompt: str, n: int, length: int) -> Tensor:
    """``(n, length)`` int64: the prompt's types, then unknown ones."""
    if n < 1:
        raise OptionError(f"n={n}: how many sequences to make is 1 or more")
    odd = next((i for i, letter in enumerate(prompt.upper()) if letter not in ALPHABET), None)
    if odd is not None:
        raise OptionError(f"prompt: letter {odd + 1}, {prompt[odd]!r}, is no residue; those are {ALPHABET}")
    if length <= len(prompt):
        raise OptionError(f"length={length}: it counts the prompt's {len(prompt)} residues, and one has to be made")
    given = [ALPHABET.index(letter) for letter in prompt.upper()]
    return torch.tensor([given + (length - len(given)) * [UNKNOWN]]).repeat(n, 1)


def _check(checkpoint: Checkpoint, length: int) -> None:
    """That the model tells residues from those before."""
    model = checkpoint.model
    if model.target.level != "node" or model.target.names != tuple(ALPHABET[:UNKNOWN]):
        raise CheckpointError(
            f"the checkpoint was trained on {checkpoint.task!r}, which does not ask for residue types.\n"
            "Train a causal model: protgraph train gpt --data pdb_core --task next_residue"
        )
    if model.needs_coordinates is not None:
        raise MissingCoordinatesError(
            f"{model.needs_coordinates} of model {model.spec.name!r} needs a structure, which new sequences have not"
        )
    generator = torch.Generator().manual_seed(0)
    tried = torch.randint(0, UNKNOWN, (1, min(length, _TRIED)), generator=generator)
    batch = _shown(checkpoint, _proteins(checkpoint, tried), tried)
    raise_on_leak(model, batch, why="going from residue to residue asks")


def _next(model: ProteinModel, batch: Batch, progress: IncrementalState | None, *, cache: bool) -> tuple[Tensor, IncrementalState | None]:
    """Logits ``(n, C)`` of the last residue of each sequence."""
    if cache:
        logits, progress = incremental_step(model, batch, progress)
    else:
        logits = model(batch)["logits"]
    return logits.view(batch.num_graphs, -1, logits.size(1))[:, -1], progress


def _proteins(checkpoint: Checkpoint, types: Tensor) -> Batch:
    """As many chains of unknown residues, and as long, as types ``(n, L)`` has."""
    n, length = types.shape
    residues = FastaRecord("", "generated", 1, 1, ((1, ALPHABET[UNKNOWN] * length),)).residues()
    return collate([checkpoint.model.plan.precompute(residues.hide(checkpoint.hidden))] * n)


def _shown(checkpoint: Checkpoint, proteins: Batch, types: Tensor) -> Batch:
    """The proteins with their types ``(n, L)``, if the model saw types in training."""
    if not checkpoint.visible_types and "residue_type" in checkpoint.hidden:
        return proteins
    shown = copy.copy(proteins)
    shown.aatype = types.flatten()
    return shown
