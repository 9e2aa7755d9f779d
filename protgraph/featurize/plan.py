"""Feature plan: featurizer names to the fields of a :class:`ProteinGraph`, in the stages precompute and expand."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from protgraph import registry
from protgraph.argument_types import check_arguments
from protgraph.data.graph.fields import (
    EDGES,
    NODES,
    FieldSpec,
    edge_index_name,
    edge_set_of,
    field,
    is_field,
    is_node_set,
    node_sets_of,
    require_readable,
)
from protgraph.data.graph.levels import EdgeEnds, LocalLevels, field_on, is_edge_field, prefixed, reads_source, rows_of
from protgraph.data.graph.protein_graph import LossCounts, ProteinGraph, set_attributes
from protgraph.errors import (
    AlignmentError,
    EmptyStructureError,
    FieldError,
    MissingCoordinatesError,
    OptionError,
    WiringError,
    suggest,
)
from protgraph.featurize.base import (
    EdgeFeaturizer,
    EdgeList,
    Featurizer,
    NodeFeaturizer,
    NodeList,
    StructureFeaturizer,
    TensorFeaturizer,
)
from protgraph.featurize.node_sets import join_members, member_edge_sets, nodes_of_graph, values_at
from protgraph.featurize.run_featurizer import (
    run_edge_featurizer,
    run_edges_between,
    run_node_featurizer,
    run_structure_featurizer,
    run_tensor_featurizer,
)
from protgraph.ops import Edges, Proteins
from protgraph.registry.component import ComponentSpec, as_components
from protgraph.structure import LossReport, Residues, Structure, clean
from protgraph.structure.neighbors import argsort_edges
from protgraph.structure.residues.alphabet import UNKNOWN
from protgraph.structure.residues.atoms import NODE_TYPES, NodeAtoms, nodes_of
from protgraph.structure.residues.ligands import Ligands

__all__ = ["ALWAYS", "ATOM_FIELDS", "COORDINATES", "FeaturePlan", "build_graph"]

#: Fields of proteins with a structure.
COORDINATES = frozenset({"pos", "backbone"})
#: Fields of every protein graph, copied from the residues.
ALWAYS = ("aatype", "masked", "chain", "res_id", "seq_pos", "pos", "backbone", "backbone_mask")
#: Further fields of graphs whose nodes are atoms.
ATOM_FIELDS = ("atom_type", "element", "residue", "is_ligand")


class _PlacedFeaturizer(NamedTuple):
    """A featurizer with its place in the specification, e.g. "features[0] (knn)"."""

    path: str
    component: ComponentSpec
    featurizer: Featurizer

    @property
    def needs_coordinates(self) -> bool:
        reads = {self.component.input_field(local) for local in self.featurizer.reads}
        return self.featurizer.needs_coordinates or not reads.isdisjoint(COORDINATES)


def _create_featurizers(features: Sequence[ComponentSpec | str | Mapping[str, Any]]) -> list[_PlacedFeaturizer]:
    """Create the featurizers of a specification, in its order."""
    created: list[_PlacedFeaturizer] = []
    for i, component in enumerate(as_components(features, "features")):
        path = f"features[{i}] ({component.name})"
        featurizer = registry.featurizers.create(component.name, path=path, options=component.options)
        created.append(_PlacedFeaturizer(path, component, featurizer))
    return created


def _require_node_type(node_type: str) -> None:
    """Raise if graphs cannot have nodes of a type."""
    if node_type not in NODE_TYPES:
        hint = suggest(str(node_type), NODE_TYPES)
        raise OptionError(f"node_type {node_type!r}.{hint} Allowed: {', '.join(map(repr, NODE_TYPES))}.")


class FeaturePlan:
    """Ordered featurizers, checked and divided into the two stages.

    Parameters
    ----------
    features : sequence of ComponentSpec, str or dict
        Featurizers in order; a tensor featurizer follows those that write its inputs.
    node_type : {"residue", "backbone", "atom"}
        Nodes of the graph. Features of residues are repeated for their atoms; edges are between atoms.
    given : mapping of str to str
        Registered fields that graphs have when they are given, with their irreps; no featurizer computes them.

    Attributes
    ----------
    fields : dict of str to FieldSpec
        Every field after both stages, including ``edges`` and ``proteins``.
    needs_coordinates : str, optional
        First featurizer that requires a structure, e.g. ``features[0] (knn)``; None without one.
    needs_alignment : str, optional
        First featurizer that reads an alignment, e.g. ``features[0] (conservation)``; None without one.
    needs_ligands : bool
        True if a featurizer reads ligands, so that files must be read with them.
    inserts_unresolved : bool
        True if design and scoring insert a residue without coordinates for each missing residue number.
    node_sets : dict of str to NodeFeaturizer
        Node set → its featurizer.
    ends : dict of str to EdgeEnds
        Edge set → what it joins: node sets or, in a line graph, the edges of another set.

    Raises
    ------
    WiringError
        A featurizer reads a field that none before it writes, two write the same field, or an edge featurizer is not
        defined between atoms.

    Notes
    -----
    ``component("radius", edges="far")`` makes the edge set ``far`` beside ``edges``: the object ``far``, the tensor
    ``far_edge_index``, and fields with this prefix of the featurizers that read it, e.g. ``far_edge_dist`` of
    ``component("edge_distance", edges="far")``. In the same way, the featurizer of a node set, e.g. "residues", makes
    the object ``residues``, ``residues_pos`` and further fields, and featurizers with ``nodes="residues"`` add others.
    """

    def __init__(
        self,
        features: Sequence[ComponentSpec | str | Mapping[str, Any]],
        *,
        node_type: str = "residue",
        given: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.given = dict(given)
        _require_node_type(node_type)
        self.node_type = node_type
        self.nodes: list[tuple[ComponentSpec, NodeFeaturizer]] = []
        self.structure: list[tuple[ComponentSpec, StructureFeaturizer]] = []
        self.edges: list[tuple[ComponentSpec, EdgeFeaturizer]] = []
        self.tensor: list[tuple[ComponentSpec, TensorFeaturizer]] = []
        self.fields: dict[str, FieldSpec] = self._fields_of_graphs()

        # All options are checked before the wiring.
        created = _create_featurizers(features)
        self.node_sets: dict[str, NodeFeaturizer] = {}
        self.ends: dict[str, EdgeEnds] = {}
        for item in created:
            self._add_sets(*item)
        placed = [item._replace(component=self._with_sets(item.component, item.featurizer)) for item in created]
        self.components: tuple[ComponentSpec, ...] = tuple(item.component for item in placed)

        # What the featurizers need of a protein. An error names the first one.
        self.needs_ligands = any(item.featurizer.needs_ligands for item in placed)
        self.inserts_unresolved = any(item.featurizer.inserts_unresolved for item in placed)
        of_alignments = (item.path for item in placed if item.featurizer.needs_alignment)
        of_coordinates = (item.path for item in placed if item.needs_coordinates)
        self.needs_alignment: str | None = next(of_alignments, None)
        self.needs_coordinates: str | None = next(of_coordinates, None)

        # Nodes and edges exist before all other features, wherever their featurizers are in the list.
        for item in placed:
            self._add_nodes_and_edges(item.component, item.featurizer)
        self._add_edge_fields()
        for item in placed:
            self._add(*item)

    def _fields_of_graphs(self) -> dict[str, FieldSpec]:
        fields = {name: field(name) for name in (*ALWAYS, "proteins")}
        if self.node_type != "residue":
            fields |= {name: field(name) for name in ATOM_FIELDS}
        for name, irreps in self.given.items():
            fields[name] = field(name).as_(name, irreps=irreps)
        return fields

    def _add_nodes_and_edges(self, component: ComponentSpec, featurizer: Featurizer) -> None:
        """Add a featurizer to those that make nodes or edges, if it is one of them."""
        if isinstance(featurizer, NodeFeaturizer):
            self.nodes.append((component, featurizer))
        if isinstance(featurizer, EdgeFeaturizer):
            self.edges.append((component, featurizer))

    @property
    def featurizers(self) -> list[tuple[ComponentSpec, Featurizer]]:
        """All featurizers, those of the precompute stage first."""
        return [*self.nodes, *self.structure, *self.edges, *self.tensor]

    def _add_sets(self, path: str, component: ComponentSpec, featurizer: Featurizer) -> None:
        """Add the node set of a featurizer with its edge sets, or what the edges of a featurizer join."""
        if isinstance(featurizer, NodeFeaturizer):
            name = featurizer.name
            is_renamed = component.output_field(name) != name
            if is_renamed or not is_node_set(name) or name in self.node_sets:
                raise WiringError(
                    f"{path}: node set {component.output_field(name)!r}. Allowed: a registered name, once. Register "
                    f"it: register_field(FieldSpec({name!r}, 'node', 'object')), and leave out writes."
                )
            self.node_sets[name] = featurizer
            self.ends |= member_edge_sets(name)
        if isinstance(featurizer, EdgeFeaturizer):
            nodes = component.nodes or NODES
            edges = component.edges or EDGES
            ends = EdgeEnds(component.sources or nodes, nodes)
            if ends != EdgeEnds() and edges == EDGES:
                raise WiringError(f"{path}: the edges to {nodes!r} have no name. Give one: edges='near'.")
            before = self.ends.setdefault(edges, ends)
            if before != ends:
                raise WiringError(
                    f"{path}: the edges {edges!r} lead from {ends.sources!r} to {ends.nodes!r}, those of another "
                    f"featurizer from {before.sources!r} to {before.nodes!r}. Choose another name."
                )

    def _with_sets(self, component: ComponentSpec, featurizer: Featurizer) -> ComponentSpec:
        """Return a featurizer with the names of its fields on its sets: ``edge_dist`` is ``far_edge_dist``."""
        ends = self._ends_of(component)
        if isinstance(featurizer, NodeFeaturizer):
            ends = EdgeEnds(featurizer.name, featurizer.name)
        names: dict[str, str] = {}  # of fields with another name on these sets
        for local in (*featurizer.reads, *featurizer.writes):
            if local == "edges" or is_node_set(local):
                continue
            name = field_on(local, component.edges or EDGES, ends)
            if name != local:
                names[local] = name
        reads = {local: names[local] for local in featurizer.reads if local in names}
        writes = {local: names[local] for local in featurizer.writes if local in names}
        return replace(component, reads={**reads, **component.reads}, writes={**writes, **component.writes})

    @property
    def edge_sets(self) -> dict[str, list[tuple[ComponentSpec, EdgeFeaturizer]]]:
        """The edge featurizers of each edge set, by its name; ``edges`` is the one without a name.

        The edge sets between a node set and the nodes of the graph have none.
        """
        sets: dict[str, list[tuple[ComponentSpec, EdgeFeaturizer]]] = {}
        for nodes in self.node_sets:
            sets |= {edges: [] for edges in member_edge_sets(nodes)}
        for component, featurizer in self.edges:
            sets.setdefault(component.edges or EDGES, []).append((component, featurizer))
        return sets

    def _add_edge_fields(self) -> None:
        """Add node sets, and the edge index and the reduction object of each edge set, to the fields."""
        for nodes in self.node_sets:
            position = prefixed(nodes, "pos")
            self.fields |= {nodes: field(nodes).as_(nodes, on=nodes), position: field(position)}
        sets_of_graphs = [edges for edges in map(edge_set_of, self.given) if edges is not None]
        for edges in dict.fromkeys([*sets_of_graphs, *self.edge_sets]):
            featurizers = self.edge_sets.get(edges, [])
            if featurizers and edges in sets_of_graphs:
                raise WiringError(
                    "the edges are given with the graphs, and an edge featurizer makes others. Remove one."
                )
            if edges != EDGES and (is_field(edges) or edges in self.fields):
                raise WiringError(f"edges={edges!r}: this is the name of a field. Choose another name.")
            name = edge_index_name(edges)
            self.fields |= {name: field(name), edges: field(EDGES).as_(edges, on=field(name).on)}
            if len(featurizers) > 1:
                kind = prefixed(edges, "edge_kind")
                self.fields[kind] = field(kind).as_(kind, irreps=f"{len(featurizers)}x0e")

    def _check_edge_set(self, path: str, component: ComponentSpec, featurizer: Featurizer) -> None:
        """Raise if a featurizer names an edge set that does not exist, or reads no edges."""
        if not any(name == "edges" or is_edge_field(name) for name in featurizer.reads):
            raise WiringError(f"{path} reads no edges. Leave out edges={component.edges!r}.")
        if component.edges not in self.fields:
            sets = dict.fromkeys([*self.edge_sets, *self.ends])
            names = ", ".join(map(repr, sets)) or "none"
            hint = suggest(component.edges, sets)
            raise WiringError(f"{path}: edges={component.edges!r} does not exist.{hint} Edge sets: {names}.")

    def _add(self, path: str, component: ComponentSpec, featurizer: Featurizer) -> None:
        """Check the wiring of a featurizer, and add its outputs to the fields."""
        self._check_component(path, component, featurizer)
        if isinstance(featurizer, EdgeFeaturizer):
            self._check_edges(path, component, featurizer)
        elif isinstance(featurizer, NodeFeaturizer):
            self._check_nodes(path, component, featurizer)
        else:
            self._add_features(path, component, featurizer)

    def _check_component(self, path: str, component: ComponentSpec, featurizer: Featurizer) -> None:
        """Raise if a component has attributes of layers or of other featurizers, or a node set that does not exist."""
        if component.inputs:
            raise WiringError(f"{path}: a featurizer takes reads={{local: field}}, not a list")
        if component.repeat > 1 or component.shared:
            raise WiringError(f"{path}: repeat and shared are for layers. Leave them out.")
        if component.sources and not isinstance(featurizer, EdgeFeaturizer):
            raise WiringError(f"{path}: sources={component.sources!r} is for edge featurizers. Leave it out.")
        for nodes in (component.nodes, component.sources):
            self._require_node_set(path, nodes)

    def _require_node_set(self, path: str, nodes: str) -> None:
        """Raise if a featurizer names a node set that does not exist."""
        if nodes not in ("", NODES, *self.node_sets):
            names = ", ".join(map(repr, self.node_sets)) or "none"
            hint = suggest(nodes, [NODES, *self.node_sets])
            raise WiringError(
                f"{path}: node set {nodes!r} does not exist.{hint} Node sets: {names}. Add the featurizer that makes "
                "it, e.g. 'residues'."
            )

    def _check_nodes(self, path: str, component: ComponentSpec, featurizer: NodeFeaturizer) -> None:
        """Raise if the featurizer of a node set is wired; add its outputs to the fields."""
        if component.reads or component.edges or component.nodes:
            raise WiringError(f"{path} makes a node set of the structure. Leave out reads, edges and nodes.")
        _check_names(path, component.writes, featurizer.writes, "output")
        fields = {n: spec.as_(n, on=featurizer.name) for n, spec in featurizer.out.items() if n != featurizer.name}
        self._add_outputs(path, component, fields)

    def _check_edges(self, path: str, component: ComponentSpec, featurizer: EdgeFeaturizer) -> None:
        """Raise if an edge featurizer is wired, or not defined for the nodes of the graph."""
        _check_names(path, component.reads, (), "input")
        _check_names(path, component.writes, featurizer.writes, "output")
        if component.output_field("edge_index") != edge_index_name(component.edges or EDGES):
            raise WiringError(
                f"{path} makes the edges of the graph, whose index has no other name than that of its edge set. Leave "
                "out writes, and give edges='name' for an edge set with a name."
            )
        if any(component.edges in member_edge_sets(nodes) for nodes in self.node_sets):
            raise WiringError(f"{path}: edges={component.edges!r} belongs to a node set. Choose another name.")
        attributes = {n: spec.as_(n, on=component.edges) for n, spec in featurizer.out.items() if n != "edge_index"}
        self._add_outputs(path, component, attributes)
        ends = self.ends.get(component.edges, EdgeEnds())
        if ends != EdgeEnds():
            if not self._joins_residues(ends) and type(featurizer).between is EdgeFeaturizer.between:
                raise WiringError(
                    f"{path} is defined between residues, not from {ends.sources!r} to {ends.nodes!r}. Between other "
                    "nodes, use 'radius' or 'knn'."
                )
            return
        if self.node_type != "residue" and type(featurizer).among is EdgeFeaturizer.among:
            raise WiringError(
                f"{path} is defined between residues; node_type is {self.node_type!r}.\n"
                "Between atoms, use e.g. 'radius', 'knn', 'covalent_bond' or 'hydrogen_bond'."
            )

    def _joins_residues(self, ends: EdgeEnds) -> bool:
        """Return True if edges join nodes of one node set, and these are the residues."""
        return not ends.is_bipartite and ends.nodes in self.node_sets and self.node_sets[ends.nodes].are_residues

    def reads(self, component: ComponentSpec, featurizer: TensorFeaturizer | StructureFeaturizer) -> dict[str, str]:
        """Return the fields that a featurizer requires, local name to field, with those of the sources of its edges."""
        reads = {local: component.input_field(local) for local in featurizer.reads}
        ends = self._ends_of(component)
        if isinstance(featurizer, TensorFeaturizer) and ends.is_bipartite:
            of_sources = filter(reads_source, featurizer.optional)
            reads |= {local: field_on(local, component.edges, ends) for local in of_sources}
        return reads

    def _ends_of(self, component: ComponentSpec) -> EdgeEnds:
        """Return the nodes that a featurizer reads: those that its edges join, or those that it names."""
        nodes = component.nodes or NODES
        return self.ends.get(component.edges, EdgeEnds(nodes, nodes))

    def _add_features(self, path: str, component: ComponentSpec, featurizer: Featurizer) -> None:
        """Check that a featurizer reads what exists, and add its outputs to the fields."""
        _check_names(path, component.reads, featurizer.reads, "input")
        _check_names(path, component.writes, featurizer.writes, "output")
        if component.edges:
            self._check_edge_set(path, component, featurizer)
        assert isinstance(featurizer, StructureFeaturizer | TensorFeaturizer)  # contract: the other kinds
        reads = self.reads(component, featurizer)
        for name in reads.values():
            self._require_field(path, name)
        levels = LocalLevels.of(path, reads, self.fields, self.ends, component.nodes)
        if component.nodes and any(spec.level == "pair" for spec in featurizer.out.values()):
            raise WiringError(f"{path} writes a field of pairs. Leave out nodes={component.nodes!r}.")
        for local, name in reads.items():
            require_readable(path, type(featurizer), local, levels.local(path, local, self.fields[name]))
        outputs = {n: levels.of_model(spec) for n, spec in featurizer.out.items() if spec.is_tensor}
        for local in featurizer.out.keys() - outputs.keys():
            name = component.output_field(local)
            outputs[local] = featurizer.out[local].as_(name, on=name)
            joined = component.input_field("edges")
            self.ends[name] = EdgeEnds(joined, joined)
        self._add_outputs(path, component, outputs)
        if isinstance(featurizer, StructureFeaturizer):
            self.structure.append((component, featurizer))
        else:
            self.tensor.append((component, featurizer))

    def _require_field(self, path: str, name: str) -> None:
        """Raise if a featurizer reads a field that none before it writes."""
        if name not in self.fields:
            raise WiringError(
                f"{path} reads {name!r}, which no featurizer before it writes.\n"
                f"Available: {', '.join(sorted(self.fields))}. Add the featurizer that writes it before this one."
            )

    def _add_outputs(self, path: str, component: ComponentSpec, outputs: Mapping[str, FieldSpec]) -> None:
        for local, spec in outputs.items():
            name = component.output_field(local)
            if name in self.fields:
                raise WiringError(f"{path} writes {name!r}, which exists already. Rename the output: writes={{...}}.")
            self.fields[name] = spec.as_(name)

    @property
    def part(self) -> str:
        """Part of a protein that trained models with these features read; "" for all of it."""
        return next((featurizer.part for _, featurizer in self.structure if featurizer.part), "")

    def parts(self, residues: Residues) -> list[Residues]:
        """Return each part of a protein that a trained model reads as a protein alone; without any, the whole protein.

        Their reports count the residues that are in no part.
        """
        selecting = [featurizer for _, featurizer in self.structure if featurizer.part]
        proteins = selecting[0].parts(residues) if selecting else []
        if not proteins:
            return [residues]
        inside = [name for protein in proteins for name in protein.ids]
        is_outside = ~np.isin(residues.ids, inside)
        chains, counts = np.unique(residues.chain[is_outside], return_counts=True)
        outside = LossReport(outside_parts=dict(zip(chains.tolist(), counts.tolist(), strict=True)))
        return [replace(protein, report=protein.report.merge(outside)) for protein in proteins]

    @property
    def precomputed(self) -> frozenset[str]:
        """Names of the fields that :meth:`precompute` makes."""
        names = {*ALWAYS, *self.given}
        if self.node_type != "residue":
            names |= set(ATOM_FIELDS)
        names |= {prefixed(nodes, "pos") for nodes in self.node_sets}
        for edges in self.edge_sets:
            names |= {edge_index_name(edges), prefixed(edges, "edge_kind")}
        for component, featurizer in (*self.nodes, *self.structure, *self.edges):
            names |= {component.output_field(local) for local in featurizer.out if local != "edge_index"}
        # Node sets are objects, which the tensors of the graph make again.
        return frozenset((names & self.fields.keys()) - self.node_sets.keys())

    @property
    def attributes(self) -> tuple[str, ...]:
        """Names of the plain attributes of graphs that name the node sets that edges join, e.g. ``near_ends``."""
        sets = {NODES, *self.node_sets}
        names = []
        for edges, ends in self.ends.items():
            if ends != EdgeEnds() and ends.nodes in sets:
                names.append(f"{edges}_ends")
        return tuple(names)

    def key(self) -> str:
        """Return canonical text of everything besides code that :meth:`precompute` depends on, for cache keys."""
        stored = []
        for component, featurizer in (*self.nodes, *self.structure, *self.edges):
            specs = [repr(spec) for spec in featurizer.out.values()]
            stored.append((component.to_dict(), featurizer.depends_on(), specs))
        content: list[object] = [self.node_type, *stored]
        if self.given:
            content.append(self.given)
        return json.dumps(content, sort_keys=True)

    def precompute(self, residues: Residues, *, aatype: np.ndarray | None = None) -> ProteinGraph:
        """Compute the features that are stored, once per protein.

        Parameters
        ----------
        residues : Residues
            The protein, without hidden information. Featurizers get its arrays read-only.
        aatype : ndarray, optional
            ``(N,)`` int64, residue types of the graph; by default those of ``residues``.

        Raises
        ------
        EmptyStructureError
            There are no residues.
        FieldError
            The plan has fields that are given with graphs.
        MissingCoordinatesError
            The protein has no coordinates, and a featurizer requires them.
        AlignmentError
            The protein has no alignment, and a featurizer requires one.
        ComponentError
            A featurizer fails, or returns something else than it declares.
        """
        self._require_computable(residues)
        visible = residues.read_only()

        # Structure featurizers compute one row per residue, from which those of node sets and of atoms are taken.
        arrays = self._residue_arrays(residues, visible, aatype)
        nodes = nodes_of(residues, self.node_type)
        node_lists = {NODES: nodes_of_graph(nodes, len(residues))}
        for component, node_featurizer in self.nodes:
            node_lists[node_featurizer.name] = run_node_featurizer(component.name, node_featurizer, visible)
        arrays_of_sets = self._node_set_arrays(arrays, node_lists)
        arrays = {name: value for name, value in arrays.items() if not self.fields[name].on}
        if self.node_type != "residue":
            if residues.ligands is not None:
                arrays = _with_ligands(arrays, residues, residues.ligands)
            arrays = _of_atoms(arrays, nodes)
        graph = ProteinGraph()
        arrays |= arrays_of_sets
        set_attributes(graph, {name: torch.from_numpy(np.array(value)) for name, value in arrays.items()})

        for edges, featurizers in self.edge_sets.items():
            ends = self.ends[edges]
            kinds = self._edge_lists(edges, visible, nodes, node_lists)
            ends_pos = node_lists[ends.sources].pos, node_lists[ends.nodes].pos
            _add_edges(graph, edges, [component for component, _ in featurizers], kinds, ends_pos)
            if ends != EdgeEnds():
                graph[f"{edges}_ends"] = ">".join(ends)
        report = LossCounts(residues.report.to_dict())
        set_attributes(graph, {"name": residues.name, "residue_ids": nodes.ids(residues), "report": report})
        return graph

    def notes(self, residues: Residues) -> list[str]:
        """Return the messages of the featurizers about a protein; see :meth:`protgraph.featurize.Featurizer.notes`."""
        messages = []
        for _, featurizer in self.featurizers:
            messages += featurizer.notes(residues, self.node_type)
        return messages

    def _require_computable(self, residues: Residues) -> None:
        """Raise if the protein lacks what the featurizers require, or graphs have fields that none computes."""
        if len(residues) == 0:
            raise EmptyStructureError(f"{residues.name}: no protein residues, hence no graph")
        if self.given:
            raise FieldError(
                f"{residues.name}: {', '.join(self.given)} cannot be computed from residues. The model reads graphs "
                "that have these fields: give a list of graphs, or a model with featurizers."
            )
        if self.needs_coordinates is not None and not residues.has_coordinates:
            raise MissingCoordinatesError(
                f"{self.needs_coordinates} needs coordinates, and {residues.name!r} is a sequence without them.\n"
                "Give a structure file, or use a model that reads sequences alone."
            )
        if self.needs_alignment is not None and residues.alignment is None:
            raise AlignmentError(
                f"{self.needs_alignment} needs an alignment, and {residues.name!r} has none.\nGive one with "
                "--alignment FILE or FOLDER, ReadOptions(alignment=…). A task that hides residue types removes it, "
                "since it shows them."
            )

    def _node_set_arrays(
        self, arrays: Mapping[str, np.ndarray], node_lists: Mapping[str, NodeList]
    ) -> dict[str, np.ndarray]:
        """Return the fields of the node sets: their positions and further fields, and features of residues on them."""
        arrays_of_sets: dict[str, np.ndarray] = {}
        for component, node_featurizer in self.nodes:
            node_list = node_lists[node_featurizer.name]
            arrays_of_sets[prefixed(node_featurizer.name, "pos")] = node_list.pos
            arrays_of_sets |= {component.output_field(local): value for local, value in node_list.fields.items()}
        for name, value in arrays.items():
            nodes = self.fields[name].on
            if nodes:
                arrays_of_sets[name] = values_at(node_lists[nodes], value)
        return arrays_of_sets

    def _edge_lists(
        self, edges: str, residues: Residues, nodes: NodeAtoms, node_lists: Mapping[str, NodeList]
    ) -> list[EdgeList]:
        """Return the edges of an edge set: those of each featurizer, or those between a node set and the graph."""
        ends = self.ends[edges]
        featurizers = self.edge_sets[edges]
        sources = node_lists[ends.sources]
        targets = node_lists[ends.nodes]
        if not featurizers:
            return [join_members(sources, targets)]
        is_of_graph = ends == EdgeEnds()
        if not is_of_graph and self._joins_residues(ends):
            nodes = nodes_of(residues, "residue")
            is_of_graph = True
        lists = []
        for component, featurizer in featurizers:
            if is_of_graph:
                lists.append(run_edge_featurizer(component.name, featurizer, residues, nodes))
            else:
                lists.append(run_edges_between(component.name, featurizer, residues, sources, targets))
        return lists

    def _residue_arrays(
        self, residues: Residues, visible: Residues, aatype: np.ndarray | None
    ) -> dict[str, np.ndarray]:
        """Return the fields of every graph and the outputs of the structure featurizers, one row per residue."""
        arrays = {
            "aatype": residues.aatype if aatype is None else aatype,
            "masked": np.zeros(len(residues), bool),
            "chain": residues.chain_number,
            "res_id": residues.res_id,
            "seq_pos": residues.seq_pos,
            "pos": residues.pos,
            "backbone": residues.backbone,
            "backbone_mask": residues.backbone_mask,
        }
        for component, featurizer in self.structure:
            outputs = run_structure_featurizer(component.name, featurizer, visible)
            arrays |= {component.output_field(local): value for local, value in outputs.items()}
        return arrays

    def expand(self, f: Mapping[str, Any]) -> dict[str, Any]:
        """Compute the fields of the tensor stage from stored fields, on their device; return both.

        Floating-point fields have the dtype of ``pos``, in graphs without it that of torch.
        """
        f = dict(f)
        dtype = f["pos"].dtype if "pos" in f else torch.get_default_dtype()
        rows = rows_of(f)
        for component, featurizer in self.tensor:
            reads = self.reads(component, featurizer)
            levels = LocalLevels.of("", reads, self.fields, self.ends, component.nodes)
            values = {local: f[name] for local, name in reads.items()}
            nodes = self._ends_of(component).nodes
            for local in featurizer.optional:
                name = prefixed(nodes, local)
                if name in f and not reads_source(local):
                    values[local] = f[name]
            outputs = run_tensor_featurizer(component.name, featurizer, values, levels.rows(rows))
            for local, value in outputs.items():
                name = component.output_field(local)
                if isinstance(value, Edges):
                    rows[name] = value.num_edges
                elif value.is_floating_point():
                    value = value.to(dtype)
                f[name] = value
        return f

    def featurize(self, graph: ProteinGraph) -> ProteinGraph:
        """Return a copy of a graph or batch with the fields of both stages as tensors."""
        f = self.expand(inputs(graph))
        featurized = copy(graph)
        set_attributes(featurized, {name: f[name] for name in self.fields if isinstance(f.get(name), Tensor)})
        return featurized


def _check_names(path: str, wired: Mapping[str, str], names: Sequence[str], kind: str) -> None:
    """Raise if a local name is wired that a featurizer does not have."""
    unknown = sorted(set(wired) - set(names))
    if unknown:
        raise WiringError(f"{path} has no {kind} {unknown[0]!r}. Its {kind}s are {', '.join(names) or 'none'}.")


def inputs(graph: ProteinGraph) -> dict[str, Any]:
    """Return the fields of a graph or batch by name, with the reduction objects ``edges`` and ``proteins``."""
    f: dict[str, Any] = {}
    for name, value in graph.items():
        if isinstance(value, Tensor) and name not in ("y", "ptr", "batch"):
            f[name] = value
    f["proteins"] = Proteins.from_graph(graph)
    for nodes in node_sets_of(list(f)):
        f[nodes] = Proteins.from_graph(graph, nodes)
        f.pop(f"{nodes}_batch", None)
    for name in list(f):
        edges = edge_set_of(name)
        if edges is not None:
            f[edges] = Edges.from_graph(graph, edges)
    return f


@check_arguments("protein", "features", "node_type")
def build_graph(
    protein: Structure | Residues,
    features: Sequence[ComponentSpec | str | Mapping[str, Any]] = ("knn",),
    *,
    node_type: str = "residue",
) -> ProteinGraph:
    """Build a protein graph with all fields of the named featurizers.

    Parameters
    ----------
    protein : Structure or Residues
        Result of :func:`protgraph.load_structure` or :func:`protgraph.clean`.
    features : sequence of ComponentSpec, str or dict
        Featurizers, by name or as ``pg.component("knn", k=16)``.
    node_type : {"residue", "backbone", "atom"}
        Nodes of the graph: residues, their atoms N, CA, C, O, or all heavy atoms.

    Returns
    -------
    ProteinGraph
        Validated.
    """
    plan = FeaturePlan(features, node_type=node_type)
    if isinstance(protein, Structure):
        protein = clean(protein, ligands=plan.needs_ligands, nucleic=plan.needs_ligands)
    graph = plan.featurize(plan.precompute(protein))
    graph.validate()
    return graph


def _with_ligands(arrays: Mapping[str, np.ndarray], residues: Residues, ligands: Ligands) -> dict[str, np.ndarray]:
    """Append a row for each ligand to the arrays of residues: type X, after the end of its chain, 0 elsewhere."""
    chain = ligands.chain.tolist()
    rows = {name: np.zeros((len(ligands), *value.shape[1:]), value.dtype) for name, value in arrays.items()}
    names = list(dict.fromkeys([*residues.chain_names, *chain]))
    rows["chain"] = np.array([names.index(name) for name in chain], np.int64)
    last = {name: int(residues.seq_pos[residues.chain == name].max()) for name in residues.chain_names}
    last_of_chain = np.array([last.get(name, -1) for name in chain], np.int64)
    rows["seq_pos"] = last_of_chain + 1 + np.arange(len(ligands))
    rows["res_id"] = ligands.res_id
    rows["aatype"] = np.full(len(ligands), UNKNOWN)
    rows["backbone"][:] = np.nan
    return {name: np.concatenate([value, rows[name]]) for name, value in arrays.items()}


def _of_atoms(arrays: Mapping[str, np.ndarray], nodes: NodeAtoms) -> dict[str, np.ndarray]:
    """Repeat the arrays of residues for their atoms, and add those of atoms."""
    repeated = {name: value[nodes.residue] for name, value in arrays.items()}
    return {
        **repeated,
        "pos": nodes.pos,
        "atom_type": nodes.atom_type,
        "element": nodes.atomic_number,
        "residue": nodes.residue,
        "is_ligand": nodes.is_ligand,
    }


def _add_edges(
    graph: ProteinGraph,
    edges: str,
    components: Sequence[ComponentSpec],
    kinds: Sequence[EdgeList],
    ends_pos: tuple[np.ndarray, np.ndarray],
) -> None:
    """Set the edge index of an edge set, its attributes and ``degree``; with several kinds, join them.

    ``ends_pos``: positions of the nodes that can be sources and targets, ``(M, 3)`` and ``(N, 3)``.
    """
    values: dict[str, np.ndarray] = {}
    if len(kinds) == 1:
        index = kinds[0].index
        rows = [np.arange(index.shape[1])]
        if kinds[0].degree is not None and edges == EDGES:
            graph.degree = np.int64(kinds[0].degree)  # PyG's batching makes a tensor of Python's integers
    else:
        index, edge_kind = _join(*ends_pos, kinds)
        values[prefixed(edges, "edge_kind")] = edge_kind
        rows = [_rows_of_kind(kind, index) for kind in kinds]
    # Edges of a node set have no component.
    for component, kind, rows_of_kind in zip(components, kinds, rows, strict=False):
        for local, value in kind.fields.items():
            attribute = np.zeros((index.shape[1], *value.shape[1:]), value.dtype)  # 0 for edges of other kinds
            attribute[rows_of_kind] = value
            values[component.output_field(local)] = attribute
    values[edge_index_name(edges)] = index.astype(np.int64, copy=False)
    set_attributes(graph, {name: torch.from_numpy(value) for name, value in values.items()})


def _rows_of_kind(kind: EdgeList, index: np.ndarray) -> np.ndarray:
    """Return the row of each edge of a kind, ``(E,)``, among joined edges ``(2, E)``."""
    num_nodes = int(index.max(initial=0)) + 1
    joined = index[1].astype(np.int64) * num_nodes + index[0]
    code = kind.target.astype(np.int64) * num_nodes + kind.source
    order = np.argsort(joined)
    return order[np.searchsorted(joined, code, sorter=order)]


def _join(source_pos: np.ndarray, pos: np.ndarray, kinds: Sequence[EdgeList]) -> tuple[np.ndarray, np.ndarray]:
    """Return the union of edge lists, ``(2, E)`` ascending by target, distance and source, and its ``(E, R)`` kinds."""
    n = len(source_pos)
    codes = [edges.target.astype(np.int64) * n + edges.source for edges in kinds]
    for code in codes:
        num_duplicates = len(code) - len(np.unique(code))
        if num_duplicates:
            raise FieldError(f"an edge featurizer returned {num_duplicates} duplicates among {len(code)} edges")
    union = np.unique(np.concatenate(codes))
    target, source = np.divmod(union, max(n, 1))
    index = np.stack([source, target])
    edge_kind = np.stack([np.isin(union, code) for code in codes], 1)
    order = argsort_edges(pos, index, source_pos)
    return index[:, order], edge_kind[order].astype(np.float32)
