"""Facts about models and checkpoint files for ``protgraph info``: parts that can be frozen, digests, parents."""

from __future__ import annotations

from protgraph.checkpoint import TrainedModel, load_checkpoint
from protgraph.checkpoint.checksum import weights_digest
from protgraph.model import ModelSpec, ProteinModel, freezable_parts

__all__ = ["checkpoint_facts", "parts_of_model"]


def parts_of_model(model: object) -> list[str]:
    """Return the parts that can be frozen: all layers of a specification, or those of a trained model with weights.

    A specification is not built, which might download weights. A plugin may have registered something else, which has
    no parts.
    """
    if isinstance(model, TrainedModel):
        return _parts_of_network(model.checkpoint().model)
    if not isinstance(model, ModelSpec):
        return []
    layers = [f"layers.{number} ({layer.name})" for number, layer in enumerate(model.layers)]
    return [*layers, "head"]


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
