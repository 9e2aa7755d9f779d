"""The checks in their order, the report of each, and the two ways to run them: here, and as pytest parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import torch

from protgraph.errors import OptionError
from protgraph.testing.checks import form, learning, symmetry
from protgraph.testing.checks.device import device as same_device
from protgraph.testing.component import Component, ComponentKind
from protgraph.testing.runner import ConformityError, NotApplicable, Runner

__all__ = ["CHECKS", "Check", "Report", "check_component"]

Status = Literal["passed", "failed", "expected", "skipped"]


@dataclass(frozen=True)
class Check:
    """A property that components must have.

    Parameters
    ----------
    name : str
        As in :class:`protgraph.testing.Conformity.expected_failures` and in test ids.
    function : callable
        Takes a :class:`protgraph.testing.runner.Runner`; returns the measured error or None; raises
        :class:`ConformityError`.
    kinds : tuple of str
        The kinds of component that it applies to.
    """

    name: str
    function: Callable[[Runner], float | None]
    kinds: tuple[ComponentKind, ...] = ("featurizer", "layer", "head", "model")

    @property
    def claim(self) -> str:
        """The property, as one sentence."""
        return (self.function.__doc__ or "").strip().splitlines()[0]


_WITH_PARAMETERS: tuple[ComponentKind, ...] = ("layer", "head", "model")

#: In this order; a later check is only meaningful if the earlier ones pass.
CHECKS: tuple[Check, ...] = (
    Check("builds", form.builds),
    Check("signature", form.signature),
    Check("reads_writes", form.reads_writes),
    Check("inputs_unchanged", form.inputs_unchanged),
    Check("finite", form.finite),
    Check("non_trivial", form.non_trivial),
    Check("rotation", symmetry.rotation),
    Check("reflection", symmetry.reflection),
    Check("node_order", symmetry.node_order),
    Check("edge_order", symmetry.edge_order),
    Check("batch_equals_singles", symmetry.batch_equals_singles),
    Check("no_leak", symmetry.no_leak),
    Check("every_parameter_learns", learning.every_parameter_learns, _WITH_PARAMETERS),
    Check("degenerate", learning.degenerate),
    Check("state_dict", learning.state_dict, _WITH_PARAMETERS),
    Check("seed", learning.seed),
    Check("float32", learning.float32),
    Check("device", same_device),
    Check("cuda", symmetry.same_on_cuda, _WITH_PARAMETERS),
)


@dataclass(frozen=True)
class Report:
    """The result of one check on one component.

    Parameters
    ----------
    component, check : str
        "layer gat", "rotation".
    status : {"passed", "failed", "expected", "skipped"}
        "expected" if it failed as the component states.
    error : float, optional
        The measured relative error, dimensionless.
    message : str
        The reason why it failed or does not apply.
    """

    component: str
    check: str
    status: Status
    error: float | None = None
    message: str = ""

    @property
    def ok(self) -> bool:
        return self.status != "failed"


def check_component(component: Component, *, device: str = "cpu", dtype: str = "float64") -> Iterator[Report]:
    """Run every check on one component; stop after the first if it cannot be built.

    Parameters
    ----------
    component : Component
        See :func:`protgraph.testing.find_components`.
    device : str
        "cpu" or "cuda".
    dtype : {"float64", "float32"}
        float64 is held to 1e-10, float32 to the component's tolerance.

    Yields
    ------
    Report
        One per check that applies to this kind of component.
    """
    runner = Runner(component, device, dtype_of(dtype))
    for check in CHECKS:
        if component.kind not in check.kinds:
            continue
        report = run_check(check, runner)
        yield report
        if check.name == "builds" and report.status in ("failed", "skipped"):
            return


def run_check(check: Check, runner: Runner) -> Report:
    """Run one check and compare its result with what the component expects."""
    name, reason = str(runner.component), expected_failure(check, runner.component)
    try:
        with runner.errors_as_failures(check.name):
            error = check.function(runner)
    except NotApplicable as e:
        return Report(name, check.name, "skipped", message=str(e))
    except ConformityError as e:
        return Report(name, check.name, "expected" if reason else "failed", message=reason or str(e))
    if reason and runner.component.is_strict:
        return Report(name, check.name, "failed", error, unexpected_pass(check, runner.component, reason))
    return Report(name, check.name, "passed", error)


def expected_failure(check: Check, component: Component) -> str | None:
    """Return the component's stated reason why it cannot pass a check; None if it states none."""
    try:
        return component.conformity.expected_failures.get(check.name)
    except Exception:  # noqa: BLE001 -- it cannot be loaded or built: the check "builds" reports it
        return None


def unexpected_pass(check: Check, component: Component, reason: str) -> str:
    """Return the message for an expected failure that passes."""
    return f"{component}: {check.name} passes, but is listed in expected_failures ({reason}). Remove it there."


def dtype_of(name: str) -> torch.dtype:
    """Return the torch type of a name."""
    if name not in ("float64", "float32"):
        raise OptionError(f"dtype={name!r} is not supported. Use 'float64' or 'float32'.")
    return getattr(torch, name)
