"""Datasets ``ligand_site`` and ``ligand_site_dsdp``: sets, ligands apart, counts and floors of the source."""

from __future__ import annotations

import gzip
import tarfile
from pathlib import Path

import numpy as np
import pytest
import torch
from protgraph_datasets.ligand_site.dataset import LigandSite, LigandSiteDsdp
from protgraph_plugins.published import SourceFolder, prepare_dataset, write_tsv
from scipy.spatial import cKDTree
from torchmetrics.functional import average_precision

from protgraph.data import ResidueLabels, align
from protgraph.errors import DatasetError
from protgraph.structure import clean, load_structure

STRUCTURES = Path(__file__).resolve().parents[2] / "datasets" / "pdb_core" / "structures"
README_FLOOR = 0.1043  # AUPRC of the number of neighbors on test, in the table of the source's README
SETS = {"1crn": "dsdp", "1ppe": "pdbbind", "1lcd": "timesplit"}
SPLITS = {"1crn": "train", "1ppe": "train", "1lcd": "test"}


def write_rows(path: Path, rows: list[tuple[str, ...]]) -> None:
    write_tsv(path.with_suffix(""), rows)
    path.write_bytes(gzip.compress(path.with_suffix("").read_bytes()))


@pytest.fixture(scope="module")
def source(tmp_path_factory) -> Path:
    """Return a folder laid out as the source: three entries with two positives each, one of its own ligand."""
    folder = tmp_path_factory.mktemp("ligand_site")
    labels = [("file", "chain", "res_id", "ins_code", "label", "label_own")]
    splits = [("file", "split", "chains", "set", "pdb", "cluster30")]
    ligands = [("file", "ligand", "res_name", "element", "x", "y", "z")]
    for number, entry in enumerate(SETS, 1):
        file = f"{entry}.bcif"
        with tarfile.open(folder / f"structures_{number}.tar.xz", "w:xz") as archive:
            archive.add(STRUCTURES / file, file)
        residues = clean(load_structure(STRUCTURES / file))
        residues = residues.chains([residues.chain_names[0]])
        splits.append((file, SPLITS[entry], residues.chain_names[0], SETS[entry], entry, f"cluster{number}"))
        keys = zip(residues.chain.tolist(), residues.res_id.tolist(), residues.ins_code.tolist(), strict=True)
        for i, (chain, res_id, ins_code) in enumerate(keys):
            labels.append((file, chain, str(res_id), ins_code, str(int(i < 2)), str(int(i == 0))))
        ligands += [(file, "1", "NAP", "C", "1.5", "2", "3"), (file, "1", "NAP", "O", "4", "5", "6")]
        ligands.append((file, "2", "ATP", "P", "7", "8", str(number)))
    write_tsv(folder / "splits.tsv", splits)
    write_rows(folder / "labels.tsv.gz", labels)
    write_rows(folder / "ligands.tsv.gz", ligands)
    return folder


def card(name: str, counts: dict[str, tuple[int, int]]) -> str:
    """Return a card of the tiny source: split → proteins and residues."""
    lines = [f'name = "{name}"', 'version = "1"', 'license = "none"', 'citation = "none"', 'description = "none"']
    lines += ["[splits]", 'rule = "given"']
    lines += [f"{split} = {{ proteins = {p}, residues = {n} }}" for split, (p, n) in counts.items()]
    for task, positives in (("ligand_site", 2), ("ligand_site_own", 1)):
        lines += [f"[tasks.{task}]", 'level = "node"', 'kind = "multilabel"', f'names = ["{task}"]']
        lines += ['labels = "none"', 'examples = "all"']
        for split, (p, n) in counts.items():
            lines.append(
                f"splits.{split} = {{ proteins = {p}, residues = {n}, labeled = {n}, per_class = [{positives * p}] }}"
            )
    return "\n".join(lines)


def prepared(base: type[LigandSite], counts: dict[str, tuple[int, int]], source: Path, folder: Path) -> LigandSite:
    path = folder / "card.toml"
    path.write_text(card(base.__name__.lower(), counts))
    dataset = type("Tiny", (base,), {"card_path": path})(folder=str(folder / "prepared"))
    prepare_dataset(dataset, source)
    return dataset


