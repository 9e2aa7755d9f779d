"""Write designs as FASTA in the layout of ProteinMPNN, and read sequences to score.

Not biotite: ``FastaFile`` keeps only the last of several records with the same header, and the headers of designs of
several proteins are equal (biotite 1.6.0, 2026-11-22). Not :func:`protgraph.structure.io.read_fasta`, which requires
unique names.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
from protgraph_plugins.design.results import Design

import protgraph
from protgraph.errors import OptionError
from protgraph.file_io import atomic_write, gunzip
from protgraph.structure import ALPHABET, Residues

__all__ = [
    "parse_sequence",
    "sequence_letters",
    "sequences_by_protein",
    "read_design_sequences",
    "design_records",
    "write_design_fasta",
]

#: Header of the native sequence, which precedes the designs of a protein.
_NATIVE = re.compile(r"(.+?), score=.*designed_chains=")


def design_records(design: Design, *, model: str, seed: int) -> Iterator[tuple[str, str]]:
    """Yield header and sequence of the native sequence, then of every design.

    Sequences consist of the designed chains, separated by "/". The first header has ``score``, ``global_score`` (mean
    of ``-log p`` over designed residues and over all), ``fixed_chains``, ``designed_chains``, ``model_name`` and
    ``seed``. The others have ``T``, ``sample``, ``score``, ``global_score``, ``seq_recovery`` and, if designed residues
    are near ligands, ``ligand_confidence``, which is ``exp(-score)`` of these residues. Samples are counted from 1 at
    each temperature.
    """
    residues = design.residues
    designed, fixed = _split_chains(residues, design.designed)
    yield (
        f"{residues.name}, score={design.native_score:.4f}, global_score={design.native_global_score:.4f}, "
        f"fixed_chains={fixed}, designed_chains={designed}, model_name={model}, protgraph={protgraph.__version__}, "
        f"seed={seed}",
        sequence_letters(residues, residues.aatype, designed),
    )
    recovery, number, before = design.recovery, 0, None
    for copy, types in enumerate(design.aatype):
        temperature = float(design.temperature[copy])
        number = number + 1 if temperature == before else 1
        before = temperature
        confidence = design.ligand_confidence[copy]
        ligand = "" if np.isnan(confidence) else f", ligand_confidence={confidence:.4f}"
        yield (
            f"T={temperature:g}, sample={number}, score={design.score[copy]:.4f}, "
            f"global_score={design.global_score[copy]:.4f}, seq_recovery={recovery[copy]:.4f}{ligand}",
            sequence_letters(residues, types, designed),
        )


def _split_chains(residues: Residues, designed: np.ndarray) -> tuple[list[str], list[str]]:
    """Return the chains with designed residues, and the others, in order of appearance."""
    names = set(residues.chain[designed].tolist())
    return [c for c in residues.chain_names if c in names], [c for c in residues.chain_names if c not in names]


def sequence_letters(residues: Residues, types: np.ndarray, chains: Iterable[str]) -> str:
    """Return one-letter codes of types ``(N,)``, with "/" between chains."""
    letters = np.array(list(ALPHABET))[types]
    return "/".join("".join(letters[residues.chain == name]) for name in chains)


def write_design_fasta(path: str | Path, pairs: Iterable[tuple[str, str]]) -> int:
    """Write headers and sequences, one line each, and return their number.

    The file is gzipped if its name ends in .gz. An existing file is replaced, when everything is written, and not
    created without records.
    """
    path, count = Path(path), 0
    with atomic_write(path) as temporary:
        with (gzip.open if path.suffix == ".gz" else open)(temporary, "wt", encoding="utf-8") as file:
            for header, sequence in pairs:
                file.write(f">{header}\n{sequence}\n")
                count += 1
        if not count:
            temporary.unlink()
    return count


def read_design_sequences(path: str | Path) -> list[tuple[str, str]]:
    """Read headers and upper-case sequences of a FASTA file, gzipped or not; "/" between chains is kept.

    Raises
    ------
    OptionError
        The file is not FASTA, or a record is empty or has a letter outside ACDEFGHIKLMNPQRSTVWYX.
    """
    before, *blocks = re.split(r"^>", _read_text(path), flags=re.MULTILINE)
    if before.strip():
        raise OptionError(f"not a FASTA file: {path}. The first line must begin with '>'.")
    if not blocks:
        raise OptionError(f"no sequence in FASTA file: {path}.")
    sequences = []
    for block in blocks:
        header, _, rest = block.partition("\n")
        header, letters = header.strip(), "".join(rest.split()).upper().removesuffix("*")
        invalid = sorted(set(letters) - set(ALPHABET) - {"/"})
        if invalid:
            hint = "Remove gaps." if invalid[0] in "-." else f"Allowed letters: {ALPHABET}."
            raise OptionError(f"invalid residue type: {invalid[0]!r} ({path}, record {header!r}). {hint}")
        if not letters.replace("/", ""):
            raise OptionError(f"empty sequence: record {header!r} ({path}).")
        sequences.append((header, letters))
    return sequences


def sequences_by_protein(
    sequences: Sequence[tuple[str, str]], proteins: Collection[str]
) -> Sequence[tuple[str, str]] | dict[str, list[tuple[str, str]]]:
    """Group sequences by protein: a native header of :func:`design_records` starts the sequences of a protein.

    Sequences before the first native header belong to all proteins. If no native header names one of ``proteins``, all
    sequences belong to all proteins, and the input is returned.
    """
    by_name: dict[str, list[tuple[str, str]]] = {}
    common: list[tuple[str, str]] = []
    current = common
    for header, letters in sequences:
        if native := _NATIVE.match(header):
            current = by_name.setdefault(native[1], [])
        current.append((header, letters))
    if not set(by_name) & set(proteins):
        return sequences
    return {name: [*common, *by_name.get(name, ())] for name in proteins}


def _read_text(path: str | Path) -> str:
    try:
        content = Path(path).read_bytes()
        return (gunzip(content) if content.startswith(b"\x1f\x8b") else content).decode("utf-8-sig")
    except (OSError, EOFError, OverflowError, zlib.error) as e:
        raise OptionError(f"FASTA file not readable: {path} ({getattr(e, 'strerror', None) or e}).") from e
    except UnicodeDecodeError as e:
        raise OptionError(f"not a FASTA file: {path}. The content is not UTF-8 text.") from e


def parse_sequence(residues: Residues, name: str, letters: str) -> np.ndarray:
    """Return the types ``(N,)`` int64 of a sequence for these residues, with or without "/" between chains.

    Raises
    ------
    OptionError
        The sequence or one of its chains has another length.
    """
    lengths = [int((residues.chain == chain).sum()) for chain in residues.chain_names]
    part_lengths = [len(part) for part in letters.split("/")]
    joined = letters.replace("/", "")
    if len(joined) != len(residues) or (len(part_lengths) > 1 and part_lengths != lengths):
        per_chain = ", ".join(f"{chain}: {n}" for chain, n in zip(residues.chain_names, lengths, strict=True))
        raise OptionError(
            f"wrong length of sequence {name!r}: {' / '.join(map(str, part_lengths))} residues. {residues.name} has "
            f"{sum(lengths)} residues with a CA atom ({per_chain}), starting with {residues.sequence[:30]}."
        )
    return np.array([ALPHABET.index(letter) for letter in joined], np.int64)
