"""Fields of context atoms: the atoms of ligands, ions and nucleotides nearest to each residue.

Each field has one row per residue with k atoms, nearest first. Widths are for 25 atoms, the default.
"""

from __future__ import annotations

from protgraph import FieldSpec, register_field

__all__ = [
    "CONTEXT_DIRECTION",
    "CONTEXT_ELEMENT",
    "CONTEXT_GROUP",
    "CONTEXT_MASK",
    "CONTEXT_PAIR_RBF",
    "CONTEXT_PERIOD",
    "CONTEXT_POS",
    "CONTEXT_RBF",
    "num_pairs",
]


def num_pairs(k: int) -> int:
    """Return the number of pairs (a, b), a ≤ b, of k atoms."""
    return k * (k + 1) // 2


def _category(name: str, classes: int, doc: str) -> FieldSpec:
    spec = FieldSpec(name, "node", "25x0e", "int64", shape=(None,), classes=classes, chiral=True, doc=doc)
    return register_field(spec)


# All are chiral: a reflection moves the virtual CB relative to the atoms, and with it the nearest atoms.
CONTEXT_POS = register_field(
    FieldSpec(
        "context_pos",
        "node",
        "point",
        unit="Å",
        shape=(None, 3),
        chiral=True,
        doc="ligand atoms nearest to the virtual CB, nearest first; CA for missing atoms",
    )
)
CONTEXT_ELEMENT = _category("context_element", 119, "atomic number of each atom; 0: missing")
CONTEXT_GROUP = _category("context_group", 19, "group of its element, 1 to 18; 0: missing")
CONTEXT_PERIOD = _category("context_period", 8, "period of its element, 1 to 7; 0: missing")
CONTEXT_MASK = register_field(
    FieldSpec(
        "context_mask", "node", "25x0e", "bool", shape=(None,), chiral=True, doc="True for atoms, False for padding"
    )
)
CONTEXT_RBF = register_field(
    FieldSpec(
        "context_rbf",
        "node",
        "2000x0e",
        shape=(None, None),
        chiral=True,
        doc="radial bases of the distances from N, CA, C, O, CB to each context atom",
    )
)
CONTEXT_DIRECTION = register_field(
    FieldSpec(
        "context_direction",
        "node",
        "+".join(25 * ["3x0e+1x0o"]),
        shape=(None, 4),
        chiral=True,
        doc="azimuth (cos, sin) and elevation (cos, sin) of each context atom in the frame of N, CA, C",
    )
)
CONTEXT_PAIR_RBF = register_field(
    FieldSpec(
        "context_pair_rbf",
        "node",
        f"{num_pairs(25) * 16}x0e",
        shape=(None, None),
        chiral=True,
        doc="radial bases of the distances between context atoms a ≤ b of each residue, row-major",
    )
)
