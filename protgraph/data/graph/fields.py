"""The field table: what every named tensor of a graph is, for batching, wiring, symmetry and documentation.

Featurizers, layers and heads never import each other; they meet in the names of this table. A plugin adds
its own names with :func:`register_field`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal, get_args

from protgraph.errors import DuplicateNameError, FieldError, UnknownNameError, suggest

if TYPE_CHECKING:
    from e3nn.o3 import Irreps

__all__ = ["FieldSpec", "field", "fields", "is_registered", "register_field"]

Level = Literal["node", "edge", "graph", "pair"]
_TERM = re.compile(r"(?:(\d+)x)?(\d+)[eo]")


@dataclass(frozen=True)
class FieldSpec:
    """What one named tensor is.

    Parameters
    ----------
    name : str
        Registry name, snake_case. Contains neither "index" nor "batch" (PyG guesses from those), except the
        PyG names ``edge_index`` and ``batch`` themselves.
    level : {"node", "edge", "graph", "pair"}
        What the first dimension counts. Pairs are all ordered pairs of each protein's nodes, row-major, protein after
        protein; layers make features of them, no graph stores any.
    irreps : str
        How the values transform under rotation: e3nn irreps (``"16x0e+8x1o"``), ``"point"`` (positions, which
        also translate), ``"index"`` (numbers of nodes, shifted on batching) or ``"object"`` (no tensor: the
        reduction objects ``edges`` and ``proteins``).
    dtype : str
        torch dtype name. Floating fields follow the model's dtype.
    unit : str
        Å, radians, Da, elementary charges, or "dimensionless".
    shape : tuple of int or None, optional
        Trailing shape where it is not ``(dim,)``: ``(4, 3)`` for the four backbone atoms, ``()`` for a vector of
        one integer per node. In the table, None stands for a width that an option of the featurizer decides.
    classes : int, optional
        Number of categories of an integer field (``aatype`` has 21); None where it is not a category.
    chiral : bool
        True where the values mix parities, so that only rotations, not reflections, act on them as declared.
    doc : str
        One line.
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

    def __post_init__(self) -> None:
        if self.level not in get_args(Level):
            known = ", ".join(map(repr, get_args(Level)))
            raise FieldError(f"field {self.name!r}: level {self.level!r} is none of {known}")
        guessed = [w for w in ("index", "batch") if w in self.name]
        if guessed and self.name not in ("edge_index", "batch"):
            raise FieldError(
                f"field {self.name!r}: a name with {guessed[0]!r} in it is shifted or mistaken by PyG; rename it"
            )

    @cached_property
    def o3(self) -> Irreps:
        """The e3nn irreps; raises :class:`FieldError` for points, indices and objects."""
        from e3nn.o3 import Irreps

        if self.irreps in ("point", "index", "object"):
            raise FieldError(f"field {self.name!r} is a {self.irreps}, it has no irreps")
        return Irreps(self.irreps)

    @property
    def is_tensor(self) -> bool:
        """False for the reduction objects ``edges`` and ``proteins``."""
        return self.irreps != "object"

    @property
    def is_category(self) -> bool:
        """True for integer categories, which layers embed or expand one-hot."""
        return self.classes is not None

    @property
    def is_scalar(self) -> bool:
        """True where rotations leave every value as it is (only l = 0 irreps)."""
        if self.irreps in ("point", "index", "object"):
            return False
        return all(degree == 0 for _, degree in self._terms)

    @cached_property
    def _terms(self) -> tuple[tuple[int, int], ...]:
        """(multiplicity, l) of each term of the irreps, without e3nn, which takes a second to import."""
        terms = []
        for part in filter(None, self.irreps.replace(" ", "").split("+")):
            found = _TERM.fullmatch(part)
            if found is None:
                raise FieldError(
                    f"field {self.name!r}: irreps {self.irreps!r} are no sum of terms such as '16x0e' or '8x1o'"
                )
            terms.append((int(found[1] or 1), int(found[2])))
        return tuple(terms)

    @property
    def _width(self) -> int:
        return sum(count * (2 * degree + 1) for count, degree in self._terms)

    @property
    def dim(self) -> int:
        """Width of the last dimension as a layer sees it; a category counts its classes."""
        if self.classes is not None:
            return self.classes
        if self.shape is not None:
            return self.shape[-1] if self.shape else 1
        return 3 if self.irreps == "point" else self._width

    @property
    def trailing_shape(self) -> tuple[int | None, ...]:
        """Shape after the first dimension."""
        if self.shape is not None:
            return self.shape
        return (3,) if self.irreps == "point" else (self._width,)

    def as_(self, name: str, **changes: object) -> FieldSpec:
        """This spec under another name, with other irreps, say."""
        return replace(self, name=name, **changes)


