"""Checkpoints: a trained model in one safetensors file, with a JSON header that describes how to build it.

Nothing is pickled: loading an untrusted file runs no code but that of the installed plugins.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import torch
from pydantic import ValidationError
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from protgraph import __version__, registry
from protgraph.argument_types import check_arguments
from protgraph.checkpoint.adapters import Adapters, add_to_base
from protgraph.checkpoint.checkpoint_header import (
    ADAPTER_VERSION,
    FORMAT,
    FORMAT_VERSION,
    OLDEST_VERSION,
    CheckpointHeader,
    ComponentSource,
    checksum_of,
    upgrade_header,
    weights_digest,
)
from protgraph.checkpoint.component_source import check_field, components_of, resolve_components
from protgraph.checkpoint.starting_point import Parent, load_starting_point
from protgraph.checkpoint.training_set import TrainingSetSummary
from protgraph.data.graph import fields as table
from protgraph.errors import CheckpointError, ProtgraphError, suggest
from protgraph.evaluation.calibration import CalibrationMap
from protgraph.featurize.steps import ModelInputs
from protgraph.file_io import atomic_write
from protgraph.model.build import ProteinModel, as_model_spec, build_model
from protgraph.model.pretrained import pretrained, published_weights, with_weights
from protgraph.model.spec import ModelSpec
from protgraph.validation import check_format_version

__all__ = [
    "Checkpoint",
    "as_checkpoint",
    "is_interrupted",
    "join_tensors",
    "load_checkpoint",
    "load_parent",
    "round_to_half",
    "save_checkpoint",
    "split_tensors",
]

_ENSEMBLE_MEMBER = re.compile(r"(?P<name>.+)\[(?P<number>\d+)\]", re.DOTALL)
KEY = "protgraph"  # key in the metadata of the safetensors file


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A trained model with everything needed to use it on new structures."""

    model: ProteinModel  # the first member of an ensemble
    task: str  # name of the task
    # parts of a structure that are removed before featurizers run; see `task.InputMasking`
    hidden: Collection[str] = frozenset()
    one_chain: bool = False  # True if the model was trained on single chains only
    # True if graphs keep the residue types although `hidden` removes them from featurizers
    visible_types: bool = False
    threshold: Tensor | None = None  # `(C,)` log-odds from which a label is predicted
    metrics: Mapping[str, Mapping[str, float]] = field(default_factory=dict)  # split → metric → value
    trained: Mapping[str, Any] = field(default_factory=dict)  # plain data: dataset, options, epochs
    version: str = __version__  # version of protgraph at training
    # distribution, object and code of each component at training; by default those that are installed
    components: Sequence[ComponentSource] = ()
    # descriptors of training proteins, to recognize inputs that are unlike them
    training_set: TrainingSetSummary | None = None
    # further members of an ensemble, for the same target and with the same featurizers. Predictions are of the mean of
    # all members' logits
    others: Sequence[ProteinModel] = ()
    calibration: CalibrationMap | None = None  # map from (mean) logits to probabilities
    # entry of `pdb_core` → `(rows, columns)`, what the model predicted when it was saved; see
    # `inference.verify_model`
    stored_predictions: Mapping[str, Tensor] = field(default_factory=dict)

    def __post_init__(self) -> None:
        first = self.model
        for member in self.others:
            is_same = member.spec.features == first.spec.features and member.spec.node_type == first.spec.node_type
            if member.target != first.target or not is_same:
                raise CheckpointError(
                    f"ensemble of {first.spec.name!r} and {member.spec.name!r}: members need the same target, "
                    "featurizers and node type. Give both models the featurizers of both."
                )

    def __repr__(self) -> str:
        data = self.trained.get("dataset")
        lines = [
            f"Checkpoint of {self.model.spec.name} on {self.task}{f' of {data}' if data else ''}, reads {self.reads}",
            f"{sum(member.num_parameters for member in self.members)} parameters, protgraph {self.version}",
        ]
        if self.others:
            lines.append(f"ensemble of {len(self.members)} members")
        if self.calibration is not None:
            lines.append(f"calibration: {self.calibration}")
        for split, values in self.metrics.items():
            lines.append(f"{split:5} " + "  ".join(f"{name} {value:.4g}" for name, value in values.items()))
        return "\n".join(lines)

    @property
    def reads(self) -> str:
        """What the model reads of a protein, as in training: "one chain", "all chains", or a part.

        A part is that of a featurizer, e.g. "antibody domains"; see :class:`protgraph.StructureFeaturizer`.
        """
        if self.model.plan.part:
            return self.model.plan.part
        return "one chain" if self.one_chain else "all chains"

    @property
    def members(self) -> tuple[ProteinModel, ...]:
        """All models, the first one included."""
        return (self.model, *self.others)

    def single_model(self, use: str) -> ProteinModel:
        """Return the model; raise :class:`CheckpointError` for an ensemble, which cannot be used for ``use``."""
        if self.others:
            raise CheckpointError(
                f"{use}: an ensemble of {len(self.members)} members. Only 'predict' and 'embed' use ensembles. Give a "
                "checkpoint of one model, or one member, 'NAME[0]'."
            )
        return self.model

    def member(self, number: int) -> Checkpoint:
        """Return one member of an ensemble, from 0, as a checkpoint; calibration and thresholds are of the mean.

        Raises :class:`CheckpointError` if there is no such member.
        """
        if not 0 <= number < len(self.members):
            raise CheckpointError(
                f"member [{number}]: the model has {len(self.members)} members. Use [0] to [{len(self.members) - 1}]."
            )
        member = self.members[number]
        return replace(self, model=member, others=(), calibration=None, threshold=None, stored_predictions={})

    @property
    def graph_step(self) -> ModelInputs:
        """Step of :func:`protgraph.featurize.iter_graphs` that makes the input graphs of the model."""
        return ModelInputs(frozenset(self.hidden), self.visible_types)


