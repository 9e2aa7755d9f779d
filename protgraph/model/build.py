"""Build torch modules from model specifications."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from protgraph import registry
from protgraph.argument_types import check_arguments
from protgraph.data.datasets.target import Target
from protgraph.data.graph.fields import (
    NODES,
    FieldSpec,
    edge_index_name,
    field,
    irreps_columns,
    is_node_set,
    require_readable,
)
from protgraph.data.graph.levels import LocalLevels, prefixed, rows_of
from protgraph.errors import ComponentError, FieldError, OptionError, UnknownNameError, WiringError
from protgraph.featurize.coordinate_gradient import recompute_features, require_gradients
from protgraph.featurize.plan import COORDINATES, inputs
from protgraph.featurize.run_featurizer import check_returned_fields, check_returned_tensor
from protgraph.model.attention_maps import AttentionMap, attention_maps
from protgraph.model.frozen_parts import FrozenParts, freeze_parts
from protgraph.model.spec import ModelSpec, WiredComponent, wire
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
    layers : ModuleList
        One module per layer; layers that share their weights are one module, see :attr:`steps`.
    levels : list of LocalLevels
        Edges and nodes of each of the :attr:`steps`.
    partial_gradients : bool
        True: accept gradients with respect to coordinates that lack the part of features which are not computed in
        torch, instead of :class:`protgraph.errors.GradientError`.
    """

    partial_gradients: bool = False

    @check_arguments("spec", "target")
    def __init__(self, spec: ModelSpec, target: Target) -> None:
        super().__init__()
        self.spec = spec
        self.target = target
        self.plan = spec.plan()
        self.wires = wire(spec, self.plan)
        self.fields = dict(self.plan.fields)
        layers: list[GraphLayer] = []
        self._module_of: list[int] = []
        self.levels: list[LocalLevels] = []
        shared: dict[str, tuple[WiredComponent, int]] = {}

        # layers in the order in which they are called; layers that share weights are one module
        for w in self.wires:
            path = f"{w.path} ({w.component.name})"
            levels = LocalLevels.of(path, w.reads, self.fields, self.plan.ends, w.component.nodes)
            specs = {local: levels.local(path, local, self.fields[name]) for local, name in w.reads.items()}
            label = w.component.shared
            if label in shared:
                first, number = shared[label]
                _check_shared(first, w, layers[number], specs)
            else:
                number = len(layers)
                layers.append(_create_layer(w, specs))
            if label:
                shared.setdefault(label, (w, number))
            self._module_of.append(number)
            self.levels.append(levels)
            out = layers[number].out
            self.fields |= {name: levels.of_model(out[local].as_(name)) for local, name in w.writes.items()}
        self.layers: Sequence[GraphLayer] = nn.ModuleList(layers)  # type: ignore[assignment]
        self.head, self.head_reads = self._make_head()
        self._needs = self._fields_needed()
        self._frozen = FrozenParts()

    def _make_head(self) -> tuple[Head, dict[str, str]]:
        name = self.target.head_name
        try:
            head_class = registry.heads.get(name)
        except UnknownNameError as e:
            raise UnknownNameError(f"target {self.target.name!r} has head={name!r}: {e}") from e
        self.fields |= {name: field(name) for name in head_class.task_fields if name not in self.fields}
        reads = self._head_inputs(head_class, name)
        path = f"head ({name})"
        levels = self._head_levels(reads)
        specs = {local: levels.local(path, local, self.fields[f]) for local, f in reads.items()}
        options = self.spec.heads.get(name, {})
        with _own_seed(path):
            head = registry.heads.create(name, specs, self.target, path=path, options=options)
        if not isinstance(head, Head):
            raise WiringError(f"head {name!r} is a {type(head).__name__}, not a protgraph Head.")
        check_logits(head, name, self.target)
        return head, reads

    def _head_levels(self, reads: Mapping[str, str]) -> LocalLevels:
        """Return the levels of the head that reads these fields; a prediction per node is one of the graph's nodes."""
        nodes = NODES if self.target.level in ("node", "pair") else ""
        return LocalLevels.of(f"head ({self.target.head_name})", reads, self.fields, self.plan.ends, nodes)

    def _head_inputs(self, head_class: type[Head], name: str) -> dict[str, str]:
        """Return the fields that the head reads, by local name; raise if it cannot read one."""
        reads = {local: self.spec.readout.get(local, local) for local in head_class.reads}
        reads |= {local: f for local, f in self.spec.readout.items() if local in head_class.optional}
        missing = [f for f in reads.values() if f not in self.fields]
        if missing:
            raise WiringError(f"head {name!r} reads {missing[0]!r}, which model {self.spec.name!r} does not have.")
        path = f"readout of model {self.spec.name!r}, head {name!r}"
        for local, f in reads.items():
            if local != "proteins" or not is_node_set(f):
                self._check_head_input(path, head_class, local, self.fields[f])
        return reads

    def _check_head_input(self, path: str, head_class: type[Head], local: str, spec: FieldSpec) -> None:
        """Raise if the head cannot read a field under a local name."""
        require_readable(path, head_class, local, spec)
        if local == "h" and self.target.level == "node" and spec.level != "node":
            raise WiringError(f"{path}: {spec.name!r} is of level {spec.level}. Allowed: a field of level node.")

    def _fields_needed(self) -> tuple[str, ...]:
        """Return the fields that an input graph must have."""
        needed: set[str] = set() if self.plan.given else {"pos"}
        written: set[str] = set()
        for component, featurizer in self.plan.tensor:
            needed |= set(self.plan.reads(component, featurizer).values()) - written
            written |= {component.output_field(local) for local in featurizer.out}
        for w in self.wires:
            needed |= set(w.reads.values()) - written
            written |= set(w.writes.values())
        needed |= set(self.head_reads.values()) - written
        return tuple(sorted(needed))

    @property
    def steps(self) -> list[tuple[WiredComponent, GraphLayer]]:
        """The layers in the order in which they are called, each with its wiring; a shared one occurs several times."""
        return [(w, self.layers[number]) for w, number in zip(self.wires, self._module_of, strict=True)]

    @property
    def first_uses(self) -> list[tuple[WiredComponent, GraphLayer]]:
        """The modules ``layers.0``, ``layers.1``, … with the wiring of their first call; see :attr:`steps`."""
        return [(self.wires[self._module_of.index(number)], layer) for number, layer in enumerate(self.layers)]

    @property
    def batch_fields(self) -> frozenset[str]:
        """Names of the stored fields that :meth:`forward` may read from a graph or batch."""
        optional: set[str] = set()
        for _, featurizer in self.plan.tensor:
            optional |= set(featurizer.optional)

        # what the reduction objects of a batch are made of
        objects = {name for name, spec in self.plan.fields.items() if not spec.is_tensor}
        of_reductions = {"chain", "residue", edge_index_name("edges"), *self.plan.attributes}
        for name in objects:
            if self.plan.fields[name].level == "edge":
                of_reductions.add(edge_index_name(name))
        for nodes in self.plan.node_sets:
            of_reductions |= {prefixed(nodes, "pos"), prefixed(nodes, "chain")}
            optional |= {prefixed(nodes, local) for local in optional}

        read = {*self._needs, *optional, *of_reductions}
        return frozenset(read - {"proteins", "edges", *objects})

    @property
    def needs_coordinates(self) -> str | None:
        """Path of the first component that needs coordinates, e.g. ``layers[2] (egnn)``, or None."""
        if self.plan.needs_coordinates:
            return self.plan.needs_coordinates
        for w in self.wires:
            if COORDINATES & set(w.reads.values()):
                return f"{w.path} ({w.component.name})"
        if COORDINATES & set(self.head_reads.values()):
            return f"head ({self.target.head_name})"
        return None

    @property
    def decoder(self) -> Decoder | None:
        """The last layer if it is a decoder and the only input of the head; such a model can sample sequences."""
        if not self.wires:
            return None
        wiring, last = self.steps[-1]
        if isinstance(last, Decoder) and list(self.head_reads.values()) == [wiring.writes["h"]]:
            return last
        return None

    @property
    def dtype(self) -> torch.dtype:
        """Floating-point type of the parameters."""
        return next((p.dtype for p in self.parameters() if p.is_floating_point()), torch.get_default_dtype())

    def freeze(self, is_frozen: Callable[[str], bool]) -> None:
        """Freeze the parts whose names are frozen, and release those that an earlier call froze.

        Frozen parameters have no gradients. Modules with frozen names, and those with frozen parameters only, stay in
        evaluation mode, without dropout.

        Examples
        --------
        >>> import protgraph as pg
        >>> model = pg.build_model("gcn", pg.tasks.get("secondary_structure").target, seed=0)
        >>> model.freeze(lambda name: name.startswith("layers"))
        >>> [name for name, parameter in model.named_parameters() if parameter.requires_grad]
        ['head.mlp.0.weight', 'head.mlp.0.bias']
        """
        for parameter in self._frozen.parameters:
            parameter.requires_grad_(True)
        for module in self._frozen.modules:
            module.train(self.training)
        self._frozen = freeze_parts(self, is_frozen)
        self.train(self.training)

    def train(self, mode: bool = True) -> ProteinModel:
        """Set the training mode; frozen parts stay in evaluation mode, see :meth:`freeze`."""
        super().train(mode)
        for module in self._frozen.modules:
            module.eval()
        return self

    @property
    def num_parameters(self) -> int:
        """Number of trainable parameters."""
        return sum(p.numel() for p in self.parameters() if p.requires_grad)

    def fields_of(self, batch: Data) -> dict[str, Any]:
        """Return all fields before the first layer, by name, of a graph or batch of precomputed fields.

        Raises :class:`FieldError` if it is not a graph, or lacks features of the model. Raises :class:`GradientError`
        if ``pos`` or ``backbone`` requires gradients, which would be incomplete; see ``partial_gradients``.
        """
        expected = f"model {self.spec.name!r} takes a graph of model.plan.precompute(residues) or a batch of them"
        if not isinstance(batch, Data):
            raise FieldError(f"{expected}, not {type(batch).__name__}.")
        dtype = self.dtype
        f = inputs(batch)
        for name, value in f.items():
            if isinstance(value, Tensor) and value.is_floating_point():
                f[name] = value.to(dtype)
        missing = [name for name in self._needs if name not in f]
        if missing:
            raise FieldError(f"{expected}; this one has no {', '.join(map(repr, missing))}.")
        if require_gradients(f):
            f = recompute_features(self.plan, f, self._needs, partial=self.partial_gradients)
        return self.plan.expand(f)

    def for_target(self, target: Target) -> ProteinModel:
        """Return a model for another target with the layers of this one, the same objects, and a new head."""
        other = ProteinModel(self.spec, target)
        other.layers = self.layers
        return other

    def embed(self, batch: Data) -> dict[str, Any]:
        """Return all fields after the last layer, by name, for a graph or batch of precomputed fields."""
        return self.embed_fields(self.fields_of(batch))

    def embed_fields(self, f: Mapping[str, Any], *, stop: int | None = None) -> dict[str, Any]:
        """Return all fields after the last layer, by name, from those before the first; see :meth:`fields_of`.

        With ``stop``, e.g. -1, the layers before this one are run, as in a slice.
        """
        f = dict(f)
        rows = rows_of(f)
        steps = list(zip(self.steps, self.levels, strict=True))
        for (w, layer), levels in steps[:stop]:
            path = f"{w.path} of model {self.spec.name!r}"
            scope = ComponentScope("layer", w.component.name, layer.forward, path=path)
            reads = {local: f[name] for local, name in w.reads.items()}
            outputs = run_layer(layer, reads, scope, levels.rows(rows))
            f |= {name: outputs[local] for local, name in w.writes.items()}
        return f

    def attention(self, batch: Data) -> dict[str, list[AttentionMap]]:
        """Compute the attention weights of all layers between nodes of the graph, for a graph or batch.

        Returns one map per protein by layer path, e.g. ``"layers[2] (transformer)"`` or, inside a layer,
        ``"layers[0].blocks.1 (encoder)"``. Raises :class:`WiringError` if no layer attends from residues to residues.
        """
        with AttentionRecorder(nn.ModuleList(self.layers)) as recorder, torch.no_grad():
            proteins = self.embed(batch)["proteins"]
        on_graph = set()  # modules that read nodes of the graph
        for number, levels in zip(self._module_of, self.levels, strict=True):
            if levels.nodes == "node":
                on_graph.add(number)
        recorded = {}
        for path, calls in recorder.weights.items():
            number_of_module = int(path.partition(".")[0])
            if number_of_module in on_graph:
                recorded[path] = calls
        wires = [wiring for wiring, _ in self.first_uses]
        return attention_maps(self.spec.name, wires, self.layers, recorded, proteins)

    def forward(self, batch: Data) -> dict[str, Tensor]:
        """Compute ``{"logits": (N, C)}`` for a graph or batch; the target defines N and C."""
        return self.head_outputs(self.embed(batch))

    def head_outputs(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Compute ``{"logits": (N, C)}`` from the fields after the last layer; see :meth:`embed`."""
        target = self.target
        scope = ComponentScope("head", target.head_name, self.head.forward, path=f"model {self.spec.name!r}")
        reads = {local: f[name] for local, name in self.head_reads.items()}
        rows = self._head_levels(self.head_reads).rows(rows_of(f))
        return run_head(self.head, reads, scope, rows, target.shape, target.level)


def _create_layer(w: WiredComponent, specs: Mapping[str, FieldSpec]) -> GraphLayer:
    """Create the layer of a wiring for these inputs, and check that it declares its outputs."""
    path = f"{w.path} ({w.component.name})"
    layer_class = registry.layers.get(w.component.name)
    for local in specs:
        if local not in w.component.inputs:
            require_readable(path, layer_class, local, specs[local])
    with _own_seed(path):
        layer: GraphLayer = registry.layers.create(w.component.name, specs, path=path, options=w.component.options)
    if set(layer.out) != set(layer.writes):
        raise WiringError(f"{path} must declare {sorted(layer.writes)} in __init__, but declared {sorted(layer.out)}.")
    return layer


def _check_shared(first: WiredComponent, w: WiredComponent, layer: GraphLayer, specs: Mapping[str, FieldSpec]) -> None:
    """Raise if a layer cannot be the module of an earlier one, because it is another layer or reads other inputs."""
    where = f"{w.path} ({w.component.name}) shares the weights {w.component.shared!r} of {first.path}"
    if (w.component.name, w.component.options) != (first.component.name, first.component.options):
        raise WiringError(
            f"{where}: {w.component!r} is not {first.component!r}. Allowed: one layer with equal options."
        )
    if specs.keys() != layer.fields.keys():
        raise WiringError(f"{where}, but reads {sorted(specs)}, not {sorted(layer.fields)}. Wire the same inputs.")
    for local, spec in specs.items():
        before = layer.fields[local]
        if spec.as_(before.name, unit=before.unit, doc=before.doc) != before:
            raise WiringError(
                f"{where}: {local} is {spec.name!r} with {spec.irreps} per {spec.level}, there {before.name!r} with "
                f"{before.irreps} per {before.level}. Allowed: equal inputs, e.g. an output as wide as the input."
            )


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


def as_model_spec(model: str | ModelSpec | Mapping[str, Any]) -> ModelSpec:
    """Return the model specification of a registry name, TOML file (``*.toml``), dict or specification.

    Raises :class:`UnknownNameError` if no model has this name. Raises :class:`OptionError` if the argument is something
    else, e.g. a module or a checkpoint.
    """
    if isinstance(model, ModelSpec):
        return model
    if isinstance(model, Mapping):
        return ModelSpec.from_dict(model)
    if not isinstance(model, str):
        hint = " Give 'model.spec' of a ProteinModel." if isinstance(model, nn.Module) else ""
        raise OptionError(f"model: {type(model).__name__}. Allowed: a registry name, a ModelSpec or a dict.{hint}")
    if model.endswith(".toml"):
        return ModelSpec.from_toml(model)
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
        Registry name (``"gat"``, ``"gat.v1"``), TOML file (``"model.toml"``) or specification.
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
    if target.irreps and irreps_columns(head.out["logits"].irreps) != irreps_columns(target.irreps):
        raise WiringError(
            f"head {name!r} declares logits {head.out['logits'].irreps!r}; target {target.name!r} has irreps "
            f"{target.irreps!r}. Allowed: a head with these, Target(…, head='NAME')."
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
