"""Physicochemical scales of the amino acids from published tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import torch
from torch import Tensor

from protgraph.data.graph.fields import FieldSpec, register_field
from protgraph.errors import OptionError
from protgraph.featurize.base import TensorFeaturizer
from protgraph.structure.residues.alphabet import ALPHABET, UNKNOWN

__all__ = ["SCALES", "Physicochemical"]
ENTRY_POINTS = {"protgraph.featurizers": {"physicochemical": "Physicochemical"}}

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
        rows = {line[0]: [float(word) for word in line[1:].split()] for line in _TABLE.split("\n") if line}
        values = torch.tensor([rows[letter] for letter in ALPHABET[:UNKNOWN]], dtype=torch.float64)  # (20, 11)
        table = torch.cat([values[:, SCALES[name]] for name in scales], 1)
        table = torch.cat([table, table.mean(0, keepdim=True)])  # (21, S)
        if standardize:
            table = (table - table[-1]) / table[:-1].std(0, correction=0)
        self.table = self._on_device = table
        self.declare(physicochemical=f"{table.size(1)}x0e")

    def __call__(self, f: Mapping[str, Tensor]) -> dict[str, Tensor]:
        aatype = f["aatype"]
        dtype = torch.get_default_dtype()
        if self._on_device.device != aatype.device or self._on_device.dtype != dtype:
            self._on_device = self.table.to(aatype.device, dtype)
        return {"physicochemical": self._on_device[aatype]}
