"""Field table: specification of every named tensor of a graph, for batching, wiring, symmetry tests and documentation.

Featurizers, layers and heads do not import each other; they exchange tensors under the names of this table. Plugins add
names with :func:`register_field`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Literal

from protgraph.argument_types import check_fields
from protgraph.errors import (
    DuplicateNameError,
    FieldError,
    UnknownNameError,
    WiringError,
    list_first,
    suggest,
)

if TYPE_CHECKING:
    from e3nn.o3 import Irreps

__all__ = [
    "EDGES",
    "NODES",
    "FieldSpec",
    "Level",
    "edge_index_name",
    "edge_set_of",
    "field",
    "field_owner",
    "field_table",
    "irreps_columns",
    "irreps_terms",
    "is_field",
    "is_node_set",
    "is_registered",
    "node_sets_of",
    "pairs_of",
    "register_field",
    "require_readable",
]

Level = Literal["node", "edge", "graph", "pair"]
"""Meaning of the rows of a field."""

EDGES = "edges"
"""The edge set without a name."""
NODES = "nodes"
"""The nodes of the graph, in contrast to those of a node set with a name."""
_EDGE_INDEX = "edge_index"

_DTYPES = ("float16", "bfloat16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "bool")
_LISTED = 40  # names in an error
_TERM = re.compile(r"(?:(\d+)x)?(\d+)([eo])")


@dataclass(frozen=True)
class FieldSpec:
    """Specification of a named tensor.

    Parameters
    ----------
    name : str
        Field name, snake_case. Must not contain "index" or "batch", since PyG shifts and concatenates such attributes
        by name; exceptions are PyG's own ``edge_index`` and ``batch``.
    level : {"node", "edge", "graph", "pair"}
        Meaning of the rows. Pairs are all ordered pairs of nodes of the same protein, row-major, protein by protein;
        they exist only inside models.
    irreps : str
        Transformation under rotation: e3nn irreps (``"16x0e+8x1o"``), ``"point"`` (positions, which also translate),
        ``"index"`` (node numbers, shifted on batching) or ``"object"`` (not a tensor: ``edges``, ``proteins``, and, of
        level "node", the name of a node set).
    dtype : str
        Name of the torch dtype. Floating-point fields are converted to the dtype of the model.
    unit : str
        Å, radians, Da, elementary charges, or "dimensionless".
    shape : tuple of int or None, optional
        Trailing shape if it is not ``(dim,)``: e.g. ``(4, 3)`` for four backbone atoms, ``()`` for one integer per
        node. None marks a width that depends on an option of the featurizer.
    classes : int, optional
        Number of categories of an integer field (``aatype`` has 21); None if it is not categorical.
    chiral : bool
        True if the values mix parities: they transform as declared under rotations, not under reflections.
    on : str
        Named edge set, e.g. "far", or node set, e.g. "residues", whose edges or nodes are the rows; "" for ``edges``
        and the nodes of the graph.
    doc : str
        Description in one line.

    Raises
    ------
    FieldError
        If level, irreps or dtype are unknown, or PyG would treat the name specially.
    """

    name: str
    level: Level
    irreps: str
    dtype: str = "float32"
    unit: str = "dimensionless"
    shape: tuple[int | None, ...] | None = None
    classes: int | None = None
    chiral: bool = False
    doc: str = ""
    on: str = ""

    def __post_init__(self) -> None:
        checked = ("name", "level", "irreps", "dtype", "unit", "classes", "chiral", "doc", "on")
        check_fields(self, *checked, error=FieldError)
        if not self.name:
            raise FieldError("field name ''. Allowed: a snake_case name.")
        if self.dtype not in _DTYPES:
            hint = suggest(self.dtype, _DTYPES)
            raise FieldError(f"field {self.name!r}: dtype {self.dtype!r}.{hint} Allowed: {', '.join(_DTYPES)}.")
        if self.classes is not None and self.classes < 1:
            raise FieldError(f"field {self.name!r}: classes {self.classes}. Allowed: 1 or more, or None.")
        self._check_special_name()
        if self.irreps not in ("point", "index", "object"):
            _ = self._terms  # raises if they are not irreps

    def _check_special_name(self) -> None:
        """Raise if PyG would shift or concatenate attributes of this name by its rules, unless they hold here."""
        special = [word for word in ("index", "batch") if word in self.name]
        is_batch = self.name == "batch" or (self.on and self.name == f"{self.on}_batch")
        if special and not is_batch and edge_set_of(self.name) is None:
            raise FieldError(
                f"field {self.name!r}: PyG treats names that contain {special[0]!r} specially. Choose another name."
            )

    def __deepcopy__(self, memo: dict[int, object]) -> FieldSpec:
        return self  # immutable

    @property
    def rows(self) -> str:
        """Level of the rows, or the named edge or node set that they are on: fields with equal rows belong together."""
        return pairs_of(self.on) if self.on and self.level == "pair" else self.on or self.level

    @cached_property
    def o3(self) -> Irreps:
        """The e3nn irreps. Raises :class:`FieldError` for points, indices and objects."""
        from e3nn.o3 import Irreps

        if self.irreps in ("point", "index", "object"):
            raise FieldError(f"field {self.name!r} is of type {self.irreps!r} and has no irreps")
        return Irreps(self.irreps)

    @property
    def is_tensor(self) -> bool:
        """False for the reduction objects ``edges`` and ``proteins``, and for node sets."""
        return self.irreps != "object"

    @property
    def is_category(self) -> bool:
        """True for integer categories, which layers embed or expand one-hot."""
        return self.classes is not None

    @property
    def is_scalar(self) -> bool:
        """True if all values are invariant under rotation (only l = 0 irreps)."""
        if self.irreps in ("point", "index", "object"):
            return False
        return all(degree == 0 for _, degree, _ in self._terms)

    @cached_property
    def _terms(self) -> tuple[tuple[int, int, int], ...]:
        return irreps_terms(self.irreps, name=self.name)

    @property
    def scalar_columns(self) -> tuple[bool, ...]:
        """True for each column of the irreps that rotations do not change."""
        return tuple(degree == 0 for count, degree, _ in self._terms for _ in range(count * (2 * degree + 1)))

    @property
    def width(self) -> int:
        """Number of columns of the irreps."""
        return sum(count * (2 * degree + 1) for count, degree, _ in self._terms)

    @property
    def dim(self) -> int:
        """Width of the last dimension as input of a layer; for a categorical field, the number of classes."""
        if self.classes is not None:
            return self.classes
        if self.shape is not None:
            return self.shape[-1] if self.shape else 1
        return 3 if self.irreps == "point" else self.width

    @property
    def trailing_shape(self) -> tuple[int | None, ...]:
        """Shape after the first dimension."""
        if self.shape is not None:
            return self.shape
        return (3,) if self.irreps == "point" else (self.width,)

    def as_(self, name: str, **changes: Any) -> FieldSpec:
        """Return a copy under another name, with other attributes changed, e.g. ``irreps``."""
        return replace(self, name=name, **changes)


def edge_index_name(edges: str) -> str:
    """Return the name of the tensor with the ends of the edges of a set.

    Examples
    --------
    >>> edge_index_name("edges"), edge_index_name("far")
    ('edge_index', 'far_edge_index')
    """
    return _EDGE_INDEX if edges == EDGES else f"{edges}_{_EDGE_INDEX}"


def pairs_of(nodes: str) -> str:
    """Return the rows of fields of pairs of nodes, for the rows of fields of nodes: ``pair`` for ``node``."""
    return "pair" if nodes == "node" else f"{nodes}_pair"


def edge_set_of(name: str) -> str | None:
    """Return the edge set whose edge index has this name; None for other fields.

    Examples
    --------
    >>> edge_set_of("edge_index"), edge_set_of("far_edge_index"), edge_set_of("pos")
    ('edges', 'far', None)
    """
    if name == _EDGE_INDEX:
        return EDGES
    return name.removesuffix(f"_{_EDGE_INDEX}") if name.endswith(f"_{_EDGE_INDEX}") else None


def irreps_terms(irreps: str, *, name: str = "") -> tuple[tuple[int, int, int], ...]:
    """Return multiplicity, degree and parity (1 or −1) of each term of irreps such as "16x0e+8x1o".

    Not e3nn.o3.Irreps: e3nn takes 1.5 s to import (e3nn 0.6.0, 2026-11-22).
    """
    terms = []
    for part in filter(None, irreps.replace(" ", "").split("+")):
        match = _TERM.fullmatch(part)
        if match is None:
            raise FieldError(f"field {name!r}: irreps {irreps!r}. Allowed: a sum of terms such as '16x0e+8x1o'.")
        terms.append((int(match[1] or 1), int(match[2]), 1 if match[3] == "e" else -1))
    return tuple(terms)


def irreps_columns(irreps: str) -> list[tuple[int, int, int]]:
    """Return number, degree and parity of the irrep of each column, e.g. to compare irreps written in two ways.

    Examples
    --------
    >>> irreps_columns("2x0e+1o")
    [(0, 0, 1), (1, 0, 1), (2, 1, -1), (2, 1, -1), (2, 1, -1)]
    """
    columns: list[tuple[int, int, int]] = []
    number = 0
    for count, degree, parity in irreps_terms(irreps):
        for _ in range(count):
            columns += [(number, degree, parity)] * (2 * degree + 1)
            number += 1
    return columns


_TABLE: dict[str, FieldSpec] = {}
# Features of graphs from PyG, of any width. They are not in the table, since layers have inputs of these names.
_PYG = {
    "x": FieldSpec("x", "node", "1x0e", doc="node features of a PyG graph"),
    "edge_attr": FieldSpec("edge_attr", "edge", "1x0e", doc="edge features of a PyG graph"),
}
_OWNERS: dict[str, str] = {}  # name → module that registered it
_PACKAGES = ("protgraph", "protgraph_plugins", "protgraph_datasets")


def register_field(spec: FieldSpec, *, replace: bool = False) -> FieldSpec:
    """Add a field to the table and return it; adding an equal spec again has no effect.

    Parameters
    ----------
    replace : bool
        Replace another spec of this name, e.g. in a notebook in which its irreps change. Models and graphs that exist
        keep the earlier spec. The fields of protgraph itself cannot be replaced.

    Raises
    ------
    DuplicateNameError
        If the name is registered with another spec.
    """
    if not isinstance(spec, FieldSpec):
        raise FieldError(f"register_field: spec = {spec!r}. Allowed: a FieldSpec.")
    registered = _TABLE.get(spec.name, spec)
    is_built_in = _OWNERS.get(spec.name, "").partition(".")[0] in _PACKAGES
    if registered != spec and (is_built_in or not replace):
        hint = "" if is_built_in else f", or replace it: register_field(FieldSpec({spec.name!r}, …), replace=True)"
        raise DuplicateNameError(
            f"field {spec.name!r} is already registered as {registered}, not as {spec}. Choose another name{hint}."
        )
    if registered != spec or spec.name not in _TABLE:
        caller = sys._getframe(1)
        module = caller.f_globals.get("__name__", "")
        is_read = caller.f_code.co_name != "<module>" and module.partition(".")[0] in _PACKAGES  # from a file
        _TABLE[spec.name] = spec
        _OWNERS[spec.name] = "" if is_read else module
    return _TABLE[spec.name]


def is_registered(name: str) -> bool:
    """Check if the table has a field of this name, or it is a field of the table on a named edge or node set."""
    return name in _TABLE or _on_set(name) is not None


def is_node_set(name: str) -> bool:
    """Check if this is the name of a node set: a registered object of level "node"."""
    spec = _TABLE.get(name)
    return spec is not None and spec.level == "node" and not spec.is_tensor


@lru_cache(maxsize=4096)
def _split_name(name: str) -> tuple[tuple[str, str], ...]:
    """Return the ways to split a name at an underscore into an edge or node set and a field."""
    places = [i for i, letter in enumerate(name) if letter == "_" and 0 < i < len(name) - 1]
    return tuple((name[:i], name[i + 1 :]) for i in places)


def _on_set(name: str) -> FieldSpec | None:
    """Return the spec of a field on a set, e.g. ``far_edge_dist`` or ``residues_pos``; None for other names."""
    for rows, local in _split_name(name) if isinstance(name, str) else ():
        spec = _TABLE.get(local)
        if spec is None or not spec.is_tensor:
            continue
        if spec.level == "edge" or (spec.level == "node" and is_node_set(rows)):
            return spec.as_(name, on=rows)
    return None


def is_field(name: str) -> bool:
    """Check if a graph can have a field of this name: one of the table, or PyG's ``x`` and ``edge_attr``."""
    return is_registered(name) or name in _PYG


