"""Reader of alignments: alone, as a protein without coordinates, and those of ``--alignment``."""

from __future__ import annotations

from pathlib import Path

from protgraph_plugins.alignment.formats import parse_alignment
from protgraph_plugins.alignment.library import SUFFIXES, align_protein, alignment_files, chain_types
from protgraph_plugins.alignment.matching import letters_of
from protgraph_plugins.alignment.search import search_alignments

from protgraph.errors import AlignmentError
from protgraph.structure import Alignment, Reader, Residues
from protgraph.structure.io import SEARCH, FileContent, read_fasta

__all__ = ["AlignmentReader"]

ENTRY_POINTS = {"protgraph.readers": {"alignment": "AlignmentReader"}}


class AlignmentReader(Reader):
    """Reader of a3m, a2m, aligned FASTA, Stockholm and Clustal files.

    A file alone is the protein of its first sequence. With ``--alignment``, proteins get the alignments of their
    chains; see :func:`protgraph_plugins.alignment.library.align_protein`.
    """

    sequence_suffixes = SUFFIXES

    def read_sequence(self, content: bytes, path: str) -> Residues:
        """Return the first sequence, named like the file, with its alignment."""
        file = parse_alignment(content, path)
        if len(file.lengths) > 1:
            raise AlignmentError(
                f"{path}: it has {len(file.lengths)} chains. Give it with --alignment, beside a structure or a FASTA "
                "file with a record per chain.",
                path=path,
            )
        name = Path(path.removesuffix(".gz")).stem
        fasta = f">{name}\n{letters_of(file.rows[0].tobytes())}\n"
        (record,) = read_fasta(FileContent(path, fasta.encode()))
        return record.residues().copy_with(alignment=Alignment(file.rows, file.deletions, path))

    def example(self, folder: Path) -> list[Path]:
        """Write an a3m file of two sequences."""
        file = folder / "example.a3m"
        file.write_text(">query\nMKTAYIAKQR\n>other\nMKsTAY-AKQK\n")
        return [file]

    def align(self, residues: Residues, path: str) -> Alignment:
        """Return the alignment of a protein, of a file, a folder, or a search in a FASTA file."""
        if path.startswith(SEARCH):
            files = search_alignments(chain_types(residues).values(), path.removeprefix(SEARCH))
        else:
            files = alignment_files(path)
        return align_protein(residues, files)

    def alignment_files(self, path: str) -> list[str]:
        """Return the files of alignments, or the FASTA file that is searched."""
        if path.startswith(SEARCH):
            return [path.removeprefix(SEARCH)]
        return alignment_files(path)
