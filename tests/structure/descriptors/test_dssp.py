"""Secondary structure against mkdssp, residue by residue, and against the definition."""

from __future__ import annotations

import csv
import shutil
import subprocess
from collections import Counter, defaultdict
from dataclasses import replace
from time import perf_counter

import numpy as np
import pytest

from protgraph.structure import Residues, clean, load_structure
from protgraph.structure.descriptors.ca_trace import p_sea
from protgraph.structure.descriptors.dssp import DSSP_STATES, dssp, three_states


@pytest.fixture(scope="module")
def labels(structures_dir) -> dict[str, dict[str, np.ndarray]]:
    """Return the states of mkdssp 4.2.2 by entry and chain, one per residue; "-" without one."""
    result: dict[str, dict[str, np.ndarray]] = defaultdict(dict)
    with (structures_dir.parent / "dssp.tsv").open(encoding="utf-8") as table:
        for row in csv.DictReader(table, delimiter="\t"):
            result[row["entry"]][row["chain"]] = np.array(list(row["dssp8"]))
    return result


def entry(structures_dir, labels, name) -> tuple[Residues, np.ndarray]:
    """Return a protein and the states of its residues; "?" for chains without labels."""
    residues = clean(load_structure(structures_dir / f"{name}.bcif"))
    theirs = np.full(len(residues), "?")
    for chain, letters in labels[name].items():
        theirs[residues.chain == chain] = letters
    return residues, theirs


def differing(residues: Residues, theirs: np.ndarray) -> tuple[int, Counter[str]]:
    """Return the number of residues labeled by both, and counts of different states."""
    ours, both = dssp(residues), np.isin(theirs, list(DSSP_STATES))
    other = both & (ours != theirs)
    return int(both.sum()), Counter(f"{a}→{b}" for a, b in zip(theirs[other], ours[other], strict=True))


@pytest.mark.slow
def test_agrees_with_mkdssp(structures_dir, labels):
    compared, different, unexplained = 0, 0, 0
    for name in sorted(labels)[::4]:
        residues, theirs = entry(structures_dir, labels, name)
        n, result = differing(residues, theirs)
        compared, different = compared + n, different + result.total()
        known = theirs != "-"  # modified residues that the other program did not see
        unexplained += differing(residues.select(known), theirs[known])[1].total()
    assert compared > 15_000
    assert different <= 0.003 * compared
    assert unexplained == 0


@pytest.mark.slow
def test_agreement_with_mkdssp_by_state(structures_dir, labels, capsys):
    compared, whole, seen = 0, Counter(), Counter()
    same_of_three = same_by_trace = residues_of_all = 0
    seconds = 0.0
    for name in sorted(labels):
        residues, theirs = entry(structures_dir, labels, name)
        start = perf_counter()
        three = three_states(dssp(residues))
        seconds, residues_of_all = seconds + perf_counter() - start, residues_of_all + len(residues)
        n, result = differing(residues, theirs)
        compared, whole = compared + n, whole + result
        both = np.isin(theirs, list(DSSP_STATES))
        same_of_three += int((three == three_states(theirs))[both].sum())
        same_by_trace += int((np.array(list("HEC"))[p_sea(residues)] == three_states(theirs))[both].sum())
        known = theirs != "-"  # modified residues that the other program did not see
        seen += differing(residues.select(known), theirs[known])[1]
    with capsys.disabled():
        print(f"\n{len(labels)} entries, {compared} residues that both label")
        print(f"8 states: {1 - whole.total() / compared:.3%} the same; 3 states: {same_of_three / compared:.3%}")
        print(f"different: {dict(whole.most_common())}")
        print(f"without the residues that mkdssp gives no letter: {dict(seen)}")
        print(f"3 states by P-SEA: {same_by_trace / compared:.1%} the same")
        print(f"{seconds / residues_of_all * 300 * 1e3:.1f} ms for 300 residues")
    assert whole.total() <= 0.001 * compared
    assert same_of_three >= 0.999 * compared
    assert seen.total() <= 1  # 8ufz F:239, a bond of −0.501 kcal/mol


