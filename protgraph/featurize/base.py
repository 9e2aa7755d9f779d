"""What a featurizer is: a name that adds named tensors to a graph, in one of two stages.

*Structure* featurizers see :class:`protgraph.structure.Residues` (numpy, no torch) once a protein; what they
find is stored. *Tensor* featurizers expand stored fields (distances, radial bases, directions) after
batching, on the device, without parameters; nothing expanded is ever stored or collated.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from torch import Tensor

from protgraph.data.graph.fields import FieldSpec, field
from protgraph.errors import WiringError
from protgraph.structure.residues.atoms import NodeAtoms
from protgraph.structure.residues.residues import Residues

__all__ = ["EdgeFeaturizer", "EdgeList", "Featurizer", "StructureFeaturizer", "TensorFeaturizer"]


class Featurizer(ABC):  # noqa: B024 -- each stage has its own call
    """Base of both stages; options are keyword-only arguments of ``__init__``.

    Attributes
    ----------
    reads : tuple of str
        Fields that must be there (tensor stage only; ``edges`` and ``proteins`` are the reduction objects).
    writes : tuple of str
        Fields that it adds, in the field table.
    needs_coordinates : bool
        Whether a protein that is only a sequence is refused before it is called; True unless the class says that the
        sequence is enough. Of the tensor stage, what reads ``pos`` or ``backbone`` needs coordinates.
    wants_ligands : bool
        Whether it looks at ``Residues.ligands``: files are then read with ligands and nucleic acids.
    out : dict of str to FieldSpec
        Their specs with the widths that the options give; the table's own spec unless :meth:`declare` says.
    """

    reads: ClassVar[tuple[str, ...]] = ()
    writes: ClassVar[tuple[str, ...]] = ()
    needs_coordinates: ClassVar[bool] = True
    wants_ligands: ClassVar[bool] = False

    def __init__(self) -> None:
        self.out: dict[str, FieldSpec] = {name: field(name) for name in self.writes}

    def depends_on(self) -> str:
        """What the result depends on besides code and options, such as a digest of a file; stored graphs know it."""
        return ""

    def declare(self, **irreps: str) -> None:
        """State the irreps of a written field whose width depends on options."""
        for name, value in irreps.items():
            self.out[name] = field(name).as_(name, irreps=value)


class StructureFeaturizer(Featurizer):
    """Numpy in, numpy out, once a protein."""

    @abstractmethod
    def __call__(self, residues: Residues) -> dict[str, np.ndarray]:
        """Exactly the written fields, each with one row a residue."""


@dataclass(frozen=True)
class EdgeList:
    """Directed edges j → i of one protein.

    Parameters
    ----------
    source, target : ndarray
        ``(E,)`` int64. Ascending by target; within a target ascending by distance, ties by source.
    degree : int, optional
        K where every node has exactly K incoming edges.
    """

    source: np.ndarray
    target: np.ndarray
    degree: int | None = None


class EdgeFeaturizer(Featurizer):
    """Finds the edges of a protein; several in one model make one multi-relational graph (``edge_kind``).

    Attributes
    ----------
    loops : bool
        Whether a node may be its own neighbor.
    """

    writes: ClassVar[tuple[str, ...]] = ("edge_index",)
    loops: ClassVar[bool] = False

    @abstractmethod
    def __call__(self, residues: Residues) -> EdgeList:
        """The edges, without duplicates and, unless the class says otherwise, without self loops."""

    def among(self, residues: Residues, nodes: NodeAtoms) -> EdgeList:
        """The edges between atoms, of kinds that have a meaning between them.

        Parameters
        ----------
        residues : Residues
        nodes : NodeAtoms
            Atoms of theirs; edges are of their numbers.

        Raises
        ------
        WiringError
            The kind joins residues only.
        """
        raise WiringError(f"{type(self).__name__} joins residues; nodes are atoms")


class TensorFeaturizer(Featurizer):
    """Tensors in, tensors out, on the device, after batching; no parameters.

    Attributes
    ----------
    optional : tuple of str
        Fields that it is given where a graph has them stored, though no featurizer writes them.
    """

    optional: ClassVar[tuple[str, ...]] = ()
    needs_coordinates: ClassVar[bool] = False

    @abstractmethod
    def __call__(self, f: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Exactly the written fields."""
