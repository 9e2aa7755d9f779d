"""Inputs of PocketNet: heavy atoms with their kinds, and points on the surface with the shape of the protein around."""

from __future__ import annotations

import math
from typing import Annotated, ClassVar, NamedTuple

import numpy as np
import torch
from annotated_types import Ge
from torch import Tensor
from torch.nn.functional import one_hot

from protgraph import FieldSpec, NodeFeaturizer, NodeList, Residues, register_field
from protgraph.data import Conformity

__all__ = ["KIND", "SHAPE", "PocketNetAtoms", "PocketNetPoints"]
ENTRY_POINTS = {"protgraph.featurizers": {"pocketnet_atoms": "PocketNetAtoms", "pocketnet_points": "PocketNetPoints"}}

#: Heavy atoms of each amino acid in the order of PDB files; the order numbers the kinds.
_SIDE_CHAINS = {
    "ALA": "CB",
    "ARG": "CB CG CD NE CZ NH1 NH2",
    "ASN": "CB CG OD1 ND2",
    "ASP": "CB CG OD1 OD2",
    "CYS": "CB SG",
    "GLN": "CB CG CD OE1 NE2",
    "GLU": "CB CG CD OE1 OE2",
    "GLY": "",
    "HIS": "CB CG ND1 CD2 CE1 NE2",
    "ILE": "CB CG1 CG2 CD1",
    "LEU": "CB CG CD1 CD2",
    "LYS": "CB CG CD CE NZ",
    "MET": "CB CG SD CE",
    "PHE": "CB CG CD1 CD2 CE1 CE2 CZ",
    "PRO": "CB CG CD",
    "SER": "CB OG",
    "THR": "CB OG1 CG2",
    "TRP": "CB CG CD1 CD2 NE1 CE2 CE3 CZ2 CZ3 CH2",
    "TYR": "CB CG CD1 CD2 CE1 CE2 CZ OH",
    "VAL": "CB CG1 CG2",
}
_SAME_RESIDUE = {
    **dict.fromkeys(("HIE", "HID", "HIP", "HSD", "HSE", "HSP"), "HIS"),
    **dict.fromkeys(("CYX", "CYM"), "CYS"),
    "ASH": "ASP",
    "GLH": "GLU",
    "LYN": "LYS",
    "MSE": "MET",
}
_SAME_ATOM = {"OC1": "O", "OC2": "OXT", "O1": "O", "O2": "OXT"}

# Van der Waals radii, Å, by the first letter of the name of the atom; the last one is that of other elements.
_ELEMENTS = "CNOSP"
_RADII = torch.tensor([1.70, 1.55, 1.52, 1.80, 1.80, 1.80])
_PROBE = 1.4  # Å
_DIRECTIONS = 48  # points per atom before those inside other atoms are removed
_TOUCH = 1e-3  # Å, a point may be this far inside another sphere

_RAYS, _STEP, _REACH = 64, 0.8, 16.0  # rays from a point: number, Å between their points, Å to the last one
_CELL, _PAD = 0.8, 18.0  # Å, grid of occupied cells, and its margin
_INFLATION = 0.2  # Å, added to the radii of atoms on the grid
_RANGES = (4.0, 8.0, 12.0, 16.0)  # Å, up to which a ray counts as blocked
_CONES = (0.866, 0.5, 0.0)  # cosines of 30°, 60°, 90° around the normal
_SHELLS = ((0.0, 4.0), (4.0, 6.0), (6.0, 8.0), (8.0, 12.0))  # Å, in which atoms are counted
_COUNTED = 4  # elements C, N, O, S
_BLOCK = 2048  # points at a time, to limit the memory

#: Number of descriptors of a point.
SHAPE_WIDTH = len(_RANGES) * (1 + len(_CONES)) + 3 + len(_SHELLS) * (1 + _COUNTED)


def _kinds() -> dict[tuple[str, str], int]:
    """Return the kind of each atom by residue and name, from 1: all atoms, then OXT of each residue."""
    names = []
    for residue, side_chain in _SIDE_CHAINS.items():
        atoms = ["N", "CA", "C", "O", *side_chain.split()]
        names += [(residue, atom) for atom in atoms]
    names += [(residue, "OXT") for residue in _SIDE_CHAINS]
    return {name: 1 + number for number, name in enumerate(names)}


_KIND_OF = _kinds()
_OTHER_RESIDUE = 1 + len(_KIND_OF)
#: Kinds of atoms: 0 is another atom of an amino acid, the last one any atom of another residue.
KINDS = 2 + len(_KIND_OF)

