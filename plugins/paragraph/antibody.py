"""The binding loops of an antibody that is numbered after IMGT, and what Paragraph sees of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from torch import Tensor

from protgraph import (
    Conformity,
    EdgeFeaturizer,
    EdgeList,
    FieldSpec,
    Residues,
    StructureFeaturizer,
    TensorFeaturizer,
    register_field,
)
from protgraph.errors import OptionError, SelectionError

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
#: Residues on either side of a loop that are seen too.
AROUND = 2
#: Three-letter names sorted, as one-letter codes: the order of Paragraph's columns.
TYPES = "ARNDCQEGHILKMFPSTWYV"
ALPHABET = "ACDEFGHIKLMNPQRSTVWYX"

RESIDUE = register_field(
    FieldSpec("antibody_residue", "node", "22x0e", doc="residue type, then heavy or light chain, one-hot")
)
NEAR = register_field(FieldSpec("edge_near", "edge", "1x0e", doc="1 where two residues are near, 0 elsewhere"))


def binding_loops(residues: Residues, *, heavy: str = "H", light: str = "L") -> Residues:
    """The residues of the six loops and up to two on either side; heavy chain first.

    Parameters
    ----------
    residues : Residues
        Of an antibody whose numbers are IMGT's.
    heavy, light : str
        Its chains; "" where it has only one.

    Raises
    ------
    SelectionError
        No chain, or none of the loops.
    """
    names = [name for name in (heavy, light) if name]
    residues.chains(names)
    rows: list[int] = []
    for name in names:
        own = np.flatnonzero(residues.chain == name)
        number = residues.res_id[own]
        for first, last in LOOPS:
            inside = np.flatnonzero((number >= first) & (number <= last))
            if len(inside):
                low, high = max(inside[0] - AROUND, 0), inside[-1] + AROUND + 1
                near = (number[low:high] >= first - AROUND) & (number[low:high] <= last + AROUND)
                rows += own[low:high][near].tolist()
    if not rows:
        raise SelectionError(f"{residues.name}: chains {names} have no loop; are they numbered after IMGT?")
    return residues.select(np.isin(np.arange(len(residues)), rows))


class AntibodyResidue(StructureFeaturizer):
    """Residue type and kind of chain, one-hot.

    Parameters
    ----------
    heavy, light : str
        Names of the chains; a residue of another one is of neither kind.

    Writes
    ------
    antibody_residue : (N, 22) float32, 22x0e, dimensionless
        Types in the order of their three-letter names (X is 0 everywhere), then heavy, light.
    """

    writes: ClassVar[tuple[str, ...]] = (RESIDUE.name,)
    needs_coordinates: ClassVar[bool] = False

    def __init__(self, *, heavy: str = "H", light: str = "L") -> None:
        super().__init__()
        self.heavy, self.light = heavy, light

    def __call__(self, residues: Residues) -> dict[str, np.ndarray]:
        types = np.array([ALPHABET.index(letter) for letter in TYPES])
        one_hot = residues.aatype[:, None] == types  # (N, 20)
        kind = residues.chain[:, None] == np.array([self.heavy, self.light])
        return {RESIDUE.name: np.concatenate([one_hot, kind], 1).astype(np.float32)}


class EveryPair(EdgeFeaturizer):
    """Edges from every residue to every residue, itself included."""

    loops: ClassVar[bool] = True
    conformity: ClassVar[Conformity] = Conformity(
        expected_failures={"non_trivial": "every pair is an edge, wherever its residues lie"}
    )
    needs_coordinates: ClassVar[bool] = False

    def __call__(self, residues: Residues) -> EdgeList:
        n = len(residues)
        target, source = np.divmod(np.arange(n * n), n)
        return EdgeList(source, target, n)


class EdgeNear(TensorFeaturizer):
    """1 where ``|x_j - x_i|`` is at most a cutoff and i is not j, 0 elsewhere.

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
    """

    reads: ClassVar[tuple[str, ...]] = ("pos", "edges")
    writes: ClassVar[tuple[str, ...]] = (NEAR.name,)

    def __init__(self, *, cutoff: float = 10.0) -> None:
        super().__init__()
        if not cutoff > 0:
            raise OptionError(f"edge_near takes a cutoff above 0 Å, got {cutoff!r}")
        self.cutoff = cutoff

    def __call__(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        pos, edges = f["pos"], f["edges"]
        distance = (edges.source(pos) - edges.target(pos)).norm(dim=1)
        near = (distance <= self.cutoff) & (edges.index[0] != edges.index[1])
        return {NEAR.name: near[:, None].to(pos.dtype)}
