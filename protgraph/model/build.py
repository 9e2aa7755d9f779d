"""Build torch modules from model specifications."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from protgraph import registry
from protgraph.argument_types import check_arguments
from protgraph.data.datasets.target import Target
from protgraph.data.graph.fields import field, require_readable
from protgraph.errors import ComponentError, FieldError, OptionError, UnknownNameError, WiringError
from protgraph.featurize.coordinate_gradient import recompute_features, require_gradients
from protgraph.featurize.plan import COORDINATES, inputs
from protgraph.featurize.run_featurizer import check_returned_fields, check_returned_tensor
from protgraph.model.attention_maps import AttentionMap, attention_maps
from protgraph.model.spec import ModelSpec, wire
from protgraph.nn.attention_recorder import AttentionRecorder
from protgraph.nn.decoder import Decoder
from protgraph.nn.module import GraphLayer, Head
from protgraph.registry.component_fault import ComponentScope
from protgraph.validation import Seed, check_value

__all__ = ["ProteinModel", "as_model_spec", "build_model", "check_logits", "run_head", "run_layer"]

_SEEDING = threading.RLock()  # torch's generator is shared by all threads


class ProteinModel(nn.Module):
    """A torch module built from a model specification for one target; see :func:`build_model`.

    Attributes
    ----------
    spec : ModelSpec
    plan : FeaturePlan
        Computes the input graphs: ``model.plan.precompute(residues)``.
    target : Target
    fields : dict of str to FieldSpec
        All fields after the last layer.
    partial_gradients : bool
        True: accept gradients with respect to coordinates that lack the part of features which are not computed in
        torch, instead of :class:`protgraph.errors.GradientError`.
    """

    partial_gradients: bool = False

    @check_arguments("spec", "target")
    def __init__(self, spec: ModelSpec, target: Target) -> None:
        super().__init__()
        self.spec, self.target = spec, target
        self.plan = spec.plan()
        self.wires = wire(spec, self.plan)
        self.fields = dict(self.plan.fields)
        layers: list[GraphLayer] = []
        for w in self.wires:
            path = f"{w.path} ({w.component.name})"
            specs = {local: self.fields[name] for local, name in w.reads.items()}
            layer_class = registry.layers.get(w.component.name)
            for local in specs:
                if local not in w.component.inputs:
                    require_readable(path, layer_class, local, specs[local])
            with _own_seed(path):
                layer = registry.layers.create(w.component.name, specs, path=path, options=w.component.options)
            if set(layer.out) != set(layer.writes):
                raise WiringError(
                    f"{path} must declare {sorted(layer.writes)} in __init__, but declared {sorted(layer.out)}."
                )
            self.fields |= {name: layer.out[local].as_(name) for local, name in w.writes.items()}
            layers.append(layer)
        self.layers: Sequence[GraphLayer] = nn.ModuleList(layers)  # type: ignore[assignment]
        self.head, self.head_reads = self._make_head()
        self._needs = self._fields_needed()

    def _make_head(self) -> tuple[Head, dict[str, str]]:
        name = self.target.head_name
        try:
            head_class = registry.heads.get(name)
        except UnknownNameError as e:
            raise UnknownNameError(f"target {self.target.name!r} has head={name!r}: {e}") from e
        self.fields |= {name: field(name) for name in head_class.task_fields if name not in self.fields}
        reads = self._head_inputs(head_class, name)
        specs = {local: self.fields[f] for local, f in reads.items()}
        options = self.spec.heads.get(name, {})
        with _own_seed(f"head ({name})"):
            head = registry.heads.create(name, specs, self.target, path=f"head ({name})", options=options)
        if not isinstance(head, Head):
            raise WiringError(f"head {name!r} is a {type(head).__name__}, not a protgraph Head.")
        check_logits(head, name, self.target)
        return head, reads

    def _head_inputs(self, head_class: type[Head], name: str) -> dict[str, str]:
        """Return the fields that the head reads, by local name; raise if it cannot read one."""
        reads = {local: self.spec.readout.get(local, local) for local in head_class.reads}
        reads |= {local: f for local, f in self.spec.readout.items() if local in head_class.optional}
        missing = [f for f in reads.values() if f not in self.fields]
        if missing:
            raise WiringError(f"head {name!r} reads {missing[0]!r}, which model {self.spec.name!r} does not have.")
        path = f"readout of model {self.spec.name!r}, head {name!r}"
        for local, f in reads.items():
            spec = self.fields[f]
            require_readable(path, head_class, local, spec)
            if local == "h" and self.target.level == "node" and spec.level != "node":
                raise WiringError(f"{path}: {spec.name!r} is of level {spec.level}. Allowed: a field of level node.")
        return reads

    def _fields_needed(self) -> tuple[str, ...]:
        """Return the fields that an input graph must have."""
        needed: set[str] = set() if self.plan.given else {"pos"}
        written: set[str] = set()
        for component, featurizer in self.plan.tensor:
            needed |= {component.input_field(local) for local in featurizer.reads} - written
            written |= {component.output_field(local) for local in featurizer.out}
        for w in self.wires:
            needed |= set(w.reads.values()) - written
            written |= set(w.writes.values())
        needed |= set(self.head_reads.values()) - written
        return tuple(sorted(needed))

    @property
    def batch_fields(self) -> frozenset[str]:
        """Names of the stored fields that :meth:`forward` may read from a graph or batch."""
        optional = {local for _, featurizer in self.plan.tensor for local in featurizer.optional}
        of_reductions = {"edge_index", "chain", "residue"}  # of ``edges`` and ``proteins``
        return frozenset({*self._needs, *optional, *of_reductions} - {"edges", "proteins"})

    @property
    def needs_coordinates(self) -> str | None:
        """Path of the first component that needs coordinates, e.g. ``layers[2] (egnn)``, or None."""
        parts = [(f"{w.path} ({w.component.name})", w.reads) for w in self.wires]
        parts.append((f"head ({self.target.head_name})", self.head_reads))
        paths = (path for path, reads in parts if COORDINATES & set(reads.values()))
        return self.plan.needs_coordinates or next(paths, None)

    @property
    def decoder(self) -> Decoder | None:
        """The last layer if it is a decoder and the only input of the head; such a model can sample sequences."""
        last = self.layers[-1] if len(self.layers) else None
        if isinstance(last, Decoder) and list(self.head_reads.values()) == [self.wires[-1].writes["h"]]:
            return last
        return None

    @property
    def dtype(self) -> torch.dtype:
        """Floating-point type of the parameters."""
        return next((p.dtype for p in self.parameters() if p.is_floating_point()), torch.get_default_dtype())

    @property
    def num_parameters(self) -> int:
        """Number of trainable parameters."""
        return sum(p.numel() for p in self.parameters() if p.requires_grad)

    def fields_of(self, batch: Data) -> dict[str, Any]:
        """Return all fields before the first layer, by name, of a graph or batch of precomputed fields.

        Raises
        ------
        FieldError
            If it is not a graph, or lacks features of the model.
        GradientError
            If ``pos`` or ``backbone`` requires gradients, which would be incomplete; see ``partial_gradients``.
        """
        expected = f"model {self.spec.name!r} takes a graph of model.plan.precompute(residues) or a batch of them"
        if not isinstance(batch, Data):
            raise FieldError(f"{expected}, not {type(batch).__name__}.")
        dtype = self.dtype
        f = {k: v.to(dtype) if isinstance(v, Tensor) and v.is_floating_point() else v for k, v in inputs(batch).items()}
        missing = [name for name in self._needs if name not in f]
        if missing:
            raise FieldError(f"{expected}; this one has no {', '.join(map(repr, missing))}.")
        if require_gradients(f):
            f = recompute_features(self.plan, f, self._needs, partial=self.partial_gradients)
        return self.plan.expand(f)

    def embed(self, batch: Data) -> dict[str, Any]:
        """Return all fields after the last layer, by name, for a graph or batch of precomputed fields."""
        return self.embed_fields(self.fields_of(batch))

    def embed_fields(self, f: Mapping[str, Any], *, stop: int | None = None) -> dict[str, Any]:
        """Return all fields after the last layer, by name, from those before the first; see :meth:`fields_of`.

        With ``stop``, e.g. -1, the layers before this one are run, as in a slice.
        """
        f = dict(f)
        rows = _rows(f)
        for w, layer in zip(self.wires[:stop], self.layers[:stop], strict=True):
            scope = ComponentScope(
                "layer", w.component.name, layer.forward, path=f"{w.path} of model {self.spec.name!r}"
            )
            outputs = run_layer(layer, {local: f[name] for local, name in w.reads.items()}, scope, rows)
            f |= {name: outputs[local] for local, name in w.writes.items()}
        return f

    def attention(self, batch: Data) -> dict[str, list[AttentionMap]]:
        """Compute the attention weights of all layers for a graph or batch.

        Returns
        -------
        dict of str to list of AttentionMap
            One map per protein by layer path, e.g. ``"layers[2] (transformer)"`` or, inside a layer,
            ``"layers[0].blocks.1 (encoder)"``.

        Raises
        ------
        WiringError
            If no layer attends from residues to residues.
        """
        with AttentionRecorder(nn.ModuleList(self.layers)) as recorder, torch.no_grad():
            proteins = self.embed(batch)["proteins"]
        return attention_maps(self.spec.name, self.wires, self.layers, recorder.weights, proteins)

    def forward(self, batch: Data) -> dict[str, Tensor]:
        """Compute ``{"logits": (N, C)}`` for a graph or batch; the target defines N and C."""
        return self.head_outputs(self.embed(batch))

    def head_outputs(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Compute ``{"logits": (N, C)}`` from the fields after the last layer; see :meth:`embed`."""
        target = self.target
        scope = ComponentScope("head", target.head_name, self.head.forward, path=f"model {self.spec.name!r}")
        own = {local: f[name] for local, name in self.head_reads.items()}
        return run_head(self.head, own, scope, _rows(f), target.shape, target.level)


