"""``protgraph featurize``: structure files to a graph store."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from protgraph.cli.feature_options import Feature, Ligands, Model, NodeType, Nucleic, feature_plan
from protgraph.cli.output_path import check_output_store
from protgraph.cli.read_options import reads_structures
from protgraph.cli.store_output import Manifest, Sources, check_manifest, write_graphs
from protgraph.errors import OptionError

if TYPE_CHECKING:
    from protgraph.prepare import Estimate
    from protgraph.structure import ReadOptions

__all__ = ["featurize_command"]

ENTRY_POINTS = {"protgraph.commands": {"featurize": "featurize_command"}}

FILES_PER_PROCESS = 100  # a process takes some seconds to start


@reads_structures(deferred=True)
def featurize_command(
    files: Sources,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Graph store to create or update (a folder).")] = None,
    feature: Feature = None,
    model: Model = None,
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
      protgraph featurize 4hhb.cif --assembly 1 --node-type atom -o graphs
      protgraph featurize my.fasta.gz -f sequence:k=2 -f edge_offset -o graphs
      protgraph featurize @list.txt --dry-run
      protgraph featurize @list.txt --engine ray --jobs 64 -o graphs
      protgraph train gat --data graphs --task secondary_structure
    """
    import os

    from protgraph.featurize import expand_sources

    for option, value in (("--jobs", jobs), ("--shard-residues", shard_residues), ("--sample", sample)):
        if value is not None and value < 1:
            raise OptionError(f"{option} {value}. Allowed: 1 or more.")
    if out is None and not dry_run:
        raise OptionError("--out is missing. Give a name for the store, or --dry-run.")
    plan, read = feature_plan(model, feature, node_type, read=read, ligands=ligands, nucleic=nucleic)
    sources = expand_sources(files)
    processes = jobs or max(1, min(os.cpu_count() or 1, len(sources) // FILES_PER_PROCESS))
    if dry_run:
        from protgraph.prepare import estimate_store

        _print_estimate(
            estimate_store(files, plan, read=read, jobs=processes, shard_residues=shard_residues, sample=sample),
            processes,
        )
        return
    inputs = [*files, *sources]
    check_output_store(out, inputs=inputs, overwrite=True)  # contract: only a graph store is replaced
    manifest = check_manifest(manifest, out, inputs, overwrite=overwrite)
    if processes == 1 and engine == "local":
        processes = 0  # this process does the work
    write_graphs(
        files,
        plan,
        read,
        out,
        manifest,
        jobs=processes,
        engine=engine,
        shard_residues=shard_residues,
        overwrite=overwrite,
    )


def _print_estimate(found: Estimate, processes: int) -> None:
    from protgraph.wording import count_noun

    unusable = f", {found.failed} of them not usable" if found.failed else ""
    typer.echo(f"{count_noun(found.files, 'file')}, {count_noun(found.sample, 'file')} measured{unusable}")
    about = "about " if found.sample < found.files else ""
    typer.echo(f"residues  {about}{found.residues:.0f}")
    typer.echo(f"bytes     {about}{found.bytes / 1e9:.3f} GB in {count_noun(found.shards, 'shard')}")
    typer.echo(f"hours     about {found.seconds / 3600:.2g} with {count_noun(processes, 'job')}")
