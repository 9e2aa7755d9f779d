"""Sites of ``protgraph predict``: the table of ``--sites``, and the printed list."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from protgraph.errors import OptionError
from protgraph.wording import count_noun

if TYPE_CHECKING:
    from protgraph.checkpoint import CallRule
    from protgraph.cli.table_output import TableOutput
    from protgraph.data.datasets import Target
    from protgraph.inference import Predictions
    from protgraph.inference.result_table import Row

__all__ = ["SiteOutput", "Sites"]

Sites = Annotated[
    Path | None,
    typer.Option(help="Table of sites, groups of called residues in contact, .csv or .parquet."),
]

#: Files, and sites of a file, that are printed, and the smallest size of a site.
_SHOWN_FILES, _SHOWN_SITES, _SMALLEST = 20, 8, 3


class SiteOutput:
    """Sites that ``protgraph predict`` prints and writes.

    Parameters
    ----------
    path : Path, optional
        Table of the sites.
    checkpoint : str
        Name or file of the model. Its card has the rule by which residues are called.
    target : Target
        What it predicts.
    sources : sequence of str
        Structure files. Graph stores have no atoms, and thus no sites.

    Attributes
    ----------
    rule : CallRule or None
        None if nothing is called; ``reason`` states why.

    Raises
    ------
    OptionError
        A table is requested, and nothing is called.
    """

    def __init__(self, path: Path | None, checkpoint: str, target: Target, sources: Sequence[str]) -> None:
        from protgraph.checkpoint import find_card
        from protgraph.data.store.store_description import is_store
        from protgraph.inference.prediction_table import target_names
        from protgraph.inference.sites import has_sites

        self.path, self.reason = path, ""
        self.rule: CallRule | None = None
        stores = [source for source in sources if is_store(source)]
        card = find_card(checkpoint)
        if not has_sites(target):
            self.reason = f"the model predicts {target.name!r}, {target.kind} per {target.level}"
        elif stores:
            self.reason = f"{stores[0]!r} is a graph store, without all atoms. Give the structure files"
        else:
            self.rule = None if card is None else card.call(target_names(target)[0])
            self.reason = (
                f"no card of {checkpoint!r} has a threshold with its precision and recall on validation. 'protgraph "
                "recipe' writes such a card beside the weights"
            )
        if self.rule is None and path is not None:
            raise OptionError(f"--sites {str(path)!r}: no sites: {self.reason}.")

    def check_output_exists(self, *, has_files: bool) -> None:
        """Raise :class:`OptionError` if there are neither sites to print nor files to write."""
        if self.rule is None and not has_files:
            raise OptionError(
                f"no output: no sites to print, since {self.reason}. Add -o FILE.csv, or -o - to print a table."
            )

    def write(self, predictions: Predictions, out: TableOutput) -> None:
        """Print the ranked sites of each file, and the threshold in plain words; write the table if requested."""
        from protgraph.inference.result_table import rows_by_file
        from protgraph.inference.sites import find_sites

        if self.rule is None:
            return
        sites = find_sites(predictions)
        files, sites_of = list(dict.fromkeys(str(row[0]) for row in predictions.rows)), rows_by_file(sites.rows)
        for file in files[:_SHOWN_FILES]:
            for line in _lines(file, sites_of.get(file, [])):
                out.print(line)
        if len(files) > _SHOWN_FILES:
            out.print(f"… {count_noun(len(files) - _SHOWN_FILES, 'more file')}; --sites FILE.csv has all sites")
        out.print(_threshold_text(self.rule))
        if self.path is not None:
            out.print(f"{count_noun(len(sites), 'site')} → {sites.write(self.path)}")


def _threshold_text(rule: CallRule) -> str:
    """Return the threshold of a call in plain words, with its precision and recall on validation and test."""
    lines = [
        f"called: residues with a probability of {rule.range}, a threshold chosen on validation. A called residue is "
        f"right if {rule.truth}."
    ]
    for split, proteins in (("val", "validation"), ("test", "test")):
        if split in rule.splits:
            counts = rule.splits[split]
            lines.append(
                f"  {proteins} proteins: {counts.precision:.0%} of the called residues are right (precision), and "
                f"{counts.recall:.0%} of the residues to call are called (recall)"
            )
    return "\n".join(lines)


def _lines(file: str, rows: list[Row]) -> list[str]:
    """Return the lines of one file."""
    large = [row for row in rows if int(row[2]) >= _SMALLEST]
    in_small = sum(int(row[2]) for row in rows) - sum(int(row[2]) for row in large)
    apart = f", and {count_noun(in_small, 'called residue')} in smaller groups" if in_small else ""
    lines = [f"{file}: {count_noun(len(large), 'site')} of {_SMALLEST} or more residues{apart}"]
    for _, rank, size, mean, expected, text, pymol, chimerax in large[:_SHOWN_SITES]:
        numbers = (
            f"{size} residues, mean probability {float(mean):.2f}, {float(expected):.1f} of them expected to be right"
        )
        lines += [f"  {rank}. {numbers}", f"     {text}", f"     PyMOL:    {pymol}", f"     ChimeraX: {chimerax}"]
    if len(large) > _SHOWN_SITES:
        lines.append(f"  … {count_noun(len(large) - _SHOWN_SITES, 'more site')}")
    return lines