def test_the_ligands_are_beside_the_structures_and_not_in_them(source, tmp_path):
    dataset = prepared(LigandSite, {"train": (2, 269), "test": (1, 51)}, source, tmp_path)
    examples = dataset.examples("ligand_site")
    assert [(e.id, e.split) for e in examples] == list(SPLITS.items())
    for example in examples:
        atoms = load_structure(example.path).atoms
        assert len(clean(load_structure(example.path)).atom_pos) == len(atoms)  # the protein and nothing else
    first, second = dataset.ligands("1ppe")
    assert (first.res_name, first.elements.tolist(), first.pos.tolist()) == (
        "NAP",
        ["C", "O"],
        [[1.5, 2, 3], [4, 5, 6]],
    )
    assert (second.res_name, second.pos.tolist()) == ("ATP", [[7, 8, 2]])
    assert {name: row["set"] for name, row in dataset.origins.items()} == SETS
    assert "PDBbind" in dataset.origins["1ppe"]["license"] and "Apache" in dataset.origins["1crn"]["license"]
    assert dataset.links(examples[0]) == {"cluster cluster1"}


def test_both_labels_and_unknown_ones_are_read(source, tmp_path):
    (protein, *_) = LigandSite().convert(SourceFolder(source, tmp_path))
    assert protein.residue_labels["ligand_site"][:3].tolist() == [1, 1, 0]
    assert protein.residue_labels["ligand_site_own"][:3].tolist() == [1, 0, 0]


def test_rows_of_pdbbind_can_be_left_out(source, tmp_path):
    dataset = prepared(LigandSiteDsdp, {"train": (1, 46), "test": (1, 51)}, source, tmp_path)
    assert list(dataset.rows) == list(dataset.origins) == ["1crn", "1lcd"]
    with pytest.raises(KeyError):
        dataset.ligands("1ppe")


def test_an_archive_that_lacks_a_structure_is_an_error(source, tmp_path):
    for path in source.iterdir():
        (tmp_path / path.name).symlink_to(path)
    (tmp_path / "structures_3.tar.xz").unlink()
    (tmp_path / "structures_3").mkdir()
    with pytest.raises(DatasetError, match=r"1lcd\.bcif"):
        list(LigandSite().convert(SourceFolder(tmp_path, tmp_path / "scratch")))


@pytest.mark.parametrize("base", [LigandSite, LigandSiteDsdp])
def test_the_card_has_license_terms_leaks_and_floors(base, tmp_path):
    card = base(folder=str(tmp_path)).card
    assert bool(card.provenance.weights_note) == (base is LigandSite)  # PDBbind
    assert ("pdbbind" in card.license.lower()) == (base is LigandSite)
    assert {leak.split for leak in card.provenance.known_leaks} == {"test", "near_test"}
    for task in card.tasks.values():
        assert task.floors and task.counts.keys() == card.splits.keys()
    assert card.splits["test"].proteins == 465


@pytest.mark.slow
def test_the_test_split_of_the_real_source_has_the_counts_of_the_card_and_the_floors_of_its_readme(
    shared_data, tmp_path
):
    source = SourceFolder(shared_data / "sites" / "ligand_site", tmp_path)
    dataset, neighbors, labels = LigandSite(), [], []
    proteins = [protein for protein in dataset.convert(source) if protein.split == "test"]
    for protein in proteins:
        residues = clean(protein.structure())
        aligned = align(ResidueLabels(*protein.residues, protein.residue_labels["ligand_site"]), residues, strict=False)
        pairs = cKDTree(residues.pos.astype(np.float64)).query_ball_point(residues.pos.astype(np.float64), 10.0)
        neighbors += [len(near) for near in pairs]
        labels.append(aligned[:, 0])
    y = np.concatenate(labels)
    count = dataset.card.tasks["ligand_site"].counts["test"]
    assert (count.proteins, count.residues, count.per_class) == (len(proteins), len(y), (int(y.sum()),))
    ranking = torch.tensor(neighbors) / max(neighbors)  # torchmetrics takes the sigmoid of scores above 1
    found = average_precision(ranking, torch.from_numpy(y).long(), task="binary")
    assert float(found) == pytest.approx(README_FLOOR, abs=1e-4)
    values = [score.value for score in dataset.card.tasks["ligand_site"].floors if score.split == "test"]
    assert README_FLOOR in values
