"""``protgraph mutate`` and ``protgraph scan``: tables, failures, signs, copies of chains, and the heat map."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import numpy as np
import pytest

from protgraph.structure import ALPHABET, Residues, clean, load_structure

pytestmark = pytest.mark.usefixtures("proteinmpnn_folder")


@pytest.fixture
def run(run):
    """Return the command line with ProteinMPNN as scorer, unless a call names another one."""

    def call(command, *arguments):
        is_default = command in ("mutate", "scan") and "--model" not in arguments
        return run(command, *arguments, *(("--model", "proteinmpnn.v_48_020") if is_default else ()))

    return call


@pytest.fixture(scope="module")
def dimer(structures_dir, tmp_path_factory) -> Path:
    """Two identical chains A and B of 24 residues, from 1 and shifted in space; B lacks residue 3."""
    whole = clean(load_structure(structures_dir / "1jk9.bcif"))
    lines = []
    for chain, shift in (("A", 0.0), ("B", 30.0)):
        for row in range(24):
            if (chain, row) == ("B", 2):
                continue
            for name, xyz in zip(("N", "CA", "C", "O"), whole.backbone[row], strict=True):
                x, y, z = xyz + np.array([shift, 0, 0])
                lines.append(
                    f"ATOM  {len(lines) + 1:>5}  {name:<3} {whole.res_name[row]} {chain}{row + 1:>4}    "
                    f"{x:8.3f}{y:8.3f}{z:8.3f}  1.00 10.00           {name[0]}"
                )
    path = tmp_path_factory.mktemp("dimer") / "dimer.pdb"
    path.write_text("\n".join([*lines, "END", ""]))
    return path


@pytest.fixture(scope="module")
def monomer(dimer) -> Path:
    path = dimer.with_name("monomer.pdb")
    path.write_text("\n".join(x for x in dimer.read_text().splitlines() if x[21:22] != "B") + "\n")
    return path


@pytest.fixture(scope="module")
def residues(monomer) -> Residues:
    return clean(load_structure(monomer))


def rows_of(path: Path) -> list[dict[str, str]]:
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def swap(residues: Residues, row: int, step: int = 4) -> str:
    """Return a mutation of a row, without its chain."""
    old = residues.sequence[row]
    return f"{old}{residues.res_id[row]}{ALPHABET[(ALPHABET.index(old) + step) % 20]}"


def test_variants_of_the_command_line(run, tmp_path, monomer, residues):
    first, second = swap(residues, 4), swap(residues, 9)
    texts = [f"A:{first}+A:{second}", first, f"A{first}", "WT"]
    texts[2] = f"{first[0]}A{first[1:]}"  # SKEMPI
    options = [part for text in texts for part in ("--mutations", text)]
    result = run("mutate", monomer, *options, "-o", tmp_path / "o.csv")
    assert result.code == 0 and "positive = unfavorable" in result.out
    rows = rows_of(tmp_path / "o.csv")
    assert [r["mutations"] for r in rows] == [f"A:{first}+A:{second}", f"A:{first}", f"A:{first}", "WT"]
    scores = [float(r["unfavorable_log_odds"]) for r in rows]
    assert scores[1] == scores[2] != 0 and scores[3] == 0 and len(set(scores)) == 3
    assert [r["n_mutations"] for r in rows] == ["2", "1", "1", "0"]
    assert "--mutations: 4 variants, 1 with 2 mutations, 1 of the wild type" in result.out


def test_commas_separate_variants_and_other_marks_join_mutations(run, tmp_path, monomer, residues):
    first, second = swap(residues, 4), swap(residues, 9)
    text = f"A:{first},A:{second},A:{first}+A:{second},{first}:{second}"
    result = run("mutate", monomer, "--mutations", text, "-o", tmp_path / "list.csv")
    assert result.code == 0 and "--mutations: 4 variants, 2 with 2 mutations" in result.out
    both = f"A:{first}+A:{second}"
    assert [r["mutations"] for r in rows_of(tmp_path / "list.csv")] == [f"A:{first}", f"A:{second}", both, both]
    run("mutate", monomer, "--mutations", f"A:{second}", "-o", tmp_path / "one.csv")
    scores = [float(r["unfavorable_log_odds"]) for name in ("list", "one") for r in rows_of(tmp_path / f"{name}.csv")]
    assert scores[1] == pytest.approx(scores[4], abs=1e-5)


def test_a_table_of_proteingym_is_scored_as_it_is_and_its_columns_stay(run, tmp_path, monomer, residues):
    first, second = swap(residues, 4), swap(residues, 9)
    lines = ["mutant,mutated_sequence,DMS_score,DMS_score_bin"]
    lines += [f"{first},AAA,1.5,1", f"{first}:{second},AAC,-0.5,0", f"{first[:-1]}*,AA,0,0"]
    (tmp_path / "dms.csv").write_text("\n".join(lines) + "\n")
    result = run("mutate", monomer, "--table", tmp_path / "dms.csv", "-o", tmp_path / "o.csv")
    assert result.code == 1 and "2 variants, 1 with 2 mutations" in result.out
    rows = rows_of(tmp_path / "o.csv")
    assert [(r["mutations"], r["DMS_score"], r["DMS_score_bin"]) for r in rows] == [
        (f"A:{first}", "1.5", "1"),
        (f"A:{first}+A:{second}", "-0.5", "0"),
    ]
    again = run("mutate", monomer, "--table", tmp_path / "o.csv", "-o", tmp_path / "again.csv")
    assert again.code == 0, again.err
    assert [r["mutations"] for r in rows_of(tmp_path / "again.csv")] == [r["mutations"] for r in rows]


def test_commas_in_a_table_join_mutations_and_are_noted(run, tmp_path, monomer, residues):
    """Results of earlier versions have commas."""
    first, second = swap(residues, 4), swap(residues, 9)
    (tmp_path / "t.csv").write_text(f'mutations\n"A:{first},A:{second}"\n')
    result = run("mutate", monomer, "--table", tmp_path / "t.csv", "-o", tmp_path / "o.csv")
    assert result.code == 0 and "1 row with ',' between mutations" in result.err
    assert [r["mutations"] for r in rows_of(tmp_path / "o.csv")] == [f"A:{first}+A:{second}"]


def test_a_table_with_the_numbers_of_another_sequence_is_refused(run, tmp_path, monomer, residues):
    letters = residues.sequence
    lines = [f"{letter}{k + 3}{'A' if letter != 'A' else 'G'}" for k, letter in enumerate(letters, 1)]
    (tmp_path / "t.csv").write_text("\n".join(["mutant", *lines]) + "\n")
    result = run("mutate", monomer, "--table", tmp_path / "t.csv", "-o", tmp_path / "o.csv")
    assert result.code == 2 and "With -3 added to the numbers" in result.err and not (tmp_path / "o.csv").exists()
    assert len(rows_of(tmp_path / "o.csv.failures.csv")) == len(letters)


def test_a_wrong_wild_type_is_an_error_with_the_residue(run, tmp_path, monomer, residues):
    other = "W" if residues.sequence[4] != "W" else "F"
    result = run("mutate", monomer, "--mutations", f"A:{other}5G", "-o", tmp_path / "o.csv")
    assert result.code == 2 and f"{residues.res_name[4]} at A:5" in result.err
    assert not (tmp_path / "o.csv").exists()


@pytest.mark.parametrize("text", ["A:G5del", "A:G5*", "A:G4_G5insA", "A:G5", "A:"])
def test_other_changes_are_refused(run, tmp_path, monomer, text):
    result = run("mutate", monomer, "--mutations", text, "-o", tmp_path / "o.csv")
    assert result.code == 2 and "invalid mutation" in result.err and not (tmp_path / "o.csv").exists()


def test_every_row_of_a_table_is_scored_or_in_the_failures(run, tmp_path, dimer, monomer, residues):
    good, bad = swap(residues, 4), swap(residues, 9)
    (tmp_path / "t.csv").write_text(
        "id,mutations,row\n"
        f"monomer,A:{good},x\n"
        f"monomer.pdb,{good},y\n"
        f"dimer,{good},z\n"  # two chains: the chain is missing
        f"monomer,A:{bad[0]}99{bad[-1]},u\n"
        f"other,A:{good},v\n"
        "monomer,WT,w\n"
        f"dimer.pdb,A:{good};B:{bad},\n"
    )
    out = tmp_path / "o.csv"
    result = run("mutate", dimer, monomer, "--table", tmp_path / "t.csv", "-o", out)
    assert result.code == 1
    rows, failures = rows_of(out), rows_of(tmp_path / "o.csv.failures.csv")
    assert [(r["row"], r["row_in_table"], r["mutations"]) for r in rows] == [
        ("2", "x", f"A:{good}"),
        ("3", "y", f"A:{good}"),
        ("7", "w", "WT"),
        ("8", "", f"A:{good}+B:{bad}"),
    ]
    assert rows[0]["unfavorable_log_odds"] == rows[1]["unfavorable_log_odds"] != rows[3]["unfavorable_log_odds"]
    assert sorted(f["source"].rpartition(" ")[2] for f in failures) == ["4", "5", "6"]
    assert {f["error_type"] for f in failures} == {"MutationError", "LabelError"}
    assert list(failures[0]) == ["source", "protein", "error_type", "message"]


def test_symmetric_mutates_all_copies_that_have_the_residue(run, tmp_path, dimer, residues):
    both, lacking = swap(residues, 4), swap(residues, 2)
    arguments = ["--mutations", f"A:{both}", "--mutations", f"A:{lacking}", "-o"]
    alone = run("mutate", dimer, *arguments, tmp_path / "one.csv")
    together = run("mutate", dimer, *arguments, tmp_path / "all.csv", "--symmetric")
    assert "identical to 'B'" in alone.err and "B:3" in together.err and "identical to" not in together.err
    assert [r["mutations"] for r in rows_of(tmp_path / "one.csv")] == [f"A:{both}", f"A:{lacking}"]
    assert [r["mutations"] for r in rows_of(tmp_path / "all.csv")] == [f"A:{both}+B:{both}", f"A:{lacking}"]


@pytest.mark.slow
def test_an_ensemble_is_the_mean_and_scaled_scores_have_unit_deviation(run, tmp_path, monomer, residues):
    names = ["proteinmpnn.v_48_020", "proteinmpnn.v_48_002"]
    scores = {}
    for model, more in [*((n, []) for n in names), (",".join(names), []), (",".join(names), ["--ensemble", "scaled"])]:
        out = tmp_path / f"{len(scores)}.csv"
        run("scan", monomer, "--model", model, *more, "--no-heat-map", "-o", out)
        rows = rows_of(out)
        (column,) = [name for name in rows[0] if name.startswith("unfavorable")]
        scores[model, bool(more)] = column, np.array([float(r[column]) for r in rows])
    one, two = (scores[name, False][1] for name in names)
    column, mean = scores[",".join(names), False]
    assert column == "unfavorable_log_odds"
    np.testing.assert_allclose(mean, (one + two) / 2, atol=1e-6)
    column, scaled = scores[",".join(names), True]
    assert column == "unfavorable_score"
    changed = np.array([r["wild_type"] != r["mutant"] for r in rows_of(tmp_path / "0.csv")])
    np.testing.assert_allclose(scaled, (one / one[changed].std() + two / two[changed].std()) / 2, atol=1e-5)
    assert (scaled[~changed] == 0).all()


def test_a_scan_has_twenty_rows_per_residue_and_a_heat_map(run, tmp_path, dimer, residues):
    out = tmp_path / "scan.csv"
    result = run("scan", dimer, "--chains", "B", "--positions", "B:5-8,A:1", "-o", out)
    assert result.code == 0, result.err
    rows = rows_of(out)
    assert len(rows) == 80 and {r["chain"] for r in rows} == {"B"} and {r["res_id"] for r in rows} == set("5678")
    zero = [r for r in rows if float(r["unfavorable_log_odds"]) == 0]
    assert [(r["wild_type"], r["mutant"]) for r in zero] == [(x, x) for x in residues.sequence[4:8]]
    assert (tmp_path / "scan.png").read_bytes().startswith(b"\x89PNG")
    page = (tmp_path / "scan.html").read_text()
    assert page.count("<title>B:") == 80 and page.count(": wild type<") == 4
    assert "positive = unfavorable" in page and "<script" not in page
    assert not re.search(r'(?:src|href)="http', page)  # nothing is loaded
    row = rows[1]
    assert f"B:5 {residues.res_name[4]} → CYS: {float(row['unfavorable_log_odds']):+.3f}" in page


def test_several_files_are_one_table_with_a_heat_map_each_and_failures_beside_it(run, tmp_path, dimer, monomer):
    folder, out = tmp_path / "in", tmp_path / "scan.csv"
    (folder / "sub").mkdir(parents=True)
    for path, source in (("a.pdb", monomer), ("sub/a.pdb", dimer)):
        (folder / path).write_text(source.read_text())
    (folder / "b.pdb").write_text(monomer.read_text().replace(" A ", " Q "))  # no chain A
    result = run("scan", folder, "--positions", "A:5-6", "-o", out)
    assert result.code == 1 and "4 residues × 20 of 2 of 3 files" in result.out, result.err
    names = {path.name for path in tmp_path.iterdir() if path != folder}
    assert names == {
        out.name,
        "scan.csv.failures.csv",
        *(f"scan.{x}.{end}" for x in ("a", "a_2") for end in ("png", "html")),
    }
    (failure,) = rows_of(tmp_path / "scan.csv.failures.csv")
    assert failure["source"].endswith("b.pdb")
    alone = tmp_path / "alone.csv"
    run("scan", folder / "a.pdb", "--positions", "A:5-6", "--no-heat-map", "-o", alone)
    rows = rows_of(out)
    assert [row for row in rows if row["file"] == str(folder / "a.pdb")] == rows_of(alone)
    assert len(rows) == 80


def test_partners_give_the_score_of_the_complex_minus_the_partners(run, tmp_path, dimer, monomer, residues):
    """Chain B is 30 Å away; each partner alone is the file with one chain."""
    variant = f"A:{swap(residues, 4)}"
    scores = []
    for number, (file, more) in enumerate([(dimer, []), (monomer, []), (dimer, ["--partners", "A/B"])]):
        out = tmp_path / f"{number}.csv"
        result = run("mutate", file, "--mutations", variant, *more, "-o", out)
        assert result.code == 0, result.err
        (row,) = rows_of(out)
        scores.append(float(row["unfavorable_binding_log_odds" if more else "unfavorable_log_odds"]))
    assert "weaker binding" in result.out
    assert scores[2] == pytest.approx(scores[0] - scores[1], abs=1e-5) and scores[0] != scores[1]


def test_a_row_in_a_chain_of_no_partner_fails_alone(run, tmp_path, residues, monomer):
    """Three chains A, B and C, of which C is no partner."""
    lines = monomer.read_text().splitlines()[:-1]
    moved = [
        f"{x[:21]}{c}{x[22:30]}{float(x[30:38]) + s:8.3f}{x[38:]}" for c, s in (("B", 30), ("C", 60)) for x in lines
    ]
    file, table, out = tmp_path / "three.pdb", tmp_path / "t.csv", tmp_path / "o.csv"
    file.write_text("\n".join([*lines, *moved, "END", ""]))
    one = swap(residues, 4)
    table.write_text(f"mutations\nA:{one}\nC:{one}\nB:{one}\n")
    result = run("mutate", file, "--table", table, "--partners", "A/B", "-o", out)
    assert result.code == 1, result.err
    assert [row["mutations"] for row in rows_of(out)] == [f"A:{one}", f"B:{one}"]
    (failure,) = rows_of(out.with_name("o.csv.failures.csv"))
    assert "chain of no partner" in failure["message"] and f"C:{one}" in failure["message"]


def test_invalid_partners_are_an_error(run, tmp_path, dimer, residues):
    for partners, part in (("A", "invalid partners"), ("A/C", "no protein chain 'C'"), ("A/A", "invalid partners")):
        arguments = ["--mutations", f"A:{swap(residues, 4)}", "--partners", partners]
        result = run("mutate", dimer, *arguments, "-o", tmp_path / "o.csv")
        assert result.code == 2 and part in result.err, result.err


def test_a_scan_table_is_scored_again_to_the_same_values(run, tmp_path, monomer):
    """A scan equals the same mutations in a table."""
    run("scan", monomer, "--positions", "A:3-6", "--no-heat-map", "-o", tmp_path / "scan.csv")
    result = run("mutate", monomer, "--table", tmp_path / "scan.csv", "-o", tmp_path / "again.csv")
    assert result.code == 0, result.err
    again = rows_of(tmp_path / "again.csv")
    scan = [float(r["unfavorable_log_odds_in_table"]) for r in again]
    assert len(again) == 80
    np.testing.assert_allclose([float(r["unfavorable_log_odds"]) for r in again], scan, atol=1e-5)


@pytest.mark.parametrize(
    ("model", "suggested"),
    [("DDG", "'ddg'"), ("ddg_bindin", "'ddg_binding'"), ("ProteinMPNN.v_48_020", "'proteinmpnn.v_48_020'")],
)
def test_a_misspelled_scorer_is_suggested(run, tmp_path, monomer, model, suggested):
    result = run("mutate", monomer, "--mutations", "WT", "--model", model, "-o", tmp_path / "o.csv")
    assert result.code == 2 and f"Did you mean {suggested}" in result.err


@pytest.mark.parametrize(
    ("command", "option"), [("design", "--n"), ("generate", "--n"), ("score", "--orders"), ("mutate", "--orders")]
)
def test_a_count_of_zero_is_refused_by_the_name_of_its_option(run, tmp_path, monomer, command, option):
    result = run(command, monomer, option, "0", "-o", tmp_path / "o.csv")
    assert result.code == 2 and option in result.err and not list(tmp_path.iterdir())


def test_positions_of_the_only_chain_need_no_chain(run, tmp_path, monomer, dimer):
    result = run("scan", monomer, "--positions", "5-8", "--no-heat-map", "-o", tmp_path / "o.csv")
    assert result.code == 0 and len(rows_of(tmp_path / "o.csv")) == 80
    result = run("scan", dimer, "--positions", "5-8", "--no-heat-map", "-o", tmp_path / "d.csv")
    assert result.code == 2 and "'A:5-8'" in result.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("mutate", "F", "-o", "o.csv"),
        ("mutate", "F", "--mutations", "WT", "--table", "t.csv", "-o", "o.csv"),
        ("mutate", "F", "--mutations", "WT", "-o", "o.txt"),
        ("mutate", "F", "--mutations", "WT", "--mode", "masked", "-o", "o.csv"),
        ("mutate", "F", "--mutations", "WT", "--model", "nothing", "-o", "o.csv"),
        ("mutate", "F", "--mutations", "WT", "--model", "mpnn", "-o", "o.csv"),
        (
            "mutate",
            "F",
            "--mutations",
            "WT",
            "--model",
            "esm2",
            "--weights",
            "random:tiny",
            "--orders",
            "2",
            "-o",
            "o.csv",
        ),
        ("scan", "F", "--chains", "Q", "-o", "o.csv"),
        ("scan", "F", "--positions", "A:99", "-o", "o.csv"),
        ("scan", "F", "--model", "esm2,esm2", "-o", "o.csv"),
    ],
)
def test_invalid_options_exit_with_two_and_write_nothing(run, tmp_path, monkeypatch, monomer, arguments):
    monkeypatch.chdir(tmp_path)
    result = run(*(monomer if x == "F" else x for x in arguments))
    assert result.code == 2 and result.err and not list(tmp_path.iterdir())


def test_existing_outputs_stay(run, tmp_path, monomer):
    (tmp_path / "scan.png").write_text("mine")
    result = run("scan", monomer, "-o", tmp_path / "scan.csv")
    assert result.code == 2 and "scan.png" in result.err and (tmp_path / "scan.png").read_text() == "mine"
    assert not (tmp_path / "scan.csv").exists()
