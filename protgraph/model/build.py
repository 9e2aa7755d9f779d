"""From a model graph and a target to a torch module."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from protgraph import registry
from protgraph.data.datasets.target import Target
from protgraph.errors import FieldError, WiringError
from protgraph.featurize.plan import COORDINATES, FeaturePlan, inputs
from protgraph.model.attention_maps import AttentionMap, attention_maps
from protgraph.model.spec import ModelSpec, WiredComponent, wire
from protgraph.nn.attention_recorder import AttentionRecorder
from protgraph.nn.decoder import Decoder
from protgraph.nn.module import GraphLayer, Head

__all__ = ["ProteinModel", "as_model_spec", "build_model"]


class ProteinModel(nn.Module):
    """A model graph made real for one target; build it with :func:`build_model`.

    Attributes
    ----------
    spec : ModelSpec
    plan : FeaturePlan
        What makes the graphs that it reads: ``model.plan.precompute(residues)``.
    target : Target
    fields : dict of str to FieldSpec
        Every field after the last layer.
    """

    def __init__(self, spec: ModelSpec, target: Target) -> None:
        super().__init__()
        self.spec, self.target = spec, target
        self.plan = FeaturePlan(spec.features, node_type=spec.node_type)
        self.wires = wire(spec, self.plan)
        self.fields = dict(self.plan.fields)
        self.layers = nn.ModuleList()
        for w in self.wires:
            path = f"{w.path} ({w.component.name})"
            given = {local: self.fields[name] for local, name in w.reads.items()}
            layer = registry.layers.create(w.component.name, given, path=path, options=w.component.options)
            if set(layer.out) != set(layer.writes):
                raise WiringError(
                    f"{path} must declare {sorted(layer.writes)} in __init__; it declared {sorted(layer.out)}"
                )
            self.fields |= {name: layer.out[local].as_(name) for local, name in w.writes.items()}
            self.layers.append(layer)
        self.head, self.head_reads = self._make_head()
        self._needs = self._fields_needed()

    def _make_head(self) -> tuple[Head, dict[str, str]]:
        name = self.target.head_name
        head_class = registry.heads.get(name)
        reads = {local: self.spec.readout.get(local, local) for local in head_class.reads}
        reads |= {k: v for k, v in self.spec.readout.items() if k in head_class.optional}
        missing = [f for f in reads.values() if f not in self.fields]
        if missing:
            raise WiringError(f"head {name!r} reads {missing[0]!r}, which model {self.spec.name!r} does not have")
        given = {local: self.fields[f] for local, f in reads.items()}
        options = self.spec.heads.get(name, {})
        return registry.heads.create(name, given, self.target, path=f"head ({name})", options=options), reads

    def _fields_needed(self) -> tuple[str, ...]:
        """What is read of the graphs that are given, everything else being made here."""
        tensor = self.plan.tensor
        parts = [({n.reads.get(r, r) for r in t.reads}, {n.writes.get(w, w) for w in t.out}) for n, t in tensor]
        parts += [(set(w.reads.values()), set(w.writes.values())) for w in self.wires]
        parts.append((set(self.head_reads.values()), set()))
        needed, made = {"pos"}, set()
        for reads, writes in parts:
            needed |= reads - made
            made |= writes
        return tuple(sorted(needed))

    @property
    def needs_coordinates(self) -> str | None:
        """Where the first part stands that needs a structure, ``layers[2] (egnn)``; None where a sequence will do."""
        parts = [(f"{w.path} ({w.component.name})", w.reads) for w in self.wires]
        parts.append((f"head ({self.target.head_name})", self.head_reads))
        found = (path for path, reads in parts if COORDINATES & set(reads.values()))
        return self.plan.needs_coordinates or next(found, None)

    @property
    def decoder(self) -> Decoder | None:
        """The last layer, where it is a decoder and the head reads it alone: such a model can draw sequences."""
        last = self.layers[-1] if len(self.layers) else None
        alone = isinstance(last, Decoder) and list(self.head_reads.values()) == [self.wires[-1].writes["h"]]
        return last if alone else None

    @property
    def dtype(self) -> torch.dtype:
        """Floating type of its parameters."""
        return next((p.dtype for p in self.parameters() if p.is_floating_point()), torch.get_default_dtype())

    @property
    def num_parameters(self) -> int:
        """How many numbers it learns."""
        return sum(p.numel() for p in self.parameters() if p.requires_grad)

    def fields_of(self, batch: Data) -> dict[str, Any]:
        """Every field before the first layer, by name, for a graph or batch of stored fields.

        Raises
        ------
        FieldError
            It is no graph, or one of other features than the model's.
        """
        takes = f"model {self.spec.name!r} takes graphs as model.plan.precompute(residues) makes them, or a batch of those"
        if not isinstance(batch, Data):
            raise FieldError(f"{takes}; got {type(batch).__name__}")
        dtype = self.dtype
        f = {k: v.to(dtype) if isinstance(v, Tensor) and v.is_floating_point() else v for k, v in inputs(batch).items()}
        missing = [name for name in self._needs if name not in f]
        if missing:
            raise FieldError(f"{takes}; this one has no {', '.join(map(repr, missing))}")
        return self.plan.expand(f)

    def embed(self, batch: Data) -> dict[str, Any]:
        """Every field after the last layer, by name, for a graph or batch of stored fields."""
        f = self.fields_of(batch)
        for w, layer in zip(self.wires, self.layers, strict=True):
            f |= self._made(w, layer, f)
        return f

    def _made(self, w: WiredComponent, layer: GraphLayer, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """What one layer writes, by its name in the model; a fault in it says where it stands."""
        path = f"{w.path} ({w.component.name}) of model {self.spec.name!r}"
        try:
            made = layer({local: f[name] for local, name in w.reads.items()})
        except Exception as e:
            e.add_note(f"in {path}, which is given {', '.join(w.reads)}")
            raise
        if not isinstance(made, Mapping) or set(w.writes) - set(made):
            got = sorted(made) if isinstance(made, Mapping) else f"a {type(made).__name__}"
            raise WiringError(f"{path} gives {got}; its writes are {sorted(w.writes)}")
        nodes = f["proteins"].batch.numel()
        for local, value in made.items():
            spec = layer.out.get(local)
            if spec is None or spec.level != "node":
                continue
            shape, trailing = tuple(value.shape), spec.trailing_shape
            if shape[:1] != (nodes,) or not _fits(shape[1:], trailing):
                raise WiringError(f"{path} gives {local!r} of shape {shape}; it declares {(nodes, *trailing)}")
        return {name: made[local] for local, name in w.writes.items()}

    def attention(self, batch: Data) -> dict[str, list[AttentionMap]]:
        """The weights of every attention layer for a graph or batch, one map a protein, by the layer's path.

        Paths are ``"layers[2] (transformer)"`` or, inside a layer, ``"layers[0].blocks.1 (encoder)"``.

        Raises
        ------
        WiringError
            The model has no layer that attends from residues to residues.
        """
        with AttentionRecorder(self.layers) as recorder, torch.no_grad():
            proteins = self.embed(batch)["proteins"]
        return attention_maps(self.spec.name, self.wires, self.layers, recorder.weights, proteins)

    def forward(self, batch: Data) -> dict[str, Tensor]:
        """``{"logits": (N, C)}`` for a graph or batch; what N counts and C are, the target says."""
        f = self.embed(batch)
        return self.head({local: f[name] for local, name in self.head_reads.items()})


def _fits(shape: tuple[int, ...], declared: tuple[int | None, ...]) -> bool:
    """Whether a shape is the declared one, None standing for any width."""
    return len(shape) == len(declared) and all(b in (None, a) for a, b in zip(shape, declared, strict=True))


def as_model_spec(model: str | ModelSpec | Mapping[str, Any]) -> ModelSpec:
    """The model graph of a registry name, a dict or a model graph."""
    if isinstance(model, ModelSpec):
        return model
    if isinstance(model, Mapping):
        return ModelSpec.from_dict(model)
    found = registry.models.get(model)
    if not isinstance(found, ModelSpec):
        raise WiringError(f"model {model!r} is a {type(found).__name__}; a plugin registers a ModelSpec or a Family")
    return found


def build_model(model: str | ModelSpec | Mapping[str, Any], target: Target, *, seed: int | None = None) -> ProteinModel:
    """Build a model for a target.

    Parameters
    ----------
    model : str, ModelSpec or dict
        A registry name (``"gat"``, ``"gat.v1"``) or the model graph itself.
    target : Target
        What to predict; it chooses the head.
    seed : int, optional
        Makes the initial weights repeat exactly and leaves the global generator as it was.

    Raises
    ------
    UnknownNameError, OptionError, WiringError
        With the path of the node at fault.
    """
    spec = as_model_spec(model)
    scope = nullcontext() if seed is None else torch.random.fork_rng(devices=[])
    with scope:
        if seed is not None:
            torch.manual_seed(seed)
        return ProteinModel(spec, target)
