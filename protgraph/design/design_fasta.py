"""Designs as FASTA, in the layout of the published program, and sequences to score."""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from protgraph import __version__
from protgraph.design.result import Design
from protgraph.design.spec import split_chains, one_letter_codes
from protgraph.errors import OptionError
from protgraph.file_io import atomic_write
from protgraph.structure import ALPHABET, Residues

__all__ = ["parse_sequence", "sequences_by_protein", "read_design_sequences", "design_records", "write_design_fasta"]


#: What stands before a protein's designs.
_NATIVE = re.compile(r"(.+?), score=.*designed_chains=")


def design_records(design: Design, *, model: str, seed: int) -> Iterator[tuple[str, str]]:
    """Header and sequence of the structure's own sequence, then of every design; chains that are designed, with "/".

    The first header says ``score``, ``global_score`` (mean of ``-log p`` over designed residues, and over all),
    ``fixed_chains``, ``designed_chains``, ``model_name``, ``seed``; the others ``T``, ``sample``, ``score``,
    ``global_score``, ``seq_recovery`` and, where designed residues lie about ligands, ``ligand_confidence``, which is
    exp of minus their score. Samples are counted from 1 at each temperature.
    """
    residues = design.residues
    chosen, others = split_chains(residues, design.designed)
    yield (
        f"{residues.name}, score={design.native_score:.4f}, global_score={design.native_global_score:.4f}, "
        f"fixed_chains={others}, designed_chains={chosen}, model_name={model}, protgraph={__version__}, seed={seed}",
        _joined(design, residues.aatype, chosen),
    )
    recovery, number, before = design.recovery, 0, None
    for copy, types in enumerate(design.aatype):
        temperature = float(design.temperature[copy])
        number = number + 1 if temperature == before else 1
        before = temperature
        confidence = design.ligand_confidence[copy]
        about = "" if np.isnan(confidence) else f", ligand_confidence={confidence:.4f}"
        yield (
            f"T={temperature:g}, sample={number}, score={design.score[copy]:.4f}, "
            f"global_score={design.global_score[copy]:.4f}, seq_recovery={recovery[copy]:.4f}{about}",
            _joined(design, types, chosen),
        )


def _joined(design: Design, types: np.ndarray, chains: Iterable[str]) -> str:
    return "/".join(one_letter_codes(types[design.residues.chain == name]) for name in chains)


def write_design_fasta(path: str | Path, found: Iterable[tuple[str, str]]) -> int:
    """Write headers and sequences, one line each, gzipped where the name ends in .gz; say how many.

    The file appears when all are written; without any, none does.
    """
    path, count = Path(path), 0
    with atomic_write(path) as temporary:
        with (gzip.open if path.suffix == ".gz" else open)(temporary, "wt", encoding="utf-8") as file:
            for header, sequence in found:
                file.write(f">{header}\n{sequence}\n")
                count += 1
        if not count:
            temporary.unlink()
    return count


def read_design_sequences(path: str | Path) -> list[tuple[str, str]]:
    """Headers and letters, upper case, of the records of a FASTA file, gzipped or not; "/" between chains stays.

    Raises
    ------
    OptionError
        No FASTA file, a record without a letter, or a letter that is none of ACDEFGHIKLMNPQRSTVWYX.
    """
    before, *blocks = re.split(r"^>", _text(path), flags=re.MULTILINE)
    if before.strip():
        raise OptionError(f"{path} is no FASTA file: it begins with no '>'")
    if not blocks:
        raise OptionError(f"{path}: there is no sequence in it")
    found = []
    for block in blocks:
        header, _, rest = block.partition("\n")
        header, letters = header.strip(), "".join(rest.split()).upper().removesuffix("*")
        odd = sorted(set(letters) - set(ALPHABET) - {"/"})
        if odd:
            why = "a residue that is not in the structure has no letter" if odd[0] in "-." else ALPHABET
            raise OptionError(f"{path}, record {header!r}: {odd[0]!r} is no residue type: {why}")
        if not letters.replace("/", ""):
            raise OptionError(f"{path}, record {header!r} has no sequence")
        found.append((header, letters))
    return found


def sequences_by_protein(
    sequences: Sequence[tuple[str, str]], proteins: Collection[str]
) -> Sequence[tuple[str, str]] | dict[str, list[tuple[str, str]]]:
    """Sequences by protein: from its own, with the first header of :func:`design_records`, up to the next such header.

    Sequences before the first such header are for all proteins; and all are, where no header is of one of them.
    """
    found: dict[str, list[tuple[str, str]]] = {}
    of_all: list[tuple[str, str]] = []
    behind = of_all
    for header, letters in sequences:
        if native := _NATIVE.match(header):
            behind = found.setdefault(native[1], [])
        behind.append((header, letters))
    if not set(found) & set(proteins):
        return sequences
    return {name: [*of_all, *found.get(name, ())] for name in proteins}


def _text(path: str | Path) -> str:
    try:
        content = Path(path).read_bytes()
        return (gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content).decode("utf-8-sig")
    except (OSError, EOFError, zlib.error) as e:
        raise OptionError(f"FASTA file {str(path)!r} cannot be read: {getattr(e, 'strerror', None) or e}") from e
    except UnicodeDecodeError as e:
        raise OptionError(f"{path} is no FASTA file: it is no text") from e


def parse_sequence(residues: Residues, name: str, letters: str) -> np.ndarray:
    """``(N,)`` int64 types of a sequence for these residues, "/" between chains or nothing.

    Raises
    ------
    OptionError
        It has another length, or a chain of it has.
    """
    there = [int((residues.chain == chain).sum()) for chain in residues.chain_names]
    parts = [len(part) for part in letters.split("/")]
    whole = letters.replace("/", "")
    if len(whole) != len(residues) or (len(parts) > 1 and parts != there):
        told = ", ".join(f"{chain}: {n}" for chain, n in zip(residues.chain_names, there, strict=True))
        raise OptionError(
            f"sequence {name!r} has {' / '.join(map(str, parts))} residues; {residues.name} has {sum(there)} with a CA "
            f"({told}), which begin with {residues.sequence[:30]}"
        )
    return np.array([ALPHABET.index(letter) for letter in whole], np.int64)