def node_sets_of(names: Iterable[str]) -> list[str]:
    """Return the node sets whose positions are among the names of fields.

    Examples
    --------
    >>> node_sets_of(["pos", "seq_pos", "residues_pos"])
    ['residues']
    """
    sets = (name.removesuffix("_pos") for name in names if name.endswith("_pos"))
    return [nodes for nodes in sets if is_node_set(nodes)]


def field_owner(name: str) -> str:
    """Return the module that registered a field; "" if it was read from a file."""
    spec = None if name in _OWNERS else _on_set(name)
    return _OWNERS[name if spec is None else name.removeprefix(f"{spec.on}_")]


def field(name: str) -> FieldSpec:
    """Return the spec of a registered field, also on a named set, or of ``x`` and ``edge_attr`` of PyG.

    Raises
    ------
    UnknownNameError
        If there is no such field; with similar names.
    """
    try:
        spec = _TABLE.get(name) or _on_set(name)
        return _PYG[name] if spec is None else spec
    except (KeyError, TypeError):
        raise UnknownNameError(
            f"no field {name!r}.{suggest(str(name), _TABLE)} Fields: {list_first(sorted(_TABLE), _LISTED)}. "
            "Plugins add one with protgraph.register_field(FieldSpec(...))."
        ) from None


def require_readable(path: str, component: object, local: str, spec: FieldSpec) -> None:
    """Raise :class:`WiringError` if a component cannot read a field under a local name.

    Level and kind of values are compared with those of the field table, of a FieldSpec in ``conformity.inputs``, or of
    the conventions: ``h`` are numbers, per node in a component that reads ``edges`` or ``proteins``; ``edge_…`` and
    ``graph_…`` have the level of their prefix. Any other name can be any field.
    """
    level, values = _required_field(component, local)
    wiring = f"reads={{{local!r}: {spec.name!r}}}"
    if level and spec.level != level:
        raise WiringError(
            f"{path}: {wiring}: {local} is of level {level}, {spec.name!r} of level {spec.level}. Allowed: a field "
            f"of level {level}."
        )
    if local == "h" and spec.irreps == "point":
        raise WiringError(
            f"{path}: {wiring}: h are numbers per node, {spec.name!r} are positions. Allowed: a field of scalars, "
            "vectors or higher irreps."
        )
    if values and _values(spec) != values:
        hint = f" Add a layer that makes {values} of it, e.g. 'embed'." if spec.is_category else ""
        raise WiringError(
            f"{path}: {wiring}: {local} are {values}, {spec.name!r} are {_values(spec)}. Allowed: a field of "
            f"{values}.{hint}"
        )


