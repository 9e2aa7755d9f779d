"""Rank the designs of a protein by scores that are averaged over decoding orders, with duplicates merged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from protgraph_plugins.design.decoding import (
    decoding_ranks,
    encode,
    random_decoding_order,
    random_deviates,
    teacher_forced_log_probs,
)
from protgraph_plugins.design.fasta import sequence_letters
from protgraph_plugins.design.results import Design
from protgraph_plugins.design.unresolved import model_rows

from protgraph.inference import ResultTable
from protgraph.model import ProteinModel
from protgraph.structure import ALPHABET, THREE_LETTER, Residues
from protgraph.structure.io import to_atom_array
from protgraph.validation import check_choice

__all__ = ["RANKING_COLUMNS", "RankedDesign", "rank_designs", "ranking_table", "write_design_structures"]

RANKING_COLUMNS = (
    *("protein", "rank", "sample", "copies", "temperature", "score", "score_deviation", "native_score"),
    *("sequence_identity", "n_mutations", "mutations", "sequence"),
)
"""Columns of :func:`ranking_table`."""

#: Atoms that a designed residue keeps, if its type changes.
_KEPT_ATOMS = ("N", "CA", "C", "O", "CB", "OXT")


@dataclass(frozen=True, eq=False)
class RankedDesign:
    """One sequence of a design, of one or several equal samples.

    Parameters
    ----------
    aatype : ndarray
        ``(N,)`` int64.
    sample : int
        Number of the first such sample, from 1, in the order of the design.
    copies : int
        Number of samples with this sequence.
    temperature : float
        Of the first such sample.
    scores : ndarray
        ``(orders,)`` mean of −log p over the designed residues, in each decoding order.
    native_score : float
        Mean over the same orders of the score of the native sequence.
    """

    aatype: np.ndarray
    sample: int
    copies: int
    temperature: float
    scores: np.ndarray
    native_score: float

    @property
    def score(self) -> float:
        """Mean of the scores over the orders."""
        return float(self.scores.mean())

    @property
    def deviation(self) -> float:
        """Standard deviation of the scores over the orders; 0 for one."""
        return float(self.scores.std(ddof=1)) if len(self.scores) > 1 else 0.0


class _SequenceScorer:
    """Mean of −log p over the designed residues of a protein, in the same decoding orders for every sequence."""

    @torch.no_grad()
    def __init__(
        self, model: ProteinModel, residues: Residues, designed: np.ndarray, *, orders: int, seed: int, sidechains: bool
    ) -> None:
        # The model also reads residues of the sequence without coordinates; `row` maps residues to its rows.
        rows, present = model_rows(model, residues)
        row = torch.from_numpy(np.flatnonzero(present))
        is_designed = torch.zeros(len(rows), dtype=torch.bool)
        is_designed[row] = torch.from_numpy(designed)
        self.decoding = encode(model, [rows], known=[~is_designed.numpy()] if sidechains else ())
        device = self.decoding.aatype.device
        self.row, self.designed = row.to(device), is_designed.to(device) & self.decoding.decodable
        deviates, _ = random_deviates(self.decoding.proteins.sizes, range(orders), seed=seed)
        order = random_decoding_order(self.designed, self.decoding.proteins, deviates.to(device))  # fixed ones first
        self.ranks = decoding_ranks(order, self.decoding.proteins)  # (orders, M)

    @torch.no_grad()
    def scores(self, types: np.ndarray) -> np.ndarray:
        """Return the score of types ``(N,)`` in each order, ``(orders,)``."""
        aatype = self.decoding.aatype.clone()
        aatype[self.row] = torch.from_numpy(types).to(aatype.device)
        scores = []
        for rank in self.ranks:
            log_probs = teacher_forced_log_probs(self.decoding, rank, aatype)
            counted = self.designed & (aatype < log_probs.size(1))  # X has no probability
            scores.append(-log_probs[counted].gather(1, aatype[counted, None]).double().mean())
        return torch.stack(scores).cpu().numpy()


def rank_designs(
    model: ProteinModel,
    design: Design,
    *,
    orders: int = 8,
    seed: int = 0,
    sidechains: bool = False,
    states: Sequence[Residues] = (),
) -> list[RankedDesign]:
    """Return the different sequences of a design, the one with the lowest score first.

    The score in the header of a sample is that of one random decoding order, which differs between samples, so that the
    scores of one sequence differ as much as those of different ones. Here all sequences have the same orders, and their
    scores are averaged.

    Parameters
    ----------
    model : ProteinModel
        The model that sampled the sequences.
    design : Design
    orders : int
        Random decoding orders; fixed residues come first in each.
    seed : int
        Seed of the orders.
    sidechains : bool
        As in :func:`design_sequences`.
    states : sequence of Residues, optional
        States of :func:`design_states`; scores are means over them.
    """
    scorers = [
        _SequenceScorer(model, state, design.designed, orders=orders, seed=seed, sidechains=sidechains)
        for state in states or [design.residues]
    ]

    def scores_of(types: np.ndarray) -> np.ndarray:
        return np.mean([scorer.scores(types) for scorer in scorers], axis=0)

    native_score = float(scores_of(design.residues.aatype).mean())
    sequences, first, copies = np.unique(design.aatype, axis=0, return_index=True, return_counts=True)
    ranked = [
        RankedDesign(types, int(i) + 1, int(count), float(design.temperature[i]), scores_of(types), native_score)
        for types, i, count in zip(sequences, first, copies, strict=True)
    ]
    return sorted(ranked, key=lambda ranked_design: (ranked_design.score, ranked_design.sample))


def ranking_table(design: Design, ranked: Sequence[RankedDesign]) -> ResultTable:
    """Return a row per sequence, with the columns :data:`RANKING_COLUMNS`.

    ``score`` is the mean over decoding orders of −log p per designed residue, lower is more probable, and
    ``score_deviation`` its standard deviation over the orders. ``sequence_identity`` is the fraction of designed
    residues with the native type. ``mutations`` can be given to ``protgraph mutate --mutations``.
    """
    residues, rows = design.residues, []
    chains = [name for name in residues.chain_names if design.designed[residues.chain == name].any()]
    for rank, ranked_design in enumerate(ranked, 1):
        is_native = ranked_design.aatype == residues.aatype
        changed = np.flatnonzero(~is_native)
        mutations = "+".join(_mutation(design, row, int(ranked_design.aatype[row])) for row in changed.tolist())
        identity = float(is_native[design.designed].mean())
        letters = sequence_letters(residues, ranked_design.aatype, chains)
        scores = (ranked_design.score, ranked_design.deviation, ranked_design.native_score)
        samples = (ranked_design.sample, ranked_design.copies, ranked_design.temperature)
        rows.append((residues.name, rank, *samples, *scores, identity, len(changed), mutations, letters))
    return ResultTable(RANKING_COLUMNS, rows)


def _mutation(design: Design, row: int, new: int) -> str:
    """Return e.g. "A:G52[A]D"."""
    r = design.residues
    code = f"[{r.ins_code[row]}]" if r.ins_code[row] else ""
    return f"{r.chain[row]}:{ALPHABET[r.aatype[row]]}{r.res_id[row]}{code}{ALPHABET[new]}"


def write_design_structures(
    folder: Path, design: Design, ranked: Sequence[RankedDesign], *, suffix: str = ".cif"
) -> list[Path]:
    """Write a structure file of each sequence, ``NAME_1.cif`` for the first rank, and return the files.

    Residues with another type have its name, and keep N, CA, C, O and CB (glycine without CB); their side chains are
    for a packing program. Other residues keep all of their heavy atoms. The B factor is 100 for designed residues and
    0 for others.

    Parameters
    ----------
    suffix : {".cif", ".pdb"}
    """
    from biotite.structure.io import save_structure

    check_choice("suffix", suffix, (".cif", ".pdb"))
    folder.mkdir(parents=True, exist_ok=True)
    atoms = to_atom_array(design.residues)
    row = design.residues.atom_residue
    atoms.b_factor = np.where(design.designed[row], 100.0, 0.0)
    paths = []
    for rank, ranked_design in enumerate(ranked, 1):
        changed = (ranked_design.aatype != design.residues.aatype)[row]
        named = atoms.copy()
        named.res_name = np.where(changed, np.array(THREE_LETTER)[ranked_design.aatype[row]], atoms.res_name)
        is_kept = np.isin(atoms.atom_name, _KEPT_ATOMS) & ~((atoms.atom_name == "CB") & (named.res_name == "GLY"))
        path = folder / f"{design.residues.name}_{rank}{suffix}"
        save_structure(path, named[~changed | is_kept])
        paths.append(path)
    return paths
