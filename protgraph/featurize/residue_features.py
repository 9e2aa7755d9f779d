"""Features of single residues: type, place in the chain, values of the file, scales of amino acids, decoding order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from protgraph.data.graph.conformity import Conformity
from protgraph.data.graph.fields import FieldSpec, field, register_field
from protgraph.errors import OptionError
from protgraph.featurize.base import StructureFeaturizer, TensorFeaturizer
from protgraph.structure.residues.alphabet import ALPHABET, UNKNOWN
from protgraph.structure.residues.residues import Residues

__all__ = [
    "BFactor",
    "DecodingRank",
    "Occupancy",
    "Physicochemical",
    "Plddt",
    "PreviousResidue",
    "ResidueOneHot",
    "SCALES",
    "SequencePosition",
    "TerminusDistance",
]
ENTRY_POINTS = {
    "protgraph.featurizers": {
        "b_factor": "BFactor",
        "decoding_rank": "DecodingRank",
        "occupancy": "Occupancy",
        "physicochemical": "Physicochemical",
        "plddt": "Plddt",
        "previous_residue": "PreviousResidue",
        "residue_one_hot": "ResidueOneHot",
        "sequence_position": "SequencePosition",
        "terminus_distance": "TerminusDistance",
    }
}


class ResidueOneHot(TensorFeaturizer):
    """One-hot residue type: ``residue_one_hot[i, t] = 1`` where ``t = aatype[i]``, else 0.

    Reads
    -----
    aatype : (N,) int64

    Writes
    ------
    residue_one_hot : (N, 21), 21x0e, dimensionless
        Columns ACDEFGHIKLMNPQRSTVWYX, torch's default floating type.

    Notes
    -----
    For embedding layers use the integer field ``aatype``, which every graph has.
    """

    reads: ClassVar[tuple[str, ...]] = ("aatype",)
    writes: ClassVar[tuple[str, ...]] = ("residue_one_hot",)

    def __call__(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        aatype = f["aatype"]
        types = torch.arange(field("aatype").dim, device=aatype.device)
        return {"residue_one_hot": (aatype[:, None] == types).to(torch.get_default_dtype())}  # (N, 21)


class SequencePosition(TensorFeaturizer):
    """Sinusoidal encoding of the position p in the chain, ``sin(p ω_c)`` and ``cos(p ω_c)``, ``ω_c = 10000^(-2c/dim)``.

    Parameters
    ----------
    dim : int
        Width, even.

    Reads
    -----
    seq_pos : (N,) int64
        Includes unresolved residues, so a gap in the structure is a gap in the encoding.

    Writes
    ------
    sequence_position : (N, dim), dim x 0e, dimensionless
        Column 2c is the sine, 2c + 1 the cosine; torch's default floating type.

    References
    ----------
    Vaswani et al. 2017, arXiv:1706.03762, section 3.5.
    """

    reads: ClassVar[tuple[str, ...]] = ("seq_pos",)
    writes: ClassVar[tuple[str, ...]] = ("sequence_position",)

    def __init__(self, *, dim: int = 16) -> None:
        super().__init__()
        if not (isinstance(dim, int) and dim >= 2 and dim % 2 == 0):
            raise OptionError(f"sequence_position: invalid dim={dim!r}. Use an even integer of at least 2.")
        self.dim = dim
        self.declare(sequence_position=f"{dim}x0e")

    def __call__(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        position = f["seq_pos"].to(torch.get_default_dtype())
        exponent = torch.arange(0, self.dim, 2, dtype=position.dtype, device=position.device) / self.dim
        angle = position[:, None] * 10000.0**-exponent  # (N, dim / 2)
        code = torch.stack([angle.sin(), angle.cos()], -1).flatten(1)  # (N, dim)
        return {"sequence_position": code}


class BFactor(StructureFeaturizer):
    """Isotropic B factor of the CA atom of each residue.

    Writes
    ------
    b_factor : (N, 1) float32, 1x0e, Å²

    Notes
    -----
    Predicted structures store a confidence in this column (pLDDT for AlphaFold); it is returned unchanged.
    """

    writes: ClassVar[tuple[str, ...]] = ("b_factor",)
    zero_gradient: ClassVar[bool] = True

    def __call__(self, residues: Residues) -> dict[str, np.ndarray]:
        return {"b_factor": residues.b_factor[:, None].astype(np.float32)}


register_field(
    FieldSpec("terminus_distance", "node", "2x0e", doc="distance along the chain from its N- and C-terminus")
)


class TerminusDistance(StructureFeaturizer):
    """Sequence distance from the first and from the last resolved residue of the chain.

    Parameters
    ----------
    relative : bool
        Divide by the chain length − 1, so that the two columns add up to 1. False: number of residues.

    Writes
    ------
    terminus_distance : (N, 2) float32, 2x0e, dimensionless
        From the N-terminus and from the C-terminus, by ``seq_pos``, which includes unresolved residues. 0 and 0 for a
        chain of one residue.
    """

    needs_coordinates: ClassVar[bool] = False
    writes: ClassVar[tuple[str, ...]] = ("terminus_distance",)

    def __init__(self, *, relative: bool = True) -> None:
        super().__init__()
        self.relative = relative

    def __call__(self, residues: Residues) -> dict[str, np.ndarray]:
        position, chain = residues.seq_pos, residues.chain_number
        first, last = np.full(chain.max() + 1, position.max()), np.full(chain.max() + 1, position.min())
        np.minimum.at(first, chain, position)
        np.maximum.at(last, chain, position)
        distance = np.stack([position - first[chain], last[chain] - position], 1).astype(np.float32)
        if self.relative:
            distance /= np.maximum(last - first, 1)[chain, None]
        return {"terminus_distance": distance}


class PreviousResidue(TensorFeaturizer):
    """Type of the preceding residue, ``previous[i] = aatype[i - 1]``, with an extra class at the start of a chain.

    With this input and causal layers, the prediction for residue i depends only on the residues before i.

    Reads
    -----
    aatype : (N,) int64
    chain : (N,) int64
    proteins

    Writes
    ------
    previous : (N,) int64, 22 classes
        ACDEFGHIKLMNPQRSTVWYX, then the start of a chain.

    Notes
    -----
    The order is that of the nodes, as for causal attention, so no residue depends on later nodes. Unresolved gaps are
    ignored.
    """

    reads: ClassVar[tuple[str, ...]] = ("aatype", "chain", "proteins")
    writes: ClassVar[tuple[str, ...]] = ("previous",)
    conformity = Conformity(expected_failures={"node_order": "the preceding residue is defined by node order"})

    def __call__(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        aatype, chain, protein = f["aatype"], f["chain"], f["proteins"].batch
        start = field("aatype").dim
        previous = torch.full_like(aatype, start)
        same = (chain[1:] == chain[:-1]) & (protein[1:] == protein[:-1])
        previous[1:] = torch.where(same, aatype[:-1], start)
        return {"previous": previous}


class DecodingRank(TensorFeaturizer):
    """Rank of each residue in the decoding order.

    Parameters
    ----------
    order : {"forward", "none"}
        "forward": every chain from N to C terminus, all chains in parallel, residues of unknown type last. "none": 0
        for all, so that no residue depends on the type of another.

    Reads
    -----
    seq_pos, aatype : (N,) int64
    decoding_rank : (N,) int64, if the graph has one, it is kept

    Writes
    ------
    decoding_rank : (N,) int64

    Notes
    -----
    If all types are hidden, all residues share the last rank and are predicted from the structure alone. Training
    uses random ranks (:func:`protgraph.task.with_random_order`); sequence design sets its own orders.
    """

    reads: ClassVar[tuple[str, ...]] = ("seq_pos", "aatype")
    optional: ClassVar[tuple[str, ...]] = ("decoding_rank",)
    writes: ClassVar[tuple[str, ...]] = ("decoding_rank",)

    def __init__(self, *, order: str = "forward") -> None:
        super().__init__()
        if order not in ("forward", "none"):
            raise OptionError(f"decoding_rank: invalid order={order!r}. Use 'forward' or 'none'.")
        self.order = order

    def __call__(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        if "decoding_rank" in f:
            return {"decoding_rank": f["decoding_rank"]}
        seq_pos = f["seq_pos"]
        if self.order == "none":
            return {"decoding_rank": torch.zeros_like(seq_pos)}
        return {"decoding_rank": seq_pos.masked_fill(f["aatype"] == UNKNOWN, torch.iinfo(seq_pos.dtype).max)}


_FULL = 100.0  # pLDDT is written as a percentage

register_field(
    FieldSpec("plddt", "node", "1x0e", doc="confidence of a prediction, pLDDT / 100; 0 for other structures")
)
register_field(FieldSpec("plddt_mask", "node", "1x0e", "bool", doc="True if the file is a prediction with pLDDT"))
register_field(FieldSpec("occupancy", "node", "1x0e", doc="occupancy of CA"))


class Plddt(StructureFeaturizer):
    """Predicted lDDT (pLDDT) of each residue, which AlphaFold files store in the B-factor column.

    Parameters
    ----------
    always : bool
        Interpret B factors as pLDDT (0 to 100) in every file, for programs whose files do not declare it (ESMFold,
        ColabFold).

    Writes
    ------
    plddt : (N, 1) float32, 1x0e, dimensionless
        pLDDT / 100; 0 where the file is not known to be a prediction.
    plddt_mask : (N, 1) bool
        The file declares it: ``ma_qa_metric`` with a metric named pLDDT (mmCIF and BinaryCIF of AlphaFold and its
        database, and any ModelCIF), or the TITLE of the AlphaFold database's PDB files. The values themselves are
        not used to decide, since B factors have the same range.

    References
    ----------
    Jumper et al. 2021, doi:10.1038/s41586-021-03819-2; Vallat et al. 2023, doi:10.1016/j.jmb.2023.168021 (ModelCIF).
    """

    writes: ClassVar[tuple[str, ...]] = ("plddt", "plddt_mask")
    zero_gradient: ClassVar[bool] = True
    conformity = Conformity(options={"always": True})  # the test proteins are not predictions

    def __init__(self, *, always: bool = False) -> None:
        super().__init__()
        self.always = always

    def __call__(self, residues: Residues) -> dict[str, np.ndarray]:
        mask = np.full((len(residues), 1), self.always or residues.predicted)
        return {"plddt": (residues.b_factor[:, None] / _FULL * mask).astype(np.float32), "plddt_mask": mask}


class Occupancy(StructureFeaturizer):
    """Occupancy of the CA atom of each residue, in the selected conformation.

    Writes
    ------
    occupancy : (N, 1) float32, 1x0e, dimensionless
        Value of the file; 1 if the file has none or B factors are hidden.
    """

    writes: ClassVar[tuple[str, ...]] = ("occupancy",)
    zero_gradient: ClassVar[bool] = True

    def __call__(self, residues: Residues) -> dict[str, np.ndarray]:
        occupancy = np.ones(len(residues)) if residues.occupancy is None else residues.occupancy
        return {"occupancy": occupancy[:, None].astype(np.float32)}


SCALES: Mapping[str, slice] = {
    "meiler": slice(0, 7),
    "kyte_doolittle": slice(7, 8),
    "charge": slice(8, 9),
    "volume": slice(9, 10),
    "polarity": slice(10, 11),
}
"""Columns of each scale in the table.

