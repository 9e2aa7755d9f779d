"""``protgraph data split`` and ``protgraph data check``: splits without relatives."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from protgraph.cli import LabelFile, Overwrite, check_output, reads_structures, text_console

if TYPE_CHECKING:
    from protgraph_plugins.similarity.leaks import SplitCheck
    from protgraph_plugins.similarity.pose import PoseCheck
    from protgraph_plugins.similarity.structure_pairs import StructureRule

    from protgraph.structure import ReadOptions

__all__ = ["check_splits_command", "split_command"]
ENTRY_POINTS = {"protgraph.commands": {"data.split": "split_command", "data.check": "check_splits_command"}}

ENTRY_POINTS = {"protgraph.commands": {"data.split": "split_command", "data.check": "check_splits_command"}}

Data = Annotated[
    list[str], typer.Argument(help="Dataset by name, folder or graph store, structure or FASTA files, patterns.")
]
TaskName = Annotated[str | None, typer.Option("--task", help="Task, or label column of the table.")]
Identity = Annotated[float, typer.Option(help="Minimum sequence identity of homologs, a fraction of the alignment.")]
Coverage = Annotated[float, typer.Option(help="Minimum fraction of a chain that the alignment covers.")]
CoverageOf = Annotated[
    Literal["both", "shorter"], typer.Option(help="Chains whose coverage counts; shorter also finds shared domains.")
]
By = Annotated[
    Literal["sequence", "structure"],
    typer.Option(help="Relatives are homologs, or homologs and chains of similar structure."),
]
LeastTm = Annotated[
    float | None,
    typer.Option(
        "--tm",
        help="Least TM-score of structures by --by structure; see --coverage-of for the chain.  [default: 0.5]",
    ),
]
Engine = Annotated[
    Literal["auto", "parasail", "biotite", "mmseqs"],
    typer.Option(
        help="Program that finds homologs. auto: mmseqs above 5,000 chains, where installed, else an aligner."
    ),
]
#: Pairs of chains whose alignment with biotite takes a minute.
_MANY_PAIRS = 50_000
Jobs = Annotated[int, typer.Option("--jobs", "-j", min=1, help="Processes of the alignments.")]
Seed = Annotated[int, typer.Option(help="Seed of the random split.")]


@reads_structures()
def split_command(
    data: Data,
    out: Annotated[Path, typer.Option("--out", "-o", help="Table with the columns cluster and split, .csv.")],
    labels: LabelFile = None,
    task: TaskName = None,
    identity: Identity = 0.3,
    coverage: Coverage = 0.8,
    coverage_of: CoverageOf = "both",
    by: By = "sequence",
    tm: LeastTm = None,
    engine: Engine = "auto",
    fractions: Annotated[str, typer.Option(help="Fractions of train, val, test.")] = "0.8,0.1,0.1",
    seed: Seed = 0,
    jobs: Jobs = 1,
    overwrite: Overwrite = False,
    *,
    read: ReadOptions,
) -> None:
    """Assign proteins to train, val and test so that no relatives are in different splits.

    Relatives are homologs by sequence, chains of one entry, and chains of one file. All pairs of chains are aligned
    (with parasail if the extra 'align' is installed), or MMseqs2 searches. With --by structure, chains of similar
    structure are relatives too, whatever their sequences. Labels are balanced. OUT is the label table
    with two more columns, or a table of the files; 'train --labels OUT' uses it. OUT.leaks.csv has the most similar
    training protein of each other protein. An interrupted command continues.

    \b
    Examples:
      protgraph data split structures/ -o splits.csv
      protgraph data split structures/ --labels labels.csv -o labels_split.csv --identity 0.25 -j 2
      protgraph data split structures/ -o splits.csv --by structure --tm 0.5 -j 2
    """
    from protgraph_plugins.similarity.homologs import HomologyRule
    from protgraph_plugins.similarity.splits import split_dataset

    leaks = out.with_name(f"{out.name}.leaks.csv")
    for path in (out, leaks):
        check_output(path, inputs=[*data, labels], overwrite=overwrite, suffixes=[".csv"])
    with _progress(engine) as report:
        split = split_dataset(
            data[0] if len(data) == 1 else data,
            labels=labels,
            task=task,
            rule=HomologyRule(identity, coverage, coverage_of),
            structure=_structure_rule(by, tm, coverage_of),
            engine=None if engine == "auto" else engine,
            fractions=_fractions(fractions),
            seed=seed,
            workers=jobs,
            read=read,
            report=report,
        )
        split.write(out)
        split.check.write(leaks)
    typer.echo(str(split))
    typer.echo(f"→ {out}, {leaks}")
    if split.check.failures:
        raise typer.Exit(1)


@reads_structures()
def check_splits_command(
    data: Data,
    labels: LabelFile = None,
    task: TaskName = None,
    identity: Identity = 0.3,
    coverage: Coverage = 0.8,
    coverage_of: CoverageOf = "both",
    by: By = "sequence",
    tm: LeastTm = None,
    engine: Engine = "auto",
    model: Annotated[
        str | None, typer.Option(help="Trained model, by name or file, whose predictions must not depend on the pose.")
    ] = None,
    pose: Annotated[
        Literal["chain", "protein"], typer.Option(help="What is moved for --model: each chain, or the whole protein.")
    ] = "chain",
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Also write all leaks to this file, .csv.")] = None,
    seed: Seed = 0,
    jobs: Jobs = 1,
    overwrite: Overwrite = False,
    *,
    read: ReadOptions,
) -> None:
    """Find relatives in different splits of a dataset: homologs, equal sequences, chains of one entry or file.

    Identities are computed by aligning all chains of different splits; clusters of the dataset are not trusted. With
    --by structure, chains of similar structure are found too. With
    --model, chains of 20 proteins are moved rigidly: predictions that change show that the model reads the pose of the
    chains. Exit code 1: relatives are in different splits, predictions change, or a protein cannot be used. An
    interrupted command continues.

    \b
    Examples:
      protgraph data check pdb_core
      protgraph data check structures/ --labels labels.csv -o leaks.csv
      protgraph data check pdb_core --by structure -j 2
      protgraph data check complexes/ --model interface.pt
    """
    from protgraph_plugins.similarity.homologs import HomologyRule
    from protgraph_plugins.similarity.leaks import check_splits
    from protgraph_plugins.similarity.pose import check_pose

    from protgraph.checkpoint import as_checkpoint

    if out is not None:
        check_output(out, inputs=[*data, labels], overwrite=overwrite, suffixes=[".csv"])
    trained = None if model is None else as_checkpoint(model)
    with _progress(engine) as report:
        split_check = check_splits(
            data[0] if len(data) == 1 else data,
            labels=labels,
            task=task,
            rule=HomologyRule(identity, coverage, coverage_of),
            structure=_structure_rule(by, tm, coverage_of),
            engine=None if engine == "auto" else engine,
            seed=seed,
            workers=jobs,
            read=read,
            report=report,
        )
        if out is not None:
            split_check.write(out)
        typer.echo(str(split_check))
        checks: list[SplitCheck | PoseCheck] = [split_check]
        if trained is not None:
            checks.append(
                check_pose(
                    trained,
                    data[0] if len(data) == 1 else data,
                    unit=pose,
                    labels=labels,
                    task=task,
                    seed=seed,
                    read=read,
                    report=lambda done, total: report("pose", done, total),
                )
            )
            typer.echo(str(checks[-1]))
    if out is not None:
        typer.echo(f"→ {out}")
    if any(check.has_leaks or check.failures for check in checks):
        raise typer.Exit(1)


def _structure_rule(by: str, tm: float | None, coverage_of: str) -> StructureRule | None:
    """Return the rule of --by structure; None for --by sequence."""
    from protgraph_plugins.similarity.structure_pairs import StructureRule

    from protgraph.errors import OptionError

    if by == "sequence":
        if tm is not None:
            raise OptionError("--tm: sequences have no TM-score. Add --by structure.")
        return None
    return StructureRule(0.5 if tm is None else tm, "longer" if coverage_of == "both" else "shorter")


def _fractions(text: str) -> dict[str, float]:
    """Return the fractions of train, val and test of "0.8,0.1,0.1"."""
    from protgraph.errors import OptionError

    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        values = []
    if len(values) != 3:
        raise OptionError(f"--fractions: {text!r} is not three numbers, e.g. 0.8,0.1,0.1.")
    return dict(zip(("train", "val", "test"), values, strict=True))


@contextmanager
def _progress(engine: Engine) -> Iterator[Callable[[str, int, int], None]]:
    """Show a progress bar per stage on standard error, and how slow alignments become fast."""
    from protgraph_plugins.similarity.local_alignment import default_aligner
    from protgraph_plugins.similarity.mmseqs_search import find_mmseqs
    from rich.progress import Progress

    is_slow = engine == "auto" and default_aligner() == "biotite" and not find_mmseqs()
    console = text_console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        bars: dict[str, int] = {}

        def report(stage: str, done: int, total: int) -> None:
            if stage not in bars:
                if is_slow and stage == "align" and total >= _MANY_PAIRS:
                    typer.echo(
                        f"note: {total:,} pairs are aligned with biotite. parasail is about 17 times as fast: "
                        "pip install 'protgraph-pyg[align]'",
                        err=True,
                    )
                bars[stage] = progress.add_task(stage, total=total)
            progress.update(bars[stage], completed=done, total=total)

        yield report
