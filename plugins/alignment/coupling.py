"""Couplings between residues by mean-field direct coupling analysis (Morcos et al. 2011)."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
from annotated_types import Ge, Gt
from protgraph_plugins.alignment.profile import alignment_of

from protgraph.data.graph import FieldSpec, register_field
from protgraph.errors import OptionError
from protgraph.featurize import EdgeFeaturizer, EdgeList
from protgraph.structure import Alignment, Residues
from protgraph.structure.neighbors import sort_edges

__all__ = ["Coupling", "coupling_scores"]
ENTRY_POINTS = {"protgraph.featurizers": {"coupling": "Coupling"}}

register_field(FieldSpec("edge_coupling", "edge", "1x0e", doc="coupling of two columns of an alignment"))

_STATES = 21  # amino acids and the gap, which is the last one
_LONGEST = 1200  # residues: matrices of 4.6 GB


class Coupling(EdgeFeaturizer):
    """Edges between residues whose columns of the alignment vary together, in both directions.

    Scores are those of mean-field direct coupling analysis: couplings are the negative inverse of the covariances of
    residue types, ``e_ij = −(C⁻¹)_ij``, which removes correlations through third residues. The score of a pair is the
    Frobenius norm of ``e_ij`` over amino acids in the zero-sum gauge, without the mean of both rows (APC).

    Parameters
    ----------
    per_residue : float
        Pairs with the highest scores that become edges, as a multiple of the number of residues.
    separation : int
        Least offset along the sequence of two residues of one chain.

    Writes
    ------
    edge_coupling : (E, 1), 1x0e, dimensionless
        The score; 0 for edges of other featurizers in the same edge set.

    Notes
    -----
    Weights at 80 % identity, and as many effective pseudocounts as sequences, as published. Time and memory grow with
    the cube and the square of the number of residues; more than 1200 raise an error. The gap and X are one state. The
    paper ranks by direct information; norms with APC predict contacts better (Ekeberg et al. 2013).

    References
    ----------
    Morcos et al. 2011, PNAS 108, E1293, doi:10.1073/pnas.1111471108. Dunn et al. 2008, Bioinformatics 24, 333 (APC).
    Ekeberg et al. 2013, Phys. Rev. E 87, 012707.
    """

    writes: ClassVar[tuple[str, ...]] = ("edge_index", "edge_coupling")
    needs_coordinates: ClassVar[bool] = False
    needs_alignment: ClassVar[bool] = True

    def __init__(self, *, per_residue: Annotated[float, Gt(0)] = 1.5, separation: Annotated[int, Ge(1)] = 4) -> None:
        super().__init__()
        self.per_residue, self.separation = per_residue, separation

    def __call__(self, residues: Residues) -> EdgeList:
        n = len(residues)
        if n > _LONGEST:
            raise OptionError(
                f"coupling: {residues.name} has {n} residues. Allowed: at most {_LONGEST}. Select chains with --chain."
            )
        # Pairs of residues of two chains, or far apart along one chain.
        first, second = np.triu_indices(n, 1)
        in_other_chain = residues.chain[first] != residues.chain[second]
        offset = np.abs(residues.seq_pos[first] - residues.seq_pos[second])
        is_far = in_other_chain | (offset >= self.separation)
        first = first[is_far]
        second = second[is_far]
        if len(first) == 0:
            empty = np.zeros(0, np.int64)
            return EdgeList(empty, empty, fields={"edge_coupling": np.zeros((0, 1), np.float32)})

        # Those with the highest scores, in both directions.
        scores = coupling_scores(alignment_of(residues))
        count = min(len(first), max(1, round(self.per_residue * n)))
        best = np.argsort(-scores[first, second], kind="stable")[:count]
        pairs = np.stack([first[best], second[best]])
        source, target = sort_edges(residues.pos, np.concatenate([pairs, pairs[::-1]], 1))
        edge_scores = scores[source, target, None].astype(np.float32)
        return EdgeList(source, target, fields={"edge_coupling": edge_scores})


def coupling_scores(alignment: Alignment) -> np.ndarray:
    """Return the score of each pair of columns, ``(N, N)`` float64, symmetric; 0 on the diagonal."""
    states = np.where(alignment.rows >= _STATES - 1, _STATES - 1, alignment.rows)  # X and the gap
    n = states.shape[1]
    free = _STATES - 1
    covariance = _covariance(states, alignment.weights)
    inverse = np.linalg.inv(covariance)
    couplings = -inverse.reshape(n, free, n, free).transpose(0, 2, 1, 3)  # (N, N, 20, 20)
    norms = np.empty((n, n))
    for i in range(n):  # contract: one row at a time, in the zero-sum gauge; those of the gap are 0 before
        blocks = np.zeros((n, _STATES, _STATES))
        blocks[:, :free, :free] = couplings[i]
        blocks -= blocks.mean(1, keepdims=True)
        blocks -= blocks.mean(2, keepdims=True)
        norms[i] = np.sqrt((blocks[:, :free, :free] ** 2).sum((1, 2)))
    np.fill_diagonal(norms, 0.0)
    if n < 3:
        return norms

    # APC: less what both columns have in common with all others.
    mean = norms.sum(1) / (n - 1)
    mean_of_all = norms.sum() / (n * (n - 1))
    corrected = norms - np.outer(mean, mean) / mean_of_all
    np.fill_diagonal(corrected, 0.0)
    return corrected


def _covariance(states: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the covariances of the first 20 states of each column, ``(20 N, 20 N)``, with pseudocounts."""
    sequences, n = states.shape
    free = _STATES - 1
    total = weights.sum()
    pseudocount = total
    one_hot = (states[:, :, None] == np.arange(free)).reshape(sequences, n * free)
    root = one_hot * np.sqrt(weights)[:, None]
    scale = 1.0 / (pseudocount + total)
    single = scale * (pseudocount / _STATES + weights @ one_hot)  # (20 N,)
    pair = root.T @ root
    pair += pseudocount / _STATES**2
    for i in range(n):  # two states of one column exclude each other
        of_column = slice(i * free, (i + 1) * free)
        pair[of_column, of_column] = np.diag(single[of_column] / scale)
    pair *= scale
    pair -= np.outer(single, single)
    return pair