def save_checkpoint(path: str | Path, checkpoint: Checkpoint, *, adapters: Adapters | None = None) -> Path:
    """Write a checkpoint to one ``.safetensors`` file, atomically.

    Numbers that float16 represents exactly are stored as float16; they are loaded with the type of the model.

    ``path``: file to write; an older one is replaced. ``adapters``: write only these tensors of the model. The file is
    loaded with the weights that they were trained on. Returns the file.
    """
    path, model = Path(path), checkpoint.model
    header = CheckpointHeader(
        format=FORMAT,
        format_version=FORMAT_VERSION if adapters is None else ADAPTER_VERSION,
        version=__version__,
        graph=model.spec.to_dict(),
        other_graphs=[member.spec.to_dict() for member in checkpoint.others],
        target=model.target,
        task=checkpoint.task,
        hidden=sorted(checkpoint.hidden),
        one_chain=checkpoint.one_chain,
        visible_types=checkpoint.visible_types,
        threshold=None if checkpoint.threshold is None else checkpoint.threshold.tolist(),
        calibration=checkpoint.calibration,
        fields={n: table.field(n) for m in checkpoint.members for n in m.fields if table.is_registered(n)},
        components=list(checkpoint.components) or _components(checkpoint),
        metrics=_without_nan(checkpoint.metrics),
        trained=dict(checkpoint.trained),
        base=None if adapters is None else adapters.base,
    )
    states = [member.state_dict() if adapters is None else adapters.tensors for member in checkpoint.members]
    weights = join_tensors(states, checkpoint.training_set, checkpoint.stored_predictions)
    left_out = {"sha256", "base"} if adapters is None else {"sha256"}
    content = json.loads(json.dumps(header.model_dump(exclude=left_out), allow_nan=False))  # as it is read
    content["sha256"] = checksum_of(content, weights)
    with atomic_write(path) as temporary:
        save_file(weights, temporary, metadata={KEY: json.dumps(content)})
    return path


def _components(checkpoint: Checkpoint) -> list[ComponentSource]:
    """Return the sources of the components of all members, each once."""
    found = (c for member in checkpoint.members for c in components_of(member, checkpoint.task))
    return list({(c.kind, c.name): c for c in found}.values())


