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

__all__ = [
    "EdgeFeaturizer",
    "EdgeList",
    "Featurizer",
    "NodeFeaturizer",
    "NodeList",
    "StructureFeaturizer",
    "TensorFeaturizer",
]


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

    def notes(self, residues: Residues, node_type: str) -> list[str]:
        """Return messages for the user about what is decided for a protein, e.g. that bonds are guessed."""
        return []

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

    def parts(self, residues: Residues) -> list[Residues]:
        """Return each part of a protein that a trained model reads as a protein alone, residues in their order.

        Without any, the whole protein is given to the featurizer, whose error names what is missing.
        """
        return [residues]


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

    def between(self, sources: np.ndarray, targets: np.ndarray | None = None) -> EdgeList:
        """Return the edges from points to others, for kinds that are defined by distances of node sets.

        Parameters
        ----------
        sources : ndarray
            ``(M, 3)`` positions of the sources, Å.
        targets : ndarray, optional
            ``(R, 3)`` positions of the targets, Å; None: the sources themselves, without self loops.

        Raises
        ------
        WiringError
            The kind is defined between residues only.
        """
        raise WiringError(f"{type(self).__name__} joins residues, not points")


@dataclass(frozen=True)
class NodeList:
    """Nodes of a second level of one protein, e.g. points on its surface.

    Parameters
    ----------
    pos : ndarray
        ``(M, 3)`` positions, Å.
    residue : ndarray
        ``(M,)`` int64, the residue that each node belongs to; −1 for none.
    fields : mapping of str to ndarray
        ``(M, …)`` each: the other fields in ``writes`` of the featurizer.
    """

    pos: np.ndarray
    residue: np.ndarray
    fields: Mapping[str, np.ndarray] = dataclass_field(default_factory=dict)


class NodeFeaturizer(Featurizer):
    """Featurizer of a node set: nodes beside those of the graph, with positions and fields of their own.

    The first of ``writes`` is the name of the set, a registered field of level "node" and irreps "object"; the others
    are registered fields of nodes, which :attr:`NodeList.fields` has. In the graph their names begin with that of the
    set: ``points_pos``, ``points_chain``. Edge sets join each node with those of the graph that belong to the same
    residue: ``to_points`` leads to the set, ``from_points`` back.

    Subclasses take their options as keyword-only arguments with defaults, call ``super().__init__()``, and implement
    :meth:`__call__`.

    Attributes
    ----------
    are_residues : bool
        True if the nodes are the residues, in their order: edges of every kind between residues are defined for them.

    Examples
    --------
    >>> from protgraph.data.graph import FieldSpec, register_field
    >>> _ = register_field(FieldSpec("last_atoms", "node", "object", doc="node set: last atom of each residue"))
    >>> class LastAtoms(NodeFeaturizer):
    ...     writes = ("last_atoms",)
    ...     def __call__(self, residues):
    ...         is_last = np.diff(residues.atom_residue, append=-1) != 0
    ...         return NodeList(residues.atom_pos[is_last], residues.atom_residue[is_last])
    """

    are_residues: ClassVar[bool] = False

    @property
    def name(self) -> str:
        """Name of the node set."""
        return self.writes[0]

    def differentiable(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Compute fields of the set in torch, by name without that of the set, as :class:`StructureFeaturizer` does.

        Fields that are left out have no gradients with respect to coordinates.

        Parameters
        ----------
        f : mapping
            Fields of a graph or batch.

        Returns
        -------
        dict of str to Tensor
            ``(M, …)`` each, e.g. ``pos``.
        """
        return {}

    @abstractmethod
    def __call__(self, residues: Residues) -> NodeList:
        """Return the nodes, in an order that depends on that of the residues alone.

        Parameters
        ----------
        residues : Residues
            The protein, without what the task hides. Its arrays are read-only.
        """


class TensorFeaturizer(Featurizer):
    """Featurizer from tensors to tensors, after batching, on the device, without parameters.

    Subclasses set ``reads`` and ``writes``, names of fields, and implement :meth:`__call__`.

    Attributes
    ----------
    optional : tuple of str
        Fields that are passed if the graph has them, even if no featurizer writes them; of the sources of edges that
        join two node sets, e.g. ``source_pos``, those that ``reads`` has for the targets.
    """

    optional: ClassVar[tuple[str, ...]] = ()
    needs_coordinates: ClassVar[bool] = False

    @abstractmethod
    def __call__(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Return exactly the written fields, ``(N, …)`` or ``(E, …)`` each, as those that are read."""
