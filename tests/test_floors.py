"""The house: who may import whom, what modules may be called, and how long they may be, read from the source."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
CORE = ROOT / "protgraph"

FLOOR = {
    "errors": 0,
    "registry": 0,
    "structure": 1,
    "symmetry": 1,
    "data": 2,
    "featurize": 3,
    "nn": 3,
    "model": 4,
    "task": 4,
    "train": 5,
    "design": 5,
    "testing": 5,
    "bench": 6,
    "view": 6,
    "cli": 7,
    "__init__": 7,
    "__main__": 7,
}
ROOF = 7  # may import everything
FREE = {"__name__", "__version__"}
#: What the lower rooms may import besides the standard library; from floor 2 up, whatever is declared.
THIRD_PARTY = {
    "errors": set(),
    "registry": set(),
    "structure": {"biotite", "msgpack", "numpy", "scipy"},
    "symmetry": {"e3nn", "numpy", "torch"},
}
MODULE_LINES, FUNCTION_LINES, LAYER_LINES = 350, 50, 150


def modules(folder: Path) -> list[Path]:
    return sorted(p for p in folder.rglob("*.py") if "__pycache__" not in p.parts)


def label(path: Path) -> str:
    return str(path.relative_to(ROOT))


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def imports(path: Path) -> Iterator[tuple[str, str]]:
    """(module, name or "") of every import, also those inside functions and for type checkers."""
    for item in ast.walk(tree(path)):
        if isinstance(item, ast.Import):
            yield from ((alias.name, "") for alias in item.names)
        elif isinstance(item, ast.ImportFrom):
            assert item.level == 0, f"{label(path)}:{item.lineno}: relative import"
            yield from ((item.module, alias.name) for alias in item.names)


def attributes(path: Path) -> set[str]:
    """What a module takes from ``protgraph`` by attribute, after ``import protgraph``; "?" under another name."""
    items = list(ast.walk(tree(path)))
    used = {i.attr for i in items if isinstance(i, ast.Attribute) and getattr(i.value, "id", "") == "protgraph"}
    aliases = [alias for i in items if isinstance(i, ast.Import) for alias in i.names if alias.name == "protgraph"]
    return used | {"?" for alias in aliases if alias.asname}


def rooms_imported(path: Path) -> Iterator[str]:
    """Rooms of protgraph that a module imports, under whatever spelling; name and version are free for all."""
    for module, name in imports(path):
        first, _, rest = module.partition(".")
        if module == "protgraph" and {name or "__version__"} | attributes(path) <= FREE:
            continue
        if first == "protgraph":
            room = rest.partition(".")[0] or name
            yield room if room in FLOOR else "__init__"


def room_of(path: Path) -> str:
    return path.relative_to(CORE).parts[0].removesuffix(".py")


def public(statements: list[ast.stmt]) -> set[str]:
    """Public functions and classes that a module's top level defines."""
    names = {s.name for s in statements if isinstance(s, ast.FunctionDef | ast.ClassDef)}
    return {name for name in names if not name.startswith("_")}


