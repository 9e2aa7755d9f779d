"""The checks in their order, the report of each, and the two ways to run them: here, and as pytest parameters."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, get_args

import torch

from protgraph.argument_types import check_arguments
from protgraph.errors import MissingExtraError, OptionError, WiringError, suggest
from protgraph.model import ModelSpec
from protgraph.process_state import describe_changes, read_state, restored_state
from protgraph.registry import Registry
from protgraph.testing.checks import (
    command_form,
    dataset_form,
    form,
    global_state,
    learning,
    metric_form,
    reader_form,
    symmetry,
    task_form,
)
from protgraph.testing.checks.compiled import compiled
from protgraph.testing.checks.copies import autocast, copies, other_process
from protgraph.testing.checks.device import device as same_device
from protgraph.testing.checks.gradients import gradients
from protgraph.testing.checks.sizes import large_proteins, memory, scale
from protgraph.testing.checks.training import options, training
from protgraph.testing.component import Component, ComponentKind, find_components
from protgraph.testing.runner import ConformityError, NotApplicable, Runner

__all__ = ["CHECKS", "Check", "Report", "check_component", "parametrize_with_checks"]

_WITH_PARAMETERS: tuple[ComponentKind, ...] = ("layer", "head", "model")
#: Of which models are made.
_PARTS: tuple[ComponentKind, ...] = ("featurizer", "layer", "head")
Status = Literal["passed", "failed", "expected", "skipped"]


@dataclass(frozen=True)
class Check:
    """A property that components must have.

    ``name``: as in :class:`protgraph.testing.Conformity.expected_failures` and in test ids. ``function``: takes a
    :class:`protgraph.testing.runner.Runner`; returns the measured error or None; raises :class:`ConformityError`.
    ``kinds``: the kinds of component that it applies to. ``needs_finite``: True if it compares values: it fails if they
    are NaN. ``is_slow``: True if a quick run leaves it out.
    """

    name: str
    function: Callable[[Runner], float | None]
    kinds: tuple[ComponentKind, ...] = ("featurizer", *_WITH_PARAMETERS)
    needs_finite: bool = False
    is_slow: bool = False

    @property
    def claim(self) -> str:
        """The property, as one sentence."""
        return (self.function.__doc__ or "").strip().splitlines()[0]


def _builds(runner: Runner) -> None:
    """Check that it can be loaded and built with its default options, and is of its kind."""
    builds = {
        "command": command_form.command_builds,
        "dataset": dataset_form.dataset_builds,
        "metric": metric_form.metric_builds,
        "reader": reader_form.reader_builds,
        "task": task_form.task_builds,
    }.get(runner.component.kind, form.builds)
    builds(runner)


_TASK: tuple[ComponentKind, ...] = ("task",)
_DATASET: tuple[ComponentKind, ...] = ("dataset",)
_METRIC: tuple[ComponentKind, ...] = ("metric",)
_READER: tuple[ComponentKind, ...] = ("reader",)
_COMMAND: tuple[ComponentKind, ...] = ("command",)

#: In this order; a later check is only meaningful if the earlier ones pass.
CHECKS: tuple[Check, ...] = (
    Check("builds", _builds, get_args(ComponentKind)),
    Check("signature", form.signature),
    Check("reads_writes", form.reads_writes),
    Check("inputs_unchanged", form.inputs_unchanged),
    Check("global_state", global_state.global_state),
    Check("neighbor_order", global_state.neighbor_order, ("featurizer",)),
    Check("finite", form.finite),
    Check("non_trivial", form.non_trivial, needs_finite=True),
    Check("rotation", symmetry.rotation, needs_finite=True),
    Check("reflection", symmetry.reflection, needs_finite=True),
    Check("node_order", symmetry.node_order, needs_finite=True),
    Check("edge_order", symmetry.edge_order, needs_finite=True),
    Check("batch_equals_singles", symmetry.batch_equals_singles, needs_finite=True),
    Check("memory_layout", form.memory_layout, _PARTS, needs_finite=True),
    Check("no_leak", symmetry.no_leak, needs_finite=True),
    Check("every_parameter_learns", learning.every_parameter_learns, _WITH_PARAMETERS, needs_finite=True),
    Check("degenerate", learning.degenerate, needs_finite=True),
    Check("state_dict", learning.state_dict, _WITH_PARAMETERS, needs_finite=True),
    Check("seed", learning.seed, needs_finite=True),
    Check("float32", learning.float32, needs_finite=True),
    Check("device", same_device),
    Check("numbering", symmetry.numbering, _PARTS, needs_finite=True),
    Check("gradients", gradients, _PARTS, needs_finite=True),
    Check("training", training, ("layer", "head"), needs_finite=True),
    Check("scale", scale, ("layer", "head"), needs_finite=True),
    Check("autocast", autocast, ("layer", "head"), needs_finite=True),
    Check("large_proteins", large_proteins, _PARTS, needs_finite=True, is_slow=True),
    Check("memory", memory, _PARTS, needs_finite=True, is_slow=True),
    Check("copies", copies, _PARTS, needs_finite=True),
    Check("other_process", other_process, _PARTS, needs_finite=True, is_slow=True),
    Check("options", options, _PARTS, needs_finite=True, is_slow=True),
    Check("compiled", compiled, ("layer",), needs_finite=True, is_slow=True),
    Check("cuda", symmetry.same_on_cuda, _WITH_PARAMETERS, needs_finite=True),
    Check("derived_labels", task_form.derived_labels, _TASK),
    Check("label_symmetry", task_form.label_symmetry, _TASK),
    Check("loss", task_form.loss, _TASK),
    Check("metrics", task_form.metrics, _TASK),
    Check("examples", dataset_form.examples, _DATASET),
    Check("separate_splits", dataset_form.separate_splits, _DATASET),
    Check("labels", dataset_form.labels, _DATASET),
    Check("counts", dataset_form.counts, _DATASET),
    Check("metric_values", metric_form.metric_values, _METRIC),
    Check("metric_inputs", metric_form.metric_inputs, _METRIC),
    Check("metric_order", metric_form.metric_order, _METRIC),
    Check("metric_weights", metric_form.metric_weights, _METRIC),
    Check("refuses_others", reader_form.reader_refuses, _READER),
    Check("reads", reader_form.reader_reads, _READER),
    Check("entries", reader_form.reader_entries, _READER),
    Check("help", command_form.command_help, _COMMAND),
    Check("exit_codes", command_form.command_exits, _COMMAND),
    Check("light_import", command_form.command_imports, _COMMAND),
)


@dataclass(frozen=True)
class Report:
    """The result of one check on one component.

    ``component``, ``check``: "layer gat", "rotation". ``status``: "passed", "failed", "expected" or "skipped";
    "expected" if it failed as the component states. ``error``: the measured relative error, dimensionless. ``message``:
    the reason why it failed or does not apply. ``fault``: error that the component's code raised, with its place; equal
    for all checks that the error fails.
    """

    component: str
    check: str
    status: Status
    error: float | None = None
    message: str = ""
    fault: str = ""

    @property
    def ok(self) -> bool:
        """False if the check failed; True if it passed, was skipped or failed as expected."""
        return self.status != "failed"


@check_arguments("component", "device", "dtype")
def check_component(
    component: Component,
    *,
    device: str = "cpu",
    dtype: str = "float64",
    full: bool = False,
    quick: bool = False,
    only: Collection[str] = (),
) -> Iterator[Report]:
    """Run every check on one component; stop after the first if it cannot be built.

    ``component``: see :func:`protgraph.testing.find_components`. ``device``: "cpu" or "cuda". ``dtype``: "float64" or
    "float32"; float64 is held to 1e-10, float32 to the component's tolerance. ``full``: read all proteins of a dataset
    instead of the first 100 of each split, and compare their counts with the card. ``quick``: leave out the checks that
    take seconds, and use smaller proteins in others. ``only``: names of checks to run after "builds". Default: all.
    Yields one result per check that applies to this kind of component.
    """
    runner = Runner(component, device, dtype_of(dtype), full, quick)
    for check in checks_of(component.kind, only):
        report = run_check(check, runner)
        yield report
        if check.name == "builds" and report.status in ("failed", "skipped"):
            return


def checks_of(kind: ComponentKind, only: Collection[str] = ()) -> list[Check]:
    """Return the checks of a kind of component in their order; of "builds" and these names if there are any."""
    checks = [check for check in CHECKS if kind in check.kinds]
    return [check for check in checks if not only or check.name in (*only, "builds")]


def run_check(check: Check, runner: Runner) -> Report:
    """Run one check and compare its result with what the component expects."""
    name, reason = str(runner.component), expected_failure(check, runner.component)
    if runner.quick and check.is_slow:
        return Report(name, check.name, "skipped", message="it takes seconds: run without --quick")
    try:
        error = measure(check, runner)
    except NotApplicable as e:
        return Report(name, check.name, "skipped", message=str(e))
    except ConformityError as e:
        status: Status = "expected" if reason else "failed"
        return Report(name, check.name, status, message=reason or str(e), fault="" if reason else e.fault)
    if reason and runner.component.is_strict:
        return Report(name, check.name, "failed", error, unexpected_pass(check, runner.component, reason))
    return Report(name, check.name, "passed", error)


def measure(check: Check, runner: Runner) -> float | None:
    """Return the error that a check measures; raise the first cause of its failure.

    The modes of torch and the random states are restored afterwards: what a component changes does not disturb the
    next check or component. A check during which a mode, an environment variable or another global changes fails.

    If values are not finite on the usual inputs, or an input is changed in place, that is why later checks fail.
    """
    with restored_state(), warnings.catch_warnings():
        before = read_state()
        try:
            with runner.errors_as_failures(check.name):
                error = check.function(runner)
        except ConformityError as e:
            is_change = any(words in str(e) for words in ("in-place operation", "inplace operation"))
            causes = [form.inputs_unchanged] if is_change else []
            causes += [form.finite] if check.needs_finite else []
            for cause in causes:
                with runner.errors_as_failures(check.name):
                    cause(runner)
            raise
        changes = [c for c in describe_changes(before, read_state()) if "random state" not in c]
        if changes and check.name != "builds":  # which imports modules
            fault = f"it changes {changes[0]}"
            raise runner.failure(f"{fault} during the check {check.name}", fault=fault)
        return error


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
        hint = suggest(name, ("float64", "float32"))
        raise OptionError(f"dtype={name!r} is not supported.{hint} Use 'float64' or 'float32'.")
    return getattr(torch, name)


# --- the checks as parameters of a pytest test -----------------------------------------------------------------------


def parametrize_with_checks(
    subject: Registry | str | type | ModelSpec | Sequence[object],
    *,
    kind: ComponentKind | None = None,
    device: str = "cpu",
    dtype: str = "float64",
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run a test of ``component`` and ``check`` once for each component and each check that applies to its kind.

    Parameters
    ----------
    subject : Registry, str, class, ModelSpec, or a sequence of those
        The components: ``pg.layers``, ``"my_layer"``, ``["my_layer", "my_model"]``, ``MyLayer``.
    kind : {"featurizer", "layer", "head", "model"}, optional
        Only this kind, if several share a name.
    device : str
        "cpu" or "cuda".
    dtype : {"float64", "float32"}
        float64 is held to 1e-10, float32 to the component's tolerance.

    Returns
    -------
    callable
        A decorator. Expected failures are strict xfails with the component's reason.

    Examples
    --------
    In a plugin's tests::

        import protgraph as pg

        @pg.testing.parametrize_with_checks(["my_layer", "my_model"])
        def test_conformity(component, check):
            check(component)
    """
    try:
        import pytest
    except ImportError as e:
        raise MissingExtraError("parametrize_with_checks needs pytest: pip install pytest") from e

    parameters = []
    for component in find_components(subject, kind=kind):
        runner = Runner(component, device, dtype_of(dtype))
        for check in CHECKS:
            if component.kind in check.kinds:
                name = f"{component.kind}-{component.name}-{check.name}"
                parameters.append(pytest.param(component, partial(_run, check, runner), id=name))
    return pytest.mark.parametrize(("component", "check"), parameters)


def _run(check: Check, runner: Runner, component: Component) -> None:
    """Run one check as a test of the component that it is a parameter with."""
    import pytest

    if component is not runner.component:
        raise WiringError(
            f"this check is a parameter for {runner.component}, not {component}. "
            "Call check(component) with both parameters of one test."
        )
    reason = expected_failure(check, component)
    try:
        measure(check, runner)
    except NotApplicable as e:
        pytest.skip(str(e))
    except ConformityError:
        if reason is None:
            raise
        pytest.xfail(reason)
    if reason is not None and component.is_strict:
        raise ConformityError(unexpected_pass(check, component, reason))