@contextmanager
def _own_seed(path: str) -> Iterator[None]:
    """Raise if a component seeds torch while it is created: every seed of a model would give the same weights."""
    before = torch.initial_seed()
    yield
    if torch.initial_seed() != before:
        raise ComponentError(
            f"{path} calls torch.manual_seed({torch.initial_seed()}) in __init__: the weights of it and of those "
            "after it would not depend on the seed. Allowed: a torch.Generator of its own."
        )


def _rows(f: Mapping[str, Any]) -> dict[str, int]:
    """Return the number of rows of each level."""
    proteins = f["proteins"]
    rows = {"node": proteins.batch.numel(), "graph": len(proteins), "pair": sum(n * n for n in proteins.sizes)}
    return rows | ({"edge": f["edge_index"].size(1)} if "edge_index" in f else {})


def as_model_spec(model: str | ModelSpec | Mapping[str, Any]) -> ModelSpec:
    """Return the model specification of a registry name, dict or specification.

    Raises
    ------
    UnknownNameError
        No model has this name.
    OptionError
        The argument is something else, e.g. a module or a checkpoint.
    """
    if isinstance(model, ModelSpec):
        return model
    if isinstance(model, Mapping):
        return ModelSpec.from_dict(model)
    if not isinstance(model, str):
        hint = " Give 'model.spec' of a ProteinModel." if isinstance(model, nn.Module) else ""
        raise OptionError(f"model: {type(model).__name__}. Allowed: a registry name, a ModelSpec or a dict.{hint}")
    if model.endswith(".safetensors"):
        raise OptionError(f"model {model!r} is a checkpoint. Allowed: the name of a model, 'protgraph list models'.")
    spec = registry.models.get(model)
    if not isinstance(spec, ModelSpec):
        raise WiringError(f"model {model!r} is a {type(spec).__name__}, not a ModelSpec or a Family.")
    return spec


