"""What components are tried on: some proteins, as named tensors or as residues, and all that can be done to them.

Scenes are float64 and on the CPU; a case casts them to the device and type that it runs on.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from protgraph.data.graph.fields import FieldSpec
from protgraph.ops import Edges, Proteins
from protgraph.structure import Residues
from protgraph.structure.residues.atoms import nodes_of
from protgraph.testing.rigid_transforms import Motions

__all__ = ["Order", "Scene", "StructureScene", "TensorScene", "pair_order"]

#: Level → ``(rows,)`` int64: row r of the reordered output is row ``order[level][r]`` of the old one.
Order = Mapping[str, Tensor]


class Scene(ABC):
    """Some proteins; every method gives a new scene."""

    sizes: tuple[int, ...]

    def rows(self, level: str) -> tuple[int, ...]:
        """How many rows of a level each protein has; a pair is any two nodes of a protein, in order."""
        return {"node": self.sizes, "graph": (1,) * len(self.sizes), "pair": tuple(n * n for n in self.sizes)}[level]

    @abstractmethod
    def moved(self, motions: Motions) -> Scene:
        """All proteins after the first motion, then all after the second, …"""

    @abstractmethod
    def single(self, protein: int) -> Scene:
        """One protein alone."""

    @abstractmethod
    def reordered(self) -> tuple[Scene, Order]:
        """The same proteins with their nodes in another order."""

    @abstractmethod
    def disturbed(self) -> Scene:
        """With everything about the last protein changed, except how many nodes and edges it has."""


@dataclass(frozen=True, eq=False)
class StructureScene(Scene):
    """Proteins as residues: what structure featurizers and whole models begin with.

    Parameters
    ----------
    residues : tuple of Residues
    node_type : str
        What the nodes of their graphs are, see :data:`protgraph.structure.residues.atoms.NODE_TYPES`.
    """

    residues: tuple[Residues, ...]
    node_type: str = "residue"

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(len(nodes_of(residues, self.node_type)) for residues in self.residues)

    def moved(self, motions: Motions) -> StructureScene:
        copies = zip(*(motions.move(residues) for residues in self.residues), strict=True)
        return StructureScene(tuple(residues for copy in copies for residues in copy), self.node_type)

    def single(self, protein: int) -> StructureScene:
        return StructureScene((self.residues[protein],), self.node_type)

    def reordered(self) -> tuple[StructureScene, Order]:
        """With the chains in reverse order: within a chain, residues stand in the order of the sequence."""
        orders = [np.argsort(-r.chain_number, kind="stable") for r in self.residues]
        starts = np.cumsum([0, *self.sizes])
        places = [np.argsort(o)[nodes_of(r, self.node_type).residue] for o, r in zip(orders, self.residues, strict=True)]
        own = [np.argsort(place, kind="stable") for place in places]  # the order that nodes take with their residues
        node = torch.from_numpy(np.concatenate([o + s for o, s in zip(own, starts, strict=False)]))
        swapped = tuple(_permuted(r, o) for r, o in zip(self.residues, orders, strict=True))
        graph = torch.arange(len(self.sizes))
        return StructureScene(swapped, self.node_type), {"node": node, "graph": graph, "pair": pair_order(node, self.sizes)}

    def changed(self) -> StructureScene:
        """Other proteins of the same sizes: everywhere another place, type, number and B factor."""
        return StructureScene(tuple(_other(r, seed) for seed, r in enumerate(self.residues)), self.node_type)

    def disturbed(self) -> StructureScene:
        return StructureScene((*self.residues[:-1], _other(self.residues[-1], 0)), self.node_type)


def _permuted(residues: Residues, order: np.ndarray) -> Residues:
    rows = ("chain", "res_id", "ins_code", "res_name", "aatype", "pos", "backbone", "b_factor", "seq_pos")
    rows += () if residues.occupancy is None else ("occupancy",)
    place = np.argsort(order)
    atoms = np.argsort(place[residues.atom_residue], kind="stable")
    taken = {name: getattr(residues, name)[order] for name in rows}
    taken |= {name: getattr(residues, name)[atoms] for name in ("atom_pos", "atom_name", "atom_element")}
    return replace(residues, **taken, atom_residue=place[residues.atom_residue][atoms])


def _other(residues: Residues, seed: int) -> Residues:
    rng = np.random.default_rng(seed)
    noise = rng.normal(0, 1.5, residues.backbone.shape)
    cut = residues.seq_pos >= len(residues) // 2  # a numbering gap in the middle
    ligands = residues.ligands
    if ligands is not None:
        pos = ligands.atom_pos + rng.normal(0, 1.5, ligands.atom_pos.shape)
        ligands = replace(ligands, atom_pos=pos, atom_element=np.roll(ligands.atom_element, 1))
    return replace(
        residues,
        ligands=ligands,
        aatype=(residues.aatype + rng.integers(1, 20, len(residues))) % 20,
        pos=residues.pos + noise[:, 1],
        backbone=residues.backbone + noise,
        atom_pos=residues.atom_pos + rng.normal(0, 1.5, residues.atom_pos.shape),
        b_factor=residues.b_factor[::-1].copy(),
        occupancy=None if residues.occupancy is None else residues.occupancy[::-1].copy(),
        res_id=residues.res_id + 5 * cut,
        seq_pos=residues.seq_pos + 5 * cut,
    )


@dataclass(frozen=True, eq=False)
class TensorScene(Scene):
    """Proteins as named tensors with their edges: what layers, heads and tensor featurizers read.

    Parameters
    ----------
    specs : mapping of str to FieldSpec
        What is read, by local name, the reduction objects included.
    values : mapping of str to Tensor
        The tensors among it, ``edge_index`` excepted.
    edge_index : Tensor
        ``(2, E)`` int64, sorted by target.
    sizes : tuple of int
        Nodes of each protein.
    degree : int, optional
        Incoming edges of every node, where they are equally many.
    nonnegative : frozenset of str
        Names of values that are never below 0.
    """

    specs: Mapping[str, FieldSpec]
    values: Mapping[str, Tensor]
    edge_index: Tensor
    sizes: tuple[int, ...]
    degree: int | None = None
    nonnegative: frozenset[str] = field(default_factory=frozenset)

    @property
    def batch(self) -> Tensor:
        """``(N,)`` int64, protein of each node."""
        return torch.arange(len(self.sizes)).repeat_interleave(torch.tensor(self.sizes))

    def rows(self, level: str) -> tuple[int, ...]:
        if level == "edge":
            return tuple(torch.bincount(self.batch[self.edge_index[1]], minlength=len(self.sizes)).tolist())
        return super().rows(level)

    def inputs(self, device: torch.device | str = "cpu", dtype: torch.dtype = torch.float64) -> dict[str, Any]:
        """What a component's ``forward`` is given: fresh tensors and reduction objects."""
        given: dict[str, Any] = {}
        for name, spec in self.specs.items():
            if spec.is_tensor:
                value = self.edge_index if spec.irreps == "index" else self.values[name]
                given[name] = value.to(device, dtype if value.is_floating_point() else value.dtype, copy=True)
        if "edges" in self.specs:
            given["edges"] = Edges(self.edge_index.to(device), sum(self.sizes), degree=self.degree)
        if "proteins" in self.specs:
            parts = {part: given[part] for part in ("chain", "residue") if part in given}
            given["proteins"] = Proteins(self.batch.to(device), self.sizes, **parts)
        return given

    def moved(self, motions: Motions) -> TensorScene:
        values = {n: motions.apply(x, self.specs[n]).flatten(0, 1) for n, x in self.values.items()}
        starts = torch.arange(len(motions)) * sum(self.sizes)
        index = (self.edge_index[:, None] + starts[:, None]).flatten(1)
        return replace(self, values=values, edge_index=index, sizes=self.sizes * len(motions))

    def single(self, protein: int) -> TensorScene:
        parts = {level: self._part(level, protein) for level in ("node", "edge", "graph", "pair")}
        values = {n: x[parts[self.specs[n].level]] for n, x in self.values.items()}
        index = self.edge_index[:, parts["edge"]] - parts["node"].start
        return replace(self, values=values, edge_index=index, sizes=(self.sizes[protein],))

    def reordered(self) -> tuple[TensorScene, Order]:
        generator = torch.Generator().manual_seed(21)
        starts = np.cumsum([0, *self.sizes])
        shuffled = zip(starts, self.sizes, strict=False)
        node = torch.cat([int(s) + torch.randperm(n, generator=generator) for s, n in shuffled])
        place = torch.argsort(node)
        index = place[self.edge_index]
        edge = torch.argsort(index[1], stable=True)
        order = {"node": node, "edge": edge, "graph": torch.arange(len(self.sizes))}
        order["pair"] = pair_order(node, self.sizes)
        values = {n: x[order[self.specs[n].level]] for n, x in self.values.items()}
        return replace(self, values=values, edge_index=index[:, edge]), order

    def edges_reordered(self) -> tuple[TensorScene, Order]:
        """The same edges, each node's in another order."""
        noise = torch.rand(self.edge_index.size(1), generator=torch.Generator().manual_seed(22), dtype=torch.float64)
        edge = torch.argsort(self.edge_index[1] + 0.5 * noise)
        order = {"edge": edge, **{level: torch.arange(sum(self.rows(level))) for level in ("node", "graph", "pair")}}
        values = {n: x[order[self.specs[n].level]] for n, x in self.values.items()}
        return replace(self, values=values, edge_index=self.edge_index[:, edge]), order

    def irregular(self) -> TensorScene:
        """The same without saying that all nodes have equally many edges."""
        return replace(self, degree=None)

    def changed(self, name: str, *, protein: int | None = None) -> TensorScene:
        """With other values of one field, everywhere or in one protein; for ``edges``, with other sources."""
        generator = torch.Generator().manual_seed(23)
        if name in ("edges", "edge_index"):
            starts, sizes = (torch.tensor(x)[self.batch] for x in (np.cumsum([0, *self.sizes])[:-1], self.sizes))
            next_one = (torch.arange(sum(self.sizes)) - starts + 1) % sizes + starts
            source, target = self.edge_index
            other, n = next_one[source], len(next_one)
            if torch.equal((target * n + other).sort()[0], (target * n + source).sort()[0]):  # complete, with loops
                other = next_one[target]
            return replace(self, edge_index=torch.stack([other, target]))
        rows = slice(None) if protein is None else self._part(self.specs[name].level, protein)
        value = self.values[name].clone()
        value[rows] = self._redrawn(name, value[rows], generator)
        return replace(self, values={**self.values, name: value})

    def disturbed(self) -> TensorScene:
        scene = self
        for name in self.values:
            scene = scene.changed(name, protein=len(self.sizes) - 1)
        return scene

    def without_edges(self) -> TensorScene:
        """The same proteins with no edge at all."""
        values = {n: x[:0] if self.specs[n].level == "edge" else x for n, x in self.values.items()}
        return replace(self, values=values, edge_index=self.edge_index[:, :0], degree=0)

    def _part(self, level: str, protein: int) -> slice:
        rows = self.rows(level)
        return slice(sum(rows[:protein]), sum(rows[: protein + 1]))

    def _redrawn(self, name: str, value: Tensor, generator: torch.Generator) -> Tensor:
        spec = self.specs[name]
        if value.dtype == torch.bool:
            return ~value
        if not value.is_floating_point():
            if spec.is_category:
                return (value + torch.randint(1, spec.classes, value.shape, generator=generator)) % spec.classes
            return value.flip(0)
        if name in self.nonnegative:
            return value * (0.5 + torch.rand(value.shape, generator=generator, dtype=value.dtype))
        scale = value.std() if value.numel() > 1 else value.new_ones(())
        return value + scale * torch.randn(value.shape, generator=generator, dtype=value.dtype)


def pair_order(node: Tensor, sizes: tuple[int, ...]) -> Tensor:
    """The order of all pairs (i, j) of each protein, row-major, that an order of its nodes makes."""
    parts, nodes, pairs = [], 0, 0
    for n in sizes:
        own = node[nodes : nodes + n] - nodes
        parts.append(pairs + (own[:, None] * n + own).flatten())
        nodes, pairs = nodes + n, pairs + n * n
    return torch.cat(parts)
