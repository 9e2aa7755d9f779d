"""Dataset ``ddg_binding``: change of the binding free energy of protein complexes on mutation."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from protgraph import Residues
from protgraph.data.datasets.dataset import Example
from protgraph.data.datasets.mutation_dataset import MutationDataset, SourceVariant, join_mutations
from protgraph.data.datasets.site_tables import read_tsv
from protgraph.data.datasets.source_protein import SourceFolder, SourceProtein
from protgraph.errors import DatasetError
from protgraph.structure import Structure, load_structure

__all__ = ["METHODS", "DdgBinding", "binding_ddg"]
ENTRY_POINTS = {"protgraph.datasets": {"ddg_binding": "DdgBinding"}}

FOLDER = Path(__file__).resolve().parent
METHODS = {
    "ESM-IF": "pred_ESM-IF",
    "Flex ddG": "pred_Flex_ddG",
    "GEMME": "pred_GEMME",
    "MSA Transformer": "pred_MSA_Transformer",
    "PPIformer": "pred_PPIformer",
    "RDE": "pred_RDE",
}
_GAS_CONSTANT = 8.314 / 4184  # kcal/mol/K, as in SKEMPI
_TOLERANCE = 1e-3  # kcal/mol, of the ΔΔG of the table


class DdgBinding(MutationDataset):
    """SKEMPI v2 by complex.

    The source is a folder with ``mutations.tsv.gz``, ``numbering.tsv.gz`` and ``structures.tar.xz``.
    """

    card_path = FOLDER / "dataset.toml"

    def convert(self, source: SourceFolder) -> Iterator[SourceProtein]:
        """Yield the chains of both partners of each complex.

        SKEMPI's file of 1KBH joins the 20 models of the entry, one over the other, and numbers them on. Only the last
        one is kept, which has the mutations.
        """
        folder = source.unpacked("structures.tar.xz") / "structures"
        copies = _earlier_copies(source)
        for row in read_tsv(FOLDER / "complexes.tsv"):
            chains = tuple(name for side in self.partners(row["complex"]) for name in side)
            path = folder / f"{row['complex'][:4]}.bcif"
            protein = SourceProtein(row["complex"], path, row["split"], chains, row["cluster"])
            if left_out := copies.get(path.name):
                read = partial(_without, path, left_out)
                protein = replace(protein, read=read, content=path.read_bytes() + repr(left_out).encode())
            yield protein

    def variants(self, source: SourceFolder) -> Iterator[SourceVariant]:
        """Yield the mean of the measurements of each variant, and the rows without a value.

        Raises
        ------
        DatasetError
            ΔΔG of a row is not that of its affinities.
        """
        split = {row["complex"]: row["split"] for row in read_tsv(FOLDER / "complexes.tsv")}
        measured: dict[tuple[str, str], list[dict[str, str]]] = {}
        for row in read_tsv(source.path("mutations.tsv.gz")):
            key = row["complex"], join_mutations(row)
            problem = _problem(row)
            if problem is None:
                measured.setdefault(key, []).append(row)
            else:
                yield SourceVariant(f"mutations.tsv row {row['row']}", *key, split[key[0]], math.nan, problem=problem)
        for key, rows in measured.items():
            columns = {name: [float(row[c]) for row in rows if row[c]] for name, c in METHODS.items()}
            yield SourceVariant(
                f"mutations.tsv row {', '.join(row['row'] for row in rows)}",
                *key,
                split[key[0]],
                _mean([_value(row) for row in rows]),
                {name: _mean(values) for name, values in columns.items() if values},
            )

    def read(self, example: Example) -> Residues:
        """Return the residues of a complex, with its partners."""
        return replace(super().read(example), partners=self.partners(example.path.stem))

    def partners(self, structure: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the chains of both sides; the name of a complex has them, ``1DVF_AB_CD``."""
        _, first, second = structure.split("_")
        return tuple(first), tuple(second)


def _earlier_copies(source: SourceFolder) -> dict[str, list[tuple[str, int, int]]]:
    """Return chain, first and last number of residues whose numbers in the PDB entry come again, by file."""
    seen: dict[tuple[str, ...], tuple[str, int, int]] = {}
    copies: dict[str, list[tuple[str, int, int]]] = {}
    for row in read_tsv(source.path("numbering.tsv.gz")):
        key = tuple(
            row[name] for name in ("file", "chain", "source_first_res_id", "source_last_res_id", "source_ins_code")
        )
        if key in seen:
            copies.setdefault(row["file"], []).append(seen[key])
        seen[key] = row["chain"], int(row["first_res_id"]), int(row["last_res_id"])
    return copies


def _without(path: Path, left_out: Sequence[tuple[str, int, int]]) -> Structure:
    """Return a structure without the residues of ranges: chain, first and last number."""
    structure = load_structure(path)
    atoms = structure.atoms
    inside = [
        (atoms.chain_id == chain) & (first <= atoms.res_id) & (atoms.res_id <= last) for chain, first, last in left_out
    ]
    return replace(structure, atoms=atoms[~np.any(inside, 0)])


def binding_ddg(mutant: float, wild_type: float, temperature: float) -> float:
    """Compute ``ΔΔG = R T ln(Kd of mutant / Kd of wild type)``, kcal/mol; positive = weaker binding.

    Parameters
    ----------
    mutant, wild_type : float
        Dissociation constants, M.
    temperature : float
        K.

    Examples
    --------
    >>> round(binding_ddg(1e-6, 1e-9, 298.15), 2)
    4.09
    """
    return _GAS_CONSTANT * temperature * math.log(mutant / wild_type)


def _problem(row: Mapping[str, str]) -> tuple[str, str] | None:
    """Return the kind and description of what a row lacks for a value of its own, or None."""
    if row["held_out"] == "1":
        return "held_out", f"the values of the group {row['test_group']} are not in the source."
    for column, of in (("censored_mut", "mutant"), ("censored_wt", "wild type")):
        if row[column] == "none":
            return "no_affinity", f"no dissociation constant of the {of}: no binding, or not measured."
        if row[column]:
            return "censored", f"the dissociation constant of the {of} is not exact: {row[column]!r}."
    if not (row["kd_mut_m"] and row["kd_wt_m"]):
        return "no_affinity", "no dissociation constant."
    if not row["temperature_k"]:
        return "no_temperature", "no temperature of the measurement."
    return None


def _value(row: Mapping[str, str]) -> float:
    value = binding_ddg(*(float(row[name]) for name in ("kd_mut_m", "kd_wt_m", "temperature_k")))
    if abs(value - float(row["ddg"])) > _TOLERANCE:
        raise DatasetError(
            f"mutations.tsv row {row['row']}: ΔΔG {row['ddg']}, and {value:.4f} by its affinities. Copy it again."
        )
    return value


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)
