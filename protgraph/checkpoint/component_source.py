"""Origin of the components of a checkpoint: where they came from at training, compared with what is installed."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from protgraph import registry
from protgraph.checkpoint.checkpoint_header import ComponentSource, SourceKind
from protgraph.data.cache_key import component_digest
from protgraph.data.graph import fields as table
from protgraph.data.graph.fields import FieldSpec
from protgraph.errors import CheckpointError, CodeChangeWarning, ProtgraphError, UnknownNameError
from protgraph.model.build import ProteinModel
from protgraph.registry import Registry
from protgraph.registry.provider import normalized_distribution, split_distribution

__all__ = ["check_field", "components_of", "resolve_components"]

_NAMED = 6  # changed components that a warning names
_DIGITS = 64  # of a SHA-256; older files have digests of syntax trees, which are shorter
SESSION, IMPORT = "session", "import "  # sources of components that were registered in the running process


def components_of(model: ProteinModel, task: str) -> list[ComponentSource]:
    """Return the sources of each featurizer, layer and head of a model, once, and of its task if that is registered."""
    used: list[tuple[SourceKind, str]] = [("featurizer", c.name) for c in model.spec.features]
    used += [("layer", c.name) for c in model.spec.layers]
    used.append(("head", model.target.head_name))
    if task in registry.tasks:
        used.append(("task", task))
    return [_installed(kind, name) for kind, name in dict.fromkeys(used)]


def _installed(kind: SourceKind, name: str) -> ComponentSource:
    """Return the source of a component that is installed, or registered in this session; import it."""
    names = _registry(kind)
    entry, component = names.entry(name), names.get(name)
    # the version of a distribution determines its code
    digest = component_digest(component, module=entry.object.partition(":")[0]) if _is_session(entry.source) else None
    return ComponentSource(kind=kind, name=name, source=entry.source, object=entry.object, digest=digest)


def _registry(kind: str) -> Registry:
    return registry.registries[f"{kind}s"]


def _is_session(source: str) -> bool:
    """Return True if a component was registered in the running process, e.g. by ``--import``."""
    return source == SESSION or source.startswith(IMPORT)


def resolve_components(
    path: Path, components: Sequence[ComponentSource], *, check_code: bool = True
) -> Mapping[tuple[str, str], str]:
    """Import the components of a checkpoint and return the names under which they are available now.

    A name that now belongs to another distribution is available as "distribution/name".
    """
    names: dict[tuple[str, str], str] = {}
    changed: dict[tuple[str, str], list[str]] = {}
    for saved in components:
        if saved.kind == "task" and saved.name not in registry.tasks:
            continue  # predictions do not use it
        names[saved.kind, saved.name] = name = _find(path, saved)
        if not check_code:
            continue
        now = _installed(saved.kind, name)
        if _differs(saved, now):
            changed.setdefault((saved.source, now.source), []).append(f"{saved.kind} {saved.name!r}")
    for message in _messages(path, changed):
        warnings.warn(message, CodeChangeWarning, stacklevel=4)
    return names


def _find(path: Path, saved: ComponentSource) -> str:
    """Return the name of an installed component; raise if it is missing."""
    kind, name, source = saved.kind, saved.name, saved.source
    distribution, _, version = source.rpartition(" ")
    names, qualified = _registry(kind), f"{distribution}/{split_distribution(name)[1]}"
    is_session = _is_session(source)
    candidates = [name] if is_session or kind == "head" else [name, qualified]
    error = None
    for candidate in candidates:
        try:
            names.get(candidate)
        except ProtgraphError as e:
            error = error or e
            continue
        own = names.entry(candidate).distribution
        if is_session or not own or normalized_distribution(own) == normalized_distribution(distribution):
            return candidate
        installed = names.entry(candidate).source
        error = CheckpointError(f"Installed is {kind} {name!r} of {installed}.")
    hint = f"pip install {distribution}=={version}"
    if source.startswith(IMPORT):
        hint = f"add --import {source.removeprefix(IMPORT)} (in Python: protgraph.registry.import_source)"
    elif is_session:
        hint = f"it was registered in a session as {saved.object}; import that module first"
    reason = "" if isinstance(error, UnknownNameError) else "\n" + str(error).partition("\n")[0]
    raise CheckpointError(f"{path} needs {kind} {name!r} of {source.removeprefix(IMPORT)}: {hint}{reason}") from error


def _differs(saved: ComponentSource, now: ComponentSource) -> bool:
    """Return True if the version differs, or the code of a component without a version."""
    if not (_is_session(saved.source) and _is_session(now.source)):
        return saved.source != now.source
    known = [digest for digest in (saved.digest, now.digest) if digest is not None and len(digest) == _DIGITS]
    return len(known) == 2 and saved.digest != now.digest


def _messages(path: Path, changed: Mapping[tuple[str, str], Sequence[str]]) -> Iterator[str]:
    for (before, now), components in changed.items():
        more = f" and {len(components) - _NAMED} more" if len(components) > _NAMED else ""
        code = f"the code of {', '.join(components[:_NAMED])}{more}"
        if _is_session(now):
            yield f"{path}: {code} ({now}) is not that of training; predictions may differ."
            continue
        distribution, _, version = before.rpartition(" ")
        hint = "" if _is_session(before) else f" pip install {distribution}=={version}"
        yield f"{path} was trained with {before}, installed is {now}; {code} may give other predictions.{hint}"


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
