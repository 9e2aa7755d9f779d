"""Components: their specification as plain data, families of variants, and the types that a registry accepts."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pkgutil import iter_modules
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from protgraph.errors import ComponentTypeError, OptionError, WiringError, suggest

__all__ = ["COMPONENT_KEYS", "ComponentSpec", "ComponentType", "Family", "as_component", "as_components", "component"]

_EMPTY: Mapping[str, str] = MappingProxyType({})
_TYPES = {
    "name": str,
    "options": dict[str, Any],
    "reads": dict[str, str],
    "inputs": Sequence[str],
    "writes": dict[str, str],
    "repeat": int,
    "shared": str,
    "edges": str,
    "nodes": str,
    "sources": str,
}
#: Keys of a component as plain data.
COMPONENT_KEYS = tuple(_TYPES)


@dataclass(frozen=True)
class ComponentSpec:
    """Registry name with options and wiring, as plain data.

    Parameters
    ----------
    name : str
        Registry name of a featurizer or a layer.
    options : mapping
        Keyword options: numbers, strings, booleans, None, and lists or dicts of these.
    reads : mapping of str to str
        Local name to field of the model; local names that are omitted read the field of the same name.
    inputs : tuple of str
        Fields that a variadic component (``embed``, ``concat``) reads in addition, in this order.
    writes : mapping of str to str
        Local name to field of the model; local names that are omitted write the field of the same name.
    repeat : int
        Layers only: number of times in a row, 1 or more; each has its own weights, unless they are shared.
    shared : str
        Layers only: name of a set of weights; all layers with this name are one module that is called several times.
    edges : str
        Name of the edge set that an edge featurizer makes, or that a layer or tensor featurizer reads as ``edges``;
        "" for the edges without a name.
    nodes : str
        Name of the node set, e.g. "residues", whose fields a component reads and writes, or between whose nodes an edge
        featurizer makes edges; "" for the nodes of the graph.
    sources : str
        Edge featurizers only: node set of the sources of the edges, if it is not that of the targets, ``nodes``;
        "nodes" for the nodes of the graph.

    Raises
    ------
    WiringError
        If the options are not plain data, or a value has the wrong type; with the path of the key.
    """

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)
    reads: Mapping[str, str] = field(default_factory=dict)
    inputs: tuple[str, ...] = ()
    writes: Mapping[str, str] = field(default_factory=dict)
    repeat: int = 1
    shared: str = ""
    edges: str = ""
    nodes: str = ""
    sources: str = ""

    def __post_init__(self) -> None:
        self._check_types()
        try:
            options = json.loads(json.dumps(dict(self.options)))
        except (TypeError, ValueError) as e:
            raise WiringError(
                f"component {self.name!r}: options must be plain data (numbers, strings, lists, dicts): {e}"
            ) from e
        object.__setattr__(self, "options", MappingProxyType(options))
        object.__setattr__(self, "reads", MappingProxyType(dict(self.reads)))
        object.__setattr__(self, "writes", MappingProxyType(dict(self.writes)))
        object.__setattr__(self, "inputs", tuple(self.inputs))

    def _check_types(self) -> None:
        from protgraph.validation import check_value  # pydantic takes 50 ms to import

        label = f"component {self.name!r}" if isinstance(self.name, str) else "component"
        for key, annotation in _TYPES.items():
            value = getattr(self, key)
            value = dict(value) if isinstance(value, Mapping) else value
            check_value(value, annotation, path=f"{label}.{key}", error=WiringError)
        if self.edges and self.reads.get("edges", self.edges) != self.edges:
            raise WiringError(
                f"{label} has edges={self.edges!r} and reads edges={self.reads['edges']!r}. Give one of them."
            )
        if self.repeat < 1:
            raise WiringError(f"{label}.repeat = {self.repeat}. Allowed: 1 or more.")

    def __repr__(self) -> str:
        arguments = [f"{key}={value!r}" for key, value in self.options.items()]
        if self.inputs:
            arguments.append(f"{'inputs' if self.reads else 'reads'}={list(self.inputs)!r}")
        arguments += [f"{key}={dict(value)!r}" for key in ("reads", "writes") if (value := getattr(self, key))]
        arguments += [f"repeat={self.repeat}"] if self.repeat > 1 else []
        names = ("shared", "edges", "nodes", "sources")
        arguments += [f"{key}={value!r}" for key in names if (value := getattr(self, key))]
        return f"component({', '.join([repr(self.name), *arguments])})"

    def __hash__(self) -> int:
        return hash(json.dumps(self.to_dict(), sort_keys=True))

    def __deepcopy__(self, memo: dict[int, Any]) -> ComponentSpec:
        return self  # immutable

    def __reduce__(self) -> tuple[object, ...]:
        return ComponentSpec.from_dict, (self.to_dict(),)

    def input_field(self, local: str) -> str:
        """Return the field of the model that is read under a local name."""
        if local == "edges" and self.edges:
            return self.edges
        return self.reads.get(local, local)

    def output_field(self, local: str) -> str:
        """Return the field of the model that is written under a local name."""
        return self.writes.get(local, local)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data; empty entries are omitted."""
        data = {
            "name": self.name,
            "options": dict(self.options),
            "reads": dict(self.reads),
            "inputs": list(self.inputs),
            "writes": dict(self.writes),
            "repeat": 0 if self.repeat == 1 else self.repeat,
            "shared": self.shared,
            "edges": self.edges,
            "nodes": self.nodes,
            "sources": self.sources,
        }
        return {k: v for k, v in data.items() if k == "name" or v}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ComponentSpec:
        """Create a component from the data of :meth:`to_dict`; a list ``reads`` means ``inputs``, as in Python.

        Raises :class:`WiringError` if a key is unknown or missing, or a value has the wrong type; with the path of the
        key.
        """
        name = data.get("name")
        label = f"component {name!r}" if isinstance(name, str) else "component"
        for key in data:
            if key not in _TYPES:
                hint = suggest(key, _TYPES) if isinstance(key, str) else ""
                raise WiringError(f"{label}: unknown key {key!r}.{hint} Allowed: {', '.join(_TYPES)}.")
        if name is None:
            raise WiringError(f"{label}: key 'name' is missing in {dict(data)!r}.")
        if isinstance(data.get("reads"), list) and "inputs" not in data:
            data = {**data, "reads": {}, "inputs": data["reads"]}
        return cls(**data)


