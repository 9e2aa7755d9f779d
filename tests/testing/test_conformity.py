"""Registering is being tested: every registered component, built in or from a plugin, holds what it promises."""

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


@pg.testing.parametrize_with_checks(pg.models)
def test_model(component, check):
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
