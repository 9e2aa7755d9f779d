"""``protgraph compare``: lDDT, TM-score, GDT and RMSD of a model against a reference structure."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from protgraph.cli import (
    Overwrite,
    TableOutput,
    chain_names,
    chains_option,
    check_output,
    print_reader_notes,
    reads_structures,
    with_standard_input,
)
from protgraph.errors import OptionError
from protgraph.file_io import atomic_write

if TYPE_CHECKING:
    from protgraph_plugins.similarity.structure_comparison import StructureComparison

    from protgraph.structure import ReadOptions

__all__ = ["SCORES_SUFFIX", "compare_command"]

ENTRY_POINTS = {"protgraph.commands": {"compare": "compare_command"}}

#: Appended to the name of the table of residues: the scores of the whole model.
SCORES_SUFFIX = ".scores.csv"

ComparedChains = chains_option("Chains to compare, MODEL:REFERENCE, e.g. 'A:H,B:L'. Default: chains of equal names.")

_COLUMNS = ("chain", "res_id", "ins_code", "res_name", "model_chain", "model_res_id", "model_ins_code",
            "model_res_name", "lddt", "lddt_ca", "distance")  # fmt: skip


@reads_structures(chains=False)
def compare_command(
    model: Annotated[Path, typer.Argument(help="Structure file of the model.")],
    reference: Annotated[Path, typer.Argument(help="Structure file of the reference, e.g. the native structure.")],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Table of residues, .csv or '-'; OUT.scores.csv has the scores."),
    ] = None,
    match: Annotated[
        str, typer.Option(help="Corresponding residues: number (of equal residue number), or sequence (by alignment).")
    ] = "number",
    chains: ComparedChains = None,
    overwrite: Overwrite = False,
    *,
    read: ReadOptions,
) -> None:
    """Compare a model with a reference structure, and print the scores of the whole model.

    lddt is that of all heavy atoms, lddt_ca that of CA; tm_score, gdt_ts, gdt_ha and rmsd (Å) are of CA, each in the
    best superposition found. Residues of the reference that the model lacks count as wrong, except in the RMSD.

    The table has a row per residue of the reference, with its lDDT and the distance (Å) of CA in the superposition of
    the TM-score; cells are empty without a corresponding residue. Stereochemistry is not checked.

    \b
    Examples:
      protgraph compare model.pdb native.cif
      protgraph compare model.pdb native.cif -o lddt.csv
      protgraph compare model.cif 1ahw.cif --chain A:L,B:H --match sequence
    """
    from protgraph_plugins.similarity.structure_comparison import compare_structures

    from protgraph.structure.io import read_residues
    from protgraph.wording import count_noun

    model, reference = with_standard_input([model, reference])
    output = TableOutput(out, inputs=[model, reference], overwrite=overwrite, suffixes=[".csv"])
    scores = output.beside(SCORES_SUFFIX)
    if scores is not None:
        check_output(scores, inputs=[model, reference], overwrite=overwrite)
    pairs = _pairs(chain_names(chains))
    structures = read_residues(model, read), read_residues(reference, read)
    print_reader_notes({str(file): r.report for file, r in zip((model, reference), structures, strict=True)})
    result = compare_structures(*structures, chains=pairs, by=match)
    for line in result.lines():
        typer.echo(line, err=True)
    for name, value in result.scores.items():
        output.print(f"{name:8} {value:.4f}")
    if out is not None:
        with output.file(".csv") as path:
            _write(path, _COLUMNS, _rows(result))
    if scores is not None:
        _write(scores, ("score", "value"), result.scores.items())
        output.print(f"{count_noun(len(result.reference), 'residue')} → {out}, scores → {scores}")


def _pairs(names: Sequence[str]) -> dict[str, str] | None:
    """Parse 'A:H' and 'B:L'; None without any.

    Raises
    ------
    OptionError
        A part is not two names, or a chain of the model is named twice.
    """
    if not names:
        return None
    pairs: dict[str, str] = {}
    for entry in names:
        model_chain, colon, other = entry.partition(":")
        if not (model_chain and colon and other) or ":" in other or model_chain in pairs:
            raise OptionError(f"--chain {entry!r}. Allowed: MODEL:REFERENCE, each chain once, e.g. 'A:H,B:L'.")
        pairs[model_chain] = other
    return pairs


def _rows(result: StructureComparison) -> Iterable[Sequence[object]]:
    model, reference, m = result.model, result.reference, result.match
    partner = dict(zip(m.reference.tolist(), m.model.tolist(), strict=True))
    values = [result.lddt_ca.residue, result.distance]
    values.insert(0, [math.nan] * len(reference) if result.lddt is None else result.lddt.residue)
    keys = [
        list(zip(r.chain.tolist(), r.res_id.tolist(), r.ins_code.tolist(), r.res_name.tolist(), strict=True))
        for r in (reference, model)
    ]
    for row, numbers in enumerate(zip(*values, strict=True)):
        has_partner = row in partner
        other = keys[1][partner[row]] if has_partner else ("",) * 4
        cells = ["" if not has_partner or math.isnan(x) else f"{x:.4f}" for x in numbers]
        yield [*keys[0][row], *other, *cells]


def _write(path: Path, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    with atomic_write(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(columns)
        table.writerows(rows)
