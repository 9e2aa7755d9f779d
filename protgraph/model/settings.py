"""Settings: single values of a model specification, by their path as in ``--set layers.1.dim=128``."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from protgraph import registry
from protgraph.errors import OptionError, suggest
from protgraph.model.spec import ModelSpec
from protgraph.registry.component import COMPONENT_KEYS, ComponentSpec
from protgraph.registry.options import component_options

__all__ = ["POCKET", "change_model", "parse_settings", "with_pocket"]

POCKET = 6.0
"""Å, distance from the ligand of the residues that a model with ligands reads by default."""


_TEXTS = ("name", "doc", "weights", "node_type")
_TABLES = ("readout", "inputs")
_LISTS = ("features", "layers")
_COMPONENT_TABLES = ("options", "reads", "writes")


def parse_settings(texts: Sequence[str]) -> dict[str, Any]:
    """Parse ``PATH=VALUE`` texts; values are written as in TOML.

    Raises :class:`OptionError` if a text has no ``=``, its value is not TOML, or a path occurs twice.

    Examples
    --------
    >>> parse_settings(["layers.1.dim=128", 'layers.2.act="relu"'])
    {'layers.1.dim': 128, 'layers.2.act': 'relu'}
    """
    settings: dict[str, Any] = {}
    for text in texts:
        path, equals, value = text.partition("=")
        path = path.strip()
        if not equals or not path:
            raise OptionError(f"--set {text!r}. Allowed: PATH=VALUE, e.g. layers.1.dim=128.")
        if path in settings:
            raise OptionError(f"--set {path} is given twice. Remove one of them.")
        try:
            (settings[path],) = tomllib.loads(f"value = {value}").values()
        except ValueError as e:  # not TOML, or several lines
            quoted = f'{path}="{value.strip()}"'
            raise OptionError(
                f"--set {text!r}: the value is not TOML. Allowed: numbers, true, false, lists, and text in quotes, "
                f"e.g. --set '{quoted}'."
            ) from e
    return settings


def change_model(spec: ModelSpec, settings: Mapping[str, Any], *, where: str = "--set") -> ModelSpec:
    """Return a specification with other values.

    A path is ``features`` or ``layers``, then the number of a component from 0, its name, or ``*``, then an option or
    one of the keys ``name``, ``reads``, ``inputs``, ``writes``, ``repeat``, ``shared``, ``edges``, ``nodes`` and
    ``sources``; or ``heads.NAME.OPTION``, ``readout.FIELD``, ``inputs.FIELD``, ``node_type``, ``name`` and ``doc``.
    ``features`` and ``layers`` alone are replaced by a list of components. A name means all components that have it;
    ``*`` means all that have the option. Layers that share their weights have equal options, so an option is set in
    all of them.

    ``settings``: path to value; tables inside tables are paths, as TOML reads ``layers.1.dim = 128``. ``where``: origin
    of the settings, for errors. Raises :class:`OptionError` if a path does not exist; the message names what does.
    Raises :class:`WiringError` if a value has a wrong type.

    Examples
    --------
    >>> spec = change_model(registry.models.get("gcn"), {"layers.*.dim": 16, "features.knn.k": 8})
    >>> {component.options["dim"] for component in spec.layers if "dim" in component.options}
    {16}
    """
    data = spec.to_dict()
    for path, value in _flatten(settings).items():
        data = _with_value(data, path, value, f"{where} {path}: model {spec.name!r}")
    return ModelSpec.from_dict(data)


def with_pocket(spec: ModelSpec, *, pocket: float = POCKET, ligand: str = "") -> ModelSpec:
    """Return a specification whose graphs are the pocket of a ligand and the atoms of the ligand.

    It has the featurizer ``ligand_distance``, so that training and predictions read the ligand of each file.

    ``spec``: a model of atoms; one that reads a pocket, or ligands around residues, is returned as it is. ``pocket``:
    Å; residues with a heavy atom within this distance of the ligand. 0: the whole protein, with all molecules.
    ``ligand``: residue name of the ligand; "": the molecule with most heavy atoms. Raises :class:`OptionError` if the
    nodes of the model are not atoms.

    Examples
    --------
    >>> spec = with_pocket(registry.models.get("schnet.atom"), pocket=5.0)
    >>> spec.features[-1].to_dict()
    {'name': 'ligand_distance', 'options': {'pocket': 5.0, 'ligand': ''}}
    """
    reads_ligands = any(registry.featurizers.get(component.name).needs_ligands for component in spec.features)
    has_pocket = any(component.name == "ligand_distance" for component in spec.features)
    if has_pocket or (reads_ligands and spec.node_type != "atom"):
        return spec
    if spec.node_type != "atom":
        raise OptionError(
            f"model {spec.name!r}: its nodes are of type {spec.node_type!r}, and ligands have atoms alone. Use a model "
            'of atoms, e.g. schnet.atom, or --set node_type="atom".'
        )
    options = {"pocket": pocket, "ligand": ligand}
    return replace(spec, features=(*spec.features, ComponentSpec("ligand_distance", options)))


def _flatten(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return settings with one path per value."""
    flat: dict[str, Any] = {}
    for key, value in settings.items():
        path = f"{prefix}{key}"
        if isinstance(value, Mapping):
            flat |= _flatten(value, f"{path}.")
        else:
            flat[path] = value
    return flat