def component(
    name: str,
    /,
    *,
    reads: Mapping[str, str] | Sequence[str] = _EMPTY,
    writes: Mapping[str, str] = _EMPTY,
    repeat: int = 1,
    shared: str = "",
    edges: str = "",
    nodes: str = "",
    sources: str = "",
    **options: Any,
) -> ComponentSpec:
    """Create a component: ``component("gat", heads=4, reads={"edge_attr": "edge_rbf"}, writes={"h": "message"})``.

    Parameters
    ----------
    name : str
        Registry name.
    reads : mapping or sequence of str
        Local name to field; for variadic components, the list of fields to read.
    writes : mapping of str to str
        Local name to field.
    repeat, shared : int, str
        Number of times in a row, and name of the weights that all layers with this name share; layers only.
    edges : str
        Name of the edge set that is made or read: ``component("radius", edges="far")``, ``component("gcn",
        edges="far")``.
    nodes : str
        Name of the node set that is read and written: ``component("linear", nodes="residues")``.
    sources : str
        Node set of the sources of edges, if it is another one: ``component("knn", nodes="residues", sources="nodes",
        edges="near")``.
    **options
        Options of the component, checked against its signature when the model is built.

    Examples
    --------
    >>> component("gat", heads=4, reads={"edge_attr": "edge_rbf"}).to_dict()
    {'name': 'gat', 'options': {'heads': 4}, 'reads': {'edge_attr': 'edge_rbf'}}
    """
    if isinstance(reads, Mapping):
        return ComponentSpec(name, options, reads, (), writes, repeat, shared, edges, nodes, sources)
    if isinstance(reads, str) or not isinstance(reads, Sequence):
        raise WiringError(f"component {name!r}: reads={reads!r}. Allowed: a dict or a list of fields.")
    return ComponentSpec(name, options, _EMPTY, tuple(reads), writes, repeat, shared, edges, nodes, sources)


def as_component(item: ComponentSpec | str | Mapping[str, Any]) -> ComponentSpec:
    """Convert a name, a dict or a component to a component."""
    if isinstance(item, ComponentSpec):
        return item
    if isinstance(item, str):
        return ComponentSpec(item)
    if isinstance(item, Mapping):
        return ComponentSpec.from_dict(item)
    raise WiringError(f"component {item!r}. Allowed: a name, a dict or component(...).")


def as_components(items: Sequence[ComponentSpec | str | Mapping[str, Any]], key: str) -> tuple[ComponentSpec, ...]:
    """Convert a list of names, dicts and components.

    A dict ``{"repeat": 3, "layers": [...]}`` means these layers three times, one after the other.

    Raises :class:`WiringError` if a single component is given instead of a list; ``key`` names the argument.
    """
    if isinstance(items, str | Mapping | ComponentSpec):
        raise WiringError(f"{key} must be a list. Write {key}=[{items!r}].")
    if not isinstance(items, Sequence):
        raise WiringError(f"{key} = {items!r}. Allowed: a list of names, dicts and components.")
    for item in items:
        if not isinstance(item, ComponentSpec | str | Mapping):
            raise WiringError(f"{key}: component {item!r}. Allowed: a name, a dict or component(...).")
    components: list[ComponentSpec] = []
    for item in items:
        if isinstance(item, Mapping) and "layers" in item:
            components += _repeated(item, key)
        else:
            components.append(as_component(item))
    return tuple(components)


