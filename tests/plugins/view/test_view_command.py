"""``protgraph view``: pages with edges, colors, and predictions of a trained model."""

from __future__ import annotations

import base64
import gzip
import json
import re
import shutil

import pytest

import protgraph as pg


@pytest.fixture(scope="module")
def checkpoint(structures_dir, tmp_path_factory):
    """Return the checkpoint of a transformer after one epoch."""
    folder = tmp_path_factory.mktemp("model")
    (folder / "in").mkdir()
    for name in ("1crn", "10sb", "134l"):
        (folder / "in" / f"{name}.bcif").write_bytes((structures_dir / f"{name}.bcif").read_bytes())
    rows = ["file,chain,res_id,state"]
    for path in sorted((folder / "in").iterdir()):
        residues = pg.clean(pg.load_structure(path))
        rows += [f"{path.name},{c},{n},{'odd' if n % 2 else 'even'}" for c, n in
                 zip(residues.chain, residues.res_id, strict=True)]  # fmt: skip
    (folder / "labels.csv").write_text("\n".join(dict.fromkeys(rows)) + "\n")
    from protgraph.data.datasets.folder import FolderDataset

    result = pg.fit("transformer", FolderDataset(folder / "in", folder / "labels.csv"), "state",
                    config=pg.FitConfig(epochs=1))  # fmt: skip
    result.save(folder / "m.safetensors")
    return folder / "m.safetensors"


def test_a_page_has_edges_and_a_color(run, structures_dir, tmp_path):
    out = tmp_path / "a" / "1crn.html"
    args = ["--edges", "contact,knn:k=4,of=cb", "--color", "dihedral:3", "-o", out]
    result = run("view", structures_dir / "1crn.bcif", *args)
    assert result.code == 0, result.err
    assert (
        "1crn: 46 residues of 1 chain," in result.out
        and "contact, " in result.out
        and 10**6 < out.stat().st_size < 6 * 10**6
    )


def test_what_a_page_leaves_out_is_printed(run, structures_dir, tmp_path, monkeypatch):
    monkeypatch.setattr("protgraph_plugins.view.page._MAX_EDGES", 50)
    result = run("view", structures_dir / "1crn.bcif", "--edges", "contact", "-o", tmp_path / "1crn.html")
    assert result.code == 0, result.err
    assert result.out.count("contact: 50 of ") == 1 and "50 contact, colored" in result.out


@pytest.mark.slow
def test_a_model_gives_colors_and_attention_edges(run, structures_dir, tmp_path, checkpoint):
    out = tmp_path / "p.html"
    result = run("view", structures_dir / "1crn.bcif", "--prediction", checkpoint, "--attention", "-o", out)
    assert result.code == 0, result.err
    assert "46 attention" in result.out
    data = page_data(out)
    assert data["edges"][0]["name"] == "attention" and [c["name"] for c in data["colors"]][-2:] == ["p_even", "p_odd"]
    args = ["--prediction", checkpoint, "--overwrite", "-o", out]
    result = run("view", structures_dir / "1crn.bcif", *args, "--color", "p_odd")
    assert result.code == 0 and "p_odd" in result.out
    result = run("view", structures_dir / "1crn.bcif", *args, "--color", "p_helix")
    assert result.code == 2 and "predicted, p_even, p_odd" in result.err


def test_two_models_are_shown_side_by_side(run, structures_dir, tmp_path, checkpoint):
    other = tmp_path / "other.safetensors"
    other.write_bytes(checkpoint.read_bytes())
    out, both = tmp_path / "p.html", ["--prediction", checkpoint, "--prediction", other]
    result = run("view", structures_dir / "1crn.bcif", *both, "-o", out)
    assert result.code == 0, result.err
    assert "beside it predicted (other.safetensors)" in result.out
    data = page_data(out)
    names = [color["name"] for color in data["colors"]]
    assert {f"{n} ({m.name})" for n in ("predicted", "p_even", "p_odd") for m in (checkpoint, other)} <= set(names)
    assert names[0] == "predicted (m.safetensors)" and names[data["beside"]] == "predicted (other.safetensors)"
    for options in (["--attention"], ["--attribution"], ["--prediction", checkpoint]):
        result = run("view", structures_dir / "1crn.bcif", *both, *options, "-o", tmp_path / "x.html")
        assert result.code == 2 and ("one --prediction" in result.err or "'m.safetensors' occurs twice" in result.err)
        assert not (tmp_path / "x.html").exists()


