"""Providers of components: entry points, sessions and imported files; names that components may have.

The environment variable ``PROTGRAPH_IMPORT`` lists files and modules that register components. Registries import them
on first use, so worker processes, which inherit the variable, have the same components.
"""

from __future__ import annotations

import importlib
import inspect
import os
import re
import sys
import threading
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from types import CodeType, FrameType, ModuleType
from typing import TYPE_CHECKING, Any, NoReturn

from protgraph.errors import DuplicateNameError, InvalidNameError, PluginLoadError, suggest

if TYPE_CHECKING:
    import ast

__all__ = [
    "BUILT_IN",
    "IMPORT_VARIABLE",
    "PluginProblem",
    "Provider",
    "RegistryEntry",
    "allowed_names",
    "check_claims",
    "check_component_name",
    "conflict_error",
    "displaced",
    "import_listed",
    "import_source",
    "imported_source",
    "is_component_name",
    "is_redefinition",
    "is_same",
    "locations",
    "normalized_distribution",
    "split_distribution",
]

IMPORT_VARIABLE = "PROTGRAPH_IMPORT"

_MODULES: dict[str, ModuleType] = {}  # source → its module
_RUNNING: list[str] = []  # sources whose import has begun and not ended


def import_source(source: str | Path) -> ModuleType:
    """Import a Python file or a module that registers components, and list it in ``PROTGRAPH_IMPORT``.

    ``source``: file, e.g. "my_layer.py", or name of a module, e.g. "my_package.layers". The folder of a file, and the
    current folder for a module, is appended to ``sys.path``. A module that was imported before is not executed
    again. Raises :class:`PluginLoadError` if there is no such file or module, the file has the name of another module,
    or its code raises; with the line.
    """
    text = os.fspath(source)
    is_file = text.endswith(".py") or os.sep in text or os.path.exists(text)
    key = os.path.abspath(text) if is_file else text
    module = _import(key)
    listed = [part for part in os.environ.get(IMPORT_VARIABLE, "").split(os.pathsep) if part]
    if key not in listed:
        os.environ[IMPORT_VARIABLE] = os.pathsep.join([*listed, key])
    return module


def import_listed() -> None:
    """Import the sources of ``PROTGRAPH_IMPORT`` that are not imported yet."""
    value = os.environ.get(IMPORT_VARIABLE)
    for source in value.split(os.pathsep) if value else ():
        if source and source not in _RUNNING:
            _import(source)


def imported_source(caller: FrameType) -> str:
    """Return the file name or module of the source whose code, or import, a frame belongs to; "" if there is none."""
    if _RUNNING:
        return _label(_RUNNING[-1])
    file, module = caller.f_code.co_filename, caller.f_globals.get("__name__")
    for source, imported in _MODULES.items():
        if source == file or imported.__name__ == module:
            return _label(source)
    return ""


def _label(source: str) -> str:
    return os.path.basename(source) if _is_file(source) else source


def _is_file(source: str) -> bool:
    return source.endswith(".py") or os.sep in source


def _import(source: str) -> ModuleType:
    known = _MODULES.get(source)
    if known is not None and sys.modules.get(known.__name__) is known:
        return known
    name, folder = _find_module(source) if _is_file(source) else (source, os.getcwd())
    if folder not in sys.path:
        sys.path.append(folder)
    importlib.invalidate_caches()
    if _is_file(source):
        _check_module(name, source)
    _RUNNING.append(source)
    try:
        module = importlib.import_module(name)
    except (Exception, SystemExit) as e:
        raise PluginLoadError(f"import of {_label(source)!r} failed: {_reason(e, source)}") from e
    finally:
        _RUNNING.pop()
    _MODULES[source] = module
    return module


def _find_module(file: str) -> tuple[str, str]:
    """Return the module name and the folder of a file."""
    path = Path(file)
    if not path.is_file():
        siblings = [sibling.name for sibling in path.parent.glob("*.py")] if path.parent.is_dir() else []
        raise PluginLoadError(f"import of {file!r} failed: there is no such file.{suggest(path.name, siblings)}")
    if path.suffix != ".py" or not path.stem.isidentifier():
        raise PluginLoadError(
            f"import of {file!r} failed: the name of the file is not NAME.py with a Python identifier. Rename it."
        )
    return path.stem, str(path.parent)


