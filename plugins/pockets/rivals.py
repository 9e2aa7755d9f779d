"""Other programs that find pockets, for ``protgraph bench pockets``: pyKVFinder, PocketNet, ConCavity and fpocket."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from protgraph_plugins.pocketnet import PocketNet
from protgraph_plugins.pockets.metrics import voxels_of_points, voxels_of_spheres
from scipy.spatial import cKDTree

from protgraph.errors import ExternalProgramError, MissingExtraError
from protgraph.structure import Residues
from protgraph.structure.io import to_atom_array

__all__ = ["RIVALS", "FpocketPocket", "RankedPockets", "read_concavity_grid", "read_fpocket"]

_LINING = 4.5  # Å between a heavy atom and a grid point of a pocket that has no list of residues
_AROUND = 8.0  # Å between a heavy atom and the center of a pocket of PocketNet


class RankedPockets(NamedTuple):
    """Pockets of a program for one protein, the best first.

    Attributes
    ----------
    centers : ndarray
        ``(P, 3)`` Å.
    residues : ndarray
        ``(P, N)`` bool, the residues that line each pocket.
    scores : ndarray
        ``(P,)``, by which pockets of several proteins are ranked together.
    probability : ndarray
        ``(P,)`` that a ligand binds there; NaN if the program has none.
    voxels : list of ndarray
        ``(V, 3)`` int64, cells of 1 Å of each pocket, see :func:`protgraph_plugins.pockets.metrics.dvo`; empty if the
        program has no volumes.
    """

    centers: np.ndarray
    residues: np.ndarray
    scores: np.ndarray
    probability: np.ndarray
    voxels: list[np.ndarray]


def pykvfinder_pockets(residues: Residues) -> RankedPockets:
    """Return the cavities of pyKVFinder with its default options, the largest first.

    References
    ----------
    Guerra et al. 2021, BMC Bioinformatics 22, 607.
    """
    try:
        import pyKVFinder
    except ImportError as error:
        raise MissingExtraError("bench pockets: pyKVFinder is not installed. Run: pip install pyKVFinder") from error

    with tempfile.TemporaryDirectory() as folder:
        cavities = pyKVFinder.run_workflow(_write_pdb(residues, Path(folder)), nthreads=1)
    if cavities is None or cavities.ncav == 0:
        return _ranked(residues, [], [], [], [], [])
    names = sorted(cavities.volume, key=lambda name: -cavities.volume[name])
    order = list(cavities.volume)  # cavity number 2 + i of the grid is the i-th
    centers, voxels = [], []
    for name in names:
        cells = np.argwhere(cavities.cavities == 2 + order.index(name))
        points = cavities._vertices[0] + cavities._step * cells
        centers.append(points.mean(axis=0))
        voxels.append(voxels_of_points(points))
    lining = []
    for name in names:
        lining.append([f"{chain}:{number}" for number, chain, _ in cavities.residues[name]])
    volumes = [cavities.volume[name] for name in names]
    return _ranked(residues, centers, lining, volumes, len(names) * [np.nan], voxels)


def pocketnet_pockets(residues: Residues) -> RankedPockets:
    """Return the pockets of PocketNet, from the registry model ``pocketnet`` with its published weights.

    Residues within 8 Å of the center line a pocket, as in the program.

    References
    ----------
    Arulsamy & Natarajan 2026, distribution ``pocketnet`` 0.3.
    """
    finder = _pocketnet()
    pockets = finder(residues)
    tree = cKDTree(residues.atom_pos.astype(np.float64))
    lining = []
    for pocket in pockets:
        near = tree.query_ball_point(pocket.center, _AROUND)
        lining.append([f"A:{row + 1}" for row in np.unique(residues.atom_residue[near])])
    scores = [pocket.score for pocket in pockets]
    probability = finder.probability(np.array(scores)).tolist()
    return _ranked(residues, [pocket.center for pocket in pockets], lining, scores, probability, [])


@cache
def _pocketnet() -> PocketNet:
    """Return the networks of PocketNet, which take long to load."""
    return PocketNet()


def concavity_pockets(residues: Residues) -> RankedPockets:
    """Return the pockets of ConCavity without conservation, in order of the sum of its grid values.

    Residues within 4.5 Å of a grid point of a pocket line it.

    References
    ----------
    Capra et al. 2009, PLoS Computational Biology 5, e1000585.
    """
    program = shutil.which("concavity")
    if program is None:
        raise MissingExtraError("bench pockets: concavity is not on the path. Run: apt-get install concavity")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(_write_pdb(residues, Path(folder)))
        command = [program, "-print_grid_pdb", "1", path.name, "out"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        grid = path.with_name("protein_out_pocket.pdb")
        if done.returncode != 0 or not grid.exists():
            raise ExternalProgramError(
                f"bench pockets: concavity failed on {residues.name} (exit code {done.returncode}): "
                f"{done.stderr[-300:]}"
            )
        points = read_concavity_grid(grid.read_text(encoding="ascii"))
    pockets = sorted(points.values(), key=lambda cells: -cells[:, 3].sum())
    tree = cKDTree(residues.atom_pos.astype(np.float64))
    centers, lining, scores, voxels = [], [], [], []
    for cells in pockets:
        pos, value = cells[:, :3], cells[:, 3]
        centers.append((pos * value[:, None]).sum(0) / value.sum())
        atoms = np.unique(np.concatenate([np.array(near, np.int64) for near in tree.query_ball_point(pos, _LINING)]))
        lining.append([f"A:{row + 1}" for row in np.unique(residues.atom_residue[atoms])])
        scores.append(float(value.sum()))
        voxels.append(voxels_of_points(pos))
    return _ranked(residues, centers, lining, scores, len(pockets) * [np.nan], voxels)


def read_concavity_grid(text: str) -> dict[int, np.ndarray]:
    """Return the grid points of each pocket in a ``*_pocket.pdb`` of ConCavity.

    Returns
    -------
    dict of int to ndarray
        ``(M, 4)`` x, y, z (Å) and value of the points, by number of the pocket.
    """
    points: dict[int, list[list[float]]] = {}
    for line in text.splitlines():
        if line.startswith("HETATM"):
            pocket = int(line[22:26])  # residue number; the B factor is the value of the point
            point = [float(line[start:end]) for start, end in ((30, 38), (38, 46), (46, 54), (60, 66))]
            points.setdefault(pocket, []).append(point)
    return {pocket: np.array(rows) for pocket, rows in points.items()}


class FpocketPocket(NamedTuple):
    """A pocket in the output of fpocket.

    Attributes
    ----------
    score : float
        Pocket score.
    druggability : float
        Druggability score, 0 to 1.
    spheres : ndarray
        ``(S, 4)`` center and radius of its alpha spheres, Å.
    residues : list of str
        "CHAIN:NUMBER" of the residues of its atoms, in order of the file.
    """

    score: float
    druggability: float
    spheres: np.ndarray
    residues: list[str]


def fpocket_pockets(residues: Residues) -> RankedPockets:
    """Return the pockets of fpocket with its default options, in its order.

    The center is the mean of the alpha spheres.

    References
    ----------
    Le Guilloux, Schmidtke & Tuffery 2009, doi:10.1186/1471-2105-10-168.
    """
    program = shutil.which("fpocket")
    if program is None:
        raise MissingExtraError("bench pockets: fpocket is not on the path. Run: conda install -c conda-forge fpocket")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(_write_pdb(residues, Path(folder)))
        done = subprocess.run([program, "-f", path.name], cwd=folder, capture_output=True, text=True, check=False)
        output = path.with_name(f"{path.stem}_out")
        if done.returncode != 0 or not (output / f"{path.stem}_info.txt").exists():
            raise ExternalProgramError(
                f"bench pockets: fpocket failed on {residues.name} (exit code {done.returncode}): {done.stderr[-300:]}"
            )
        pockets = read_fpocket(output)
    return _ranked(
        residues,
        [pocket.spheres[:, :3].mean(axis=0) for pocket in pockets],
        [pocket.residues for pocket in pockets],
        [pocket.score for pocket in pockets],
        len(pockets) * [np.nan],
        [voxels_of_spheres(pocket.spheres[:, :3], pocket.spheres[:, 3]) for pocket in pockets],
    )


def read_fpocket(folder: Path) -> list[FpocketPocket]:
    """Read an output folder ``NAME_out`` of fpocket: ``NAME_info.txt``, ``pockets/pocketN_atm.pdb``, ``_vert.pqr``.

    Raises
    ------
    ExternalProgramError
        A file is missing or has another format.
    """
    info = folder / f"{folder.name.removesuffix('_out')}_info.txt"
    pockets = []
    for number, values in _fpocket_numbers(info.read_text(encoding="ascii")).items():
        if not {"Score", "Druggability Score"} <= values.keys():
            raise ExternalProgramError(
                f"bench pockets: output of fpocket has no score of pocket {number} ({info}). Install fpocket 3 or 4."
            )
        atoms = _atom_lines(folder / "pockets" / f"pocket{number}_atm.pdb")
        vertices = _atom_lines(folder / "pockets" / f"pocket{number}_vert.pqr")
        lining = dict.fromkeys(f"{line[21]}:{int(line[22:26])}" for line in atoms)
        # x, y, z are columns of a PDB file; the radius is the last word
        spheres = []
        for line in vertices:
            spheres.append([float(line[30:38]), float(line[38:46]), float(line[46:54]), float(line.split()[-1])])
        pockets.append(FpocketPocket(values["Score"], values["Druggability Score"], np.array(spheres), list(lining)))
    return pockets


def _fpocket_numbers(text: str) -> dict[int, dict[str, float]]:
    """Return the numbers of each pocket by name, from the text of an info file."""
    numbers: dict[int, dict[str, float]] = {}
    pocket = 0
    for line in text.splitlines():
        key, _, value = (part.strip() for part in line.partition(":"))
        if key.startswith("Pocket "):
            pocket = int(key.split()[1])
            numbers[pocket] = {}
        elif value:
            numbers[pocket][key] = float(value)
    return numbers


def _atom_lines(path: Path) -> list[str]:
    """Return the lines of atoms of a file of fpocket."""
    if not path.exists():
        raise ExternalProgramError(f"bench pockets: output of fpocket has no file {path}. Install fpocket 3 or 4.")
    return [line for line in path.read_text(encoding="ascii").splitlines() if line.startswith(("ATOM", "HETATM"))]


RIVALS: dict[str, Callable[[Residues], RankedPockets]] = {
    "pykvfinder": pykvfinder_pockets,
    "pocketnet": pocketnet_pockets,
    "concavity": concavity_pockets,
    "fpocket": fpocket_pockets,
}


def _write_pdb(residues: Residues, folder: Path) -> str:
    """Write the heavy atoms of the protein as a PDB file of one chain, residues numbered by their rows from 1."""
    from biotite.structure.io.pdb import PDBFile

    atoms = to_atom_array(residues)
    # Names of the source may not fit the format, e.g. chains of two letters.
    atoms.chain_id = np.full(len(atoms), "A")
    atoms.res_id = residues.atom_residue + 1
    atoms.ins_code = np.full(len(atoms), "")
    file = PDBFile()
    file.set_structure(atoms)
    path = folder / "protein.pdb"
    file.write(path)
    return str(path)


def _ranked(
    residues: Residues,
    centers: list[np.ndarray],
    lining: list[list[str]],
    scores: list[float],
    probability: list[float],
    voxels: list[np.ndarray],
) -> RankedPockets:
    """Return the arrays of pockets, whose residues are given as A:NUMBER."""
    is_lining = np.zeros((len(centers), len(residues)), bool)
    for pocket, names in enumerate(lining):
        rows = [int(name.partition(":")[2]) - 1 for name in names]
        is_lining[pocket, rows] = True
    return RankedPockets(np.array(centers).reshape(-1, 3), is_lining, np.array(scores), np.array(probability), voxels)
