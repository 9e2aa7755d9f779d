"""``protgraph featurize``: structure files to a graph store."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from protgraph.cli.output_path import check_output, check_output_store, set_aside_if_failed
from protgraph.cli.read_options import reads_structures
from protgraph.errors import OptionError

if TYPE_CHECKING:
    from protgraph.featurize import Failure, FeaturePlan, GraphResult
    from protgraph.registry.component import ComponentSpec
    from protgraph.structure import ReadOptions

__all__ = ["featurize_command", "parse_feature"]

FILES_PER_PROCESS = 100  # a process takes some seconds to start
DEFAULT = ("dihedral", "knn:k=30", "edge_distance", "edge_rbf")
BETWEEN_ATOMS = ("radius:radius=4.5", "covalent_bond", "edge_distance", "edge_rbf")


@reads_structures()
def featurize_command(
    files: Annotated[
        list[Path],
        typer.Argument(help="Structure or FASTA files, folders, '**/*.cif', @list.txt, pdb:1ubq, af:P69905."),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="Graph store to create (a folder).")],
    feature: Annotated[
        list[str] | None,
        typer.Option(
            "--feature",
            "-f",
            help=f"Featurizer, 'name' or 'name:option=value,…'; repeat for more. Default: {', '.join(DEFAULT)}.",
        ),
    ] = None,
    model: Annotated[str | None, typer.Option(help="Use the featurizers of this model.")] = None,
    node_type: Annotated[
        str | None, typer.Option(help="Nodes: residue, backbone (N, CA, C, O) or atom (all heavy atoms).")
    ] = None,
    ligands: Annotated[
        bool, typer.Option("--ligands", help="Add atoms of ligands. Requires --node-type atom.")
    ] = False,
    nucleic: Annotated[bool, typer.Option("--nucleic", help="Add nucleic acids. Requires --node-type atom.")] = False,
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", "-j", help="Number of processes. Default: one per 100 files, at most one per core."),
    ] = None,
    manifest: Annotated[
        Path | None, typer.Option(help="Table with a row per protein, .tsv, .csv or .json. Default: OUT.manifest.tsv.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing graph store.")] = False,
    *,
    read: ReadOptions,
) -> None:
    """Convert structure files to a graph store, with a manifest of losses and errors per protein.

    The store also has the residues: train, predict, embed, design, score and bench accept it in place of the files.

    Folders are searched recursively. Each record of a FASTA file is a protein without coordinates; choose featurizers
    that need none. A stopped run continues if it is started again. Exit code 1: some files failed, see the manifest;
    2: all failed.

    \b
    Examples:
      protgraph featurize 1ubq.cif structures/ pdb:4hhb -o graphs
      protgraph featurize "data/**/*.cif.gz" --jobs 8 -o graphs
      protgraph featurize *.pdb -f dihedral -f knn:k=16 -o graphs
      protgraph featurize 4hhb.cif --assembly 1 --node-type atom -o graphs
      protgraph featurize my.fasta.gz -f sequence:k=2 -f edge_offset -o graphs
      protgraph train gat --data graphs --task secondary_structure
    """
    import os
    from dataclasses import replace

    from protgraph.featurize import FeaturePlan, expand_sources

    if model is not None and feature:
        raise OptionError("--feature and --model exclude each other. Use one of them.")
    if jobs is not None and jobs < 1:
        raise OptionError(f"--jobs {jobs}. Use 1 process or more.")
    sources = expand_sources(files)
    inputs = [*files, *sources]
    check_output_store(out, inputs=inputs, overwrite=overwrite)
    manifest = _check_manifest(manifest, out, inputs, overwrite=overwrite)
    features, chosen = _features(model, feature, node_type)
    if (ligands or nucleic) and chosen != "atom":
        raise OptionError(f"--ligands and --nucleic: node type {chosen!r}. They require atoms. Add --node-type atom.")
    plan = FeaturePlan(features, node_type=chosen)
    read = replace(read, ligands=ligands, nucleic=nucleic).with_ligands(plan.needs_ligands)
    processes = jobs or max(1, min(os.cpu_count() or 1, len(sources) // FILES_PER_PROCESS))
    with _locked(out), set_aside_if_failed(out, overwrite=overwrite):
        check_output_store(out, overwrite=overwrite)  # another process may have written it in the meantime
        _featurize(sources, plan, read, out, manifest, jobs=processes, overwrite=overwrite)


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


@contextmanager
def _locked(out: Path) -> Iterator[None]:
    """Exclude a second process that writes the same store.

    Raises
    ------
    OptionError
        Another process writes it.
    """
    from filelock import FileLock, Timeout

    path = out.parent / f".{out.name}.lock"
    try:
        with FileLock(path, timeout=0):
            try:
                yield
            finally:
                path.unlink(missing_ok=True)
    except Timeout as e:
        raise OptionError(
            f"--out {str(out)!r} is being written by another process. Wait for it, or give another name."
        ) from e


def _featurize(
    sources: list[str], plan: FeaturePlan, read: ReadOptions, out: Path, manifest: Path, *, jobs: int, overwrite: bool
) -> None:
    """Write the store and the manifest, and exit with a code other than 0 if files failed."""
    import shutil

    from protgraph.featurize import Failure, iter_graphs, write_manifest
    from protgraph.wording import count_noun

    parts = out.parent / f".{out.name}.parts"
    results = _tracked(iter_graphs(sources, plan, read=read, jobs=jobs, resume=parts), len(sources))
    done = [r for r in results if not isinstance(r, Failure)]
    if done:
        _write(out, done, plan, read, overwrite=overwrite)
    table = write_manifest(manifest, results)
    if done:
        residues, edges = sum(len(r.residues) for r in done), sum(r.graph.num_edges for r in done)
        counts = [count_noun(len(done), "graph"), count_noun(residues, "residue"), count_noun(edges, "edge")]
        typer.echo(f"{', '.join(counts)} → {out}; losses are in {table}")
    shutil.rmtree(parts, ignore_errors=True)
    failures = [r for r in results if isinstance(r, Failure)]
    if failures:
        typer.secho(f"{len(failures)} of {len(results)} failed", fg="red", bold=True, err=True, nl=False)
        typer.echo(f"; see {table}. The first: {failures[0]}", err=True)
        raise typer.Exit(1 if done else 2)


def _write(out: Path, results: list[GraphResult], plan: FeaturePlan, read: ReadOptions, *, overwrite: bool) -> None:
    from protgraph.data.store import write_store
    from protgraph.featurize.store_entry import plan_digest

    info = {
        "features": [n.to_dict() for n in plan.components],
        "node_type": plan.node_type,
        "plan": plan_digest(plan),
        "read": read.to_dict(),
    }
    graphs, residues = [r.graph for r in results], [r.residues for r in results]
    read_from = {"sources": [r.source for r in results], "checksums": [r.sha256 for r in results]}
    write_store(out, graphs, residues=residues, **read_from, info=info, overwrite=overwrite)


def _tracked(results: Iterator[GraphResult | Failure], total: int) -> list[GraphResult | Failure]:
    """Collect all results, with a progress bar of files on the terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from protgraph.featurize import Failure

    columns = (TextColumn("featurize"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(),
               TextColumn("{task.description}"))  # fmt: skip
    collected: list[GraphResult | Failure] = []
    files: set[str] = set()
    failed = 0
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=total)
        for result in results:
            collected.append(result)
            failed += isinstance(result, Failure)
            files.add(result.source.partition("#")[0])
            bar.update(task, completed=len(files), description=f"[red]{failed} failed[/]" if failed else "")
    return collected


def _features(model: str | None, feature: list[str] | None, node_type: str | None) -> tuple[list[ComponentSpec], str]:
    """Return the featurizers and the node type: those of the model, else the chosen ones."""
    if model is None:
        kind = node_type or "residue"
        usual = DEFAULT if kind == "residue" else BETWEEN_ATOMS
        return [parse_feature(f) for f in feature or usual], kind
    from protgraph.model.build import as_model_spec

    graph = as_model_spec(model)
    if node_type not in (None, graph.node_type):
        raise OptionError(
            f"--node-type {node_type!r}: model {graph.name!r} has {graph.node_type!r}. Remove --node-type."
        )
    return list(graph.features), graph.node_type


def parse_feature(text: str) -> ComponentSpec:
    """Parse ``name`` or ``name:option=value,option=value``; values are numbers, true, false or words.

    Raises
    ------
    OptionError
        An option is not written ``name=value``.

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
