"""Fields written by the featurizers of ProteinMPNN."""

from __future__ import annotations

from protgraph import FieldSpec, register_field

__all__ = ["ATOM_PAIR_RBF", "CA_ORIENTATION", "CA_PAIR_RBF", "CB", "CHAIN_RANK", "RELATIVE_POSITION"]

CB = register_field(FieldSpec("cb", "node", "point", unit="Å", chiral=True, doc="virtual CB; CA if N or C is missing"))
ATOM_PAIR_RBF = register_field(
    FieldSpec("atom_pair_rbf", "edge", "400x0e", chiral=True, doc="radial bases of the 25 distances of N, CA, C, O, CB")
)
RELATIVE_POSITION = register_field(
    FieldSpec(
        "relative_position",
        "edge",
        "0e",
        "int64",
        shape=(),
        classes=66,
        doc="seq_pos[i] - seq_pos[j] clipped to ±32, from 0; last: other chain",
    )
)
CA_PAIR_RBF = register_field(
    FieldSpec("ca_pair_rbf", "edge", "144x0e", doc="radial bases of the 9 distances of CA and those before and after")
)
CA_ORIENTATION = register_field(
    FieldSpec(
        "ca_orientation",
        "edge",
        "7x0e",
        chiral=True,
        doc="direction to j in the frame of i, quaternion of the rotation between their frames; frames of CA alone",
    )
)
CHAIN_RANK = register_field(
    FieldSpec("chain_rank", "node", "0e", "int64", shape=(), doc="rank of the chain's name among those of the protein")
)
