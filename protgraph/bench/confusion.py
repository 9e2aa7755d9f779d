"""Confusion of residue types: a figure with log-odds like a substitution matrix, and a table."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from protgraph.file_io import atomic_write
from protgraph.structure import ALPHABET

__all__ = ["confusion_table", "plot_confusion"]

# Similar types next to each other: hydrophobic, aromatic, small, polar, basic, acidic.
_ORDER = "ILVMFWYCAGPSTNQHKRED"
_DPI = 150


def plot_confusion(counts: np.ndarray, path: Path, *, title: str) -> Path:
    """Plot the log-odds ``log₂ p(predicted | native) / p(predicted)`` of all pairs of types, as in BLOSUM.

    Parameters
    ----------
    counts : ndarray
        ``(20, 20)``, native types in rows, predicted types in columns, both in the order ACDEFGHIKLMNPQRSTVWY.
    path : Path
        Output file, PNG.
    title : str

    References
    ----------
    Henikoff & Henikoff 1992, doi:10.1073/pnas.89.22.10915 (log-odds of substitutions).
    """
    from matplotlib.figure import Figure

    order = [ALPHABET.index(letter) for letter in _ORDER]
    counts = counts[np.ix_(order, order)].astype(float)
    share = (counts + 0.5) / (counts + 0.5).sum(1, keepdims=True)
    odds = np.log2(share / ((counts + 0.5).sum(0) / (counts + 0.5).sum()))
    figure = Figure(figsize=(6.2, 5.4), layout="constrained")
    axes = figure.subplots()
    image = axes.imshow(odds, cmap="RdBu_r", vmin=-4, vmax=4)
    axes.set_xticks(range(20), _ORDER)
    axes.set_yticks(range(20), _ORDER)
    axes.set_xlabel("predicted")
    axes.set_ylabel("native")
    axes.set_title(title, loc="left", fontsize=10)
    figure.colorbar(image, label="log₂ odds", shrink=0.8)
    with atomic_write(path) as temporary:
        figure.savefig(temporary, dpi=_DPI, format=path.suffix.removeprefix("."))
    return path


def confusion_table(counts: np.ndarray) -> str:
    """Return a Markdown table with the recovery of each native type and its most frequent confusion.

    ``counts (21, 21)`` has the native type in rows and the predicted one in columns.
    """
    lines = ["| type | residues | recovery | most frequent confusion |", "| --- | ---: | ---: | --- |"]
    for letter in _ORDER:
        row = counts[ALPHABET.index(letter)].copy()
        total, correct = row.sum(), row[ALPHABET.index(letter)]
        row[ALPHABET.index(letter)] = 0
        other = f"{ALPHABET[int(row.argmax())]} ({row.max() / total:.2f})" if row.any() else ""
        lines.append(f"| {letter} | {total} | {correct / total if total else float('nan'):.3f} | {other} |")
    return "\n".join(lines)
