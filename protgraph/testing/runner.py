"""Run a component on a device in a floating type and measure its errors; what all checks share."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor, nn

from protgraph.data.graph.conformity import Conformity
from protgraph.data.graph.fields import FieldSpec
from protgraph.errors import MissingExtraError, ProtgraphError
from protgraph.process_memory import release_memory
from protgraph.registry.component_fault import code_location
from protgraph.testing.component import Component
from protgraph.testing.inputs import Inputs, Permutation
from protgraph.testing.symmetry import ComparisonError, RigidTransforms, relative_error
from protgraph.testing.wiring import Wiring

__all__ = [
    "EXACT",
    "ConformityError",
    "MissingExtra",
    "NotApplicable",
    "Runner",
    "difference",
    "permute_outputs",
    "release_modules",
    "sum_of_outputs",
    "weighted_total",
]

#: Largest relative error in float64 of a property that holds by construction.
EXACT = 1e-10
_LARGE = 100_000_000  # bytes of parameters
_FEW = 4  # transforms per batch of a large module, which bounds the memory of its activations


class ConformityError(ProtgraphError, AssertionError):
    """A component breaks what its declarations promise.

    ``fault``: error of the component's code with its place, "" if the code raises none. The same fault can fail many
    checks.
    """

    def __init__(self, message: str, *, fault: str = "") -> None:
        super().__init__(message)
        self.fault = fault


class NotApplicable(Exception):
    """A check does not apply to a component; the message is the reason."""


class MissingExtra(NotApplicable):
    """A component needs an optional dependency that is not installed; the message has the install command."""


@dataclass(frozen=True, eq=False)
class Runner:
    """A component on a device and in a floating type.

    ``device``: "cpu", "cuda", "cuda:1". ``dtype``: float64 is held to 1e-10, any other type to the component's
    tolerance. ``full``: read all proteins of a dataset. ``quick``: use smaller proteins where a check needs a large
    one.
    """

    component: Component
    device: str = "cpu"
    dtype: torch.dtype = torch.float64
    full: bool = False
    quick: bool = False

    @property
    def conformity(self) -> Conformity:
        """Test inputs, tolerance and expected failures of the component."""
        return self.component.conformity

    @property
    def wirings(self) -> tuple[Wiring, ...]:
        """Wirings of the component that are tested."""
        return self.component.wirings

    def failure(self, problem: str, *, fault: str = "") -> ConformityError:
        """Return the error that names the component and its problem."""
        return ConformityError(f"{self.component}: {problem}", fault=fault)

    def limit(self, wiring: Wiring) -> float:
        """Return the largest error that is allowed."""
        return EXACT if self.dtype == torch.float64 and wiring.is_exact else self.conformity.tolerance

    def at_most(self, error: float, wiring: Wiring, change: str, *, limit: float | None = None) -> float:
        """Return the error; raise if it exceeds the limit of the wiring, or another one."""
        limit = self.limit(wiring) if limit is None else limit
        if not error <= limit:
            raise self.failure(f"{change}{wiring.suffix}: relative error {error:.1e}, allowed {limit:.0e}")
        return error

    def module(self, wiring: Wiring, *, device: str | None = None, dtype: torch.dtype | None = None) -> nn.Module:
        """Return the instance that all checks share and none changes. Other types have the weights of float64."""
        return _shared_module(wiring, dtype or self.dtype).to(device or self.device)

    def private_module(self, wiring: Wiring, *, dtype: torch.dtype | None = None) -> nn.Module:
        """Return a copy with its own buffers and state that shares the parameters, to train or to differentiate."""
        module = self.module(wiring, dtype=dtype)
        return copy.deepcopy(module, {id(p): p for p in module.parameters()})

    def is_large(self, wiring: Wiring) -> bool:
        """Return True if the parameters take more than 100 MB, so that checks keep one copy of them at a time."""
        return _parameter_bytes(self.module(wiring)) > _LARGE

    def run(self, wiring: Wiring, inputs: Inputs | None = None) -> dict[str, Tensor]:
        """Run the shared instance on some inputs, by default the wiring's; outputs have the shapes of their specs."""
        return wiring.run(self.module(wiring), inputs, device=self.device, dtype=self.dtype)

    def reference(self, wiring: Wiring) -> dict[str, Tensor]:
        """Return the outputs for the wiring's inputs on the CPU in float64."""
        return _reference(wiring)

    def transform_error(self, wiring: Wiring, transforms: RigidTransforms, *, mirrored: bool = False) -> float | None:
        """Return the largest difference between outputs for moved proteins, moved back, and the reference.

        Chiral outputs are left out under reflections; None if no other is left.
        """
        reference = _reference(wiring)  # before the module of another type: a large one takes the place of float64
        outputs = wiring.outputs(self.module(wiring))
        outputs = {n: spec for n, spec in outputs.items() if not (mirrored and spec.chiral)}
        if not outputs:
            return None
        at_once = _FEW if self.is_large(wiring) else len(transforms)
        parts = [transforms[start : start + at_once] for start in range(0, len(transforms), at_once)]
        return max(self._part_error(wiring, part, reference, outputs) for part in parts)

    def _part_error(
        self,
        wiring: Wiring,
        transforms: RigidTransforms,
        reference: Mapping[str, Tensor],
        outputs: Mapping[str, FieldSpec],
    ) -> float:
        """Return the error of transforms whose copies of the proteins are one batch."""
        expected = {n: reference[n].expand(len(transforms), *reference[n].shape) for n in outputs}
        error = self._moved_back(wiring, transforms, expected, outputs)
        if error > self.limit(wiring):
            # All copies are one large batch: an error that unmoved copies show too is not one of the transforms.
            unmoved = self.run(wiring, wiring.inputs.moved(transforms.identity()))
            copies = {n: x.view_as(expected[n]) for n, x in unmoved.items() if n in expected}
            error = self._moved_back(wiring, transforms, copies, outputs)
        return error

    def _moved_back(
        self,
        wiring: Wiring,
        transforms: RigidTransforms,
        expected: Mapping[str, Tensor],
        outputs: Mapping[str, FieldSpec],
    ) -> float:
        moved = self.run(wiring, wiring.inputs.moved(transforms))
        back = {n: transforms.undo(moved[n].view_as(expected[n]), spec) for n, spec in outputs.items()}
        return difference(_rows(back), _rows(expected), outputs)

    @contextmanager
    def errors_as_failures(self, step: str) -> Iterator[None]:
        """Turn any error into a :class:`ConformityError` that names the component, the step and the line of code.

        A missing optional dependency is not a failure: it becomes :class:`MissingExtra`.
        """
        try:
            yield
        except (ConformityError, NotApplicable):
            raise
        except (Exception, SystemExit) as e:
            if (missing := _missing_extra(e)) is not None:
                raise MissingExtra(str(missing)) from e
            text = str(e).strip() or "no message"
            fault = f"{type(e).__name__}: {text}"
            if not isinstance(e, ProtgraphError):  # ours are short and have their place
                fault = f"{fault.splitlines()[0]} ({code_location(self.component.code, e)})"
            raise self.failure(f"{step}: {fault}", fault=fault) from e


