"""Writing of graph stores: common options, progress, the manifest, and a summary at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from protgraph.cli.console import progress_bar
from protgraph.cli.output_path import check_output
from protgraph.errors import OptionError

if TYPE_CHECKING:
    from protgraph.featurize import FeaturePlan
    from protgraph.prepare import PreparedStore, ShardResult
    from protgraph.structure import ReadOptions

__all__ = ["Manifest", "Sources", "check_manifest", "write_graphs"]

Sources = Annotated[
    list[Path],
    typer.Argument(
        help="Structure or FASTA files, folders, '**/*.cif', @list.txt, pdb:1ubq, af:P69905, foldcomp databases."
    ),
]
Manifest = Annotated[
    Path | None, typer.Option(help="Table with a row per protein, .tsv, .csv or .json. Default: OUT.manifest.tsv.")
]


def check_manifest(manifest: Path | None, out: Path, inputs: Sequence[str | Path], *, overwrite: bool) -> Path:
    """Return the path of the manifest; the default one is replaced in any case, since it belongs to the store."""
    default = out.parent / f"{out.name}.manifest.tsv"
    overwrite = overwrite or manifest in (None, default)
    suffixes = [".tsv", ".csv", ".json"]
    if manifest is not None and manifest.parent == out:
        raise OptionError(f"--manifest {str(manifest)!r} is in the graph store. Give a path outside of it.")
    return check_output(
        manifest or default, option="--manifest", inputs=[*inputs, out], overwrite=overwrite, suffixes=suffixes
    )


def write_graphs(
    sources: Sequence[Path],
    plan: FeaturePlan,
    read: ReadOptions,
    out: Path,
    manifest: Path,
    *,
    jobs: int,
    engine: str,
    shard_residues: int,
    overwrite: bool,
) -> None:
    """Write or update the store, print a summary, and exit with code 1 if some files failed, 2 if all failed."""
    import time

    from protgraph.prepare import prepare_store

    begin = time.perf_counter()
    with _bar() as progress:
        prepared = prepare_store(
            sources,
            out,
            plan,
            read=read,
            engine=engine,
            jobs=jobs,
            shard_residues=shard_residues,
            overwrite=overwrite,
            update=True,
            manifest=manifest,
            progress=progress,
        )
    _summarize(prepared, out, manifest, time.perf_counter() - begin)


def _summarize(prepared: PreparedStore, out: Path, manifest: Path, seconds: float) -> None:
    from protgraph.featurize import count_notes
    from protgraph.wording import count_noun

    total, failed = prepared.total, prepared.total("failures")
    for note in count_notes(prepared.notes):
        typer.echo(f"note: {note}", err=True)
    if prepared.store is not None:
        counts = [count_noun(total("proteins"), "graph"), count_noun(total("residues"), "residue")]
        counts += [count_noun(total("edges"), "edge"), count_noun(len(prepared.shards), "shard")]
        reused = f" ({prepared.reused} unchanged)" if prepared.reused else ""
        size = f"{total('bytes') / 1e6:.1f} MB"
        typer.echo(f"{', '.join(counts)}{reused}, {size} in {seconds:.1f} s → {out}; losses are in {manifest}")
    if failed:
        whole = failed + total("proteins")
        typer.secho(f"{failed} of {whole} failed", fg="red", bold=True, err=True, nl=False)
        typer.echo(f"; see {manifest}. The first: {prepared.first_failures[0]}", err=True)
        raise typer.Exit(1 if total("proteins") else 2)


@contextmanager
def _bar() -> Iterator[Callable[[float | None, float, ShardResult], None]]:
    """Show a progress bar by expected residues on the terminal, with the remaining time."""
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("featurize"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn(),
               TextColumn("{task.description}"))  # fmt: skip
    counts = {"proteins": 0, "failures": 0}
    reused = 0.0
    with progress_bar(*columns) as bar:
        task = bar.add_task("", total=None)

        def advance(total: float | None, residues: float, result: ShardResult) -> None:
            nonlocal reused
            counts["proteins"] += result.entry.proteins
            counts["failures"] += result.entry.failures
            failed = f", [red]{counts['failures']} failed[/]" if counts["failures"] else ""
            if result.is_reused:  # takes no time: the remaining time would be underestimated
                reused += residues
            else:
                bar.advance(task, residues)
            left = None if total is None else max(0.0, total - reused)
            bar.update(task, total=left, description=f"{counts['proteins']} graphs{failed}")

        yield advance