ATOMS = register_field(
    FieldSpec("pocketnet_atoms", "node", "object", doc="node set: heavy atoms, for PocketNet"),
)
POINTS = register_field(
    FieldSpec("pocketnet_points", "node", "object", doc="node set: points on the accessible surface, for PocketNet"),
)
KIND = register_field(
    FieldSpec(
        "pocketnet_kind",
        "node",
        "0e",
        "int64",
        shape=(),
        classes=KINDS,
        doc="kind of an atom by residue and name; 0 another one",
    )
)
SHAPE = register_field(
    FieldSpec("pocketnet_shape", "node", f"{SHAPE_WIDTH}x0e", doc="blocked rays and atoms in shells around a point"),
)


class PocketNetAtoms(NodeFeaturizer):
    """Heavy atoms as a node set, with a kind for each atom of each amino acid.

    Writes
    ------
    pocketnet_atoms : the node set
    pocketnet_kind : (M,) int64
        0 is an atom that the amino acid does not have, the last one an atom of another residue.

    References
    ----------
    Distribution ``pocketnet`` 0.3.0 (PyPI).
    """

    writes: ClassVar[tuple[str, ...]] = (ATOMS.name, KIND.name)

    def __call__(self, residues: Residues) -> NodeList:
        kinds = []
        for name, atom in zip(residues.res_name[residues.atom_residue], residues.atom_name, strict=True):
            residue = _SAME_RESIDUE.get(str(name), str(name))
            if residue in _SIDE_CHAINS:
                kinds.append(_KIND_OF.get((residue, _SAME_ATOM.get(str(atom), str(atom))), 0))
            else:
                kinds.append(_OTHER_RESIDUE)
        return NodeList(residues.atom_pos, residues.atom_residue, {KIND.name: np.array(kinds, np.int64)})


class PocketNetPoints(NodeFeaturizer):
    """Points on the solvent-accessible surface as a node set, with blocked rays and counts of atoms.

    Each atom has 48 test points at its van der Waals radius plus 1.4 Å; those inside other spheres are removed.
    From each point, 64 rays of 16 Å are followed on a grid of occupied cells.

    Parameters
    ----------
    rays : int
        Number of rays; the published weights were trained with 64.

    Writes
    ------
    pocketnet_points : the node set; each point belongs to the residue of the atom whose sphere it is on
    pocketnet_shape : (M, 39) float32
        Fractions of rays that are blocked within 4, 8, 12 and 16 Å, of all rays and in cones of 30°, 60° and 90° about
        the normal; mean and least free length, and the mean of rays at 120° and more to the normal, of 16 Å; numbers of
        atoms in four shells up to 12 Å, of 30, and of C, N, O and S, of 12.

    Notes
    -----
    Directions of points and rays, and the grid, are those of the file, as in the program. Hence points and descriptors
    change with the orientation. Distances are rounded as in the program (``torch.cdist`` in float32).

    References
    ----------
    Distribution ``pocketnet`` 0.3.0 (PyPI). Shrake & Rupley 1973, doi:10.1016/0022-2836(73)90011-9.
    """

    writes: ClassVar[tuple[str, ...]] = (POINTS.name, SHAPE.name)
    conformity: ClassVar[Conformity] = Conformity(
        expected_failures=dict.fromkeys(
            ("rotation", "reflection", "float32"), "directions along the axes of the file, as in the program"
        ),
    )

    def __init__(self, *, rays: Annotated[int, Ge(8)] = _RAYS) -> None:
        super().__init__()
        self.rays = rays

    def __call__(self, residues: Residues) -> NodeList:
        pos = torch.from_numpy(np.array(residues.atom_pos))
        names = [_SAME_ATOM.get(str(name), str(name)) for name in residues.atom_name]
        element = torch.tensor([_ELEMENTS.find(name[:1]) for name in names], dtype=torch.long)
        element[element < 0] = len(_ELEMENTS)
        points, normal, atom = _surface(pos, element)
        grid = _occupied_cells(pos, element)
        shape = [pos.new_zeros(0, SHAPE_WIDTH)]
        for begin in range(0, len(points), _BLOCK):
            rows = slice(begin, begin + _BLOCK)
            blocked = _rays_of(points[rows], normal[rows], grid, self.rays)
            counts = _atoms_in_shells(points[rows], pos, element)
            shape.append(torch.cat([blocked, counts], 1))
        fields = {SHAPE.name: torch.cat(shape).numpy()}
        return NodeList(points.numpy(), residues.atom_residue[atom.numpy()], fields)


class _Grid(NamedTuple):
    """Cells that atoms occupy; the center of cell 0, 0, 0 is at ``origin``."""

    occupied: Tensor  # (X, Y, Z) bool
    origin: Tensor  # (3,) Å


def _spiral(number: int, dtype: torch.dtype) -> Tensor:
    """Return unit vectors ``(number, 3)`` on a Fibonacci spiral."""
    place = torch.arange(number, dtype=dtype) + 0.5
    polar = torch.acos(1 - 2 * place / number)
    turn = math.pi * (1 + 5**0.5) * place
    return torch.stack([torch.cos(turn) * torch.sin(polar), torch.sin(turn) * torch.sin(polar), torch.cos(polar)], 1)


