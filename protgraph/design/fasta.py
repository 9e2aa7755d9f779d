"""Designs as FASTA, in the layout of the published program, and sequences to score."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from protgraph import __version__
from protgraph.design.run import Design, letters_of
from protgraph.design.wish import chosen_chains
from protgraph.errors import OptionError
from protgraph.structure import ALPHABET

__all__ = ["read_sequences", "records", "write_fasta"]


def records(design: Design, *, model: str, temperature: float, seed: int) -> Iterator[tuple[str, str]]:
    """Header and sequence of the structure's own sequence, then of every design; chains that are designed, with "/".

    The first header says ``score``, ``global_score`` (mean of ``-log p`` over designed residues, and over all),
    ``fixed_chains``, ``designed_chains``, ``model_name``, ``seed``; the others ``T``, ``sample``, ``score``,
    ``global_score``, ``seq_recovery``.
    """
    residues = design.residues
    chosen, others = chosen_chains(residues, design.designed)
    yield (
        f"{residues.name}, score={design.native_score:.4f}, global_score={design.native_global_score:.4f}, "
        f"fixed_chains={others}, designed_chains={chosen}, model_name={model}, protgraph={__version__}, seed={seed}",
        _joined(design, residues.aatype, chosen),
    )
    for number, types in enumerate(design.aatype):
        yield (
            f"T={temperature:g}, sample={number + 1}, score={design.score[number]:.4f}, "
            f"global_score={design.global_score[number]:.4f}, seq_recovery={design.recovery[number]:.4f}",
            _joined(design, types, chosen),
        )


def _joined(design: Design, types: np.ndarray, chains: Iterable[str]) -> str:
    return "/".join(letters_of(types[design.residues.chain == name]) for name in chains)


def write_fasta(path: str | Path, found: Iterable[tuple[str, str]]) -> Path:
    """Write headers and sequences, one line each."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f">{header}\n{sequence}\n" for header, sequence in found), encoding="utf-8")
    return path


def read_sequences(path: str | Path) -> list[tuple[str, np.ndarray]]:
    """Names and types ``(N,)`` of the records of a FASTA file; "/" between chains is passed over.

    Raises
    ------
    OptionError
        No FASTA file, or a letter that is none of ACDEFGHIKLMNPQRSTVWYX.
    """
    text = Path(path).read_text(encoding="utf-8")
    before, *blocks = text.split(">")
    if before.strip() or not blocks:
        raise OptionError(f"{path} is no FASTA file: it begins with no '>'")
    found = []
    for block in blocks:
        header, _, rest = block.partition("\n")
        letters = "".join(rest.split()).replace("/", "").upper()
        odd = sorted(set(letters) - set(ALPHABET))
        if odd:
            raise OptionError(f"{path}, record {header!r}: {odd[0]!r} is no residue type: {ALPHABET}")
        found.append((header.strip(), np.array([ALPHABET.index(letter) for letter in letters], np.int64)))
    return found
