"""Wirings of structure, edge and tensor featurizers, each adapted to a torch module."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from protgraph.data.graph.conformity import Conformity
from protgraph.data.graph.fields import FieldSpec, field, is_registered
from protgraph.errors import WiringError
from protgraph.featurize import (
    EdgeFeaturizer,
    EdgeList,
    Featurizer,
    NodeFeaturizer,
    NodeList,
    StructureFeaturizer,
    TensorFeaturizer,
)
from protgraph.ops import Edges
from protgraph.registry.component_fault import code_location
from protgraph.structure import Residues
from protgraph.testing.make_inputs import default_spec, degenerate_inputs, make_inputs
from protgraph.testing.protein_fixtures import (
    copy_residues,
    degenerate_proteins,
    folded_proteins,
    packed_proteins,
    proteins,
)
from protgraph.testing.structure_inputs import StructureInputs
from protgraph.testing.tensor_inputs import TensorInputs
from protgraph.testing.wiring import Wiring

__all__ = ["StructureModule", "read_names", "wire_featurizer"]


def wire_featurizer(component: type[Featurizer], conformity: Conformity) -> Wiring:
    """Return the wiring of a featurizer, with the options that it states for tests."""
    for name in component.writes if issubclass(component, StructureFeaturizer) else ():
        if is_registered(name) and field(name).level == "edge":
            raise WiringError(
                f"it writes {name!r} of level edge, but a featurizer of structures has no edges. Allowed levels: "
                "node, graph, pair. Write it with a TensorFeaturizer that reads 'edges'."
            )
    options = {**conformity.options, **conformity.offline}
    if issubclass(component, TensorFeaturizer):
        create_tensor = partial(component, **options)
        specs = {name: default_spec(name) for name in component.reads}
        return Wiring(
            label="",
            create=lambda: _TensorModule(create_tensor()),
            make_inputs=lambda: make_inputs(specs),
            make_degenerate=lambda: degenerate_inputs(specs),
            find_reads=read_names,
            make_regular=lambda: make_inputs(specs, is_regular=True),
        )
    assert issubclass(component, StructureFeaturizer | EdgeFeaturizer | NodeFeaturizer)  # contract: the other kinds
    create = partial(component, **options)
    return Wiring(
        label="",
        create=lambda: StructureModule(create()),
        make_inputs=lambda: StructureInputs(_proteins_for(create(), conformity)),
        make_degenerate=lambda: _degenerate_for(create),
    )


def read_names(inputs: TensorInputs) -> tuple[str, ...]:
    """Return the names of all tensors that are passed, and ``edges``."""
    return tuple(n for n, spec in inputs.specs.items() if spec.is_tensor or n == "edges")


def _proteins_for(featurizer: Featurizer, conformity: Conformity) -> tuple[Residues, ...]:
    """Return the proteins that are stated; for an edge featurizer, the first ones on which it makes edges."""
    usual = packed_proteins() if conformity.proteins == "packed" else proteins(ligands=featurizer.needs_ligands)
    if not isinstance(featurizer, EdgeFeaturizer) or featurizer.needs_ligands:
        return usual
    choices = tuple(dict.fromkeys((usual, packed_proteins(), folded_proteins())))
    for choice in choices:
        results = [featurizer(copy_residues(residues)) for residues in choice]
        if not all(isinstance(edges, EdgeList) and len(edges.source) == 0 for edges in results):
            return choice
    longest = max(len(residues) for choice in choices for residues in choice)
    raise WiringError(
        f"it makes no edges on the test proteins, which have up to {longest} residues "
        f"({code_location(featurizer.__call__)}). State options for the checks with which it makes some: "
        "conformity = pg.Conformity(options={...})."
    )


def _degenerate_for(create: Callable[[], Featurizer]) -> dict[str, StructureInputs]:
    degenerate = degenerate_proteins(ligands=create().needs_ligands)
    return {name: StructureInputs((residues,)) for name, residues in degenerate.items()}


class _TensorModule(nn.Module):
    """A tensor featurizer as a module."""

    def __init__(self, featurizer: TensorFeaturizer) -> None:
        super().__init__()
        self.featurizer, self.writes = featurizer, featurizer.writes
        self.outputs = {}
        for name, spec in featurizer.out.items():
            self.outputs[name] = spec if spec.is_tensor else FieldSpec(name, "edge", "1x0e")

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Return the tensors; of a line graph, the number of neighbors of each edge."""
        dtype = torch.get_default_dtype()
        values = self.featurizer(f)
        return {n: x.count.unsqueeze(1).to(dtype) if isinstance(x, Edges) else x for n, x in values.items()}


