"""Dataset pdb_core against its tables and against independently computed contacts."""

from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path

import biotite.structure as struc
import biotite.structure.io.pdbx as pdbx
import numpy as np
import pyarrow.parquet as pq
import pytest
from protgraph_datasets.pdb_core import PdbCore
from protgraph_datasets.pdb_core.prepare import FOLDER, entry_labels, read_tables, write_labels

from protgraph import tasks as registered
from protgraph.data.datasets.card import SplitCount
from protgraph.data.datasets.labels import align
from protgraph.errors import DatasetError, UnknownNameError

LABELED = ("secondary_structure", "ligand_binding", "interface")
DERIVED = (
    *("inverse_folding", "b_factor", "structure_denoising", "structure_prediction"),
    *("masked_lm", "next_residue", "contact"),
)
SOME_ENTRIES = ("1ubq", "3psg", "6lu7", "1bgs", "5cq2", "2bm2", "1huy")


@pytest.fixture(scope="module")
def pdb_core() -> PdbCore:
    return PdbCore()


@pytest.fixture(scope="module")
def chains() -> dict[tuple[str, str], dict[str, str]]:
    with open(FOLDER / "chains.tsv", encoding="utf-8", newline="") as file:
        return {(row["entry"], row["chain"]): row for row in csv.DictReader(file, delimiter="\t")}


@pytest.fixture(scope="module")
def table() -> dict[str, list]:
    return pq.read_table(FOLDER / "labels.parquet").to_pydict()


def test_counts_per_chain_equal_chains_tsv(table, chains):
    keys = list(zip(table["entry"], table["chain"], strict=True))
    residues = Counter(keys)
    ligand = Counter(k for k, yes in zip(keys, table["ligand_contact"], strict=True) if yes)
    interface = Counter(k for k, yes in zip(keys, table["interface"], strict=True) if yes)
    assert set(residues) == set(chains) and len(chains) == 420
    for key, row in chains.items():
        assert residues[key] == int(row["n_residues"])
        if row["ligand_complete"] == "1":
            assert ligand[key] == int(row["n_ligand_residues_contact"])
        if row["interface_complete"] != "0":
            assert interface[key] == int(row["n_interface_residues"])


def test_labels_are_null_for_incomplete_entries_only(table, chains):
    for i, key in enumerate(zip(table["entry"], table["chain"], strict=True)):
        assert (table["ligand_contact"][i] is None) == (chains[key]["ligand_complete"] == "0")
        assert (table["interface"][i] is None) == (chains[key]["interface_complete"] == "0")


def test_dssp_and_positives_equal_the_baselines(table, chains):
    baselines = json.loads((FOLDER / "baselines.json").read_text())
    split = [chains[key]["split"] for key in zip(table["entry"], table["chain"], strict=True)]
    letters = Counter(zip(split, table["dssp8"], strict=True))
    for name, expected in baselines.items():
        hec = [sum(letters[name, x] for x in group) for group in ("HGI", "EB", "CTSP")]
        assert [*hec, letters[name, None]] == expected["dssp3_hec"]
        for column, count in (("interface", "itf_pos"), ("ligand_contact", "lig_pos")):
            assert sum(bool(x) for s, x in zip(split, table[column], strict=True) if s == name) == expected[count]


@pytest.mark.parametrize("task", LABELED)
def test_counts_of_the_card_equal_the_labels(pdb_core, task):
    card = pdb_core.card.tasks[task]
    counts: dict[str, SplitCount] = {}
    for example in pdb_core.examples(task):
        y = pdb_core.labels(task, example).values
        known = y >= 0 if y.ndim == 1 else ~np.isnan(y[:, 0])
        per_class = np.bincount(y[known], minlength=3) if y.ndim == 1 else [np.nansum(y)]
        count = SplitCount(1, len(y), int(known.sum()), tuple(int(n) for n in per_class))
        counts[example.split] = counts[example.split] + count if example.split in counts else count
    assert counts == dict(card.counts)


@pytest.mark.parametrize("task", DERIVED)
def test_counts_of_the_card_for_tasks_without_table_labels(pdb_core, chains, task):
    counts: dict[str, SplitCount] = {}
    for example in pdb_core.examples(task):
        assert pdb_core.labels(task, example) is None
        count = SplitCount(1, int(chains[example.path.stem, example.chains[0]]["n_residues"]))
        counts[example.split] = counts[example.split] + count if example.split in counts else count
    assert counts == dict(pdb_core.card.tasks[task].counts)


def test_counts_of_the_card_for_each_split(pdb_core, chains):
    for split, count in pdb_core.card.splits.items():
        rows = [row for row in chains.values() if row["split"] == split]
        assert count == SplitCount(len(rows), sum(int(row["n_residues"]) for row in rows))


def test_targets_equal_those_of_the_registered_tasks(pdb_core):
    tasks = [registered.get(name) for name in pdb_core.tasks()]
    assert [pdb_core.target(task.name) for task in tasks] == [task.target for task in tasks]


def test_no_cluster_component_or_entry_is_in_two_splits(chains):
    for column in ("cluster30", "component", "entry"):
        splits: dict[str, set[str]] = {}
        for row in chains.values():
            splits.setdefault(row[column], set()).add(row["split"])
        assert all(len(names) == 1 for names in splits.values())


