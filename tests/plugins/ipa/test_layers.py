"""Invariant point attention, backbone update and atoms, against OpenFold's reference vectors and explicit sums."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from protgraph_plugins.ipa.attention import IPA
from protgraph_plugins.ipa.frames import BackboneUpdate, PlaceBackbone

from benchmarks.plain_geometric import PlainIPA
from protgraph.data.graph.fields import FieldSpec, field
from protgraph.errors import WiringError
from protgraph.featurize.frames import axes
from protgraph.ops import Edges, Proteins
from protgraph.structure.descriptors.backbone_geometry import dihedral_angle
from protgraph.testing.symmetry import random_rotations, relative_error
from tests.reference.openfold import load_ipa

F64 = torch.float64
TOLERANCE = {torch.float64: 1e-10, torch.float32: 1e-5}


def batch_of(sizes):
    return Proteins(torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes)), sizes)


def every_pair(sizes):
    """All ordered pairs of each protein, itself included, sorted by target: ``(2, Σ L²)``."""
    starts = [sum(sizes[:b]) for b in range(len(sizes))]
    pairs = [torch.cartesian_prod(torch.arange(n), torch.arange(n)) + s for s, n in zip(starts, sizes, strict=True)]
    return torch.cat(pairs).t().flip(0)


def some_inputs(sizes, *, width=6, pair=0, dense=False, seed=0):
    g = torch.Generator().manual_seed(seed)
    n = sum(sizes)
    f = {
        "h": torch.randn(n, width, generator=g, dtype=F64),
        "frame": random_rotations(n, seed=seed),
        "pos": 8 * torch.randn(n, 3, generator=g, dtype=F64),
        "proteins": batch_of(sizes),
    }
    if pair and dense:
        f["pair"] = torch.randn(sum(size * size for size in sizes), pair, generator=g, dtype=F64)
    elif pair:
        index = every_pair(sizes)
        index = index[:, torch.rand(index.size(1), generator=g) < 0.4]
        f |= {"edges": Edges(index, n), "edge_attr": torch.randn(index.size(1), pair, generator=g, dtype=F64)}
    return f


def specs_of(f):
    known = {"h": FieldSpec("h", "node", f"{f['h'].size(1)}x0e")}
    for name, level in (("edge_attr", "edge"), ("pair", "pair")):
        if name in f:
            known[name] = FieldSpec(name, level, f"{f[name].size(1)}x0e")
    return {name: known.get(name) or field(name) for name in f}


def moved(f, rotation, shift):
    return {**f, "frame": f["frame"] @ rotation.T, "pos": f["pos"] @ rotation.T + shift}


# --- parity ---


@pytest.fixture
def openfold(shared_reference):
    with np.load(shared_reference / "ipa_openfold" / "ipa.npz") as z:
        return {k: torch.from_numpy(z[k]) for k in z.files}


def of_openfold(z, dtype, pairs):
    """Inputs of the layer: padding left out, R transposed to rows, lengths in 10 Å."""
    real = z["in/mask"].bool()  # (2, 14)
    sizes = tuple(real.sum(1).tolist())
    s, rotation, t = (z[f"in/{k}"].to(dtype)[real].requires_grad_() for k in ("s", "R", "t"))
    pair = torch.cat([z["in/z"][b, :n, :n].flatten(0, 1) for b, n in enumerate(sizes)]).to(dtype).requires_grad_()
    f = {"h": s, "frame": rotation.mT, "pos": 10 * t, "proteins": batch_of(sizes), pairs: pair}
    if pairs == "edge_attr":  # every pair is an edge
        f["edges"] = Edges(every_pair(sizes), sum(sizes))
    return f, {"s": s, "z": pair, "t": t, "R_unconstrained": rotation}, real


@pytest.mark.parametrize("pairs", ["pair", "edge_attr"])
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_ipa_equals_openfold_in_value_and_gradients(openfold, dtype, pairs):
    z = openfold
    f, wrt, real = of_openfold(z, dtype, pairs)
    weights = {k[2:]: v.to(dtype) for k, v in z.items() if k.startswith("w/")}
    layer = load_ipa(weights, query_points=2, unit=10.0, pairs=pairs)
    out = layer(f)["h"]
    assert relative_error(out, z["out/s"][real].to(dtype)) <= TOLERANCE[dtype]

    whole = torch.linspace(-1, 1, z["out/s"].numel(), dtype=dtype).view_as(z["out/s"])
    (out * whole[real]).sum().backward()
    expected = {k: z[f"grad/{k}"] for k in wrt}
    expected["z"] = torch.cat([expected["z"][b, :n, :n].flatten(0, 1) for b, n in enumerate(f["proteins"].sizes)])
    for name, x in wrt.items():
        want = expected[name] if name == "z" else expected[name][real]
        assert relative_error(x.grad, want.to(dtype)) <= TOLERANCE[dtype], name
    for name, parameter in layer.named_parameters():
        other = name.replace("points.", "points.linear.")
        assert relative_error(parameter.grad, z[f"grad/w/{other}"].to(dtype)) <= TOLERANCE[dtype], name


@pytest.mark.parametrize("sizes", [(5, 3, 7), (4, 4), (6,)], ids=str)
def test_ipa_equals_the_formula_on_all_pairs(sizes):
    f = some_inputs(sizes, pair=3)
    torch.manual_seed(1)
    layer = IPA(specs_of(f), dim=5, heads=2, channels=3, query_points=2, value_points=4, unit=10.0).double()
    with torch.no_grad():
        layer.head_weights.normal_()
    expected = PlainIPA(layer)(f["h"], f["frame"], f["pos"], sizes, f["edges"].index, f["edge_attr"])
    assert relative_error(layer(f)["h"], expected) <= 1e-12


@pytest.mark.parametrize("padded", [False, True])
def test_pairs_of_edges_are_dense_pairs_that_are_0_elsewhere(padded):
    sizes = (5, 3, 7)
    f = some_inputs(sizes, pair=3)
    proteins = Proteins(f["proteins"].batch, sizes, padded=padded)
    place = proteins.pair_index(f["edges"].index[1], f["edges"].index[0])
    given = {k: f[k] for k in ("h", "frame", "pos")} | {"proteins": proteins}
    dense = given | {"pair": torch.zeros(proteins.num_pairs, 3, dtype=F64).index_copy(0, place, f["edge_attr"])}
    torch.manual_seed(1)
    layer, other = IPA(specs_of(f)).double(), IPA(specs_of(dense)).double()
    other.load_state_dict(layer.state_dict())
    assert relative_error(other(dense)["h"], layer(f)["h"]) <= 1e-12


# --- symmetry and edge cases ---


@pytest.mark.parametrize(("pair", "dense"), [(0, False), (3, False), (3, True)])
def test_ipa_is_invariant_and_updates_are_equivariant_far_from_the_origin(pair, dense):
    f = some_inputs((6, 4), pair=pair, dense=dense)
    torch.manual_seed(0)
    ipa = IPA(specs_of(f), dim=6).double()
    specs = specs_of({k: f[k] for k in ("h", "frame", "pos")})
    update, place = BackboneUpdate(specs).double(), PlaceBackbone(specs).double()
    torch.nn.init.normal_(update.linear.weight)
    shift = torch.tensor([100.0, -200.0, 150.0], dtype=F64)

    def run(f):
        h = ipa(f)["h"]
        new = update({**f, "h": h})
        return {"h": h, **new, **place({**new, "h": h})}

    for rotation in random_rotations(32, seed=3):
        a, b = run(f), run(moved(f, rotation, shift))
        assert relative_error(b["h"], a["h"]) <= 1e-10
        assert relative_error(b["frame"], a["frame"] @ rotation.T) <= 1e-10
        assert relative_error(b["pos"], a["pos"] @ rotation.T + shift) <= 1e-10
        assert relative_error(b["motion"], a["motion"] @ rotation.T) <= 1e-10
        assert relative_error(b["backbone"], a["backbone"] @ rotation.T + shift) <= 1e-10


def test_frames_of_a_mirror_image_differ_and_the_field_is_chiral():
    f = some_inputs((6, 4))
    ipa = IPA(specs_of(f), dim=6).double()
    signs = torch.tensor([-1.0, -1.0, 1.0], dtype=F64)[:, None]
    mirrored = {**f, "frame": signs * f["frame"], "pos": -f["pos"]}
    assert relative_error(ipa(mirrored)["h"], ipa(f)["h"]) > 1e-3
    assert ipa.out["h"].chiral
    assert all(spec.chiral for spec in BackboneUpdate(specs_of(f)).out.values())


def test_an_update_keeps_frames_orthonormal_and_right_handed():
    f = some_inputs((9,))
    layer = BackboneUpdate(specs_of({k: f[k] for k in ("h", "frame", "pos")})).double()
    torch.nn.init.normal_(layer.linear.weight)
    new = layer(f)["frame"]
    torch.testing.assert_close(new @ new.mT, torch.eye(3, dtype=F64).expand_as(new), rtol=0, atol=1e-12)
    assert torch.allclose(torch.linalg.det(new), torch.ones(9, dtype=F64))


def test_an_update_is_algorithm_23():
    f = some_inputs((4,))
    layer = BackboneUpdate(specs_of({k: f[k] for k in ("h", "frame", "pos")}), unit=10.0).double()
    torch.nn.init.normal_(layer.linear.weight)
    b, c, d, *_ = numbers = layer.linear(f["h"]).T
    q = torch.stack([torch.ones_like(b), b, c, d]) / torch.sqrt(1 + b * b + c * c + d * d)
    from scipy.spatial.transform import Rotation

    turn = torch.from_numpy(Rotation.from_quat(q.T.detach().numpy()[:, [1, 2, 3, 0]]).as_matrix())
    rotation = f["frame"].mT
    made = layer(f)
    assert relative_error(made["frame"].mT, rotation @ turn) <= 1e-12
    step = torch.stack(tuple(numbers[3:]), 1)[..., None]
    assert relative_error(made["motion"], 10 * (rotation @ step)[..., 0]) <= 1e-12
    assert torch.equal(made["pos"], f["pos"] + made["motion"])


def test_placed_atoms_have_the_geometry_of_a_peptide_and_the_predicted_angle():
    f = some_inputs((6,), width=2)
    layer = PlaceBackbone(specs_of({k: f[k] for k in ("h", "frame", "pos")})).double()
    layer.angle.load_state_dict({"weight": torch.eye(2), "bias": torch.zeros(2)})
    backbone = layer(f)["backbone"].detach()
    n, ca, c, o = backbone.numpy().transpose(1, 0, 2)
    assert np.allclose(np.linalg.norm(n - ca, axis=1), 1.46, atol=0.01)
    assert np.allclose(np.linalg.norm(c - ca, axis=1), 1.526, atol=0.01)
    assert np.allclose(np.linalg.norm(o - c, axis=1), 1.23, atol=0.01)
    torch.testing.assert_close(axes(backbone[:, 2] - backbone[:, 1], backbone[:, 0] - backbone[:, 1]), f["frame"])
    psi = torch.atan2(f["h"][:, 1], f["h"][:, 0]).numpy()
    seen = dihedral_angle(n, ca, c, o) - np.pi  # O is opposite to the next N
    assert np.allclose(np.exp(1j * seen), np.exp(1j * psi))


@pytest.mark.parametrize("pair", [0, 3])
@pytest.mark.parametrize("sizes", [(1,), (1, 4)], ids=str)
def test_residues_without_frame_or_with_equal_positions_give_finite_values_and_gradients(sizes, pair):
    f = some_inputs(sizes, pair=pair)
    f |= {name: torch.zeros_like(f[name]).requires_grad_() for name in ("frame", "pos")}
    h = IPA(specs_of(f), dim=6).double()(f)["h"]
    specs = specs_of({k: f[k] for k in ("h", "frame", "pos")})
    new = BackboneUpdate(specs).double()({**f, "h": h})
    out = PlaceBackbone(specs).double()({**new, "h": h})["backbone"]
    assert torch.isfinite(out).all()
    assert all(torch.isfinite(g).all() for g in torch.autograd.grad(out.sum() + h.sum(), [f["frame"], f["pos"]]))


@pytest.mark.parametrize("given", [("edge_attr",), ("edges",), ("pair", "edges", "edge_attr")], ids=str)
def test_pair_features_are_of_all_pairs_or_of_edges(given):
    specs = specs_of(some_inputs((4,), pair=3) | some_inputs((4,), pair=3, dense=True))
    kept = {"h", "frame", "pos", "proteins", *given}
    with pytest.raises(WiringError, match="'edge_attr'"):
        IPA({name: spec for name, spec in specs.items() if name in kept})


def test_node_features_as_pair_features_are_an_error():
    f = some_inputs((4,))
    with pytest.raises(WiringError, match="'pair'"):
        IPA(specs_of(f) | {"pair": FieldSpec("h", "node", "6x0e")})
