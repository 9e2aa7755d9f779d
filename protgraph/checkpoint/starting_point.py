"""Start a training from trained weights: load the layers that two models have in common, and the head."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor, nn

from protgraph.data.datasets.target import Target
from protgraph.errors import CheckpointError
from protgraph.model.build import ProteinModel
from protgraph.model.spec import ModelSpec
from protgraph.nn.module import GraphLayer
from protgraph.nn.standardize import Standardize

__all__ = ["Parent", "StartingPoint", "load_starting_point"]


@dataclass(frozen=True)
class Parent:
    """A model with trained weights, and where they are from."""

    model: ProteinModel
    source: str  # as the user wrote it
    digest: str  # SHA-256 of the weights
    trained: Mapping[str, Any]  # of its checkpoint; empty for published weights


@dataclass(frozen=True)
class StartingPoint:
    """Trained weights that a training started from."""

    source: str  # name or file of the parent
    digest: str  # SHA-256 of the parent's weights, as `protgraph info` prints it
    model: str  # name of the parent's model
    target: str  # name of the parent's target
    loaded: list[str]  # layers and head with the parent's weights, e.g. "layers.0 (embed)".
    resized: list[str]  # loaded parts of which only some rows are used
    skipped: list[str]  # parts with new weights, with the reason
    notes: list[str]  # differences that do not concern weights
    parent: dict[str, Any] | None = None  # the same data of the parent, if it started from another checkpoint

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for the checkpoint."""
        return asdict(self)

    def lines(self) -> list[str]:
        """Return lines of text for the user."""
        lines = [f"start from {self.source}: {self.model} for {self.target}, sha256 {self.digest[:16]}"]
        for label in ("loaded", "resized", "skipped"):
            lines.append(f"  {label}: {', '.join(getattr(self, label)) or 'none'}")
        return [*lines, *(f"  note: {note}" for note in self.notes)]

    @property
    def keeps_head(self) -> bool:
        """True if the head has the parent's weights."""
        return any(label.startswith("head ") for label in self.loaded)

    def keeps_layer(self, number: int) -> bool:
        """Return True if a layer has the parent's weights."""
        return any(label.startswith(f"layers.{number} ") for label in self.loaded)


def load_starting_point(network: ProteinModel, parent: Parent, head: str | None) -> StartingPoint:
    """Load the weights of a parent into a network, layer by layer.

    A layer is loaded if the parent has the same component at the same place with the same inputs and shapes.

    ``parent``: see :func:`protgraph.checkpoint.checkpoint_file.load_parent`. ``head``: load the head, too; by default
    if both have the same target.
    """
    _check_family(network.spec, parent)
    loaded, skipped = _load_layers(network, parent.model)
    if not loaded:
        raise CheckpointError(
            f"start from {parent.source!r}: no layer of model {network.spec.name!r} is in common with its model "
            f"{parent.model.spec.name!r}: {'; '.join(skipped) or 'neither has weights'}. Train that model, or give "
            "another checkpoint."
        )
    head_label, resized = f"head ({network.target.head_name})", []
    if head == "keep" or (head is None and _is_same_target(network.target, parent.model.target)):
        resized = _load_head(network, parent)
        loaded.append(head_label)
    else:
        reason = "option head" if head else f"{network.target.name}, not {parent.model.target.name}"
        skipped.append(f"{head_label}: new ({reason})")
    return StartingPoint(
        source=parent.source,
        digest=parent.digest,
        model=parent.model.spec.name,
        target=parent.model.target.name,
        loaded=loaded,
        resized=resized,
        skipped=skipped,
        notes=_different_features(network.spec, parent.model.spec),
        parent=parent.trained.get("start"),
    )


def _check_family(spec: ModelSpec, parent: Parent) -> None:
    """Raise if the layers of two models of different families are not the same, or one the beginning of the other."""
    parent_spec = parent.model.spec
    names = [component.name for component in spec.layers]
    parent_names = [component.name for component in parent_spec.layers]
    common = min(len(names), len(parent_names))
    is_same_family = spec.name.partition(".")[0] == parent_spec.name.partition(".")[0]
    if spec.node_type != parent_spec.node_type:
        raise CheckpointError(
            f"start from {parent.source!r}: its nodes are {parent_spec.node_type}, those of model {spec.name!r} "
            f"{spec.node_type}. Train a model with the same nodes."
        )
    if not is_same_family and names[:common] != parent_names[:common]:
        raise CheckpointError(
            f"start from {parent.source!r}: it is of model {parent_spec.name!r}, and {spec.name!r} belongs to another "
            f"family. Layers there: {', '.join(parent_names)}. Train {parent_spec.name!r}, or give another checkpoint."
        )


