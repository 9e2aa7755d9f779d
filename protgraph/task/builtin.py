"""Built-in tasks of structures: secondary structure, binding, interface, inverse folding, B factor, denoising."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from protgraph.data.datasets.target import Target
from protgraph.structure.descriptors.dssp import dssp, three_states
from protgraph.structure.residues.alphabet import ALPHABET, UNKNOWN
from protgraph.task import metrics as m
from protgraph.task.input_masking import BACKBONE_ALONE, InputMasking, with_random_order
from protgraph.task.losses import binary_cross_entropy, cross_entropy, squared_error
from protgraph.task.task import Task

if TYPE_CHECKING:
    from protgraph.structure.residues.residues import Residues

__all__ = [
    "AMINO_ACIDS",
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

AMINO_ACIDS = tuple(ALPHABET[:UNKNOWN])


def residue_type(residues: Residues) -> np.ndarray:
    """Return the amino acid type of each residue, ``(N,)`` int64 of 20 classes; −1 for X."""
    return np.where(residues.aatype == UNKNOWN, -1, residues.aatype)


def secondary_structure(residues: Residues) -> np.ndarray:
    """Assign helix 0, strand 1 or coil 2 with DSSP over all chains present, ``(N,)`` int64.

    −1 where N, CA, C or O is missing.
    """
    place = {"H": 0, "E": 1, "C": 2, "-": -1}
    return np.array([place[state] for state in three_states(dssp(residues)).tolist()], np.int64)


def displacement(residues: Residues, seen: Residues) -> np.ndarray:
    """Compute the vector from the visible to the true position of each CA, ``(N, 1, 3)`` float32, Å."""
    return (residues.pos.astype(np.float64) - seen.pos)[:, None].astype(np.float32)


def standard_b_factor(residues: Residues) -> np.ndarray:
    """Compute ``(B - mean) / s.d.`` over the CA of each chain, ``(N, 1)`` float32; NaN if B is constant."""
    z = np.full((len(residues), 1), np.nan, np.float32)
    for chain in residues.chain_names:
        rows = residues.chain == chain
        b = residues.b_factor[rows].astype(np.float64)
        if b.std() > 1e-3:  # files give B with two decimals
            z[rows, 0] = (b - b.mean()) / b.std()
    return z


SECONDARY_STRUCTURE = Task(
    "secondary_structure",
    Target("secondary_structure", "node", "classification", 3, ("H", "E", "C")),
    cross_entropy,
    (m.accuracy, m.macro_f1),
    "accuracy",
    InputMasking(label_featurizers={"dssp", "dssp_hydrogen_bond"}),
    derive=secondary_structure,
    doc="Helix (DSSP H, G, I), strand (E, B) or coil of each residue, assigned by DSSP.",
)

LIGAND_BINDING = Task(
    "ligand_binding",
    Target("ligand_binding", "node", "multilabel", 1, ("ligand_binding",)),
    binary_cross_entropy,
    (m.auprc, m.auroc, m.mcc),
    "auprc",
    InputMasking(hidden={"ligands"}),
    doc="Residues with a heavy atom within 4.5 Å of a heavy atom of a ligand.",
)

INTERFACE = Task(
    "interface",
    Target("interface", "node", "multilabel", 1, ("interface",)),
    binary_cross_entropy,
    (m.auprc, m.auroc, m.mcc),
    "auprc",
    doc="Residues with a heavy atom within 5 Å of another protein chain, predicted from the residue's chain alone.",
)

INVERSE_FOLDING = Task(
    "inverse_folding",
    Target("inverse_folding", "node", "classification", len(AMINO_ACIDS), AMINO_ACIDS),
    cross_entropy,
    (m.perplexity, m.recovery, m.recovery_median, m.perplexity_mean, m.recovery_mean),
    "perplexity",
    InputMasking(hidden=BACKBONE_ALONE),
    InputMasking(hidden=BACKBONE_ALONE, visible_types=True, corrupt=with_random_order, causal=True),
    derive=residue_type,
    doc="Amino acid type of each residue, from the backbone alone. A model with a decoder also reads the types of the "
    "residues before it in a random order (teacher forcing); recovery is the fraction of correct most probable types.",
)

B_FACTOR = Task(
    "b_factor",
    Target("b_factor", "node", "regression", 1, ("b_factor",)),
    squared_error,
    (m.pearson, m.pearson_undefined, m.rmse, m.mae),
    "pearson",
    InputMasking(hidden={"b_factor"}),
    derive=standard_b_factor,
    doc="B factor of each CA, in standard deviations from the mean of its chain.",
)

STRUCTURE_DENOISING = Task(
    "structure_denoising",
    Target("structure_denoising", "node", "vectors", 1, ("CA",), unit="Å"),
    squared_error,
    (m.rmsd, m.lddt),
    "rmsd",
    InputMasking(noise=0.5),
    restore=displacement,
    doc="Vector from the noisy to the true position of each CA. Every atom has Gaussian noise of 0.5 Å in x, y and z, "
    "with a fixed seed per protein.",
)
