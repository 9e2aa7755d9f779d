"""The checks as parameters of a pytest test: one test for each component and check."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from protgraph.errors import MissingExtraError, WiringError
from protgraph.model import ModelSpec
from protgraph.registry import Registry
from protgraph.testing.component import Component, ComponentKind, find_components
from protgraph.testing.runner import ConformityError, NotApplicable, Runner
from protgraph.testing.suite import CHECKS, Check, dtype_of, expected_failure, measure, unexpected_pass

__all__ = ["parametrize_with_checks"]


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