@check_arguments("target")
def build_model(model: str | ModelSpec | Mapping[str, Any], target: Target, *, seed: int | None = None) -> ProteinModel:
    """Build a model for a target.

    Parameters
    ----------
    model : str, ModelSpec or dict
        Registry name (``"gat"``, ``"gat.v1"``) or specification.
    target : Target
        The prediction target, which selects the head.
    seed : int, optional
        Seed of the initial weights; leaves the global generator unchanged.

    Raises
    ------
    UnknownNameError, OptionError, WiringError
        With the path of the component.
    """
    spec = as_model_spec(model)
    check_value(seed, Seed | None, path="build_model: seed")
    if seed is None:
        return ProteinModel(spec, target)
    with _SEEDING, torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return ProteinModel(spec, target)


def check_logits(head: Head, name: str, target: Target) -> None:
    """Raise :class:`WiringError` if a head does not declare logits with the columns of its target."""
    fix = "In __init__: self.declare(logits=f'{target.size}x0e')."
    if "logits" not in head.out:
        raise WiringError(f"head {name!r} declares no logits. {fix}")
    columns = [size or 0 for size in head.out["logits"].trailing_shape]
    declared, needed = math.prod(columns), math.prod(target.shape)
    if declared != needed:
        raise WiringError(
            f"head {name!r} declares logits of {declared} columns; target {target.name!r} ({target.kind}, size "
            f"{target.size}) needs {needed}. {fix}"
        )


def run_layer(
    layer: GraphLayer, f: Mapping[str, Any], scope: ComponentScope, rows: Mapping[str, int]
) -> dict[str, Tensor]:
    """Return the outputs of a layer by local name, all of the shapes of their specs."""
    outputs = _call(layer, f, scope)
    for local, spec in layer.out.items():
        check_returned_tensor(scope, local, outputs[local], spec.trailing_shape, spec.level, rows)
    return outputs


def run_head(
    head: GraphLayer,
    f: Mapping[str, Any],
    scope: ComponentScope,
    rows: Mapping[str, int],
    shape: tuple[int, ...],
    level: str,
) -> dict[str, Tensor]:
    """Return ``{"logits": (M, *shape)}`` of a head; ``shape`` and ``level`` are the target's. See :func:`run_layer`."""
    outputs = _call(head, f, scope)
    check_returned_tensor(scope, "logits", outputs["logits"], shape, level, rows)
    return outputs


def _call(layer: GraphLayer, f: Mapping[str, Any], scope: ComponentScope) -> dict[str, Tensor]:
    has_gradients = torch.is_grad_enabled()
    try:
        outputs = layer(f)
    except (Exception, SystemExit) as e:
        torch.set_grad_enabled(has_gradients)
        if scope.is_fault(e):
            raise scope.raised(e) from e
        raise
    if torch.is_grad_enabled() != has_gradients:
        torch.set_grad_enabled(has_gradients)
        raise scope.returned("changes the gradient mode of torch", allowed="Use it as a context: with torch.no_grad().")
    return check_returned_fields(scope, outputs, layer.writes, may_have_more=True)
