"""Results of the pipeline: graphs with their residues, apart from the failure records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from protgraph.data.graph.protein_graph import ProteinGraph, set_attributes
from protgraph.failure import Failure
from protgraph.structure.residues.residues import Residues

__all__ = ["GraphResult", "count_notes", "successes"]


@dataclass(frozen=True, eq=False)
class GraphResult:
    """One protein after the pipeline.

    Parameters
    ----------
    source : str
        The file as given; for a FASTA record, followed by "#" and its name.
    protein : str
        Name of the protein.
    residues : Residues
        All residues, nothing hidden.
    graph : ProteinGraph
        Graph that the step made.
    sha256 : str
        Hexadecimal SHA-256 of the file; "" if the residues came from a store or a cache.
    seconds : float
        Time from opening the file to the graph.
    notes : tuple of str
        Messages of the step for the user.
    """

    source: str
    protein: str
    residues: Residues
    graph: ProteinGraph
    sha256: str = ""
    seconds: float = 0.0
    notes: tuple[str, ...] = ()

    @property
    def loss(self) -> Mapping[str, object]:
        """Loss report of the residues as plain data; see :meth:`protgraph.structure.LossReport.to_dict`."""
        return self.residues.report.to_dict()

    @property
    def chains(self) -> str:
        """Chain ids, joined by commas."""
        return ",".join(self.residues.chain_names)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state with tensors as arrays: processes copy them instead of sharing file descriptors."""
        arrays = {key: value.numpy() if isinstance(value, Tensor) else value for key, value in self.graph.items()}
        tensors = [key for key, value in self.graph.items() if isinstance(value, Tensor)]
        return vars(self) | {"graph": (arrays, tensors)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        arrays, tensors = state["graph"]
        graph = ProteinGraph()
        set_attributes(graph, arrays | {key: torch.from_numpy(arrays[key]) for key in tensors})
        vars(self).update(state | {"graph": graph})


def successes(
    results: Iterable[GraphResult | Failure], failures: list[Failure], notes: list[str] | None = None
) -> Iterator[GraphResult]:
    """Yield the results that have a graph, append the others to ``failures``, and all messages to ``notes``."""
    for result in results:
        if isinstance(result, Failure):
            failures.append(result)
        else:
            if notes is not None:
                notes += result.notes
            yield result


def count_notes(notes: Iterable[str]) -> tuple[str, ...]:
    """Return each distinct message once, with its number of graphs.

    Examples
    --------
    >>> count_notes(["recomputed", "recomputed"])
    ('recomputed (2 graphs)',)
    """
    return tuple(f"{note} ({n} graph{'s' if n > 1 else ''})" for note, n in Counter(notes).items())