@pytest.mark.parametrize("task", ["secondary_structure", "inverse_folding", "b_factor", "structure_denoising"])
def test_only_train_has_each_sequence_of_an_entry_once(pdb_core, chains, task):
    rows = [chains[e.path.stem, e.chains[0]] for e in pdb_core.examples(task)]
    train = [(r["entry"], r["sequence"]) for r in rows if r["split"] == "train"]
    assert len(set(train)) == len(train)
    if task != "b_factor":
        assert sum(r["split"] != "train" for r in rows) == sum(r["split"] != "train" for r in chains.values())


def test_b_factors_are_from_x_ray_entries_only(pdb_core, chains):
    for example in pdb_core.examples("b_factor"):
        row = chains[example.path.stem, example.chains[0]]
        assert row["has_bfactor"] == "1" and row["method"] == "X-RAY DIFFRACTION"


@pytest.mark.parametrize("entry", SOME_ENTRIES)
def test_prepare_reproduces_the_labels_of_an_entry(table, entry):
    entries, dssp = read_tables()
    computed = entry_labels(entries[entry], dssp)
    committed = [i for i, e in enumerate(table["entry"]) if e == entry]
    for name in table:
        assert [value for part in computed for value in part[name]] == [table[name][i] for i in committed], name


@pytest.mark.slow
def test_prepare_reproduces_the_file(tmp_path):
    paths = [tmp_path / "labels.parquet", FOLDER / "labels.parquet"]
    write_labels(paths[0])
    written, committed = (pq.ParquetFile(path) for path in paths)
    assert written.read().equals(committed.read())
    if written.metadata.created_by == committed.metadata.created_by:  # the same version of Arrow
        assert paths[0].read_bytes() == paths[1].read_bytes()


def test_prepare_raises_if_a_count_differs():
    entries, dssp = read_tables()
    row = {**entries["6lu7"][0], "n_ligand_residues_contact": "99"}
    with pytest.raises(DatasetError, match="6lu7 chain A: n_ligand_residues_contact.*99.*18"):
        entry_labels([row], dssp)


@pytest.mark.parametrize(("entry", "chain"), [("2d7t", "H"), ("1fni", "A"), ("19hc", "A"), ("6lu7", "A")])
def test_contacts_equal_a_dense_distance_matrix(pdb_core, chains, entry, chain):
    """Contacts from the file with biotite only, without a k-d tree."""
    file = pdbx.BinaryCIFFile.read(Path(FOLDER) / "structures" / f"{entry}.bcif")
    atoms = pdbx.get_structure(file, model=1, use_author_fields=True)
    peptide = struc.filter_amino_acids(atoms)
    own = atoms[peptide & (atoms.chain_id == chain)]
    ligands = atoms[np.isin(atoms.res_name, chains[entry, chain]["ligands"].split(","))]
    ligands = ligands[~(struc.filter_canonical_amino_acids(ligands) & (ligands.chain_id == chain))]
    lengths = Counter(c for c, _ in {(a.chain_id, a.res_id) for a in atoms[peptide]})
    partners = [c for c, n in lengths.items() if n >= 10 and c != chain]
    others = atoms[peptide & np.isin(atoms.chain_id, partners)]

    def residues_near(points: np.ndarray, cutoff: float) -> set[tuple[int, str]]:
        if len(points) == 0:
            return set()
        near = np.linalg.norm(own.coord[:, None].astype(float) - points[None].astype(float), axis=-1).min(1) <= cutoff
        return {(int(r), str(i)) for r, i in zip(own.res_id[near], own.ins_code[near], strict=True)}

    for task, points, cutoff in (("ligand_binding", ligands.coord, 4.5), ("interface", others.coord, 5.0)):
        example = next((e for e in pdb_core.examples(task) if e.id == f"{entry}_{chain}"), None)
        if example is None:
            assert not residues_near(points, cutoff)
            continue
        labels = pdb_core.labels(task, example)
        yes = labels.values[:, 0] == 1
        positive = set(zip(labels.res_id[yes].tolist(), labels.ins_code[yes].tolist(), strict=True))
        assert residues_near(points, cutoff) == positive


@pytest.mark.parametrize("task", LABELED)
def test_every_label_is_aligned_to_a_residue(pdb_core, task):
    for example in pdb_core.examples(task)[::12]:
        residues = pdb_core.read(example)
        labels = pdb_core.labels(task, example)
        assert len(align(labels, residues)) == len(residues) == len(labels.values)
        assert labels.ids == residues.ids


@pytest.mark.slow
@pytest.mark.parametrize("task", [*LABELED, *DERIVED])
def test_check_equals_the_counts_of_the_card(pdb_core, task):
    assert pdb_core.check(task) == dict(pdb_core.card.tasks[task].counts)


def test_examples_are_one_chain_each_with_unique_ids(pdb_core):
    for task in pdb_core.tasks():
        examples = pdb_core.examples(task)
        assert len({e.id for e in examples}) == len(examples)
        assert all(len(e.chains) == 1 and e.path.is_file() for e in examples)
        by_split = [e for split in pdb_core.splits(task) for e in pdb_core.examples(task, split)]
        assert sorted(by_split, key=lambda e: e.id) == sorted(examples, key=lambda e: e.id)


def test_tasks_of_ts50(pdb_core):
    with_ts50 = [t for t in pdb_core.tasks() if "ts50" in pdb_core.splits(t)]
    assert with_ts50 == ["secondary_structure", *(t for t in DERIVED if t != "b_factor")]


def test_unknown_task_raises_with_a_suggestion(pdb_core):
    with pytest.raises(UnknownNameError, match="'interfaces'.*'interface'"):
        pdb_core.examples("interfaces")
