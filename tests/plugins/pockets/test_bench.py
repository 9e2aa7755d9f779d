"""``protgraph bench pockets`` on a folder whose ligands lie at known places, and other programs where installed."""

from __future__ import annotations

import gzip
import shutil
import sys
import tarfile
from pathlib import Path

import numpy as np
import pytest
from protgraph_plugins.pockets import find_pockets
from protgraph_plugins.pockets.metrics import dca
from protgraph_plugins.pockets.rivals import RIVALS, read_concavity_grid

from protgraph.structure.io import read_residues

# Three ligands: at the best pocket, at the third one, and far outside.
RANKS = (1, 3, None)


@pytest.fixture(scope="module")
def source(structures_dir) -> Path:
    return structures_dir / "1pdo.bcif"


@pytest.fixture(scope="module")
def folder(source, tmp_path_factory) -> Path:
    """A folder in the layout of ligand_site with one protein for each ligand."""
    folder = tmp_path_factory.mktemp("ligand_site")
    residues, pockets = read_residues(source), find_pockets(source, model="none")
    splits, atoms, labels = ["file\tsplit\tcluster30"], ["file\tligand\tx\ty\tz"], []
    with tarfile.open(folder / "structures_1.tar.xz", "w:xz") as archive:
        for number, rank in enumerate(RANKS):
            file = f"p{number}.bcif"
            archive.add(source, f"structures/{file}")
            center = np.full(3, 500.0) if rank is None else pockets[rank - 1].center
            splits.append(f"{file}\tval\tc{number}")
            atoms.append(f"{file}\t1\t" + "\t".join(f"{x:.3f}" for x in center))
            identities = zip(residues.chain, residues.res_id, strict=True)
            labels += [f"{file}\t{chain}\t{res_id}\t\t0" for chain, res_id in identities]
    (folder / "splits.tsv").write_text("\n".join(splits) + "\n")
    _write_gzip(folder / "ligands.tsv.gz", atoms)
    _write_gzip(folder / "labels.tsv.gz", ["file\tchain\tres_id\tins_code\tlabel", *labels])
    return folder


def _write_gzip(path: Path, lines: list[str]) -> None:
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")


def _cells(text: str, name: str) -> list[str]:
    """Return the cells of the row of a program."""
    row = next(line for line in text.splitlines() if line.startswith(f"| {name} |"))
    return [cell.strip() for cell in row.strip("|").split("|")]


def test_shares_are_those_of_ligands_at_known_pockets(run, folder):
    result = run("bench", "pockets", folder, "--split", "val", "--model", "none")
    assert result.code == 0
    _, proteins, ligands, best, more, to_center, *_ = _cells(result.out, "none")
    assert (proteins, ligands) == ("3", "3")
    # One atom is its own center, so both distances agree.
    assert (best[:5], more[:5], to_center[:5]) == ("0.333", "0.667", "0.333")


def test_a_limit_takes_proteins_from_the_whole_list(run, folder):
    result = run("bench", "pockets", folder, "--split", "val", "--model", "none", "--limit", 2)
    assert _cells(result.out, "none")[1] == "2"


@pytest.mark.parametrize(("module", "name"), [("pyKVFinder", "pykvfinder"), ("pocketnet", "pocketnet")])
def test_a_program_that_is_not_installed_is_named(run, folder, monkeypatch, module, name):
    from protgraph_plugins.pockets import rivals

    rivals._pocketnet.cache_clear()
    monkeypatch.setitem(sys.modules, module, None)
    result = run("bench", "pockets", folder, "--split", "val", "--model", name)
    assert result.code == 2
    assert f"pip install {module}" in result.err


def test_a_program_that_is_not_on_the_path_is_named(run, folder, monkeypatch):
    monkeypatch.setenv("PATH", "")
    result = run("bench", "pockets", folder, "--split", "val", "--model", "concavity")
    assert result.code == 2
    assert "apt-get install concavity" in result.err


def test_points_of_concavity_are_read_by_pocket():
    """Lines of ConCavity 0.1 (Debian) for 1PDO."""
    text = (
        "HETATM    0 H    POC 1   0      12.478  27.267  27.888  1.88  1.88            \n"
        "HETATM    1 H    POC 1   0      12.478  27.267  28.884  2.24  2.24            \n"
        "HETATM  298 H    POC 1   1      17.458  10.335  41.832  2.07  2.07            \n"
    )
    points = read_concavity_grid(text)
    assert {pocket: rows.tolist() for pocket, rows in points.items()} == {
        0: [[12.478, 27.267, 27.888, 1.88], [12.478, 27.267, 28.884, 2.24]],
        1: [[17.458, 10.335, 41.832, 2.07]],
    }


def test_probabilities_of_another_program_are_not_fitted(run, folder, tmp_path):
    fit = tmp_path / "fit.json"
    result = run("bench", "pockets", folder, "--split", "val", "--model", "pykvfinder", "--fit", fit)
    assert (result.code, fit.exists()) == (2, False)
    assert "--model pykvfinder" in result.err


@pytest.mark.parametrize("name", sorted(RIVALS))
def test_residues_of_other_programs_surround_their_pockets(source, name):
    if name == "concavity" and shutil.which(name) is None:
        pytest.skip("concavity is not on the path")
    if name != "concavity":
        pytest.importorskip({"pykvfinder": "pyKVFinder"}.get(name, name))
    residues = read_residues(source)
    ranked = RIVALS[name](residues)
    assert ranked.residues.shape == (len(ranked.centers), len(residues))
    assert (np.diff(ranked.scores) <= 0).all()
    # Each center lies between its residues.
    for center, lining in zip(ranked.centers, ranked.residues, strict=True):
        atoms = residues.atom_pos[lining[residues.atom_residue]]
        assert dca(center[None], [atoms])[0, 0] < 8


def test_the_calibration_error_of_copies_counts_once_with_one_vote_per_cluster():
    from protgraph_plugins.pockets.bench import _calibration_errors, _Scored

    def protein(cluster: str, probability: float, bound: int) -> _Scored:
        values = {name: np.zeros((4, 1)) for name in _Scored._fields}
        is_bound = np.arange(4) < bound
        return _Scored(**values | {"cluster": cluster, "probability": np.full(4, probability), "is_bound": is_bound})

    good, bad = protein("a", 0.5, 2), protein("b", 0.9, 1)
    assert _calibration_errors([good, bad]) == pytest.approx((0.325, 0.325))
    pooled, of_clusters = _calibration_errors([good, bad, bad, bad])
    assert (pooled, of_clusters) == pytest.approx((0.75 * 0.65, 0.325))
