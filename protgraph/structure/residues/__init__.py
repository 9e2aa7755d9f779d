"""Data model: `Structure`, `Residues`, `Ligands`, cleaning, and the report of what was left out."""

from protgraph.structure.residues.alignment import GAP, Alignment
from protgraph.structure.residues.alphabet import ALPHABET, THREE_LETTER, UNKNOWN, aatype, residue_kind
from protgraph.structure.residues.atoms import ATOM37, ELEMENTS, NODE_TYPES, NodeAtoms, atom37, nodes_of
from protgraph.structure.residues.chain_breaks import CA_BOND, PEPTIDE_BOND, chain_segments, linked_to_next
from protgraph.structure.residues.clean import clean
from protgraph.structure.residues.duplicates import Deduplicated, resolve_duplicates
from protgraph.structure.residues.identity import by_appearance, residue_ids
from protgraph.structure.residues.ligands import Ligands, gather_ligands
from protgraph.structure.residues.loss_report import LossReport
from protgraph.structure.residues.residues import BACKBONE, HIDEABLE, Residues
from protgraph.structure.residues.structure import Structure, residue_starts, select_chains

__all__ = [
    "ALPHABET",
    "ATOM37",
    "BACKBONE",
    "CA_BOND",
    "ELEMENTS",
    "GAP",
    "HIDEABLE",
    "NODE_TYPES",
    "PEPTIDE_BOND",
    "THREE_LETTER",
    "UNKNOWN",
    "Alignment",
    "Deduplicated",
    "Ligands",
    "LossReport",
    "NodeAtoms",
    "Residues",
    "Structure",
    "aatype",
    "atom37",
    "by_appearance",
    "chain_segments",
    "clean",
    "gather_ligands",
    "linked_to_next",
    "nodes_of",
    "residue_ids",
    "residue_kind",
    "residue_starts",
    "resolve_duplicates",
    "select_chains",
]
