"""``protgraph bench mutations``: models of mutation effects beside published predictors."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Annotated

import typer

from protgraph.cli.output_path import Overwrite, check_output

__all__ = ["bench_mutations_command"]

#: Dataset → splits.
_SPLITS = {"ddg_stability": ["test"], "ddg_s461": ["test"], "ddg_ssym": ["direct", "reverse"]}


def bench_mutations_command(
    models: Annotated[
        list[str] | None,
        typer.Option("--model", help="Scorer, as in 'protgraph mutate'; repeat.  [default: ddg, proteinmpnn.v_48_020]"),
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="Markdown file of the tables.")] = Path("mutations.md"),
    overwrite: Overwrite = False,
) -> None:
    """Compare models with published predictors of ΔΔG on S669, S461 and Ssym.

    All methods of a table are scored on the same rows, those that each of them predicts. Intervals are over structures.
    Ssym has the correlation between direct and reverse predictions, and the bias.

    \b
    Example:
      protgraph data prepare ddg_stability --from FOLDER    (also ddg_s461 and ddg_ssym)
      protgraph bench mutations -o mutations.md
    """
    check_output(out, overwrite=overwrite)
    from protgraph.bench.mutation_comparison import mutation_rows, mutation_table
    from protgraph.cli.mutation_options import load_scorer
    from protgraph.data.datasets.mutation_dataset import MutationDataset
    from protgraph.errors import DatasetError
    from protgraph.file_io import write_text_file
    from protgraph.train import load_dataset

    scorers = [load_scorer(name) for name in models or ["ddg", "proteinmpnn.v_48_020"]]
    datasets = {name: load_dataset(name) for name in _SPLITS}
    for name, dataset in datasets.items():  # all of them before hours of work
        if not isinstance(dataset, MutationDataset):
            raise DatasetError(f"dataset {name!r} has no mutations.")
        if dataset.failures:
            typer.echo(
                f"note: {name}: {len(dataset.failures)} rows do not fit their structure and are left out", err=True
            )
    found = []
    for name, splits in _SPLITS.items():
        for split in splits:
            done = count(1)
            found.append(
                mutation_rows(
                    datasets[name],
                    split,
                    scorers,
                    lambda structure, n=name, s=split, d=done: typer.echo(f"{n} {s}: {next(d)} {structure}", err=True),
                )
            )
    table = mutation_table(found)
    write_text_file(out, table)
    typer.echo(table)
