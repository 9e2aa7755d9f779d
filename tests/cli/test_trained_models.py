"""Trained models by name on the command line: structures, scripts, attributions, inputs that do not fit."""

from __future__ import annotations

import csv
import shutil
import subprocess
import sys

import biotite.structure as struc
import biotite.structure.io as strucio
import numpy as np
import pytest

from protgraph import trained_models
from protgraph.inference import predict
from protgraph.registry import Registry


@pytest.mark.parametrize(
    ("name", "column"), [("ligand_site", "p_ligand_site"), ("secondary_structure", "p_H")], ids=["ligand", "helix"]
)
@pytest.mark.parametrize("suffix", ["pdb", "cif"])
def test_written_structures_have_the_probability_in_percent_and_scripts_open_them(
    name, column, suffix, structures_dir, tmp_path, run
) -> None:
    from biotite.structure.io.pdb import PDBFile
    from biotite.structure.io.pdbx import CIFFile, get_structure

    paths = {
        key: tmp_path / f"out.{end}"
        for key, end in zip(("csv", "structure", "pymol", "chimerax"), ("csv", suffix, "pml", "cxc"), strict=True)
    }
    options = [text for key in ("structure", "pymol", "chimerax") for text in (f"--{key}", paths[key])]
    source = structures_dir / "1rx4.bcif"
    result = run("predict", name, source, "-o", paths["csv"], "--value", column, "--device", "cpu", *options)
    assert result.code == 0, result.err
    assert "not read by the model: 3 other molecules (BME 1, DDF 1, NAP 1)" in result.err
    if suffix == "pdb":
        atoms = PDBFile.read(paths["structure"]).get_structure(model=1, extra_fields=["b_factor"])
    else:
        file = CIFFile.read(paths["structure"])
        atoms = get_structure(file, model=1, extra_fields=["b_factor"], use_author_fields=True)
    ca = atoms[(atoms.atom_name == "CA") & ~atoms.hetero]
    np.testing.assert_allclose(ca.b_factor, 100 * predict(name, source, device="cpu").column(column), atol=0.006)
    assert all(f"out.{suffix}" in paths[key].read_text() for key in ("pymol", "chimerax"))


def test_a_name_with_a_typing_error_suggests_the_model(run, structures_dir, tmp_path) -> None:
    result = run("predict", "lignd_site", structures_dir / "1ubq.bcif", "-o", tmp_path / "o.csv")
    assert result.code == 2 and "'ligand_site'" in result.err


@pytest.mark.parametrize("command", ["predict", "embed"])
def test_model_and_file_in_the_wrong_order_are_recognized(command, run, structures_dir, tmp_path) -> None:
    file = structures_dir / "1ubq.bcif"
    result = run(command, file, "ligand_site", "-o", tmp_path / "o.npz")
    assert result.code == 2 and f"protgraph {command} ligand_site {file}" in result.err
    assert not list(tmp_path.iterdir())


def test_list_and_info_print_what_each_model_reads(run) -> None:
    lines = {line.split()[0]: line for line in run("list", "trained_models").out.splitlines()[1:]}
    for name in trained_models.names():
        card = trained_models.get(name).card()
        assert f"{card.reads}  " in lines[name] and card.summary in lines[name]
        assert f"Reads: {card.reads}\n" in run("info", name, "--kind", "trained_models").out


@pytest.mark.parametrize("number", [1, 3])
def test_the_model_that_is_read_of_an_ensemble_is_named(number, run, structures_dir, tmp_path) -> None:
    atoms = strucio.load_structure(structures_dir / "1crn.bcif")
    atoms = atoms[struc.filter_amino_acids(atoms)]
    strucio.save_structure(tmp_path / "nmr.pdb", struc.stack([atoms] * 4))
    options = ("--device", "cpu", "--model-number", number)
    result = run("predict", "secondary_structure", tmp_path / "nmr.pdb", "-o", tmp_path / "o.csv", *options)
    assert result.code == 0 and f"model {number} of 4 of {tmp_path / 'nmr.pdb'}" in result.err
    assert "--model-number" in result.err
    single = run("predict", "secondary_structure", structures_dir / "1crn.bcif", "-o", tmp_path / "1.csv", *options[:2])
    assert "--model-number" not in single.err


def test_info_prints_the_card(run) -> None:
    out = run("info", "ligand_site", "--kind", "trained_models").out
    for part in ("trained_model ligand_site", "Apache-2.0", "test  auprc", "Calibration: platt", "Limits:", "recipe"):
        assert part in out


