"""Many-body products against geometric-gnn-dojo's numbers, character theory, brute force, and their symmetry."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from e3nn import o3
from protgraph_plugins.mace.polynomial import (
    bombieri_weights,
    equivariant_polynomials,
    monomial_variables,
    monomials,
    num_monomials,
)
from protgraph_plugins.mace.product_basis import ProductBasis

import protgraph as pg
from benchmarks.plain_steerable import PlainProductBasis
from protgraph.data.graph.fields import FieldSpec
from protgraph.errors import CheckpointError, OptionError, WiringError
from protgraph.testing.symmetry import act, random_reflections, random_rotations, relative_error
from tests.reference.mace import load_product_basis

TOLERANCE = {torch.float64: 1e-10, torch.float32: 1e-5}


def make(given: str, **options) -> ProductBasis:
    torch.manual_seed(0)
    return ProductBasis({"h": FieldSpec("h", "node", given)}, **options)


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_values_and_all_gradients_equal_geometric_gnn_dojo(shared_reference, dtype):
    z = {k: torch.from_numpy(v).to(dtype) for k, v in np.load(shared_reference / "mace_dojo/prod_l1_nu2.npz").items()}
    weights, irreps = {k[2:]: v for k, v in z.items() if k.startswith("w/")}, "4x0e+4x1o"
    layer = load_product_basis(weights, irreps_in=irreps, irreps=irreps)
    h = z["in/h_flat"].clone().requires_grad_()
    y = layer({"h": h})["h"] + z["in/sc"]
    assert relative_error(y, z["out/y"], irreps=irreps) < TOLERANCE[dtype]

    (y.flatten() * torch.linspace(-1, 1, y.numel(), dtype=dtype)).sum().backward()
    assert relative_error(h.grad, z["grad/h_flat"]) < TOLERANCE[dtype]
    linear = torch.cat([(m.weight.grad.t() / math.sqrt(4)).flatten() for m in layer.linear.maps])
    assert relative_error(linear, z["grad/w/linear.weight"]) < TOLERANCE[dtype]
    for k, theirs in weights.items():
        if ".weights." not in k:
            continue
        where, degree = k.rsplit(".", 2)[0], k[-1]
        name = f"{degree}_{['0e', '1o'].index(where[-2:])}"
        for row in range(len(theirs)):  # ours are linear in theirs: one column of that map at a time
            one = {n: torch.zeros_like(v) if ".weights." in n else v for n, v in weights.items()}
            one[k] = torch.zeros_like(theirs).index_fill(0, torch.tensor(row), 1)
            column = load_product_basis(one, irreps_in=irreps, irreps=irreps).weights[name]
            got = (column * layer.weights[name].grad).sum(0)
            assert relative_error(got, z[f"grad/w/{k}"][row]) < TOLERANCE[dtype]


def test_monomials_are_all_products_in_order():
    x = torch.randn(2, 5, 3, dtype=torch.float64)
    for degree, got in enumerate(monomials(x, 4), start=1):
        assert got.size(1) == num_monomials(5, degree) == len(monomial_variables(5, degree))
        for k, m in enumerate(monomial_variables(5, degree)):
            assert torch.allclose(got[:, k], math.prod(x[:, v] for v in m), rtol=1e-13)


@pytest.mark.parametrize("irreps", ["0e+1o", "0e+1o+2e", "1o+1e"])
@pytest.mark.parametrize("degree", [1, 2, 3])
def test_the_number_of_polynomials_equals_character_theory(irreps, degree):
    # Multiplicity of an irrep in Sym^d: the Haar mean of its character times the complete homogeneous polynomial of
    # the eigenvalues (Newton's identity), over rotations and rotations times the inversion.
    x, angles = o3.Irreps(irreps), (torch.arange(64, dtype=torch.float64) + 0.5) * math.pi / 64
    density = (1 - angles.cos()) / math.pi * (math.pi / 64)  # of the angle, under Haar measure

    def character(ir: o3.Irrep, power: int, sign: int):
        m = torch.arange(-ir.l, ir.l + 1)[:, None]
        return (m * angles * power).cos().sum(0) * (ir.p if sign == -1 else 1) ** power

    for wanted in ("0e", "0o", "1o", "1e", "2e"):
        total = 0.0
        for sign in (1, -1):
            p = [sum(character(ir, k, sign) for _, ir in x) for k in range(4)]
            sym = {1: p[1], 2: (p[1] ** 2 + p[2]) / 2, 3: (p[1] ** 3 + 3 * p[1] * p[2] + 2 * p[3]) / 6}[degree]
            total += (density * sym * character(o3.Irrep(wanted), 1, sign)).sum().item() / 2
        assert len(equivariant_polynomials(irreps, degree, wanted)[wanted]) == round(total)
        assert abs(total - round(total)) < 1e-6


def test_polynomials_are_orthonormal_and_equivariant():
    irreps, wanted = "0e+1o+2e", "0e+1o+2e+1e"
    x = torch.randn(1, 9, 20, dtype=torch.float64)
    for degree in (2, 3):
        metric = bombieri_weights(9, degree)
        for ir, b in equivariant_polynomials(irreps, degree, wanted).items():
            gram = torch.einsum("rpm,p,spm->rs", b, metric[:, 0], b) / b.size(2)
            if not len(b):
                continue
            assert torch.allclose(gram, torch.eye(len(b), dtype=gram.dtype), atol=1e-12)
            value = torch.einsum("rpm,pn->nrm", b, monomials(x, degree)[-1][0])
            for q in torch.cat([random_rotations(3), random_reflections(3)]).double():
                turned = monomials(act(q, x[0].T, irreps).T[None], degree)[-1][0]
                got = torch.einsum("rpm,pn->nrm", b, turned)
                assert relative_error(got, act(q, value.flatten(1), f"{len(b)}x{ir}").view_as(value)) < 1e-11


def test_forward_equals_every_product_written_out(float64):
    layer = make("3x0e+3x1o+3x2e", irreps="3x0e+3x1o+3x1e", correlation=3)
    x = torch.randn(4, 27)
    a = torch.cat([p.unflatten(1, (3, -1)) for p in x.split([3, 9, 15], 1)], 2)  # (N, C, D)
    blocks = []
    for o, (_, ir) in enumerate(layer.irreps_out):
        total = torch.zeros(4, 3, ir.dim)
        for degree in (1, 2, 3):
            table = layer._exact[degree - 1][o]
            for r, polynomial in enumerate(table):
                value = sum(
                    c * math.prod(a[..., v] for v in m)[..., None]
                    for m, c in zip(monomial_variables(9, degree), polynomial, strict=True)
                )
                total = total + layer.weights[f"{degree}_{o}"][r][None, :, None] * value
        blocks.append(total.flatten(1))
    want = layer.linear({"h": torch.cat(blocks, 1)})["h"]
    assert relative_error(layer({"h": x})["h"], want, irreps=str(layer.irreps_out)) < 1e-12


def test_contractions_of_dense_couplings_give_the_same(float64):
    layer = make("3x0e+3x1o+3x2e", irreps="3x0e+3x1o", correlation=3)
    h = torch.randn(5, 27)
    assert relative_error(layer({"h": h})["h"], PlainProductBasis(layer)(h), irreps="3x0e+3x1o") < 1e-12


def test_products_resolve_angles_and_handedness_by_body_order(float64):
    # Sums of Y over neighbors on a circle: |A| sees nothing of the angle between two of them from degree 1 alone.
    def atomic(vectors):
        y = o3.spherical_harmonics([0, 1, 2], vectors, normalize=True)
        return y.sum(0, keepdim=True)

    right, wide = torch.tensor([[1.0, 0, 0], [0, 1, 0]]), torch.tensor([[1.0, 0, 0], [-1, 0, 0]])
    one, two = (make("1x0e+1x1o+1x2e", irreps="1x0e", correlation=c) for c in (1, 2))
    assert torch.allclose(one({"h": atomic(right)})["h"], one({"h": atomic(wide)})["h"], atol=1e-12)
    assert (two({"h": atomic(right)})["h"] - two({"h": atomic(wide)})["h"]).abs() > 1e-3


def test_invalid_options_and_weights_are_errors():
    with pytest.raises(WiringError, match="product_basis"):
        make("3x0e+2x1o")
    with pytest.raises(WiringError, match="1e"):
        make("3x0e+3x1o", irreps="3x1e", correlation=3)
    with pytest.raises(OptionError, match="correlation=0"):
        pg.layers.create("product_basis", {"h": FieldSpec("h", "node", "3x0e")}, options={"correlation": 0})
    with pytest.raises(CheckpointError, match="'a'"):
        load_product_basis({"a": torch.zeros(1)}, irreps_in="3x0e", irreps="3x0e")
