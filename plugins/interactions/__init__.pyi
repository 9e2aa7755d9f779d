# Written by tools/stubs.py.
from protgraph_plugins.interactions.bonds import (
    covalent_bonds as covalent_bonds,
    disulfide_bonds as disulfide_bonds,
    has_guessed_bonds as has_guessed_bonds,
    ligand_bonds as ligand_bonds,
    ligand_links as ligand_links,
    peptide_bonds as peptide_bonds,
)
from protgraph_plugins.interactions.contacts import vdw_contacts as vdw_contacts
from protgraph_plugins.interactions.functional_groups import (
    aromatic_rings as aromatic_rings,
    atom_mask as atom_mask,
    close_atom_pairs as close_atom_pairs,
    sidechain_mask as sidechain_mask,
)
from protgraph_plugins.interactions.hbond import fixed_hydrogens as fixed_hydrogens, hydrogen_bonds as hydrogen_bonds
