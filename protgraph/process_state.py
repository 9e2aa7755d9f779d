"""Global state of a Python process that a plugin must not change, descriptions of changes, and how to undo them."""

from __future__ import annotations

import gc
import logging
import os
import random
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from typing import Any

__all__ = [
    "GLOBAL_STATE",
    "MODES",
    "RANDOM_STATES",
    "describe_changes",
    "new_threads",
    "read_state",
    "restored_state",
]


_State = tuple[Callable[[], Any], Callable[[Any], None]]


def _torch(read: str, restore: str) -> _State:
    """Return functions of torch by name; it is imported when one is called."""

    def call(name: str, *values: Any) -> Any:
        return getattr(import_module("torch"), name)(*values)

    return partial(call, read), partial(call, restore)


def _torch_random() -> bytes:
    import torch

    return torch.get_rng_state().numpy().tobytes()


def _set_torch_random(state: bytes) -> None:
    import torch

    torch.set_rng_state(torch.frombuffer(bytearray(state), dtype=torch.uint8))


def _numpy_random() -> tuple[Any, ...]:
    import numpy as np

    state = np.random.get_state(legacy=True)
    assert isinstance(state, tuple)  # of numpy's default generator
    kind, keys, *rest = state
    return kind, keys.tobytes(), *rest


def _set_numpy_random(state: tuple[Any, ...]) -> None:
    import numpy as np

    kind, keys, *rest = state
    np.random.set_state((kind, np.frombuffer(keys, np.uint32), *rest))


def _signal_handlers() -> dict[str, str]:
    return {s.name: str(signal.getsignal(s)) for s in signal.Signals}


def _blanket_filters() -> list[str]:
    """Return the warning filters that apply to all modules and messages of a general category."""
    general = (Warning, UserWarning, RuntimeWarning, DeprecationWarning, FutureWarning)
    filters = []
    for action, message, category, module, line in warnings.filters:
        if message is None and module is None and not line and category in general:
            filters.append(f"{action} {category.__name__}")
    return filters


def _module_hooks() -> int:
    """Return the number of hooks that torch calls for every module."""
    torch_modules = sys.modules.get("torch.nn.modules.module")
    if torch_modules is None:
        return 0
    values = {name: value for name, value in vars(torch_modules).items() if name.startswith("_global_")}
    return sum(len(hooks) for hooks in values.values() if isinstance(hooks, dict))


def _flushes_denormal_numbers() -> bool:
    import torch

    return float(torch.tensor(1e-39) * 1) == 0.0


def _set_flushes_denormal_numbers(is_on: bool) -> None:
    import torch

    torch.set_flush_denormal(is_on)


def _uses_mkldnn() -> bool:
    import torch

    return bool(torch.backends.mkldnn.enabled)


def _set_uses_mkldnn(is_on: bool) -> None:
    import torch

    backend: Any = torch.backends.mkldnn  # its attributes are descriptors
    backend.enabled = is_on


def _numpy_errors() -> dict[str, Any]:
    import numpy as np

    return {name: str(action) for name, action in np.geterr().items()}


def _set_numpy_errors(actions: dict[str, Any]) -> None:
    import numpy as np

    np.seterr(**actions)


def _numpy_print_options() -> dict[str, Any]:
    import numpy as np

    return dict(np.get_printoptions())


def _set_numpy_print_options(options: dict[str, Any]) -> None:
    import numpy as np

    np.set_printoptions(**options)


def _set_garbage_collection(is_on: bool) -> None:
    if is_on:
        gc.enable()
    else:
        gc.disable()


_FUNCTIONS = "functions of a library"
#: Modules whose functions are not to be replaced.
_LIBRARIES = ("torch", "torch.nn.functional", "torch.linalg", "numpy", "protgraph", "protgraph.ops", "protgraph.nn")


def _functions_of_libraries() -> dict[str, Any]:
    """Return each public function and class of the libraries that are imported, by name."""
    functions = {}
    for library in _LIBRARIES:
        module = sys.modules.get(library)
        for name, value in vars(module).items() if module is not None else ():
            if callable(value) and not name.startswith("_"):
                functions[f"{library}.{name}"] = value
    return functions


def _set_functions_of_libraries(functions: dict[str, Any]) -> None:
    for path, function in functions.items():
        library, _, name = path.rpartition(".")
        if getattr(sys.modules[library], name) is not function:
            setattr(sys.modules[library], name, function)


def _root_logger() -> str:
    root = logging.getLogger()
    return f"level {logging.getLevelName(root.level)}, disabled below {logging.root.manager.disable}"


