"""Test which package may import which, read from the source."""

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

#: Level of each package and top-level module; a package imports only from lower levels.
LEVEL = {
    "deferred_imports": 0,
    "errors": 0,
    "lazy_names": 0,
    "process_memory": 0,
    "process_state": 0,
    "wording": 0,
    "worker_process": 0,
    "argument_types": 1,
    "failure": 1,
    "file_io": 1,
    "validation": 1,
    "worker_pool": 1,
    "registry": 2,
    "structure": 3,
    "ops": 4,
    "data": 5,
    "featurize": 6,
    "nn": 6,
    "model": 7,
    "prepare": 7,
    "task": 7,
    "evaluation": 8,
    "labels": 8,
    "testing": 8,
    "checkpoint": 9,
    "inference": 10,
    "train": 11,
    "bench": 12,
    "cli": 13,
    "__init__": 13,
    "__main__": 13,
}
TOP = 13
#: Names of ``protgraph`` itself that every module may import.
FREE = {"__name__", "__version__"}
#: Libraries that the lower packages may import besides the standard library; higher ones may import every declared one.
THIRD_PARTY = {
    "deferred_imports": {"torch"},
    "errors": set(),
    "file_io": set(),
    "lazy_names": set(),
    "process_memory": {"psutil", "torch"},
    "process_state": {"numpy", "torch"},
    "wording": set(),
    "worker_pool": set(),
    "worker_process": set(),
    "argument_types": set(),
    "failure": set(),
    "validation": {"pydantic"},
    "registry": {"annotated_types", "pydantic"},
    "structure": {"biotite", "filelock", "msgpack", "numpy", "platformdirs", "pydantic", "scipy"},
    "ops": {"numpy", "torch", "torch_geometric", "triton"},
}


def modules(*folders: str) -> list[Path]:
    found = (p for folder in folders for p in (ROOT / folder).rglob("*.py"))
    return sorted(p for p in found if not {"__pycache__", "template", "build"} & set(p.relative_to(ROOT).parts))


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def imports(path: Path) -> Iterator[tuple[str, str]]:
    """Yield (module, name or "") of every import, also those inside functions and for type checkers."""
    for item in ast.walk(tree(path)):
        if isinstance(item, ast.Import):
            yield from ((alias.name, "") for alias in item.names)
        elif isinstance(item, ast.ImportFrom):
            assert item.level == 0, f"{path}:{item.lineno}: relative import"
            yield from ((item.module, alias.name) for alias in item.names)


def attributes(path: Path) -> set[str]:
    """Return the attributes that a module uses of ``protgraph`` after ``import protgraph``; "?" under another name."""
    items = list(ast.walk(tree(path)))
    used = {i.attr for i in items if isinstance(i, ast.Attribute) and getattr(i.value, "id", "") == "protgraph"}
    aliases = [alias for i in items if isinstance(i, ast.Import) for alias in i.names if alias.name == "protgraph"]
    return used | {"?" for alias in aliases if alias.asname}


def packages_imported(path: Path) -> Iterator[str]:
    """Yield the packages of protgraph that a module imports, in every spelling of an import."""
    for module, name in imports(path):
        first, _, rest = module.partition(".")
        if module == "protgraph" and {name or "__version__"} | attributes(path) <= FREE:
            continue
        if first == "protgraph":
            package = rest.partition(".")[0] or name
            yield package if package in LEVEL else "__init__"


def package_of(path: Path) -> str:
    return path.relative_to(CORE).parts[0].removesuffix(".py")


def exported(path: Path) -> set[str]:
    """Return the literal ``__all__`` of a module."""
    for s in tree(path).body:
        if isinstance(s, ast.Assign) and getattr(s.targets[0], "id", "") == "__all__":
            return {e.value for e in ast.walk(s.value) if isinstance(e, ast.Constant)}
    return set()


def test_every_package_has_a_level() -> None:
    assert {package_of(path) for path in modules("protgraph")} <= set(LEVEL)


