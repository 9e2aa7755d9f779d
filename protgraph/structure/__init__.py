"""From structure and sequence files to residue arrays; numpy and biotite, no torch."""

from protgraph.structure.alphabet import ALPHABET
from protgraph.structure.clean import clean
from protgraph.structure.exchange import from_atom_array, to_atom_array
from protgraph.structure.fasta import load_fasta
from protgraph.structure.io import Structure, load_structure
from protgraph.structure.report import LossReport
from protgraph.structure.residue import BACKBONE, Residues

__all__ = [
    "ALPHABET",
    "BACKBONE",
    "LossReport",
    "Residues",
    "Structure",
    "clean",
    "from_atom_array",
    "load_fasta",
    "load_structure",
    "to_atom_array",
]
