"""Small random batches of graphs with the specs of their fields."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import pytest
import torch
from torch import Tensor

from protgraph.data.graph.fields import FieldSpec
from protgraph.data.graph.fields import field as known
from protgraph.ops import Edges, Proteins

WIDTH, EDGE_WIDTH = 12, 5

SPECS = {
    "h": FieldSpec("h", "node", f"{WIDTH}x0e"),
    "update": FieldSpec("update", "node", f"{WIDTH}x0e"),
    "edge_attr": FieldSpec("edge_attr", "edge", f"{EDGE_WIDTH}x0e"),
    "edge_weight": FieldSpec("edge_weight", "edge", "1x0e"),
    "seq_pos": known("seq_pos"),
    "chain": known("chain"),
    "aatype": known("aatype"),
    "edges": known("edges"),
    "proteins": known("proteins"),
}


@dataclass
class Scene:
    """A batch: its edges ``(2, E)``, the sizes of its proteins, its tensors."""

    index: Tensor
    sizes: tuple[int, ...]
    degree: int | None
    f: dict[str, Tensor] = field(default_factory=dict)

    @property
    def num_nodes(self) -> int:
        return sum(self.sizes)

    def edges(self, *, degree: bool = True) -> Edges:
        return Edges(self.index, self.num_nodes, degree=self.degree if degree else None)

    def inputs(self, names: Sequence[str], **changes: object) -> dict[str, object]:
        whole = {**self.f, "edges": self.edges(), "proteins": self.proteins(), **changes}
        return {n: whole[n] for n in names}

    def proteins(self) -> Proteins:
        return Proteins(torch.arange(len(self.sizes)).repeat_interleave(torch.tensor(self.sizes)), self.sizes)

    def single(self, b: int) -> tuple[Scene, slice, Tensor]:
        """Return protein b alone, its rows and its edges."""
        start = sum(self.sizes[:b])
        rows = slice(start, start + self.sizes[b])
        mine = (self.index[1] >= rows.start) & (self.index[1] < rows.stop)
        f = {n: x[mine] if SPECS[n].level == "edge" else x[rows] for n, x in self.f.items()}
        return Scene(self.index[:, mine] - start, (self.sizes[b],), self.degree, f), rows, mine

    def permuted(self, order: Tensor) -> Scene:
        """Return the graph whose node k is node ``order[k]`` of this one."""
        place = torch.empty_like(order).index_copy_(0, order, torch.arange(order.numel()))
        index = place[self.index]
        by_target = torch.argsort(index[1], stable=True)
        f = {n: x[by_target] if SPECS[n].level == "edge" else x[order] for n, x in self.f.items()}
        return Scene(index[:, by_target], self.sizes, self.degree, f)

    def within_proteins(self) -> Tensor:
        """Return a random permutation of the nodes within each protein."""
        starts = [sum(self.sizes[:b]) for b in range(len(self.sizes))]
        return torch.cat([s + torch.randperm(n) for s, n in zip(starts, self.sizes, strict=True)])


def make_scene(sizes: Sequence[int] = (7, 5, 9), *, degree: int | None = None, seed: int = 0) -> Scene:
    """Return random neighbors without self loops or duplicates: ``degree`` per node, or any number, sometimes 0."""
    g = torch.Generator().manual_seed(seed)
    pairs, start = [], 0
    for n in sizes:
        for i in range(n):
            others = torch.randperm(n, generator=g)
            others = others[others != i]
            most = others.numel() if degree is None else degree
            k = int(torch.randint(0, most + 1, (), generator=g)) if degree is None else degree
            pairs += [(start + int(j), start + i) for j in others[:k]]
        start += n
    index = torch.tensor(pairs, dtype=torch.long).view(-1, 2).t().contiguous()
    scene = Scene(index, tuple(sizes), degree)
    dtype, e = torch.get_default_dtype(), index.size(1)
    scene.f = {
        "h": torch.randn(start, WIDTH, generator=g, dtype=dtype),
        "update": torch.randn(start, WIDTH, generator=g, dtype=dtype),
        "edge_attr": torch.randn(e, EDGE_WIDTH, generator=g, dtype=dtype),
        "edge_weight": torch.rand(e, 1, generator=g, dtype=dtype),
        "seq_pos": torch.cat([torch.arange(n) + torch.arange(n) // 3 for n in sizes]),
        "chain": torch.cat([torch.arange(n) // 4 for n in sizes]),
        "aatype": torch.randint(0, 21, (start,), generator=g),
    }
    return scene


@pytest.fixture(autouse=True)
def seed() -> None:
    """Seed every test, so that it has the same numbers alone and among others."""
    torch.manual_seed(0)


@pytest.fixture
def scene() -> Callable[..., Scene]:
    """Return a factory of batches: ``scene(sizes, degree=…, seed=…)``."""
    return make_scene


@pytest.fixture
def specs() -> Mapping[str, FieldSpec]:
    """Return the field specs of a scene's tensors."""
    return dict(SPECS)


@pytest.fixture
def agree() -> Callable[..., None]:
    """Assert that two functions of the same tensors agree in value and in every gradient, relative to the largest."""

    def check(ours: Callable[[], Tensor], theirs: Callable[[], Tensor], wrt: Sequence[Tensor], *, tol: float) -> None:
        results = []
        for function in (ours, theirs):
            out = function()
            cotangent = torch.linspace(-1, 2, out.numel(), dtype=out.dtype).view_as(out).sin()
            results.append((out, *torch.autograd.grad(out, wrt, cotangent)))
        for number, (a, b) in enumerate(zip(*results, strict=True)):
            what = "value" if number == 0 else f"gradient {number}"
            assert torch.isfinite(a).all(), f"{what} is not finite"
            assert a.shape == b.shape and b.abs().max() > 0, f"{what} is trivial"
            error = ((a - b).abs().max() / b.abs().max()).item()
            assert error <= tol, f"{what}: relative error {error:.1e} > {tol:.0e}"

    return check
