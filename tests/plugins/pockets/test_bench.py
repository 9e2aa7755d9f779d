"""``protgraph bench pockets`` on a folder whose ligands lie at known places, and other programs where installed."""

from __future__ import annotations

import gzip
import shutil
import sys
import tarfile
from pathlib import Path

import numpy as np
import pytest
from protgraph_plugins.pocketnet.weights import find_pocketnet
from protgraph_plugins.pockets import find_pockets
from protgraph_plugins.pockets.metrics import dca
from protgraph_plugins.pockets.rivals import RIVALS, read_concavity_grid

from protgraph.errors import ExternalProgramError, MissingExtraError
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


def test_a_program_that_is_not_installed_is_named(run, folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyKVFinder", None)
    result = run("bench", "pockets", folder, "--split", "val", "--model", "pykvfinder")
    assert result.code == 2
    assert "pip install pyKVFinder" in result.err


def test_missing_weights_of_pocketnet_are_named(run, folder, monkeypatch, tmp_path):
    from protgraph_plugins.pockets import rivals

    rivals._pocketnet.cache_clear()
    monkeypatch.setenv("PROTGRAPH_POCKETNET", str(tmp_path))
    result = run("bench", "pockets", folder, "--split", "val", "--model", "pocketnet")
    assert result.code == 2
    assert "PROTGRAPH_POCKETNET" in result.err


@pytest.mark.parametrize(
    ("name", "command"),
    [("concavity", "apt-get install concavity"), ("fpocket", "conda install -c conda-forge fpocket")],
)
def test_a_program_that_is_not_on_the_path_is_named(run, folder, monkeypatch, name, command):
    monkeypatch.setenv("PATH", "")
    result = run("bench", "pockets", folder, "--split", "val", "--model", name)
    assert result.code == 2
    assert command in result.err


# An executable that writes what fpocket 4 writes for two pockets, as tables of its manual and source have it.
_FPOCKET = r"""#!/bin/sh
mkdir -p protein_out/pockets
cat > protein_out/protein_info.txt <<END
Pocket 1 :
\tScore : \t0.548
\tDruggability Score : \t0.843
\tNumber of Alpha Spheres : \t3
\tVolume : \t612.335

Pocket 2 :
\tScore : \t0.120
\tDruggability Score : \t0.004
\tNumber of Alpha Spheres : \t1
\tVolume : \t210.114

END
cat > protein_out/pockets/pocket1_atm.pdb <<END
HEADER
HEADER This is a pdb format file writen by the programm fpocket.
HEADER 0  - Pocket Score                      : 0.5480
ATOM      9  CA  ALA A   2      11.000  12.000  13.000  1.00  0.00           C 0
ATOM     10  C   ALA A   2      12.000  12.000  13.000  1.00  0.00           C 0
ATOM     20  OG  SER A   5      12.500  14.000  13.500  1.00  0.00           O 0
TER
END
cat > protein_out/pockets/pocket1_vert.pqr <<END
HEADER
ATOM      1    C STP     1      10.000  10.000  10.000    0.00     3.70
ATOM      2    O STP     1      12.000  10.000  10.000    0.00     4.70
TER
END
cat > protein_out/pockets/pocket2_atm.pdb <<END
ATOM     30  N   GLY A   9      -1.000   2.000   3.000  1.00  0.00           N 0
END
cat > protein_out/pockets/pocket2_vert.pqr <<END
ATOM      3    C STP     2    -110.000 -10.000-110.000    0.00     3.50
END
"""


@pytest.fixture
def fpocket(tmp_path, monkeypatch) -> Path:
    """Put an executable on the path that writes the output of fpocket."""
    program = tmp_path / "fpocket"
    program.write_text(_FPOCKET.replace("\\t", "\t"))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return program


def test_output_of_fpocket_is_read(fpocket, source):
    residues = read_residues(source)
    ranked = RIVALS["fpocket"](residues)
    assert ranked.scores.tolist() == [0.548, 0.120]
    assert ranked.centers.tolist() == [[11, 10, 10], [-110, -10, -110]]
    assert [np.flatnonzero(lining).tolist() for lining in ranked.residues] == [[1, 4], [8]]
    # the spheres reach to the centers of atoms: 2 and 3 Å are left of the first two
    assert [10, 10, 12] in ranked.voxels[0].tolist()
    assert [10, 10, 13] not in ranked.voxels[0].tolist()
    assert [12, 10, 13] in ranked.voxels[0].tolist()


def test_a_failing_or_changed_fpocket_is_an_error(fpocket, source):
    fpocket.write_text("#!/bin/sh\necho broken >&2; exit 3\n")
    with pytest.raises(ExternalProgramError, match="broken"):
        RIVALS["fpocket"](read_residues(source))
    lines = [
        "#!/bin/sh",
        "mkdir -p protein_out/pockets",
        "cat > protein_out/protein_info.txt <<END",
        *("Pocket 1 :", "Score : 1", "Druggability Score : 1", "END"),
    ]
    fpocket.write_text("\n".join(lines) + "\n")
    with pytest.raises(ExternalProgramError, match="pocket1_atm"):
        RIVALS["fpocket"](read_residues(source))


def test_fpocket_is_a_row_of_the_table(run, folder, fpocket):
    result = run("bench", "pockets", folder, "--split", "val", "--model", "fpocket")
    assert result.code == 0
    assert _cells(result.out, "fpocket")[1:3] == ["3", "3"]


def test_differences_are_paired_over_clusters():
    from protgraph_plugins.pockets.bench import _difference, _Scored

    def protein(cluster: str, distance: float) -> _Scored:
        values = {name: np.zeros((1, 1)) for name in _Scored._fields}
        return _Scored(**values | {"cluster": cluster, "to_atom": np.array([[distance]])})

    # ours finds 3 of 4 ligands, theirs 1, in three clusters
    clusters = ["a", "a", "b", "c"]
    ours = [protein(cluster, distance) for cluster, distance in zip(clusters, (1.0, 2.0, 3.0, 9.0), strict=True)]
    theirs = [protein(cluster, distance) for cluster, distance in zip(clusters, (9.0, 9.0, 3.0, 9.0), strict=True)]
    _, names, proteins, number, value, _ = (cell.strip() for cell in _difference("other", ours, theirs).split("|"))
    assert (names, proteins, number, value[:6]) == ("ligand_site − other", "4", "3", "+0.500")
    # without the cluster "a" the difference is 0, with "a" alone 1
    assert value[6:] == " [+0.000, +1.000]"
    same = _difference("other", ours, ours)
    assert "+0.000 [+0.000, +0.000]" in same


def test_ligand_site_is_compared_with_the_other_rows(run, folder):
    result = run(
        "bench", "pockets", folder, "--split", "val", "--model", "none", "--model", "ligand_site", "--limit", 1
    )
    assert result.code == 0
    assert _cells(result.out, "ligand_site − none")[1:3] == ["1", "1"]


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
    if name in ("concavity", "fpocket") and shutil.which(name) is None:
        pytest.skip(f"{name} is not on the path")
    if name == "pykvfinder":
        pytest.importorskip("pyKVFinder")
    if name == "pocketnet":
        try:
            find_pocketnet()
        except MissingExtraError:
            pytest.skip("pocketnet is not installed, and PROTGRAPH_POCKETNET does not name the folder of its files")
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
