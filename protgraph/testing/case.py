"""One way to build and feed a component: what the checks work with, whatever its kind."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from protgraph.data.datasets.target import Target
from protgraph.data.graph.fields import FieldSpec
from protgraph.data.graph.protein_graph import collate, make_batch
from protgraph.featurize import EdgeFeaturizer, EdgeList, Featurizer, StructureFeaturizer
from protgraph.featurize.plan import FeaturePlan
from protgraph.model import ModelSpec, ProteinModel, build_model
from protgraph.structure import Residues
from protgraph.testing.draw import degenerate_scenes, draw_scene, scene_of_graph
from protgraph.testing.packed_fixtures import packed_proteins
from protgraph.testing.protein_fixtures import copied, degenerate_proteins, proteins
from protgraph.testing.scene import Scene, StructureScene, TensorScene

__all__ = ["Case", "LayerCase", "ModelCase", "StructureCase", "Written"]


@dataclass(frozen=True)
class Written:
    """One output: its spec, and what its rows count ("node", "edge", "graph" or "pair")."""

    spec: FieldSpec
    level: str


class Case(ABC):
    """A component with its wiring and options chosen.

    Attributes
    ----------
    label : str
        What distinguishes it from the component's other cases.
    scene : Scene
        What it is tried on; motions of whole proteins act here.
    stored : TensorScene, optional
        The same as named tensors, where there are some: orders of nodes and edges, and fields to vary.
    exact : bool
        Whether it computes in the type of its inputs, so that float64 is to be exact.
    """

    label: str
    exact: bool = True

    @property
    @abstractmethod
    def scene(self) -> Scene: ...

    @property
    def stored(self) -> TensorScene | None:
        return None

    @property
    def reads(self) -> tuple[str, ...]:
        """Names in ``stored`` that the output has to depend on."""
        return ()

    @abstractmethod
    def degenerate(self) -> dict[str, Scene]:
        """Proteins at the edge, by what they are."""

    @abstractmethod
    def make(self) -> nn.Module:
        """A new instance with parameters from torch's global generator."""

    @abstractmethod
    def written(self, module: nn.Module) -> dict[str, Written]:
        """What it declares to write."""

    @abstractmethod
    def prepare(self, scene: Scene, device: torch.device | str, dtype: torch.dtype) -> Any:
        """The argument of the module's ``forward``."""

    def sample(self) -> nn.Module:
        """An instance to ask for its declarations; the global generator stays as it was."""
        with torch.random.fork_rng(devices=[]):
            return self.make()

    def build(self, *, seed: int = 0, dtype: torch.dtype = torch.float64) -> nn.Module:
        """A new instance, in evaluation mode.

        Parameters that start constant (zero biases and last layers, gains of 1) are moved off it: what they hide at
        the start, a trained network shows.
        """
        with torch.random.fork_rng(devices=[]), default_dtype(dtype):
            torch.manual_seed(seed)
            module = self.make().to(dtype)
            for p in module.parameters():
                if p.is_floating_point() and p.numel() and bool((p == p.flatten()[0]).all()):
                    p.data.add_(0.1 * torch.randn_like(p))
        return module.eval()

    def run(
        self, module: nn.Module, scene: Scene, *, device: torch.device | str = "cpu", dtype: torch.dtype = torch.float64
    ) -> dict[str, Tensor]:
        """Outputs, float64 on the CPU, without gradients."""
        with torch.no_grad():
            out = module(self.prepare(scene, device, dtype))
        return {name: x.to("cpu", torch.float64 if x.is_floating_point() else x.dtype) for name, x in out.items()}


