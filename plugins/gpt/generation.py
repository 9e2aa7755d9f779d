"""Autoregressive generation of sequences with a causal model."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import torch
from protgraph_plugins.gpt.sampling import check_sampling, sample_classes
from torch import Tensor
from torch_geometric.data import Batch

from protgraph.argument_types import check_arguments
from protgraph.checkpoint import Checkpoint, as_checkpoint
from protgraph.data.graph import collate, make_batch
from protgraph.errors import CheckpointError, MissingCoordinatesError, OptionError, WiringError
from protgraph.evaluation import evaluation_mode
from protgraph.file_io import atomic_write
from protgraph.labels import raise_on_leak
from protgraph.model import find_device
from protgraph.structure.io import FastaRecord
from protgraph.structure.residues import ALPHABET, UNKNOWN
from protgraph.validation import Seed, check_value

__all__ = ["GeneratedSequence", "generate", "write_generated"]
ENTRY_POINTS = {"protgraph.functions": {"generate": "generate"}}

_CHECKED = 24  # residues of the causality check
_LINE = 80  # letters per line of FASTA


@dataclass(frozen=True)
class GeneratedSequence:
    """A generated sequence.

    Parameters
    ----------
    sequence : str
        One-letter codes, including the prompt.
    prompt : int
        Number of residues from the prompt.
    log_prob : float
        Mean over the generated residues of ``log p(residue | earlier residues)``, nats, at temperature 1 without
        truncation.
    """

    sequence: str
    prompt: int
    log_prob: float

    @property
    def perplexity(self) -> float:
        """``exp(-log_prob)``: the equivalent number of equally probable residues."""
        return math.exp(-self.log_prob)


@check_arguments("checkpoint", "n", "length", "prompt", "temperature", "top_k", "top_p", "device")
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
    device: str = "auto",
    on_residue: Callable[[int], None] | None = None,
) -> list[GeneratedSequence]:
    """Sample sequences from a causal model.

    Parameters
    ----------
    checkpoint : str, Path or Checkpoint
        A model trained on ``next_residue``.
    n : int
        Number of sequences.
    length : int
        Residues per sequence (one chain), including the prompt.
    prompt : str
        One-letter codes at the start of every sequence.
    temperature, top_k, top_p
        See :func:`protgraph_plugins.gpt.sampling_probabilities`.
    seed : int
        Seed of the sampling.
    device : str
        "auto" uses a GPU if there is one.
    on_residue : callable, optional
        Called with the number of residues after each step.

    Raises
    ------
    OptionError
        An option is out of range, or the prompt has an unknown letter.
    CheckpointError, MissingCoordinatesError, LeakError
        The model does not predict residue types, needs a structure, or is not causal.
    WiringError
        The model reads edges.
    """
    check_value(seed, Seed, path="seed")
    types = _prompt(prompt, n, length)
    check_sampling(temperature=temperature, top_k=top_k, top_p=top_p, classes=UNKNOWN)
    checkpoint = as_checkpoint(checkpoint)
    _check(checkpoint, length)
    generator = torch.Generator().manual_seed(seed)
    model = checkpoint.single_model("generate").to(find_device(device))
    unknown_proteins = _proteins(checkpoint, types)
    total = torch.zeros(n, dtype=torch.float64)
    with evaluation_mode(model) as where:
        for position in range(len(prompt), length):
            # The model is causal, so it needs the residues up to the next one only.
            batch = _first_nodes(_with_types(checkpoint, unknown_proteins, types), position + 1).to(where)
            logits = model(batch)["logits"].unflatten(0, (n, position + 1))[:, -1]  # (n, C)
            chosen = sample_classes(logits, generator=generator, temperature=temperature, top_k=top_k, top_p=top_p)
            total += logits.double().log_softmax(-1).gather(1, chosen[:, None]).squeeze(1).cpu()
            types[:, position] = chosen.cpu()
            if on_residue is not None:
                on_residue(position + 1)
    num_generated = length - len(prompt)
    generated = []
    for row, log_probability in zip(types.tolist(), total.tolist(), strict=True):
        text = "".join(ALPHABET[t] for t in row)
        generated.append(GeneratedSequence(text, len(prompt), log_probability / num_generated))
    return generated


def write_generated(
    path: str | Path,
    samples: Sequence[GeneratedSequence],
    *,
    name: str,
    settings: Mapping[str, object] = MappingProxyType({}),
) -> Path:
    """Write sequences as FASTA with number, length, prompt, log-probability, perplexity and settings in the header.

    An existing file is replaced.
    """
    path = Path(path)
    options = "".join(f" {key}={value}" for key, value in settings.items() if value is not None)
    with atomic_write(path) as temporary, temporary.open("w", encoding="utf-8") as file:
        for number, s in enumerate(samples, 1):
            figures = f"log_prob={s.log_prob:.6f} perplexity={s.perplexity:.6f}"
            file.write(f">{name}_{number} length={len(s.sequence)} prompt={s.prompt} {figures}{options}\n")
            file.writelines(f"{s.sequence[i : i + _LINE]}\n" for i in range(0, len(s.sequence), _LINE))
    return path


def _prompt(prompt: str, n: int, length: int) -> Tensor:
    """Encode the prompt followed by unknown residues, ``(n, length)`` int64."""
    if n < 1:
        raise OptionError(f"generate: n = {n}. It must be 1 or larger.")
    wrong = next((i for i, letter in enumerate(prompt.upper()) if letter not in ALPHABET), None)
    if wrong is not None:
        raise OptionError(f"generate: letter {wrong + 1} of the prompt is {prompt[wrong]!r}. Allowed: {ALPHABET}.")
    if length <= len(prompt):
        raise OptionError(f"generate: length = {length}. It must exceed the {len(prompt)} residues of the prompt.")
    codes = [ALPHABET.index(letter) for letter in prompt.upper()]
    return torch.tensor([codes + (length - len(codes)) * [UNKNOWN]]).repeat(n, 1)


def _check(checkpoint: Checkpoint, length: int) -> None:
    """Raise unless the model predicts residue types from earlier residues only."""
    model = checkpoint.model
    if model.target.level != "node" or model.target.names != tuple(ALPHABET[:UNKNOWN]):
        raise CheckpointError(
            f"The checkpoint was trained on {checkpoint.task!r}, which does not predict residue types.\n"
            "Train a causal model: protgraph train gpt --data pdb_core --task next_residue"
        )
    if model.needs_coordinates is not None:
        raise MissingCoordinatesError(
            f"{model.needs_coordinates} of model {model.spec.name!r} needs a structure, but new sequences have none."
        )
    generator = torch.Generator().manual_seed(0)
    types = torch.randint(0, UNKNOWN, (1, min(length, _CHECKED)), generator=generator)
    batch = _with_types(checkpoint, _proteins(checkpoint, types), types)
    raise_on_leak(model, batch, why="generation requires")


def _first_nodes(batch: Batch, length: int) -> Batch:
    """Return the first ``length`` nodes of each protein of a batch of equally long ones, with their fields."""
    if "edge_index" in batch:
        raise WiringError("generation needs graphs without edges. Use a model that reads no edges.")
    n = batch.num_graphs
    names = [name for name in batch.keys() if name != "batch" and batch.is_node_attr(name)]  # noqa: SIM118
    tensors = {name: batch[name].unflatten(0, (n, -1))[:, :length].flatten(0, 1) for name in names}
    sizes = (length,) * n
    return make_batch(tensors, sizes=sizes, rows=dict.fromkeys(names, sizes), attributes={})


def _proteins(checkpoint: Checkpoint, types: Tensor) -> Batch:
    """Create n chains of L unknown residues for types ``(n, L)``."""
    n, length = types.shape
    residues = FastaRecord("", "generated", 1, 1, ((1, ALPHABET[UNKNOWN] * length),)).residues()
    return collate([checkpoint.model.plan.precompute(residues.hide(checkpoint.hidden))] * n)


def _with_types(checkpoint: Checkpoint, proteins: Batch, types: Tensor) -> Batch:
    """Add the types ``(n, L)`` to the proteins, if the model was trained with visible types."""
    if not checkpoint.visible_types and "residue_type" in checkpoint.hidden:
        return proteins
    proteins = copy.copy(proteins)
    proteins.aatype = types.flatten()
    return proteins
