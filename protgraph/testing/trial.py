"""A subject on a device and in a type: its modules, what they give, and how far two outputs are apart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor, nn

from protgraph.data.graph.conformity import Conformity
from protgraph.errors import ProtgraphError
from protgraph.symmetry import ComparisonError, relative_error
from protgraph.testing.case import Case, Written
from protgraph.testing.rigid_transforms import Motions
from protgraph.testing.scene import Order, Scene
from protgraph.testing.subject import Subject

__all__ = ["EXACT", "ConformityError", "NotApplicable", "Trial", "at_most", "difference"]

#: Largest relative error of what is exact by construction, in float64.
EXACT = 1e-10


class ConformityError(ProtgraphError, AssertionError):
    """A component breaks what its declarations promise."""


class NotApplicable(Exception):
    """A check has nothing to look at here; the message says why."""


@dataclass(frozen=True, eq=False)
class Trial:
    """A subject on a device and in a floating type.

    Parameters
    ----------
    subject : Subject
    device : str
        "cpu", "cuda", "cuda:1".
    dtype : torch.dtype
        float64 holds the checks to 1e-10, any other type to the component's tolerance.
    """

    subject: Subject
    device: str = "cpu"
    dtype: torch.dtype = torch.float64

    @property
    def component(self) -> object:
        return self.subject.component

    @property
    def conformity(self) -> Conformity:
        return self.subject.conformity

    @property
    def cases(self) -> tuple[Case, ...]:
        return self.subject.cases

    def limit(self, case: Case) -> float:
        """The largest error allowed here."""
        return EXACT if self.dtype == torch.float64 and case.exact else self.conformity.tolerance

    def module(self, case: Case, *, device: str | None = None, dtype: torch.dtype | None = None) -> nn.Module:
        """The one instance that checks share; they never change it. Other types have the weights of float64."""
        return _built(case, dtype or self.dtype).to(device or self.device)

    def run(self, case: Case, scene: Scene | None = None) -> dict[str, Tensor]:
        """What the shared instance makes of a scene, by default of the case's own."""
        scene = case.scene if scene is None else scene
        return case.run(self.module(case), scene, device=self.device, dtype=self.dtype)

    def truth(self, case: Case) -> dict[str, Tensor]:
        """What it makes of the unmoved scene on the CPU in float64."""
        return case.run(self.module(case, device="cpu", dtype=torch.float64), case.scene)

    def motion_error(self, case: Case, motions: Motions, *, mirror: bool = False) -> float | None:
        """Largest difference between the outputs for moved proteins, moved back, and the truth for unmoved ones.

        Chiral outputs take no part in reflections; None where there is no other.
        """
        written = {n: w for n, w in case.written(self.module(case)).items() if not (mirror and w.spec.chiral)}
        if not written:
            return None
        truth = self.truth(case)
        want = {n: truth[n].expand(len(motions), *truth[n].shape) for n in written}
        error = self._returned(case, motions, want, written)
        if error > self.limit(case):
            # They are one large batch: what goes wrong in one of unmoved proteins too is not the motion's fault.
            still = motions.at_rest()
            copies = {n: x.view_as(want[n]) for n, x in self.run(case, case.scene.moved(still)).items() if n in want}
            error = self._returned(case, motions, copies, written)
        return error

    def _returned(
        self, case: Case, motions: Motions, want: Mapping[str, Tensor], written: Mapping[str, Written]
    ) -> float:
        moved = self.run(case, case.scene.moved(motions))
        back = {n: motions.undo(moved[n].view_as(want[n]), w.spec) for n, w in written.items()}
        return difference(*({n: x.flatten(0, 1) for n, x in out.items()} for out in (back, want)), written)

    @contextmanager
    def naming(self, what: str) -> Iterator[None]:
        """Errors of any kind inside become a :class:`ConformityError` that says on what."""
        try:
            yield
        except (ConformityError, NotApplicable):
            raise
        except Exception as e:
            says = str(e).strip() or "no message"
            says = says if isinstance(e, ProtgraphError) else says.splitlines()[0]  # ours are short
            raise ConformityError(f"{self.subject}: {what}: {type(e).__name__}: {says}") from e


@lru_cache(maxsize=8)  # the cases of one component, twice; a session that tests them all does not keep them all
def _built(case: Case, dtype: torch.dtype) -> nn.Module:
    module = case.build(dtype=dtype)
    if dtype != torch.float64:
        module.load_state_dict(_built(case, torch.float64).to("cpu").state_dict())
    return module


def difference(got: Mapping[str, Tensor], want: Mapping[str, Tensor], written: Mapping[str, Written]) -> float:
    """Largest relative error over outputs and their irreps; integers and masks are equal (0) or not (1)."""
    worst = 0.0
    for name, w in written.items():
        a, b = got[name], want[name]
        if not b.is_floating_point():
            worst = max(worst, 0.0 if torch.equal(a, b) else 1.0)
            continue
        try:
            irreps = None if w.spec.irreps == "point" else w.spec.irreps
            worst = max(worst, relative_error(a.flatten(1), b.flatten(1), irreps=irreps))
        except ComparisonError as e:
            raise ConformityError(f"output {name!r}: {e}") from e
    return worst


def reorder(out: Mapping[str, Tensor], written: Mapping[str, Written], order: Order) -> dict[str, Tensor]:
    """Outputs in another order of nodes and edges."""
    return {name: out[name][order[w.level]] for name, w in written.items()}


def at_most(error: float, limit: float, what: str) -> float:
    """The error, if it is within the limit; else a :class:`ConformityError`."""
    if not error <= limit:
        raise ConformityError(f"{what}: relative error {error:.1e}, allowed {limit:.0e}")
    return error
