"""Proteins as named tensors with their edges: the inputs of layers, heads and tensor featurizers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, get_args

import torch
from torch import Tensor
from torch_geometric.data import Data

from protgraph.data.graph.fields import NODES, FieldSpec, Level, edge_index_name, is_registered
from protgraph.data.graph.protein_graph import make_batch
from protgraph.ops import Edges, Proteins
from protgraph.testing.inputs import Inputs, Permutation, pair_permutation
from protgraph.testing.symmetry import RigidTransforms

__all__ = ["TensorInputs"]

_OTHER_NUMBER = 1001  # added to author residue numbers


@dataclass(frozen=True, eq=False)
class TensorInputs(Inputs):
    """Proteins as named tensors."""

    specs: Mapping[str, FieldSpec]  # fields by local name, the reduction objects `edges` and `proteins` included
    values: Mapping[str, Tensor]  # the tensors among them, without `edge_index`; `(M, …)` for M rows of their level
    edge_index: Tensor  # `(2, E)` int64, sorted by target
    sizes: tuple[int, ...]  # nodes of each protein
    degree: int | None = None  # number of incoming edges of every node, if all have equally many
    nonnegative: frozenset[str] = field(default_factory=frozenset)  # names of values that are never below 0
    is_batch: bool = False  # pass one batch, as models read it, instead of a dict of fields
    # named edge sets of a batch, `(2, E)` each as `edge_index`
    more_edges: Mapping[str, Tensor] = field(default_factory=dict)
    # node sets of a batch: nodes of each protein
    more_nodes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    # node sets of the sources and the targets of edge sets; those that are not named join nodes of the graph
    ends: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    @property
    def batch(self) -> Tensor:
        """``(N,)`` int64, protein of each node."""
        return _numbers(self.sizes)

    def _sizes_of(self, nodes: str) -> tuple[int, ...]:
        """Return the nodes of each protein in a node set; "nodes": in the graph."""
        return self.more_nodes.get(nodes, self.sizes)

    def _ends_of(self, edges: str) -> tuple[str, str]:
        """Return the node sets of the sources and the targets of an edge set."""
        return self.ends.get(edges, (NODES, NODES))

    def _first_nodes(self, edges: str, protein: int) -> Tensor:
        """Return the first nodes of a protein that can be source and target of an edge set, ``(2, 1)``."""
        return torch.tensor([[sum(self._sizes_of(nodes)[:protein])] for nodes in self._ends_of(edges)])

    def rows(self, level: str) -> tuple[int, ...]:
        """Return each protein's number of rows of a level; edges are counted from ``edge_index``."""
        if level == "edge" or level in self.more_edges:
            index = self.edge_index if level == "edge" else self.more_edges[level]
            target_nodes = self._ends_of(level)[1]
            protein_of_node = _numbers(self._sizes_of(target_nodes))
            protein_of_edge = protein_of_node[index[1]]
            return tuple(torch.bincount(protein_of_edge, minlength=len(self.sizes)).tolist())
        if level in self.more_nodes:
            return self.more_nodes[level]
        return super().rows(level)

    @property
    def levels(self) -> tuple[str, ...]:
        """The levels of the rows of :attr:`values`, and the names of the edge and node sets."""
        return (*get_args(Level), *self.more_edges, *self.more_nodes)

    def argument(self, device: torch.device | str = "cpu", dtype: torch.dtype = torch.float64) -> Any:
        """Return fresh tensors with reduction objects, or a batch.

        What layers need on the host (``sizes``, ``degree``, ``max_degree``) is counted here, as collating does.
        """
        if self.is_batch:
            return self._collated(device, dtype)
        fields: dict[str, Any] = {}
        for name, spec in self.specs.items():
            if not spec.is_tensor:
                continue
            value = self.edge_index if name == "edge_index" else self.values[name]
            value_dtype = dtype if value.is_floating_point() else value.dtype
            fields[name] = value.to(device, value_dtype, copy=True)
        if "edges" in self.specs:
            fields["edges"] = self._edges(device)
        if "proteins" in self.specs:
            batch = self.batch.to(device)
            fields["proteins"] = Proteins(batch, self.sizes, chain=fields.get("chain"), residue=fields.get("residue"))
        return fields

    def _edges(self, device: torch.device | str) -> Edges:
        max_degree = 0
        if self.edge_index.numel():
            max_degree = int(torch.bincount(self.edge_index[1]).max())
        index = self.edge_index.to(device, copy=True)
        return Edges(index, sum(self.sizes), degree=self.degree, max_degree=max_degree)

    def _collated(self, device: torch.device | str, dtype: torch.dtype) -> Data:
        tensors: dict[str, Tensor] = {}
        rows: dict[str, tuple[int, ...]] = {}
        for name, value in self.values.items():
            tensors[name] = value.to(dtype, copy=True) if value.is_floating_point() else value.clone()
            rows[name] = self.rows(self.specs[name].rows)
        for edges, index in self.more_edges.items():
            name = edge_index_name(edges)
            tensors[name] = index
            rows[name] = self.rows(edges)
        if "edges" in self.specs:
            tensors["edge_index"] = self.edge_index
            rows["edge_index"] = self.rows("edge")

        # attributes of each protein
        attributes: dict[str, list[Any]] = {}
        if self.degree is not None:
            attributes["degree"] = [self.degree] * len(self.sizes)
        for edges, ends in self.ends.items():
            attributes[f"{edges}_ends"] = [">".join(ends)] * len(self.sizes)
        batch = make_batch(tensors, sizes=self.sizes, rows=rows, attributes=attributes)
        return batch.to(device)

    def moved(self, transforms: RigidTransforms) -> TensorInputs:
        """Return all proteins after the first transform, then all after the second, and so on."""
        copies = torch.arange(len(transforms))
        starts = copies * sum(self.sizes)  # (T,) first node of each copy
        values = {}
        for name, value in self.values.items():
            values[name] = transforms.apply(value, self.specs[name]).flatten(0, 1)
        for name in self._node_numbers:
            numbers = self.values[name]
            other_axes = [1] * numbers.dim()
            shifted = numbers + starts.view(-1, *other_axes)
            values[name] = shifted.flatten(0, 1)
        index = (self.edge_index[:, None] + starts[:, None]).flatten(1)

        more = {}
        for name, edges in self.more_edges.items():
            total = torch.tensor([[sum(self._sizes_of(nodes))] for nodes in self._ends_of(name)])  # (2, 1)
            starts_of_ends = copies * total  # (2, T)
            shifted = edges[:, None] + starts_of_ends[:, :, None]
            more[name] = shifted.flatten(1)
        more_nodes = {name: sizes * len(transforms) for name, sizes in self.more_nodes.items()}
        sizes = self.sizes * len(transforms)
        return replace(self, values=values, edge_index=index, more_edges=more, sizes=sizes, more_nodes=more_nodes)

    def single(self, protein: int) -> TensorInputs:
        """Return one protein alone."""
        rows = {level: self._part(level, protein) for level in self.levels}
        first_node = rows["node"].start
        values = self._rows_of_values(rows)
        for name in self._node_numbers:
            values[name] = values[name] - first_node
        index = self.edge_index[:, rows["edge"]] - first_node
        more = {}
        for name, edges in self.more_edges.items():
            more[name] = edges[:, rows[name]] - self._first_nodes(name, protein)
        more_nodes = {name: (sizes[protein],) for name, sizes in self.more_nodes.items()}
        sizes = (self.sizes[protein],)
        return replace(self, values=values, edge_index=index, more_edges=more, sizes=sizes, more_nodes=more_nodes)

    def _rows_of_values(self, rows: Mapping[str, slice | Tensor]) -> dict[str, Tensor]:
        """Return the values with some rows, or in another order; ``rows`` are those of each level."""
        return {name: value[rows[self.specs[name].rows]] for name, value in self.values.items()}

    def permuted(self) -> tuple[TensorInputs, Permutation]:
        """Return the same proteins with nodes in a random order, edges sorted by target, and these orders ``(M,)``.

        Atoms change places within their residues only, which ascend in every graph.
        """
        # nodes: in a random order within their protein and residue
        generator = torch.Generator().manual_seed(21)
        key = self.batch.double()
        if "residue" in self.values:
            key = 1e6 * key + self.values["residue"]
        noise = torch.rand(len(key), generator=generator, dtype=torch.float64)
        node = torch.argsort(key + 0.5 * noise)
        new_number = torch.argsort(node)

        index = new_number[self.edge_index]
        edge = torch.argsort(index[1], stable=True)
        graph = torch.arange(len(self.sizes))
        order = {"node": node, "edge": edge, "graph": graph, "pair": pair_permutation(node, self.sizes)}

        # further node sets, and the edges between them
        new_numbers = {NODES: new_number}
        for name, sizes in self.more_nodes.items():
            noise = torch.rand(sum(sizes), generator=generator, dtype=torch.float64)
            order[name] = torch.argsort(_numbers(sizes) + 0.5 * noise)
            new_numbers[name] = torch.argsort(order[name])
        more = {}
        for name, edges in self.more_edges.items():
            source_set, target_set = self._ends_of(name)
            source = new_numbers[source_set][edges[0]]
            target = new_numbers[target_set][edges[1]]
            renumbered = torch.stack([source, target])
            order[name] = torch.argsort(renumbered[1], stable=True)
            more[name] = renumbered[:, order[name]]

        values = self._rows_of_values(order)
        for name in self._node_numbers:
            values[name] = new_number[values[name]]
        return replace(self, values=values, edge_index=index[:, edge], more_edges=more), order

    def edges_permuted(self) -> tuple[TensorInputs, Permutation]:
        """Return the same edges in another order for each target node, and the orders, ``(M,)`` int64 per level."""
        generator = torch.Generator().manual_seed(22)
        order = {n: torch.arange(sum(self.rows(n))) for n in ("node", "graph", "pair", *self.more_nodes)}
        for name, edges in {"edge": self.edge_index, **self.more_edges}.items():
            noise = torch.rand(edges.size(1), generator=generator, dtype=torch.float64)
            order[name] = torch.argsort(edges[1] + 0.5 * noise)
        values = self._rows_of_values(order)
        more = {name: edges[:, order[name]] for name, edges in self.more_edges.items()}
        return replace(self, values=values, edge_index=self.edge_index[:, order["edge"]], more_edges=more), order

    def without_degree(self) -> TensorInputs:
        """Return the same without stating that all nodes have equally many edges."""
        return replace(self, degree=None)

    def changed(self, name: str, *, protein: int | None = None) -> TensorInputs:
        """Change the values of one field, in all proteins or in one; for ``edges``, the sources."""
        generator = torch.Generator().manual_seed(23)
        if name in ("edges", "edge_index"):
            return replace(self, edge_index=self._with_other_sources(self.edge_index))
        if name in self.more_edges:
            changed_edges = self._with_other_sources(self.more_edges[name], self._ends_of(name))
            return replace(self, more_edges={**self.more_edges, name: changed_edges})
        rows = slice(None) if protein is None else self._part(self.specs[name].rows, protein)
        value = self.values[name].clone()
        if name == "residue":
            value[rows] = self._residues_of_next_atoms()[rows]
        elif name in self._node_numbers:
            value[rows] = self._successors(NODES)[value[rows]]
        else:
            value[rows] = self._redrawn(name, value[rows], generator)
        return replace(self, values={**self.values, name: value})

    def _residues_of_next_atoms(self) -> Tensor:
        """Return the residue of the next atom of each protein, ``(N,)``: other residues, which ascend too."""
        value = self.values["residue"]
        is_last = torch.cat([self.batch.diff() != 0, torch.ones(1, dtype=torch.bool)])
        return torch.where(is_last, value, value.roll(-1))

    @property
    def _node_numbers(self) -> list[str]:
        """Names of the values that are node numbers."""
        return [n for n in self.values if self.specs[n].irreps == "index"]

    def _successors(self, nodes: str) -> Tensor:
        """Return the next node of each node in its protein, ``(N,)`` int64; the first one of the last."""
        sizes = torch.tensor(self._sizes_of(nodes))
        batch = _numbers(self._sizes_of(nodes))
        first = sizes.cumsum(0) - sizes  # (P,) first node of each protein
        number_in_protein = torch.arange(len(batch)) - first[batch]
        next_in_protein = (number_in_protein + 1) % sizes[batch]
        return next_in_protein + first[batch]

    def _with_other_sources(self, edge_index: Tensor, ends: tuple[str, str] = (NODES, NODES)) -> Tensor:
        """Return edges ``(2, E)`` with the next node of the protein as source, or as target if that changes nothing."""
        successor = self._successors(ends[0])
        source, target = edge_index
        other = successor[source]
        before = (target * len(successor) + source).sort().values
        after = (target * len(successor) + other).sort().values
        is_unchanged = torch.equal(before, after)  # complete, with loops
        if is_unchanged and ends[0] == ends[1]:
            other = successor[target]
        return torch.stack([other, target])

    def renamed(self) -> TensorInputs | None:
        """Return the same proteins with other author numbers of residues; None if they are not among the values."""
        if "res_id" not in self.values:
            return None
        return replace(self, values={**self.values, "res_id": 3 * self.values["res_id"] + _OTHER_NUMBER})

    @property
    def features(self) -> list[str]:
        """Names of the features that other layers compute: numbers of no registered field and no position."""
        features = []
        for name, value in self.values.items():
            is_position = self.specs[name].irreps == "point"
            if value.is_floating_point() and not is_registered(name) and not is_position:
                features.append(name)
        return features

    def last_perturbed(self) -> TensorInputs:
        """Change all values of the last protein."""
        inputs = self
        for name in self.values:
            inputs = inputs.changed(name, protein=len(self.sizes) - 1)
        return inputs

    def without_edges(self) -> TensorInputs:
        """Return the same proteins without any edge."""
        values = dict(self.values)
        for name, value in self.values.items():
            if self.specs[name].level == "edge":
                values[name] = value[:0]
        more = {name: edges[:, :0] for name, edges in self.more_edges.items()}
        return replace(self, values=values, edge_index=self.edge_index[:, :0], more_edges=more, degree=0)

    def _part(self, level: str, protein: int) -> slice:
        rows = self.rows(level)
        return slice(sum(rows[:protein]), sum(rows[: protein + 1]))

    def _redrawn(self, name: str, value: Tensor, generator: torch.Generator) -> Tensor:
        spec = self.specs[name]
        if value.dtype == torch.bool:
            return ~value
        if not value.is_floating_point():
            if spec.classes is None:
                return value.flip(0)
            shift = torch.randint(1, spec.classes, value.shape, generator=generator)
            return (value + shift) % spec.classes
        if name in self.nonnegative:
            factor = 0.5 + torch.rand(value.shape, generator=generator, dtype=value.dtype)
            return value * factor
        scale = value.std() if value.numel() > 1 else value.new_ones(())
        noise = torch.randn(value.shape, generator=generator, dtype=value.dtype)
        return value + scale * noise


def _numbers(sizes: tuple[int, ...]) -> Tensor:
    """Return the protein of each node, ``(N,)`` int64."""
    return torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes))
