"""The field table: names that PyG would mistake are refused, specs answer what layers ask."""

from __future__ import annotations

import pytest
from torch_geometric.data import Data

from protgraph.data.graph.fields import FieldSpec, field, fields, register_field
from protgraph.errors import DuplicateNameError, FieldError, UnknownNameError


@pytest.mark.parametrize("name", ["residue_index", "chain_index", "batch_id"])
def test_names_that_pyg_shifts_are_refused(name):
    with pytest.raises(FieldError, match="PyG"):
        FieldSpec(name, "node", "0e")


def test_pyg_really_shifts_such_names():
    """The defect that the rule guards against: PyG moves the values of any tensor with "index" in its name."""
    assert Data(num_nodes=3).__inc__("residue_index", None) == 3


def test_same_spec_again_is_a_no_op_and_another_is_an_error():
    spec = FieldSpec("test_fields_twice", "node", "3x0e", doc="a test")
    assert register_field(spec) is register_field(FieldSpec("test_fields_twice", "node", "3x0e", doc="a test"))
    with pytest.raises(DuplicateNameError, match="test_fields_twice"):
        register_field(FieldSpec("test_fields_twice", "edge", "3x0e"))


def test_unknown_field_names_the_nearest():
    with pytest.raises(UnknownNameError, match="'edge_dist'"):
        field("edge_dits")


def test_unknown_level_is_refused():
    with pytest.raises(FieldError, match="atom"):
        FieldSpec("x", "atom", "0e")


def test_width_of_irreps_points_categories_and_shapes():
    assert FieldSpec("a", "node", "16x0e+8x1o").dim == 40
    assert FieldSpec("b", "node", "point").trailing_shape == (3,)
    assert field("backbone").trailing_shape == (4, 3)
    assert field("aatype").dim == 21 and field("aatype").trailing_shape == ()


@pytest.mark.parametrize("irreps", ["16x0e+8x1o", "0e", "2x0o + 1x1e+3x2e", "1o", "0x0e+4x3o"])
def test_width_and_scalars_are_those_of_e3nn(irreps):
    spec = FieldSpec("a", "node", irreps)
    assert spec.dim == spec.o3.dim and spec.is_scalar == all(ir.l == 0 for mul, ir in spec.o3)


@pytest.mark.parametrize("irreps", ["16x0", "scalar", "3x1x0e", "-1x0e"])
def test_what_is_no_irreps_is_refused(irreps):
    with pytest.raises(FieldError, match="no sum of terms"):
        _ = FieldSpec("a", "node", irreps).dim


def test_only_l0_irreps_are_scalars():
    assert FieldSpec("a", "node", "4x0e+2x0o").is_scalar
    assert not FieldSpec("a", "node", "4x0e+1x1o").is_scalar
    assert not field("pos").is_scalar and not field("edge_index").is_scalar


def test_every_registered_field_has_irreps_that_e3nn_reads_and_a_line_of_doc():
    for name, spec in fields().items():
        assert spec.doc, name
        if spec.irreps not in ("point", "index", "object"):
            width = spec.o3.dim
            trailing = spec.trailing_shape
            said = _product(n for n in trailing if n is not None)
            fits = width % said == 0 if None in trailing else width == said
            assert spec.is_category or trailing == () or fits, (name, width, trailing)


def _product(shape):
    n = 1
    for s in shape:
        n *= s
    return n
