"""Published predictions beside the sets of the KORPM repository, in our sign: positive = destabilizing."""

from __future__ import annotations

import re
from pathlib import Path

from protgraph.errors import DatasetError

__all__ = ["S461_METHODS", "S669_METHODS", "SSYM_METHODS", "korpm_mutation", "read_predictions", "read_symmetric"]

#: Method → file and columns (from 0) of mutation, measured and predicted value.
_PLAIN = (1, 2, 3)
S461_METHODS = {
    "ACDC-NN": ("S461_ACDCNN_DIR.txt", _PLAIN),
    "Cartesian ddG": ("S461_CartDD_DIR.txt", _PLAIN),
    "DDGun3D": ("S461_DDgun3D_DIR.txt", _PLAIN),
    "DynaMut2": ("S461_Dynamut2_DIR.txt", _PLAIN),
    "EvoEF": ("S461_EvoFF_DIR.txt", _PLAIN),
    "FoldX": ("S461_FoldX_DIR.txt", _PLAIN),
    "KORPM": ("S461_KORPM_DIR.txt", (1, 9, 10)),
    "PoPMuSiC-sym": ("S461_PopMs_DIR.txt", _PLAIN),
    "ThermoNet": ("S461_ThermoNet_DIR.txt", _PLAIN),
}
#: Twelve files, of which Cartesian ddG, EvoEF and the second run of FoldX have the rows of S461 only.
S669_METHODS = {
    "ACDC-NN": ("S669_ACDCNN_DIR.txt", _PLAIN),
    "Cartesian ddG": ("S669_CartDD_DIR.txt", _PLAIN),
    "DDGun3D": ("S669_DDgun3D_DIR.txt", _PLAIN),
    "DynaMut2": ("S669_Dynamut2_DIR.txt", _PLAIN),
    "EvoEF": ("S669_EvoFF_DIR.txt", _PLAIN),
    "FoldX": ("S669_FOLDX_DIR.txt", _PLAIN),
    "FoldX, second run": ("S669_FoldX_DIR.txt", _PLAIN),
    "KORPM": ("S669_KORPM_DIR.txt", (1, 9, 10)),
    "KORPM, second run": ("S669_KORM_DIR.txt", (1, 9, 10)),
    "MAESTRO": ("S669_MAESTRO_DIR.txt", _PLAIN),
    "PoPMuSiC-sym": ("S669_PopMs_DIR.txt", _PLAIN),
    "ThermoNet": ("S669_ThermoNet_DIR.txt", _PLAIN),
}
SSYM_METHODS = {
    "ACDC-NN": "ACDCNN_Pucci2018_sym.txt",
    "Cartesian ddG": "Cartddg_Pucci2018_th8_sym.txt",
    "DDGun3D": "DDGun3D_Pucci2018_sym.txt",
    "DynaMut2": "Dynamut2_Pucci2018_sym.txt",
    "EvoEF": "Evo_Pucci2018_sym.txt",
    "FoldX": "FoldX_Pucci2018_th8_sym.txt",
    "KORPM": "KORPM_Pucci2018_sym.txt",
    "PoPMuSiC-sym": "PopMs_Pucci2018_sym.txt",
    "ThermoNet": "TherNet_Pucci2018_sym.txt",
}

_MUTATION = re.compile(r"([A-Z])([A-Za-z0-9])(-?\d+)([A-Za-z]?)([A-Z])")


def korpm_mutation(text: str) -> tuple[str, str]:
    """Return the chain, and the mutation as ``A:G42D``, of a mutation in the form ``GA42D``.

    Raises
    ------
    DatasetError
        It has another form.
    """
    match = _MUTATION.fullmatch(text)
    if match is None:
        raise DatasetError(f"not a mutation of the KORPM tables: {text!r}.")
    old, chain, number, code, new = match.groups()
    return chain, f"{chain}:{old}{number}{f'[{code.upper()}]' if code else ''}{new}"


def read_predictions(path: Path, columns: tuple[int, int, int]) -> dict[tuple[str, str], tuple[float, float]]:
    """Return ``(structure, mutation)`` → measured and predicted ΔΔG, kcal/mol, with the sign of the file reversed."""
    mutation, measured, predicted = columns
    values = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        cells = line.split()
        if not cells or line.startswith("#"):
            continue
        chain, text = korpm_mutation(cells[mutation])
        values[cells[0].upper() + chain, text] = -float(cells[measured]), -float(cells[predicted])
    return values


def read_symmetric(path: Path) -> dict[tuple[str, str], float]:
    """Return ``(structure, mutation)`` → predicted ΔΔG of the direct mutations and of the reverse ones."""
    values = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        wild, mutant, direct, reverse, _, of_direct, of_reverse = line.split()[:7]
        for entry, text, value in ((wild, direct, of_direct), (mutant, reverse, of_reverse)):
            chain, mutation = korpm_mutation(text)
            values[entry.upper() + chain, mutation] = -float(value)
    return values
