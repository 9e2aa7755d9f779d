"""The checks as parameters of a pytest test: one test for each component and check."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from protgraph.errors import MissingExtraError, WiringError
from protgraph.model import ModelSpec
from protgraph.registry import Registry
from protgraph.testing.subject import Kind, Subject, subjects
from protgraph.testing.suite import CHECKS, Check, expected, floating, unexpected
from protgraph.testing.trial import ConformityError, NotApplicable, Trial

__all__ = ["parametrize_with_checks"]


def parametrize_with_checks(
    what: Registry | str | type | ModelSpec | Sequence[object],
    *,
    kind: Kind | None = None,
    device: str = "cpu",
    dtype: str = "float64",
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a test of ``component`` and ``check`` run once for each component and each check that is for its kind.

    Parameters
    ----------
    what : Registry, str, class, ModelSpec, or a sequence of those
        Which components: ``pg.layers``, ``"my_layer"``, ``["my_layer", "my_model"]``, ``MyLayer``.
    kind : {"featurizer", "layer", "head", "model"}, optional
        Only this kind, where several share a name.
    device : str
        Where: "cpu", "cuda".
    dtype : {"float64", "float32"}
        float64 is held to 1e-10, float32 to the component's tolerance.

    Returns
    -------
    callable
        A decorator. Failures that a component expects are xfails with its reason, and strict.

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
    for subject in subjects(what, kind=kind):
        trial = Trial(subject, device, floating(dtype))
        for one in CHECKS:
            if subject.kind in one.kinds:
                name = f"{subject.kind}-{subject.name}-{one.name}"
                parameters.append(pytest.param(subject, partial(_ask, one, trial), id=name))
    return pytest.mark.parametrize(("component", "check"), parameters)


def _ask(one: Check, trial: Trial, subject: Subject) -> None:
    """Run one check on the component that it was made for; what does not apply is skipped."""
    import pytest

    if subject is not trial.subject:
        raise WiringError(
            f"this check is for {trial.subject}: call check(component) with the parameter of the same test"
        )
    reason = expected(one, subject)
    try:
        with trial.naming(one.name):
            one.function(trial)
    except NotApplicable as e:
        pytest.skip(str(e))
    except ConformityError:
        if reason is None:
            raise
        pytest.xfail(reason)
    if reason is not None and subject.strict:
        raise ConformityError(unexpected(one, subject, reason))