def _with_value(data: Mapping[str, Any], path: str, value: Any, where: str) -> dict[str, Any]:
    """Return the plain data of a model with another value at one path."""
    key, *below = path.split(".")
    if key in (*_TEXTS, *_LISTS) and not below:
        return {**data, key: value}
    if key in _TABLES and len(below) == 1:
        return {**data, key: {**data.get(key, {}), below[0]: value}}
    if key == "heads" and len(below) == 2:
        name, option = below
        _require_option(registry.heads.get(name), name, option, where)
        heads = data["heads"]
        return {**data, "heads": {**heads, name: {**heads.get(name, {}), option: value}}}
    if key in _LISTS and len(below) >= 2:
        component_path = _ComponentPath(key, below[0], below[1], tuple(below[2:]))
        return {**data, key: _with_value_in_components(data[key], component_path, value, where)}
    forms = "features, layers, features.N.OPTION, layers.N.OPTION, heads.NAME.OPTION, readout.FIELD, inputs.FIELD"
    raise OptionError(f"{where} has no such path. Allowed: {forms}, {', '.join(_TEXTS)}.")


class _ComponentPath(NamedTuple):
    """Path below a list of components, e.g. ``layers.1.reads.h``."""

    key: str
    member: str
    entry: str
    inside: tuple[str, ...]


def _with_value_in_components(
    components: Sequence[Mapping[str, Any]], path: _ComponentPath, value: Any, where: str
) -> list[Mapping[str, Any]]:
    """Return a list of components with another value in each one that a path names; at least one."""
    numbers = _named_components(components, path, where)
    if path.entry not in COMPONENT_KEYS or path.entry == "options":
        numbers = _with_shared(components, numbers)
    changed = list(components)
    for number in numbers:
        changed[number] = _changed_component(components[number], path, value, where)
    return changed


def _with_shared(components: Sequence[Mapping[str, Any]], numbers: Sequence[int]) -> list[int]:
    """Return the numbers of components and of those that share their weights, which have equal options."""
    labels = {components[number].get("shared", "") for number in numbers} - {""}
    return [i for i, component in enumerate(components) if i in numbers or component.get("shared") in labels]


def _named_components(components: Sequence[Mapping[str, Any]], path: _ComponentPath, where: str) -> list[int]:
    """Return the numbers of the components that a path names; at least one."""
    numbers = [number for number, component in enumerate(components) if _is_named(component, number, path)]
    if not numbers:
        names = ", ".join(f"{number} {c['name']}" for number, c in enumerate(components)) or "none"
        problem = f"no component with the option {path.entry!r}" if path.member == "*" else f"no {path.member!r}"
        hint = suggest(path.member, {c["name"] for c in components})
        raise OptionError(f"{where} has {problem} in {path.key}.{hint} Its {path.key}: {names}.")
    return numbers


def _is_named(component: Mapping[str, Any], number: int, path: _ComponentPath) -> bool:
    """Return True for the component of the number or name in a path; of ``*``, for one that has the option."""
    if path.member.isdecimal():
        return int(path.member) == number
    if path.member == "*":
        return path.entry in component_options(_class_of(path.key, component["name"]))
    return path.member == component["name"]


def _changed_component(component: Mapping[str, Any], path: _ComponentPath, value: Any, where: str) -> dict[str, Any]:
    keys = (path.entry, *path.inside)
    if len(keys) == 1 and path.entry not in COMPONENT_KEYS:
        keys = ("options", path.entry)
    if len(keys) == 1:
        return {**component, path.entry: value}
    table, entry, *deeper = keys
    if table not in _COMPONENT_TABLES or deeper:
        raise OptionError(f"{where} has no such path. Allowed: {path.key}.{path.member}.OPTION.")
    if table == "options":
        name = component["name"]
        _require_option(_class_of(path.key, name), name, entry, where)
    return {**component, table: {**component.get(table, {}), entry: value}}


def _class_of(key: str, name: str) -> Callable[..., object]:
    if key == "layers":
        return registry.layers.get(name)
    return registry.featurizers.get(name)


def _require_option(component: Callable[..., object], name: str, option: str, where: str) -> None:
    options = component_options(component)
    if option not in options:
        raise OptionError(
            f"{where}: {name} has no option {option!r}.{suggest(option, options)} "
            f"Its options: {', '.join(map(str, options.values())) or 'none'}."
        )
