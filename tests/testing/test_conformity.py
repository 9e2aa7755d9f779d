"""Every registered component, built in or from a plugin, passes every check."""

from __future__ import annotations

import json
from collections.abc import Iterable

import pytest

import protgraph as pg
from protgraph.testing import offline_models


@pg.testing.parametrize_with_checks(pg.featurizers)
def test_featurizer(component, check):
    check(component)


@pg.testing.parametrize_with_checks(pg.layers)
def test_layer(component, check):
    check(component)


@pg.testing.parametrize_with_checks(pg.heads)
def test_head(component, check):
    check(component)


@pg.testing.parametrize_with_checks(pg.readers)
def test_reader(component, check):
    check(component)


@pytest.mark.slow
@pg.testing.parametrize_with_checks(pg.commands)
def test_command(component, check):
    check(component)


#: Checked in a process of its own, tests/cli/test_check.py.
LARGEST = "bert.devlin2019"


def _graph(name: str) -> str:
    """Return what the checks build of a model: variants with other published weights have the same."""
    spec = offline_models(pg.models.get(name)).to_dict()
    return json.dumps({key: value for key, value in spec.items() if key not in ("name", "doc")}, sort_keys=True)


def _models() -> tuple[dict[str, str], dict[str, str]]:
    """Return the default of every family and all other variants, also of published size; each name with its graph."""
    families = {name: pg.models.family(name) for name in pg.models}
    defaults = [f"{name}.{family.default}" if family else name for name, family in families.items()]
    others = [f"{name}.{v}" for name, family in families.items() if family for v in family.variants]
    return tuple({name: _graph(name) for name in names} for names in (defaults, others))


def _different(names: dict[str, str], known: Iterable[str]) -> list[str]:
    """Return the first name of each graph that is not known."""
    known, found = set(known), []
    for name, graph in names.items():
        if graph not in known:
            known.add(graph)
            found.append(name)
    return found


GRAPHS, GRAPHS_OF_VARIANTS = _models()
DEFAULTS = list(GRAPHS)
#: Checked for each change: one without edges, with edges, equivariant, for sequences, and with published weights.
FIRST = ["gcn.kipf2017", "tfn.small", "transformer.small", "egnn.small", "esm.esm2_8m"]
OTHERS = [name for name in _different(GRAPHS_OF_VARIANTS, GRAPHS.values()) if name != LARGEST]


def test_variants_that_are_left_out_differ_in_their_weights_only():
    specs = [pg.models.get(name) for name in (*DEFAULTS, *OTHERS, LARGEST)]
    tested = [(offline_models(spec).features, offline_models(spec).layers, spec.heads) for spec in specs]
    for name in GRAPHS_OF_VARIANTS:
        spec = pg.models.get(name)
        assert (offline_models(spec).features, offline_models(spec).layers, spec.heads) in tested, name
    assert len(specs) >= 70


@pg.testing.parametrize_with_checks(FIRST, kind="model")
def test_model(component, check):
    check(component)


@pytest.mark.slow
@pg.testing.parametrize_with_checks([name for name in DEFAULTS if name not in FIRST], kind="model")
def test_every_other_model(component, check):
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
