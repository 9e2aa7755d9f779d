"""Run a model on files: the proteins that it reads, in batches, with failures, notes and warnings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import torch
from torch import Tensor

from protgraph.checkpoint.checkpoint_file import Checkpoint
from protgraph.data.graph.protein_graph import collate
from protgraph.data.store.loader import pack
from protgraph.errors import OptionError
from protgraph.evaluation.evaluation import device_of
from protgraph.failure import Failure
from protgraph.featurize.pipeline import Source, iter_graphs
from protgraph.featurize.result import GraphResult, count_notes, successes
from protgraph.inference.input_warnings import InputChecks
from protgraph.model.build import ProteinModel
from protgraph.model.nonfinite import nonfinite_error
from protgraph.structure.io.read_options import ReadOptions

__all__ = ["ModelRun", "check_reads_structures", "featurized_proteins"]

T = TypeVar("T")


def check_reads_structures(checkpoint: Checkpoint) -> None:
    """Raise :class:`OptionError` for a model whose input is a structure and mutations."""
    target = checkpoint.model.target
    if target.head_name == "mutation":
        raise OptionError(
            f"model of {target.name!r}: it scores mutations, not structures. Use 'protgraph mutate FILE --mutations "
            "A:G42D --model NAME', or 'protgraph scan'."
        )


def featurized_proteins(
    checkpoint: Checkpoint,
    sources: Source | Iterable[Source],
    failures: list[Failure],
    notes: list[str],
    *,
    read: ReadOptions | None,
    jobs: int,
) -> Iterator[GraphResult]:
    """Yield what the model reads of each file as graphs; append to ``failures`` and ``notes``.

    A graph is a chain, all chains, or a part of a protein, as :attr:`Checkpoint.reads` states.
    """
    results = iter_graphs(
        sources,
        checkpoint.model.plan,
        read=read,
        step=checkpoint.graph_step,
        split_chains=checkpoint.reads == "one chain",
        select_parts=checkpoint.model.plan.part != "",
        jobs=jobs,
    )
    return successes(results, failures, notes)


class ModelRun:
    """Proteins that a model reads of some files, in batches, with failures, messages and warnings about inputs."""

    def __init__(
        self, checkpoint: Checkpoint, sources: Source | Iterable[Source], *, read: ReadOptions | None, jobs: int
    ) -> None:
        check_reads_structures(checkpoint)
        self.failures: list[Failure] = []
        self.checks = InputChecks(checkpoint, read)
        self._notes: list[str] = []
        results = featurized_proteins(checkpoint, sources, self.failures, self._notes, read=read, jobs=jobs)
        self._proteins = self.checks.watch(results)

    @property
    def notes(self) -> tuple[str, ...]:
        """Messages for the user about the files that were read so far."""
        return (*count_notes(self._notes), *self.checks.notes)

    def outputs(
        self,
        network: ProteinModel,
        compute: Callable[[list[GraphResult]], tuple[Tensor, T]],
        *,
        max_residues: int,
    ) -> Iterator[tuple[list[GraphResult], T]]:
        """Yield proteins with their outputs; of a batch that is not finite, each protein is computed alone."""
        for members in pack(self._proteins, lambda p: len(p.residues), max_size=max_residues):
            numbers, output = compute(members)
            if bool(torch.isfinite(numbers).all()):
                yield members, output
                continue
            for protein in members:
                numbers, output = compute([protein])
                if bool(torch.isfinite(numbers).all()):
                    yield [protein], output
                else:
                    batch = collate([protein.graph]).to(device_of(network))
                    error = nonfinite_error(network, batch, protein.protein)
                    self.failures.append(Failure.of(protein.source, protein.protein, error, sha256=protein.sha256))
