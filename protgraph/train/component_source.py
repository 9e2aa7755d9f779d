"""Compare the components and fields of a checkpoint with the installed ones."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from protgraph import registry
from protgraph.data.graph import fields as table
from protgraph.data.graph.fields import FieldSpec
from protgraph.errors import CheckpointError, ProtgraphError
from protgraph.model.build import ProteinModel
from protgraph.train.checkpoint_header import ComponentSource

__all__ = ["check_installed_component", "check_field", "components_of"]

SESSION = "session"  # source of a component that was registered in the running process


def components_of(model: ProteinModel) -> Iterable[ComponentSource]:
    """Yield each featurizer, layer and head of a model once."""
    used = [("featurizer", registry.featurizers, c.name) for c in model.spec.features]
    used += [("layer", registry.layers, c.name) for c in model.spec.layers]
    used += [("head", registry.heads, model.target.head_name)]
    for kind, names, name in dict.fromkeys(used):
        entry = names.entry(name)
        yield ComponentSource(kind=kind, name=name, source=entry.source, object=entry.object)


def check_installed_component(path: Path, component: ComponentSource) -> None:
    """Import one component; raise :class:`CheckpointError` if it is missing or of another distribution."""
    kind, name, source = component.kind, component.name, component.source
    names = {"featurizer": registry.featurizers, "layer": registry.layers, "head": registry.heads}[kind]
    distribution = source.rpartition(" ")[0]
    try:
        names.get(name)
        installed = names.entry(name).source
    except ProtgraphError as e:
        hint = f"pip install {distribution}"
        if source == SESSION:
            hint = f"it was registered in a session as {component.object}; import that module first"
        first = str(e).partition("\n")[0]
        raise CheckpointError(f"{path} needs {kind} {name!r} of {source}: {hint}\n{first}") from e
    if SESSION not in (source, installed) and installed.rpartition(" ")[0] != distribution:
        raise CheckpointError(f"{path} was trained with {kind} {name!r} of {source}; installed is one of {installed}.")


def check_field(path: Path, saved: FieldSpec) -> None:
    """Raise :class:`CheckpointError` if a field is not registered, or is defined in another way."""
    name = saved.name
    if not table.is_registered(name):
        raise CheckpointError(f"{path} uses the field {name!r}, which no installed component registers: {saved}.")
    now = table.field(name)
    for part in ("level", "irreps", "dtype", "unit", "shape", "classes", "chiral"):
        before, after = getattr(saved, part), getattr(now, part)
        if before != after:
            raise CheckpointError(f"{path} was trained with {part} {before!r} of field {name!r}; now it is {after!r}.")
