"""What is predicted: the shape and meaning of labels, which chooses the head, the loss and the metrics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from protgraph.errors import DatasetError

__all__ = ["Target"]

_HEADS = {
    ("node", "classification"): "node_classifier",
    ("node", "multilabel"): "node_multilabel",
    ("node", "regression"): "node_regressor",
    ("node", "vectors"): "node_vector",
    ("node", "coordinates"): "coordinates",
    ("graph", "classification"): "graph_classifier",
    ("graph", "multilabel"): "graph_multilabel",
    ("graph", "regression"): "graph_regressor",
    ("edge", "classification"): "edge_classifier",
    ("edge", "multilabel"): "edge_classifier",
    ("pair", "multilabel"): "contact",
}


@dataclass(frozen=True)
class Target:
    """What one task predicts.

    Parameters
    ----------
    name : str
        Name of the label: "secondary_structure".
    level : {"node", "edge", "graph", "pair"}
        Per residue, per edge, per protein or per pair of residues of a protein.
    kind : {"classification", "multilabel", "regression", "vectors", "coordinates"}
        One of C classes; C independent yes/no labels (multi-label; binary is C = 1); C real values; C vectors, which
        turn with the protein; C points, which turn and move with it.
    size : int
        C, how many of them; the width of the logits, or the number of vectors or points in them.
    names : tuple of str
        Names of the C classes, labels, values, vectors or points; empty where they have none.
    unit : str
        Unit of values, vectors and coordinates.
    head : str, optional
        Registry name of the head; None takes the usual one of this level and kind.
    separation : int
        Of pairs: how many positions apart two residues of one chain are at least, to be asked about.

    Notes
    -----
    Labels ``y`` are int64 ``(N,)`` for classes (−1: unknown), float32 ``(N, C)`` for labels and values, float32
    ``(N, C, 3)`` for vectors and coordinates (NaN: unknown), with N counting nodes, edges, proteins or pairs. Unknown
    entries take no part in loss or metrics.
    """

    name: str
    level: Literal["node", "edge", "graph", "pair"]
    kind: Literal["classification", "multilabel", "regression", "vectors", "coordinates"]
    size: int
    names: tuple[str, ...] = ()
    unit: str = "dimensionless"
    head: str | None = None
    separation: int = 0

    def __post_init__(self) -> None:
        if (self.level, self.kind) not in _HEADS and self.head is None:
            raise DatasetError(
                f"target {self.name!r}: no head predicts {self.kind!r} per {self.level!r}; "
                f"give head=, or one of {sorted(_HEADS)}"
            )
        if self.size < 1 or (self.names and len(self.names) != self.size):
            raise DatasetError(f"target {self.name!r}: size {self.size} does not fit the names {self.names}")

    @property
    def shape(self) -> tuple[int, ...]:
        """What follows N in the shape of the logits: ``(C,)``, or ``(C, 3)`` for vectors and coordinates."""
        return (self.size, 3) if self.is_geometric else (self.size,)

    @property
    def is_geometric(self) -> bool:
        """Whether what is predicted turns with the protein."""
        return self.kind in ("vectors", "coordinates")

    @property
    def head_name(self) -> str:
        """Registry name of the head that predicts this target."""
        return self.head or _HEADS[self.level, self.kind]