@pytest.mark.slow
@pytest.mark.parametrize("name", ["1aki", "1dix", "1igy", "1l2y", "1o1z", "2d0f", "5h73", "5zng"])
def test_agrees_with_the_program_on_files_without_alternate_locations(shared_data, tmp_path, name):
    program = shutil.which("mkdssp")
    if program is None:
        pytest.skip("mkdssp is not installed")
    path, out = shared_data / "formats" / f"{name}.cif", tmp_path / "out.dssp"
    subprocess.run([program, "--output-format", "dssp", path, out], check=True, capture_output=True)
    residues = clean(load_structure(path))
    ours = dict(zip(residues.ids, dssp(residues), strict=True))
    lines = out.read_text().split("  #  RESIDUE", 1)[1].splitlines()[1:]
    theirs = {f"{t[11]}:{t[5:10].strip()}{t[10].strip()}": t[16].replace(" ", "C").replace("P", "C") for t in lines}
    theirs = {i: letter for i, letter in theirs.items() if i[-1].isalnum() and ":" in i and len(i) > 2}
    assert theirs.items() <= ours.items()
    assert set(ours.values()) - {"-"} <= set(DSSP_STATES)
    assert all(ours[i] == "-" for i in ours.keys() - theirs.keys())


def test_incomplete_residues_have_no_state_and_break_the_chain(structures_dir, labels):
    residues, _ = entry(structures_dir, labels, "1crn")
    helix = "".join(dssp(residues)).index("HHHHHHHH")
    backbone = residues.backbone.copy()
    backbone[helix + 4, 3] = np.nan
    ours = dssp(replace(residues, backbone=backbone))
    assert ours[helix + 4] == "-"
    kept = np.arange(len(residues)) != helix + 4
    assert (ours[kept] == dssp(residues.select(kept))).all()
    assert (ours[helix : helix + 4] != "H").any()
    trace = np.full_like(backbone, np.nan)
    trace[:, 1] = residues.pos
    assert (dssp(replace(residues, backbone=trace)) == "-").all()


def test_strands_of_two_chains_pair(structures_dir, labels):
    residues, theirs = entry(structures_dir, labels, "1hvr")  # the dimer's ends make one sheet
    together, alone = dssp(residues), dssp(residues.select(residues.chain == "A"))
    own = residues.chain == "A"
    assert (alone == "E").sum() < (together[own] == "E").sum()
    assert (together == theirs)[theirs != "-"].mean() > 0.95


def test_the_order_of_chains_does_not_matter(structures_dir, labels):
    residues, _ = entry(structures_dir, labels, "1hvr")
    order = np.concatenate([np.flatnonzero(residues.chain == c) for c in reversed(residues.chain_names)])
    rows = ("chain", "res_id", "ins_code", "res_name", "aatype", "pos", "backbone", "b_factor", "seq_pos")
    swapped = replace(residues, **{name: getattr(residues, name)[order] for name in rows})
    assert (dssp(swapped) == dssp(residues)[order]).all()


def test_precedence_of_pi_and_alpha_helices(structures_dir, labels):
    changed = 0
    for name in sorted(labels)[::10]:
        residues, _ = entry(structures_dir, labels, name)
        now, then = dssp(residues), dssp(residues, prefer_pi=False)
        assert (now[now != then] == "I").all()
        assert (then == "H")[now != then].any() == (now != then).any()
        changed += (now != then).sum()
    assert changed > 0


def test_three_states_keep_the_shape_and_reduce_again_to_themselves():
    states = np.array([list("HBEGI"), list("TSC--")])
    three = three_states(states)
    assert three.shape == states.shape and set(three.ravel()) == set("HEC-")
    assert (three_states(three) == three).all()
