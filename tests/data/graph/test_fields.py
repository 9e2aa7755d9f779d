"""Field table: names that PyG treats specially, registration, widths and irreps."""

from __future__ import annotations

import math
import re
from importlib import import_module

import pytest
from torch_geometric.data import Data

from protgraph.data.graph.fields import FieldSpec, field, field_table, register_field
from protgraph.errors import DuplicateNameError, FieldError, UnknownNameError


@pytest.mark.parametrize("name", ["residue_index", "chain_index", "batch_id"])
def test_names_that_pyg_shifts_raise(name):
    with pytest.raises(FieldError, match="PyG"):
        FieldSpec(name, "node", "0e")


def test_pyg_shifts_such_names():
    """PyG shifts the values of every tensor with "index" in its name on batching."""
    assert Data(num_nodes=3).__inc__("residue_index", None) == 3


def test_registering_an_equal_spec_has_no_effect_and_another_raises():
    spec = FieldSpec("test_fields_twice", "node", "3x0e", doc="a test")
    assert register_field(spec) is register_field(FieldSpec("test_fields_twice", "node", "3x0e", doc="a test"))
    with pytest.raises(DuplicateNameError, match="test_fields_twice"):
        register_field(FieldSpec("test_fields_twice", "edge", "3x0e"))


def test_unknown_field_error_has_a_suggestion():
    with pytest.raises(UnknownNameError, match="'edge_dist'"):
        field("edge_dits")


def test_unknown_level_raises():
    with pytest.raises(FieldError, match="atom"):
        FieldSpec("x", "atom", "0e")


def test_width_of_irreps_points_categories_and_shapes():
    assert FieldSpec("a", "node", "16x0e+8x1o").dim == 40
    assert FieldSpec("b", "node", "point").trailing_shape == (3,)
    assert field("backbone").trailing_shape == (4, 3)
    assert field("aatype").dim == 21 and field("aatype").trailing_shape == ()


@pytest.mark.parametrize("irreps", ["16x0e+8x1o", "0e", "2x0o + 1x1e+3x2e", "1o", "0x0e+4x3o"])
def test_width_and_is_scalar_equal_e3nn(irreps):
    spec = FieldSpec("a", "node", irreps)
    assert spec.dim == spec.o3.dim and spec.is_scalar == all(ir.l == 0 for mul, ir in spec.o3)


@pytest.mark.parametrize("irreps", ["16x0", "scalar", "3x1x0e", "-1x0e"])
def test_invalid_irreps_raise(irreps):
    with pytest.raises(FieldError, match=re.escape(irreps)):
        _ = FieldSpec("a", "node", irreps).dim


def test_only_l0_irreps_are_scalars():
    assert FieldSpec("a", "node", "4x0e+2x0o").is_scalar
    assert not FieldSpec("a", "node", "4x0e+1x1o").is_scalar
    assert not field("pos").is_scalar and not field("edge_index").is_scalar


def test_every_registered_field_has_valid_irreps_and_doc():
    for name, spec in field_table().items():
        assert spec.doc, name
        if spec.irreps not in ("point", "index", "object"):
            width = spec.o3.dim
            trailing = spec.trailing_shape
            product = math.prod(n for n in trailing if n is not None)
            fits = width % product == 0 if None in trailing else width == product
            assert spec.is_category or trailing == () or fits, (name, width, trailing)


def test_a_field_is_replaced_on_request_unless_it_is_built_in():
    spec = FieldSpec("test_fields_replaced", "node", "3x0e", doc="a test")
    register_field(spec)
    changed = register_field(spec.as_(spec.name, irreps="4x0e"), replace=True)
    assert field(spec.name) is changed and changed.dim == 4
    import_module("protgraph.featurize.edge_features")  # registers its field
    for name in ("pos", "edge_bessel"):
        with pytest.raises(DuplicateNameError, match=name):
            register_field(FieldSpec(name, "node", "7x0e"), replace=True)
