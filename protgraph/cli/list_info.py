"""``protgraph list`` and ``protgraph info``: installed components, and the description of one."""

from __future__ import annotations

import inspect
import json
from importlib.machinery import PathFinder
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from protgraph.cli.console import print_rows
from protgraph.cli.error_report import print_warning
from protgraph.cli.model_argument import SetValues, find_checkpoint, find_model
from protgraph.errors import UnknownNameError, suggest
from protgraph.registry import Family, Option, PluginProblem, Registry, RegistryEntry, component_options, registries
from protgraph.registry.discovery import malformed_metadata
from protgraph.registry.provider import split_distribution

if TYPE_CHECKING:
    from protgraph.model import ProteinModel
    from protgraph.registry.component import ComponentSpec
    from protgraph.task import Task

__all__ = ["info_command", "list_command"]

ENTRY_POINTS = {"protgraph.commands": {"list": "list_command", "info": "info_command"}}


def list_command(
    kind: Annotated[
        str | None,
        typer.Argument(
            help="Kind: featurizers, layers, heads, models, tasks, datasets, trained_models, mutation_scorers, "
            "metrics, readers, commands or functions.  [default: all]"
        ),
    ] = None,
) -> None:
    """List the installed components with their distributions. No component is imported.

    Trained models are listed with what they read of a file (one chain, all chains, antibody domains), what they predict
    and how well: a metric on a test set beside a trivial method (floor) and published ones.

    A component whose name belongs to another distribution is listed and used as DISTRIBUTION/NAME.

    \b
    Examples:
      protgraph list
      protgraph list layers
    """
    plurals = list(registries) if kind is None else [_plural(kind)]
    for plural in plurals:
        registry = registries[plural]
        names = registry.names()
        typer.secho(f"{plural} ({len(names)})", bold=True)
        conflicts = {conflict.name: conflict for conflict in registry.problems()}
        rows = [_row(registry, name, conflicts.get(name)) for name in names]
        print_rows(rows, indent="  ")
    for fault in malformed_metadata():
        print_warning(f"the components of {fault.source} are not listed: {fault.message}")


def info_command(
    name: Annotated[
        str,
        typer.Argument(help="Component name, 'family.variant', 'distribution/name', model.toml, or checkpoint file."),
    ],
    kind: Annotated[str | None, typer.Option(help="Kind of component, e.g. layers, if several share the name.")] = None,
    settings: SetValues = None,
) -> None:
    """Print the inputs, outputs, options, documentation and source of a component.

    For a model or a checkpoint, 'parts' are the names that --freeze, --unfreeze-after and --lr-scale of 'protgraph
    train' select. For a checkpoint file, its data, results and digest are printed, and the checkpoints from which it
    was trained. --set shows a model with other values; 'protgraph describe' prints its fields and shapes, too.

    \b
    Examples:
      protgraph info knn
      protgraph info gcn --kind layers
      protgraph info gcn --set layers.1.dim=128
      protgraph info my.safetensors
    """
    if settings or name.endswith(".toml"):
        from protgraph.model import as_model_spec

        find_checkpoint(name, settings)  # contract: a trained model is not changed
        spec = as_model_spec(find_model(name, settings))
        _print_facts(f"model {name}", _model_facts(spec))
        return
    plurals = list(registries) if kind is None else [_plural(kind)]
    selected = {plural: registries[plural] for plural in plurals}
    matches = [registry for registry in selected.values() if name in registry]
    if not matches and Path(name).suffix == ".safetensors":
        _print_facts(f"checkpoint {name}", _checkpoint_facts(name))
        return
    if not matches:
        raise _unknown(name, selected)
    for i, registry in enumerate(matches):
        if i > 0:
            typer.echo()
        typer.echo(_describe(registry, name))


def _print_facts(title: str, facts: list[tuple[str, str]]) -> None:
    typer.secho(title, bold=True)
    for label, value in facts:
        typer.echo(_fact(label, value))


