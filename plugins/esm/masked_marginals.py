"""Zero-shot scores of mutations by the masked marginals of ESM-2: ``esm2``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from protgraph_plugins.esm.alignment import UNRESOLVED, SequenceWindow, chain_rows, chain_tokens, split_windows
from protgraph_plugins.esm.checkpoint import load_masked_lm
from protgraph_plugins.esm.states import hidden_states
from protgraph_plugins.esm.vocabulary import AATYPE_TOKENS
from protgraph_plugins.mutations import Mutation, site_differences, sum_log_odds

from protgraph import Residues

__all__ = ["MaskedMarginals"]
ENTRY_POINTS = {"protgraph.mutation_scorers": {"esm2": "MaskedMarginals"}}

_BATCH = 256  # masked sequences computed together


class MaskedMarginals:
    """Masked marginals of ESM-2: ``Σ_i log p(wild type of i) − log p(mutant of i)``, with all mutated sites masked.

    Parameters
    ----------
    weights : str
        Checkpoint: name on the Hugging Face hub, local folder, or ``"random:tiny"`` (random weights, for tests).
    revision : str, optional
        Branch, tag or commit of a name on the hub.
    max_len : int
        Maximal number of residues of one input.
    long : {"error", "chunk"}
        Treatment of longer chains: an error, or windows that overlap by half.
    device : str
        "auto", "cpu", "cuda" or "cuda:1".

    Notes
    -----
    The model reads sequences only: each chain is an input of its own, without unresolved residues, and the score of a
    variant is the sum over its chains. Reverse mutations have the negative score in the same context.

    References
    ----------
    Meier et al. 2021, doi:10.1101/2021.07.09.450648, equation 1 (masked marginals). Lin et al. 2023,
    doi:10.1126/science.ade2574 (ESM-2).
    """

    unit = ""

    def __init__(
        self,
        *,
        weights: str = "facebook/esm2_t33_650M_UR50D",
        revision: str | None = None,
        max_len: int = 1022,
        long: str = "error",
        device: str = "auto",
    ) -> None:
        from protgraph.model import find_device

        self.model: Any = load_masked_lm(weights, revision=revision).to(find_device(device)).eval()
        self.name = f"esm2:{weights.rpartition('/')[2]}"
        self.max_len, self.long = max_len, long

    @torch.no_grad()
    def score(self, residues: Residues, variants: Sequence[Sequence[Mutation]]) -> np.ndarray:
        """Return the log-odds ``(V,)`` float64 of variants.

        Raises
        ------
        MutationError
            A mutation does not fit the structure.
        FieldError
            A chain is too long, with ``long="error"``.
        """
        differences = site_differences(residues, variants)
        n = len(residues)
        chains = chain_rows(np.zeros(n, np.int64), residues.chain_number, residues.seq_pos, gaps="join")
        position = np.zeros((n, 2), np.int64)  # chain, and position in its sequence
        for number, rows in enumerate(chains):
            inside = np.flatnonzero(rows != UNRESOLVED)
            position[rows[inside]] = np.stack([np.full(len(inside), number), inside], 1)
        sets = list(dict.fromkeys(d.rows for d in differences if d.rows))
        inputs = [key for rows in sets for key in self._inputs(rows, chains, position, residues)]
        values = self._computed(inputs)
        log_probs = {}
        for rows in sets:
            log_probs[rows] = np.stack([values[rows, row] for row in rows])
        return sum_log_odds(differences, log_probs)

    def _inputs(
        self, rows: tuple[int, ...], chains: Sequence[np.ndarray], position: np.ndarray, residues: Residues
    ) -> list[tuple[tuple[int, ...], np.ndarray, dict[int, int]]]:
        """Return the set of rows, tokens and the position of each masked row, for each chain and window of a set."""
        masked = np.zeros(len(residues), bool)
        masked[list(rows)] = True
        result = []
        for number in dict.fromkeys(position[list(rows), 0].tolist()):
            chain = chains[number]
            tokens = chain_tokens(chain, residues.aatype, gaps="join", masked=masked)
            subject = f"chain {residues.chain[chain[0]]!r} of {residues.name}"
            for window in split_windows(len(tokens), max_len=self.max_len, long=self.long, subject=subject):
                here = _in_window(rows, position, number, window)
                if here:
                    result.append((rows, window.tokens(tokens), here))
        return result

    def _computed(
        self, inputs: Sequence[tuple[tuple[int, ...], np.ndarray, dict[int, int]]]
    ) -> dict[tuple[tuple[int, ...], int], np.ndarray]:
        """Return the log-probabilities ``(20,)`` of each set and masked row."""
        result = {}
        for start in range(0, len(inputs), _BATCH):
            batch = inputs[start : start + _BATCH]
            states = hidden_states(self.model.esm, [tokens for _, tokens, _ in batch])
            for (rows, _, here), h in zip(batch, states, strict=True):
                log_probs = self.model.lm_head(h[list(here.values())]).double().log_softmax(-1)  # (M, 33)
                table = log_probs[:, list(AATYPE_TOKENS[:20])].cpu().numpy()
                result |= {(rows, row): line for row, line in zip(here, table, strict=True)}
        return result


def _in_window(rows: tuple[int, ...], place: np.ndarray, chain: int, window: SequenceWindow) -> dict[int, int]:
    """Return the position in a window of each row that the window is used for."""
    found = {row: int(place[row, 1]) for row in rows if place[row, 0] == chain}
    return {row: at - window.start for row, at in found.items() if window.keep.start <= at < window.keep.stop}