@dataclass(frozen=True, eq=False)
class LayerCase(Case):
    """A layer, head or tensor featurizer on named tensors.

    Parameters
    ----------
    label : str
    create : callable
        Gives a new instance.
    specs : mapping of str to FieldSpec
        What it is given, by local name.
    nonnegative : tuple of str
    level : str, optional
        What the rows of its outputs count, where the specs do not say (heads).
    """

    label: str
    create: Callable[[], nn.Module | Featurizer]
    specs: Mapping[str, FieldSpec]
    nonnegative: tuple[str, ...] = ()
    level: str | None = None

    @cached_property
    def scene(self) -> TensorScene:
        return draw_scene(self.specs, nonnegative=self.nonnegative)

    @property
    def stored(self) -> TensorScene:
        return self.scene

    @property
    def reads(self) -> tuple[str, ...]:
        return tuple(n for n, spec in self.specs.items() if spec.is_tensor or n == "edges")

    def degenerate(self) -> dict[str, Scene]:
        return degenerate_scenes(self.specs, nonnegative=self.nonnegative)

    def make(self) -> nn.Module:
        made = self.create()
        return made if isinstance(made, nn.Module) else _Expansion(made)

    def written(self, module: nn.Module) -> dict[str, Written]:
        return {name: Written(spec, self.level or spec.level) for name, spec in module.out.items()}

    def prepare(self, scene: Scene, device: torch.device | str, dtype: torch.dtype) -> dict[str, Any]:
        return scene.inputs(device, dtype)


class _Expansion(nn.Module):
    """A tensor featurizer as a module."""

    def __init__(self, featurizer: Featurizer) -> None:
        super().__init__()
        self.featurizer, self.out, self.writes = featurizer, featurizer.out, featurizer.writes

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        return self.featurizer(f)


@dataclass(frozen=True, eq=False)
class StructureCase(Case):
    """A structure featurizer, or an edge featurizer, whose edges count as a 0/1 value of every pair of nodes."""

    label: str
    create: Callable[[], StructureFeaturizer | EdgeFeaturizer]
    packed: bool = False

    @cached_property
    def scene(self) -> StructureScene:
        return StructureScene(packed_proteins() if self.packed else proteins(ligands=self._bound))

    @cached_property
    def _bound(self) -> bool:
        """Whether it looks at ligands."""
        return self.create().wants_ligands

    @cached_property
    def exact(self) -> bool:
        """Whether float64 coordinates give float64 features."""
        made = self.sample()(self.prepare(self.scene, "cpu", torch.float64)).values()
        return all(x.dtype == torch.float64 for x in made if x.is_floating_point())

    def degenerate(self) -> dict[str, Scene]:
        odd = degenerate_proteins(ligands=self._bound)
        return {name: StructureScene((residues,)) for name, residues in odd.items()}

    def make(self) -> nn.Module:
        return _Measurement(self.create())

    def written(self, module: nn.Module) -> dict[str, Written]:
        return module.written

    def prepare(self, scene: Scene, device: torch.device | str, dtype: torch.dtype) -> list[Residues]:
        return [copied(residues, dtype) for residues in scene.residues]


class _Measurement(nn.Module):
    """A structure or edge featurizer as a module of proteins."""

    def __init__(self, featurizer: StructureFeaturizer | EdgeFeaturizer) -> None:
        super().__init__()
        self.featurizer = featurizer
        if isinstance(featurizer, EdgeFeaturizer):
            self.written = {"edge_index": Written(FieldSpec("adjacency", "edge", "1x0e"), "pair")}
        else:
            self.written = {name: Written(spec, spec.level) for name, spec in featurizer.out.items()}

    def forward(self, proteins: list[Residues]) -> dict[str, Tensor]:
        made = [self.featurizer(residues) for residues in proteins]
        if isinstance(self.featurizer, EdgeFeaturizer):
            pairs = zip(made, proteins, strict=True)
            return {"edge_index": torch.cat([_adjacency(edges, len(residues)) for edges, residues in pairs])}
        return {name: torch.cat([torch.from_numpy(np.array(fields[name])) for fields in made]) for name in made[0]}


def _adjacency(edges: EdgeList, n: int) -> Tensor:
    matrix = torch.zeros(n, n, dtype=torch.float64)
    matrix[torch.from_numpy(edges.target), torch.from_numpy(edges.source)] = 1.0
    return matrix.view(-1, 1)