def _plural(kind: str) -> str:
    plural = kind.removesuffix("s") + "s"
    if plural not in registries:
        hint = suggest(kind, registries)
        raise UnknownNameError(f"kind {kind!r} not found.{hint} Allowed: {', '.join(registries)}.")
    return plural


def _row(registry: Registry, name: str, conflict: PluginProblem | None) -> tuple[str, str, str]:
    """Return name, distribution and content of a component."""
    entry = registry.entry(name)
    _, bare_name = split_distribution(name)
    if conflict is None:
        content = _card_line(entry) if registry.kind == "trained_model" else entry.object
        return name, entry.source, content
    if registry.is_reserved(name):
        return name, entry.source, f"not available: {bare_name!r} is a name of protgraph itself"
    if bare_name != name:
        return name, entry.source, f"{entry.object} ({bare_name!r} is built in)"
    return name, conflict.source, "conflict: write DISTRIBUTION/NAME"


def _card_line(entry: RegistryEntry) -> str:
    """Return what a trained model reads and predicts, from the card in the folder of its name beside its module.

    The module is not imported. Without a card there, its object is returned.
    """
    module, _, _ = entry.object.partition(":")
    path = _folder_of_module(module) / entry.name / "card.json"
    if not path.is_file():
        return entry.object
    card = json.loads(path.read_text(encoding="utf-8"))
    reads = card.get("reads", "")
    summary = card.get("summary", "")
    return f"{reads:<16}  {summary} {_quality(card)}".rstrip()


def _folder_of_module(module: str) -> Path:
    """Return the folder of a module, found without importing its packages; the current folder if there is none."""
    package, *names = module.split(".")
    spec = find_spec(package)
    for name in names:
        if spec is None:
            break
        package = f"{package}.{name}"
        spec = PathFinder.find_spec(package, spec.submodule_search_locations)
    if spec is None or not spec.origin:
        return Path()
    return Path(spec.origin).parent


_SMALLER_IS_BETTER = ("rmse", "mae")


def _quality(card: dict[str, Any]) -> str:
    """Return metrics of a card on a test set beside floor and rivals: "[test: auprc .504; floor .111; X .544]".

    The metric is that of the first rival; if it has no floor, another one with a floor follows.
    """
    rivals = _compared(card, "rival")
    split = rivals[0]["split"] if rivals else "test"
    result = card.get("splits", {}).get(split, {})
    if not result.get("metrics"):
        return ""
    floors = [floor for floor in _compared(card, "floor") if floor["split"] == split]
    metric = rivals[0]["metric"] if rivals else next(iter(result["metrics"]))
    metric_text = _with_floor(metric, result, floors)
    texts = [f"{split}: {metric_text}"]
    if rivals:
        texts += _rival_texts(rivals, split, metric)
    else:
        texts.append("rival: none on these rows")
    if "floor" not in texts[0]:
        texts.append(_other_with_floor(metric, result, floors))
    return f"[{'; '.join(texts)}]"


def _rival_texts(rivals: list[dict[str, Any]], split: str, metric: str) -> list[str]:
    """Return the rivals on a split by a metric: "X .544"."""
    return [_rival_text(rival) for rival in rivals if rival["split"] == split and rival["metric"] == metric]


def _other_with_floor(metric: str, result: dict[str, Any], floors: list[dict[str, Any]]) -> str:
    """Return the first metric other than this one that has a floor, or that there is none."""
    for floor in floors:
        if floor["metric"] != metric:
            return _with_floor(floor["metric"], result, floors)
    return "floor: none on these rows"


def _with_floor(metric: str, result: dict[str, Any], floors: list[dict[str, Any]]) -> str:
    """Return a metric with its best floor, if it has one: "auprc .504; floor .111"."""
    value = result["metrics"][metric][0]
    text = f"{metric} undefined" if value is None else f"{metric} {_figure(value)}"
    floor = _floor(metric, result, floors)
    if floor is not None:
        text += f"; floor {_figure(floor)}"
    return text


