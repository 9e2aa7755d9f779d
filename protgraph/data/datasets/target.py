"""Prediction target: level, kind and size of the labels, which determine head, loss and metrics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from protgraph.argument_types import check_fields
from protgraph.data.graph.fields import irreps_columns
from protgraph.errors import DatasetError, FieldError

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
    """Target of a task: what a model predicts.

    Parameters
    ----------
    name : str
        Name of the label, e.g. "secondary_structure".
    level : {"node", "edge", "graph", "pair"}
        One prediction per node (residue or atom), edge, protein or pair of residues of a protein.
    kind : {"classification", "multilabel", "regression", "vectors", "coordinates"}
        One of C classes; C independent binary labels (binary classification is C = 1); C real values; C vectors,
        equivariant under rotation; C points, equivariant under rotation and translation.
    size : int
        Number of classes, labels, values, vectors or points, C.
    names : tuple of str
        Names of the C classes, labels, values, vectors or points; may be empty.
    unit : str
        Unit of values, vectors and coordinates.
    head : str, optional
        Registry name of the head; default: the standard head of this level and kind.
    separation : int
        For pairs: least distance in sequence of two residues of the same chain.
    irreps : str
        Regression: e3nn irreps of the C values, e.g. "1x0e+1x1o" for a number and a vector, which rotates with the
        protein; "" if all are invariant.

    Raises
    ------
    DatasetError
        If no head predicts this level and kind, or ``size`` and ``names`` contradict each other.

    Notes
    -----
    Labels ``y`` are int64 ``(N,)`` for classification (−1: unknown), float32 ``(N, C)`` for multilabel and regression,
    float32 ``(N, C, 3)`` for vectors and coordinates (NaN: unknown). N is the number of nodes, edges, proteins or
    pairs. Unknown entries are ignored in loss and metrics.

    Examples
    --------
    >>> Target("secondary_structure", "node", "classification", 3, ("H", "E", "C")).head_name
    'node_classifier'
    """

    name: str
    level: Literal["node", "edge", "graph", "pair"]
    kind: Literal["classification", "multilabel", "regression", "vectors", "coordinates"]
    size: int
    names: tuple[str, ...] = ()
    unit: str = "dimensionless"
    head: str | None = None
    separation: int = 0
    irreps: str = ""

    def __post_init__(self) -> None:
        check_fields(self, "name", "level", "kind", "size", "unit", "head", "separation", "irreps", error=DatasetError)
        if (self.level, self.kind) not in _HEADS and self.head is None:
            raise DatasetError(
                f"target {self.name!r}: no head predicts {self.kind!r} per {self.level!r}. "
                f"Give head=, or use one of {sorted(_HEADS)}."
            )
        if self.size < 1 or (self.names and len(self.names) != self.size):
            raise DatasetError(f"target {self.name!r}: size {self.size} does not match the names {self.names}")
        if self.irreps:
            self._check_irreps()

    def _check_irreps(self) -> None:
        """Raise if the irreps are not those of the values of a regression."""
        try:
            width = len(irreps_columns(self.irreps))
        except FieldError as e:
            raise DatasetError(f"target {self.name!r}: {e}") from e
        if self.kind != "regression" or width != self.size:
            raise DatasetError(
                f"target {self.name!r}: {self.kind} of size {self.size}, irreps {self.irreps!r} of {width} values. "
                "Allowed: irreps of all values of a regression."
            )

    @property
    def shape(self) -> tuple[int, ...]:
        """Trailing shape of the logits: ``(C,)``, or ``(C, 3)`` for vectors and coordinates."""
        return (self.size, 3) if self.is_geometric else (self.size,)

    @property
    def is_geometric(self) -> bool:
        """True if predictions are vectors or points, equivariant under rotation."""
        return self.kind in ("vectors", "coordinates")

    @property
    def head_name(self) -> str:
        """Registry name of the head that predicts this target."""
        return self.head or _HEADS[self.level, self.kind]
