"""Every command that reads structure files has the same reading options, and uses them."""

from __future__ import annotations

import csv
from types import SimpleNamespace

import numpy as np
import pytest
from biotite.structure.io import pdb

import protgraph as pg
from protgraph.cli.app import _load
from protgraph.data.datasets.folder import FolderDataset
from protgraph.data.store.graph_store import GraphStore
from protgraph.errors import OptionError
from protgraph.structure import ReadOptions, load_structure
from protgraph.structure.residues.alphabet import THREE_LETTER

COMMANDS = ("predict", "embed", "attention", "view", "featurize", "design", "score", "train")
OPTIONS = ("altloc", "assembly", "model_number")
COPIES = "REMARK 350\nREMARK 350 BIOMOLECULE: 1\nREMARK 350 APPLY THE FOLLOWING TO CHAINS: A\n" + "".join(
    f"REMARK 350   BIOMT{row + 1} {copy:3}{a:10.6f}{b:10.6f}{c:10.6f}{60.0 * (copy == 2 and row == 0):15.5f}\n"
    for copy in (1, 2)
    for row, (a, b, c) in enumerate(np.eye(3))
)


@pytest.fixture(scope="module")
def small_file(structures_dir, tmp_path_factory):
    """Twelve residues of 1crn: Ile 7 is Val in location B; a second model has ten; the assembly has two copies."""
    atoms = load_structure(structures_dir / "1crn.bcif").atoms
    written = pdb.PDBFile()
    written.set_structure(atoms[atoms.res_id <= 12])
    lines = [line for line in written.lines if line.startswith("ATOM")]
    assert {line[17:20] for line in lines if int(line[22:26]) == 7} == {"ILE"}
    first: list[str] = []
    for line in lines:
        if int(line[22:26]) != 7:
            first.append(line)
            continue
        first.append(f"{line[:16]}A{line[17:54]}  0.60{line[60:]}")
        if line[12:16].strip() != "CD1":
            first.append(f"{line[:16]}BVAL{line[20:54]}  0.40{line[60:]}")
    first = [f"{line[:6]}{serial:5}{line[11:]}" for serial, line in enumerate(first, 1)]
    second = [line for line in lines if int(line[22:26]) <= 10]
    models = "".join(f"MODEL     {n:4}\n" + "\n".join(m) + "\nENDMDL\n" for n, m in ((1, first), (2, second)))
    path = tmp_path_factory.mktemp("odd") / "odd.pdb"
    path.write_text(COPIES + models)
    return path


@pytest.fixture(scope="module")
def checkpoint(structures_dir, tmp_path_factory):
    """A small model of types and positions, one epoch old."""
    folder = tmp_path_factory.mktemp("reading")
    (folder / "in").mkdir()
    for name in ("1crn", "1vii", "2erl"):
        (folder / "in" / f"{name}.bcif").write_bytes((structures_dir / f"{name}.bcif").read_bytes())
    (folder / "labels.csv").write_text("file,size\n1crn.bcif,1\n1vii.bcif,2\n2erl.bcif,3\n")
    embed = pg.component("embed", reads=["aatype", "dihedral"], dim=4)
    model = pg.ModelSpec("small", features=["dihedral", pg.component("knn", k=4)], layers=[embed])
    data = FolderDataset(folder / "in", folder / "labels.csv")
    return pg.fit(model, data, "size", config=pg.FitConfig(epochs=1, device="cpu")).save(folder / "m.safetensors")


#: Options, residues, chains, and what residue 7 is.
WAYS = [
    ([], 12, "A", "ILE"),
    (["--altloc", "first"], 12, "A", "ILE"),
    (["--altloc", "B"], 12, "A", "VAL"),
    (["--model-number", "2"], 10, "A", "ILE"),
    (["--assembly", "1"], 24, "A,A-2", "ILE"),
    (["--assembly", "1", "--chain", "A-2"], 12, "A-2", "ILE"),
]


@pytest.mark.parametrize("command", COMMANDS)
def test_the_options_have_one_name_default_and_help_in_all_commands(command):
    params = {p.name: p for p in _load(command).params}
    usual = {p.name: p for p in _load("featurize").params}
    for name in OPTIONS:
        own, expected = ((p.opts, p.help, p.default) for p in (params[name], usual[name]))
        assert own == expected
    assert "read" not in params