def test_the_architecture_page_lists_every_package_at_its_level() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \| ([^(|]+)", page, flags=re.M)
    listed = {name: int(level) for level, names in rows for name in re.findall(r"`(\w+)`", names)}
    assert listed == {name: level for name, level in LEVEL.items() if not name.startswith("__")}


def test_packages_import_only_from_lower_levels() -> None:
    wrong = []
    for path in modules("protgraph"):
        own = package_of(path)
        above = {p for p in packages_imported(path) if p != own and LEVEL[p] >= LEVEL[own]}
        wrong += [f"{path.relative_to(ROOT)} imports {above}"] if above and LEVEL[own] != TOP else []
    assert not wrong


def test_modules_do_not_import_each_other_in_a_circle() -> None:
    """Imports inside functions are allowed to go back; imports for type checkers are not."""
    names = {
        ".".join(p.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): p for p in modules("protgraph")
    }

    def targets(path: Path) -> set[str]:
        found = set()
        inside = {n for f in ast.walk(tree(path)) if isinstance(f, ast.FunctionDef) for n in ast.walk(f)}
        for item in ast.walk(tree(path)):
            if isinstance(item, ast.ImportFrom) and item not in inside:
                found |= {
                    f"{item.module}.{a.name}" if f"{item.module}.{a.name}" in names else item.module for a in item.names
                }
        return found & set(names)

    graph = {name: targets(path) - {name} for name, path in names.items() if path.name != "__init__.py"}
    state: dict[str, int] = {}

    def visit(name: str, trail: tuple[str, ...]) -> None:
        assert state.get(name) != 1, f"circle: {' -> '.join([*trail[trail.index(name) :], name])}"
        if name in graph and name not in state:
            state[name] = 1
            for other in sorted(graph[name]):
                visit(other, (*trail, name))
            state[name] = 2

    for name in graph:
        visit(name, ())


def test_layers_and_heads_do_not_import_structures() -> None:
    for path in modules("protgraph/nn"):
        assert "structure" not in set(packages_imported(path)), path


def test_lower_packages_import_only_their_libraries() -> None:
    for path in modules("protgraph"):
        allowed = THIRD_PARTY.get(package_of(path))
        used = {module.partition(".")[0] for module, _ in imports(path)} - set(sys.stdlib_module_names) - {"protgraph"}
        assert allowed is None or used <= allowed, f"{path} imports {used - allowed}"


def test_the_core_does_not_import_plugins() -> None:
    for path in modules("protgraph"):
        assert not [module for module, _ in imports(path) if module.startswith("protgraph_")], path


def test_plugins_import_public_names_only() -> None:
    for path in modules("plugins"):
        for module, name in imports(path):
            if module.partition(".")[0] != "protgraph":
                continue
            assert not re.search(r"\._|^_", f"{module}.{name}"), f"{path}: {module}.{name} is private"
            home = CORE.joinpath(*module.split(".")[1:])
            home = home / "__init__.py" if home.is_dir() else home.with_suffix(".py")
            if name and home.name != "__init__.py":
                assert name in exported(home), f"{path}: {name} is not in __all__ of {module}"


#: Modules at the top level that are public like packages.
PUBLIC_MODULES = {
    "argument_types",
    "errors",
    "failure",
    "file_io",
    "lazy_names",
    "validation",
    "worker_pool",
    "worker_process",
    "wording",
}


def deep_imports(path: Path) -> list[str]:
    """Return the modules of the core that an extension imports although they are no package."""
    deep = []
    for module, _ in imports(path):
        first, *below = module.split(".")
        is_public = not below or CORE.joinpath(*below).is_dir() or (len(below) == 1 and below[0] in PUBLIC_MODULES)
        if first == "protgraph" and not is_public:
            deep.append(module)
    return deep


def test_extensions_import_packages_of_the_core() -> None:
    """A package is a door: its names are public, and its modules may be moved."""
    found = {path.relative_to(ROOT).as_posix(): deep_imports(path) for path in modules("plugins", "datasets")}
    deep = {path: modules for path, modules in found.items() if modules}
    assert not deep, "import from a package; add what it lacks to its __init__.py"


def test_plugins_import_of_each_other_only_the_names_of_their_packages() -> None:
    for path in modules("plugins"):
        own = f"protgraph_plugins.{path.relative_to(ROOT / 'plugins').parts[0]}"
        used = {m for m, _ in imports(path) if m.startswith("protgraph_plugins.") and not f"{m}.".startswith(f"{own}.")}
        assert all(m.count(".") == 1 for m in used), f"{path} imports {used}"


#: Module → distribution that brings it, where the names differ.
DISTRIBUTIONS = {"triton": "torch"}


def test_every_imported_library_is_declared() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = [*project["dependencies"], *(d for extra in project["optional-dependencies"].values() for d in extra)]
    names = {re.match(r"[\w-]+", d).group() for d in declared}
    for path in modules("protgraph", "plugins", "datasets"):
        used = {module.partition(".")[0].replace("_", "-") for module, _ in imports(path)}
        used = {DISTRIBUTIONS.get(name, name) for name in used}
        used -= {name.replace("_", "-") for name in sys.stdlib_module_names}
        assert {name for name in used if not name.startswith("protgraph")} <= names, path


# --- the reader of imports, on sources that break the rules --------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "package"),
    [
        ("import protgraph.structure.io", "structure"),
        ("from protgraph import structure", "structure"),
        ("from protgraph.structure import io", "structure"),
        ("def f():\n    from protgraph.structure.io import load_structure", "structure"),
        ("if TYPE_CHECKING:\n    import protgraph.structure as s", "structure"),
        ("import protgraph as pg", "__init__"),
        ("import protgraph\nprint(protgraph.__version__, protgraph.layers)", "__init__"),
        ("from protgraph import layers", "__init__"),
    ],
)
def test_every_spelling_of_an_import_is_found(tmp_path: Path, line: str, package: str) -> None:
    path = tmp_path / "twin.py"
    path.write_text(line)
    assert list(packages_imported(path)) == [package]


@pytest.mark.parametrize(
    "line", ["from protgraph import __version__", "import protgraph\nprint(protgraph.__version__)"]
)
def test_the_version_is_free_for_all(tmp_path: Path, line: str) -> None:
    path = tmp_path / "twin.py"
    path.write_text(line)
    assert list(packages_imported(path)) == []