_TABLE: dict[str, FieldSpec] = {}


def register_field(spec: FieldSpec) -> FieldSpec:
    """Add a field to the table; the same spec again is a no-op, another under its name an error."""
    known = _TABLE.setdefault(spec.name, spec)
    if known != spec:
        raise DuplicateNameError(
            f"field {spec.name!r} is registered as {known}; it cannot become {spec}. Choose another name."
        )
    return known


def is_registered(name: str) -> bool:
    """Whether the table holds a field of this name."""
    return name in _TABLE


def field(name: str) -> FieldSpec:
    """The spec of a registered field; an unknown name raises with the nearest known ones."""
    try:
        return _TABLE[name]
    except KeyError:
        raise UnknownNameError(
            f"no field {name!r}.{suggest(name, _TABLE)} Known fields: {', '.join(sorted(_TABLE))}. "
            "A plugin adds one with protgraph.register_field(FieldSpec(...))."
        ) from None


def fields() -> dict[str, FieldSpec]:
    """A copy of the whole table, by name."""
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
        doc="which residue types are kept from the model, which is to guess them; aatype is X there",
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
        doc="type of the residue before, in the order of nodes; 21 at the start of a chain",
    ),
    FieldSpec(
        "decoding_rank",
        "node",
        "0e",
        "int64",
        shape=(),
        doc="place in the order of decoding: a residue is shown the types of those of a lower place; all 0: of none",
    ),
    # identity of atoms, where they are the nodes
    FieldSpec("atom_type", "node", "0e", "int64", shape=(), classes=38, doc="atom name, place in atom37; 37: another"),
    FieldSpec("element", "node", "0e", "int64", shape=(), classes=119, doc="atomic number; 0: unknown"),
    FieldSpec("residue", "node", "0e", "int64", shape=(), doc="number of the residue or ligand in its protein"),
    FieldSpec("is_ligand", "node", "0e", "bool", shape=(), doc="which atoms are of a ligand or nucleotide, no protein"),
    # geometry of nodes
    FieldSpec("pos", "node", "point", unit="Å", doc="position of the node: CA of a residue"),
    FieldSpec("backbone", "node", "point", unit="Å", shape=(4, 3), doc="N, CA, C, O; NaN where missing"),
    FieldSpec("backbone_mask", "node", "4x0e", "bool", doc="which of N, CA, C, O are there"),
    # node features
    FieldSpec("residue_one_hot", "node", "21x0e", doc="residue type, one-hot"),
    FieldSpec("sequence_position", "node", "16x0e", doc="sinusoidal code of seq_pos, after Vaswani 2017"),
    FieldSpec("dihedral", "node", "3x0e+3x0o", doc="cosines then sines of phi, psi, omega; 0 where an atom is missing"),
    FieldSpec("dihedral_mask", "node", "3x0e", "bool", doc="which of phi, psi, omega are defined"),
    FieldSpec(
        "orientation", "node", "2x1o", shape=(2, 3), doc="unit vectors to the next and the previous CA; 0 at ends"
    ),
    FieldSpec(
        "sidechain_direction",
        "node",
        "1x1o",
        doc="unit vector from CA to the virtual CB (chiral by its formula)",
        chiral=True,
    ),
    FieldSpec(
        "frame",
        "node",
        "2x1o+1x1e",
        shape=(3, 3),
        doc="rows are the axes of the residue's frame from N, CA, C; 0 where one is missing",
    ),
    FieldSpec("b_factor", "node", "1x0e", unit="Å²", doc="isotropic B factor of CA"),
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
        doc="axes of j in the frame of i, row-major; odd where one of two is the third",
    ),
    FieldSpec("edge_residue", "edge", "42x0e", doc="residue types of j and of i, one-hot"),
    FieldSpec("edge_rbf", "edge", "16x0e", doc="Gaussian radial basis of edge_dist"),
    FieldSpec(
        "edge_offset", "edge", "66x0e", doc="one-hot of seq_pos[j] - seq_pos[i] clipped to ±32; last: other chain"
    ),
    FieldSpec("edge_kind", "edge", "1x0e", doc="which edge featurizers found the edge, one column each"),
    # what training adds
    FieldSpec("batch", "node", "0e", "int64", shape=(), doc="number of the protein of each node"),
    # reduction objects
    FieldSpec("edges", "edge", "object", doc="protgraph.data.Edges: reductions over neighbors"),
    FieldSpec("proteins", "graph", "object", doc="protgraph.data.Proteins: reductions over each protein's nodes"),
)
for _spec in _BUILT_IN:
    register_field(_spec)
