"""Dataset of binding: every row accounted for, signs and units against published values, groups of the splits."""

from __future__ import annotations

import json
import math
from collections import Counter

import numpy as np
import pytest
from protgraph_datasets.ddg_binding.dataset import FOLDER, METHODS, DdgBinding, _earlier_copies, binding_ddg
from protgraph_plugins.published import SourceFolder, prepare_dataset, read_tsv

import protgraph as pg
from protgraph.structure import clean, load_structure
from tests.datasets.public_layouts import lay_out_mutils

FAILURES = {"censored": 187, "no_affinity": 287, "no_temperature": 2, "held_out": 49}


@pytest.fixture(scope="module")
def folder(shared_data):
    return shared_data / "mutations" / "skempi_v2"


@pytest.fixture(scope="module")
def source(folder, tmp_path_factory):
    """Return the shared data, laid out like the repository mutils."""
    return lay_out_mutils(folder, tmp_path_factory.mktemp("mutils"))


@pytest.fixture(scope="module")
def variants(source, tmp_path_factory):
    dataset = DdgBinding(folder=str(tmp_path_factory.mktemp("unused")))
    return list(dataset.variants(SourceFolder(source, source)))


def test_the_card_has_license_unit_and_head(tmp_path):
    card = type(pg.datasets.create("ddg_binding"))(folder=str(tmp_path)).card
    target = card.tasks["ddg_binding"].target
    assert (target.unit, target.head_name, target.level) == ("kcal/mol", "mutation", "graph")
    (repository,) = card.provenance.sources
    files = {row["path"] for row in read_tsv(FOLDER / repository.files)}
    assert {f"data/SKEMPI2/PDBs/{row['complex'][:4]}.pdb" for row in read_tsv(FOLDER / "complexes.tsv")} <= files
    assert set(card.splits) == {"train", "val", "test"}
    for split, count in card.tasks["ddg_binding"].counts.items():
        assert count.proteins == count.labeled == card.splits[split].proteins


def test_no_cluster_is_in_two_splits_and_val_is_fifteen_percent():
    rows = read_tsv(FOLDER / "complexes.tsv")
    splits: dict[str, set[str]] = {}
    for row in rows:
        splits.setdefault(row["cluster"], set()).add(row["split"])
    assert all(len(found) == 1 for found in splits.values())
    assert len({row["complex"] for row in rows}) == len(rows) == 348
    assert {row["complex"] for row in rows if row["split"] == "test"} >= {"1BRS_A_D", "1KNE_A_P", "1C4Z_ABC_D"}


def test_partners_are_those_of_the_name(tmp_path):
    dataset = type(pg.datasets.create("ddg_binding"))(folder=str(tmp_path))
    assert dataset.partners("1DVF_AB_CD") == (("A", "B"), ("C", "D"))


@pytest.mark.parametrize(
    ("mutant", "wild_type", "temperature", "value"),
    [(1e-8, 1e-9, 298.15, 1.3642), (1e-9, 1e-8, 298.15, -1.3642), (2e-7, 2e-7, 310, 0.0)],
)
def test_a_factor_of_ten_is_1_36_kcal_per_mol(mutant, wild_type, temperature, value):
    assert binding_ddg(mutant, wild_type, temperature) == pytest.approx(value, abs=1e-4)


@pytest.mark.slow
def test_every_measurement_is_in_one_variant_or_failure(variants, folder):
    rows = [row for v in variants for row in v.row.removeprefix("skempi_v2.csv row ").split(", ")]
    assert sorted(map(int, rows)) == list(range(7085))
    assert Counter(v.problem[0] for v in variants if v.problem) == FAILURES
    known = [v for v in variants if v.problem is None]
    assert len(known) == 4620 + 922 + 147 + 2  # two name one residue twice, and are failures of their structure
    assert len({(v.structure, v.mutations) for v in known}) == len(known)
    assert all(math.isfinite(v.value) for v in known)


def test_known_hot_spots_weaken_binding(variants):
    """Barnase and barstar, ΔΔG of Schreiber & Fersht 1995, J. Mol. Biol. 248, 478: kcal/mol.

    D39A and D35A are in the source twice: the second values are of another buffer.
    """
    found = {v.mutations: v for v in variants if v.structure == "1BRS_A_D" and v.problem is None}
    for mutation, published in {"D:Y29F": -0.1, "D:Y29A": 3.4}.items():
        assert found[mutation].value == pytest.approx(published, abs=0.1), mutation
    for mutation, published, other in (("D:D39A", 7.7, 5.93), ("D:D35A", 4.5, 4.07)):
        assert found[mutation].value == pytest.approx((published + other) / 2, abs=0.1)
        assert found[mutation].row.count(",") == 1


