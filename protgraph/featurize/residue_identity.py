"""Residue features without geometry: type, sequence position, B factor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from protgraph.data.graph.fields import field
from protgraph.errors import OptionError
from protgraph.featurize.base import StructureFeaturizer, TensorFeaturizer
from protgraph.structure.residues.residues import Residues

__all__ = ["BFactor", "ResidueOneHot", "SequencePosition"]
ENTRY_POINTS = {
    "protgraph.featurizers": {
        "b_factor": "BFactor",
        "residue_one_hot": "ResidueOneHot",
        "sequence_position": "SequencePosition",
    },
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

    def __call__(self, f: Mapping[str, Tensor]) -> dict[str, Tensor]:
        aatype = f["aatype"]
        types = torch.arange(field("aatype").classes, device=aatype.device)
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

    def __call__(self, f: Mapping[str, Tensor]) -> dict[str, Tensor]:
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
