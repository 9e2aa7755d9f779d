"""From residues to a :class:`ProteinGraph` by featurizer names, in the stages of :mod:`protgraph.featurize.base`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any

import numpy as np
import torch
from torch import Tensor

from protgraph import registry
from protgraph.data.graph.fields import FieldSpec, field
from protgraph.data.graph.protein_graph import ProteinGraph, set_attributes
from protgraph.errors import EmptyStructureError, FieldError, MissingCoordinatesError, OptionError, WiringError
from protgraph.featurize.base import EdgeFeaturizer, EdgeList, Featurizer, StructureFeaturizer, TensorFeaturizer
from protgraph.ops import Edges, Proteins
from protgraph.registry.component import ComponentSpec, as_components
from protgraph.structure import Residues, Structure, clean
from protgraph.structure.residues.alphabet import UNKNOWN
from protgraph.structure.residues.atoms import NODE_TYPES, NodeAtoms, nodes_of
from protgraph.structure.residues.ligands import Ligands

__all__ = ["ALWAYS", "ATOM_FIELDS", "COORDINATES", "FeaturePlan", "build_graph"]

#: Fields that a protein has only if its structure is known.
COORDINATES = frozenset({"pos", "backbone"})
#: Fields that every protein graph has, straight from the residues.
ALWAYS = ("aatype", "masked", "chain", "res_id", "seq_pos", "pos", "backbone", "backbone_mask")
#: Fields that the graph has besides where its nodes are atoms.
ATOM_FIELDS = ("atom_type", "element", "residue", "is_ligand")


class FeaturePlan:
    """A list of featurizer names, checked and sorted into its two stages.

    Parameters
    ----------
    features : sequence of ComponentSpec, str or dict
        Featurizers in order; a tensor featurizer comes after those that write what it reads.
    node_type : {"residue", "backbone", "atom"}
        What the nodes are. Features of residues are repeated for their atoms; edge featurizers join the atoms.

    Attributes
    ----------
    fields : dict of str to FieldSpec
        Every field that a graph has after both stages, ``edges`` and ``proteins`` included.
    needs_coordinates : str, optional
        Where the first featurizer stands that needs a structure, ``features[0] (knn)``; None without one.
    needs_ligands : bool
        Whether a featurizer looks at ligands, so that residues are to be read with them.

    Raises
    ------
    WiringError
        Where a featurizer reads a field that nothing before it writes, two write the same field, or an edge featurizer
        has no meaning between atoms.
    """

    def __init__(self, features: Sequence[ComponentSpec | str | Mapping[str, Any]], *, node_type: str = "residue") -> None:
        if node_type not in NODE_TYPES:
            raise OptionError(f"node_type is one of {', '.join(map(repr, NODE_TYPES))}, got {node_type!r}")
        self.node_type = node_type
        self.components: tuple[ComponentSpec, ...] = as_components(features, "features")
        self.structure: list[tuple[ComponentSpec, StructureFeaturizer]] = []
        self.edges: list[tuple[ComponentSpec, EdgeFeaturizer]] = []
        self.tensor: list[tuple[ComponentSpec, TensorFeaturizer]] = []
        always = (*ALWAYS, "proteins", *(ATOM_FIELDS if node_type != "residue" else ()))
        self.fields: dict[str, FieldSpec] = {name: field(name) for name in always}
        made = [self._create(i, n) for i, n in enumerate(self.components)]
        for n, featurizer in made:
            if isinstance(featurizer, EdgeFeaturizer):
                self.edges.append((n, featurizer))
        if self.edges:
            self.fields |= {name: field(name) for name in ("edge_index", "edges")}
        if len(self.edges) > 1:
            self.fields["edge_kind"] = field("edge_kind").as_("edge_kind", irreps=f"{len(self.edges)}x0e")
        self.needs_coordinates: str | None = None
        self.needs_ligands = any(featurizer.needs_ligands for _, featurizer in made)
        for i, (n, featurizer) in enumerate(made):
            path = f"features[{i}] ({n.name})"
            self._place(path, n, featurizer)
            reads = {n.reads.get(local, local) for local in featurizer.reads}
            if featurizer.needs_coordinates or reads & COORDINATES:
                self.needs_coordinates = self.needs_coordinates or path

    @staticmethod
    def _create(i: int, n: ComponentSpec) -> tuple[ComponentSpec, Featurizer]:
        path = f"features[{i}] ({n.name})"
        featurizer = registry.featurizers.create(n.name, path=path, options=n.options)
        if not isinstance(featurizer, Featurizer):
            raise WiringError(f"{path} is a {type(featurizer).__name__}, not a protgraph Featurizer")
        return n, featurizer

    def _place(self, path: str, n: ComponentSpec, featurizer: Featurizer) -> None:
        if n.inputs:
            raise WiringError(f"{path}: a featurizer takes reads={{local: field}}, not a list")
        if isinstance(featurizer, EdgeFeaturizer):
            if self.node_type != "residue" and type(featurizer).among is EdgeFeaturizer.among:
                raise WiringError(
                    f"{path} joins residues; node_type is {self.node_type!r}.\n"
                    "Between atoms there are 'radius', 'knn', 'covalent_bond', 'hydrogen_bond', …"
                )
            return
        for local in featurizer.reads:
            if n.reads.get(local, local) not in self.fields:
                raise WiringError(
                    f"{path} reads {n.reads.get(local, local)!r}, which no featurizer before it writes.\n"
                    f"There so far: {', '.join(sorted(self.fields))}. Add the featurizer that writes it first."
                )
        for local, spec in featurizer.out.items():
            name = n.writes.get(local, local)
            if name in self.fields:
                raise WiringError(f"{path} writes {name!r}, which is there already; name its output: writes={{...}}")
            self.fields[name] = spec.as_(name)
        if isinstance(featurizer, StructureFeaturizer):
            self.structure.append((n, featurizer))
        else:
            self.tensor.append((n, featurizer))

    @property
    def precomputed(self) -> frozenset[str]:
        """Names of the fields that :meth:`precompute` makes."""
        made = {n.writes.get(local, local) for n, featurizer in self.structure for local in featurizer.out}
        always = ALWAYS if self.node_type == "residue" else (*ALWAYS, *ATOM_FIELDS)
        return frozenset({*always, *made, "edge_index", "edge_kind"} & self.fields.keys())

    def key(self) -> str:
        """Canonical text of what the *stored* stage depends on: equal keys give equal stored graphs."""
        stored = [(n.to_dict(), featurizer.depends_on()) for n, featurizer in (*self.structure, *self.edges)]
        return json.dumps([self.node_type, *stored], sort_keys=True)

    def precompute(self, residues: Residues, *, aatype: np.ndarray | None = None) -> ProteinGraph:
        """Stage one: what is found once a protein and kept.

        Parameters
        ----------
        residues : Residues
            What featurizers may see of the protein.
        aatype : ndarray, optional
            ``(N,)`` int64, the residue types that the graph shows; None shows those that featurizers see.

        Raises
        ------
        EmptyStructureError
            There is no residue.
        MissingCoordinatesError
            The protein is only a sequence, and a featurizer needs its structure.
        """
        if len(residues) == 0:
            raise EmptyStructureError(f"{residues.name}: no protein residue is left to make a graph of")
        if self.needs_coordinates is not None and not residues.has_coordinates:
            raise MissingCoordinatesError(
                f"{self.needs_coordinates} needs coordinates, and of {residues.name!r} there is only the sequence.\n"
                "Give a structure file, or take a model that reads sequences alone."
            )
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
        for n, featurizer in self.structure:
            for local, value in featurizer(residues).items():
                arrays[n.writes.get(local, local)] = value
        nodes = nodes_of(residues, self.node_type)
        if self.node_type != "residue":
            if residues.ligands is not None:
                arrays = _with_ligands(arrays, residues, residues.ligands)
            arrays = _of_atoms(arrays, nodes)
        graph = ProteinGraph()
        set_attributes(graph, {name: torch.from_numpy(np.array(value)) for name, value in arrays.items()})
        if self.edges:
            _add_edges(graph, [_edges(featurizer, residues, nodes) for _, featurizer in self.edges])
        graph.name = residues.name
        graph.residue_ids = nodes.ids(residues)
        graph.report = residues.report.to_dict()
        return graph

    def expand(self, f: Mapping[str, Any]) -> dict[str, Any]:
        """Stage two: the stored fields and all that tensor featurizers make of them, on the device they lie on.

        Floating fields follow the type of ``pos``.
        """
        f = dict(f)
        dtype = f["pos"].dtype
        for n, featurizer in self.tensor:
            given = {local: f[n.reads.get(local, local)] for local in featurizer.reads}
            given |= {local: f[local] for local in featurizer.optional if local in f}
            made = featurizer(given)
            for local, value in made.items():
                f[n.writes.get(local, local)] = value.to(dtype) if value.is_floating_point() else value
        return f

    def featurize(self, graph: ProteinGraph) -> ProteinGraph:
        """The graph (or batch) with the fields of both stages as tensors; the given one stays as it is."""
        f = self.expand(inputs(graph))
        whole = copy(graph)
        set_attributes(whole, {name: f[name] for name in self.fields if isinstance(f.get(name), Tensor)})
        return whole


def inputs(graph: ProteinGraph) -> dict[str, Any]:
    """Fields of a graph or batch by name, with the reduction objects ``edges`` and ``proteins``."""
    f: dict[str, Any] = {k: v for k, v in graph.items() if isinstance(v, Tensor) and k not in ("y", "ptr", "batch")}
    f["proteins"] = Proteins.from_graph(graph)
    if "edge_index" in graph:
        f["edges"] = Edges.from_graph(graph)
    return f


def build_graph(
    protein: Structure | Residues,
    features: Sequence[ComponentSpec | str | Mapping[str, Any]] = ("knn",),
    *,
    node_type: str = "residue",
) -> ProteinGraph:
    """A protein graph with all fields of the named featurizers.

    Parameters
    ----------
    protein : Structure or Residues
        As :func:`protgraph.load_structure` or :func:`protgraph.clean` gives it.
    features : sequence of ComponentSpec, str or dict
        Featurizers, by name or as ``node("knn", k=16)``.
    node_type : {"residue", "backbone", "atom"}
        What the nodes are: residues, their atoms N, CA, C, O, or all heavy atoms.

    Returns
    -------
    ProteinGraph
        Validated.
    """
    plan = FeaturePlan(features, node_type=node_type)
    whole = {"ligands": plan.needs_ligands, "nucleic": plan.needs_ligands}
    residues = clean(protein, **whole) if isinstance(protein, Structure) else protein
    graph = plan.featurize(plan.precompute(residues))
    graph.validate()
    return graph


def _with_ligands(arrays: Mapping[str, np.ndarray], residues: Residues, ligands: Ligands) -> dict[str, np.ndarray]:
    """What residues have, with a row for each ligand: of type X, behind the end of its chain, 0 in all else."""
    rows = {name: np.zeros((len(ligands), *value.shape[1:]), value.dtype) for name, value in arrays.items()}
    names = list(dict.fromkeys([*residues.chain_names, *ligands.chain.tolist()]))
    rows["chain"] = np.array([names.index(name) for name in ligands.chain], np.int64)
    last = {name: int(residues.seq_pos[residues.chain == name].max()) for name in residues.chain_names}
    behind = np.array([last.get(name, -1) for name in ligands.chain.tolist()], np.int64)
    rows |= {"seq_pos": behind + 1 + np.arange(len(ligands)), "res_id": ligands.res_id}
    rows["aatype"] = np.full(len(ligands), UNKNOWN)
    rows["backbone"][:] = np.nan
    return {name: np.concatenate([value, rows[name]]) for name, value in arrays.items()}


def _of_atoms(arrays: Mapping[str, np.ndarray], nodes: NodeAtoms) -> dict[str, np.ndarray]:
    """What residues have, on each of their atoms, and what only atoms have."""
    given = {name: value[nodes.residue] for name, value in arrays.items()}
    own = {"pos": nodes.pos, "atom_type": nodes.atom_type, "element": nodes.atomic_number, "residue": nodes.residue}
    return {**given, **own, "is_ligand": nodes.is_ligand}


def _edges(featurizer: EdgeFeaturizer, residues: Residues, nodes: NodeAtoms) -> EdgeList:
    return featurizer(residues) if nodes.node_type == "residue" else featurizer.among(residues, nodes)


def _add_edges(graph: ProteinGraph, found: list[EdgeList]) -> None:
    """Set ``edge_index`` and ``degree``; several kinds are joined, and ``edge_kind`` says which found each edge."""
    if len(found) == 1:
        source, target = found[0].source, found[0].target
        if found[0].degree is not None:
            graph.degree = found[0].degree
    else:
        source, target, kinds = _join(graph.pos.numpy(), found)
        graph.edge_kind = torch.from_numpy(kinds)
    graph.edge_index = torch.from_numpy(np.stack([source, target]).astype(np.int64))


def _join(pos: np.ndarray, found: list[EdgeList]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The union of edge lists, ascending by target, then distance, then source, and its ``(E, R)`` kinds."""
    n = len(pos)
    codes = [e.target.astype(np.int64) * n + e.source for e in found]
    for e, code in zip(found, codes, strict=True):
        if len(np.unique(code)) != len(code):
            raise FieldError(
                f"an edge featurizer gave {len(code) - len(np.unique(code))} edges twice ({len(e.source)} in all)"
            )
    union = np.unique(np.concatenate(codes))
    target, source = np.divmod(union, n)
    exact = pos.astype(np.float64)
    squared = ((exact[source] - exact[target]) ** 2).sum(1)
    order = np.lexsort((source, squared, target))
    kinds = np.stack([np.isin(union, code) for code in codes], 1)[order]
    return source[order], target[order], kinds.astype(np.float32)
