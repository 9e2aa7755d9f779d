"""Turn whatever the code of a component raises or returns into an error that names the component and the line."""

from __future__ import annotations

import functools
import inspect
import traceback
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from types import TracebackType

from protgraph.errors import ComponentError, ProtgraphError

__all__ = ["ComponentScope", "code_location"]


class ComponentScope:
    """Context in which the code of one component runs; its errors become :class:`ComponentError`.

    Errors of protgraph pass unchanged, and so do ``KeyboardInterrupt`` and ``MemoryError``; ``sys.exit`` does not.

    ``kind``, ``name``: e.g. "featurizer", "dihedral". ``code``: the function or method that runs, for ``file:line``.
    ``action``: what runs, if a component has several functions, e.g. "loss". ``path``: place in a model, e.g.
    "layers[2] of model 'mine'". ``protein``: name of the protein, if it runs on one.

    Examples
    --------
    >>> with ComponentScope("layer", "mine", len):
    ...     1 / 0
    Traceback (most recent call last):
        ...
    protgraph.errors.ComponentError: layer 'mine' failed: ZeroDivisionError: division by zero (...).
    """

    def __init__(
        self,
        kind: str,
        name: str,
        code: Callable[..., object],
        *,
        action: str = "",
        path: str = "",
        protein: str = "",
    ) -> None:
        self.kind, self.name, self.code = kind, name, code
        self.action, self.path, self.protein = action, path, protein

    def of(self, code: Callable[..., object], *, action: str, protein: str = "") -> ComponentScope:
        """Return the context of another function of the component."""
        return ComponentScope(self.kind, self.name, code, action=action, path=self.path, protein=protein)

    def __enter__(self) -> ComponentScope:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None and self.is_fault(error):
            raise self.raised(error) from error

    @staticmethod
    def is_fault(error: BaseException) -> bool:
        """Return True for errors of the component's code, not for those of protgraph, interrupts and lack of memory."""
        if isinstance(error, ProtgraphError | MemoryError) or type(error).__name__ == "OutOfMemoryError":
            return False
        return isinstance(error, Exception | SystemExit)

    def raised(self, error: BaseException) -> ComponentError:
        """Return the error for an exception that the component raised."""
        if isinstance(error, SystemExit):
            failure = f"calls sys.exit({'' if error.code is None else repr(error.code)})"
        else:
            text = (str(error).strip() or "no message").splitlines()[0]
            failure = f"failed: {type(error).__name__}: {text}"
        hint = " Input arrays are read-only: change a copy." if "read-only" in str(error) else ""
        return self._error(failure, code_location(self.code, error), hint)

    def returned(self, problem: str, *, allowed: str = "") -> ComponentError:
        """Return the error for a wrong result."""
        return self._error(problem, code_location(self.code), f" {allowed}" if allowed else "")

    def _error(self, fault: str, location: str, hint: str) -> ComponentError:
        source = source_of(self.kind, self.name, self.code)
        owner = f" of {source}" if source else ""
        owner += f", {self.path}," if self.path else ""
        action = f": {self.action}" if self.action else ""
        protein = f" on {self.protein!r}" if self.protein else ""
        verb, _, details = fault.partition(": ")
        text = f"{verb}{protein}: {details}" if details else f"{fault}{protein}"
        return ComponentError(
            f"{self.kind} {self.name!r}{owner}{action} {text} ({location}).{hint}",
            kind=self.kind,
            name=self.name,
            source=source,
            protein=self.protein,
            location=location,
        )


def source_of(kind: str, name: str, code: Callable[..., object]) -> str:
    """Return "distribution version" of a component, the file of ``--import``, or "this session".

    A component that is not registered belongs to the distribution of its module; "" if that is none.
    """
    from protgraph.registry.registries import registries

    registry = registries.get(f"{kind}s")
    if registry is not None:
        try:
            source = registry.entry(name).source
        except ProtgraphError:
            pass
        else:
            return "this session" if source == "session" else source.removeprefix("import ")
    package = str(getattr(_function(code), "__module__", "")).partition(".")[0]
    if package == "__main__":
        return "this session"
    distributions = metadata.packages_distributions().get(package, ())
    return f"{distributions[0]} {metadata.version(distributions[0])}" if distributions else ""


def code_location(code: Callable[..., object], error: BaseException | None = None) -> str:
    """Return ``file:line`` where the code of a component raised an error, or of its definition.

    Of several frames, the innermost in the folder of the component is returned, rather than one of a library.

    Examples
    --------
    >>> code_location(code_location).rpartition("/")[2].partition(":")[0]
    'component_fault.py'
    """
    function = _function(code)
    file = getattr(getattr(function, "__code__", None), "co_filename", "")
    frames = traceback.extract_tb(error.__traceback__) if error is not None else []
    own = [frame for frame in frames if frame.filename == file or _is_beside(frame.filename, file)]
    if own or frames:
        frame = (own or frames)[-1]
        return f"{frame.filename}:{frame.lineno}"
    line = getattr(getattr(function, "__code__", None), "co_firstlineno", None)
    return f"{file}:{line}" if file else getattr(code, "__module__", "") or "unknown place"


def _function(code: Callable[..., object]) -> object:
    """Return the Python function behind a method, a partial, a decorated function or a callable object."""
    while isinstance(code, functools.partial):
        code = code.func
    code = inspect.unwrap(code)
    if inspect.ismethod(code):
        return inspect.unwrap(code.__func__)
    return code if inspect.isfunction(code) else getattr(type(code), "__call__", code)  # noqa: B004


def _is_beside(path: str, file: str) -> bool:
    """Return True if a file is in the folder of another one, or below it."""
    if not file or file.startswith("<"):
        return False
    try:
        inside = Path(path).relative_to(Path(file).parent)
    except ValueError:
        return False
    return "site-packages" not in inside.parts
