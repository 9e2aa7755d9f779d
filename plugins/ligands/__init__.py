"""Complexes: the ligand of a structure and the residues around it, and proteins joined with ligands in a table."""

from __future__ import annotations

from protgraph.lazy_names import lazy_names

# Public name → module that exports it.
_HOME = {
    "LigandAtoms": "protgraph_plugins.ligands.ligand_table",
    "LigandDistance": "protgraph_plugins.ligands.ligand_distance",
    "join_ligand": "protgraph_plugins.ligands.ligand_table",
    "read_ligand_table": "protgraph_plugins.ligands.ligand_table",
    "select_ligand": "protgraph_plugins.ligands.ligand_distance",
    "write_complex": "protgraph_plugins.ligands.ligand_table",
}

__all__ = [*_HOME]

__getattr__, __dir__ = lazy_names(__name__, _HOME)
