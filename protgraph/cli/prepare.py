"""``protgraph prepare``: large sets of structure files to a graph store, on many processes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from protgraph.cli.feature_options import Feature, Ligands, Model, NodeType, Nucleic, feature_plan
from protgraph.cli.output_path import check_output_store, set_aside_if_failed
from protgraph.cli.read_options import reads_structures
from protgraph.cli.store_output import Manifest, Sources, StorePath, check_manifest, write_graphs
from protgraph.errors import OptionError

if TYPE_CHECKING:
    from protgraph.structure import ReadOptions

__all__ = ["prepare_command"]


@reads_structures()
def prepare_command(
    files: Sources,
    out: StorePath,
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
      protgraph prepare structures/ -o store
      protgraph prepare @list.txt -f dihedral -f knn:k=16 --jobs 64 -o store
      protgraph prepare structures/ --engine ray --jobs 64 -o store
      protgraph data verify store
    """
    import os

    from protgraph.featurize import expand_sources

    jobs = jobs if jobs is not None else os.cpu_count() or 1
    for option, value in (("--jobs", jobs), ("--shard-residues", shard_residues)):
        if value < 1:
            raise OptionError(f"{option} {value}. Allowed: 1 or more.")
    plan, read = feature_plan(model, feature, node_type, read=read, ligands=ligands, nucleic=nucleic)
    sources = expand_sources(files)
    inputs = [*files, *sources]
    check_output_store(out, inputs=inputs, overwrite=True)
    manifest = check_manifest(manifest, out, inputs, overwrite=overwrite)
    with set_aside_if_failed(out, overwrite=overwrite):
        write_graphs(
            "prepare",
            sources,
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
