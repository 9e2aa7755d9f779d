"""Print the table of modes in ``docs/mutations.md``: correlations of log-odds with measured ΔΔG.

Run ``python tools/mutation_modes.py`` after ``protgraph data prepare ddg_megascale --from FOLDER``. The models were not
trained on stabilities, and the table selects nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import protgraph as pg
from protgraph.bench.mutation_comparison import mutation_scores
from protgraph.bench.mutation_rows import mutation_rows
from protgraph.design.mutation import EnsembleScorer, LogOddsScorer

__all__ = ["main", "scorers"]

DATASET, SPLIT = "ddg_megascale", "test"
PROTEIN, LIGAND = "proteinmpnn.v_48_020", "ligandmpnn.v_32_010_25"
_MODES = (("conditional", 1), ("conditional", 8), ("unconditional", 1), ("teacher_forced", 1), ("teacher_forced", 8))


def scorers() -> Iterator[tuple[str, object]]:
    """Yield the name of each row and its scorer."""
    protein, ligand = pg.pretrained(PROTEIN), pg.pretrained(LIGAND)
    for mode, orders in _MODES:
        yield f"{PROTEIN} | {mode}, {orders}", LogOddsScorer(protein, mode=mode, orders=orders)
    both = [LogOddsScorer(protein), LogOddsScorer(ligand)]
    yield f"{LIGAND} | conditional, 1", both[1]
    yield "mean of both | conditional, 1", EnsembleScorer(both)


def main() -> int:
    """Print the table, and return the exit code."""
    dataset = pg.load_dataset(DATASET)
    print("model | mode, orders | Spearman | Pearson")
    for title, scorer in scorers():
        rows = mutation_rows(dataset, SPLIT, [scorer])
        scores = mutation_scores(rows, scorer.name, np.isfinite(rows.predictions[scorer.name]))
        print(f"{title} | {scores.spearman:.3f} | {scores.pearson:.3f}  ({scores.rows} rows)", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
