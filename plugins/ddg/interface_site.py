"""Surroundings of residues in the other partner of a complex, without their own side chain."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from protgraph_plugins.ddg.site_packing import surroundings
from protgraph_plugins.ddg.type_scores import NOTHING_HIDDEN

from protgraph import FieldSpec, Residues, StructureFeaturizer, register_field
from protgraph.data import Conformity
from protgraph.structure.chemistry import vdw_radii
from protgraph.structure.descriptors import unit, virtual_cb
from protgraph.structure.residues import ALPHABET, UNKNOWN

__all__ = ["InterfaceSite"]
ENTRY_POINTS = {"protgraph.featurizers": {"interface_site": "InterfaceSite"}}

_REACH = np.array([0.0, 2.8, 4.5])  # Å beyond the virtual CB, as in site_packing
_SPHERES = (1.9, 2.8, 2.8)  # Å, radii of spheres in place of the side chain
_PROBE = 1.4  # Å, water
_POINTS = 96  # on a sphere
_FARTHEST = 20.0  # Å
_POLAR_RADII = (4.5, 6.5)  # Å
_SCREENING, _NEAREST_CHARGE = 8.0, 3.0  # Å
_CONTACT, _WIDTH = 8.0, 1.0  # Å, as in site_packing
_CHARGES = {"D": -1.0, "E": -1.0, "K": 1.0, "R": 1.0}
_CHARGE_OF_TYPE = np.array([_CHARGES.get(letter, 0.0) for letter in ALPHABET])
_CHARGED_ATOMS = {"DOD1": -0.5, "DOD2": -0.5, "EOE1": -0.5, "EOE2": -0.5, "KNZ": 1.0, "RNH1": 0.5, "RNH2": 0.5}

register_field(
    FieldSpec(
        "interface_site",
        "node",
        "75x0e",
        chiral=True,
        doc="surroundings of a residue in the other partners of a complex, without its own side chain",
    )
)
register_field(
    FieldSpec("interface_size", "node", "6x0e", chiral=True, doc="sizes and charges of a residue's partner and others")
)


class InterfaceSite(StructureFeaturizer):
    """Surroundings of each side chain's place in the other partners of a complex, and its burial on binding.

    Partners are those of :attr:`protgraph.Residues.partners`; each chain is one if none is declared. Nothing depends on
    the type or the side chain of the residue itself.

    Parameters
    ----------
    only_hidden : bool
        Only for residues of type X, which a task of mutations hides; the others have 0. Saves time.

    Writes
    ------
    interface_site : (N, 75) float32, 0e under rotations (chiral), dimensionless
        The first 56 columns of ``site_packing`` in the complex minus those in the partner alone: atoms, charges, CB and
        types of the other partners. Least distance of their atoms from CB, and from a point 4.5 Å farther (2). Their N,
        and O, within 4.5 and 6.5 Å of points 2.8 and 4.5 Å beyond CB (8). Screened potentials of their negative and of
        their positive side chains (2). Soft contacts with residues of the own partner, each weighted with the soft
        contacts that it has with the others (1). Accessible part of three spheres in place of the side chain in the
        partner alone, and the part that is lost on binding (6).
    interface_size : (N, 6) float32, 0e under rotations (chiral), dimensionless
        Logarithm of the numbers of residues in the interface and of all residues, and net charge / 10, each of the
        residue's partner and of the others.

    Notes
    -----
    0 for residues without N, CA or C, of no partner, and of a protein with one partner. A residue is in the interface
    if a virtual CB of another partner is within 8 Å of its own.
    """

    writes: ClassVar[tuple[str, ...]] = ("interface_site", "interface_size")
    conformity = Conformity(tolerance=2e-2)  # counts within radii jump with rounded coordinates

    def __init__(self, *, only_hidden: bool = False) -> None:
        super().__init__()
        self.only_hidden = only_hidden
        if only_hidden:
            self.conformity = Conformity(tolerance=2e-2, expected_failures={"non_trivial": NOTHING_HIDDEN})

    def __call__(self, residues: Residues) -> dict[str, np.ndarray]:
        site = np.zeros((len(residues), self.out["interface_site"].dim), np.float32)
        size = np.zeros((len(residues), self.out["interface_size"].dim), np.float32)
        side = residues.side
        wanted = residues.backbone_mask[:, :3].all(1) & (side >= 0)
        if self.only_hidden:
            wanted &= residues.aatype == UNKNOWN
        inside = np.flatnonzero(side >= 0)
        if wanted.any() and len(np.unique(side[inside])) > 1:
            both, of_both = residues.select(side >= 0), side[inside]
            for number in np.unique(side[wanted]):
                chosen = np.flatnonzero(wanted & (side == number))
                own = of_both == number
                rows = np.searchsorted(inside, chosen)
                site[chosen] = _site(both, own, rows)
                size[chosen] = _size(both, own)
        return {"interface_site": site, "interface_size": size}


def _site(both: Residues, in_partner: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return ``interface_site`` ``(R, 75)`` of rows of a partner, ``in_partner`` ``(N,)`` bool, of a complex."""
    alone = both.select(in_partner)
    partner_rows = (np.cumsum(in_partner) - 1)[rows]
    around = surroundings(both, rows) - surroundings(alone, partner_rows)  # (R, 56)
    cb = virtual_cb(both.backbone)[rows]
    direction = unit(cb - both.backbone[rows, 1])
    places = cb[:, None] + _REACH[:, None] * direction[:, None]  # (R, 3, 3)
    other_partner = both.select(~in_partner)
    columns = [around, _of_atoms(other_partner, places), _second_shell(both, in_partner, rows)[:, None]]
    frame = _frames(both.backbone[rows].astype(np.float64), direction)
    free = _accessible(alone, partner_rows, places, frame)
    bound = _accessible(both, rows, places, frame)
    return np.nan_to_num(np.concatenate([*columns, free, free - bound], 1))


