# Written by tools/stubs.py.
from protgraph_plugins.ligands.ligand_distance import LigandDistance as LigandDistance, select_ligand as select_ligand
from protgraph_plugins.ligands.ligand_table import (
    LigandAtoms as LigandAtoms,
    join_ligand as join_ligand,
    read_ligand_table as read_ligand_table,
    write_complex as write_complex,
)
