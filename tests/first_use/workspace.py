"""Write the inputs of the replay: structure files, tables, trained models, a graph store, and files that are broken."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path

from tests.first_use.replay import run_command

__all__ = ["SMALL", "write_inputs"]

ROOT = Path(__file__).resolve().parents[2]
STRUCTURES = ROOT / "datasets" / "pdb_core" / "structures"
#: Committed entries of few residues, and the format that each is written in.
SMALL = {"1ajj": ".bcif", "1crn": ".pdb", "1vii": ".cif", "2erl": ".bcif", "3u7t": ".pdb", "1bx8": ".cif"}
_TRAIN = "--epochs 1 -q --log none --device cpu"
_SPEC = 'name = "mine"\ndataset = "A"\ntasks = ["secondary_structure"]\nmodels = ["gcn"]\nseeds = [0]\njobs = 1\n'


def write_inputs(folder: Path) -> None:
    """Write all inputs into an existing empty folder, which must be the current one."""
    _write_structures(folder)
    _write_tables(folder)
    _write_broken_files(folder)
    _write_specs(folder)
    for args in (
        f"train gcn --data A --task secondary_structure -o ss.safetensors {_TRAIN}",
        f"train gpt --data A --task next_residue -o gpt.safetensors {_TRAIN}",
        f"train gcn --data A --task inverse_folding -o inv.safetensors {_TRAIN}",
        "featurize A -o store",
        "embed ss.safetensors A -o vectors.npz",
    ):
        code, out, err = run_command(args.split())
        if code:
            raise RuntimeError(f"protgraph {args}: exit code {code}\n{out}{err}")
    blob = (folder / "ss.safetensors").read_bytes()
    (folder / "cut.safetensors").write_bytes(blob[: len(blob) // 2])
    (folder / "short.safetensors").write_bytes(blob[:20])
    for path in folder.rglob("*.run"):
        shutil.rmtree(path)


def _write_structures(folder: Path) -> None:
    (folder / "A").mkdir()
    (folder / "empty").mkdir()
    for name, suffix in SMALL.items():
        _convert(STRUCTURES / f"{name}.bcif", folder / "A" / f"{name}{suffix}")
    _convert(STRUCTURES / "1crn.bcif", folder / "1crn.pdb")
    _convert(STRUCTURES / "1vii.bcif", folder / "1vii.cif")
    _convert(STRUCTURES / "1lcd.bcif", folder / "dna.pdb", only="nucleotide")
    lines = [line for line in (folder / "1crn.pdb").read_text().splitlines() if line.startswith("ATOM")]
    (folder / "ca.pdb").write_text("\n".join(line for line in lines if line[12:16] == " CA ") + "\nEND\n")
    (folder / "one.pdb").write_text("\n".join(line for line in lines if int(line[22:26]) == 1) + "\nEND\n")
    water = "HETATM    1  O   HOH A   1       1.000   2.000   3.000  1.00 10.00           O  \nEND\n"
    (folder / "water.pdb").write_text(water)
    (folder / "seqs.fasta").write_text(">one\nMKTAYIAKQR\n>two\nMADEEKLPPG\n")


def _convert(source: Path, target: Path, *, only: str | None = None) -> None:
    """Write an entry in the format of the suffix, or its protein or nucleotide atoms only."""
    import biotite.structure as bs
    import biotite.structure.io.pdb as pdb
    import biotite.structure.io.pdbx as pdbx

    if target.suffix == ".bcif":
        shutil.copy(source, target)
        return
    options = {"model": 1, "extra_fields": ["b_factor", "occupancy"], "use_author_fields": True}
    atoms = pdbx.get_structure(pdbx.BinaryCIFFile.read(source), **options)
    if only == "nucleotide":
        atoms = atoms[bs.filter_nucleotides(atoms)]
    file = pdb.PDBFile() if target.suffix == ".pdb" else pdbx.CIFFile()
    if isinstance(file, pdb.PDBFile):
        file.set_structure(atoms)
    else:
        pdbx.set_structure(file, atoms, data_block=target.stem)
    file.write(target)


def _write_tables(folder: Path) -> None:
    from protgraph.structure import clean, load_structure

    files = sorted((folder / "A").iterdir())
    residues = [("file", "chain", "res_id", "ins_code", "kind")]
    for path in files:
        r = clean(load_structure(path))
        kinds = ["odd" if t % 2 else "even" for t in r.aatype]
        residues += [(path.name, *key) for key in zip(r.chain, r.res_id, r.ins_code, kinds, strict=True)]
    _write_csv(folder / "residues.csv", residues)
    numbers = [1.25, 2.5, 3.75, 4.125, 5.5, 6.875]
    pairs = list(zip(files, numbers, strict=True))
    _write_csv(folder / "size.csv", [("file", "size"), *((p.name, x) for p, x in pairs)])
    _write_csv(folder / "yes.csv", [("file", "site"), *((p.name, i % 2) for i, p in enumerate(files))])
    _write_csv(folder / "abc.csv", [("file", "a", "b", "c"), *((p.name, x, 2 * x, 3 * x) for p, x in pairs)])
    _write_csv(folder / "zones.csv", [("file", "zone"), *((p.name, "NC"[i % 2]) for i, p in enumerate(files))])
    _write_csv(folder / "tm.csv", [("file", "tm"), *((p.name, 40 + x) for p, x in pairs)])
    _write_csv(folder / "no_header.csv", [(p.name, x) for p, x in pairs])
    _write_csv(folder / "other_files.csv", [("file", "size"), ("9xyz.cif", 1.5)])
    (folder / "empty.csv").write_text("")
    (folder / "header_only.csv").write_text("file,size\n")


def _write_csv(path: Path, rows: list[tuple]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)


def _write_broken_files(folder: Path) -> None:
    (folder / "notes.txt").write_text("bring milk\n")
    (folder / "text.pdb").write_text("hello\n")
    (folder / "zero.pdb").write_text("")
    (folder / "bad.cif").write_text("data_x\n_cell.length_a 1\n")
    (folder / "bad.fasta").write_text("no header\n")
    (folder / "odd.fasta").write_text(">one\nMK7AY\n")
    (folder / "bytes.pdb").write_bytes(bytes(range(256)) * 8)
    (folder / "foreign.safetensors").write_bytes(b"\x02\x00\x00\x00\x00\x00\x00\x00{}")
    (folder / "text.safetensors").write_text("not a checkpoint")
    (folder / "raises.py").write_text("# a fault\nraise ValueError('own bug')\n")
    (folder / "syntax.py").write_text("x = = 1\n")
    (folder / "exits.py").write_text("import sys\nsys.exit(5)\n")
    layer = (
        '@pg.layers.register("my_layer")\nclass MyLayer(pg.GraphLayer):\n    reads, writes = ("h",), ("h",)\n\n'
        '    def forward(self, f):\n        return {"h": f["h"]}\n'
    )
    (folder / "my_layer.py").write_text(f"import protgraph as pg\n\n{layer}")
    (folder / "list.txt").write_text("1crn.pdb\n1vii.cif\n")
    (folder / "bad_list.txt").write_text("1crn.pdb\nnothere.pdb\n")
    (folder / "earlier.csv").write_text("an earlier result\n")
    (folder / "earlier.npz").write_bytes(b"an earlier result")
    (folder / "earlier.html").write_text("an earlier result\n")
    (folder / "earlier.fasta").write_text(">an\nEARLIER\n")
    (folder / "earlier.safetensors").write_bytes(b"an earlier result")
    mixed = folder / "mixed"
    mixed.mkdir()
    shutil.copy(folder / "1crn.pdb", mixed / "1crn.pdb")
    shutil.copy(folder / "text.pdb", mixed / "text.pdb")


def _write_specs(folder: Path) -> None:
    (folder / "spec.toml").write_text(_SPEC)
    for name, old, new in (
        ("no_toml", _SPEC, "name = = 3"),
        ("empty_spec", _SPEC, ""),
        ("epochs_text", "jobs = 1\n", 'jobs = 1\n[fit]\nepochs = "three"\n'),
        ("epochs_negative", "jobs = 1\n", "jobs = 1\n[fit]\nepochs = -3\n"),
        ("unknown_key", "jobs = 1\n", "jobs = 1\nepoch = 3\n"),
        ("unknown_fit_key", "jobs = 1\n", "jobs = 1\n[fit]\nepoch = 3\n"),
        ("unknown_model", '"gcn"', '"gnc"'),
        ("unknown_task", '"secondary_structure"', '"secondary_structur"'),
        ("unknown_dataset", '"A"', '"nothere"'),
        ("no_models", '["gcn"]', "[]"),
        ("no_seeds", "seeds = [0]", "seeds = []"),
        ("negative_seed", "seeds = [0]", "seeds = [-1]"),
        ("text_seed", "seeds = [0]", 'seeds = ["a"]'),
        ("models_text", '["gcn"]', '"gcn"'),
        ("nope_task", 'tasks = ["secondary_structure"]', 'labels = "zones.csv"\ntasks = ["nope"]'),
        ("missing_labels", 'dataset = "A"', 'dataset = "A"\nlabels = "nothere.csv"'),
        ("zero_jobs", "jobs = 1", "jobs = -1"),
        ("unknown_baseline", "jobs = 1\n", 'jobs = 1\nbaselines = ["gat"]\n'),
    ):
        (folder / f"{name}.toml").write_text(_SPEC.replace(old, new))
