"""``protgraph featurize``: structure files to a graph store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from protgraph.cli.feature_options import Feature, Ligands, Model, NodeType, Nucleic, feature_plan
from protgraph.cli.output_path import check_output_store
from protgraph.cli.read_options import reads_structures
from protgraph.cli.store_output import Manifest, Sources, StorePath, check_manifest, write_graphs
from protgraph.errors import OptionError

if TYPE_CHECKING:
    from protgraph.structure import ReadOptions

__all__ = ["featurize_command"]

FILES_PER_PROCESS = 100  # a process takes some seconds to start


@reads_structures(deferred=True)
def featurize_command(
    files: Sources,
    out: StorePath,
    feature: Feature = None,
    model: Model = None,
    node_type: NodeType = None,
    ligands: Ligands = False,
    nucleic: Nucleic = False,
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", "-j", help="Number of processes. Default: one per 100 files, at most one per core."),
    ] = None,
    manifest: Manifest = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing graph store.")] = False,
    *,
    read: ReadOptions,
) -> None:
    """Convert structure files to a graph store, with a manifest of losses and errors per protein.

    The store also has the residues: train, predict, embed, design, score and bench accept it in place of the files.
    For thousands of files, use protgraph prepare: it estimates time and disk space, and updates a store.

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

    from protgraph.featurize import expand_sources

    if jobs is not None and jobs < 1:
        raise OptionError(f"--jobs {jobs}. Use 1 process or more.")
    plan, read = feature_plan(model, feature, node_type, read=read, ligands=ligands, nucleic=nucleic)
    sources = expand_sources(files)
    inputs = [*files, *sources]
    check_output_store(out, inputs=inputs, overwrite=overwrite)
    manifest = check_manifest(manifest, out, inputs, overwrite=overwrite)
    processes = jobs or min(os.cpu_count() or 1, len(sources) // FILES_PER_PROCESS)
    workers = processes if processes > 1 else 0  # this process does the work
    write_graphs("featurize", files, plan, read, out, manifest, jobs=workers, overwrite=overwrite)
