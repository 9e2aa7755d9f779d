"""A trained model in one file: weights as safetensors, and as JSON all that it takes to build the model again.

Nothing is pickled, so a file from a stranger runs no code but that of the plugins that are installed here.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from protgraph import __version__, registry
from protgraph.data.datasets.target import Target
from protgraph.data.graph import fields as table
from protgraph.data.graph.fields import FieldSpec
from protgraph.errors import CheckpointError, ProtgraphError
from protgraph.file_io import atomic_write
from protgraph.model.build import ProteinModel, build_model
from protgraph.model.spec import ModelSpec

__all__ = ["Checkpoint", "as_checkpoint", "load_checkpoint", "save_checkpoint"]

KEY, FORMAT, VERSION = "protgraph", "protgraph-checkpoint", 1
SESSION = "session"


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A trained model with all that it needs to be used on new structures.

    Parameters
    ----------
    model : ProteinModel
        Its graph says what is computed, its target what is predicted.
    task : str
        Name of the task.
    hidden : collection of str
        What is taken away from a structure before the model sees it.
    one_chain : bool
        Whether it knows single chains only.
    visible_types : bool
        Whether the model is shown the residue types though they are hidden from featurizers.
    threshold : Tensor, optional
        ``(C,)`` log-odds from which a label is predicted.
    metrics : mapping of str to mapping
        Split → metric → value.
    trained : mapping
        Plain data: dataset, options, epochs.
    version : str
        Version of protgraph that it was trained with.
    """

    model: ProteinModel
    task: str
    hidden: Collection[str] = frozenset()
    one_chain: bool = False
    visible_types: bool = False
    threshold: Tensor | None = None
    metrics: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    trained: Mapping[str, Any] = field(default_factory=dict)
    version: str = __version__


def save_checkpoint(path: str | Path, checkpoint: Checkpoint) -> Path:
    """Write a checkpoint to one ``.safetensors`` file, which appears whole or not at all.

    Parameters
    ----------
    path : str or Path
        File to write; an older one is replaced.
    checkpoint : Checkpoint

    Returns
    -------
    Path
        The file.
    """
    path, model = Path(path), checkpoint.model
    known = [name for name in model.fields if table.is_registered(name)]
    told = {
        "format": FORMAT,
        "format_version": VERSION,
        "version": __version__,
        "graph": model.spec.to_dict(),
        "target": asdict(model.target),
        "task": checkpoint.task,
        "hidden": sorted(checkpoint.hidden),
        "one_chain": checkpoint.one_chain,
        "visible_types": checkpoint.visible_types,
        "threshold": None if checkpoint.threshold is None else checkpoint.threshold.tolist(),
        "fields": {name: asdict(table.field(name)) for name in known},
        "components": list(_components(model)),
        "metrics": _without_nan(checkpoint.metrics),
        "trained": dict(checkpoint.trained),
    }
    weights = {name: value.detach().cpu().clone().contiguous() for name, value in model.state_dict().items()}
    told = json.loads(json.dumps(told, allow_nan=False))  # as it is read again
    told["sha256"] = _digest(told, weights)
    with atomic_write(path) as temporary:
        save_file(weights, temporary, metadata={KEY: json.dumps(told)})
    return path


def as_checkpoint(checkpoint: str | Path | Checkpoint) -> Checkpoint:
    """Return a checkpoint, loaded if a file is given."""
    return checkpoint if isinstance(checkpoint, Checkpoint) else load_checkpoint(checkpoint)


def load_checkpoint(path: str | Path) -> Checkpoint:
    """Read a checkpoint; in a fresh process the model predicts the same bits.

    Raises
    ------
    CheckpointError
        It is no checkpoint of ours or a damaged one, a component that it needs is not installed (the error names the
        distribution), or the components and fields installed here do not fit it.
    """
    path = Path(path)
    told, weights = _read(path)
    try:
        for component in told["components"]:
            _find(path, component)
        for name, spec in told["fields"].items():
            shape = None if spec["shape"] is None else tuple(spec["shape"])
            _agree(path, name, FieldSpec(**{**spec, "shape": shape}))
        graph = ModelSpec.from_dict(told["graph"])
        target = Target(**{**told["target"], "names": tuple(told["target"]["names"])})
        model = _build(path, graph, target, weights, told["components"])
        threshold = told["threshold"]
        return Checkpoint(
            model=model.eval(),
            task=told["task"],
            hidden=frozenset(told["hidden"]),
            one_chain=told["one_chain"],
            visible_types=told.get("visible_types", False),  # older files have none
            threshold=None if threshold is None else torch.tensor(threshold, dtype=torch.float32),
            metrics={s: {k: math.nan if v is None else v for k, v in m.items()} for s, m in told["metrics"].items()},
            trained=told["trained"],
            version=told["version"],
        )
    except (KeyError, TypeError, AttributeError) as e:
        raise CheckpointError(f"{path}: what it says of itself is incomplete or damaged ({e!r})") from e