def _of_atoms(partner: Residues, places: np.ndarray) -> np.ndarray:
    """Return distances, polar atoms and potentials ``(R, 12)`` of the atoms of others at places ``(R, 3, 3)``."""
    atoms = partner.atom_pos.astype(np.float64)
    distance = np.linalg.norm(places[:, :, None] - atoms, axis=-1)  # (R, 3, A)
    nearest = distance.min(2, initial=_FARTHEST)
    columns = [nearest[:, 0] / 10, nearest[:, 2] / 10]
    for place in (1, 2):
        for element in ("N", "O"):
            of_element = distance[:, place, partner.atom_element == element]
            for radius in _POLAR_RADII:
                count = (of_element < radius).sum(1)
                columns.append(count / 3)

    charge = _charges_of_atoms(partner)
    screened = distance[:, 1].clip(_NEAREST_CHARGE)
    potential = np.exp(-screened / _SCREENING) / screened * 10
    columns.append(potential @ np.maximum(-charge, 0.0))
    columns.append(potential @ np.maximum(charge, 0.0))
    return np.stack(columns, 1)


def _charges_of_atoms(residues: Residues) -> np.ndarray:
    """Return the charge of each atom ``(A,)``, elementary charges; half of it on each O of Asp and Glu, N of Arg."""
    letter_of_atom = np.array(list(ALPHABET))[residues.aatype[residues.atom_residue]]
    names = np.char.add(letter_of_atom, residues.atom_name.astype(str))
    return np.array([_CHARGED_ATOMS.get(name, 0.0) for name in names.tolist()])


def _second_shell(both: Residues, in_partner: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return soft contacts ``(R,)`` with residues of the own partner, weighted with their contacts with the others."""
    cb = virtual_cb(both.backbone)
    has_cb = ~np.isnan(cb).any(1)
    partner_rows = np.flatnonzero(in_partner & has_cb)
    other_rows = np.flatnonzero(~in_partner & has_cb)
    near = np.linalg.norm(cb[rows, None] - cb[partner_rows], axis=-1)  # (R, O)
    across = np.linalg.norm(cb[partner_rows, None] - cb[other_rows], axis=-1)  # (O, P)
    contacts_with_others = _soft(across).sum(1)
    is_itself = rows[:, None] == partner_rows
    own_contacts = np.where(is_itself, 0.0, _soft(near))
    return own_contacts @ contacts_with_others / 10


def _soft(distance: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(np.clip((distance - _CONTACT) / _WIDTH, -50, 50)))


def _frames(backbone: np.ndarray, direction: np.ndarray) -> np.ndarray:
    """Return right-handed frames ``(R, 3, 3)``, axes in rows: CA → CB, then N − C orthogonal to it."""
    across = backbone[:, 0] - backbone[:, 2]
    across = unit(across - (across * direction).sum(1, keepdims=True) * direction)
    return np.stack([direction, across, np.cross(direction, across)], 1)


def _accessible(residues: Residues, rows: np.ndarray, places: np.ndarray, frames: np.ndarray) -> np.ndarray:
    """Return the parts ``(R, 3)`` of spheres around places ``(R, 3, 3)`` that a water molecule can touch.

    Atoms of the residue itself do not count: its side chain is unknown.
    """
    atoms, radius = residues.atom_pos.astype(np.float64), vdw_radii(residues) + _PROBE
    sphere = _sphere(_POINTS)
    fractions = np.zeros((len(rows), len(_SPHERES)))
    for i, row in enumerate(rows.tolist()):
        other = residues.atom_residue != row
        for k, own_radius in enumerate(_SPHERES):
            reach = own_radius + _PROBE
            near = other & (np.linalg.norm(atoms - places[i, k], axis=1) < reach + radius)
            points = places[i, k] + reach * sphere @ frames[i]  # (P, 3)
            distance = np.linalg.norm(points[:, None] - atoms[near], axis=-1)  # (P, A)
            fractions[i, k] = (distance >= radius[near]).all(1).mean()
    return fractions


def _sphere(number: int) -> np.ndarray:
    """Return points ``(number, 3)`` on the unit sphere, along a Fibonacci spiral."""
    place = np.arange(number)
    z = 1 - (2 * place + 1) / number
    angle = np.pi * (1 + np.sqrt(5)) * place
    radius = np.sqrt(1 - z**2)
    return np.stack([radius * np.cos(angle), radius * np.sin(angle), z], 1)


def _size(both: Residues, in_partner: np.ndarray) -> np.ndarray:
    """Return ``interface_size`` ``(6,)`` for the residues of a partner."""
    cb = virtual_cb(both.backbone)
    has_cb = ~np.isnan(cb).any(1)
    rows = np.flatnonzero(in_partner & has_cb)
    other_rows = np.flatnonzero(~in_partner & has_cb)
    distance = np.linalg.norm(cb[rows, None] - cb[other_rows], axis=-1)
    near = distance < _CONTACT
    charge = _CHARGE_OF_TYPE[both.aatype]
    columns = []
    for contact, mask in ((near.any(1), in_partner), (near.any(0), ~in_partner)):
        columns += [np.log1p(contact.sum()) / 3, np.log(mask.sum()) / 5, charge[mask].sum() / 10]
    return np.array(columns)