def _required_field(component: object, local: str) -> tuple[str, str]:
    """Return level and kind of values of the field that a component reads under a local name; "" allows all."""
    stated = getattr(getattr(component, "conformity", None), "inputs", {}).get(local)
    if isinstance(stated, FieldSpec):
        return stated.level, _values(stated)
    if is_registered(local):
        return field(local).level, _values(field(local))
    if local == "h":
        reads_nodes = not {"edges", "proteins"}.isdisjoint(getattr(component, "reads", ()))
        return "node" if reads_nodes else "", _NUMBERS
    if local.startswith(("edge_", "graph_")):
        return local.partition("_")[0], ""
    if local == "pair":
        return "pair", ""
    return "", ""


_NUMBERS = "floating-point numbers"


def _values(spec: FieldSpec) -> str:
    """Return the kind of values of a field, in words."""
    if spec.irreps == "object":
        return "reduction objects"
    if spec.dtype == "bool":
        return "booleans"
    return _NUMBERS if "float" in spec.dtype else "integers"


def field_table() -> dict[str, FieldSpec]:
    """Return a copy of the field table, by name."""
    return dict(_TABLE)


_BUILT_IN = (
    # identity of nodes
    FieldSpec("aatype", "node", "0e", "int64", shape=(), classes=21, doc="residue type, ACDEFGHIKLMNPQRSTVWY then X"),
    FieldSpec(
        "masked",
        "node",
        "0e",
        "bool",
        shape=(),
        doc="True for residues whose type is hidden from the model and predicted; aatype is X there",
    ),
    FieldSpec("chain", "node", "0e", "int64", shape=(), doc="number of the chain, by order of appearance"),
    FieldSpec("res_id", "node", "0e", "int64", shape=(), doc="author residue number"),
    FieldSpec(
        "seq_pos", "node", "0e", "int64", shape=(), doc="position along the chain from 0, counting unresolved gaps"
    ),
    FieldSpec(
        "previous",
        "node",
        "0e",
        "int64",
        shape=(),
        classes=22,
        doc="type of the previous node; 21 at the start of a chain",
    ),
    FieldSpec(
        "decoding_rank",
        "node",
        "0e",
        "int64",
        shape=(),
        doc="rank in the decoding order: a residue can read the types of residues of lower rank; all 0: of none",
    ),
    # identity of atoms, where they are the nodes
    FieldSpec("atom_type", "node", "0e", "int64", shape=(), classes=38, doc="index of the name in atom37; 37: other"),
    FieldSpec("element", "node", "0e", "int64", shape=(), classes=119, doc="atomic number; 0: unknown"),
    FieldSpec("residue", "node", "0e", "int64", shape=(), doc="number of the residue or ligand in its protein"),
    FieldSpec("is_ligand", "node", "0e", "bool", shape=(), doc="True for atoms of ligands and nucleotides"),
    FieldSpec("ligand_distance", "node", "1x0e", unit="Å", doc="distance from the ligand, at most 20 Å"),
    # geometry of nodes
    FieldSpec("pos", "node", "point", unit="Å", doc="position of the node: CA of a residue"),
    FieldSpec("backbone", "node", "point", unit="Å", shape=(4, 3), doc="N, CA, C, O; NaN where missing"),
    FieldSpec("backbone_mask", "node", "4x0e", "bool", doc="True for those of N, CA, C, O that are present"),
    # node features
    FieldSpec("residue_one_hot", "node", "21x0e", doc="residue type, one-hot"),
    FieldSpec("sequence_position", "node", "16x0e", doc="sinusoidal encoding of seq_pos (Vaswani et al. 2017)"),
    FieldSpec("dihedral", "node", "3x0e+3x0o", doc="cosines, then sines of phi, psi, omega; 0 if an atom is missing"),
    FieldSpec("dihedral_mask", "node", "3x0e", "bool", doc="True for those of phi, psi, omega that are defined"),
    FieldSpec(
        "orientation", "node", "2x1o", shape=(2, 3), doc="unit vectors to the next and the previous CA; 0 at chain ends"
    ),
    FieldSpec(
        "sidechain_direction",
        "node",
        "1x1o",
        doc="unit vector from CA to the virtual CB (its formula is chiral)",
        chiral=True,
    ),
    FieldSpec(
        "frame",
        "node",
        "2x1o+1x1e",
        shape=(3, 3),
        doc="rows are the axes of the residue frame from N, CA, C; 0 if one is missing",
    ),
    FieldSpec("b_factor", "node", "1x0e", unit="Å²", doc="isotropic B factor of CA"),
    FieldSpec("node_attributes", "node", "1x0e", doc="attributes of nodes that are given with graphs; any width"),
    # edges
    FieldSpec(
        "edge_index",
        "edge",
        "index",
        "int64",
        shape=(2,),
        doc="source j in row 0, target i in row 1; sorted by target",
    ),
    FieldSpec("edge_vec", "edge", "1x1o", unit="Å", doc="pos[j] - pos[i]"),
    FieldSpec("edge_dist", "edge", "1x0e", unit="Å", doc="|pos[j] - pos[i]|"),
    FieldSpec("edge_direction", "edge", "1x1o", doc="edge_vec / edge_dist; 0 for coincident nodes"),
    FieldSpec("edge_local", "edge", "2x0e+1x0o", doc="edge_direction in the frame of i; 0 for coincident nodes"),
    FieldSpec(
        "edge_rotation",
        "edge",
        "2x0e+1x0o+2x0e+3x0o+1x0e",
        doc="axes of j in the frame of i, row-major; odd if exactly one of the two is the third axis",
    ),
    FieldSpec("edge_residue", "edge", "42x0e", doc="residue types of j and of i, one-hot"),
    FieldSpec("edge_rbf", "edge", "16x0e", doc="Gaussian radial basis of edge_dist"),
    FieldSpec(
        "edge_offset", "edge", "66x0e", doc="one-hot of seq_pos[j] - seq_pos[i] clipped to ±32; last: other chain"
    ),
    FieldSpec("edge_kind", "edge", "1x0e", doc="edge featurizers that created the edge, one column each"),
    # batching
    FieldSpec("batch", "node", "0e", "int64", shape=(), doc="number of the protein of each node"),
    # reduction objects
    FieldSpec("edges", "edge", "object", doc="protgraph.ops.Edges: reductions over neighbors"),
    FieldSpec("proteins", "graph", "object", doc="protgraph.ops.Proteins: reductions over the nodes of each protein"),
    # node sets
    FieldSpec("residues", "node", "object", doc="node set of the residues, beside the atoms of an atom graph"),
)
for _spec in _BUILT_IN:
    register_field(_spec)
