"""Complexes: structures of proteins joined with ligands that are in a table."""

from __future__ import annotations

from protgraph_plugins.ligands.ligand_table import LigandAtoms, join_ligand, read_ligand_table, write_complex

__all__ = ["LigandAtoms", "join_ligand", "read_ligand_table", "write_complex"]