def _surface(pos: Tensor, element: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return points on the accessible surface ``(P, 3)``, their normals ``(P, 3)`` and atoms ``(P,)``."""
    radius = _RADII.to(pos.dtype)[element] + _PROBE
    tests = (pos[:, None] + radius[:, None, None] * _spiral(_DIRECTIONS, pos.dtype)).reshape(-1, 3)
    atom = torch.arange(len(pos)).repeat_interleave(_DIRECTIONS)
    is_free = torch.ones(len(tests), dtype=torch.bool)
    for begin in range(0, len(tests), _BLOCK):
        rows = slice(begin, begin + _BLOCK)
        is_inside = torch.cdist(tests[rows], pos) < radius - _TOUCH  # (P, A)
        is_inside[torch.arange(len(is_inside)), atom[rows]] = False
        is_free[rows] = ~is_inside.any(1)
    points, atom = tests[is_free], atom[is_free]
    offset = points - pos[atom]
    return points, offset / offset.norm(dim=1, keepdim=True), atom


def _occupied_cells(pos: Tensor, element: Tensor) -> _Grid:
    """Mark the cells with a center inside an atom."""
    origin = pos.min(0).values - _PAD
    cells = ((pos.max(0).values + _PAD - origin) / _CELL).ceil().long() + 1
    occupied = torch.zeros(cells.tolist(), dtype=torch.bool)
    radius = _RADII.to(pos.dtype)[element] + _INFLATION
    far = math.ceil((float(_RADII.max()) + _INFLATION + _CELL / 2) / _CELL)  # cells
    steps = torch.arange(-far, far + 1)
    offset = torch.stack(torch.meshgrid(steps, steps, steps, indexing="ij"), -1).reshape(-1, 3)
    for begin in range(0, len(pos), _BLOCK):
        atoms = pos[begin : begin + _BLOCK]
        cell = ((atoms - origin) / _CELL).round().long()[:, None] + offset  # (A, K, 3)
        center = origin + cell.to(pos.dtype) * _CELL
        is_inside = (center - atoms[:, None]).norm(dim=-1) <= radius[begin : begin + _BLOCK, None]
        x, y, z = cell[is_inside].unbind(1)
        occupied[x, y, z] = True
    return _Grid(occupied, origin)


def _rays_of(points: Tensor, normal: Tensor, grid: _Grid, number: int) -> Tensor:
    """Return fractions of blocked rays and free lengths ``(P, 19)``."""
    rays = _spiral(number, points.dtype)  # (R, 3)
    steps = torch.arange(1, round(_REACH / _STEP) + 1, dtype=points.dtype) * _STEP  # (S,)
    places = points[:, None, None] + rays[None, :, None] * steps[None, None, :, None]  # (P, R, S, 3)
    last = torch.tensor(grid.occupied.shape) - 1
    cell = ((places - grid.origin) / _CELL).round().long().clamp(min=0).minimum(last)
    x, y, z = cell.unbind(-1)
    is_occupied = grid.occupied[x, y, z]  # (P, R, S)
    first = is_occupied.to(torch.uint8).argmax(-1)  # of several maxima, the first
    is_blocked = is_occupied.any(-1)
    length = torch.where(is_blocked, steps[first], 2 * _REACH)  # (P, R)

    cosine = normal @ rays.T  # (P, R)
    columns = []
    for reach in _RANGES:
        blocked = (length <= reach).to(points.dtype)
        columns.append(blocked.mean(1))
        columns += [_mean_where(cosine >= least, blocked) for least in _CONES]
    free = length.clamp(max=_REACH)
    columns += [free.mean(1) / _REACH, free.min(1).values / _REACH, _mean_where(cosine <= -0.5, free) / _REACH]
    return torch.stack(columns, 1)


def _mean_where(mask: Tensor, values: Tensor) -> Tensor:
    """Return the mean of the values ``(P,)`` in each row of a mask; 0 without any."""
    weight = mask.to(values.dtype)
    return (values * weight).sum(1) / weight.sum(1).clamp(min=1)


def _atoms_in_shells(points: Tensor, pos: Tensor, element: Tensor) -> Tensor:
    """Return the numbers of atoms, and of C, N, O and S, in each shell around the points ``(P, 20)``."""
    distance = torch.cdist(points, pos)  # (P, A)
    of_element = one_hot(element, len(_RADII)).to(pos.dtype)[:, :_COUNTED]
    columns = []
    for low, high in _SHELLS:
        is_near = ((distance >= low) & (distance < high)).to(pos.dtype)
        columns += [is_near.sum(1, keepdim=True) / 30.0, is_near @ of_element / 12.0]
    return torch.cat(columns, 1)
