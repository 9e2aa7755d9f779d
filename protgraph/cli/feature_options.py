"""Features on the command line: options of the commands that write graph stores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from protgraph.cli.model_argument import find_model
from protgraph.errors import OptionError

if TYPE_CHECKING:
    from protgraph.featurize import FeaturePlan
    from protgraph.registry.component import ComponentSpec
    from protgraph.structure import ReadOptions

__all__ = ["Feature", "Ligands", "Model", "NodeType", "Nucleic", "feature_plan", "parse_feature"]

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
