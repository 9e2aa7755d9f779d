"""From structure and sequence files to residue arrays; numpy and biotite, no torch."""

from protgraph.structure.chemistry.alphabet import ALPHABET
from protgraph.structure.io.atom_array import from_atom_array, to_atom_array
from protgraph.structure.io.fasta import load_fasta
from protgraph.structure.io.load import Structure, load_structure
from protgraph.structure.io.loss_report import LossReport
from protgraph.structure.residues.clean import clean
from protgraph.structure.residues.residues import BACKBONE, Residues

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