#: Modes of torch, numpy and Python, and the functions of libraries.
#: Description → (function that reads the value, function that sets it).
MODES: Mapping[str, _State] = {
    "the default dtype of torch": _torch("get_default_dtype", "set_default_dtype"),
    "the default device of torch": _torch("get_default_device", "set_default_device"),
    "the gradient mode of torch": _torch("is_grad_enabled", "set_grad_enabled"),
    "the anomaly mode of torch": _torch("is_anomaly_enabled", "set_anomaly_enabled"),
    "the number of threads of torch": _torch("get_num_threads", "set_num_threads"),
    "the deterministic mode of torch": _torch("are_deterministic_algorithms_enabled", "use_deterministic_algorithms"),
    "the matmul precision of torch": _torch("get_float32_matmul_precision", "set_float32_matmul_precision"),
    "the flushing of denormal numbers in torch": (_flushes_denormal_numbers, _set_flushes_denormal_numbers),
    "the use of MKL-DNN in torch": (_uses_mkldnn, _set_uses_mkldnn),
    "the handling of floating-point errors in numpy": (_numpy_errors, _set_numpy_errors),
    "the print options of numpy": (_numpy_print_options, _set_numpy_print_options),
    "garbage collection": (gc.isenabled, _set_garbage_collection),
    _FUNCTIONS: (_functions_of_libraries, _set_functions_of_libraries),
}
#: The same for random states.
RANDOM_STATES: Mapping[str, _State] = {
    "the random state of torch": (_torch_random, _set_torch_random),
    "the random state of numpy": (_numpy_random, _set_numpy_random),
    "the random state of Python": (random.getstate, random.setstate),
}
#: Description → function that reads the value.
GLOBAL_STATE: Mapping[str, Callable[[], Any]] = {
    **{name: read for name, (read, _) in {**MODES, **RANDOM_STATES}.items()},
    "the working directory": os.getcwd,
    "signal handlers": _signal_handlers,
    "warning filters": _blanket_filters,
    "the root logger": _root_logger,
    "the number of hooks of all torch modules": _module_hooks,
    "sys.path": lambda: list(sys.path),
    "environment variables": lambda: dict(os.environ),
    "the recursion limit": sys.getrecursionlimit,
    "the hook for uncaught exceptions": lambda: str(sys.excepthook),
    "the standard streams": lambda: [type(stream).__qualname__ for stream in (sys.stdout, sys.stderr)],
}


def read_state() -> dict[str, Any]:
    """Return the current value of everything in :data:`GLOBAL_STATE`."""
    return {name: read() for name, read in GLOBAL_STATE.items()}


@contextmanager
def restored_state() -> Iterator[None]:
    """Restore the modes of torch, numpy and Python and the random states after the block, where they differ."""
    settings = {**MODES, **RANDOM_STATES}
    before = {name: read() for name, (read, _) in settings.items()}
    try:
        yield
    finally:
        for name, (read, restore) in settings.items():
            if read() != before[name]:
                restore(before[name])


def describe_changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Return one text for each value that differs, e.g. "the gradient mode of torch: True → False"."""
    changes = []
    for name in before:
        values, other_values = before[name], after[name]
        if name == _FUNCTIONS:  # those that were imported meanwhile are no change
            other_values = {path: other_values.get(path, function) for path, function in values.items()}
        if values != other_values:
            changes.append(f"{name}{_change(name, values, other_values)}")
    return changes


def _change(name: str, before: Any, after: Any) -> str:
    if "random state" in name:
        return ""
    if isinstance(before, dict):
        names = sorted(key for key in {*before, *after} if before.get(key) != after.get(key))
        return f": {', '.join(names)}"
    if isinstance(before, list):
        return f": {_list_change(before, after)}"
    return f": {before} → {after}"


def _list_change(before: list[Any], after: list[Any]) -> str:
    added = [str(item) for item in after if item not in before]
    removed = [str(item) for item in before if item not in after]
    changes = []
    if added:
        changes.append(f"+ {', '.join(added)}")
    if removed:
        changes.append(f"- {', '.join(removed)}")
    return "; ".join(changes) or "another order"


def new_threads(before: set[threading.Thread], *, wait: float) -> list[str]:
    """Return the names of threads that were started since and still run after ``wait`` seconds."""
    started = [thread for thread in threading.enumerate() if thread not in before]
    for thread in started:
        thread.join(wait)
    return [f"{t.name}{' (daemon)' if t.daemon else ''}" for t in started if t.is_alive()]