def everything(statements: list[ast.stmt]) -> set[str]:
    """All names that a module's top level binds, imports included."""
    names = {alias.asname or alias.name for s in statements if isinstance(s, ast.ImportFrom) for alias in s.names}
    names |= {n.id for s in statements for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return names | {s.name for s in statements if isinstance(s, ast.FunctionDef | ast.ClassDef)}


def exported(path: Path) -> set[str] | None:
    """The literal ``__all__`` of a module; None without one."""
    for s in tree(path).body:
        if isinstance(s, ast.Assign) and getattr(s.targets[0], "id", "") == "__all__":
            return {e.value for e in ast.walk(s.value) if isinstance(e, ast.Constant)}
    return None


in_core = pytest.mark.parametrize("path", modules(CORE), ids=label)
in_plugins = pytest.mark.parametrize("path", modules(ROOT / "plugins"), ids=label)
anywhere = pytest.mark.parametrize(
    "path", [p for folder in ("protgraph", "plugins", "datasets") for p in modules(ROOT / folder)], ids=label
)


def test_every_room_has_a_floor() -> None:
    assert {room_of(path) for path in modules(CORE)} <= set(FLOOR)


@in_core
def test_a_room_imports_only_from_lower_floors(path: Path) -> None:
    room = room_of(path)
    above = {r for r in rooms_imported(path) if r != room and r != "errors" and FLOOR[r] >= FLOOR[room]}
    assert not above or FLOOR[room] == ROOF, f"{room} (floor {FLOOR[room]}) imports {above}"


@in_core
def test_layers_and_heads_never_see_a_structure(path: Path) -> None:
    if room_of(path) == "nn":
        assert "structure" not in set(rooms_imported(path))


@in_core
def test_lower_rooms_import_only_their_libraries(path: Path) -> None:
    allowed = THIRD_PARTY.get(room_of(path))
    used = {module.partition(".")[0] for module, _ in imports(path)} - set(sys.stdlib_module_names) - {"protgraph"}
    if allowed is not None:
        assert used <= allowed


@in_core
def test_the_core_never_imports_a_plugin(path: Path) -> None:
    assert not [module for module, _ in imports(path) if module.startswith("protgraph_")]


@in_plugins
def test_plugins_use_public_names_only(path: Path) -> None:
    for module, name in imports(path):
        if module.partition(".")[0] != "protgraph":
            continue
        assert not re.search(r"\._|^_", f"{module}.{name}"), f"{module}.{name} is private"
        home = CORE.joinpath(*module.split(".")[1:])
        home = home / "__init__.py" if home.is_dir() else home.with_suffix(".py")
        if name and home.name != "__init__.py":
            assert name in (exported(home) or ()), f"{name} is not in __all__ of {module}"


@in_plugins
def test_plugins_do_not_import_each_other(path: Path) -> None:
    own = path.relative_to(ROOT / "plugins").parts
    foreign = {m.partition(".")[0] for m, _ in imports(path) if m.startswith("protgraph_")} - set(own)
    assert not foreign


@anywhere
def test_every_library_is_declared(path: Path) -> None:
    if "protgraph_template" in path.parts:
        pytest.skip("a distribution of its own")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = [*project["dependencies"], *(d for extra in project["optional-dependencies"].values() for d in extra)]
    names = {re.match(r"[\w-]+", d).group() for d in declared}
    used = {module.partition(".")[0].replace("_", "-") for module, _ in imports(path)}
    used -= {name.replace("_", "-") for name in sys.stdlib_module_names}
    assert {name for name in used if not name.startswith("protgraph")} <= names


@anywhere
def test_module_names_say_what_lives_there(path: Path) -> None:
    assert not {"utils", "util", "common", "helpers", "misc"} & {part.removesuffix(".py") for part in path.parts}


@pytest.mark.parametrize("path", modules(ROOT / "tests"), ids=label)
def test_test_modules_are_short(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MODULE_LINES


@anywhere
def test_modules_are_short_documented_and_say_what_is_public(path: Path) -> None:
    text, body = path.read_text(encoding="utf-8"), tree(path).body
    assert len(text.splitlines()) <= MODULE_LINES
    assert ast.get_docstring(tree(path)), "no module docstring"
    if path.name.startswith("test_") or path.name == "conftest.py":
        return
    if path.name != "__init__.py":
        assert "from __future__ import annotations" in text
    assert exported(path) is not None or not public(body), f"no __all__, but {sorted(public(body))}"
    assert (exported(path) or set()) <= everything(body), "names in __all__ that are not there"


@anywhere
def test_functions_are_short(path: Path) -> None:
    for item in ast.walk(tree(path)):
        if isinstance(item, ast.FunctionDef):
            first = item.body[1] if ast.get_docstring(item) and len(item.body) > 1 else item.body[0]
            lines = item.end_lineno - first.lineno + 1
            assert lines <= FUNCTION_LINES, f"{item.name} has {lines} lines of code"


def registered_layers() -> dict[str, tuple[Path, str]]:
    """Layers of this distribution, and the file and class of each, by their entry points."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found = {}
    for name, ref in project["entry-points"]["protgraph.layers"].items():
        module, _, attribute = ref.partition(":")
        paths = [folder.joinpath(*module.split(".")).with_suffix(".py") for folder in (ROOT, ROOT / "plugins")]
        found[name] = next(path for path in paths if path.is_file()), attribute
    return found


@pytest.mark.parametrize("name", registered_layers())
def test_layers_are_short_with_their_docstring(name: str) -> None:
    path, attribute = registered_layers()[name]
    (layer,) = (s for s in tree(path).body if isinstance(s, ast.ClassDef) and s.name == attribute)
    lines = layer.end_lineno - layer.lineno + 1
    assert lines <= LAYER_LINES, f"{attribute} has {lines} lines"
    assert ast.get_docstring(layer)


# --- the walker itself, against twins that break the rules ----------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "room"),
    [
        ("import protgraph.structure.io.load", "structure"),
        ("from protgraph import structure", "structure"),
        ("from protgraph.structure import io", "structure"),
        ("def f():\n    from protgraph.structure.io.load import load_structure", "structure"),
        ("if TYPE_CHECKING:\n    import protgraph.structure as s", "structure"),
        ("import protgraph as pg", "__init__"),
        ("import protgraph\nprint(protgraph.__version__, protgraph.layers)", "__init__"),
        ("from protgraph import layers", "__init__"),
    ],
)
def test_the_walker_sees_every_spelling_of_an_import(tmp_path: Path, line: str, room: str) -> None:
    path = tmp_path / "twin.py"
    path.write_text(line)
    assert list(rooms_imported(path)) == [room]


@pytest.mark.parametrize(
    "line", ["from protgraph import __version__", "import protgraph\nprint(protgraph.__version__)"]
)
def test_the_version_is_free_for_all(tmp_path: Path, line: str) -> None:
    path = tmp_path / "twin.py"
    path.write_text(line)
    assert list(rooms_imported(path)) == []
