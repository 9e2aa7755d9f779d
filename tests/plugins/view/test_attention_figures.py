"""Figures of attention and positions are written, with the residue labels of the protein."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from matplotlib.image import imread
from protgraph_plugins.view import write_attention
from protgraph_plugins.view.attention_figures import file_name, position_codes, residue_ticks, similarity

import protgraph as pg
from protgraph.bench import make_figure
from protgraph.nn.positional_encoding import rotary_code, rotate
from protgraph.testing.protein_fixtures import make_protein

TARGET = pg.Target("t", "node", "classification", 3)


def model_of(*layers, features=("dihedral",)):
    return pg.build_model(pg.ModelSpec("some", features, layers), TARGET, seed=0)


EMBED = pg.component("embed", reads=["aatype"], dim=16)
BLOCK = {"h": "h", "proteins": "proteins", "seq_pos": "seq_pos"}


@pytest.mark.slow
def test_a_report_has_a_figure_per_layer_of_all_heads_and_of_positions(tmp_path):
    residues = make_protein((30, 20), seed=1)
    model = model_of(
        EMBED, pg.component("pre_norm_block", heads=4, reads=BLOCK), pg.component("transformer", dim=16, heads=2)
    )
    made = write_attention(model, residues, model.plan.precompute(residues), tmp_path / "new", title="some")
    names = ["layers_1_pre_norm_block.png", "layers_2_transformer.png", "heads.png", "positions.png", "heads.csv"]
    assert [f.name for f in made.files] == names
    assert {p.name for p in (tmp_path / "new").iterdir()} == set(names)
    assert [(r.layer, r.head) for r in made.heads] == [
        *(("layers[1] (pre_norm_block)", h) for h in range(4)), *(("layers[2] (transformer)", h) for h in range(2)),
    ]  # fmt: skip
    for file in made.files[:4]:
        height, width = imread(file).shape[:2]
        assert 300 < height < 4000 and 500 < width < 4000
        assert imread(file)[..., :3].std() > 0.02  # not one color


def test_ticks_are_residue_numbers_and_lines_separate_chains():
    residues = make_protein((40, 30), seed=1)
    axes = make_figure(3, 3).subplots()
    residue_ticks(axes, residues)
    labels = [t.get_text() for t in axes.get_xticklabels()]
    assert labels == [residues.ids[int(i)] for i in axes.get_xticks()]
    assert {"A:1", "A:20", "B:1", "B:20"} <= set(labels) and len(labels) <= 9
    assert [line.get_ydata()[0] for line in axes.lines if len(set(line.get_ydata())) == 1] == [39.5]


def test_file_names_have_letters_digits_and_underscores():
    assert file_name("layers[0].blocks.1 (encoder)") == "layers_0_blocks_1_encoder.png"


def test_every_positional_code_is_reported_once():
    codes = position_codes(
        model_of(
            EMBED,
            *2 * [pg.component("pre_norm_block", reads=BLOCK)],
            pg.component("pre_norm_block", reads=BLOCK, position="offset"),
            pg.component("encoder", dim=16, depth=1, position="learned", max_len=50),
            pg.component("encoder", dim=16, depth=1, position="sinusoidal"),
            features=["sequence_position"],
        ),
        40,
    )
    kinds = {where: (code.kind, tuple(code.values.shape)) for where, code in codes.items()}
    assert kinds == {
        "features[0] (sequence_position)": ("sinusoidal", (40, 16)),
        "layers[1] (pre_norm_block)": ("rotary", (40, 2)),
        "layers[3].offset (pre_norm_block)": ("offset", (4, 65)),
        "layers[4].place (encoder)": ("learned", (40, 16)),
        "layers[5] (encoder)": ("sinusoidal", (40, 16)),
    }
    values = [c.values for c in codes.values()]
    assert torch.allclose(values[0].double(), values[4], atol=1e-5)
    assert position_codes(model_of(EMBED, pg.component("transformer", dim=16)), 40) == {}


def test_rotary_similarity_is_the_product_of_rotated_equal_vectors():
    # q = k = all ones: the product of two rotated vectors is D times the similarity at their distance.
    ones, place = torch.ones(30, 1, 8, dtype=torch.float64), torch.arange(30)
    turned = rotate(ones, place)[:, 0]
    assert similarity(rotary_code(30, 8)) == pytest.approx((turned @ turned[0] / 8).numpy(), abs=1e-12)


def test_similarity_of_sinusoids_is_the_mean_cosine():
    residues = model_of(EMBED, pg.component("transformer", dim=16), features=["sequence_position"])
    (code,) = position_codes(residues, 50).values()
    shared = similarity(code)
    frequencies = 10000.0 ** -(np.arange(0, 16, 2) / 16)
    assert shared == pytest.approx(np.cos(np.arange(50)[:, None] * frequencies).mean(1), abs=1e-5)


def test_a_model_of_atoms_has_maps_of_residues(tmp_path):
    residues = make_protein((12,), seed=1)
    layers = [pg.component("embed", reads=["aatype", "atom_type"], dim=8), pg.component("gat", dim=8, heads=2)]
    graph = pg.ModelSpec("atoms", [pg.component("knn", k=40)], layers, node_type="backbone")
    model = pg.build_model(graph, TARGET, seed=0)
    stored = model.plan.precompute(residues)
    made = write_attention(model, residues, stored, tmp_path)
    assert stored.num_nodes == 48 and len(made.heads) == 2 and 0 < made.heads[0].pairs <= 21


def test_a_sequence_without_structure_has_maps_and_no_contacts(tmp_path):
    residues = make_protein((30,), seed=1)
    model = model_of(EMBED, pg.component("transformer", dim=16, heads=2))
    graph = model.plan.precompute(residues)
    made = write_attention(model, residues.hide({"coordinates"}), graph, tmp_path)
    assert np.isnan([r.r_contact for r in made.heads]).all() and len(made.files) == 3 and made.positions == ()