def test_explain_needs_the_extension(run, structures_dir, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("protgraph.registry.functions", Registry(kind="function", group="protgraph.absent"))
    options = ("-o", tmp_path / "o.csv", "--explain", tmp_path / "why.csv")
    result = run("predict", "ligand_site", structures_dir / "1ubq.bcif", *options)
    assert result.code == 2 and "'attribution'" in result.err and not (tmp_path / "o.csv").exists()


@pytest.mark.parametrize(
    "options", [("--explain-residue", "A:1"), ("--explain-structure", "w.cif")], ids=["residue", "structure"]
)
def test_options_of_explain_need_it(run, structures_dir, tmp_path, options) -> None:
    result = run("predict", "ligand_site", structures_dir / "1ubq.bcif", "-o", tmp_path / "o.csv", *options)
    assert result.code == 2 and "--explain FILE" in result.err


@pytest.mark.parametrize(
    ("content", "suffix", "part"),
    [
        (">a\nMKTAYIAKQR\n", "fasta", "sequence without"),
        (
            "HETATM    1  O   HOH A   1       1.000   1.000   1.000  1.00 20.00           O\nEND\n",
            "pdb",
            "no protein residue",
        ),
        (
            "ATOM      1  P    DA A   1       1.000   1.000   1.000  1.00 20.00           P\nEND\n",
            "pdb",
            "no protein residue",
        ),
    ],
    ids=["sequence", "water", "dna"],
)
def test_inputs_without_a_protein_structure_fail_with_the_reason(run, tmp_path, content, suffix, part) -> None:
    (tmp_path / f"in.{suffix}").write_text(content)
    result = run("predict", "ligand_site", tmp_path / f"in.{suffix}", "-o", tmp_path / "o.csv", "--device", "cpu")
    assert result.code == 2 and part in result.err and not (tmp_path / "o.csv").exists()


def test_several_chains_are_predicted_alone_and_that_is_printed(run, structures_dir, tmp_path) -> None:
    result = run("predict", "ppi_site", structures_dir / "1hf9.bcif", "-o", tmp_path / "o.csv", "--device", "cpu")
    assert result.code == 0 and "each chain is predicted without the others (1 file" in result.err


@pytest.mark.slow
def test_train_calibrates(run, structures_dir, tmp_path) -> None:
    import shutil

    for name in ("1crn", "2erl", "1ubq", "1a8o", "1y0m", "1orc", "5pti"):
        shutil.copy(structures_dir / f"{name}.bcif", tmp_path)
    options = ("--task", "secondary_structure", "--epochs", "1", "--log", "none", "--device", "cpu")
    out = tmp_path / "m.safetensors"
    result = run("train", "gcn", "--data", tmp_path, *options, "--calibrate", "temperature", "-o", out)
    assert result.code == 0 and "calibration: temperature" in result.out, result.err
    result = run("train", "gcn", "--data", tmp_path, *options, "--calibrate", "platt", "-o", tmp_path / "n.safetensors")
    assert result.code == 2 and "'platt'" in result.err


def test_a_license_that_limits_the_use_is_printed(run, structures_dir, tmp_path, monkeypatch) -> None:
    from protgraph.checkpoint import TrainedModel

    card = TrainedModel.card

    def limited(self):
        return card(self).model_copy(update={"license": "CC BY-NC 4.0", "non_commercial": True})

    monkeypatch.setattr(TrainedModel, "card", limited)
    result = run("predict", "ligand_site", structures_dir / "1ubq.bcif", "-o", tmp_path / "o.csv", "--device", "cpu")
    assert result.code == 0 and "non-commercial use only" in result.err


def test_sites_are_printed_with_the_threshold_and_its_precision_of_the_card(run, structures_dir, tmp_path) -> None:
    source, before = structures_dir / "1rx4.bcif", {path.name for path in tmp_path.iterdir()}
    result = run("predict", "ligand_site", source, "--device", "cpu")
    assert result.code == 0, result.err
    rule = trained_models.get("ligand_site").card().call("ligand_site")
    validation = rule.splits["val"]
    assert f"at least {rule.at_least:.2f}" in result.out and f"{validation.precision:.0%} of the called" in result.out
    assert "select ligand_site_1, (chain 'A' and resi " in result.out and "ChimeraX: select /A:" in result.out
    assert {path.name for path in tmp_path.iterdir()} == before

    # The called residues of the table are those from the threshold upward, and each is in one site.
    options = ["-o", tmp_path / "o.csv", "--sites", tmp_path / "s.csv", "--device", "cpu"]
    assert run("predict", "ligand_site", source, *options).code == 0
    with open(tmp_path / "o.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    called = [row for row in rows if row["predicted_ligand_site"] == "1"]
    assert called and all((float(row["p_ligand_site"]) >= rule.at_least) == (row in called) for row in rows)
    with open(tmp_path / "s.csv", newline="") as file:
        sites = list(csv.DictReader(file))
    assert sum(int(site["size"]) for site in sites) == len(called)
    assert [int(site["rank"]) for site in sites] == list(range(1, len(sites) + 1))


def test_a_model_without_a_card_calls_nothing(run, structures_dir, tmp_path) -> None:
    shutil.copy(trained_models.get("ligand_site").folder / "model.safetensors", tmp_path / "alone.safetensors")
    files = [tmp_path / "alone.safetensors", structures_dir / "1ubq.bcif"]
    result = run("predict", *files)
    assert result.code == 2 and "no card" in result.err
    result = run("predict", *files, "-o", tmp_path / "o.csv", "--sites", tmp_path / "s.csv")
    assert result.code == 2 and "no card" in result.err and not (tmp_path / "o.csv").exists()
    result = run("predict", *files, "-o", tmp_path / "o.csv", "--device", "cpu")
    assert result.code == 0 and "called" not in result.out


def test_a_table_on_standard_output_is_not_mixed_with_messages(run, structures_dir) -> None:
    result = run("predict", "ligand_site", structures_dir / "1ubq.bcif", "-o", "-", "--device", "cpu")
    lines = result.out.split("\n")[:-1]
    assert "\r" not in result.out
    assert result.code == 0 and lines[0].startswith("file,chain,res_id") and len(lines) == 77
    assert "PyMOL" in result.err or "0 sites" in result.err


def test_the_calls_of_each_card_have_the_matthews_correlation_of_the_card() -> None:
    seen = 0
    for name in trained_models.names():
        card = trained_models.get(name).card()
        for rule in card.calls if len(card.calls) == 1 else ():
            for split, counts in rule.splits.items():
                result, seen = card.splits[split], seen + 1
                right, called, positives = counts.correct, counts.called, counts.positives
                under = called * positives * (result.labels - called) * (result.labels - positives)
                mcc = (right * result.labels - called * positives) / under**0.5
                assert positives == result.positives[0]
                # sugar_site: counted on the same labels in files that were converted again
                assert mcc == pytest.approx(result.metrics["mcc"][0], abs=4e-3 if name == "sugar_site" else 1e-5)
    assert seen >= 10


def test_the_list_has_a_metric_of_the_card_beside_floor_and_rival(run) -> None:
    lines = {line.split()[0]: line for line in run("list", "trained_models").out.splitlines()[1:]}
    assert "[test: auprc .504; floor .111; GraphSite .544 (not confirmed)]" in lines["dna_site"]
    assert "[test: auprc .615; floor .106; fpocket 4, score of the best pocket .251]" in lines["ligand_site"]
    assert "[test: pearson_overall .500; floor .205; MAESTRO .499; PROSTATA .496]" in lines["ddg"]
    expected = "pearson_of_means .808; ELBO of EigenFold .852; rmse .169; floor .266]"  # the smaller error is better
    assert expected in lines["model_quality"]
    for line in lines.values():
        assert "floor" in line and line.endswith("]")


def test_several_models_write_tables_with_their_names(run, structures_dir, tmp_path) -> None:
    source = structures_dir / "1ubq.bcif"
    result = run("predict", "ligand_site,secondary_structure", source, "-o", tmp_path / "o.csv", "--device", "cpu")
    assert result.code == 0, result.err
    tables = sorted(path.name for path in tmp_path.iterdir() if "warnings" not in path.name)
    assert tables == ["o.ligand_site.csv", "o.secondary_structure.csv"]
    alone = run("predict", "secondary_structure", source, "-o", tmp_path / "alone.csv", "--device", "cpu")
    assert alone.code == 0
    assert (tmp_path / "alone.csv").read_bytes() == (tmp_path / "o.secondary_structure.csv").read_bytes()
    result = run("predict", "ligand_site,ligand_site", source, "-o", tmp_path / "p.csv")
    assert result.code == 2 and "different names" in result.err


def test_a_structure_is_read_from_standard_input(structures_dir, tmp_path) -> None:
    code = "from protgraph.cli.app import main; main()"
    command = [sys.executable, "-c", code, "predict", "ligand_site", "-", "-o", "-", "--device", "cpu"]
    content = (structures_dir / "1ubq.bcif").read_bytes()
    done = subprocess.run(command, input=content, capture_output=True, check=False, cwd=tmp_path)
    rows = list(csv.reader(done.stdout.decode().splitlines()))
    expected = predict("ligand_site", structures_dir / "1ubq.bcif", device="cpu")
    assert len(rows) == 77, done.stderr
    np.testing.assert_allclose([float(row[5]) for row in rows[1:]], expected.column("p_ligand_site"), atol=1e-6)
    assert not list(tmp_path.iterdir())
    done = subprocess.run(command, input=b"", capture_output=True, check=False)
    assert done.returncode == 2 and b"standard input is empty" in done.stderr