@dataclass(frozen=True, eq=False)
class ModelCase(Case):
    """A whole model, from residues to the logits of several targets at once.

    Parameters
    ----------
    graph : ModelSpec
    targets : tuple of Target
        Its layers are shared by their heads.
    """

    graph: ModelSpec
    targets: tuple[Target, ...]
    label: str = ""

    @cached_property
    def scene(self) -> StructureScene:
        return StructureScene(proteins(ligands=self._plan.wants_ligands), self.graph.node_type)

    @cached_property
    def _plan(self) -> FeaturePlan:
        return FeaturePlan(self.graph.features, node_type=self.graph.node_type)

    @cached_property
    def stored(self) -> TensorScene:
        return scene_of_graph(self.prepare(self.scene, "cpu", torch.float64))

    @cached_property
    def exact(self) -> bool:
        made = self.prepare(self.scene, "cpu", torch.float64)
        return all(x.dtype == torch.float64 for _, x in made.items() if torch.is_tensor(x) and x.is_floating_point())

    @cached_property
    def reads(self) -> tuple[str, ...]:
        """Stored fields from which a path leads to a head."""
        models, dead = self.sample().models, set(self.graph.dead_layers())
        wires = [w for w in models[0].wires if f"{w.path} ({w.component.name})" not in dead]
        needed = {name for w in wires for name in w.reads.values()}
        needed |= {name for m in models for name in m.head_reads.values()}
        for component, featurizer in reversed(self._plan.tensor):
            if needed & {component.writes.get(n, n) for n in featurizer.writes}:
                needed |= {component.reads.get(n, n) for n in featurizer.reads}
        return tuple(name for name in (*self.stored.values, "edges") if name in needed and name in self.stored.specs)

    def parts(self) -> list[object]:
        """Instances of its featurizers, layers and heads."""
        models = self.sample().models
        plan = models[0].plan
        featurizers = [featurizer for _, featurizer in (*plan.structure, *plan.edges, *plan.tensor)]
        return [*featurizers, *models[0].layers, *(m.head for m in models)]

    def degenerate(self) -> dict[str, Scene]:
        odd = degenerate_proteins(ligands=self._plan.wants_ligands)
        return {name: StructureScene((residues,), self.graph.node_type) for name, residues in odd.items()}

    def make(self) -> nn.Module:
        return _Heads([build_model(self.graph, target) for target in self.targets])

    def written(self, module: nn.Module) -> dict[str, Written]:
        return module.written

    def prepare(self, scene: Scene, device: torch.device | str, dtype: torch.dtype) -> Data:
        if isinstance(scene, StructureScene):
            return collate([self._plan.precompute(copied(residues, dtype)) for residues in scene.residues]).to(device)
        tensors = {n: x.to(dtype, copy=True) if x.is_floating_point() else x.clone() for n, x in scene.values.items()}
        rows = {n: scene.rows(scene.specs[n].level) for n in tensors}
        attributes = {} if scene.degree is None else {"degree": [scene.degree] * len(scene.sizes)}
        if "edges" in scene.specs:
            tensors["edge_index"], rows["edge_index"] = scene.edge_index, scene.rows("edge")
        return make_batch(tensors, sizes=scene.sizes, rows=rows, attributes=attributes).to(device)


class _Heads(nn.Module):
    """Models of one graph that share their layers: the outputs of each head, by its name."""

    def __init__(self, models: list[ProteinModel]) -> None:
        super().__init__()
        self.models = nn.ModuleList(models)
        for other in models[1:]:
            other.layers = models[0].layers
        self.written = {
            f"{m.target.head_name} {name}": Written(spec, m.target.level)
            for m in models
            for name, spec in m.head.out.items()
        }

    def forward(self, batch: Data) -> dict[str, Tensor]:
        f, out = self.models[0].embed(batch), {}
        for m in self.models:
            made = m.head({local: f[name] for local, name in m.head_reads.items()})
            out |= {f"{m.target.head_name} {name}": x for name, x in made.items()}
        return out


@contextmanager
def default_dtype(dtype: torch.dtype) -> Iterator[None]:
    """torch's default floating type, for a while."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)