@pytest.mark.parametrize("command", [*COMMANDS, "scan", "mutate", "compare", "search"])
def test_chains_are_selected_by_one_option_in_all_commands(command):
    (option,) = [p for p in _load(command).params if "--chain" in p.opts]
    assert option.opts == ["--chain", "--chains"] and option.multiple and option.name == "chains"


@pytest.mark.parametrize(
    "arguments",
    [("--chain", "M", "--chain", "N"), ("--chain", "M,N"), ("--chains", "M,N"), ("--chains", "M", "--chain", " N,")],
)
def test_lists_and_repeated_options_are_the_same_chains(run, checkpoint, structures_dir, tmp_path, arguments):
    out = tmp_path / "out.csv"
    result = run("predict", checkpoint, structures_dir / "1bfr.bcif", *arguments, "-o", out)
    assert result.code == 0, result.err
    assert [row["chains"] for row in csv.DictReader(out.open())] == ["M", "N"]


def test_a_second_chain_of_one_id_is_selected_by_its_name_in_the_tables(run, checkpoint, small_file, tmp_path):
    first = [line for line in small_file.read_text().split("ENDMDL")[0].splitlines() if line.startswith("ATOM")]
    second = [f"{line[:30]}{float(line[30:38]) + 90:8.3f}{line[38:]}" for line in first]
    file, out = tmp_path / "two.pdb", tmp_path / "out.csv"
    file.write_text("\n".join([*first, "TER", *second, "TER"]) + "\n")
    for chain in ("A", "A-2"):
        assert run("predict", checkpoint, file, "--chain", chain, "-o", out, "--overwrite").code == 0
        assert [(row["chains"], row["residues"]) for row in csv.DictReader(out.open())] == [(chain, "12")]
    result = run("predict", checkpoint, file, "--chain", "A-3", "-o", out, "--overwrite")
    assert result.code == 2 and "'A-3'" in result.err and "'A-2'" in result.err


@pytest.mark.parametrize(("options", "residues", "chains", "seventh"), WAYS)
def test_predict_and_embed_use_the_options(run, small_file, checkpoint, tmp_path, options, residues, chains, seventh):
    result = run("predict", checkpoint, small_file, *options, "-o", tmp_path / "out.csv")
    assert result.code == 0, result.err
    rows = list(csv.DictReader((tmp_path / "out.csv").open()))  # one a chain: so the model was trained
    assert sum(int(row["residues"]) for row in rows) == residues
    assert [row["chains"] for row in rows] == chains.split(",")
    result = run("embed", checkpoint, small_file, *options, "-o", tmp_path / "out.npz")
    assert result.code == 0, result.err
    found = np.load(tmp_path / "out.npz")
    assert len(found["node"]) == residues
    assert found["chains"].tolist() == chains.split(",")


@pytest.mark.parametrize(("options", "residues", "chains", "seventh"), WAYS)
def test_featurize_and_view_use_the_options(run, small_file, tmp_path, options, residues, chains, seventh):
    result = run("featurize", small_file, *options, "-o", tmp_path / "graphs")
    assert result.code == 0, result.err
    graph = GraphStore(tmp_path / "graphs")[0]
    assert len(graph.residue_ids) == residues
    assert THREE_LETTER[graph.aatype[6]] == seventh
    result = run("view", small_file, *options, "-o", tmp_path / "out.html")
    assert result.code == 0, result.err
    assert f"odd: {residues} residues" in result.out


@pytest.mark.slow
def test_attention_uses_the_options(run, small_file, tmp_path):
    result = run(
        "attention", "transformer", small_file, "--assembly", "1", "--model-number", "2", "-o", tmp_path / "out"
    )
    assert result.code == 0, result.err
    assert "odd, 20 residues" in result.out


