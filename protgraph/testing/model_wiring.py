"""The wiring of a model: from residues to the logits of several targets, whose heads share the layers."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import product
from typing import get_args

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from protgraph import registry
from protgraph.data.datasets.target import Target
from protgraph.data.graph.fields import FieldSpec, edge_index_name, field, is_registered
from protgraph.data.graph.protein_graph import collate
from protgraph.errors import DatasetError, ProtgraphError
from protgraph.featurize.plan import FeaturePlan
from protgraph.model import ModelSpec, ProteinModel, build_model
from protgraph.nn.module import Head
from protgraph.registry import Registry
from protgraph.registry.component import ComponentSpec
from protgraph.structure import Residues
from protgraph.structure.residues.alphabet import UNKNOWN
from protgraph.testing.inputs import Inputs
from protgraph.testing.make_inputs import inputs_of_batch
from protgraph.testing.protein_fixtures import copy_residues, degenerate_proteins, folded_proteins, proteins
from protgraph.testing.structure_inputs import StructureInputs
from protgraph.testing.tensor_inputs import TensorInputs
from protgraph.testing.wiring import Wiring

__all__ = [
    "TARGET_SIZE",
    "MultiHeadModel",
    "model_parts",
    "offline_models",
    "targets_of_all_kinds",
    "unused_featurizers",
    "wire_model",
]

#: Classes, vectors or points to predict; a layer that writes a backbone gives four points.
TARGET_SIZE = 4
_STEP = 7  # from each residue type to the types in fields of tasks, e.g. before and after a mutation


def wire_model(spec: ModelSpec) -> Wiring:
    """Wire a model with every head that fits it: classes per residue and per protein, vectors, coordinates."""
    targets, needed = _fitting_targets(spec)
    plan = spec.plan()
    degenerate = degenerate_proteins(ligands=plan.needs_ligands)
    return Wiring(
        label="",
        create=lambda chosen: MultiHeadModel(spec, targets),
        make_inputs=lambda: StructureInputs(_proteins_for(plan, hide=any(_targets_of_task_heads(spec))), plan),
        make_degenerate=lambda: {name: StructureInputs((residues,), plan) for name, residues in degenerate.items()},
        make_tensors=_batch_as_tensors,
        find_reads=partial(_read_names, needed),
    )


def _read_names(needed: set[str], tensors: TensorInputs) -> tuple[str, ...]:
    """Return the names of tensors and edge sets, of those that the predictions depend on."""
    names = (*tensors.values, "edges", *tensors.more_edges)
    return tuple(name for name in names if name in needed & tensors.specs.keys())


def _proteins_for(plan: FeaturePlan, *, hide: bool) -> tuple[Residues, ...]:
    """Return the usual proteins, or folded ones if only these have edges; with every fifth residue hidden, if asked."""
    usual = proteins(ligands=plan.needs_ligands)
    if hide:  # as a task of mutations does
        usual = tuple(residues.without_types(np.arange(len(residues)) % 5 == 2) for residues in usual)
    if not plan.edges or plan.needs_ligands or plan.node_type != "residue":
        return usual
    edges_only = FeaturePlan([component for component, _ in (*plan.nodes, *plan.edges)])
    batch = collate([edges_only.precompute(copy_residues(one)) for one in usual])
    has_edges = [batch[edge_index_name(edges)].numel() > 0 for edges in plan.edge_sets]
    return usual if all(has_edges) else folded_proteins()


def model_parts(wiring: Wiring) -> list[object]:
    """Return instances of the featurizers, layers and heads of a model."""
    module = wiring.sample()
    assert isinstance(module, MultiHeadModel)
    plan = module.model.plan
    featurizers = [featurizer for _, featurizer in plan.featurizers]
    return [*featurizers, *module.model.layers, *module.heads]


def targets_of_all_kinds() -> Iterator[Target]:
    """Yield a target of every level and kind that has a head."""
    annotations = inspect.get_annotations(Target, eval_str=True)
    for level, kind in product(get_args(annotations["level"]), get_args(annotations["kind"])):
        try:
            yield Target("conformity", level, kind, TARGET_SIZE)
        except DatasetError:
            continue


def _fitting_targets(spec: ModelSpec) -> tuple[tuple[Target, ...], set[str]]:
    """Return the targets that a model can predict, and the fields that their predictions depend on."""
    errors: list[ProtgraphError] = []
    fitting: list[Target] = []
    needed: set[str] = set()
    built: ProteinModel | None = None
    kinds = [t for t in targets_of_all_kinds() if t.level in ("node", "graph")]
    kinds = [t for t in kinds if t.kind not in ("multilabel", "regression")]  # as classification
    for target in (*kinds, *_targets_of_task_heads(spec)):
        try:
            with torch.random.fork_rng(devices=[]):
                built = build_model(spec, target) if built is None else _with_target(built, target)
            needed |= _fields_read(built)
        except ProtgraphError as e:
            errors.append(e.with_traceback(None))  # its frames hold the whole model
        else:
            fitting.append(target)
    if not fitting:
        raise errors[0]
    return tuple(fitting), needed


def _targets_of_task_heads(spec: ModelSpec) -> Iterator[Target]:
    """Yield a target for each head that the model names and that reads fields of a task."""
    for name in spec.heads:
        head = registry.heads.get(name)
        if head.task_fields:
            assert head.level is not None  # contract: such a head is of one level
            yield Target("conformity", head.level, "regression", TARGET_SIZE, head=name)


def _batch_as_tensors(inputs: Inputs) -> TensorInputs:
    return inputs_of_batch(inputs.argument())


def unused_featurizers(wiring: Wiring) -> list[str]:
    """Return the names of the featurizers of a model that write no field which a prediction depends on."""
    module = wiring.sample()
    assert isinstance(module, MultiHeadModel)
    needed: set[str] = set()
    for head, reads in zip(module.heads, module.head_reads, strict=True):
        assert isinstance(head, Head)
        model = copy.copy(module.model)
        model._modules = dict(module.model._modules)
        model.head, model.head_reads = head, reads
        needed |= _fields_read(model)
    plan = module.model.plan
    unused = []
    for component, featurizer in (*plan.structure, *plan.tensor):
        if not needed & {component.output_field(local) for local in featurizer.out}:
            unused.append(component.name)
    needed_edges = {_edges_of(name) for name in needed}
    for edges, featurizers in plan.edge_sets.items():
        if edges not in needed_edges:
            unused += [component.name for component, _ in featurizers]
    return unused


def _edges_of(name: str) -> str:
    """Return the edge set that a field is, or whose edges are its rows; its own name if it is of another level."""
    if not is_registered(name) or field(name).level != "edge":
        return name
    return field(name).on or "edges"


def _fields_read(model: ProteinModel) -> set[str]:
    """Return the fields from which a path leads to the head."""
    dead = set(model.spec.dead_layers())
    wires = [w for w in model.wires if f"{w.path} ({w.component.name})" not in dead]
    needed = set(model.head_reads.values())
    for wire in wires:
        needed |= set(wire.reads.values())
    for component, featurizer in reversed(model.plan.tensor):
        if needed & {component.output_field(n) for n in featurizer.writes}:
            needed |= {component.input_field(n) for n in featurizer.reads}
    return needed


class MultiHeadModel(nn.Module):
    """A model with the heads of several targets: the outputs of each, by the name of the head."""

    def __init__(self, spec: ModelSpec, targets: tuple[Target, ...]) -> None:
        super().__init__()
        self.model = build_model(spec, targets[0])
        self.model.partial_gradients = True  # checks of gradients cover the features that can be computed in torch
        models = [self.model, *(_with_target(self.model, target) for target in targets[1:])]
        heads = [m.head for m in models]
        self.heads = nn.ModuleList(heads)
        self.head_names = [target.head_name for target in targets]
        self.head_reads = [m.head_reads for m in models]
        self.outputs: dict[str, FieldSpec] = {}
        for target, head in zip(targets, heads, strict=True):
            self.outputs |= {f"{target.head_name} {n}": s.as_(s.name, level=target.level) for n, s in head.out.items()}

    def forward(self, batch: Data) -> dict[str, Tensor]:
        """Return the fields of all heads, each under the name of its head."""
        f = self.model.embed(batch)
        out: dict[str, Tensor] = {}
        for head in self.heads:
            assert isinstance(head, Head)
            for number, name in enumerate(head.task_fields, 1):
                f[name] = (batch["aatype"] + number * _STEP) % UNKNOWN
        for name, head, reads in zip(self.head_names, self.heads, self.head_reads, strict=True):
            logits = head({local: f[field] for local, field in reads.items()})
            out |= {f"{name} {local}": x for local, x in logits.items()}
        return out


def _with_target(model: ProteinModel, target: Target) -> ProteinModel:
    """Return the same layers with a new head; the layers are not built again."""
    other = copy.copy(model)
    other._modules = dict(model._modules)
    other.fields = dict(model.fields)
    other.target = target
    other.head, other.head_reads = other._make_head()
    return other


def offline_models(spec: ModelSpec) -> ModelSpec:
    """Apply the options that components state as :attr:`protgraph.testing.Conformity.offline`.

    A model without such components is returned unchanged. The replaced parts have random weights: checks test how the
    model is built, not what it predicts.
    """
    features = tuple(_offline_component(registry.featurizers, n) for n in spec.features)
    layers = tuple(_offline_component(registry.layers, n) for n in spec.layers)
    if (features, layers) == (spec.features, spec.layers):
        return spec
    return replace(spec, features=features, layers=layers)


def _offline_component(names: Registry, component: ComponentSpec) -> ComponentSpec:
    stated = getattr(names.get(component.name), "conformity", None)
    if stated is None or not stated.offline:
        return component
    return replace(component, options={**component.options, **stated.offline})
