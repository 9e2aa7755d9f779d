"""``protgraph mutate``: score given mutations of structures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from protgraph_plugins.design import Device, protein_files
from protgraph_plugins.mutations.options import (
    Ensemble,
    Files,
    Mode,
    Orders,
    Partners,
    ScorerName,
    ScorerWeights,
    Seed,
    load_scorer,
    print_convention,
)

from protgraph.cli import Overwrite, TableOutput, reads_structures, report_failures
from protgraph.errors import OptionError
from protgraph.wording import count_noun

if TYPE_CHECKING:
    from protgraph_plugins.mutations.scorer import MutationScorer
    from protgraph_plugins.mutations.table import MutationTable
    from protgraph_plugins.mutations.variant_scores import ScoredVariants, StructureFolder

    from protgraph.inference import ResultTable
    from protgraph.structure import ReadOptions

__all__ = ["mutate_command"]
ENTRY_POINTS = {"protgraph.commands": {"mutate": "mutate_command"}}

_LISTED_SIZES = 3  # numbers of mutations per variant in a message


@reads_structures(deferred=True)
def mutate_command(
    files: Files,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Output file, .csv or .parquet, or '-' for standard output.  [default: none]"),
    ] = None,
    mutations: Annotated[
        list[str] | None,
        typer.Option(
            help="Variants: 'A:G42D,A:L45P' are two; 'A:G42D+A:L45P' is one, with both mutations together. Repeatable."
        ),
    ] = None,
    table: Annotated[
        str | None, typer.Option(help="Table with a variant per row: CSV, TSV, .xlsx (FILE.xlsx#SHEET) or Parquet.")
    ] = None,
    model: ScorerName = None,
    weights: ScorerWeights = None,
    mode: Mode = "conditional",
    orders: Orders = 1,
    seed: Seed = 0,
    ensemble: Ensemble = "mean",
    partners: Partners = "",
    symmetric: Annotated[
        bool, typer.Option("--symmetric", help="Make each mutation in all identical chains (homo-oligomers).")
    ] = False,
    percentile: Annotated[
        bool, typer.Option("--percentile", help="Also scan the mutated chains, for the percentile of each score.")
    ] = False,
    device: Device = "auto",
    overwrite: Overwrite = False,
    *,
    read: ReadOptions,
) -> None:
    """Score variants of structures, positive = unfavorable or destabilizing, and call what the card supports.

    The variants are printed, most unfavorable first: the score, the spread (standard deviation) of the members of the
    model, the call (destabilizing, neutral or stabilizing), and how buried the residue is. Calls are of single
    mutations, from thresholds that validation chose; their precision and recall are printed. A model without a card
    calls nothing.

    A score is ΔΔG = ΔG(mutant) − ΔG(wild type) in kcal/mol (column ddg_kcal_mol), or log p(wild type) − log p(mutant)
    without a unit (unfavorable_log_odds). It is exactly 0 for the wild type, 'WT'. The mutations of a variant are made
    together. With --partners it is that of binding: the score in the complex minus those in the separated partners.

    Chain, residue number and insertion code are those of the file, and the wild type must be the residue there.

    Tables have a variant per row: a column 'mutations', or 'mutant' as in ProteinGym's tables (K1A:V2G), or the columns
    chain, res_id, ins_code, wild_type and mutant with ';' between several; and 'file' with names of the structures if
    there are several. Rows that do not fit are listed in OUT.failures.csv, and the exit code is then 1 (2 if none
    fits).

    \b
    Forms of a mutation:
      A:G42D      chain, wild type, number, mutant; A:G-3D has the number -3
      A:G52[A]D   with the insertion code A
      GA42D       wild type, chain, number, mutant, as in SKEMPI
      p.Gly42Asp  HGVS; this and G42D need a structure with one chain
    Between mutations:
      ,           separates variants; in a row of a table, which is one variant, it is as '+'
      + : ;       join the mutations of one variant, A:G42D+A:L45P

    \b
    Examples:
      protgraph mutate 1ubq.cif --table muts.csv                        (printed)
      protgraph mutate 1ubq.cif --mutations A:G47D,A:L50P -o out.csv    (two variants)
      protgraph mutate 1ubq.cif --mutations A:G47D+A:L50P -o out.csv    (one variant)
      protgraph mutate structures/ --table muts.csv -o out.csv
      protgraph mutate dimer.pdb --mutations A:G42D --symmetric -o out.csv
      protgraph mutate complex.pdb --mutations D:D39A --partners A/D -o out.csv    (binding)
      protgraph mutate 1ubq.cif --table muts.csv --model esm2 -o out.csv
    """
    from protgraph_plugins.mutations.answers import variant_columns, variant_lines
    from protgraph_plugins.mutations.table import read_mutation_table
    from protgraph_plugins.mutations.variant_scores import StructureFolder, score_variants

    from protgraph.inference import TABLE_SUFFIXES

    if mutations is not None and table is not None:
        raise OptionError("--mutations and --table are both given. Give one of them.")
    if mutations is None and table is None:
        raise OptionError("no mutations. Give them by --mutations A:G42D, or by --table FILE.")
    sources = protein_files(files)
    inputs = [*files, *sources, table, weights]
    output = TableOutput(out, inputs=inputs, overwrite=overwrite, suffixes=TABLE_SUFFIXES)
    scorer = load_scorer(
        model,
        weights,
        mode=mode,
        orders=orders,
        seed=seed,
        ensemble=ensemble,
        partners=partners,
        device=device,
    )
    read = read.with_ligands(getattr(scorer, "needs_ligands", False))
    structures = StructureFolder(sources, read)
    if table is None:
        variants = _given_variants(structures, mutations or [])
    else:
        variants = read_mutation_table(table, default_chain=structures.only_chain)
    _print_variants(variants, output)
    scored = score_variants(scorer, structures, variants, symmetric=symmetric)
    for note in scored.notes:
        typer.echo(f"note: {note}", err=True)
    if scored.rows:
        print_convention(scorer, output)
        columns = variant_columns(scorer, scored, structures, percentile=percentile)
        for line in variant_lines(scorer, scored, columns):
            output.print(line)
        output.write(_result(scorer, scored, variants, columns), count_noun(len(scored.rows), "variant"))
    report_failures(scored.failures, output.path, any_succeeded=bool(scored.rows))


def _given_variants(structures: StructureFolder, texts: Sequence[str]) -> MutationTable:
    """Return the variants of ``--mutations`` for every structure, as a table.

    With one structure, the first variant that does not fit it is an error of the command, not of a row.
    """
    from protgraph_plugins.mutations.mutation import parse_variants
    from protgraph_plugins.mutations.residue_index import find_residues
    from protgraph_plugins.mutations.table import MutationRow, MutationTable

    rows = []
    for source in structures.sources:
        for text in texts:
            for variant in parse_variants(text, default_chain=structures.only_chain(source)):
                if len(structures.sources) == 1:
                    find_residues(structures.residues(source), variant)
                rows.append(MutationRow(len(rows) + 1, source, variant, {}))
    return MutationTable("--mutations", (), tuple(rows), ())


def _print_variants(table: MutationTable, out: TableOutput) -> None:
    """Print how many variants there are, and how many have several mutations."""
    sizes = Counter(len(row.variant) for row in table.rows)
    several = [f"{sizes[n]} with {n} mutations" for n in sorted(sizes) if n > 1]
    if len(several) > _LISTED_SIZES:
        several = [f"{sum(sizes[n] for n in sizes if n > 1)} with 2 to {max(sizes)} mutations"]
    wild_types = [f"{sizes[0]} of the wild type"] if sizes[0] else []
    out.print(f"{table.where}: {', '.join([count_noun(len(table.rows), 'variant'), *several, *wild_types])}")
    if table.rows_with_commas:
        typer.echo(
            f"note: {count_noun(table.rows_with_commas, 'row')} with ',' between mutations: a row is one variant, "
            "and its mutations are made together",
            err=True,
        )


def _result(
    scorer: MutationScorer, scored: ScoredVariants, table: MutationTable, columns: Mapping[str, Sequence[float | str]]
) -> ResultTable:
    """Return a row per variant: row of the table, file, mutations, score, ``columns``, then columns of the table."""
    from protgraph_plugins.mutations.mutation import format_variant
    from protgraph_plugins.mutations.scorer import score_column

    from protgraph.inference import ResultTable

    names = ["row", "file", "mutations", "n_mutations", "model", score_column(scorer), *columns]
    copied = [name for name in table.columns if name]
    names_of_copied = [f"{name}_in_table" if name in names else name for name in copied]
    rows = []
    for number, (row, source, value) in enumerate(scored.rows):
        result = (row.row, source, format_variant(row.variant), len(row.variant), scorer.name, value)
        beside = (values[number] for values in columns.values())
        rows.append((*result, *beside, *(row.cells[name] for name in copied)))
    return ResultTable((*names, *names_of_copied), rows)
