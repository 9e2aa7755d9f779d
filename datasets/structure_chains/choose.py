"""Choose the proteins of ``structure_chains``: run ``python -m protgraph_datasets.structure_chains.choose``.

It writes ``chains.tsv.gz`` and ``left_out.tsv`` into this folder. All registered datasets have to be prepared. The
search for homologs needs the extra ``mmseqs``.
"""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from protgraph_datasets.structure_chains.dataset import FOLDER, SOURCES, source_examples
from protgraph_plugins.published import write_tsv
from protgraph_plugins.similarity import HomologyRule, find_homologs, read_chain_sequences

from protgraph import registry
from protgraph.data.datasets import Dataset, Example
from protgraph.errors import DatasetError

__all__ = ["RULE", "Chain", "choose_proteins", "main"]

RULE = HomologyRule(identity=0.3, coverage=0.5, coverage_of="shorter")
SHORTEST, LONGEST = 30, 400  # residues of a protein, all chains together
#: Dataset and split → split of ``structure_chains``. These proteins are evaluated, and no training protein is a
#: homolog of one, because they are in held-out splits of their datasets.
EVALUATED = {("ligysis", "val"): "val", ("pdb_core", "test"): "test"}
MOST_EVALUATED = 120  # proteins of a split, the first ones of the dataset


class Chain(NamedTuple):
    """A chain of a protein.

    Parameters
    ----------
    dataset, protein, split : str
        Dataset, and id and split of the protein in it.
    sequence : str
        One-letter codes.
    """

    dataset: str
    protein: str
    split: str
    sequence: str

    @property
    def key(self) -> tuple[str, str]:
        """Dataset and id of the protein."""
        return self.dataset, self.protein


class Choice(NamedTuple):
    """Result of :func:`choose_proteins`.

    Parameters
    ----------
    chosen : list of (str, str)
        Dataset and id of the training proteins.
    too_long : dict of str to int
        Number of proteins of each dataset that are shorter or longer than allowed.
    related : dict of str to dict of str to int
        Dataset with held-out splits → dataset of the training protein → number of proteins with a homolog there.
    homologs : dict of str to int
        Number of proteins of each dataset with a homolog in any held-out split.
    """

    chosen: list[tuple[str, str]]
    too_long: dict[str, int]
    related: dict[str, dict[str, int]]
    homologs: dict[str, int]


def choose_proteins(candidates: Sequence[Chain], held_out: Sequence[Chain], *, engine: str | None = None) -> Choice:
    """Leave out proteins of an unsuitable length, and homologs of held-out chains.

    Parameters
    ----------
    candidates : sequence of Chain
        All chains of the training proteins.
    held_out : sequence of Chain
        All chains of validation and test splits.
    engine : str, optional
        Program of :func:`protgraph_plugins.similarity.find_homologs`.
    """
    residues = _residues(candidates)
    unsuitable = {key for key, length in residues.items() if not SHORTEST <= length <= LONGEST}
    suitable = [key for key in residues if key not in unsuitable]
    searched = [chain for chain in candidates if chain.key not in unsuitable]
    related = _related_proteins(searched, held_out, engine)
    left_out = set().union(*related.values())
    chosen = [key for key in suitable if key not in left_out]
    counts = {dataset: _count(proteins) for dataset, proteins in related.items()}
    return Choice(chosen, _count(unsuitable), counts, _count(left_out))


def _residues(chains: Sequence[Chain]) -> dict[tuple[str, str], int]:
    """Return the residues of each protein, of all its chains."""
    residues: dict[tuple[str, str], int] = {}
    for chain in chains:
        residues[chain.key] = residues.get(chain.key, 0) + len(chain.sequence)
    return residues


def _related_proteins(
    searched: Sequence[Chain], held_out: Sequence[Chain], engine: str | None
) -> dict[str, set[tuple[str, str]]]:
    """Return the proteins with a homolog in the held-out splits of each dataset."""
    sequences = [chain.sequence for chain in (*searched, *held_out)]
    groups = [0] * len(searched) + [1] * len(held_out)
    pairs = find_homologs(sequences, RULE, groups=groups, workers=2, engine=engine)
    related: dict[str, set[tuple[str, str]]] = {}
    # one chain of each pair is of the first group, whose numbers are smaller
    chains, partners = np.minimum(pairs.first, pairs.second), np.maximum(pairs.first, pairs.second)
    for chain, partner in zip(chains.tolist(), partners.tolist(), strict=True):
        dataset = held_out[partner - len(searched)].dataset
        related.setdefault(dataset, set()).add(searched[chain].key)
    return related


