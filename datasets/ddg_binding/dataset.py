"""Dataset ``ddg_binding``: change of the binding free energy of protein complexes on mutation."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from protgraph_plugins.mutations import MutationDataset, SourceVariant
from protgraph_plugins.published import SourceFolder, SourceProtein, read_tsv

from protgraph import Residues
from protgraph.data.datasets import Example
from protgraph.structure import Structure, load_structure

__all__ = ["METHODS", "DdgBinding", "binding_ddg"]
ENTRY_POINTS = {"protgraph.datasets": {"ddg_binding": "DdgBinding"}}

FOLDER = Path(__file__).resolve().parent
#: Method → its file of predictions.
METHODS = {
    "ESM-IF": "ESM-IF.csv",
    "Flex ddG": "results_Flex_ddG.csv",
    "GEMME": "gemme.csv",
    "MSA Transformer": "MSA_Transformer.csv",
    "PPIformer": "ppiformer.csv",
    "RDE": "results_RDE.csv",
}
_SOURCE = "data/SKEMPI2"
#: Complex of E6AP: a published test group that is left out, so that all scores are of the same rows.
_LEFT_OUT = "1C4Z_ABC_D"
_GAS_CONSTANT = 8.314 / 4184  # kcal/mol/K, as in SKEMPI
_MUTATION = re.compile(r"(?P<wild_type>[A-Z])(?P<chain>\w)(?P<number>-?\d+)(?P<code>[a-z]?)(?P<mutant>[A-Z])")


class DdgBinding(MutationDataset):
    """SKEMPI v2 by complex.

    The source is the repository mutils at the commit of the card: ``data/SKEMPI2`` with SKEMPI's table, its files of
    structures with the numbers of their residues in the PDB, and predictions of published methods.
    """

    card_path = FOLDER / "dataset.toml"

    def convert(self, source: SourceFolder) -> Iterator[SourceProtein]:
        """Yield the chains of both partners of each complex.

        SKEMPI's file of 1KBH joins the 20 models of the entry, one over the other, and numbers them on. Only the last
        one is kept, which has the mutations.
        """
        for row in read_tsv(FOLDER / "complexes.tsv"):
            chains = tuple(name for side in self.partners(row["complex"]) for name in side)
            entry = row["complex"][:4]
            path = source.path(f"{_SOURCE}/PDBs/{entry}.pdb")
            protein = SourceProtein(row["complex"], path, row["split"], chains, row["cluster"])
            earlier = _earlier_copies(source.path(f"{_SOURCE}/PDBs/{entry}.mapping"))
            if earlier:
                read = partial(_without, path, earlier)
                content = path.read_bytes() + repr(sorted(earlier)).encode()
                protein = replace(protein, read=read, content=content)
            yield protein

    def variants(self, source: SourceFolder) -> Iterator[SourceVariant]:
        """Yield the mean of the measurements of each variant, and the rows without a value."""
        split = {row["complex"]: row["split"] for row in read_tsv(FOLDER / "complexes.tsv")}
        predictions = {name: _predictions(source, file) for name, file in METHODS.items()}
        measured: dict[tuple[str, str], list[tuple[int, dict[str, str]]]] = {}
        for number, row in enumerate(_read_csv(source.path(f"{_SOURCE}/skempi_v2.csv"), ";")):
            complex_, mutations = row["#Pdb"], _sorted_mutations(row["Mutation(s)_cleaned"])
            refusal = _problem(row)
            if refusal is None:
                measured.setdefault((complex_, mutations), []).append((number, row))
            else:
                yield SourceVariant(
                    f"skempi_v2.csv row {number}", complex_, mutations, split[complex_], math.nan, problem=refusal
                )
        for (complex_, mutations), numbered_rows in measured.items():
            numbers = ", ".join(str(number) for number, _ in numbered_rows)
            rows = [row for _, row in numbered_rows]
            columns = {}
            for name, values in predictions.items():
                predicted = _predicted_rows(values, complex_, rows)
                if predicted:
                    columns[name] = _mean(predicted)
            yield SourceVariant(
                f"skempi_v2.csv row {numbers}",
                complex_,
                mutations,
                split[complex_],
                _mean([_measured_ddg(row) for row in rows]),
                columns,
            )

    def read(self, example: Example) -> Residues:
        """Return the residues of a complex, with its partners."""
        return replace(super().read(example), partners=self.partners(example.path.stem))

    def partners(self, structure: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the chains of both sides; the name of a complex has them, ``1DVF_AB_CD``."""
        _, first, second = structure.split("_")
        return tuple(first), tuple(second)