def _repeated(block: Mapping[str, Any], key: str) -> list[ComponentSpec]:
    unknown = sorted(set(block) - {"layers", "repeat"})
    if unknown:
        raise WiringError(f"{key}: block of layers: unknown key {unknown[0]!r}. Allowed: layers, repeat.")
    count = block.get("repeat", 1)
    if not isinstance(count, int) or isinstance(count, bool) or count < 1:
        raise WiringError(f"{key}: block of layers: repeat = {count!r}. Allowed: an integer of 1 or more.")
    return [*as_components(block["layers"], f"{key}: block of layers")] * count


T = TypeVar("T")


class Family(Generic[T]):
    """Variants of a component under one registry name; the first one is the default.

    Parameters
    ----------
    variants : mapping of str to object
        Variant name (author and year, e.g. ``satorras2021``) to component. The order is kept.
    doc : str
        Description of what the variants have in common.

    Raises
    ------
    OptionError
        If there is no variant, or a variant name is empty or contains a dot.

    Examples
    --------
    >>> family = Family({"kipf2017": "first", "plain": "second"})
    >>> family.default
    'kipf2017'
    >>> family.variants["plain"]
    'second'
    """

    def __init__(self, variants: Mapping[str, T], *, doc: str = "") -> None:
        if not isinstance(variants, Mapping) or not variants:
            raise OptionError(f"Family: variants = {variants!r}. Allowed: a mapping of one variant name or more.")
        for name in variants:
            if "." in name or not name:
                raise OptionError(f"variant name {name!r}. Give the part after the dot only, e.g. 'satorras2021'.")
        self.variants: Mapping[str, T] = MappingProxyType(dict(variants))
        self.doc = doc

    @property
    def default(self) -> str:
        """Name of the first variant."""
        return next(iter(self.variants))

    def __reduce__(self) -> tuple[object, ...]:
        return partial(Family, doc=self.doc), (dict(self.variants),)

    def __repr__(self) -> str:
        return f"Family({', '.join(self.variants)})"


@dataclass(frozen=True)
class ComponentType:
    """Type of the components of one registry.

    ``text``: description for messages, e.g. "a subclass of protgraph.Head". ``base``: base class as "module:class", or
    several separated by a space. It is not imported: if its module is not loaded, no object has this type. ``methods``:
    methods of a class that needs no base class. ``classes``, ``instances``: True if subclasses, or instances, of the
    base class are allowed. ``without``: subclass of the base class that has a registry of its own, as "module:class".
    ``attribute_of``: package that has the components as attributes, so that its own names are not allowed.
    """

    text: str
    base: str = ""
    classes: bool = False
    instances: bool = False
    without: str = ""
    methods: tuple[str, ...] = ()
    attribute_of: str = ""

    def is_reserved(self, name: str) -> bool:
        """Return True for a name or module of the package that has the components as attributes."""
        if not self.attribute_of:
            return False
        package = sys.modules[self.attribute_of]
        return name in package.__all__ or name in (module.name for module in iter_modules(package.__path__))

    def check(self, obj: object, label: str) -> None:
        """Raise :class:`ComponentTypeError` if an object, or a variant of a family, is not of this type."""
        for name, member in _parts(obj):
            if not self._accepts(member):
                raise ComponentTypeError(f"{label}{name} is {_description(member)}. Allowed: {self.text}, or a Family.")
            missing = sorted(getattr(member, "__abstractmethods__", ())) if issubclass(type(member), type) else []
            if missing:
                raise ComponentTypeError(
                    f"{label}{name} is {_description(member)}, which does not define {', '.join(missing)}. Define each "
                    "method of the base class."
                )

    def _accepts(self, obj: object) -> bool:
        # type(obj), not obj.__class__, which a proxy may report as that of another object
        is_class = issubclass(type(obj), type)
        if not (self.classes if is_class else self.instances):
            return False
        cls: Any = obj if is_class else type(obj)
        if self.methods:
            return all(callable(getattr(cls, name, None)) for name in self.methods)
        is_component = any(issubclass(cls, base) for base in _loaded(self.base))
        return is_component and not any(issubclass(cls, base) for base in _loaded(self.without))


def _parts(obj: Any) -> Iterator[tuple[str, object]]:
    """Yield the variants of a family with their suffixes, or the object itself."""
    if issubclass(type(obj), Family):
        yield from ((f".{name}", part) for name, part in obj.variants.items())
    else:
        yield "", obj


def _loaded(refs: str) -> list[type]:
    """Return the classes of "module:class" whose modules are loaded."""
    pairs = [ref.partition(":") for ref in refs.split()]
    return [getattr(sys.modules[module], name) for module, _, name in pairs if hasattr(sys.modules.get(module), name)]


def _description(obj: Any) -> str:
    """Return the kind of an object without using its own methods, which may raise."""
    own = type(obj)
    if issubclass(own, type):
        return f"the class {obj.__module__}.{obj.__qualname__}"
    return f"an object of type {own.__module__}.{own.__qualname__}"