- meiler: steric parameter, polarizability, normalized van der Waals volume, hydrophobicity, isoelectric point, helix
  and sheet probability: Meiler et al. 2001, doi:10.1007/s008940100038, table 1.
- kyte_doolittle: hydropathy: Kyte & Doolittle 1982, doi:10.1016/0022-2836(82)90515-0, table 2.
- charge: formal charge of the side chain at pH 7, elementary charges; histidine (pKa about 6) is neutral.
- volume: residue volume, Å³: Zamyatnin 1972, doi:10.1016/0079-6107(72)90005-3.
- polarity: Grantham 1974, doi:10.1126/science.185.4154.862, table 1.
"""

_TABLE = """
A 1.28 0.05 1.00  0.31  6.11 0.42 0.23   1.8  0  88.6  8.1
R 2.34 0.29 6.13 -1.01 10.74 0.36 0.25  -4.5  1 173.4 10.5
N 1.60 0.13 2.95 -0.60  6.52 0.21 0.22  -3.5  0 114.1 11.6
D 1.60 0.11 2.78 -0.77  2.95 0.25 0.20  -3.5 -1 111.1 13.0
C 1.77 0.13 2.43  1.54  6.35 0.17 0.41   2.5  0 108.5  5.5
Q 1.56 0.18 3.95 -0.22  5.65 0.36 0.25  -3.5  0 143.8 10.5
E 1.56 0.15 3.78 -0.64  3.09 0.42 0.21  -3.5 -1 138.4 12.3
G 0.00 0.00 0.00  0.00  6.07 0.13 0.15  -0.4  0  60.1  9.0
H 2.99 0.23 4.66  0.13  7.69 0.27 0.30  -3.2  0 153.2 10.4
I 4.19 0.19 4.00  1.80  6.04 0.30 0.45   4.5  0 166.7  5.2
L 2.59 0.19 4.00  1.70  6.04 0.39 0.31   3.8  0 166.7  4.9
K 1.89 0.22 4.77 -0.99  9.99 0.32 0.27  -3.9  1 168.6 11.3
M 2.35 0.22 4.43  1.23  5.71 0.38 0.32   1.9  0 162.9  5.7
F 2.94 0.29 5.89  1.79  5.67 0.30 0.38   2.8  0 189.9  5.2
P 2.67 0.00 2.72  0.72  6.80 0.13 0.34  -1.6  0 112.7  8.0
S 1.31 0.06 1.60 -0.04  5.70 0.20 0.28  -0.8  0  89.0  9.2
T 3.03 0.11 2.60  0.26  5.60 0.21 0.36  -0.7  0 116.1  8.6
W 3.21 0.41 8.08  2.25  5.94 0.32 0.42  -0.9  0 227.8  5.4
Y 2.94 0.30 6.47  0.96  5.66 0.25 0.41  -1.3  0 193.6  6.2
V 3.67 0.14 3.00  1.22  6.02 0.27 0.49   4.2  0 140.0  5.9
"""

register_field(
    FieldSpec("physicochemical", "node", "11x0e", doc="published scales of the residue type, column after column")
)


class Physicochemical(TensorFeaturizer):
    """Physicochemical properties of each residue type, from published tables.

    Parameters
    ----------
    scales : sequence of str
        Any of "meiler" (7 columns: steric parameter, polarizability, volume, hydrophobicity, isoelectric point, helix
        and sheet probability), "kyte_doolittle" (hydropathy), "charge" (formal, pH 7), "volume" (Å³) and "polarity", in
        the order of the columns.
    standardize : bool
        Standardize each column to mean 0 and standard deviation 1 over the twenty amino acids.

    Reads
    -----
    aatype : (N,) int64

    Writes
    ------
    physicochemical : (N, columns), 0e, dimensionless, torch's default floating type
        X gets the mean of the twenty amino acids (0 if standardized).

    References
    ----------
    Meiler et al. 2001, doi:10.1007/s008940100038; Kyte & Doolittle 1982, doi:10.1016/0022-2836(82)90515-0; Zamyatnin
    1972, doi:10.1016/0079-6107(72)90005-3; Grantham 1974, doi:10.1126/science.185.4154.862.
    """

    reads: ClassVar[tuple[str, ...]] = ("aatype",)
    writes: ClassVar[tuple[str, ...]] = ("physicochemical",)

    def __init__(self, *, scales: Sequence[str] = tuple(SCALES), standardize: bool = True) -> None:
        super().__init__()
        unknown = [name for name in scales if name not in SCALES]
        if isinstance(scales, str) or unknown or not scales:
            raise OptionError(f"physicochemical: invalid scales={scales!r}. Use a list of {', '.join(SCALES)}.")
        rows: dict[str, list[float]] = {}
        for line in _TABLE.strip("\n").split("\n"):
            rows[line[0]] = [float(word) for word in line[1:].split()]
        values = torch.tensor([rows[letter] for letter in ALPHABET[:UNKNOWN]], dtype=torch.float64)  # (20, 11)
        table = torch.cat([values[:, SCALES[name]] for name in scales], 1)
        table = torch.cat([table, table.mean(0, keepdim=True)])  # (21, S)
        if standardize:
            table = (table - table[-1]) / table[:-1].std(0, correction=0)
        self.table = self._on_device = table
        self.declare(physicochemical=f"{table.size(1)}x0e")

    def __call__(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        aatype = f["aatype"]
        dtype = torch.get_default_dtype()
        if self._on_device.device != aatype.device or self._on_device.dtype != dtype:
            self._on_device = self.table.to(aatype.device, dtype)
        return {"physicochemical": self._on_device[aatype]}