def test_published_scores_are_recomputed_from_the_predictions(folder):
    """On all 170 measurements at 298.15 K, the targets of the published comparison."""
    rows = [r for r in read_tsv(folder / "mutations.tsv.gz") if r["split"] == "test" and r["held_out"] == "0"]
    rivals = json.loads((folder / "rivals.json").read_text())["models"]
    measured = np.array([float(row["ddg_298"]) for row in rows])
    assert len(rows) == 170
    for method in METHODS:
        name = method.replace(" ", "_")
        predicted = np.array([float(row[f"pred_{name}"]) for row in rows])
        own = rivals[name]["overall"]
        assert np.corrcoef(predicted, measured)[0, 1] == pytest.approx(own["pearson"], abs=0.001), method
        assert np.sqrt(((predicted - measured) ** 2).mean()) == pytest.approx(own["rmse"], abs=0.001), method


def test_a_folder_like_the_repository_is_read(tmp_path):
    """One complex: repeated measurements are averaged, and rows without an exact affinity have no value."""
    data = tmp_path / "data" / "SKEMPI2"
    for folder in (data / "PDBs", data / "predictions_test"):
        folder.mkdir(parents=True)
    head = (
        "#Pdb;Mutation(s)_cleaned;Affinity_mut (M);Affinity_mut_parsed;Affinity_wt (M);Affinity_wt_parsed;Temperature"
    )
    rows = [
        "1CSE_E_I;LI38G;1E-8;1E-8;1E-9;1E-9;298",
        "1CSE_E_I;LI38G;1E-7;1E-7;1E-9;1E-9;298(assumed)",
        "1CSE_E_I;LI38G,GE7aS;1E-9;1E-9;1E-9;1E-9;298",
        "1CSE_E_I;LI38A;>1E-4;1E-4;1E-9;1E-9;298",
        "1CSE_E_I;LI38D;n.b;;1E-9;1E-9;298",
        "1CSE_E_I;LI38E;1E-9;1E-9;1E-9;1E-9;",
        "1C4Z_ABC_D;LA1G;1E-9;1E-9;1E-9;1E-9;298",
    ]
    (data / "skempi_v2.csv").write_text("\n".join([head, *rows]) + "\n")
    for file in METHODS.values():
        (data / "predictions_test" / file).write_text("complex,mutstr,ddG_pred\n1CSE_E_I,LI38G,2.5\n")
    dataset = DdgBinding(folder=str(tmp_path / "unused"))
    found = {v.row.removeprefix("skempi_v2.csv row "): v for v in dataset.variants(SourceFolder(tmp_path, tmp_path))}
    kinds = {row: v.problem[0] for row, v in found.items() if v.problem}
    assert kinds == {"3": "censored", "4": "no_affinity", "5": "no_temperature", "6": "held_out"}
    assert found["0, 1"].value == pytest.approx(1.5 * 1.3635, abs=1e-3) and found["0, 1"].split == "train"
    assert found["0, 1"].columns == dict.fromkeys(METHODS, 2.5) and not found["2"].columns
    assert (found["2"].mutations, found["2"].value) == ("E:G7[A]S,I:L38G", 0.0)


def test_of_models_one_over_the_other_the_last_is_kept(source, tmp_path):
    dataset = DdgBinding(folder=str(tmp_path / "unused"))
    proteins = {protein.id: protein for protein in dataset.convert(SourceFolder(source, tmp_path))}
    one = proteins["1KBH_A_B"]
    joined, kept = clean(load_structure(one.path)), clean(one.structure())
    assert len(joined) == 20 * len(kept) == 20 * 106
    assert {"A:896", "A:931", "B:1126", "B:1173"} <= set(kept.ids)  # mutated residues
    distance = np.linalg.norm(kept.pos[:, None] - kept.pos, axis=-1)[np.triu_indices(len(kept), 1)]
    assert distance.min() > 3  # 2 and less in the joined file
    assert [protein.id for protein in proteins.values() if protein.read is not None] == ["1KBH_A_B"]
    assert one.source_bytes() != one.path.read_bytes()


@pytest.mark.slow
def test_the_prepared_set_has_the_counts_of_the_card_and_a_failure_for_every_other_row(source, tmp_path):
    dataset = type(pg.datasets.create("ddg_binding"))(folder=str(tmp_path / "made"))
    prepare_dataset(dataset, source)
    assert Counter(row["kind"] for row in dataset.failures) == FAILURES | {"duplicate": 2}
    assert len(dataset.examples("ddg_binding")) == 4620 + 922 + 147
    example = dataset.examples("ddg_binding", "test")[0]
    chains = {name for side in dataset.partners(example.path.stem) for name in side}
    residues = dataset.read(example)
    assert set(residues.chain_names) == chains
    assert residues.partners == dataset.partners(example.path.stem) and set(residues.side) == {0, 1}


def test_numbers_of_four_digits_are_read_without_a_space_before_them(tmp_path):
    file = tmp_path / "1HE8.mapping"
    file.write_text("LYS A 999  1\nLYS A1000  2\nGLY A1000A 3\nLYS A1000  4\n\n")
    assert _earlier_copies(file) == {("A", 2)}
