"""Every registered component, built in or from a plugin, passes every check."""

from __future__ import annotations

import pytest

import protgraph as pg


@pg.testing.parametrize_with_checks(pg.featurizers)
def test_featurizer(component, check):
    check(component)


@pg.testing.parametrize_with_checks(pg.layers)
def test_layer(component, check):
    check(component)


@pg.testing.parametrize_with_checks(pg.heads)
def test_head(component, check):
    check(component)


def _models() -> tuple[list[str], list[str]]:
    """Return the default of every family, and all other variants, also those of published size."""
    families = {name: pg.models.family(name) for name in pg.models}
    defaults = [f"{name}.{family.default}" if family else name for name, family in families.items()]
    others = [f"{name}.{v}" for name, family in families.items() if family for v in family.variants]
    return defaults, [name for name in others if name not in defaults]


DEFAULTS, OTHERS = _models()


@pg.testing.parametrize_with_checks(DEFAULTS, kind="model")
def test_model(component, check):
    check(component)


@pytest.mark.slow
@pg.testing.parametrize_with_checks(OTHERS, kind="model")
def test_every_other_variant(component, check):
    check(component)


@pytest.mark.cuda
@pg.testing.parametrize_with_checks(pg.layers, device="cuda")
def test_layer_on_cuda(component, check):
    check(component)


@pytest.mark.cuda
@pg.testing.parametrize_with_checks(pg.heads, device="cuda")
def test_head_on_cuda(component, check):
    check(component)


@pytest.mark.cuda
@pg.testing.parametrize_with_checks(pg.models, device="cuda")
def test_model_on_cuda(component, check):
    check(component)
