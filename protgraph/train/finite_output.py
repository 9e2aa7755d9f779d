"""Outputs of a model for batches of proteins; proteins with NaN or infinity in the output become failures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import torch
from torch import Tensor

from protgraph.data.graph.protein_graph import collate
from protgraph.failure import Failure
from protgraph.featurize.result import GraphResult
from protgraph.model.build import ProteinModel
from protgraph.model.nonfinite import nonfinite_error

__all__ = ["finite_outputs"]

T = TypeVar("T")


def finite_outputs(
    network: ProteinModel,
    batches: Iterable[list[GraphResult]],
    compute: Callable[[list[GraphResult]], tuple[Tensor, T]],
    failures: list[Failure],
) -> Iterator[tuple[list[GraphResult], T]]:
    """Yield proteins with their outputs; of a batch that is not finite, each protein is computed alone."""
    for members in batches:
        numbers, output = compute(members)
        if bool(torch.isfinite(numbers).all()):
            yield members, output
            continue
        for protein in members:
            numbers, output = compute([protein])
            if bool(torch.isfinite(numbers).all()):
                yield [protein], output
            else:
                where = next((p.device for p in network.parameters()), torch.device("cpu"))
                error = nonfinite_error(network, collate([protein.graph]).to(where), protein.protein)
                failures.append(Failure.of(protein.source, protein.protein, error, sha256=protein.sha256))