def _load_layers(network: ProteinModel, parent: ProteinModel) -> tuple[list[str], list[str]]:
    """Load the layers in common; return those with weights that were loaded, and the others with the reason."""
    loaded, skipped = [], []
    for number, (wired, layer) in enumerate(network.first_uses):
        label = f"layers.{number} ({wired.component.name})"
        if not layer.state_dict():
            continue
        if number >= len(parent.layers):
            skipped.append(f"{label}: not in the checkpoint")
            continue
        parent_wired, parent_layer = parent.first_uses[number]
        if wired.component.name != parent_wired.component.name:
            reason = f"{parent_wired.component.name} in the checkpoint"
        elif list(wired.reads.items()) != list(parent_wired.reads.items()):
            reason = f"reads {', '.join(parent_wired.reads.values())} in the checkpoint"
        else:
            reason = _different_shape(layer, parent_layer)
        if reason:
            skipped.append(f"{label}: {reason}")
            continue
        layer.load_state_dict(parent_layer.state_dict())
        loaded.append(label)
    return loaded, skipped


def _different_shape(layer: GraphLayer, parent: GraphLayer) -> str:
    """Return the first difference between the parameters of two layers; empty if they fit."""
    shapes, parent_shapes = _shapes(layer), _shapes(parent)
    for name in dict.fromkeys([*shapes, *parent_shapes]):
        if name not in parent_shapes:
            return f"no {name} in the checkpoint"
        if name not in shapes:
            return f"{name} in the checkpoint only"
        if shapes[name] != parent_shapes[name]:
            return f"{name} is {parent_shapes[name]} in the checkpoint, not {shapes[name]}"
    return ""


def _shapes(layer: nn.Module) -> dict[str, tuple[int, ...]]:
    """Return the shapes of parameters and buffers, without those that a standardization has after training only."""
    set_in_training = set()
    for path, module in layer.named_modules():
        if isinstance(module, Standardize):
            set_in_training |= {f"{path}.mean", f"{path}.scale"}
    return {name: tuple(x.shape) for name, x in layer.state_dict().items() if name not in set_in_training}


def _different_features(spec: ModelSpec, parent: ModelSpec) -> list[str]:
    """Return a note about each featurizer that is only in one of the models, or has other options there."""
    here = [component for component in spec.features if component not in parent.features]
    there = [component for component in parent.features if component not in spec.features]
    notes = []
    for components, text in ((here, "not in the checkpoint"), (there, "in the checkpoint only")):
        for component in components:
            options = ", ".join(f"{key}={value!r}" for key, value in component.options.items())
            notes.append(f"featurizer {component.name}({options}): {text}")
    return notes


def _is_same_target(target: Target, parent: Target) -> bool:
    return (target.name, target.level, target.kind, target.size, target.names, target.unit, target.head_name) == (
        parent.name,
        parent.level,
        parent.kind,
        parent.size,
        parent.names,
        parent.unit,
        parent.head_name,
    )


def _load_head(network: ProteinModel, parent: Parent) -> list[str]:
    """Load the parent's head; return the parameters of which only the rows of some classes are used."""
    rows = _rows_of_head(network.target, parent)
    state, resized = network.head.state_dict(), []
    parent_state = parent.model.head.state_dict()
    if state.keys() != parent_state.keys() or network.head_reads != parent.model.head_reads:
        raise _head_error(parent, "it has other parameters or inputs")
    for name, value in parent_state.items():
        if value.shape != state[name].shape:
            if value.shape[1:] != state[name].shape[1:] or len(value) != parent.model.target.size:
                raise _head_error(parent, f"{name} is {tuple(value.shape)}, not {tuple(state[name].shape)}")
            resized.append(f"head.{name} ({len(value)} → {len(rows)} rows)")
            value = value[rows]
        state[name] = value
    network.head.load_state_dict(state)
    return resized


def _rows_of_head(target: Target, parent: Parent) -> Tensor:
    """Return the row of the parent's outputs for each output, ``(C,)`` int64; raise if one has none."""
    before = parent.model.target
    for label in ("level", "kind", "head_name", "unit"):
        old, new = getattr(before, label), getattr(target, label)
        if old != new:
            raise _head_error(parent, f"its target has {label} {old!r}, not {new!r}")
    is_single = target.size == before.size == 1  # the name of a single label does not matter
    has_names = bool(target.names and before.names)
    if target.size == before.size and (is_single or not has_names or target.names == before.names):
        return torch.arange(target.size)
    if not has_names:
        raise _head_error(parent, f"it has {before.size} outputs, not {target.size}, and they have no names")
    return _rows_by_name(target, parent)


def _rows_by_name(target: Target, parent: Parent) -> Tensor:
    """Return the row of each of fewer classes, by name."""
    before = parent.model.target
    for name in target.names:
        if name not in before.names:
            raise _head_error(parent, f"it does not predict {name!r}. It predicts {', '.join(before.names)}")
    if target.size == before.size:
        raise _head_error(parent, f"it predicts {', '.join(before.names)} in this order")
    return torch.tensor([before.names.index(name) for name in target.names])


def _head_error(parent: Parent, reason: str) -> CheckpointError:
    return CheckpointError(
        f"start from {parent.source!r}: the head cannot be kept: {reason}. Use head='new' (--head new)."
    )