@pytest.mark.parametrize("command", ["design", "score"])
def test_design_and_score_use_the_options(run, small_file, tmp_path, monkeypatch, command):
    given = {}

    def graphs(sources, plan, *, read, **options):
        given["read"] = read
        raise OptionError("enough")

    module = f"protgraph_plugins.design.{command}_command"
    monkeypatch.setattr(f"{module}.load_model", lambda *_: SimpleNamespace(plan=None))
    monkeypatch.setattr("protgraph.featurize.iter_graphs", graphs)
    options = ["--altloc", "B", "--assembly", "1", "--model-number", 2]
    result = run(command, small_file, *options, "-o", tmp_path / f"out.{'csv' if command == 'score' else 'fasta'}")
    assert (result.code, "enough" in result.err) == (2, True)
    assert given["read"] == ReadOptions(altloc="B", assembly="1", model_number=2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--altloc", "best"], "'best'"),
        (["--model-number", "0"], "model_number 0"),
        (["--alignment", "absent.a3m"], "--alignment: 'absent.a3m' does not exist"),
        (["--search", "absent.fasta"], "--search: 'absent.fasta' does not exist"),
    ],
)
def test_invalid_options_are_errors_before_any_file_is_read(run, small_file, tmp_path, options, message):
    result = run("featurize", small_file, *options, "-o", tmp_path / "graphs")
    assert result.code == 2
    assert message in result.err
    assert not (tmp_path / "graphs.manifest.tsv").exists()


def test_a_model_that_the_only_file_lacks_is_a_message_without_a_table(run, small_file, checkpoint, tmp_path):
    result = run("predict", checkpoint, small_file, "--model-number", "3", "-o", tmp_path / "out.csv")
    assert result.code == 2
    assert "1 failed: " in result.err and "model 3" in result.err
    assert not list(tmp_path.glob("out.csv*"))


def test_molviewspec_supports_neither_assembly_nor_model(run, small_file, tmp_path):
    result = run("view", small_file, "--assembly", "1", "--format", "molviewspec", "-o", tmp_path / "out.mvsj")
    assert result.code == 2
    assert "--assembly" in result.err


_COMMANDS = {
    "featurize": ("featurize", "FILE", "-o", "OUT/store"),
    "predict": ("predict", "dna_site", "FILE", "-o", "OUT/p.csv"),
    "attention": ("attention", "gat", "FILE", "-o", "OUT/attention"),
    "compare": ("compare", "FILE", "FILE"),
    "view": ("view", "FILE", "--format", "pymol", "-o", "OUT/v.pml"),
    "design": ("design", "FILE", "-o", "OUT/d.fasta"),
    "score": ("score", "FILE", "-o", "OUT/s.csv"),
    "scan": ("scan", "FILE", "--positions", "A:3", "--no-heat-map", "-o", "OUT/s.csv"),
    "mutate": ("mutate", "FILE", "--mutations", "A:A3G", "-o", "OUT/m.csv"),
}


@pytest.mark.parametrize("command", list(_COMMANDS))
def test_every_command_prints_what_the_reader_decided(run, tmp_path, proteinmpnn_folder, command):
    """Two chains of one id, the second of which begins at numbers that the first lacks, in each of two models."""
    atoms = [("N", 0.0, 0.0), ("CA", 1.5, 0.0), ("C", 2.6, 0.0), ("O", 2.6, 1.2), ("CB", 1.5, 1.5)]
    chains = [(0.0, range(3, 15)), (150.0, range(1, 14))]
    lines = [
        f"ATOM      1  {name:<3} {('GLY', 'ALA')[i % 2]} A{i:>4}    {x + 3.9 * i + dx:8.3f}{dy:8.3f}{0:8.3f}"
        f"  1.00 10.00           {name[0]}"
        for x, numbers in chains
        for i in numbers
        for name, dx, dy in atoms
    ]
    path, out = tmp_path / "two.pdb", tmp_path / "out"
    out.mkdir()
    path.write_text("\n".join(["MODEL        1", *lines, "ENDMDL", "MODEL        2", *lines, "ENDMDL", "END"]))
    arguments = [a.replace("FILE", str(path)).replace("OUT", str(out)) for a in _COMMANDS[command]]
    done = run(*arguments)
    assert done.code == 0, done.err
    assert " of 2 of " in done.out + done.err and "--model-number" in done.out + done.err
    assert "changed by the reader: " in done.err and "13 residues of a repeated chain id renamed (A-2 13)" in done.err
