"""Colors of values per residue: one hexadecimal code per residue, and the scale that explains them.

The page and all scripts for viewers have these colors: probabilities from light yellow (0) to dark red (1), signed
values from blue to red about 0, pLDDT in the classes of the AlphaFold database, other numbers from the lowest to the
highest on viridis.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib import colormaps
from matplotlib.colors import to_hex
from protgraph_plugins.view.scene import Color

__all__ = ["EDGE_COLORS", "NO_VALUE", "Scale", "color_codes", "scale_of"]

#: Residues without a value.
NO_VALUE = "#bdbdbd"
#: Categories: Okabe & Ito 2008, "Color universal design"; more than eight are from matplotlib's tab20.
_CATEGORIES = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#555555")
#: Kinds of edges: the muted scheme of Tol 2021, SRON/EPS/TN/09-002.
EDGE_COLORS = ("#cc6677", "#332288", "#999933", "#882255", "#44aa99", "#aa4499")
#: Classes of pLDDT of the AlphaFold database (Varadi et al. 2022, doi:10.1093/nar/gkab1061): upper bound, name, color.
_PLDDT = (
    (50.0, "very low (≤ 50)", "#ff7d45"),
    (70.0, "low (50 to 70)", "#ffdb13"),
    (90.0, "confident (70 to 90)", "#65cbf3"),
    (100.0, "very high (> 90)", "#0053d6"),
)
_STOPS = 9


@dataclass(frozen=True)
class Scale:
    """Legend of a color: categories with their counts, or the ends of a range with colors between them.

    Parameters
    ----------
    categories : tuple of (str, str, int)
        Name, color and number of residues of each category that occurs.
    low, high : float
        Ends of the range.
    stops : tuple of str
        Colors from ``low`` to ``high``, evenly spaced; empty for categories.
    missing : int
        Residues without a value.
    """

    categories: tuple[tuple[str, str, int], ...] = ()
    low: float = 0.0
    high: float = 1.0
    stops: tuple[str, ...] = ()
    missing: int = 0


def color_codes(color: Color) -> list[str]:
    """Return the color of each residue, ``"#rrggbb"``; gray for residues without a value."""
    is_missing = np.isnan(color.values)
    if color.is_plddt:
        codes = np.array([code for _, _, code in _PLDDT])[_plddt_classes(color)]
    elif color.labels:
        codes = np.array(_palette(color))[np.where(is_missing, 0, color.values).astype(int)]
    else:
        low, high = color.range
        position = np.clip((np.where(is_missing, low, color.values) - low) / ((high - low) or 1.0), 0.0, 1.0)
        codes = np.array([to_hex(rgba) for rgba in colormaps[_map(color)](position)], "U7")
    return np.where(is_missing, NO_VALUE, codes).tolist()


def scale_of(color: Color) -> Scale:
    """Return the legend of a color."""
    is_missing = np.isnan(color.values)
    missing = int(is_missing.sum())
    if color.is_plddt:
        counts = np.bincount(_plddt_classes(color)[~is_missing], minlength=len(_PLDDT)).tolist()
        rows = [(name, code, count) for (_, name, code), count in zip(_PLDDT, counts, strict=True)]
        return Scale(tuple(rows), missing=missing)
    if color.labels:
        counts = np.bincount(color.values[~is_missing].astype(int), minlength=len(color.labels)).tolist()
        rows = zip(color.labels, _palette(color), counts, strict=True)
        return Scale(tuple((label, code, count) for label, code, count in rows if count), missing=missing)
    low, high = color.range
    stops = [to_hex(rgba) for rgba in colormaps[_map(color)](np.linspace(0, 1, _STOPS))]
    return Scale(low=low, high=high, stops=tuple(stops), missing=missing)


def _plddt_classes(color: Color) -> np.ndarray:
    """Return the class of each residue, ``(N,)`` int64; a bound belongs to the class below it, as in Mol*."""
    bounds = [bound for bound, _, _ in _PLDDT[:-1]]
    return np.searchsorted(bounds, color.values, side="left").clip(max=len(_PLDDT) - 1)


def _map(color: Color) -> str:
    if color.is_probability:
        return "YlOrRd"
    return "RdBu_r" if color.is_signed else "viridis"


def _palette(color: Color) -> list[str]:
    if len(color.labels) <= len(_CATEGORIES):
        return list(_CATEGORIES[: len(color.labels)])
    return [to_hex(colormaps["tab20"](i % 20)) for i in range(len(color.labels))]