def _check_module(name: str, file: str) -> None:
    """Raise if the name of a file leads to another module."""
    loaded = sys.modules.get(name)
    origin = getattr(loaded, "__file__", None) if loaded is not None else getattr(find_spec(name), "origin", None)
    if origin is None or not os.path.exists(origin) or not os.path.samefile(origin, file):
        raise PluginLoadError(
            f"import of {file!r} failed: another module has the name {name!r} ({origin or 'built in'}). Rename the "
            "file."
        )


def _reason(e: BaseException, source: str) -> str:
    """Return class, message and place of an exception: the last line of the source in its traceback."""
    if isinstance(e, SyntaxError):
        return f"{type(e).__name__}: {e.msg} ({e.filename}:{e.lineno})"
    frames = traceback.extract_tb(e.__traceback__)
    own = [frame for frame in frames if frame.filename == source] or frames[-1:]
    message = (str(e).strip() or "no message").partition("\n")[0]
    place = f" ({own[-1].filename}:{own[-1].lineno})" if "importlib" not in own[-1].filename else ""
    return f"{type(e).__name__}: {message}{place}"


_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]*")
_COMMAND = re.compile(rf"{_NAME.pattern}(\.{_NAME.pattern})?")
_RULE = "Allowed: letters, digits, '_' and '-' (ASCII), e.g. 'gated_conv'."


def is_component_name(name: object, kind: str) -> bool:
    """Check if a component can have this name: dots separate variants or subcommands, and slashes distributions.

    The name of a function is a Python identifier.
    """
    pattern = _COMMAND if kind == "command" else _NAME
    if not isinstance(name, str) or pattern.fullmatch(name) is None:
        return False
    return kind != "function" or name.isidentifier()  # it is an attribute


def allowed_names(kind: str) -> str:
    """Return which names components of a kind may have, for messages."""
    return "a Python identifier" if kind == "function" else "ASCII letters, digits, '_' and '-'"


def check_component_name(name: object, kind: str) -> None:
    """Raise :class:`InvalidNameError` if a component cannot be registered under this name."""
    if is_component_name(name, kind):
        return
    if not isinstance(name, str):
        value = getattr(name, "__name__", None) or repr(name)
        raise InvalidNameError(
            f"{kind} name {value!s:.60} is of type {type(name).__name__}, not a text. "
            f"Register with a name: {kind}s.register('my_{kind}')."
        )
    raise InvalidNameError(f"{kind} name {name!r} is not valid. {_RULE}")


def normalized_distribution(name: str) -> str:
    """Return the name of a distribution in the form in which names are compared (PyPA name normalization).

    Examples
    --------
    >>> normalized_distribution("Acme_Gated.layers")
    'acme-gated-layers'
    """
    return re.sub(r"[-_.]+", "-", name).lower()


def split_distribution(name: str) -> tuple[str, str]:
    """Split ``DISTRIBUTION/NAME``; the distribution is "" without a slash.

    Examples
    --------
    >>> split_distribution("acme-gated/gcn.v2"), split_distribution("gcn.v2")
    (('acme-gated', 'gcn.v2'), ('', 'gcn.v2'))
    """
    distribution, _, rest = name.rpartition("/")
    return distribution, rest


BUILT_IN = "protgraph-pyg"
"""Distribution of this package; its components keep their names if other distributions claim them."""

_LONG_IMPORT = 20.0  # seconds after which an import is named on standard error


@dataclass(frozen=True)
class RegistryEntry:
    """Metadata of a registry name, available without importing the component."""

    name: str  # registry name without variant: "gat", or "acme-gated/gcn" if another distribution has the name "gcn"
    kind: str  # e.g. "layer".
    # "distribution version", "import FILE" for a file of `--import`, or "session" if only this process has it
    source: str
    object: str  # "module:attribute"
    is_loaded: bool  # True if the object has been imported
    distribution: str = ""  # name of the distribution; "" for a registration of this process
    # file name or module that was imported to register the component; see `registry.import_source`
    imported: str = ""

    @property
    def is_session(self) -> bool:
        """True if only this process has the component, so that worker processes cannot import it."""
        return not self.distribution and not self.imported


@dataclass(frozen=True)
class PluginProblem:
    """Problem of an installed component, name or distribution, e.g. a conflict or a failed import."""

    kind: str
    name: str
    source: str
    message: str


