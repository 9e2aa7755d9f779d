"""``protgraph featurize``: structure files to a folder of graphs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from protgraph.errors import OptionError, ProtgraphError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from protgraph.cli.files import Outcome
    from protgraph.data.graph import ProteinGraph
    from protgraph.data.node import Node
    from protgraph.featurize.build import FeaturePlan
    from protgraph.structure.entry import Entry

__all__ = ["featurize", "parse_feature"]

DEFAULT = ("dihedral", "ca_knn:k=30", "edge_distance", "edge_rbf")


def featurize(
    files: Annotated[
        list[Path], typer.Argument(help="Structure or FASTA files (PDB, mmCIF, BinaryCIF, maybe gzipped), or folders.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder to make; protgraph.data.store.Store reads it.")],
    feature: Annotated[
        list[str] | None,
        typer.Option("--feature", "-f", help=f"Featurizer, 'name' or 'name:option=value,…'; again for more. {DEFAULT}"),
    ] = None,
    model: Annotated[str | None, typer.Option(help="The featurizers of this model instead.")] = None,
    chain: Annotated[
        list[str] | None, typer.Option(help="Author chain id to keep; again for more. All by default.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the graphs that lie in the folder.")] = False,
) -> None:
    """Turn structure files into graphs, kept in flat arrays in one folder, with a manifest of what became of each file.

    Of a FASTA file every record is a protein; it has no coordinates, so name featurizers that need none.

    \b
    Examples:
      protgraph featurize 1ubq.cif structures/ -o graphs
      protgraph featurize *.pdb -f dihedral -f ca_knn:k=16 -f edge_rbf:bins=32 -o graphs
      protgraph featurize sequences.fasta.gz -f sequence:k=2 -f edge_offset -o graphs
      python -c "from protgraph.data.store import Store; print(Store('graphs')[0])"
    """
    from rich.progress import track

    from protgraph.cli.files import finish, structure_files, write_manifest
    from protgraph.data.store import write_store
    from protgraph.featurize.build import FeaturePlan

    if model is not None and feature:
        raise OptionError("give --feature or --model, not both")
    paths = structure_files(files)
    plan = FeaturePlan(_model_features(model) if model else [parse_feature(f) for f in feature or DEFAULT])
    graphs, outcomes = [], []
    for path in track(paths, description="featurize", transient=True):
        for graph, outcome in _proteins(path, plan, chain):
            outcomes.append(outcome)
            graphs += [graph] if graph is not None else []
    manifest = out.parent / f"{out.name}.manifest.tsv"
    if graphs:
        store = write_store(out, graphs, info={"features": [n.to_dict() for n in plan.nodes]}, overwrite=overwrite)
        typer.echo(f"{len(store)} graphs, {int(store.sizes.sum())} residues → {out}")
    write_manifest(manifest, outcomes)
    finish(len(outcomes) - len(graphs), len(outcomes), manifest)


def _proteins(path: Path, plan: FeaturePlan, chain: list[str] | None) -> Iterator[tuple[ProteinGraph | None, Outcome]]:
    from protgraph.structure.entry import entries

    try:
        found = entries(path, chains=chain)
    except ProtgraphError as e:
        yield None, _failed(str(path), e)
        return
    for entry in found:
        yield _one(entry, plan)


def _one(entry: Entry, plan: FeaturePlan) -> tuple[ProteinGraph | None, Outcome]:
    from protgraph.cli.files import Outcome

    try:
        residues = entry.read()
        graph = plan.whole(plan.stored(residues))
        graph.validate()
    except ProtgraphError as e:
        return None, _failed(entry.label, e)
    return graph, Outcome(entry.label, len(residues), left_out="; ".join(residues.report.lines()))


def _failed(label: str, error: ProtgraphError) -> Outcome:
    from protgraph.cli.files import Outcome

    return Outcome(label, reason=" ".join(str(error).split()))


def _model_features(model: str) -> tuple[Node, ...]:
    from protgraph.model.build import as_graph

    return tuple(as_graph(model).features)


def parse_feature(text: str) -> Node:
    """A node from ``name`` or ``name:option=value,option=value``; values are numbers, true, false or words.

    Raises
    ------
    OptionError
        An option is not written ``name=value``.
    """
    import json

    from protgraph.data.node import Node

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
    return Node(name, options)