class StructureModule(nn.Module):
    """A structure, edge or node featurizer as a module of proteins.

    Edges are a 0/1 value of every pair of nodes, and their attributes are values of pairs that are 0 without an edge.
    Of a node set, each residue has the sums over the nodes that belong to it, and the protein their center.
    """

    def __init__(self, featurizer: StructureFeaturizer | EdgeFeaturizer | NodeFeaturizer) -> None:
        super().__init__()
        self.featurizer = featurizer
        if isinstance(featurizer, NodeFeaturizer):
            self.outputs = {n: spec for n, spec in featurizer.out.items() if _is_summed(spec)}
            self.outputs |= {_COUNT: FieldSpec(_COUNT, "node", "1x0e"), _MEAN: FieldSpec(_MEAN, "node", "point")}
            self.outputs[_CENTER] = FieldSpec(_CENTER, "graph", "point")
        elif isinstance(featurizer, EdgeFeaturizer):
            attributes = {name: spec.as_(name, level="pair") for name, spec in featurizer.out.items()}
            self.outputs = {**attributes, "edge_index": FieldSpec("adjacency", "pair", "1x0e")}
        else:
            self.outputs = dict(featurizer.out)
            self.writes = featurizer.writes

    def forward(self, proteins: list[Residues]) -> dict[str, Tensor]:
        """Return the fields of all proteins, concatenated."""
        results = [self.featurizer(residues) for residues in proteins]
        self._require_form(results)
        fields = []
        for residues, result in zip(proteins, results, strict=True):
            if isinstance(result, NodeList):
                result = {name: value for name, value in _sums(result, residues).items() if name in self.outputs}
            fields.append(_pairs(result, len(residues)) if isinstance(result, EdgeList) else result)
        values = {}
        for name in fields[0]:
            values[name] = torch.cat([torch.from_numpy(np.array(values_of[name])) for values_of in fields])
        return values

    def _require_form(self, results: list[Any]) -> None:
        kinds = {EdgeFeaturizer: EdgeList, NodeFeaturizer: NodeList, StructureFeaturizer: Mapping}
        expected = next(form for kind, form in kinds.items() if isinstance(self.featurizer, kind))
        wrong = next((one for one in results if not isinstance(one, expected)), self)
        if wrong is not self:
            found = "None" if wrong is None else f"a {type(wrong).__name__}"
            place = code_location(self.featurizer.__call__)
            raise WiringError(f"__call__ returns {found} ({place}). Return a {expected.__name__}.")


_COUNT, _MEAN, _CENTER = "number of nodes", "mean of pos", "center of all nodes"


def _is_summed(spec: FieldSpec) -> bool:
    """Return True for fields of a node set whose sums transform as they do."""
    return spec.is_tensor and spec.irreps not in ("point", "index") and spec.dtype.startswith("float")


def _sums(nodes: NodeList, residues: Residues) -> dict[str, np.ndarray]:
    """Return the sums over the nodes of each residue, ``(L, …)`` each, and the center of all nodes, ``(1, 3)``."""
    is_member = nodes.residue >= 0
    sums: dict[str, np.ndarray] = {}
    for name, value in {_COUNT: np.ones((len(nodes.pos), 1)), _MEAN: nodes.pos, **nodes.fields}.items():
        sums[name] = np.zeros((len(residues), *value.shape[1:]), np.float64)
        np.add.at(sums[name], nodes.residue[is_member], value[is_member])
    sums[_MEAN] = np.where(sums[_COUNT] > 0, sums[_MEAN] / np.maximum(sums[_COUNT], 1), residues.pos)
    sums[_CENTER] = (nodes.pos if len(nodes.pos) else residues.pos).mean(0, keepdims=True)
    return sums


def _pairs(edges: EdgeList, n: int) -> dict[str, np.ndarray]:
    """Return the edges and their attributes as values of all pairs of nodes, ``(N N, …)``, row-major by target."""
    values = {"edge_index": np.ones((len(edges.source), 1)), **edges.fields}
    pairs = {}
    for name, value in values.items():
        table = np.zeros((n, n, *value.shape[1:]), value.dtype)
        table[edges.target, edges.source] = value
        pairs[name] = table.reshape(n * n, *value.shape[1:])
    return pairs