def _compared(card: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    """Return the floors or the rivals on a card."""
    return [other for other in card.get("comparisons", []) if other["kind"] == kind]


def _rival_text(other: dict[str, Any]) -> str:
    note = "" if other["confirmed"] else " (not confirmed)"
    return f"{other['method']} {_figure(other['value'])}{note}"


def _floor(metric: str, result: dict[str, Any], compared: list[dict[str, Any]]) -> float | None:
    """Return the best value of a trivial method; None if there is none."""
    floors = [floor["value"] for floor in compared if floor["metric"] == metric]
    chance = _chance(metric, result)
    if chance is not None:
        floors.append(chance)
    if not floors:
        return None
    return min(floors) if metric in _SMALLER_IS_BETTER else max(floors)


def _chance(metric: str, result: dict[str, Any]) -> float | None:
    """Return the value of a random ranking or of the most frequent class; None for other metrics."""
    if metric == "auprc" and len(result["positives"]) == 1:
        return result["positives"][0] / result["labels"]
    if metric == "accuracy" and result["positives"]:
        return max(result["positives"]) / result["labels"]
    return None


def _figure(value: float) -> str:
    return f"{value:.3f}".removeprefix("0")


def _unknown(name: str, selected: dict[str, Registry]) -> UnknownNameError:
    """Return the error of a name that no registry has, with similar names or the variants of the family."""
    base, _, variant = name.partition(".")
    with_base = [registry for registry in selected.values() if base in registry]
    if variant and with_base:
        for registry in with_base:
            family = registry.family(base)
            if family is not None:
                hint = suggest(variant, family.variants)
                variants = ", ".join(family.variants)
                return UnknownNameError(f"{name!r} not found.{hint} Variants of {base!r}: {variants}.")
        return UnknownNameError(f"{name!r} not found. {base!r} has no variants.")
    names: set[str] = set()
    kinds = []
    for registry in selected.values():
        names.update(registry)
        kinds.append(registry.kind)
    kind = kinds[0] if len(kinds) == 1 else "component"
    hint = suggest(name, sorted(names))
    return UnknownNameError(f"{kind} {name!r} not found.{hint} 'protgraph list' prints all names.")


def _describe(registry: Registry, name: str) -> str:
    """Load a component and return its description."""
    entry = registry.entry(name)
    family = registry.family(name)
    component = registry.get(name)
    lines = [
        typer.style(f"{registry.kind} {name}", bold=True),
        _fact("from", entry.source),
        _fact("object", entry.object),
        _fact("where", registry.where(name)),
    ]
    if family is not None:
        lines.append(_fact("variants", _variant_names(entry.name, family)))
    lines += _stated_facts(registry.kind, component)
    if registry.kind in ("model", "trained_model"):
        lines += [_fact(label, value) for label, value in _model_facts(component)]
    if callable(component):
        label = "options"  # before the first one
        for option in component_options(component).values():
            lines.append(_fact(label, _option(option)))
            label = ""
    doc = _doc(component)
    if not doc and family is not None:
        doc = family.doc
    if doc:
        lines += ["", doc]
    return "\n".join(lines)


def _variant_names(name: str, family: Family) -> str:
    texts = []
    for variant in family.variants:
        mark = " (default)" if variant == family.default else ""
        texts.append(f"{name}.{variant}{mark}")
    return ", ".join(texts)


def _stated_facts(kind: str, component: Any) -> list[str]:
    """Return what a component states itself: fields of a layer, direction of a metric, target of a task."""
    lines = []
    for label in ("reads", "optional", "writes"):
        fields = getattr(component, label, ())
        if isinstance(fields, tuple) and fields:
            lines.append(_fact(label, ", ".join(fields)))
    if kind == "metric":
        lines.append(_fact("better", "higher" if component.mode == "max" else "lower"))
    if kind == "task":
        lines += [_fact(label, value) for label, value in _task_facts(component)]
    return lines


def _task_facts(task: Task) -> list[tuple[str, str]]:
    """Return target, head, metrics and input masking of a task as labeled lines."""
    target = task.target
    target_text = f"{target.kind} per {target.level}, size {target.size}"
    if target.separation:
        target_text += f", at least {target.separation} residues apart"
    if target.unit != "dimensionless":
        target_text += f", {target.unit}"
    if target.names:
        target_text += f": {', '.join(target.names)}"
    arrows = {"max": "↑", "min": "↓"}
    metrics = [f"{metric.name} {arrows[metric.mode]}" for metric in task.metrics]
    facts = [
        ("target", target_text),
        ("head", target.head_name),
        ("metrics", ", ".join(metrics)),
        ("monitor", f"{task.monitor} on the validation split chooses the epoch"),
    ]

    inputs = task.inputs
    if inputs.hidden:
        facts.append(("hidden", ", ".join(sorted(inputs.hidden))))
    if inputs.noise:
        facts.append(("noise", f"{inputs.noise:g} Å standard deviation on every coordinate"))
    if inputs.label_featurizers:
        featurizers = ", ".join(sorted(inputs.label_featurizers))
        facts.append(("refuses", f"models with the featurizer {featurizers}"))
    if inputs.causal:
        facts.append(("causal", "predictions may depend on earlier residues only"))
    return facts


def _fact(label: str, value: str) -> str:
    return f"  {label:<9} {value}"


def _option(option: Option) -> str:
    text = option.name
    if option.type_name:
        text += f": {option.type_name}"
    if option.is_required:
        return f"{text} (required)"
    return f"{text} = {option.default!r}"


def _doc(component: object) -> str:
    doc = getattr(component, "doc", "") or getattr(component, "help", "")  # of a group of commands
    if isinstance(doc, str) and doc:
        return inspect.cleandoc(doc)
    return inspect.getdoc(component) or ""


# --- models and checkpoint files: parts that can be frozen, digests, parents -----------------------------------------


def _model_facts(model: object) -> list[tuple[str, str]]:
    """Return labeled lines about a model: features, and the parts that can be frozen, with their options.

    They are all layers of a specification, or those of a trained model with weights. A specification is not built,
    which might download weights. A plugin may have registered something else, which has none.
    """
    from protgraph.checkpoint import TrainedModel
    from protgraph.model import ModelSpec

    if isinstance(model, TrainedModel):
        return [("parts", _parts_of_network(model.checkpoint().model))]
    if not isinstance(model, ModelSpec):
        return []
    features = "; ".join(map(_component_text, model.features))
    parts = [f"layers.{number} ({_component_text(layer)})" for number, layer in enumerate(model.layers)]
    parts.append("head")
    return [("features", features or "none"), ("parts", ", ".join(parts))]


def _component_text(component: ComponentSpec) -> str:
    """Return e.g. "gcn, dim=128": a component with the options that are set."""
    options = [f"{name}={value}" for name, value in component.options.items()]
    return ", ".join([component.name, *options])


def _parts_of_network(network: ProteinModel) -> str:
    from protgraph.model import freezable_parts

    parts = [f"{part.path} ({part.component}, {part.parameters:,})" for part in freezable_parts(network)]
    return ", ".join(parts)


def _checkpoint_facts(path: str) -> list[tuple[str, str]]:
    """Return labeled lines about a checkpoint file: content, digests, parts, and checkpoints that it started from."""
    from protgraph.checkpoint import load_checkpoint
    from protgraph.checkpoint.checkpoint_header import weights_digest

    checkpoint = load_checkpoint(path)
    facts = [("", line) for line in repr(checkpoint).splitlines()]
    facts += [("sha256", weights_digest(member)) for member in checkpoint.members]
    start = checkpoint.trained.get("start")
    while start is not None:
        facts.append(("from", f"{start['source']} ({start['model']} for {start['target']})"))
        facts.append(("", f"sha256 {start['digest']}"))
        for label in ("loaded", "resized", "skipped"):
            facts.append(("", f"{label}: {', '.join(start[label]) or 'none'}"))
        start = start["parent"]
    facts.append(("parts", _parts_of_network(checkpoint.model)))
    return facts