def _read_csv(path: Path, separator: str = ",") -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter=separator))


def _predictions(source: SourceFolder, file: str) -> dict[tuple[str, str], float]:
    """Return the prediction for each complex and text of mutations."""
    rows = _read_csv(source.path(f"{_SOURCE}/predictions_test/{file}"))
    return {(row["complex"], row["mutstr"]): float(row["ddG_pred"]) for row in rows}


def _earlier_copies(mapping: Path) -> set[tuple[str, int]]:
    """Return chain and number of residues whose numbers in the PDB entry come again.

    A line of the file has residue name, chain, number in the entry, and number in the structure; the chain and a number
    of four digits are not separated, "LYS A1000  674".
    """
    last: dict[tuple[str, str], tuple[str, int]] = {}
    earlier: set[tuple[str, int]] = set()
    for line in mapping.read_text(encoding="utf-8").splitlines():
        if line.strip():
            chain, (in_entry, number) = line[4], line[5:].split()
            if (chain, in_entry) in last:
                earlier.add(last[chain, in_entry])
            last[chain, in_entry] = chain, int(number)
    return earlier


def _without(path: Path, left_out: set[tuple[str, int]]) -> Structure:
    """Return a structure without some residues, given by chain and number."""
    structure = load_structure(path)
    atoms = structure.atoms
    keys = zip(atoms.chain_id.tolist(), atoms.res_id.tolist(), strict=True)
    return replace(structure, atoms=atoms[np.array([key not in left_out for key in keys])])


def _sorted_mutations(text: str) -> str:
    """Return the mutations of a row, "LI38G,GA7aS", by chain and number: "A:G7[A]S,I:L38G"."""
    matches = [_MUTATION.fullmatch(mutation.strip()) for mutation in text.split(",")]
    matches.sort(key=lambda m: (m["chain"], int(m["number"]), m["code"], m["wild_type"], m["mutant"]))
    texts = []
    for m in matches:
        code = f"[{m['code'].upper()}]" if m["code"] else ""
        texts.append(f"{m['chain']}:{m['wild_type']}{m['number']}{code}{m['mutant']}")
    return ",".join(texts)


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


def _predicted_rows(
    values: Mapping[tuple[str, str], float], complex_: str, rows: Iterable[Mapping[str, str]]
) -> list[float]:
    """Return the predicted values of the rows of a variant that a method has."""
    keys = [(complex_, row["Mutation(s)_cleaned"]) for row in rows]
    return [values[key] for key in keys if key in values]


def _problem(row: Mapping[str, str]) -> tuple[str, str] | None:
    """Return the kind and description of what a row lacks for a value of its own, or None."""
    if row["#Pdb"] == _LEFT_OUT:
        return "held_out", "the test group E6AP is left out."
    for column, whose in (("Affinity_mut", "mutant"), ("Affinity_wt", "wild type")):
        written = row[f"{column} (M)"]
        if not row[f"{column}_parsed"]:
            return "no_affinity", f"no dissociation constant of the {whose}: no binding, or not measured."
        if written[0] in "<>~":
            return "censored", f"the dissociation constant of the {whose} is not exact: {written[0]!r}."
    if not row["Temperature"]:
        return "no_temperature", "no temperature of the measurement."
    return None


def _measured_ddg(row: Mapping[str, str]) -> float:
    temperature = float(row["Temperature"].removesuffix("(assumed)"))
    return binding_ddg(float(row["Affinity_mut_parsed"]), float(row["Affinity_wt_parsed"]), temperature)


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)
