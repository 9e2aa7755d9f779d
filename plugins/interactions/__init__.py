"""Chemical interactions: bonds, hydrogen bonds, rings, charges and contacts between atoms, as edges of graphs."""

from __future__ import annotations

from protgraph.lazy_names import lazy_names

# Public name → module that exports it.
_HOME = {
    "aromatic_rings": "protgraph_plugins.interactions.functional_groups",
    "atom_mask": "protgraph_plugins.interactions.functional_groups",
    "close_atom_pairs": "protgraph_plugins.interactions.functional_groups",
    "covalent_bonds": "protgraph_plugins.interactions.bonds",
    "disulfide_bonds": "protgraph_plugins.interactions.bonds",
    "fixed_hydrogens": "protgraph_plugins.interactions.hbond",
    "has_guessed_bonds": "protgraph_plugins.interactions.bonds",
    "hydrogen_bonds": "protgraph_plugins.interactions.hbond",
    "ligand_bonds": "protgraph_plugins.interactions.bonds",
    "ligand_links": "protgraph_plugins.interactions.bonds",
    "peptide_bonds": "protgraph_plugins.interactions.bonds",
    "sidechain_mask": "protgraph_plugins.interactions.functional_groups",
    "vdw_contacts": "protgraph_plugins.interactions.contacts",
}

__all__ = list(_HOME)
__getattr__, __dir__ = lazy_names(__name__, _HOME)
