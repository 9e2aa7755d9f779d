"""Head of mutations: its formula, and antisymmetry and transitivity bit by bit."""

from __future__ import annotations

import pytest
import torch
from protgraph_plugins.mutations import MutationHead

from protgraph.data.datasets.target import Target
from protgraph.data.graph.fields import FieldSpec, field
from protgraph.errors import WiringError

SIZES = (7, 5, 9)
TARGET = Target("ddg", "graph", "regression", 2, head="mutation")


def head_and_inputs(scene, *, features: int = 3, hidden: tuple[int, ...] = (16, 8)):
    """Return a head with random parameters, and inputs with one, two and three mutated residues."""
    s = scene(SIZES)
    wild_type, mutant = torch.full((21,), 20), torch.full((21,), 20)
    rows = [2, 8, 11, 13, 15, 20]
    wild_type[rows] = torch.tensor([4, 7, 0, 3, 19, 11])
    mutant[rows] = torch.tensor([9, 1, 12, 3, 0, 2])
    extra = {"type_features": torch.randn(21, 20 * features)} if features else {}
    f = s.inputs(["h", "proteins"]) | {"wild_type": wild_type, "mutant": mutant} | extra
    specs = {"h": FieldSpec("h", "node", "12x0e"), "proteins": field("proteins")}
    specs |= {name: field(name) for name in ("wild_type", "mutant")}
    if features:
        specs["type_features"] = FieldSpec("type_features", "node", f"{20 * features}x0e")
    head = MutationHead(specs, TARGET, hidden=hidden, dropout=0.2).eval()
    for parameter in head.parameters():
        torch.nn.init.normal_(parameter)
    head.scale.copy_(torch.tensor([1.5, 0.3]))
    return head, f


@pytest.mark.parametrize("features", [0, 3])
def test_logits_are_the_sum_of_differences_of_scores(scene, float64, features):
    head, f = head_and_inputs(scene, features=features)
    expected = torch.zeros(3, 2)
    for protein, rows in enumerate(torch.arange(21).split(SIZES)):
        for i in rows.tolist():
            if f["wild_type"][i] == 20:
                continue
            for sign, name in ((1, "mutant"), (-1, "wild_type")):
                a = int(f[name][i])
                z = head.node_linear(f["h"][i]) + head.type_table.weight[a]
                score = head.type_offset.weight[a]
                if features:
                    s = f["type_features"][i].view(20, 3)[a]
                    z, score = z + head.feature_linear(s), score + head.feature_slope(s)
                for linear in head.mlp:
                    z = linear(z.relu())
                expected[protein] += sign * head.scale * (z + score)
    assert expected.abs().min() > 1e-3
    torch.testing.assert_close(head(f)["logits"], expected, rtol=1e-12, atol=1e-12)


def test_without_hidden_layers_scores_are_products_with_the_features_of_types(scene, float64):
    head, f = head_and_inputs(scene, hidden=())
    expected = torch.zeros(3, 2)
    for protein, rows in enumerate(torch.arange(21).split(SIZES)):
        for i in rows.tolist():
            if f["wild_type"][i] == 20:
                continue
            s = f["type_features"][i].view(20, 3)
            step = s[f["mutant"][i]] - s[f["wild_type"][i]]  # (3,)
            for c in range(2):
                weight = head.product.weight.view(3, 2, 12)[:, c]  # (3, 12)
                expected[protein, c] += head.scale[c] * (step @ weight @ f["h"][i])
    assert expected.abs().min() > 1e-3
    torch.testing.assert_close(head(f)["logits"], expected, rtol=1e-12, atol=1e-12)
    assert sum(parameter.numel() for parameter in head.parameters()) == 3 * 2 * 12


def test_products_need_features_of_types(scene):
    with pytest.raises(WiringError, match="no type_features"):
        head_and_inputs(scene, features=0, hidden=())


@pytest.mark.parametrize("hidden", [(16, 8), ()])
def test_the_reverse_is_exactly_the_negative_and_a_synonymous_mutation_exactly_zero(scene, hidden):
    head, f = head_and_inputs(scene, hidden=hidden)
    value = head(f)["logits"]
    reverse = head(f | {"wild_type": f["mutant"], "mutant": f["wild_type"]})["logits"]
    assert value.abs().min() > 0.01 and torch.equal(reverse, -value)
    assert torch.equal(head(f | {"mutant": f["wild_type"]})["logits"], torch.zeros(3, 2))


@pytest.mark.parametrize("hidden", [(16, 8), ()])
def test_single_mutations_are_transitive(scene, float64, hidden):
    head, f = head_and_inputs(scene, hidden=hidden)

    def value(a: int, b: int) -> torch.Tensor:
        types = torch.full((21,), 20)
        return head(
            f
            | {
                "wild_type": types.index_fill(0, torch.tensor([5]), a),
                "mutant": types.index_fill(0, torch.tensor([5]), b),
            }
        )["logits"][0]

    torch.testing.assert_close(value(3, 8) + value(8, 17), value(3, 17), rtol=1e-12, atol=1e-12)


def test_features_need_a_multiple_of_20_columns():
    specs = {"h": FieldSpec("h", "node", "12x0e"), "type_features": FieldSpec("t", "node", "21x0e")}
    specs |= {name: field(name) for name in ("wild_type", "mutant", "proteins")}
    with pytest.raises(WiringError, match="21 columns"):
        MutationHead(specs, TARGET)
