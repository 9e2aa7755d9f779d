"""Structure and sequence files as residue arrays, with descriptors and neighbor search; NumPy and biotite, no torch."""

from protgraph.structure.io import (
    ParsedFile,
    Reader,
    ReadOptions,
    fetch,
    from_atom_array,
    load_fasta,
    load_structure,
    to_atom_array,
)
from protgraph.structure.residues import (
    ALPHABET,
    BACKBONE,
    GAP,
    THREE_LETTER,
    Alignment,
    Ligands,
    LossReport,
    Residues,
    Structure,
    clean,
)
from protgraph.structure.vectors import unit

__all__ = [
    "ALPHABET",
    "BACKBONE",
    "GAP",
    "THREE_LETTER",
    "Alignment",
    "Ligands",
    "LossReport",
    "ParsedFile",
    "ReadOptions",
    "Reader",
    "Residues",
    "Structure",
    "clean",
    "fetch",
    "from_atom_array",
    "load_fasta",
    "load_structure",
    "to_atom_array",
    "unit",
]
