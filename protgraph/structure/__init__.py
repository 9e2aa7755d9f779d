"""From structure files to residue arrays; numpy and biotite, no torch."""

from protgraph.structure.alphabet import ALPHABET
from protgraph.structure.clean import clean
from protgraph.structure.io import Structure, load_structure
from protgraph.structure.report import LossReport
from protgraph.structure.residue import BACKBONE, Residues

__all__ = ["ALPHABET", "BACKBONE", "LossReport", "Residues", "Structure", "clean", "load_structure"]
