"""Facts about models and checkpoint files for ``protgraph info``: parts that can be frozen, digests, parents."""

from __future__ import annotations

from protgraph.checkpoint import TrainedModel, load_checkpoint
from protgraph.checkpoint.checksum import weights_digest
from protgraph.model import ModelSpec, ProteinModel, freezable_parts
from protgraph.registry.component import ComponentSpec

__all__ = ["checkpoint_facts", "model_facts"]


def model_facts(model: object) -> list[tuple[str, str]]:
    """Return labeled lines about a model: features, and the parts that can be frozen, with their options.

    They are all layers of a specification, or those of a trained model with weights. A specification is not built,
    which might download weights. A plugin may have registered something else, which has none.
    """
    if isinstance(model, TrainedModel):
        return [("parts", ", ".join(_parts_of_network(model.checkpoint().model)))]
    if not isinstance(model, ModelSpec):
        return []
    layers = [f"layers.{number} ({_component_text(layer)})" for number, layer in enumerate(model.layers)]
    features = "; ".join(map(_component_text, model.features))
    return [("features", features or "none"), ("parts", ", ".join([*layers, "head"]))]


def _component_text(component: ComponentSpec) -> str:
    """Return e.g. "gcn, dim=128": a component with the options that are set."""
    return ", ".join([component.name, *(f"{name}={value}" for name, value in component.options.items())])


def _parts_of_network(network: ProteinModel) -> list[str]:
    return [f"{part.path} ({part.component}, {part.parameters:,})" for part in freezable_parts(network)]


def checkpoint_facts(path: str) -> list[tuple[str, str]]:
    """Return labeled lines about a checkpoint file: content, digests, parts, and checkpoints that it started from."""
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
    return [*facts, ("parts", ", ".join(_parts_of_network(checkpoint.model)))]
