"""Write values per residue for molecular viewers: ChimeraX attributes, and scripts that color a structure.

References
----------
UCSF ChimeraX documentation, "Attribute assignment file format" (defattr), "Command-line target specification", and
commands ``open`` and ``color bfactor``; PyMOL documentation, commands ``load`` and ``spectrum``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from protgraph.file_io import atomic_write
from protgraph.structure.io import ResidueValues

__all__ = ["write_chimerax_script", "write_defattr", "write_pymol_script"]


def write_defattr(path: str | Path, values: Mapping[str, ResidueValues]) -> Path:
    """Write an attribute file for ChimeraX, with one line per residue that has a value.

    The attribute has the name of the value and its numbers as predicted: probabilities from 0 to 1. With several
    files, residues of the first are those of model #1, and so on.

    Parameters
    ----------
    path : str or Path
        Output file, ``.defattr``; an existing one is replaced.
    values : mapping of str to ResidueValues
        File → values of its residues.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> columns = {"chain": ["H"], "res_id": [100], "ins_code": ["B"], "res_name": ["GLY"], "values": [0.5]}
    >>> values = ResidueValues("p_site", **{name: np.array(column) for name, column in columns.items()})
    >>> print(write_defattr(Path(mkdtemp()) / "a.defattr", {"1abc.pdb": values}).read_text().expandtabs(2), end="")
    # p_site
    # 1abc.pdb
    attribute: p_site
    match mode: 1-to-1
    recipient: residues
      /H:100B  0.5
    """
    path, lines = Path(path), []
    for number, (file, own) in enumerate(values.items(), 1):
        model = f"#{number}" if len(values) > 1 else ""
        if number == 1:
            lines += [f"# {_plain(line)}" for line in (own.name, *own.origin, *own.class_lines)]
        lines.append(f"# {f'{model} = ' if model else ''}{_plain(Path(file).name)}")
        if number == 1:
            lines += [f"attribute: {_attribute(own.name)}", "match mode: 1-to-1", "recipient: residues"]
        keys = zip(own.chain.tolist(), own.res_id.tolist(), own.ins_code.tolist(), strict=True)
        for (chain, residue, code), value in zip(keys, own.values.tolist(), strict=True):
            if not np.isnan(value):
                lines.append(f"\t{model}{f'/{chain}' if chain else ''}:{residue}{code}\t{_number(value, own)}")
    return _write(path, lines)


def write_pymol_script(path: str | Path, structures: Sequence[Path], values: Mapping[str, ResidueValues]) -> Path:
    """Write a PyMOL script that loads structures beside it and colors their proteins by B factor.

    Parameters
    ----------
    path : str or Path
        Output file, ``.pml``; an existing one is replaced.
    structures : sequence of Path
        Files of :func:`protgraph.structure.io.write_residue_values`.
    values : mapping of str to ResidueValues
        Values of these files.
    """
    path = Path(path)
    low, high = _limits(values)
    lines = [*_comments(values), "python", "import os", "from pymol import cmd"]
    lines.append("folder = os.path.dirname(os.path.abspath(__script__))")
    lines += [f"cmd.load(os.path.join(folder, {name!r}))" for name in _relative(path, structures)]
    lines += ["python end", "as cartoon, polymer.protein"]
    lines.append(f"spectrum b, blue_white_red, polymer.protein, minimum={low:.6g}, maximum={high:.6g}")
    return _write(path, lines)


def write_chimerax_script(
    path: str | Path,
    structures: Sequence[Path],
    values: Mapping[str, ResidueValues],
    *,
    attributes: str | Path | None = None,
) -> Path:
    """Write a ChimeraX script that opens structures beside it and colors their proteins by B factor.

    Parameters
    ----------
    path : str or Path
        Output file, ``.cxc``; an existing one is replaced.
    structures, values
        See :func:`write_pymol_script`.
    attributes : str or Path, optional
        File of :func:`write_defattr`, which is opened too.
    """
    path = Path(path)
    low, high = _limits(values)
    opened = _relative(path, [*structures, *([] if attributes is None else [Path(attributes)])])
    lines = [*_comments(values), *(f'open "{name}"' for name in opened)]
    lines.append(f"color bfactor protein palette blue:white:red range {low:.6g},{high:.6g}")
    return _write(path, lines)


def _comments(values: Mapping[str, ResidueValues]) -> list[str]:
    return [f"# {_plain(line)}" for line in next(iter(values.values())).details[:-2]]


def _limits(values: Mapping[str, ResidueValues]) -> tuple[float, float]:
    limits = [own.color_limits for own in values.values()]
    low, high = min(low for low, _ in limits), max(high for _, high in limits)
    return low, high if high > low else low + 1.0


def _relative(path: Path, files: Sequence[Path]) -> list[str]:
    return [Path(os.path.relpath(file.resolve(), path.resolve().parent)).as_posix() for file in files]


def _number(value: float, values: ResidueValues) -> str:
    """Return a class as an integer and another value with a decimal point: ChimeraX takes the type from the text."""
    text = f"{value:.9g}"
    return text if values.classes or not text.lstrip("-").isdigit() else f"{text}.0"


def _attribute(name: str) -> str:
    """Return a name that ChimeraX accepts: letters, digits and underscores, and a lower-case letter first."""
    name = re.sub(r"\W", "_", name, flags=re.ASCII)
    return name if re.match(r"[a-z]", name) else f"value_{name}"


def _plain(text: str) -> str:
    return " ".join(text.split())


def _write(path: Path, lines: Sequence[str]) -> Path:
    with atomic_write(path) as temporary:
        temporary.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path
