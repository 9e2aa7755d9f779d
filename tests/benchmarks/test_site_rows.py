"""Models of binding sites from all rows and from those without PDBbind, compared on the same proteins."""

from __future__ import annotations

import numpy as np
import torch

from benchmarks.site_rows import difference_rows, split_of_sample
from protgraph.task import SplitPredictions


def test_every_nth_training_protein_and_the_free_part_of_validation_are_used():
    examples = [("a", "train"), ("b", "val"), ("c", "train"), ("d", "test"), ("e", "train"), ("f", "val")]
    sets = {"a": "dsdp", "b": "pdbbind", "c": "dsdp", "d": "dsdp", "e": "pdbbind", "f": "dsdp"}
    assert split_of_sample(examples, sets, every=2) == {"a": "train", "e": "train", "f": "val"}


def test_the_difference_is_of_equal_samples_of_clusters():
    generator = torch.Generator().manual_seed(0)
    y = (torch.rand(120, 1, generator=generator) < 0.3).float()
    noise = torch.randn(120, 1, generator=generator)
    protein = torch.arange(120) // 10
    good = SplitPredictions(2 * y + noise, y, protein=protein)
    clusters = [0, 0, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8]
    lines = difference_rows(good, good, clusters)
    assert [line for line in lines if "difference" in line] == [
        "pooled: difference: AUPRC 0.000 [0.000, 0.000]",
        "one vote per cluster: difference: AUPRC 0.000 [0.000, 0.000]",
    ]
    worse = SplitPredictions(noise, y, protein=protein)
    low = [float(line.split("[")[1].split(",")[0]) for line in difference_rows(good, worse, clusters) if "diff" in line]
    assert len(low) == 2
    assert np.all(np.array(low) > 0.1)
