"""Sequences and structures of all chains of a dataset."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from protgraph_plugins.similarity.structure_pairs import ChainTrace

from protgraph.data import Dataset, Example
from protgraph.errors import ProtgraphError
from protgraph.featurize import Failure
from protgraph.structure import Residues

__all__ = ["ChainSequences", "entry_of", "read_chain_sequences"]

_ENTRY = re.compile(r"(?:pdb_0000|pdb)?([1-9][a-z0-9]{3})(?![a-z0-9])", re.IGNORECASE)
_PREDICTED = re.compile(r"(AF-[A-Z0-9]+)-F\d+", re.IGNORECASE)


@dataclass(frozen=True)
class ChainSequences:
    """Chains of the examples of a dataset.

    Parameters
    ----------
    examples : tuple of Example
        Examples that could be read.
    example : tuple of int
        Example of each chain.
    chains : tuple of str
        Id of each chain.
    sequences : tuple of str
        One-letter codes of each chain.
    failures : tuple of Failure
        Examples that could not be read.
    traces : tuple of ChainTrace
        Structure of each chain, without residues for one of a FASTA file; empty if structures were not asked for.
    """

    examples: tuple[Example, ...]
    example: tuple[int, ...]
    chains: tuple[str, ...]
    sequences: tuple[str, ...]
    failures: tuple[Failure, ...] = ()
    traces: tuple[ChainTrace, ...] = ()

    def name(self, chain: int) -> str:
        """Return the name of a chain, e.g. "1fqj:A"."""
        example = self.examples[self.example[chain]]
        return example.id if example.chains == (self.chains[chain],) else f"{example.id}:{self.chains[chain]}"


def read_chain_sequences(
    dataset: Dataset,
    examples: Sequence[Example],
    report: Callable[[int, int], None] | None = None,
    *,
    structures: bool = False,
) -> ChainSequences:
    """Read the sequence of every chain."""
    used: list[Example] = []
    example_of_chain: list[int] = []
    chains: list[str] = []
    sequences: list[str] = []
    failures: list[Failure] = []
    traces: list[ChainTrace] = []
    for number, example in enumerate(examples, 1):
        try:
            residues = dataset.read(example)
        except (ProtgraphError, OSError, ValueError) as e:
            failures.append(Failure.of(example.path, example.id, e))
        else:
            for chain, sequence in _by_chain(residues).items():
                example_of_chain.append(len(used))
                chains.append(chain)
                sequences.append(sequence)
                if structures:
                    traces.append(_trace(residues, chain))
            used.append(example)
        if report is not None:
            report(number, len(examples))
    return ChainSequences(
        tuple(used), tuple(example_of_chain), tuple(chains), tuple(sequences), tuple(failures), tuple(traces)
    )


def _trace(residues: Residues, chain: str) -> ChainTrace:
    if not residues.has_coordinates:
        return ChainTrace(np.zeros((0, 3), np.float32))
    backbone = np.where(residues.backbone_mask[..., None], residues.backbone, np.nan)
    return ChainTrace.of_backbone(backbone[residues.chain == chain])


def _by_chain(residues: Residues) -> dict[str, str]:
    letters = np.array(list(residues.sequence))
    return {name: "".join(letters[residues.chain == name]) for name in residues.chain_names}


def entry_of(example: Example) -> str | None:
    """Return the PDB or AlphaFold DB entry that the name of an example or of its file begins with.

    Examples
    --------
    >>> entry_of(Example("1abc_A", "1abc_A.pdb", None, "train")), entry_of(Example("mine", "mine.pdb", None, "train"))
    ('1abc', None)
    """
    for name in (example.id, example.path.name):
        if found := _PREDICTED.match(name):
            return found[1].upper()
        if found := _ENTRY.match(name):
            return found[1].lower()
    return None