@check_arguments("path")
def load_checkpoint(path: str | Path, *, check_code: bool = True) -> Checkpoint:
    """Read a checkpoint; the model predicts the same bits as before, also in another process.

    Parameters
    ----------
    path : str or Path
        File, or the name of a trained model ("ligand_site"), which has precedence; write ``./name`` for such a file.
        "ligand_site[0]" is the first member of an ensemble. Also the name of a model with published weights that
        predict from complete structures ("scannet.ppi").
    check_code : bool
        Compare the versions of components with those of training. Not for weights that are released with the code. A
        trained model has its own setting.

    Raises
    ------
    CheckpointError
        The file is not a checkpoint or is damaged, a component that it needs is not installed (the error names the
        distribution), or the installed components and fields do not fit it.

    Warns
    -----
    CodeChangeWarning
        The installed version of a component is not that of training, so predictions may differ.
    """
    if str(path) in registry.trained_models:
        return registry.trained_models.get(str(path)).checkpoint()
    member = _ENSEMBLE_MEMBER.fullmatch(str(path))
    if member is not None and not Path(path).is_file():
        return load_checkpoint(member["name"], check_code=check_code).member(int(member["number"]))
    published = _published_predictor(str(path))
    if published is not None:
        return published
    path = Path(path)
    header, weights = _read(path)
    member_states, training_set, stored_predictions = split_tensors(weights)
    names = resolve_components(path, header.components, check_code=check_code)
    for spec in header.fields.values():
        check_field(path, spec)
    graphs = [header.graph, *header.other_graphs]
    if len(graphs) != len(member_states):
        raise CheckpointError(
            f"{path} is damaged: {len(graphs)} members, weights of {len(member_states)}. Copy it again."
        )
    model, *other_members = (
        _build(path, header, graph, state, names).eval() for graph, state in zip(graphs, member_states, strict=True)
    )
    return Checkpoint(
        model=model,
        others=other_members,
        calibration=header.calibration,
        task=header.task,
        hidden=frozenset(header.hidden),
        one_chain=header.one_chain,
        visible_types=header.visible_types,
        threshold=None if header.threshold is None else torch.tensor(header.threshold, dtype=torch.float32),
        metrics=_with_nan(header.metrics),
        trained=header.trained,
        version=header.version,
        components=[c.model_copy(update={"name": names.get((c.kind, c.name), c.name)}) for c in header.components],
        training_set=training_set,
        stored_predictions=stored_predictions,
    )


def load_parent(source: str) -> Parent:
    """Load the model of a trained model's name, a model's name with published weights, or a checkpoint file.

    ``NAME[2]`` is a member of an ensemble; the default is the first one.
    """
    member = None if Path(source).is_file() else _ENSEMBLE_MEMBER.fullmatch(source)
    name, number = (source, 0) if member is None else (member["name"], int(member["number"]))
    if name in registry.models and name not in registry.trained_models and not Path(name).is_file():
        model, trained = _published(name), {}
        members: tuple[ProteinModel, ...] = (model,)
    else:
        checkpoint = load_checkpoint(name)
        members, trained = checkpoint.members, dict(checkpoint.trained)
    if number >= len(members):
        raise CheckpointError(f"start from {source!r}: member {number}. Allowed: 0 to {len(members) - 1}.")
    return Parent(members[number], source, weights_digest(members[number]), trained)


def _published_predictor(name: str) -> Checkpoint | None:
    """Return a model with published weights that predict from complete structures; None for another name."""
    if name not in registry.models or Path(name).is_file():
        return None
    spec = as_model_spec(name)
    if not spec.weights:
        return None
    weights = published_weights(spec)
    if not weights.task:
        return None
    return Checkpoint(with_weights(spec, weights), weights.task, one_chain=weights.one_chain)