class Provider:
    """Object offered under a registry name, imported on first use.

    Parameters
    ----------
    name, kind : str
        E.g. "gat", "layer".
    ref : str
        "module:attribute".
    distribution, version : str
        Of the distribution that installs the object; "" for a registration of this process.
    obj : object, optional
        The object, if it is already imported.
    line : str
        "file:line" of the registration, if registered in this process.
    code : code object, optional
        The code that called ``register``.
    imported : str
        File name or module of ``--import`` that registered the object.
    """

    def __init__(
        self,
        name: str,
        kind: str,
        ref: str,
        *,
        distribution: str = "",
        version: str = "",
        obj: object = None,
        line: str = "",
        code: CodeType | None = None,
        imported: str = "",
    ) -> None:
        self.name, self.kind, self.ref, self.imported = name, kind, ref, imported
        self.distribution, self.version, self.line, self.code = distribution, version, line, code
        self._obj = obj

    @classmethod
    def from_session(cls, name: str, kind: str, obj: Any, caller: FrameType) -> Provider:
        """Create the provider for ``registry.register(name, obj)``, called in a frame."""
        module = caller.f_globals.get("__name__", "")
        ref = f"{obj.__module__}:{obj.__qualname__}" if _has_name(obj) else f"{module}:{type(obj).__qualname__}"
        line, code = f"{caller.f_code.co_filename}:{caller.f_lineno}", caller.f_code
        return cls(name, kind, ref, obj=obj, line=line, code=code, imported=imported_source(caller))

    @property
    def is_loaded(self) -> bool:
        """True if the object has been imported."""
        return self._obj is not None

    @property
    def source(self) -> str:
        """Distribution and version, "import FILE", or "session"."""
        if self.distribution:
            return f"{self.distribution} {self.version}"
        return f"import {self.imported}" if self.imported else "session"

    @property
    def qualified_name(self) -> str:
        """Name that no other distribution can have: "distribution/name"."""
        return f"{self.distribution}/{self.name}" if self.distribution else self.name

    @property
    def description(self) -> str:
        """Object and source, for error messages."""
        return f"{self.ref} ({self.source if self.distribution else f'this session, {self.line}'})"

    def load(self) -> object:
        """Return the object, importing it on first use.

        Raises :class:`PluginLoadError` if the import fails for any reason; names the component, the distribution, the
        object and the cause.
        """
        if self._obj is None:
            module, _, attribute = self.ref.partition(":")
            try:
                with self._watched():
                    obj: object = importlib.import_module(module)
                    for part in filter(None, attribute.split(".")):
                        obj = getattr(obj, part)
            except BaseException as e:
                if isinstance(e, KeyboardInterrupt) and not _is_raised_by_module(e):  # Ctrl-C
                    raise
                raise PluginLoadError(
                    f"{self.kind} {self.name!r} of {self.source} could not be loaded from {self.ref}: "
                    f"{type(e).__name__}: {_first_line(e)}\nOther components are not affected. `protgraph doctor` "
                    "checks all of them."
                ) from e
            self._obj = obj
        return self._obj

    @contextmanager
    def _watched(self) -> Iterator[None]:
        """Name the entry point on standard error if its import takes long; raise if the import ends the process."""
        if self.distribution in ("", BUILT_IN):
            yield
            return
        text = f"still importing {self.ref} of {self.source} ({self.kind} {self.name!r}) after {_LONG_IMPORT:g} s\n"
        timer = threading.Timer(_LONG_IMPORT, lambda: print(text, end="", file=sys.stderr, flush=True))
        timer.daemon = True
        process, exit_process = os.getpid(), os._exit

        def refuse_exit(status: int) -> NoReturn:
            if os.getpid() != process:  # a child process that the import started ends itself
                exit_process(status)
            raise SystemExit(f"it ends the process with exit status {status} (os._exit)")

        timer.start()
        os._exit = refuse_exit
        try:
            yield
        finally:
            os._exit = exit_process
            timer.cancel()

    def where(self) -> str:
        """Return ``file:line`` of the object's source; for an instance, that of its assignment or registration."""
        obj = self.load()
        if inspect.isclass(obj) or inspect.isroutine(obj):
            try:
                return f"{inspect.getsourcefile(obj)}:{inspect.getsourcelines(obj)[1]}"
            except (OSError, TypeError):
                return self.line or self.ref
        return self.line or _assignment(self.ref)


