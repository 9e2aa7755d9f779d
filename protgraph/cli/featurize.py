"""``protgraph featurize``: structure files to a graph store; its feature options, which other commands have too."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from protgraph.cli.console import progress_bar
from protgraph.cli.model_argument import SetValues, find_model
from protgraph.cli.output_path import check_output, check_output_store
from protgraph.cli.read_options import reads_structures
from protgraph.errors import OptionError

if TYPE_CHECKING:
    from protgraph.featurize import FeaturePlan
    from protgraph.prepare import Estimate, PreparedStore, ShardResult
    from protgraph.registry.component import ComponentSpec
    from protgraph.structure import ReadOptions

__all__ = ["Feature", "Ligands", "Model", "NodeType", "Nucleic", "feature_plan", "featurize_command", "parse_feature"]

ENTRY_POINTS = {"protgraph.commands": {"featurize": "featurize_command"}}

DEFAULT = ("dihedral", "knn:k=30", "edge_distance", "edge_rbf")
BETWEEN_ATOMS = ("radius:radius=4.5", "covalent_bond", "edge_distance", "edge_rbf")

Feature = Annotated[
    list[str] | None,
    typer.Option(
        "--feature",
        "-f",
        help=f"Featurizer, 'name' or 'name:option=value,…'; repeat for more. Default: {', '.join(DEFAULT)}.",
    ),
]
Model = Annotated[str | None, typer.Option(help="Use the featurizers of this model, by name or as TOML file.")]
NodeType = Annotated[str | None, typer.Option(help="Nodes: residue, backbone (N, CA, C, O) or atom (all heavy atoms).")]
Ligands = Annotated[bool, typer.Option("--ligands", help="Add atoms of ligands. Requires --node-type atom.")]
Nucleic = Annotated[bool, typer.Option("--nucleic", help="Add nucleic acids. Requires --node-type atom.")]


FILES_PER_PROCESS = 100  # a process takes some seconds to start

Sources = Annotated[
    list[Path],
    typer.Argument(
        help="Structure or FASTA files, folders, '**/*.cif', @list.txt, pdb:1ubq, af:P69905, foldcomp databases."
    ),
]
Manifest = Annotated[
    Path | None, typer.Option(help="Table with a row per protein, .tsv, .csv or .json. Default: OUT.manifest.tsv.")
]


@reads_structures(alignment=True, deferred=True)
def featurize_command(
    files: Sources,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Graph store to create or update (a folder).")] = None,
    feature: Feature = None,
    model: Model = None,
    settings: SetValues = None,
    node_type: NodeType = None,
    ligands: Ligands = False,
    nucleic: Nucleic = False,
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", "-j", help="Number of processes. Default: one per 100 files, at most one per core."),
    ] = None,
    engine: Annotated[
        str, typer.Option(help="local: processes of this computer; ray: the Ray cluster of RAY_ADDRESS.")
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
    """Convert structure files to a graph store, with a manifest of losses and errors per protein.

    The store also has the residues: train, predict, embed, design, score and bench accept it in place of the files. Its
    bytes depend on the files, features and code, but not on the engine and the number of processes.

    Folders are searched recursively. Each record of a FASTA file is a protein without coordinates; choose featurizers
    that need none.

    A stopped or killed run continues if it is started again. On an existing store, shards whose files are unchanged
    are kept: new and changed files are added. A worker process that dies loses only its shard, which is repeated; a
    file at which processes die again and again is listed as failed. Exit code 1: some files failed, see the manifest;
    2: all failed.

    \b
    Examples:
      protgraph featurize 1ubq.cif structures/ pdb:4hhb -o graphs
      protgraph featurize "data/**/*.cif.gz" --jobs 8 -o graphs
      protgraph featurize *.pdb -f dihedral -f knn:k=16 -o graphs
      protgraph featurize *.pdb --model gat --set features.knn.k=16 -o graphs
      protgraph featurize 4hhb.cif --assembly 1 --node-type atom -o graphs
      protgraph featurize my.fasta.gz -f sequence:k=2 -f edge_offset -o graphs
      protgraph featurize @list.txt --dry-run
      protgraph featurize @list.txt --engine ray --jobs 64 -o graphs
      protgraph train gat --data graphs --task secondary_structure
    """
    import os
    import time

    from protgraph.featurize import expand_sources
    from protgraph.prepare import estimate_store, prepare_store

    for option, value in (("--jobs", jobs), ("--shard-residues", shard_residues), ("--sample", sample)):
        if value is not None and value < 1:
            raise OptionError(f"{option} {value}. Allowed: 1 or more.")
    if out is None and not dry_run:
        raise OptionError("--out is missing. Give a name for the store, or --dry-run.")
    plan, read = feature_plan(model, settings, feature, node_type, read=read, ligands=ligands, nucleic=nucleic)
    sources = expand_sources(files)
    processes = jobs or max(1, min(os.cpu_count() or 1, len(sources) // FILES_PER_PROCESS))
    if dry_run or out is None:
        estimate = estimate_store(files, plan, read=read, jobs=processes, shard_residues=shard_residues, sample=sample)
        _print_estimate(estimate, processes)
        return
    inputs: list[str | Path] = [*files, *sources]
    check_output_store(out, inputs=inputs, overwrite=True)  # contract: only a graph store is replaced
    manifest = _check_manifest(manifest, out, inputs, overwrite=overwrite)
    if processes == 1 and engine == "local":
        processes = 0  # this process does the work
    begin = time.perf_counter()
    with _bar() as progress:
        prepared = prepare_store(
            files,
            out,
            plan,
            read=read,
            engine=engine,
            jobs=processes,
            shard_residues=shard_residues,
            overwrite=overwrite,
            update=True,
            manifest=manifest,
            progress=progress,
        )
    _summarize(prepared, out, manifest, time.perf_counter() - begin)


def _check_manifest(manifest: Path | None, out: Path, inputs: Sequence[str | Path], *, overwrite: bool) -> Path:
    """Return the path of the manifest; the default one is replaced in any case, since it belongs to the store."""
    default = out.parent / f"{out.name}.manifest.tsv"
    overwrite = overwrite or manifest in (None, default)
    suffixes = [".tsv", ".csv", ".json"]
    if manifest is not None and manifest.parent == out:
        raise OptionError(f"--manifest {str(manifest)!r} is in the graph store. Give a path outside of it.")
    return check_output(
        manifest or default, option="--manifest", inputs=[*inputs, out], overwrite=overwrite, suffixes=suffixes
    )


def _print_estimate(estimate: Estimate, processes: int) -> None:
    from protgraph.wording import count_noun

    unusable = f", {estimate.failed} of them not usable" if estimate.failed else ""
    typer.echo(f"{count_noun(estimate.files, 'file')}, {count_noun(estimate.sample, 'file')} measured{unusable}")
    about = "about " if estimate.sample < estimate.files else ""
    typer.echo(f"residues  {about}{estimate.residues:.0f}")
    typer.echo(f"bytes     {about}{estimate.bytes / 1e9:.3f} GB in {count_noun(estimate.shards, 'shard')}")
    typer.echo(f"hours     about {estimate.seconds / 3600:.2g} with {count_noun(processes, 'job')}")


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


def feature_plan(
    model: str | None,
    settings: list[str] | None,
    feature: list[str] | None,
    node_type: str | None,
    *,
    read: ReadOptions,
    ligands: bool,
    nucleic: bool,
) -> tuple[FeaturePlan, ReadOptions]:
    """Return the plan of the options of a command, and the read options with ligands and nucleic acids."""
    from dataclasses import replace

    from protgraph.featurize import FeaturePlan

    if model is not None and feature:
        raise OptionError("--feature and --model exclude each other. Use one of them.")
    if settings and model is None:
        raise OptionError("--set changes the model of --model. Give --model, too.")
    features, chosen = _features(model, settings, feature, node_type)
    if (ligands or nucleic) and chosen != "atom":
        raise OptionError(f"--ligands and --nucleic: node type {chosen!r}. They require atoms. Add --node-type atom.")
    plan = FeaturePlan(features, node_type=chosen)
    return plan, replace(read, ligands=ligands, nucleic=nucleic).with_ligands(plan.needs_ligands)


def _features(
    model: str | None, settings: list[str] | None, feature: list[str] | None, node_type: str | None
) -> tuple[list[ComponentSpec], str]:
    """Return the featurizers and the node type: those of the model, else the chosen ones."""
    if model is None:
        kind = node_type or "residue"
        usual = DEFAULT if kind == "residue" else BETWEEN_ATOMS
        return [parse_feature(f) for f in feature or usual], kind
    from protgraph.model.build import as_model_spec

    graph = as_model_spec(find_model(model, settings))
    if node_type not in (None, graph.node_type):
        raise OptionError(
            f"--node-type {node_type!r}: model {graph.name!r} has {graph.node_type!r}. Remove --node-type."
        )
    return list(graph.features), graph.node_type


def parse_feature(text: str) -> ComponentSpec:
    """Parse ``name`` or ``name:option=value,option=value``; values are numbers, true, false or words.

    Raises :class:`OptionError` if an option is not written ``name=value``.

    Examples
    --------
    >>> parse_feature("knn:k=8,of=cb").to_dict()
    {'name': 'knn', 'options': {'k': 8, 'of': 'cb'}}
    """
    import json

    from protgraph.registry.component import ComponentSpec

    name, _, rest = text.partition(":")
    options = {}
    for part in filter(None, rest.split(",")):
        key, equals, value = part.partition("=")
        if not equals:
            raise OptionError(f"--feature {text!r}: option {part!r}. Write it as name=value.")
        try:
            options[key] = json.loads(value)
        except ValueError:
            options[key] = value
    return ComponentSpec(name, options)