def _rows(copies: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return ``(M, R, …)`` values of M copies of the proteins as rows of one batch."""
    return {name: x.flatten(0, 1) for name, x in copies.items()}


def _missing_extra(error: BaseException | None) -> MissingExtraError | None:
    """Return the missing optional dependency that caused an error, if that is the cause."""
    while error is not None:
        if isinstance(error, MissingExtraError):
            return error
        error = error.__cause__
    return None


@lru_cache(maxsize=8)  # two types of all wirings of one component
def _shared_module(wiring: Wiring, dtype: torch.dtype) -> nn.Module:
    if dtype == torch.float64:
        return wiring.build()
    exact = _shared_module(wiring, torch.float64).to("cpu")
    if _parameter_bytes(exact) > _LARGE:
        _shared_module.cache_clear()
        exact = exact.to(dtype)  # in place, one parameter after the other
    module = wiring.build(dtype=dtype)
    module.load_state_dict(exact.state_dict())
    return module


@lru_cache(maxsize=8)
def _reference(wiring: Wiring) -> dict[str, Tensor]:
    """Return the outputs for the unmoved inputs on the CPU in float64."""
    return wiring.run(_shared_module(wiring, torch.float64).to("cpu"))


def _parameter_bytes(module: nn.Module) -> int:
    return sum(p.numel() * p.element_size() for p in module.parameters())


def release_modules() -> None:
    """Free the shared instances of all components, and return the memory to the system."""
    _shared_module.cache_clear()
    _reference.cache_clear()
    release_memory()


def difference(got: Mapping[str, Tensor], expected: Mapping[str, Tensor], outputs: Mapping[str, FieldSpec]) -> float:
    """Return the largest relative error over outputs and their irreps; integers and masks differ by 0 or 1.

    ``got`` and ``expected`` have the same shapes, ``(M, …)`` for M rows of their level.
    """
    worst = 0.0
    for name, spec in outputs.items():
        a, b = got[name], expected[name]
        if not b.is_floating_point():
            worst = max(worst, 0.0 if torch.equal(a, b) else 1.0)
            continue
        try:
            irreps = None if spec.irreps == "point" else spec.irreps
            worst = max(worst, relative_error(a.flatten(1), b.flatten(1), irreps=irreps))
        except ComparisonError as e:
            raise ConformityError(f"output {name!r}: {e}") from e
    return worst


def sum_of_outputs(out: Mapping[str, Tensor]) -> Tensor | None:
    """Return the sum of the outputs that have gradients, each element with its own weight; None if there are none."""
    terms = [weighted_total(x) for x in out.values() if x.requires_grad]
    return sum(terms[1:], start=terms[0]) if terms else None


def weighted_total(x: Tensor) -> Tensor:
    """Return the sum of all elements, each with its own weight."""
    weight = torch.linspace(-1, 2, x.numel(), dtype=x.dtype, device=x.device).view_as(x).sin()
    return (x * weight).sum()


def permute_outputs(
    out: Mapping[str, Tensor], outputs: Mapping[str, FieldSpec], order: Permutation
) -> dict[str, Tensor]:
    """Return outputs, ``out`` of any shape, with the rows of each level in another ``order (M,)``."""
    return {name: out[name][order[spec.level]] for name, spec in outputs.items()}
