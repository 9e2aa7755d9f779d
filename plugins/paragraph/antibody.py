"""Binding loops of an antibody with IMGT numbering, and the features of Paragraph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import numpy as np
from annotated_types import Gt
from torch import Tensor

from protgraph import (
    EdgeFeaturizer,
    EdgeList,
    FieldSpec,
    Residues,
    StructureFeaturizer,
    TensorFeaturizer,
    register_field,
)
from protgraph.data import Conformity
from protgraph.errors import SelectionError
from protgraph.structure import ALPHABET

__all__ = ["AntibodyResidue", "EdgeNear", "EveryPair", "binding_loops"]
ENTRY_POINTS = {
    "protgraph.featurizers": {
        "antibody_residue": "AntibodyResidue",
        "edge_near": "EdgeNear",
        "every_pair": "EveryPair",
    },
}

#: First and last IMGT number of the three loops of each chain (Lefranc et al. 2003, doi:10.1016/S0145-305X(02)00039-3).
LOOPS = ((27, 38), (56, 65), (105, 117))
#: Additional residues on both sides of a loop.
AROUND = 2
#: One-letter codes sorted by three-letter name: the column order of Paragraph.
TYPES = "ARNDCQEGHILKMFPSTWYV"

RESIDUE = register_field(
    FieldSpec("antibody_residue", "node", "22x0e", doc="residue type, then heavy or light chain, one-hot")
)
NEAR = register_field(FieldSpec("edge_near", "edge", "1x0e", doc="1 if two residues are within a cutoff, else 0"))


def binding_loops(residues: Residues, *, heavy: str = "H", light: str = "L") -> Residues:
    """Select the residues of the six binding loops and up to two on both sides, heavy chain first.

    Parameters
    ----------
    residues : Residues
        An antibody with IMGT numbering.
    heavy, light : str
        Its chains; "" for a missing one.

    Raises
    ------
    SelectionError
        A chain does not exist, or no residue is in a loop.
    """
    names = [name for name in (heavy, light) if name]
    residues.chains(names)
    rows: list[int] = []
    for name in names:
        own_rows = np.flatnonzero(residues.chain == name)
        number = residues.res_id[own_rows]
        for first, last in LOOPS:
            inside = np.flatnonzero((number >= first) & (number <= last))
            if len(inside):
                low, high = max(inside[0] - AROUND, 0), inside[-1] + AROUND + 1
                near = (number[low:high] >= first - AROUND) & (number[low:high] <= last + AROUND)
                rows += own_rows[low:high][near].tolist()
    if not rows:
        raise SelectionError(f"no binding loop in chains {names} of {residues.name}. IMGT numbering is required.")
    return residues.select(np.isin(np.arange(len(residues)), rows))


class AntibodyResidue(StructureFeaturizer):
    """Residue type and heavy or light chain, one-hot.

    Parameters
    ----------
    heavy, light : str
        Names of the chains; residues of other chains are neither.

    Writes
    ------
    antibody_residue : (N, 22) float32, 22x0e, dimensionless
        Types sorted by three-letter name (X: all 0), then heavy, light.

    References
    ----------
    Chinery et al. 2023, doi:10.1093/bioinformatics/btac732, node features.
    """

    writes: ClassVar[tuple[str, ...]] = (RESIDUE.name,)
    needs_coordinates: ClassVar[bool] = False
    conformity: ClassVar[Conformity] = Conformity(options={"heavy": "H", "light": "L"})  # names that no test chain has

    def __init__(self, *, heavy: str = "H", light: str = "L") -> None:
        super().__init__()
        self.heavy, self.light = heavy, light

    def __call__(self, residues: Residues) -> dict[str, np.ndarray]:
        types = np.array([ALPHABET.index(letter) for letter in TYPES])
        one_hot = residues.aatype[:, None] == types  # (N, 20)
        kind = residues.chain[:, None] == np.array([self.heavy, self.light])
        return {RESIDUE.name: np.concatenate([one_hot, kind], 1).astype(np.float32)}


class EveryPair(EdgeFeaturizer):
    """Edges from every residue to every residue, including itself; ``complete`` has no self-loops.

    References
    ----------
    Chinery et al. 2023, doi:10.1093/bioinformatics/btac732: messages of all pairs, as in its program.
    """

    loops: ClassVar[bool] = True
    conformity: ClassVar[Conformity] = Conformity(
        expected_failures={
            "neighbor_order": "sources in the order of nodes: it needs no coordinates",
            "non_trivial": "every pair is an edge at any distance",
        }
    )
    needs_coordinates: ClassVar[bool] = False

    def __call__(self, residues: Residues) -> EdgeList:
        n = len(residues)
        target, source = np.divmod(np.arange(n * n), n)
        return EdgeList(source, target, n)


class EdgeNear(TensorFeaturizer):
    """1 if ``|x_j - x_i|`` is at most a cutoff and i ≠ j, else 0.

    Parameters
    ----------
    cutoff : float
        Å, inclusive.

    Reads
    -----
    pos : (N, 3), point, Å
    edges : the edges j → i

    Writes
    ------
    edge_near : (E, 1), 1x0e, dimensionless

    References
    ----------
    Chinery et al. 2023, doi:10.1093/bioinformatics/btac732, edges within 10 Å.
    """

    reads: ClassVar[tuple[str, ...]] = ("pos", "edges")
    writes: ClassVar[tuple[str, ...]] = (NEAR.name,)

    def __init__(self, *, cutoff: Annotated[float, Gt(0)] = 10.0) -> None:
        super().__init__()
        self.cutoff = cutoff

    def __call__(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        pos, edges = f["pos"], f["edges"]
        distance = (edges.source(pos) - edges.target(pos)).norm(dim=1)
        near = (distance <= self.cutoff) & (edges.index[0] != edges.index[1])
        return {NEAR.name: near[:, None].to(pos.dtype)}