def _is_raised_by_module(error: KeyboardInterrupt) -> bool:
    """Return True if a statement of the imported module raised the exception; False if Ctrl-C or SIGTERM did."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    in_handler = Path(last.filename).parts[-2:] == ("cli", "signals.py")
    return not in_handler and (last.line or "").startswith("raise")


def is_same(old: Provider, new: Provider) -> bool:
    """Return True if two providers have the same object; entry points are imported only if necessary."""
    if old.ref == new.ref and (not old.is_loaded or not new.is_loaded):
        return True
    module = sys.modules.get(old.ref.partition(":")[0])
    if not old.is_loaded and getattr(getattr(module, "__spec__", None), "_initializing", False):
        return True  # a module registers its own entry point during its import; compared on use
    try:
        return old.load() is new.load()
    except PluginLoadError:
        return False


def differ(providers: Sequence[Provider]) -> bool:
    """Return True if providers have different objects, without importing them."""
    objects = {id(provider.load()) if provider.is_loaded else provider.ref for provider in providers}
    return len({provider.ref for provider in providers}) > 1 and len(objects) > 1


def displaced(providers: Sequence[Provider]) -> Sequence[Provider]:
    """Return the installed providers of a name that are not available under the name alone, without importing them."""
    if len(providers) < 2 or not differ(providers):
        return []
    return providers[1:] if providers[0].distribution == BUILT_IN else providers


def locations(label: str, providers: Sequence[Provider]) -> str:
    """Return a sentence that locates all providers of a name."""
    return f"{label} is provided by {' and by '.join(provider.description for provider in providers)}."


def conflict_error(kind: str, name: str, providers: Sequence[Provider]) -> DuplicateNameError:
    """Return the error of an ambiguous name, with the names that are not."""
    qualified = " or ".join(repr(provider.qualified_name) for provider in providers if provider.distribution)
    session = f", or {kind}s.unregister({name!r})" if not providers[-1].distribution else ""
    return DuplicateNameError(f"{locations(f'{kind} {name!r}', providers)} Write {qualified}{session}.")


def check_claims(kind: str, name: str, providers: Sequence[Provider], installed: Sequence[Provider]) -> None:
    """Raise if a name is ambiguous, or if its bare name belongs to the built-in distribution; import nothing."""
    if differ(providers):
        raise conflict_error(kind, name, providers)
    bare = split_distribution(name)[1]
    is_claimed = bool(installed) and installed[0].distribution == BUILT_IN and providers[0] in installed[1:]
    if bare != name and is_claimed:
        raise DuplicateNameError(
            f"{kind} {bare!r} is the name of a component of {BUILT_IN}. {providers[0].description} is available as "
            f"{name!r}."
        )


def is_redefinition(old: Provider, new: Provider) -> bool:
    """Return True if the same statement of a session registers its component again, so that the new one replaces it.

    That is the case for an equal object, for a class that an interactive session defines again under the same name,
    and for a module or notebook cell that is executed again.
    """
    if old.distribution or new.distribution or old.ref != new.ref or "<locals>" in new.ref:
        return False
    if (old.load() == new.load()) is True:
        return True
    if hasattr(sys, "ps1") and new.ref.startswith("__main__:") and _has_name(new.load()):
        return True
    return _is_executed_again(old, new)


def _is_executed_again(old: Provider, new: Provider) -> bool:
    """Return True if two executions of the same module or notebook cell register two components."""
    if old.code is None or new.code is None or old.code is new.code:
        return False
    old_file, new_file = old.line.rpartition(":")[0], new.line.rpartition(":")[0]
    is_module = old.code.co_name == new.code.co_name == "<module>"
    return is_module and old_file == new_file and not old_file.startswith("<")


def _has_name(obj: object) -> bool:
    return inspect.isclass(obj) or inspect.isroutine(obj)


def _first_line(e: BaseException) -> str:
    return (str(e).strip() or "no message").splitlines()[0]


def _assignment(ref: str) -> str:
    """Return ``file:line`` of the top-level statement that assigns an instance; follow re-exports."""
    import ast

    module, _, attribute = ref.partition(":")
    path = getattr(sys.modules.get(module), "__file__", None)
    if path is None or not Path(path).is_file():
        return ref
    for statement in ast.parse(Path(path).read_text(encoding="utf-8")).body:
        if isinstance(statement, ast.ImportFrom) and statement.level == 0:
            for alias in statement.names:
                if attribute == (alias.asname or alias.name):
                    return _assignment(f"{statement.module}:{alias.name}")
        if attribute in _names_made_by(statement):
            return f"{path}:{statement.lineno}"
    return path


def _names_made_by(statement: ast.stmt) -> list[str]:
    """Return the names that a statement assigns; a function, since a decorator may make an instance of it."""
    import ast

    if isinstance(statement, ast.FunctionDef):
        return [statement.name]
    targets: list[ast.expr | None]
    if isinstance(statement, ast.Assign):
        targets = [*statement.targets]
    else:
        targets = [getattr(statement, "target", None)]
    return [target.id for target in targets if isinstance(target, ast.Name)]
