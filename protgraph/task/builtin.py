"""The tasks that come with protgraph."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from protgraph.data.datasets.target import Target
from protgraph.structure.descriptors.dssp import dssp, three_states
from protgraph.structure.residues.alphabet import ALPHABET, UNKNOWN
from protgraph.task import metrics as m
from protgraph.task.input_masking import InputMasking, with_random_order
from protgraph.task.losses import binary_cross_entropy, cross_entropy, squared_error
from protgraph.task.task import Task

if TYPE_CHECKING:
    from protgraph.structure.residues.residues import Residues

__all__ = [
    "BACKBONE_ALONE",
    "B_FACTOR",
    "INTERFACE",
    "INVERSE_FOLDING",
    "LIGAND_BINDING",
    "SECONDARY_STRUCTURE",
    "STRUCTURE_DENOISING",
    "displacement",
    "residue_type",
    "secondary_structure",
    "standard_b_factor",
]
ENTRY_POINTS = {
    "protgraph.tasks": {
        "b_factor": "B_FACTOR",
        "interface": "INTERFACE",
        "inverse_folding": "INVERSE_FOLDING",
        "ligand_binding": "LIGAND_BINDING",
        "secondary_structure": "SECONDARY_STRUCTURE",
        "structure_denoising": "STRUCTURE_DENOISING",
    },
}

AMINO_ACIDS = ALPHABET[:UNKNOWN]
#: What is hidden so that nothing but N, CA, C and O is left.
BACKBONE_ALONE = frozenset({"residue_type", "sidechain", "b_factor"})


def residue_type(residues: Residues) -> np.ndarray:
    """Which of the 20 amino acids each residue is, ``(N,)`` int64; −1 for X."""
    return np.where(residues.aatype == UNKNOWN, -1, residues.aatype)


def secondary_structure(residues: Residues) -> np.ndarray:
    """Helix 0, strand 1 or coil 2 by DSSP of all chains that are there, ``(N,)`` int64.

    −1 where N, CA, C or O is missing.
    """
    place = {"H": 0, "E": 1, "C": 2, "-": -1}
    return np.array([place[state] for state in three_states(dssp(residues)).tolist()], np.int64)


def displacement(residues: Residues, seen: Residues) -> np.ndarray:
    """From where each CA is seen to where it is, ``(N, 1, 3)`` float32, Å."""
    return (residues.pos.astype(np.float64) - seen.pos)[:, None].astype(np.float32)


def standard_b_factor(residues: Residues) -> np.ndarray:
    """``(B - mean) / s.d.`` over the CA of each chain, ``(N, 1)`` float32, dimensionless; NaN where B is constant."""
    z = np.full((len(residues), 1), np.nan, np.float32)
    for chain in residues.chain_names:
        own = residues.chain == chain
        b = residues.b_factor[own].astype(np.float64)
        if b.std() > 1e-3:  # files give B with two decimals
            z[own, 0] = (b - b.mean()) / b.std()
    return z


SECONDARY_STRUCTURE = Task(
    "secondary_structure",
    Target("secondary_structure", "node", "classification", 3, ("H", "E", "C")),
    cross_entropy,
    (m.accuracy, m.macro_f1),
    "accuracy",
    InputMasking(label_featurizers={"dssp", "dssp_hydrogen_bond"}),
    derive=secondary_structure,
    doc="Helix (DSSP H, G, I), strand (E, B) or coil of each residue, as DSSP sees it.",
)

LIGAND_BINDING = Task(
    "ligand_binding",
    Target("ligand_binding", "node", "multilabel", 1, ("ligand_binding",)),
    binary_cross_entropy,
    (m.auprc, m.auroc, m.mcc),
    "auprc",
    InputMasking(hidden={"ligands"}),
    doc="Whether a heavy atom of the residue lies within 4.5 Å of a ligand's.",
)

INTERFACE = Task(
    "interface",
    Target("interface", "node", "multilabel", 1, ("interface",)),
    binary_cross_entropy,
    (m.auprc, m.auroc, m.mcc),
    "auprc",
    doc="Whether a heavy atom of the residue lies within 5 Å of another protein chain, told from its own chain alone.",
)

INVERSE_FOLDING = Task(
    "inverse_folding",
    Target("inverse_folding", "node", "classification", len(AMINO_ACIDS), tuple(AMINO_ACIDS)),
    cross_entropy,
    (m.perplexity, m.recovery, m.recovery_median, m.perplexity_mean, m.recovery_mean),
    "perplexity",
    InputMasking(hidden=BACKBONE_ALONE),
    InputMasking(hidden=BACKBONE_ALONE, visible_types=True, corrupt=with_random_order, causal=True),
    derive=residue_type,
    doc="The type of each residue, from the backbone alone. A model with a decoder is told the types before it "
    "besides, in a random order; its recovery is then the share of likeliest types that are right.",
)

B_FACTOR = Task(
    "b_factor",
    Target("b_factor", "node", "regression", 1, ("b_factor",)),
    squared_error,
    (m.pearson, m.pearson_undefined, m.rmse, m.mae),
    "pearson",
    InputMasking(hidden={"b_factor"}),
    derive=standard_b_factor,
    doc="The B factor of each CA, in standard deviations from the mean of its chain.",
)

STRUCTURE_DENOISING = Task(
    "structure_denoising",
    Target("structure_denoising", "node", "vectors", 1, ("CA",), unit="Å"),
    squared_error,
    (m.rmsd, m.lddt),
    "rmsd",
    InputMasking(noise=0.5),
    restore=displacement,
    doc="Where each CA was before every atom was moved by noise of 0.5 Å in x, y and z, the same for a protein each "
    "time: the vector back.",
)
