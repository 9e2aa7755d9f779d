"""The protein part of a structure as arrays, one row per residue."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol, TypeVar

import numpy as np

from protgraph.errors import OptionError, SelectionError
from protgraph.structure.residues.alignment import Alignment
from protgraph.structure.residues.alphabet import ALPHABET, UNKNOWN
from protgraph.structure.residues.identity import by_appearance, residue_ids
from protgraph.structure.residues.ligands import Ligands
from protgraph.structure.residues.loss_report import LossReport
from protgraph.wording import html_table

__all__ = ["BACKBONE", "CA", "HIDEABLE", "Residues", "displace_backbone"]

BACKBONE = ("N", "CA", "C", "O")
"""Order of the atoms in ``Residues.backbone``."""

CA = BACKBONE.index("CA")
"""Place of CA among the backbone atoms."""

HIDEABLE = frozenset({"residue_type", "sidechain", "b_factor", "coordinates", "ligands"})
"""Information that :meth:`Residues.hide` can remove."""

_LETTERS = np.array(list(ALPHABET))
_SHOWN = 60  # letters of a sequence in a notebook


class _Array(Protocol):
    """Arrays of NumPy, and tensors."""

    def __getitem__(self, index: Any, /) -> Any: ...

    def __add__(self, other: Any, /) -> Any: ...


Array = TypeVar("Array", bound=_Array)


@dataclass(frozen=True, eq=False)
class Residues:
    """N residues of a protein and their A heavy atoms, in file order.

    Chain, ``res_id`` and ``ins_code`` together identify a residue and are unique. A protein that is only a sequence has
    no atoms, and NaN for every position.

    Parameters
    ----------
    name : str
        Name of the structure, e.g. "1ubq".
    chain : ndarray
        ``(N,)`` str, author chain id; "" if the file has none.
    res_id : ndarray
        ``(N,)`` int64, author residue number.
    ins_code : ndarray
        ``(N,)`` str, insertion code, "" without one.
    res_name : ndarray
        ``(N,)`` str, as in the file (MSE stays MSE).
    aatype : ndarray
        ``(N,)`` int64, index in :data:`ALPHABET`; a modified residue has that of its parent.
    pos : ndarray
        ``(N, 3)`` float32, Å, CA.
    backbone : ndarray
        ``(N, 4, 3)`` float32, Å, atoms N, CA, C, O; NaN for missing atoms.
    b_factor : ndarray
        ``(N,)`` float32, Å², isotropic B factor of CA; 0 if the file has none.
    seq_pos : ndarray
        ``(N,)`` int64, position along the chain from 0. It increases by one to the next residue, and by the difference
        of the residue numbers over an unresolved gap.
    atom_pos : ndarray
        ``(A, 3)`` float32, Å, heavy atoms, sorted by residue.
    atom_name : ndarray
        ``(A,)`` str.
    atom_element : ndarray
        ``(A,)`` str, upper case.
    atom_residue : ndarray
        ``(A,)`` int64, residue of each atom, ascending.
    report : LossReport
        Counts of what was left out or changed.
    occupancy : ndarray, optional
        ``(N,)`` float32, occupancy of CA; None if unknown, equivalent to 1.
    predicted : bool
        True if the file declares that ``b_factor`` is the confidence of a prediction (pLDDT, 0 to 100).
    ligands : Ligands, optional
        Molecules besides the protein; None unless requested from :func:`protgraph.structure.clean`.
    partners : tuple of tuple of str, optional
        Chains of each side of a complex, for models of binding; None if they are not declared.
    alignment : Alignment, optional
        Sequences aligned to the residues; None if no alignment was given.
    """

    name: str
    chain: np.ndarray
    res_id: np.ndarray
    ins_code: np.ndarray
    res_name: np.ndarray
    aatype: np.ndarray
    pos: np.ndarray
    backbone: np.ndarray
    b_factor: np.ndarray
    seq_pos: np.ndarray
    atom_pos: np.ndarray
    atom_name: np.ndarray
    atom_element: np.ndarray
    atom_residue: np.ndarray
    report: LossReport
    occupancy: np.ndarray | None = None
    predicted: bool = False
    ligands: Ligands | None = None
    partners: tuple[tuple[str, ...], ...] | None = None
    alignment: Alignment | None = None

    def __len__(self) -> int:
        return len(self.res_id)

    def __repr__(self) -> str:
        chains = ", ".join(repr(str(name)) for name in self.chain_names)
        return f"Residues({self.name!r}, {len(self)} residues of {chains}, {len(self.atom_name)} atoms)"

    def _repr_html_(self) -> str:
        """Return the chains with their first and last residue and sequence as a table, for notebooks."""
        rows = []
        for name in self.chain_names:
            of_chain = self.chain == name
            letters = "".join(_LETTERS[self.aatype[of_chain]])
            ends = [
                f"{number}{code}" for number, code in zip(self.res_id[of_chain], self.ins_code[of_chain], strict=True)
            ]
            shown = letters if len(letters) <= _SHOWN else f"{letters[:_SHOWN]}…"
            rows.append((name or "blank", len(letters), ends[0], ends[-1], shown))
        title = f"{self.name}: {len(self)} residues, {len(self.atom_name)} atoms"
        columns = ["chain", "residues", "first", "last", "sequence"]
        return html_table(title, columns, rows, note="; ".join(self.report.lines()))

    @property
    def backbone_mask(self) -> np.ndarray:
        """True for the present atoms of N, CA, C, O, ``(N, 4)`` bool."""
        return ~np.isnan(self.backbone[..., 0])

    @property
    def has_coordinates(self) -> bool:
        """False for a protein that is only a sequence."""
        return not np.isnan(self.pos).all()

    @property
    def sequence(self) -> str:
        """One-letter codes of all residues, in file order."""
        return "".join(_LETTERS[self.aatype])

    @cached_property
    def chain_names(self) -> tuple[str, ...]:
        """Chain ids in order of appearance."""
        return tuple(dict.fromkeys(self.chain.tolist()))

    @property
    def chain_number(self) -> np.ndarray:
        """Index of the chain of each residue, in order of appearance, ``(N,)`` int64."""
        return by_appearance(self.chain)

    @property
    def side(self) -> np.ndarray:
        """Index of the partner of each residue, ``(N,)`` int64, −1 for none; each chain is one if none is declared."""
        number = {name: i for i, names in enumerate(self.partners or zip(self.chain_names)) for name in names}
        return np.array([number.get(name, -1) for name in self.chain.tolist()], np.int64)

    @property
    def atom_ptr(self) -> np.ndarray:
        """Offsets ``(N + 1,)`` int64: residue n has the atoms ``atom_ptr[n]:atom_ptr[n + 1]``."""
        return np.searchsorted(self.atom_residue, np.arange(len(self) + 1))

    @property
    def ids(self) -> list[str]:
        """Readable ids, e.g. "A:42", or "A:42A" with an insertion code."""
        return residue_ids(self.chain, self.res_id, self.ins_code)

    def select(self, keep: np.ndarray) -> Residues:
        """Return the residues with ``keep`` ``(N,)`` bool True, with their atoms; the report is unchanged."""
        rows = ("chain", "res_id", "ins_code", "res_name", "aatype", "pos", "backbone", "b_factor", "seq_pos")
        arrays: dict[str, Any] = {name: getattr(self, name)[keep] for name in rows}
        if self.occupancy is not None:
            arrays["occupancy"] = self.occupancy[keep]
        if self.alignment is not None:
            arrays["alignment"] = self.alignment.select(keep)
        number = np.cumsum(keep) - 1  # (N,) new index of each kept residue
        arrays |= self._atoms(keep[self.atom_residue], number)
        return replace(self, **arrays)

    def chains(self, names: str | Sequence[str]) -> Residues:
        """Return the residues of the named chains, in file order; the report counts the others.

        ``names``: chain ids; a single text is one id. With a chain such as "A-2", the second "A" of the file, stay the
        ligands of both, which the file does not tell apart. Raises :class:`SelectionError` if the protein does not have
        a chain.
        """
        names = [names] if isinstance(names, str) else list(names)
        unknown = [name for name in names if name not in self.chain_names]
        if unknown:
            raise SelectionError(
                f"{self.name}: no protein chain {unknown[0]!r}. It has {', '.join(map(repr, self.chain_names))}."
            )
        keep = np.isin(self.chain, names)
        others, counts = np.unique(self.chain[~keep], return_counts=True)
        excluded = dict(zip(others.tolist(), counts.tolist(), strict=True))
        in_file = [name.rpartition("-")[0] for name in names if name in self.report.repeated_chains]
        ligands = self.ligands and self.ligands.select(np.isin(self.ligands.chain, [*names, *in_file]))
        report = self.report.merge(LossReport(excluded_chains=excluded))
        return replace(self.select(keep), report=report, ligands=ligands)

    def hide(self, information: str | Collection[str]) -> Residues:
        """Return a copy without some information, so that nothing computed from it can leak it.

        ``information``: of :data:`HIDEABLE`: "residue_type" (all become unknown, and an alignment, which shows them, is
        removed), "sidechain" (only atoms N, CA, C, O remain), "b_factor" (zeros; also removes occupancies), "ligands",
        and "coordinates" (only the sequence and its numbering remain, as if read from FASTA). Raises
        :class:`OptionError` for other information.
        """
        hidden = {information} if isinstance(information, str) else set(information)
        if hidden - HIDEABLE:
            raise OptionError(f"cannot hide {sorted(hidden - HIDEABLE)}. Choose from {sorted(HIDEABLE)}.")
        changes: dict[str, Any] = {}
        if "residue_type" in hidden:
            changes["aatype"] = np.full_like(self.aatype, UNKNOWN)
            changes["res_name"] = np.full(len(self), "UNK")
            changes["report"] = self.report.without("modified", "unknown")
            changes["alignment"] = None
        if "sidechain" in hidden:
            changes.update(self._atoms(np.isin(self.atom_name, BACKBONE), np.arange(len(self))))
        if {"b_factor", "coordinates"} & hidden:
            changes |= {"b_factor": np.zeros_like(self.b_factor), "occupancy": None, "predicted": False}
        if "ligands" in hidden:
            changes["ligands"] = None
        if "coordinates" in hidden:
            changes |= {name: np.full_like(getattr(self, name), np.nan) for name in ("pos", "backbone")}
            changes |= self._atoms(np.zeros(len(self.atom_name), bool), np.arange(len(self)))
            changes |= {"report": LossReport(), "ligands": None}  # its counts depend on the structure
        return replace(self, **changes)

    def read_only(self) -> Residues:
        """Return the same residues with arrays that cannot be changed; the data are not copied."""
        arrays = {name: _read_only(value) for name, value in vars(self).items() if isinstance(value, np.ndarray)}
        ligands = self.ligands
        if ligands is not None:
            own = {name: _read_only(value) for name, value in vars(ligands).items() if isinstance(value, np.ndarray)}
            ligands = replace(ligands, **own)
        return self.copy_with(**arrays, ligands=ligands)

    def copy_with(self, **fields: object) -> Residues:
        """Return a copy with other values of some fields, in a third of the time of :func:`dataclasses.replace`.

        ``chain_names`` is kept: give the same chains.
        """
        copy = object.__new__(type(self))
        vars(copy).update(vars(self), **fields)
        return copy

    def without_sidechains(self, rows: np.ndarray) -> Residues:
        """Return a copy with only N, CA, C and O in the residues with ``rows`` ``(N,)`` bool True."""
        keep = np.isin(self.atom_name, BACKBONE) | ~rows[self.atom_residue]
        return replace(self, **self._atoms(keep, np.arange(len(self))))

    def without_types(self, rows: np.ndarray) -> Residues:
        """Return a copy in which the residues with ``rows`` ``(N,)`` bool True have type X and no side chain.

        They are also X in the first sequence of an alignment; other sequences stay.
        """
        changed = replace(
            self,
            alignment=self.alignment and self.alignment.without_types(rows),
            aatype=np.where(rows, UNKNOWN, self.aatype),
            res_name=np.where(rows, "UNK", self.res_name),
            report=self.report.without("modified", "unknown"),
        )
        return changed.without_sidechains(rows)

    def with_noise(self, sigma: float, *, seed: int) -> Residues:
        """Return a copy with Gaussian noise of standard deviation ``sigma``, Å, on every coordinate.

        ``pos``, ``backbone`` and ``atom_pos`` stay consistent; atoms of ligands move too. The same seed gives the same
        noise.
        """
        rng = np.random.default_rng(seed)
        backbone, atoms = (sigma * rng.standard_normal(x.shape) for x in (self.backbone, self.atom_pos))
        for column, name in enumerate(BACKBONE):
            rows = self.atom_name == name
            atoms[rows] = backbone[self.atom_residue[rows], column]
        ligands = self.ligands
        if ligands is not None:
            step = sigma * rng.standard_normal(ligands.atom_pos.shape)
            ligands = replace(ligands, atom_pos=(ligands.atom_pos + step).astype(ligands.atom_pos.dtype))
        pos, moved = displace_backbone(self.pos, self.backbone, backbone)
        return replace(
            self,
            ligands=ligands,
            pos=pos.astype(self.pos.dtype),
            backbone=moved.astype(self.backbone.dtype),
            atom_pos=(self.atom_pos + atoms).astype(self.atom_pos.dtype),
        )

    def _atoms(self, keep: np.ndarray, number: np.ndarray) -> dict[str, Any]:
        """Return the arrays of the kept atoms, with residues renumbered by ``number`` ``(N,)``."""
        arrays = {name: getattr(self, name)[keep] for name in ("atom_pos", "atom_name", "atom_element")}
        return {**arrays, "atom_residue": number[self.atom_residue[keep]]}


def displace_backbone(pos: Array, backbone: Array, step: Array) -> tuple[Array, Array]:
    """Return CA positions ``(N, 3)`` and backbone atoms ``(N, 4, 3)``, Å, moved by the same ``step (N, 4, 3)``.

    Examples
    --------
    >>> pos, backbone = displace_backbone(np.zeros((1, 3)), np.zeros((1, 4, 3)), np.ones((1, 4, 3)))
    >>> pos.tolist(), bool((backbone[:, CA] == pos).all())
    ([[1.0, 1.0, 1.0]], True)
    """
    return pos + step[:, CA], backbone + step


def _read_only(array: np.ndarray) -> np.ndarray:
    view = array.view()
    view.flags.writeable = False
    return view