def _read(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """What a file says of itself, and its weights."""
    try:
        with safe_open(path, framework="pt") as file:
            told = json.loads((file.metadata() or {})[KEY])
            if told["format"] != FORMAT or told["format_version"] > VERSION:
                raise CheckpointError(
                    f"{path} is a {told['format']} of version {told['format_version']}, written by protgraph "
                    f"{told.get('version')}; here is {__version__}, which reads up to {VERSION}. Upgrade protgraph."
                )
            weights = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 -- not a mapping
    except OSError as e:
        reason = "it is a folder" if path.is_dir() else e.strerror or e
        hint = f"; {str(path)!r} is a model: 'protgraph train' makes a checkpoint of it"
        named = str(path) in registry.models and not path.exists()
        raise CheckpointError(f"checkpoint {str(path)!r} cannot be read: {reason}{hint if named else ''}") from e
    except (SafetensorError, KeyError, TypeError, ValueError) as e:
        if isinstance(e, CheckpointError):
            raise
        raise CheckpointError(
            f"{path} is no protgraph checkpoint, or one that was cut off; `protgraph train` writes one"
        ) from e
    if told.get("sha256") not in (None, _digest(told, weights)):  # older files have none
        raise CheckpointError(f"{path} is damaged: it does not hold what was written (checksum); copy it again")
    return told, weights


def _digest(told: Mapping[str, Any], weights: Mapping[str, Tensor]) -> str:
    """SHA-256 of all that a checkpoint says and of every weight."""
    said = {key: value for key, value in told.items() if key != "sha256"}
    whole = hashlib.sha256(json.dumps(said, sort_keys=True).encode())
    for name, weight in sorted(weights.items()):
        whole.update(f"\0{name}\0{weight.dtype}\0{tuple(weight.shape)}\0".encode())
        whole.update(weight.reshape(-1).view(torch.uint8).numpy())
    return whole.hexdigest()


def _components(model: ProteinModel) -> Iterable[dict[str, str]]:
    """Kind, name, distribution and object of everything that the model is made of, each once."""
    used = [("featurizer", registry.featurizers, n.name) for n in model.spec.features]
    used += [("layer", registry.layers, n.name) for n in model.spec.layers]
    used += [("head", registry.heads, model.target.head_name)]
    for kind, names, name in dict.fromkeys(used):
        entry = names.entry(name)
        yield {"kind": kind, "name": name, "source": entry.source, "object": entry.object}


def _find(path: Path, component: Mapping[str, str]) -> None:
    """Load one component from where it came from, or say what is missing."""
    kind, name, source = component["kind"], component["name"], component["source"]
    names = {"featurizer": registry.featurizers, "layer": registry.layers, "head": registry.heads}[kind]
    distribution = source.rpartition(" ")[0]
    try:
        names.get(name)
        here = names.entry(name).source
    except ProtgraphError as e:
        hint = f"pip install {distribution}"
        if source == SESSION:
            hint = f"it was registered in a session as {component['object']}; import that module first"
        first = str(e).partition("\n")[0]
        raise CheckpointError(f"{path} needs {kind} {name!r} of {source}: {hint}\n{first}") from e
    if SESSION not in (source, here) and here.rpartition(" ")[0] != distribution:
        raise CheckpointError(f"{path} was trained with {kind} {name!r} of {source}; here that name is one of {here}")


def _agree(path: Path, name: str, saved: FieldSpec) -> None:
    if not table.is_registered(name):
        raise CheckpointError(f"{path} uses the field {name!r}, which no component here registers: {saved}")
    now = table.field(name)
    for part in ("level", "irreps", "dtype", "unit", "shape", "classes", "chiral"):
        was, is_ = getattr(saved, part), getattr(now, part)
        if was != is_:
            raise CheckpointError(f"{path} was trained with field {name!r} of {part} {was!r}; here it is {is_!r}")


def _build(
    path: Path, graph: ModelSpec, target: Target, weights: Mapping[str, Tensor], components: list[Mapping[str, str]]
) -> ProteinModel:
    """Build the model and fill in the weights, all of them and nothing else."""
    try:
        model = build_model(graph, target, seed=0)
        model.load_state_dict(weights, strict=True)
    except (ProtgraphError, RuntimeError) as e:
        made = ", ".join(dict.fromkeys(c["source"] for c in components))
        raise CheckpointError(
            f"{path} does not fit the components installed here; it was trained with {made}.\n"
            f"{' '.join(str(e).split())[:300]}"
        ) from e
    return model


def _without_nan(metrics: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float | None]]:
    """JSON has neither NaN nor infinity."""
    return {s: {k: v if math.isfinite(v) else None for k, v in m.items()} for s, m in metrics.items()}
