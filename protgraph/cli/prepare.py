"""``protgraph prepare``: large sets of structure files to a graph store, on many processes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from protgraph.cli.feature_options import Feature, Ligands, Model, NodeType, Nucleic, feature_plan
from protgraph.cli.output_path import check_output_store
from protgraph.cli.read_options import reads_structures
from protgraph.cli.store_output import Manifest, Sources, check_manifest, write_graphs
from protgraph.errors import OptionError

if TYPE_CHECKING:
    from protgraph.featurize import FeaturePlan
    from protgraph.prepare.estimate import Quantity
    from protgraph.structure import ReadOptions

__all__ = ["prepare_command"]


@reads_structures(deferred=True)
def prepare_command(
    files: Sources,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Graph store to create or update (a folder).")] = None,
    feature: Feature = None,
    model: Model = None,
    node_type: NodeType = None,
    ligands: Ligands = False,
    nucleic: Nucleic = False,
    jobs: Annotated[
        int | None, typer.Option("--jobs", "-j", help="Number of worker processes. Default: one per core.")
    ] = None,
    engine: Annotated[
        str, typer.Option(help="local: processes of this computer; ray: Ray Data, on the cluster of RAY_ADDRESS.")
    ] = "local",
    shard_residues: Annotated[int, typer.Option(help="Expected residues per shard.")] = 25_000,
    manifest: Manifest = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Measure a sample, print residues, bytes and time, and write nothing.")
    ] = False,
    sample: Annotated[int, typer.Option(help="Files that --dry-run measures.")] = 200,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a store of other features or with other sources.")
    ] = False,
    *,
    read: ReadOptions,
) -> None:
    """Convert large sets of structure files to a graph store of shards.

    The store is the same as that of protgraph featurize, which is simpler for some hundred files. Its bytes depend on
    the files, features and code, but not on the engine and the number of processes.

    A stopped or killed run continues if it is started again. On an existing store, shards whose files are unchanged
    are kept: new and changed files are added. A worker process that dies loses only its shard, which is repeated; a
    file at which processes die again and again is listed as failed. Exit code 1: some files failed, see the manifest;
    2: all failed.

    \b
    Examples:
      protgraph prepare structures/ --dry-run
      protgraph prepare structures/ -o store
      protgraph prepare @list.txt -f dihedral -f knn:k=16 --jobs 64 -o store
      protgraph prepare structures/ --engine ray --jobs 64 -o store
      protgraph data verify store
    """
    import os

    from protgraph.featurize import expand_sources

    jobs = jobs if jobs is not None else os.cpu_count() or 1
    for option, value in (("--jobs", jobs), ("--shard-residues", shard_residues), ("--sample", sample)):
        if value < 1:
            raise OptionError(f"{option} {value}. Allowed: 1 or more.")
    plan, read = feature_plan(model, feature, node_type, read=read, ligands=ligands, nucleic=nucleic)
    if dry_run:
        _print_estimate(files, plan, read, engine=engine, jobs=jobs, shard_residues=shard_residues, sample=sample)
        return
    if out is None:
        raise OptionError("--out is missing. Give a name for the store, or --dry-run.")
    inputs = [*files, *expand_sources(files)]
    check_output_store(out, inputs=inputs, overwrite=True)
    manifest = check_manifest(manifest, out, inputs, overwrite=overwrite)
    write_graphs(
        "prepare",
        files,
        plan,
        read,
        out,
        manifest,
        jobs=jobs,
        engine=engine,
        shard_residues=shard_residues,
        overwrite=overwrite,
        update=True,
    )


def _print_estimate(sources: Sequence[Path], plan: FeaturePlan, read: ReadOptions, **options: Any) -> None:
    """Print the estimate of a run, with intervals of about 95 %."""
    from protgraph.prepare import estimate_store
    from protgraph.wording import count_noun

    found = estimate_store(sources, plan, read=read, **options)
    unusable = f", {found.failed} of them not usable" if found.failed else ""
    typer.echo(f"{count_noun(found.files, 'file')}, {count_noun(found.sample, 'file')} measured{unusable}")
    processes = f"with {count_noun(options['jobs'], 'job')}"
    rows = (
        ("residues", _interval(found.residues, 1, ".0f")),
        ("bytes", f"{_interval(found.bytes, 1e9, '.3f')} GB in {count_noun(found.shards, 'shard')}"),
        (
            "hours",
            f"{_interval(found.seconds, 3600, '.4f')} {processes}",
        ),
    )
    for name, text in rows:
        typer.echo(f"{name:<9} {text}")


def _interval(quantity: Quantity, unit: float, form: str) -> str:
    low, high = (f"{value / unit:{form}}" for value in quantity.interval)
    value = f"{quantity.value / unit:{form}}"
    return value if low == high else f"{value} ({low} to {high})"