def _published(name: str) -> ProteinModel:
    if not as_model_spec(name).weights:
        raise CheckpointError(
            f"start from {name!r}: this model has no published weights. Give a checkpoint of 'protgraph train', or a "
            "name of 'protgraph list trained_models'."
        )
    return pretrained(name)


def is_interrupted(path: str | Path) -> bool:
    """Return True for the checkpoint of a run that a signal stopped; False for other files."""
    try:
        with safe_open(path, framework="pt") as file:
            return "interrupted" in json.loads(file.metadata()[KEY])["trained"]
    except (OSError, SafetensorError, KeyError, TypeError, ValueError):
        return False


@check_arguments("checkpoint")
def as_checkpoint(checkpoint: str | Path | Checkpoint) -> Checkpoint:
    """Return the given checkpoint, or that of a name or file; see :func:`load_checkpoint`."""
    return checkpoint if isinstance(checkpoint, Checkpoint) else load_checkpoint(checkpoint)


def _read(path: Path) -> tuple[CheckpointHeader, dict[str, Tensor]]:
    """Read and check the header and the weights of a file."""
    try:
        with safe_open(path, framework="pt") as file:
            content = json.loads((file.metadata() or {})[KEY])
            _check_format(content, path)
            weights = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 -- not a mapping
    except OSError as e:
        if not path.exists():
            raise CheckpointError(f"No checkpoint {str(path)!r}.{_hint(str(path))}") from e
        reason = "it is a folder" if path.is_dir() else e.strerror or e
        raise CheckpointError(f"Checkpoint {str(path)!r} cannot be read: {reason}.") from e
    except (SafetensorError, KeyError, TypeError, ValueError) as e:
        if isinstance(e, CheckpointError):
            raise
        raise CheckpointError(
            f"{path} is not a protgraph checkpoint, or it is truncated. 'protgraph train' writes checkpoints."
        ) from e
    if content.get("sha256") not in (None, checksum_of(content, weights)):
        raise CheckpointError(f"{path} is damaged: its checksum differs. Copy it again.")
    try:
        return CheckpointHeader.model_validate(upgrade_header(content)), weights
    except ValidationError as e:
        first = e.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise CheckpointError(f"{path} has a damaged header: {where}: {first['msg']}.") from e


def _check_format(content: Mapping[str, Any], path: Path) -> None:
    if content["format"] != FORMAT:
        raise KeyError("format")
    check_format_version(
        f"checkpoint {str(path)!r}",
        content["format_version"],
        ADAPTER_VERSION,
        oldest=OLDEST_VERSION,
        writer=content.get("version"),
        error=CheckpointError,
        older="Train the model again.",
    )


def _hint(name: str) -> str:
    """Return a sentence about what a name that is not a file may be."""
    if name in registry.models:
        return f" {name!r} is a model; 'protgraph train' writes a checkpoint of it."
    if name in registry.mutation_scorers:
        return f" {name!r} scores mutations; use 'protgraph mutate' or 'protgraph scan'."
    if Path(name).suffix or Path(name).name != name:
        return " There is no such file."
    listed = " 'protgraph list trained_models' prints the names of trained models."
    return suggest(name, registry.trained_models.names()) + listed


def _build(
    path: Path,
    header: CheckpointHeader,
    graph: Mapping[str, Any],
    weights: Mapping[str, Tensor],
    names: Mapping[tuple[str, str], str],
) -> ProteinModel:
    """Build the model and load all of its weights; ``names`` has the present name of each kind and name."""
    try:
        spec = ModelSpec.from_dict(graph)
        features = tuple(replace(c, name=names.get(("featurizer", c.name), c.name)) for c in spec.features)
        layers = tuple(replace(c, name=names.get(("layer", c.name), c.name)) for c in spec.layers)
        seed = 0 if header.base is None else header.base.seed
        model = build_model(replace(spec, features=features, layers=layers), header.target, seed=seed)
        if header.base is None:
            model.load_state_dict(weights, strict=True)
        else:
            if header.base.source is not None:
                load_starting_point(model, load_parent(header.base.source), "new")
            add_to_base(model, header.base, weights)
    except (ProtgraphError, RuntimeError) as e:
        sources = ", ".join(dict.fromkeys(component.source for component in header.components))
        raise CheckpointError(
            f"{path} does not fit the installed components; it was trained with {sources}.\n"
            f"{' '.join(str(e).split())[:300]}"
        ) from e
    return model