def main(folder: Path = FOLDER, engine: str = "mmseqs") -> None:
    """Read all datasets, choose, and write both tables into a folder; ``engine`` finds the homologs."""
    candidates: list[Chain] = []
    for name in SOURCES:
        training = [example for example in source_examples(name) if example.split == "train"]
        candidates += _chains(registry.datasets.create(name), training)
    held_out: list[Chain] = []
    for name in registry.datasets.names():
        if name != "structure_chains":
            held_out += _held_out(registry.datasets.create(name))
    choice = choose_proteins(candidates, held_out, engine=engine)
    rows = [(dataset, protein, "train") for dataset, protein in choice.chosen]
    _write_compressed(folder / "chains.tsv.gz", [("dataset", "id", "split"), *rows, *_evaluated(held_out)])
    _write_left_out(folder / "left_out.tsv", candidates, choice)


def _evaluated(held_out: Sequence[Chain]) -> Iterator[tuple[str, str, str]]:
    """Yield dataset, id and split of the proteins that are evaluated."""
    residues = _residues(held_out)
    for (dataset, split), own_split in EVALUATED.items():
        examples = [example for example in source_examples(dataset) if example.split == split]
        suitable = [example.id for example in examples if SHORTEST <= residues[dataset, example.id] <= LONGEST]
        for name in suitable[:MOST_EVALUATED]:
            yield dataset, name, own_split


def _chains(dataset: Dataset, examples: Sequence[Example]) -> list[Chain]:
    """Return the chains of examples."""
    read = read_chain_sequences(dataset, examples)
    if read.failures:
        raise DatasetError(f"{dataset.name}: {len(read.failures)} proteins cannot be read: {read.failures[0]}.")
    return [
        Chain(dataset.name, read.examples[number].id, read.examples[number].split, sequence)
        for number, sequence in zip(read.example, read.sequences, strict=True)
    ]


def _held_out(dataset: Dataset) -> list[Chain]:
    """Return the chains of all splits but train; of several variants of a structure, those of the first."""
    if not dataset.is_prepared:
        raise DatasetError(f"dataset {dataset.name!r} is not prepared. Run: protgraph data prepare {dataset.name}")
    examples: dict[object, Example] = {}
    for example in dataset.all_examples():
        if example.split != "train":
            examples.setdefault((example.path, example.chains), example)
    return _chains(dataset, list(examples.values()))


def _count(proteins: Iterable[tuple[str, str]]) -> dict[str, int]:
    """Return the number of proteins of each dataset."""
    return dict(Counter(dataset for dataset, _ in proteins))


def _write_left_out(path: Path, candidates: Sequence[Chain], choice: Choice) -> None:
    """Write a row for each source, and one for each dataset with held-out splits."""
    proteins = _count({chain.key for chain in candidates})
    rows = [("reason", *SOURCES)]
    rows.append(("training split", *_numbers(proteins)))
    rows.append((f"not {SHORTEST} to {LONGEST} residues", *_numbers(choice.too_long)))
    rows.append(("homolog in a held-out split", *_numbers(choice.homologs)))
    rows += [(f"homolog in {name}", *_numbers(counts)) for name, counts in sorted(choice.related.items())]
    rows.append(("used", *_numbers(_count(choice.chosen))))
    write_tsv(path, rows)


def _numbers(counts: Mapping[str, int]) -> list[str]:
    return [str(counts.get(name, 0)) for name in SOURCES]


def _write_compressed(path: Path, rows: Iterable[Sequence[str]]) -> None:
    """Write a table, compressed with gzip without a date, so that two runs write the same bytes."""
    lines = ["\t".join(row) + "\n" for row in rows]
    text = "".join(lines)
    path.write_bytes(gzip.compress(text.encode(), mtime=0))


if __name__ == "__main__":
    main()
