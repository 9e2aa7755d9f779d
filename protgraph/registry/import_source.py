"""Import files and modules that register components, in this process and in those that it starts.

The environment variable ``PROTGRAPH_IMPORT`` lists them. Registries import them on first use, so worker processes,
which inherit the variable, have the same components.
"""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from importlib.util import find_spec
from pathlib import Path
from types import FrameType, ModuleType

from protgraph.errors import PluginLoadError, suggest

__all__ = ["IMPORT_VARIABLE", "import_listed", "import_source", "imported_source"]

IMPORT_VARIABLE = "PROTGRAPH_IMPORT"

_MODULES: dict[str, ModuleType] = {}  # source → its module
_RUNNING: list[str] = []  # sources whose import has begun and not ended


def import_source(source: str | Path) -> ModuleType:
    """Import a Python file or a module that registers components, and list it in ``PROTGRAPH_IMPORT``.

    Parameters
    ----------
    source : str or Path
        File, e.g. "my_layer.py", or name of a module, e.g. "my_package.layers". The folder of a file, and the current
        folder for a module, is appended to ``sys.path``.

    Returns
    -------
    module
        A module that was imported before is not executed again.

    Raises
    ------
    PluginLoadError
        If there is no such file or module, the file has the name of another module, or its code raises; with the line.
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