def test_the_model_that_is_shown_of_an_ensemble_is_named(run, structures_dir, tmp_path, checkpoint):
    lines = [line for line in pdb_of(structures_dir / "1crn.bcif").splitlines() if line.startswith("ATOM")]
    models = "".join(f"MODEL {n}\n" + "\n".join(lines) + "\nENDMDL\n" for n in (1, 2, 3))
    (tmp_path / "nmr.pdb").write_text(models + "END\n")
    for options in ([], ["--prediction", checkpoint]):
        result = run("view", tmp_path / "nmr.pdb", *options, "-o", tmp_path / "o.html", "--overwrite")
        assert result.code == 0 and (result.out + result.err).count("one model of 3 of nmr") == 1, result.err


def pdb_of(path) -> str:
    """Return an entry as PDB text, by biotite."""
    from io import StringIO

    import biotite.structure.io as strucio
    from biotite.structure.io.pdb import PDBFile

    file, text = PDBFile(), StringIO()
    file.set_structure(strucio.load_structure(path))
    file.write(text)
    return text.getvalue()


@pytest.mark.parametrize("form", ["html", "molviewspec"])
def test_the_file_is_opened_once(run, structures_dir, tmp_path, checkpoint, opened_files, form):
    path = structures_dir / "1crn.bcif"
    out = tmp_path / ("out.html" if form == "html" else "out.mvsj")
    args = ["--prediction", checkpoint, "--attention", "--format", form, "-o", out]
    assert run("view", path, *args).code == 0
    assert opened_files.count(str(path)) == 1


def test_labels_are_beside_the_prediction_and_attributions_are_signed(run, structures_dir, tmp_path, checkpoint):
    labels = tmp_path / "labels.csv"
    rows = [f"1crn,A,{i},{'odd' if i % 2 else 'even'}" for i in range(1, 41)]
    labels.write_text("\n".join(["file,chain,res_id,state", *rows, "1crn,A,99,odd", "2xyz,A,41,odd"]) + "\n")
    out = tmp_path / "p.html"
    args = ["--prediction", checkpoint, "--labels", labels, "--attribution", "-o", out]
    result = run("view", structures_dir / "1crn.bcif", *args, "--color", "predicted")
    assert result.code == 0, result.err
    assert "1 label of residues that are absent: A:99" in result.out and "beside it state" in result.out
    data = page_data(out)
    colors = {c["name"]: c for c in data["colors"]}
    assert colors["state"]["texts"][:3] == ["odd", "even", "odd"] and colors["state"]["missing"] == 6
    assert data["colors"][data["beside"]]["name"] == "state" and data["colors"][0]["name"] == "predicted"
    same = [p == s for p, s in zip(colors["predicted"]["texts"][:40], colors["state"]["texts"], strict=False)]
    assert [text == "correct" for text in colors["agreement"]["texts"][:40]] == same
    low, high = map(float, colors["attribution"]["ends"])
    assert low == -high and high > 0


def test_the_default_output_is_in_the_current_folder(run, structures_dir, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run("view", structures_dir / "1crn.bcif").code == 0
    assert [path.name for path in tmp_path.iterdir()] == ["1crn.html"]
    result = run("view", structures_dir / "1crn.bcif")
    assert result.code == 2 and "--overwrite" in result.err


def page_data(path):
    """Return the data in a page."""
    packed = re.search(r'id="scene">([^<]+)<', path.read_text(encoding="utf-8"))[1]
    return json.loads(gzip.decompress(base64.b64decode(packed)))


def test_molviewspec_is_written(run, structures_dir, tmp_path):
    out = tmp_path / "1crn.mvsj"
    args = ["--format", "molviewspec", "--color", "b_factor", "-o", out]
    assert run("view", structures_dir / "1crn.bcif", *args).code == 0
    assert json.loads(out.read_text())["kind"] == "single"


def test_several_structures_are_written_to_a_folder(run, structures_dir, tmp_path):
    files = [structures_dir / f"{name}.bcif" for name in ("1crn", "1ubq")]
    options = ("--format", "pymol", "-o")
    result = run("view", *files, *options, tmp_path / "pages")
    assert result.code == 0, result.err
    assert sorted(path.name for path in (tmp_path / "pages").iterdir()) == ["1crn.pml", "1ubq.pml"]
    result = run("view", *files, *options, tmp_path / "one.pml")
    assert result.code == 2 and "folder" in result.err and not (tmp_path / "one.pml").exists()
    (tmp_path / "copies").mkdir()
    copy = shutil.copy(files[0], tmp_path / "copies")
    result = run("view", files[0], copy, *options, tmp_path / "again")
    assert result.code == 2 and "same name" in result.err
