"""Base classes of featurizers, which add named tensors to a graph in one of two stages.

*Structure* featurizers read :class:`protgraph.structure.Residues` (NumPy, no torch) once per protein; their output is
stored. *Tensor* featurizers expand stored fields (distances, radial bases, directions) after batching, on the device,
without parameters; their output is neither stored nor collated.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from typing import Any, ClassVar

import numpy as np
from torch import Tensor

from protgraph.data.graph.fields import FieldSpec, field
from protgraph.errors import WiringError
from protgraph.structure.residues.atoms import NodeAtoms
from protgraph.structure.residues.residues import Residues

__all__ = ["EdgeFeaturizer", "EdgeList", "Featurizer", "StructureFeaturizer", "TensorFeaturizer"]


class Featurizer(ABC):  # noqa: B024 -- each stage has its own call
    """Base class of both stages; options are keyword-only arguments of ``__init__``.

    Attributes
    ----------
    reads : tuple of str
        Required fields (tensor stage only; ``edges`` and ``proteins`` are the reduction objects).
    writes : tuple of str
        Added fields, from the field table.
    needs_coordinates : bool
        True (the default of the structure stage): raise for a protein that is only a sequence. Tensor featurizers that
        read ``pos`` or ``backbone`` need coordinates.
    needs_ligands : bool
        True: uses ``Residues.ligands``, so files are read with ligands and nucleic acids.
    needs_alignment : bool
        True: uses ``Residues.alignment``, so it raises for a protein without one.
    inserts_unresolved : bool
        True: design and scoring insert a residue without coordinates for each missing residue number
        between the ends of a chain.
    out : dict of str to FieldSpec
        Specs of the written fields, with the widths set by :meth:`declare`.
    """

    reads: ClassVar[tuple[str, ...]] = ()
    writes: ClassVar[tuple[str, ...]] = ()
    needs_coordinates: ClassVar[bool] = True
    needs_ligands: ClassVar[bool] = False
    needs_alignment: ClassVar[bool] = False
    inserts_unresolved: bool = False

    def __init__(self) -> None:
        self.out: dict[str, FieldSpec] = {name: field(name) for name in self.writes}

    def depends_on(self) -> str:
        """Return a key of what the result depends on besides code and options, e.g. the checksum of a file."""
        return ""

    def declare(self, **irreps: str) -> None:
        """Set the irreps of a written field whose width depends on options."""
        for name, value in irreps.items():
            self.out[name] = field(name).as_(name, irreps=value)


class StructureFeaturizer(Featurizer):
    """Featurizer from residues to NumPy arrays, applied once per protein.

    Subclasses set ``writes``, names of registered fields (:func:`protgraph.register_field`), take their options as
    keyword-only arguments with defaults, call ``super().__init__()``, and implement :meth:`__call__`.

    Attributes
    ----------
    part : str
        Part of a protein that models with this featurizer read, e.g. "antibody domains"; "" for all of it. A
        featurizer with a part implements :meth:`parts`.
    zero_gradient : bool
        True: small motions of atoms do not change the values, because they are counts, classes or read from the file.

    Examples
    --------
    >>> class Confidence(StructureFeaturizer):
    ...     writes = ("b_factor",)
    ...     def __init__(self, *, scale: float = 1.0):
    ...         super().__init__()
    ...         self.scale = scale
    ...     def __call__(self, residues):
    ...         return {"b_factor": residues.b_factor[:, None] / self.scale}
    """

    part: str = ""
    zero_gradient: ClassVar[bool] = False

    def differentiable(self, f: Mapping[str, Any]) -> dict[str, Tensor] | None:
        """Compute the written fields in torch, for gradients with respect to coordinates; None if that is not possible.

        Without it, a model that reads the fields raises :class:`protgraph.errors.GradientError` if the coordinates
        require gradients.

        Parameters
        ----------
        f : mapping
            Fields of a graph or batch whose nodes are residues: ``pos``, ``backbone``, ``backbone_mask``, ``chain``,
            ``seq_pos``, ``aatype`` and ``proteins``.

        Returns
        -------
        dict of str to Tensor, optional
            ``(N, …)`` each: the fields that :meth:`__call__` returns, equal up to rounding, in the dtype of ``pos``.
        """
        return None

    @abstractmethod
    def __call__(self, residues: Residues) -> dict[str, np.ndarray]:
        """Return exactly the written fields, each with one finite row per residue.

        Parameters
        ----------
        residues : Residues
            The protein, without what the task hides. Its arrays are read-only.

        Returns
        -------
        dict of str to ndarray
            ``(N, …)`` each, of the trailing shape of the spec in ``out``; ``(1, …)`` for a field of the whole protein.
        """

    def parts(self, residues: Residues) -> list[np.ndarray]:
        """Return the ascending rows ``(M,)`` of each part of a protein that a trained model reads as a protein alone.

        Without any, the whole protein is given to the featurizer, whose error names what is missing.
        """
        return [np.arange(len(residues))]


@dataclass(frozen=True)
class EdgeList:
    """Directed edges j → i of one protein.

    Parameters
    ----------
    source, target : ndarray
        ``(E,)`` int64. Ascending by target; within a target ascending by distance, ties by source.
    degree : int, optional
        K if every node has exactly K incoming edges.
    fields : mapping of str to ndarray
        Attributes of the edges, ``(E, …)`` each: those fields in ``writes`` of the featurizer that are not
        ``edge_index``.
    """

    source: np.ndarray
    target: np.ndarray
    degree: int | None = None
    fields: Mapping[str, np.ndarray] = dataclass_field(default_factory=dict)

    @property
    def index(self) -> np.ndarray:
        """Sources and targets, ``(2, E)``."""
        return np.stack([self.source, self.target])


class EdgeFeaturizer(Featurizer):
    """Featurizer of edges; several in one edge set give a multi-relational graph (``edge_kind``).

    Attributes of edges, e.g. numbers of contacts, are further registered fields of level "edge" in ``writes``, and are
    returned in :attr:`EdgeList.fields`.

    Subclasses take their options as keyword-only arguments with defaults, call ``super().__init__()``, and implement
    :meth:`__call__`. :func:`protgraph.structure.neighbors.sort_edges` puts edges in the required order.

    Attributes
    ----------
    loops : bool
        True: self loops are allowed.
    """

    writes: ClassVar[tuple[str, ...]] = ("edge_index",)
    loops: ClassVar[bool] = False

    @abstractmethod
    def __call__(self, residues: Residues) -> EdgeList:
        """Return the edges, without duplicates and, unless ``loops``, without self loops, sorted as :class:`EdgeList`.

        Parameters
        ----------
        residues : Residues
            The protein, without what the task hides. Its arrays are read-only.
        """

    def among(self, residues: Residues, nodes: NodeAtoms) -> EdgeList:
        """Return the edges between atoms, for kinds that are defined between atoms.

        Parameters
        ----------
        nodes : NodeAtoms
            Atoms of the residues; edges are indices of these.

        Raises
        ------
        WiringError
            The kind is defined between residues only.
        """
        raise WiringError(f"{type(self).__name__} joins residues, but nodes are atoms")


class TensorFeaturizer(Featurizer):
    """Featurizer from tensors to tensors, after batching, on the device, without parameters.

    Subclasses set ``reads`` and ``writes``, names of fields, and implement :meth:`__call__`.

    Attributes
    ----------
    optional : tuple of str
        Fields that are passed if the graph has them, even if no featurizer writes them.
    """

    optional: ClassVar[tuple[str, ...]] = ()
    needs_coordinates: ClassVar[bool] = False

    @abstractmethod
    def __call__(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Return exactly the written fields, ``(N, …)`` or ``(E, …)`` each, as those that are read."""
