"""Chains of ``lbs_heavy.npz``, an archive of the heavy atoms of many chains."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
from biotite.structure import AtomArray

from protgraph.structure import LossReport, Structure

__all__ = ["ChainArchive"]

_PER_RESIDUE = ("res_code", "res_id", "ins", "atoms_per_res")
_PER_ATOM = ("atom", "xyz", "b")


class ChainArchive:
    """Chains of an archive, one after another.

    Arrays: ``ids`` (``entry_chain``), ``n_res``, ``n_atoms`` per chain; ``res_code`` (index in ``res_names``),
    ``res_id``, ``ins`` (character code), ``atoms_per_res`` per residue; ``atom`` (index in ``atom_names``), ``xyz``
    (int16, 0.01 Å), ``b`` (uint16, 0.1 Å²) per atom.

    Parameters
    ----------
    path : Path
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with np.load(path, allow_pickle=False) as file:
            self._arrays = {name: file[name] for name in file.files}

    def chains(self) -> Iterator[tuple[str, partial[Structure], bytes]]:
        """Yield the id of each chain, a function that returns its structure, and the bytes that it depends on."""
        residue_ends, atom_ends = (np.cumsum(self._arrays[name], dtype=np.int64) for name in ("n_res", "n_atoms"))
        residue, atom = 0, 0
        for name, next_residue, next_atom in zip(
            self._arrays["ids"].tolist(), residue_ends.tolist(), atom_ends.tolist(), strict=True
        ):
            residues, atoms = slice(residue, next_residue), slice(atom, next_atom)
            parts = [self._arrays[key][residues] for key in _PER_RESIDUE]
            parts += [self._arrays[key][atoms] for key in _PER_ATOM]
            yield name, partial(self._structure, name, residues, atoms), b"".join(part.tobytes() for part in parts)
            residue, atom = next_residue, next_atom

    def _structure(self, name: str, residues: slice, atoms: slice) -> Structure:
        arrays = self._arrays
        number = np.repeat(np.arange(residues.stop - residues.start), arrays["atoms_per_res"][residues])
        array = AtomArray(len(number))
        array.coord = arrays["xyz"][atoms] / np.float32(100)
        array.chain_id[:] = name.split("_")[1]
        array.res_id = arrays["res_id"][residues].astype(int)[number]
        codes = np.array([chr(c).strip() for c in arrays["ins"][residues].tolist()], dtype="U1")
        array.ins_code = codes[number]
        array.res_name = arrays["res_names"][arrays["res_code"][residues]][number]
        array.atom_name = arrays["atom_names"][arrays["atom"][atoms]]
        array.element = np.array([_element(text) for text in array.atom_name.tolist()], dtype="U2")
        array.set_annotation("b_factor", arrays["b"][atoms] / np.float32(10))
        array.set_annotation("occupancy", np.ones(len(number), np.float32))
        return Structure(name, array, str(self.path), "npz", LossReport())


def _element(atom_name: str) -> str:
    return "SE" if atom_name == "SE" else atom_name[0]
