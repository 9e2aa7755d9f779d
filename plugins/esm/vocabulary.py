"""Vocabulary of the ESM protein language models: 33 tokens, and the token of each residue type."""

from __future__ import annotations

__all__ = ["AATYPE_TOKENS", "END", "LETTERS_3DI", "MASK", "PAD", "START", "TOKENS"]

TOKENS = (*("<cls>", "<pad>", "<eos>", "<unk>"), *"LAGVSERTIDPKQNFYMHWCXBUZO.-", "<null_1>", "<mask>")
"""Tokens in the order of ESM-1b and ESM-2 (Rives et al. 2021, doi:10.1073/pnas.2016239118, and its code)."""

START, PAD, END, MASK = (TOKENS.index(name) for name in ("<cls>", "<pad>", "<eos>", "<mask>"))

AATYPE_TOKENS = tuple(map(TOKENS.index, "ACDEFGHIKLMNPQRSTVWYX"))
"""Token of each ``aatype``, in the order of ``protgraph.structure.ALPHABET``."""

LETTERS_3DI = "acdefghiklmnpqrstvwy"
"""3Di letters in the order of biotite's alphabet (van Kempen et al. 2024, doi:10.1038/s41587-023-01773-0)."""
