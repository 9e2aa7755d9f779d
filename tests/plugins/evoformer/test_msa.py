"""Alignment layers against OpenFold's outputs and gradients, against loops, in chunks, and in batches."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from protgraph_plugins.evoformer.msa import (
    MsaColumnAttention,
    MsaColumnGlobalAttention,
    MsaEmbed,
    MsaOuterProductMean,
    MsaRowAttention,
    msa_spec,
)
from protgraph_plugins.evoformer.stack import Evoformer

import protgraph as pg
from protgraph.data.graph.fields import FieldSpec, field
from protgraph.errors import WiringError
from protgraph.ops import Proteins
from tests.reference.evoformer import (
    load_msa_column_global_attention,
    load_msa_outer_product_mean,
    load_msa_row_attention,
)

F64 = torch.float64
MASK = FieldSpec("msa_mask", "node", "1x0e", "bool", shape=(None,))
FIELDS = {
    "msa": msa_spec(8),
    "msa_mask": MASK,
    "pair": FieldSpec("pair", "pair", "8x0e"),
    "proteins": field("proteins"),
}


def vectors(folder, name):
    whole = {k: torch.from_numpy(v) for k, v in np.load(folder / "evoformer" / f"{name}.npz").items()}
    return whole, {k.removeprefix("w/"): v for k, v in whole.items() if k.startswith("w/")}


def one_protein(length: int) -> Proteins:
    return Proteins(torch.zeros(length, dtype=torch.long), (length,))


def close(ours, theirs, tol=1e-10):
    assert (ours - theirs).abs().max() <= tol * theirs.abs().max()


def loss(out, valid):
    """The loss of the gradients: Σ out · linspace(−1, 1), over valid rows."""
    return (out * torch.linspace(-1, 1, out.numel(), dtype=F64).view_as(out) * valid.unsqueeze(-1)).sum()


def test_row_attention_is_that_of_openfold(shared_reference):
    v, weights = vectors(shared_reference, "msa_row_pair_bias")
    layer = load_msa_row_attention(weights).double()
    m = v["in/m"].transpose(0, 1).contiguous().requires_grad_()  # (N, S, C)
    z = v["in/z"].flatten(0, 1).requires_grad_()
    f = {"msa": m, "msa_mask": v["in/mask"].t(), "pair": z, "proteins": one_protein(len(m))}
    out = layer(f)["msa"].transpose(0, 1)
    valid = v["out/valid"].to(F64)
    close(out * valid.unsqueeze(-1), v["out/o"] * valid.unsqueeze(-1))
    loss(out, valid).backward()
    close(m.grad.transpose(0, 1), v["grad/m"])
    close(z.grad.view_as(v["grad/z"]), v["grad/z"])


def test_global_attention_is_that_of_openfold(shared_reference):
    v, weights = vectors(shared_reference, "global_attention")
    norm = {"layer_norm_m.weight": torch.ones(12, dtype=F64), "layer_norm_m.bias": torch.zeros(12, dtype=F64)}
    layer = load_msa_column_global_attention({f"global_attention.{k}": w for k, w in weights.items()} | norm).double()
    m = v["in/m"].clone().requires_grad_()
    out, valid = layer.attend(m, v["in/mask"]), v["out/valid"].to(F64)
    close(out * valid.unsqueeze(-1), v["out/o"] * valid.unsqueeze(-1))
    loss(out, valid).backward()
    close(m.grad, v["grad/m"])


def test_outer_product_mean_is_that_of_openfold(shared_reference):
    v, weights = vectors(shared_reference, "opm")
    layer = load_msa_outer_product_mean(weights).double()
    m = v["in/m"].transpose(0, 1).contiguous().requires_grad_()
    out = layer({"msa": m, "msa_mask": v["in/mask"].t(), "proteins": one_protein(len(m))})["pair"]
    close(out.view_as(v["out/o"]), v["out/o"])
    loss(out.view_as(v["out/o"]), v["out/valid"].to(F64)).backward()
    close(m.grad.transpose(0, 1), v["grad/m"])


def random_inputs(sizes=(5, 3), sequences=4):
    g = torch.Generator().manual_seed(0)
    n, pairs = sum(sizes), sum(size * size for size in sizes)
    mask = torch.rand(n, sequences, generator=g) < 0.8
    mask[:, 0] = True
    return {
        "msa": torch.randn(n, sequences, 8, generator=g, dtype=F64),
        "msa_mask": mask,
        "pair": torch.randn(pairs, 8, generator=g, dtype=F64),
        "proteins": Proteins(torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes)), sizes),
    }


def test_column_attention_is_a_softmax_over_sequences():
    torch.manual_seed(0)
    layer, f = MsaColumnAttention(FIELDS, heads=2).double(), random_inputs()
    out = layer(f)["msa"]
    x = layer.layer_norm_m(f["msa"])
    for n in (0, 6):
        for s in range(4):
            heads = []
            for head in (slice(0, 4), slice(4, 8)):
                q = layer.linear_q(x[n, s])[head]
                others = [t for t in range(4) if f["msa_mask"][n, t]]
                logits = torch.stack([q @ layer.linear_k(x[n, t])[head] / 2.0 for t in others])
                values = torch.stack([layer.linear_v(x[n, t])[head] for t in others])
                heads.append(logits.softmax(0) @ values)
            expected = layer.linear_o(layer.linear_g(x[n, s]).sigmoid() * torch.cat(heads))
            torch.testing.assert_close(out[n, s], expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("cls", [MsaRowAttention, MsaColumnAttention, MsaOuterProductMean, Evoformer])
def test_chunks_change_no_value_and_no_gradient(cls):
    torch.manual_seed(0)
    whole = cls(FIELDS).double()
    parts = cls(FIELDS, chunk=2).double()
    parts.load_state_dict(whole.state_dict())
    gradients = []
    for layer in (whole, parts):
        f = random_inputs()
        f["msa"].requires_grad_()
        out = layer(f)
        sum(value.square().sum() for value in out.values()).backward()
        gradients.append((f["msa"].grad, *(value.detach() for value in out.values())))
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-8)


def test_absent_sequences_do_not_matter():
    torch.manual_seed(0)
    layer, f = Evoformer(FIELDS, blocks=2).double(), random_inputs()
    f["msa_mask"] = torch.tensor([True, True, True, False]).expand(8, 4)
    changed = f["msa"].clone()
    changed[:, 3] = 7.0
    one, other = layer(f), layer(f | {"msa": changed})
    for name in ("h", "pair"):
        torch.testing.assert_close(one[name], other[name], rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(one["msa"][:, :3], other["msa"][:, :3], rtol=1e-10, atol=1e-10)


def test_recycling_adds_the_first_sequence_and_the_pairs_of_the_pass_before():
    torch.manual_seed(0)
    layer, f = Evoformer(FIELDS, recycles=1).double(), random_inputs()
    once = Evoformer(FIELDS).double()
    once.load_state_dict(layer.state_dict(), strict=False)
    before = once(f)
    first = f["msa"].clone()
    first[:, 0] += layer.recycled_first(before["msa"][:, 0])
    again = once(f | {"msa": first, "pair": f["pair"] + layer.recycled_pair(before["pair"])})
    out = layer(f)
    for name in ("msa", "pair", "h"):
        torch.testing.assert_close(out[name], again[name], rtol=1e-12, atol=1e-12)
    assert torch.equal(out["h"], out["msa"][:, 0])


def test_global_columns_are_the_extra_stack():
    layer = Evoformer(FIELDS, global_columns=True).double()
    assert type(layer.blocks[0].msa_column_attention) is MsaColumnGlobalAttention
    assert layer(random_inputs())["pair"].shape == (34, 8)


def test_embedding_reads_types_deletions_and_absent_places():
    fields = {
        "alignment": field("alignment"),
        "alignment_deletions": field("alignment_deletions"),
        "aatype": field("aatype"),
    }
    layer = MsaEmbed(fields, dim=8)
    types = torch.tensor([[3, 21, 22], [4, 4, 22]], dtype=torch.int8)
    deletions = torch.tensor([[0, 3, 0], [0, 0, 0]], dtype=torch.uint8)
    out = layer({"alignment": types, "alignment_deletions": deletions, "aatype": torch.tensor([3, 4])})
    assert out["msa_mask"].tolist() == [[True, True, False]] * 2
    expected = layer.types.weight[21] + layer.target.weight[3] + layer.deletions.weight @ torch.tensor([1.0, 0.5])
    torch.testing.assert_close(out["msa"][0, 1], expected)


def test_other_fields_than_alignment_features_are_refused():
    with pytest.raises(WiringError, match="msa_embed"):
        MsaColumnAttention(FIELDS | {"msa": FieldSpec("h", "node", "8x0e")})


@pytest.mark.parametrize("name", ["evoformer", pytest.param("evoformer.deep", marks=pytest.mark.slow)])
def test_the_model_reads_the_alignment(name):
    residues = pg.testing.make_protein((9,), seed=1)
    model = pg.build_model(name, pg.Target("y", "node", "classification", 3, ("a", "b", "c"))).double().eval()
    graph = model.plan.precompute(residues)
    logits = model(graph)["logits"]
    assert logits.shape == (9, 3) and logits.isfinite().all()
    graph.alignment[:, 1:] = 22
    assert (model(graph)["logits"] - logits).abs().max() > 1e-6
