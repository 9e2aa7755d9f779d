"""Other programs that find pockets, for ``protgraph bench pockets``: pyKVFinder, PocketNet and ConCavity."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial import cKDTree

from protgraph.errors import ExternalProgramError, MissingExtraError
from protgraph.structure import Residues
from protgraph.structure.io import to_atom_array

__all__ = ["RIVALS", "RankedPockets", "read_concavity_grid"]

_LINING = 4.5  # Å between a heavy atom and a grid point of a pocket that has no list of residues


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
    """

    centers: np.ndarray
    residues: np.ndarray
    scores: np.ndarray
    probability: np.ndarray


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
        return _ranked(residues, [], [], [], [])
    names = sorted(cavities.volume, key=lambda name: -cavities.volume[name])
    order = list(cavities.volume)  # cavity number 2 + i of the grid is the i-th
    centers = []
    for name in names:
        cells = np.argwhere(cavities.cavities == 2 + order.index(name))
        centers.append(cavities._vertices[0] + cavities._step * cells.mean(axis=0))
    lining = [[f"{chain}:{number}" for number, chain, _ in cavities.residues[name]] for name in names]
    return _ranked(residues, centers, lining, [cavities.volume[name] for name in names], len(names) * [np.nan])


def pocketnet_pockets(residues: Residues) -> RankedPockets:
    """Return the pockets of PocketNet: five networks on points of the surface.

    References
    ----------
    Arulsamy & Natarajan 2026, distribution ``pocketnet`` 0.3.
    """
    with tempfile.TemporaryDirectory() as folder:
        prediction = _pocketnet().predict(_write_pdb(residues, Path(folder)))
    return _ranked(
        residues,
        [pocket.center for pocket in prediction.pockets],
        [pocket.residues for pocket in prediction.pockets],
        [pocket.score for pocket in prediction.pockets],
        [pocket.probability for pocket in prediction.pockets],
    )


@cache
def _pocketnet() -> Any:
    """Return the ensemble of PocketNet, which takes long to load."""
    try:
        from pocketnet import PocketPredictor
    except ImportError as error:
        raise MissingExtraError("bench pockets: PocketNet is not installed. Run: pip install pocketnet") from error
    return PocketPredictor("cpu")


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
    centers, lining, scores = [], [], []
    for cells in pockets:
        pos, value = cells[:, :3], cells[:, 3]
        centers.append((pos * value[:, None]).sum(0) / value.sum())
        atoms = np.unique(np.concatenate([np.array(near, np.int64) for near in tree.query_ball_point(pos, _LINING)]))
        lining.append([f"A:{row + 1}" for row in np.unique(residues.atom_residue[atoms])])
        scores.append(float(value.sum()))
    return _ranked(residues, centers, lining, scores, len(pockets) * [np.nan])


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


RIVALS: dict[str, Callable[[Residues], RankedPockets]] = {
    "pykvfinder": pykvfinder_pockets,
    "pocketnet": pocketnet_pockets,
    "concavity": concavity_pockets,
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
) -> RankedPockets:
    """Return the arrays of pockets, whose residues are given as A:NUMBER."""
    is_lining = np.zeros((len(centers), len(residues)), bool)
    for pocket, names in enumerate(lining):
        rows = [int(name.partition(":")[2]) - 1 for name in names]
        is_lining[pocket, rows] = True
    return RankedPockets(np.array(centers).reshape(-1, 3), is_lining, np.array(scores), np.array(probability))
