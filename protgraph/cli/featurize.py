"""``protgraph featurize``: structure files to a folder of graphs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from protgraph.cli.read_options import reads_structures
from protgraph.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from protgraph.featurize.pipeline import Outcome
    from protgraph.registry.component import ComponentSpec

__all__ = ["featurize_command", "parse_feature"]

FILES_A_PROCESS = 100  # a process takes some seconds to start
DEFAULT = ("dihedral", "knn:k=30", "edge_distance", "edge_rbf")
BETWEEN_ATOMS = ("radius:radius=4.5", "covalent_bond", "edge_distance", "edge_rbf")


@reads_structures()
def featurize_command(
    files: Annotated[
        list[Path],
        typer.Argument(help="Structure or FASTA files, folders, '**/*.cif', @list.txt, pdb:1ubq, af:P69905."),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder to make; protgraph.data.store.graph_store.GraphStore reads it.")],
    feature: Annotated[
        list[str] | None,
        typer.Option("--feature", "-f", help=f"Featurizer, 'name' or 'name:option=value,…'; again for more. {DEFAULT}"),
    ] = None,
    model: Annotated[str | None, typer.Option(help="The featurizers of this model instead.")] = None,
    node_type: Annotated[
        str | None, typer.Option(help="Nodes of the graphs: residue, backbone (N, CA, C, O) or atom (all heavy atoms).")
    ] = None,
    ligands: Annotated[bool, typer.Option("--ligands", help="With --node-type atom: the atoms of ligands too.")] = False,
    nucleic: Annotated[bool, typer.Option("--nucleic", help="With --node-type atom: nucleic acids too.")] = False,
    jobs: Annotated[
        int | None, typer.Option("--jobs", "-j", help="Processes; by default one a core where there are many files.")
    ] = None,
    manifest: Annotated[
        Path | None, typer.Option(help="Table of what became of each file, .tsv, .csv or .json. OUT.manifest.tsv")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the graphs that lie in the folder.")] = False,
    *,
    reading: dict[str, Any],
) -> None:
    """Turn structure files into graphs, kept in flat arrays in one folder, with a manifest of what became of each file.

    Folders are searched to the bottom. Of a FASTA file every record is a protein; it has no coordinates, so name
    featurizers that need none. Stopped and run again, it goes on where it was. Exit code 1: some files failed, and the
    manifest says why; 2: all did.

    \b
    Examples:
      protgraph featurize 1ubq.cif structures/ pdb:4hhb -o graphs
      protgraph featurize "data/**/*.cif.gz" --jobs 8 --manifest graphs.json -o graphs
      protgraph featurize *.pdb -f dihedral -f knn:k=16 -f edge_rbf:bins=32 -o graphs
      protgraph featurize 4hhb.cif --assembly 1 --node-type atom --ligands -f radius:radius=4.5 -f covalent_bond -o graphs
      protgraph featurize sequences.fasta.gz -f sequence:k=2 -f edge_offset -o graphs
      python -c "from protgraph.data.store.graph_store import Store; print(Store('graphs')[0])"
    """
    import os
    import shutil

    from protgraph.cli.source_files import finish, structure_files, write_manifest
    from protgraph.cli.wording import count_noun
    from protgraph.data.store.graph_store import META, write_store
    from protgraph.errors import DatasetError
    from protgraph.featurize.pipeline import featurize_files, graphs_of

    if model is not None and feature:
        raise OptionError("give --feature or --model, not both")
    if jobs is not None and jobs < 1:
        raise OptionError(f"--jobs is a number of processes, at least 1; got {jobs}")
    if out.exists() and not (overwrite and (out / META).is_file()):
        raise DatasetError(f"{out} exists already; --overwrite replaces it where it is a folder of graphs")
    paths = structure_files(files)
    features, node_type = _asked(model, feature, node_type)
    if (ligands or nucleic) and node_type != "atom":
        raise OptionError("ligands and nucleic acids are atoms: give --node-type atom too")
    parts = out.parent / f".{out.name}.parts"
    processes = jobs or max(1, min(os.cpu_count() or 1, len(paths) // FILES_A_PROCESS))
    options = {**reading, "node_type": node_type, "ligands": ligands, "nucleic": nucleic}
    made = featurize_files(paths, features, parts, **options, jobs=processes)
    outcomes = [o for found in _followed(made, len(paths)) for o in found]
    table = write_manifest(manifest or out.parent / f"{out.name}.manifest.tsv", outcomes)
    done = [o for o in outcomes if not o.error]
    if done:
        info = {"features": [n.to_dict() for n in features], "node_type": node_type}
        store = write_store(out, graphs_of(done), info=info, overwrite=overwrite)
        residues, edges = (sum(getattr(o, count) for o in done) for count in ("residues", "edges"))
        said = ", ".join([count_noun(len(store), "graph"), count_noun(residues, "residue"), count_noun(edges, "edge")])
        typer.echo(f"{said} → {out}; {table} says what was left out")
    shutil.rmtree(parts)
    finish(len(outcomes) - len(done), len(outcomes), table)


def _followed(made: Iterator[tuple[int, list[Outcome]]], total: int) -> list[list[Outcome]]:
    """All outcomes in the order of the files, with a bar on the terminal meanwhile."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("featurize"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(),
               TextColumn("{task.description}"))  # fmt: skip
    found: dict[int, list[Outcome]] = {}
    failed = 0
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=total)
        for i, outcomes in made:
            found[i] = outcomes
            failed += sum(bool(o.error) for o in outcomes)
            bar.update(task, advance=1, description=f"[red]{failed} failed[/]" if failed else "")
    return [found[i] for i in sorted(found)]


def _asked(model: str | None, feature: list[str] | None, node_type: str | None) -> tuple[list[ComponentSpec], str]:
    """The featurizers and the node type: those of the model, else those asked for."""
    if model is None:
        kind = node_type or "residue"
        usual = DEFAULT if kind == "residue" else BETWEEN_ATOMS
        return [parse_feature(f) for f in feature or usual], kind
    from protgraph.model.build import as_model_spec

    graph = as_model_spec(model)
    if node_type not in (None, graph.node_type):
        raise OptionError(f"model {graph.name!r} has node type {graph.node_type!r}; leave --node-type out")
    return list(graph.features), graph.node_type


def parse_feature(text: str) -> ComponentSpec:
    """A node from ``name`` or ``name:option=value,option=value``; values are numbers, true, false or words.

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
            raise OptionError(f"feature {text!r}: option {part!r} must be written name=value")
        try:
            options[key] = json.loads(value)
        except ValueError:
            options[key] = value
    return ComponentSpec(name, options)
