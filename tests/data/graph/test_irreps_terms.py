"""Terms of irreps equal those of e3nn."""

from __future__ import annotations

import pytest
from e3nn.o3 import Irreps

from protgraph.data.graph.fields import FieldSpec, irreps_terms
from protgraph.errors import FieldError
from protgraph.nn.irreps import named_irreps_blocks

TEXTS = ("16x0e+8x1o", "0e", "1x0o+2x1e+3x2o", " 4x0e + 1o ", "0x0e+2x0e")


@pytest.mark.parametrize("text", TEXTS)
def test_terms_are_those_of_e3nn(text: str) -> None:
    assert irreps_terms(text) == tuple((mul, ir.l, ir.p) for mul, ir in Irreps(text))
    assert named_irreps_blocks(text) == tuple((mul, ir.dim) for mul, ir in Irreps(text))


@pytest.mark.parametrize("text", TEXTS)
def test_width_and_scalar_columns_are_those_of_e3nn(text: str) -> None:
    spec, irreps = FieldSpec("x", "node", text), Irreps(text)
    assert spec.width == irreps.dim
    assert spec.scalar_columns == tuple(ir.l == 0 for mul, ir in irreps for _ in range(mul * ir.dim))


@pytest.mark.parametrize("text", ["16x0", "axb", "16x0e,8x1o"])
def test_other_texts_are_errors(text: str) -> None:
    with pytest.raises(FieldError, match=text):
        irreps_terms(text)


def test_blocks_are_constants_of_compiled_functions() -> None:
    import torch

    def plain(irreps: str) -> None:
        """Stand for the function."""

    marked = torch.compiler.assume_constant_result(plain)
    names = {name for name in vars(marked) if name.startswith("_dynamo")}
    assert names and all(getattr(named_irreps_blocks, name) == getattr(marked, name) for name in names)
