"""Features of the 20 residue types at each residue, for the head of mutations: ``type_features``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor

from protgraph import FieldSpec, GraphLayer
from protgraph.data import Conformity
from protgraph.structure.residues import ALPHABET, UNKNOWN

__all__ = ["TypeFeatures"]
ENTRY_POINTS = {"protgraph.layers": {"type_features": "TypeFeatures"}}

#: Volume, Å³ (Zamyatnin 1972); hydropathy (Kyte & Doolittle 1982); charge at pH 7; helix propensity, kcal/mol (Pace &
#: Scholtz 1998); aromatic; branched at CB; Pro; Gly; polar; hydrophobicity (Fauchère & Pliska 1983); strand propensity
#: (Chou & Fasman 1978).
_PROPERTIES = {
    "A": (88.6, 1.8, 0, 0, 0, 0, 0, 0, 0, 0.31, 0.83),
    "C": (108.5, 2.5, 0, 0.68, 0, 0, 0, 0, 0, 1.54, 1.19),
    "D": (111.1, -3.5, -1, 0.69, 0, 0, 0, 0, 1, -0.77, 0.54),
    "E": (138.4, -3.5, -1, 0.40, 0, 0, 0, 0, 1, -0.64, 0.37),
    "F": (189.9, 2.8, 0, 0.54, 1, 0, 0, 0, 0, 1.79, 1.38),
    "G": (60.1, -0.4, 0, 1.0, 0, 0, 0, 1, 0, 0, 0.75),
    "H": (153.2, -3.2, 0.3, 0.61, 1, 0, 0, 0, 1, 0.13, 0.87),
    "I": (166.7, 4.5, 0, 0.41, 0, 1, 0, 0, 0, 1.8, 1.6),
    "K": (168.6, -3.9, 1, 0.26, 0, 0, 0, 0, 1, -0.99, 0.74),
    "L": (166.7, 3.8, 0, 0.21, 0, 0, 0, 0, 0, 1.7, 1.3),
    "M": (162.9, 1.9, 0, 0.24, 0, 0, 0, 0, 0, 1.23, 1.05),
    "N": (114.1, -3.5, 0, 0.65, 0, 0, 0, 0, 1, -0.6, 0.89),
    "P": (112.7, -1.6, 0, 3.16, 0, 0, 1, 0, 0, 0.72, 0.55),
    "Q": (143.8, -3.5, 0, 0.39, 0, 0, 0, 0, 1, -0.22, 1.1),
    "R": (173.4, -4.5, 1, 0.21, 0, 0, 0, 0, 1, -1.01, 0.93),
    "S": (89.0, -0.8, 0, 0.5, 0, 0, 0, 0, 1, -0.04, 0.75),
    "T": (116.1, -0.7, 0, 0.66, 0, 1, 0, 0, 1, 0.26, 1.19),
    "V": (140.0, 4.2, 0, 0.61, 0, 1, 0, 0, 0, 1.22, 1.7),
    "W": (227.8, -0.9, 0, 0.49, 1, 0, 0, 0, 0, 2.25, 1.37),
    "Y": (193.6, -1.3, 0, 0.53, 1, 0, 0, 0, 1, 0.96, 1.47),
}
_SCALE = 2.0  # nats


class TypeFeatures(GraphLayer):
    """Log-probabilities of ProteinMPNN, and properties of the 20 types with mean 0 and standard deviation 1 over them.

    Parameters
    ----------
    fields : mapping of str to FieldSpec

    Notes
    -----
    Reads: ``site_log_probs`` ``(N, 20 · L)`` scalars, type by type. Optional: ``binding_log_probs``, as many. Writes:
    ``type_features`` ``(N, 20 · (L + 11))``, type by type: log-probabilities divided by 2, the optional ones too (then
    ``2 L + 11``), and eleven properties, for :class:`protgraph.nn.heads.MutationHead`.
    """

    reads: ClassVar[tuple[str, ...]] = ("site_log_probs",)
    optional: ClassVar[tuple[str, ...]] = ("binding_log_probs",)
    conformity = Conformity(inputs={"site_log_probs": "40x0e", "binding_log_probs": "40x0e"})
    writes: ClassVar[tuple[str, ...]] = ("type_features",)

    def __init__(self, fields: Mapping[str, FieldSpec]) -> None:
        super().__init__(fields)
        table = torch.tensor([_PROPERTIES[letter] for letter in ALPHABET[:UNKNOWN]], dtype=torch.float64)  # (20, P)
        table = (table - table.mean(0)) / table.std(0, correction=0)
        self.register_buffer("table", table.to(torch.get_default_dtype()), persistent=False)
        columns = self.scalar_width("site_log_probs") + self.scalar_width("binding_log_probs")
        width = columns // len(table) + table.size(1)
        self.declare(type_features=f"{len(table) * width}x0e")

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Compute ``type_features`` ``(N, 20 · (L + 11))``; see Notes."""
        log_probs = f["site_log_probs"]
        features = [self._by_type(log_probs)]  # (N, 20, L)
        if "binding_log_probs" in self.fields:
            features.append(self._by_type(f["binding_log_probs"]))
        properties = self.table.to(log_probs.dtype).expand(len(log_probs), -1, -1)  # (N, 20, P)
        return {"type_features": torch.cat([*features, properties], -1).flatten(1)}

    def _by_type(self, log_probs: Tensor) -> Tensor:
        """Scale log-probabilities, and separate the types, ``(N, 20 L)`` to ``(N, 20, L)``."""
        return log_probs.view(len(log_probs), len(self.table), -1) / _SCALE