def _without_nan(metrics: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float | None]]:
    """Replace NaN and infinity, which JSON does not have, by None."""
    written: dict[str, dict[str, float | None]] = {}
    for split, values in metrics.items():
        written[split] = {name: value if math.isfinite(value) else None for name, value in values.items()}
    return written


def _with_nan(metrics: Mapping[str, Mapping[str, float | None]]) -> dict[str, dict[str, float]]:
    """Return written metrics with NaN in place of None."""
    read: dict[str, dict[str, float]] = {}
    for split, values in metrics.items():
        read[split] = {name: math.nan if value is None else value for name, value in values.items()}
    return read


_TRAINING_SET = "training_set/"
_STORED = "stored_predictions/"
_MEMBER = "member/"  # of further members, with their numbers from 1; the first one has no prefix


class CheckpointTensors(NamedTuple):
    """Tensors of a file: the weights of each member, the descriptors of the training set, and predictions."""

    member_states: list[dict[str, Tensor]]
    training_set: TrainingSetSummary | None
    stored_predictions: dict[str, Tensor]


def join_tensors(
    states: Sequence[Mapping[str, Tensor]],
    training_set: TrainingSetSummary | None,
    stored_predictions: Mapping[str, Tensor] = MappingProxyType({}),
) -> dict[str, Tensor]:
    """Return all tensors of a file, of any shape, on the CPU; float32 numbers as float16 where that is exact."""
    tensors = dict(states[0])
    for i, state in enumerate(states[1:], 1):
        tensors |= {f"{_MEMBER}{i}/{name}": value for name, value in state.items()}
    if training_set is not None:
        tensors |= {f"{_TRAINING_SET}{name}": value for name, value in training_set.tensors().items()}
    tensors |= {f"{_STORED}{name}": value for name, value in stored_predictions.items()}
    return {name: _smallest(value.detach().cpu().clone().contiguous()) for name, value in tensors.items()}


def split_tensors(tensors: Mapping[str, Tensor]) -> CheckpointTensors:
    """Return the content of a file, all tensors with the shapes that :func:`join_tensors` got."""
    members: list[dict[str, Tensor]] = [{}]
    training_set: dict[str, Tensor] = {}
    stored_predictions: dict[str, Tensor] = {}
    for name, value in tensors.items():
        if name.startswith(_TRAINING_SET):
            training_set[name.removeprefix(_TRAINING_SET)] = value.float()
            continue
        if name.startswith(_STORED):
            stored_predictions[name.removeprefix(_STORED)] = value.float()
            continue
        number, tensor_name = 0, name
        if name.startswith(_MEMBER):
            text, _, tensor_name = name.removeprefix(_MEMBER).partition("/")
            number = int(text)
        members += [{} for _ in range(number + 1 - len(members))]
        members[number][tensor_name] = value
    return CheckpointTensors(members, TrainingSetSummary.from_tensors(training_set), stored_predictions)


def round_to_half(network: ProteinModel) -> None:
    """Round the weights in place to numbers of float16, so that a checkpoint file has half the size.

    Scale and shift of the head stay as they are: they have the target's unit, and may be 1e-9 or 1e9.
    """
    with torch.no_grad():
        for name, value in network.state_dict().items():
            if value.is_floating_point() and name not in ("head.scale", "head.shift"):
                rounded = value.half().to(value.dtype)
                if not bool(torch.isfinite(rounded).all()):
                    raise OverflowError(f"{name} of {network.spec.name!r}: {float(value.abs().max())} > 65504")
                value.copy_(rounded)


def _smallest(value: Tensor) -> Tensor:
    if value.dtype != torch.float32:
        return value
    half = value.half()
    return half if torch.equal(half.float(), value) else value
