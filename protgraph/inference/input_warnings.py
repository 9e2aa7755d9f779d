"""Warnings about inputs of a trained model: missing atoms, residues left out, structures unlike the training set."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from biotite.structure import AtomArray
from torch import Tensor

from protgraph.checkpoint.checkpoint_file import Checkpoint
from protgraph.errors import SelectionError, list_first
from protgraph.evaluation.evaluation import device_of
from protgraph.featurize.result import GraphResult, model_notes
from protgraph.featurize.steps import ProteinRequest
from protgraph.inference.result_table import ResultTable
from protgraph.structure.io.atom_array import from_atom_array
from protgraph.structure.io.read_options import ReadOptions
from protgraph.structure.residues.alphabet import THREE_LETTER, UNKNOWN
from protgraph.structure.residues.clean import clean
from protgraph.structure.residues.loss_report import LossReport
from protgraph.structure.residues.residues import Residues
from protgraph.wording import count_noun

__all__ = ["InputChecks", "InputWarning", "write_warnings"]

#: Kind of warning → text after the number of proteins.
TEXTS = {
    "ca_only": "with CA atoms only, but the model reads other atoms",
    "missing_backbone": "with residues that lack N, C or O",
    "left_out": "with residues left out, because they have no CA",
    "low_completeness": "with more than 10 % of the residues left out or without a complete backbone",
    "unknown_type": "with residues of unknown type, read as X",
    "implausible_distances": "with consecutive CA atoms that are not 2.5 to 4.5 Å apart",
    "repeated_positions": "with several residues at the same position",
    "low_plddt": "with residues of low confidence in the structure (pLDDT below 70)",
    "parser": "changed by the reader",
    "unlike_training": "unlike the training set: predictions may be unreliable",
}
#: Kind of warning → what the user can do.
REMEDIES = {
    "unlike_training": (
        "Leave out chains and parts that are unlike what the model was trained on ('protgraph info NAME'; --chain, "
        "chains=), or use a model of such proteins"
    ),
}
_LOW = 0.1
_LOW_PLDDT = 70  # "low" and "very low" of the AlphaFold database (Varadi et al. 2022, doi:10.1093/nar/gkab1061)
_LISTED = 3
_HELIX = 16  # residues
_SHORTEST, _LONGEST = 2.5, 4.5  # Å


@dataclass(frozen=True)
class InputWarning:
    """One property of an input that makes its predictions less reliable."""

    file: str  # file of the protein; for a FASTA record, followed by "#" and its name
    chains: str  # chains, joined by commas; "" for the whole file
    kind: str  # key of :data:`TEXTS`
    count: int  # residues concerned; of ``parser``, messages
    detail: str  # names and numbers


class InputChecks:
    """Warnings about the inputs of one run.

    ``read``: options with which the files are read.
    """

    def __init__(self, checkpoint: Checkpoint, read: ReadOptions | None = None) -> None:
        self.checkpoint = checkpoint
        self.read = read or ReadOptions()
        self.warnings: list[InputWarning] = []
        self._proteins = 0
        self._unread = LossReport()
        self._chains: dict[str, int] = {}
        self._reports: dict[str, LossReport] = {}
        self._parts: dict[str, list[str]] = {}
        self._outside: dict[str, Mapping[str, int]] = {}
        self._reads_more: bool | None = None

    def watch(self, proteins: Iterable[GraphResult]) -> Iterator[GraphResult]:
        """Yield proteins and check the residues of each."""
        for protein in proteins:
            self._proteins += 1
            self._check_file(protein)
            if protein.residues.has_coordinates and self.checkpoint.model.needs_coordinates is not None:
                self._check_atoms(protein)
            yield protein

    def check_descriptors(self, proteins: Sequence[GraphResult], descriptors: Tensor) -> None:
        """Compare the descriptors ``(P, F)`` of proteins with those of the training set."""
        known = self.checkpoint.training_set
        if known is None:
            return
        unlike = known.is_unlike(descriptors).tolist()
        distance = known.distance(descriptors).tolist()
        for protein, is_unlike, value in zip(proteins, unlike, distance, strict=True):
            if is_unlike:
                detail = f"distance {value:.3g}, largest usual distance {float(known.threshold):.3g}"
                self._add(protein, "unlike_training", len(protein.residues), detail)

    @property
    def notes(self) -> tuple[str, ...]:
        """One message for each kind of warning, with the number of proteins, the first of them and a remedy."""
        notes = []
        for kind, text in TEXTS.items():
            proteins = []
            for warning in self.warnings:
                if warning.kind == kind:
                    name = f"{warning.file} {warning.chains}".strip()
                    proteins.append(f"{name} ({warning.detail})" if warning.detail else name)
            if proteins:
                count = f"{len(proteins)} of {count_noun(self._proteins, 'protein')}"
                remedy = f". {REMEDIES[kind]}" if kind in REMEDIES else ""
                notes.append(f"warning: {count} {text}: {list_first(proteins, _LISTED)}{remedy}")
        return (*self._unread_notes(), *notes)

    def _unread_notes(self) -> Iterator[str]:
        """Yield messages about models, parts, other molecules and chains that have no effect on the predictions."""
        yield from model_notes(self._reports, self.read.model_number)
        lines = [line.removesuffix(" left out") for line in self._unread.lines()]
        lines = [line.replace(" left out (", " (") for line in lines]
        if lines:
            yield f"not read by the model: {', '.join(lines)}"
        leaves_out = any(self._outside.values())
        has_several = any(len(ranges) > 1 for ranges in self._parts.values())
        if leaves_out or has_several:
            yield self._parts_note()
        several = [file for file, chains in self._chains.items() if chains > 1]
        if self.checkpoint.reads == "one chain" and several:
            files = f"{count_noun(len(several), 'file')} with several chains"
            yield f"trained on single chains: each chain is predicted without the others ({files})"

    def _parts_note(self) -> str:
        """Return which parts of each file are predicted, each as a protein alone, and how much is left out."""
        texts = []
        for file, chains in self._parts.items():
            text = f"{file} {' | '.join(chains)}"
            total = sum(self._outside[file].values())
            if total:
                left_out = ", ".join(f"{chain or 'blank'} {count}" for chain, count in self._outside[file].items())
                text += f" (left out: {count_noun(total, 'residue')} of chains {left_out})"
            texts.append(text)
        return f"only {self.checkpoint.reads} are predicted: {list_first(texts, _LISTED)}"

    def _add(self, protein: GraphResult, kind: str, count: int, detail: str = "", *, whole: bool = False) -> None:
        chains = "" if whole else protein.chains
        self.warnings.append(InputWarning(protein.source, chains, kind, count, detail))

    def _check_file(self, protein: GraphResult) -> None:
        """Report counts of the loss report, which are of the whole file, once for each file."""
        self._chains[protein.source] = self._chains.get(protein.source, 0) + len(protein.residues.chain_names)
        if self.checkpoint.model.plan.part:
            self._parts.setdefault(protein.source, []).append(_ranges(protein.residues))
            self._outside[protein.source] = protein.residues.report.outside_parts
        if protein.source in self._reports:
            return
        report = protein.residues.report
        self._reports[protein.source] = report
        plan = self.checkpoint.model.plan
        if plan.part or not plan.needs_ligands:
            molecules = LossReport(waters=report.waters, ligands=report.ligands, nucleic=report.nucleic)
            self._unread = self._unread.merge(molecules)
        for kind, counts in (("left_out", report.without_ca), ("unknown_type", report.unknown)):
            if counts:
                self._add(protein, kind, sum(counts.values()), _listed(counts), whole=True)
        changes = report.changes()
        if changes:
            self._add(protein, "parser", len(changes), "; ".join(changes), whole=True)

    def _check_atoms(self, protein: GraphResult) -> None:
        """Report atoms that the model reads and the file lacks, and implausible positions."""
        residues = protein.residues
        self._check_backbone(protein)
        apart, pairs = _implausible_steps(residues)
        if apart > _LOW * pairs:
            self._add(protein, "implausible_distances", apart, f"{apart} of {pairs} distances")
        repeated = len(residues) - len(np.unique(residues.pos, axis=0))
        if repeated:
            self._add(protein, "repeated_positions", repeated, f"{repeated} of {len(residues)} residues")
        num_unsure = int((residues.b_factor < _LOW_PLDDT).sum())
        if residues.predicted and num_unsure:
            self._add(protein, "low_plddt", num_unsure, f"{num_unsure} of {len(residues)} residues")

    def _check_backbone(self, protein: GraphResult) -> None:
        """Report missing atoms N, C and O, and residues that are left out."""
        residues = protein.residues
        is_incomplete = ~residues.backbone_mask.all(axis=1)
        missing = int(is_incomplete.sum())
        is_ca_only = not residues.backbone_mask[:, [0, 2, 3]].any()
        reads_missing = missing > 0 and self.reads_more_than_ca(residues)
        if reads_missing and is_ca_only:
            self._add(protein, "ca_only", len(residues))
        elif reads_missing:
            names = residues.ids
            ids = [names[i] for i in np.flatnonzero(is_incomplete)]
            self._add(protein, "missing_backbone", missing, list_first(ids, _LISTED))

        left_out = sum(residues.report.without_ca.values())
        total = len(residues) + left_out
        lacking = left_out
        if not is_ca_only:
            lacking += missing
        if lacking > _LOW * total:
            self._add(protein, "low_completeness", lacking, f"{lacking} of {total} residues")

    def reads_more_than_ca(self, residues: Residues) -> bool:
        """Return True if inputs of the model change when all atoms but CA are removed from a helix.

        A model of certain proteins, e.g. of antibodies, refuses a helix of alanines. It gets one with the sequence of
        ``residues``, an input that it accepts.
        """
        if self._reads_more is None:
            try:
                of_helix, of_trace = self._inputs_of_helices()
            except SelectionError:
                of_helix, of_trace = self._inputs_of_helices(residues)
            self._reads_more = any(not torch.equal(of_helix[name], of_trace[name]) for name in of_helix)
        return self._reads_more

    def _inputs_of_helices(self, like: Residues | None = None) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        helix, trace = _helices(like)
        return self._inputs(helix), self._inputs(trace)

    def _inputs(self, residues: Residues) -> dict[str, Tensor]:
        """Return the fields of a protein that layers and head read, without NaN."""
        model = self.checkpoint.model
        graph = self.checkpoint.graph_step(residues, model.plan, ProteinRequest("helix"))
        f = model.fields_of(graph.to(device_of(model)))
        names = set(model.head_reads.values())
        for wires in model.wires:
            names |= set(wires.reads.values())
        return {name: f[name].double().nan_to_num(nan=1e9) for name in names if isinstance(f.get(name), Tensor)}


def _helices(like: Residues | None = None) -> tuple[Residues, Residues]:
    """Return an α helix, complete and as CA trace; approximate radii (Å), angles (°) and heights (Å).

    It has 16 alanines, or the types and chains of other residues. Chains are 50 Å apart.
    """
    atoms = {
        "N": (1.55, -27.9, -0.92),
        "CA": (2.29, 0.0, 0.0),
        "C": (1.66, 26.5, 1.13),
        "O": (2.01, 24.4, 2.31),
        "CB": (3.31, -18.9, 1.02),
    }
    names = ["ALA"] * _HELIX
    chains = [0] * _HELIX
    if like is not None:
        names = [THREE_LETTER[kind] if kind < UNKNOWN else "ALA" for kind in like.aatype.tolist()]
        chains = like.chain_number.tolist()
    array = AtomArray(len(names) * len(atoms))
    for i, (res_name, chain) in enumerate(zip(names, chains, strict=True)):
        for j, (name, (radius, angle, height)) in enumerate(atoms.items()):
            row = len(atoms) * i + j
            phi = np.deg2rad(100 * i + angle)
            x = radius * np.cos(phi) + 50 * chain
            array.coord[row] = (x, radius * np.sin(phi), 1.5 * i + height)
            array.chain_id[row] = str(chain)
            array.res_id[row] = i + 1
            array.res_name[row] = res_name
            array.atom_name[row] = name
            array.element[row] = name[0]
    is_ca = array.atom_name == "CA"
    helix = clean(from_atom_array(array, name="helix"), ligands=True, nucleic=True)
    trace = clean(from_atom_array(array[is_ca], name="helix"), ligands=True, nucleic=True)
    return helix, trace


def _implausible_steps(residues: Residues) -> tuple[int, int]:
    """Return how many distances of consecutive CA atoms of a chain are impossible, and the number of distances.

    CA atoms are 2.9 Å (cis) or 3.8 Å (trans) apart. Residues with numbers that follow each other count as consecutive.
    """
    is_same_chain = residues.chain[1:] == residues.chain[:-1]
    is_next_number = np.diff(residues.res_id) == 1
    distance = np.linalg.norm(np.diff(residues.pos, axis=0), axis=1)
    distance = distance[is_same_chain & is_next_number]
    is_implausible = (distance < _SHORTEST) | (distance > _LONGEST)
    return int(is_implausible.sum()), len(distance)


def _ranges(residues: Residues) -> str:
    """Return the first and last residue of each run of a chain, e.g. "L:1 to L:107 with H:1 to H:113"."""
    ids = residues.ids
    is_other_chain = np.diff(residues.chain_number) != 0
    is_gap = np.diff(residues.seq_pos) != 1
    begins = np.flatnonzero(is_other_chain | is_gap) + 1
    bounds = [0, *begins.tolist(), len(ids)]
    ranges = [f"{ids[first]} to {ids[after - 1]}" for first, after in pairwise(bounds)]
    return " with ".join(ranges)


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))


def write_warnings(path: str | Path, warnings: Sequence[InputWarning]) -> Path | None:
    """Write a CSV file with a row per warning; without any, remove the file of an earlier run and return None."""
    if not warnings:
        Path(path).unlink(missing_ok=True)
        return None
    columns = tuple(f.name for f in fields(InputWarning))
    return ResultTable(columns, [astuple(warning) for warning in warnings]).write(path)
