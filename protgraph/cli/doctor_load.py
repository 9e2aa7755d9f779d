"""Functions of the worker processes of ``protgraph doctor``: import a library, or load one component, and report."""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import NamedTuple

from protgraph.errors import ProtgraphError
from protgraph.process_state import describe_changes, new_threads, read_state
from protgraph.registry import Registry, hooks, registries
from protgraph.registry.provider import Provider

__all__ = ["Loaded", "import_library", "load_component"]

#: Imported before any plugin, so that what these modules change is not attributed to it.
_FIRST = (
    *("torch", "torch_geometric", "e3nn.o3", "lightning", "biotite.structure", "scipy.spatial", "pyarrow"),
    *("protgraph.nn", "protgraph.featurize", "protgraph.model", "protgraph.task", "protgraph.train"),
)
_THREAD_WAIT = 0.5  # seconds in which a started thread can end


class Loaded(NamedTuple):
    """Error of loading a component, empty for none, and its side effects."""

    error: str = ""
    faults: tuple[str, ...] = ()


def import_library(name: str) -> str:
    """Import a module; "torch" returns the description of the device."""
    import_module(name)
    if name != "torch":
        return ""
    import torch

    if not torch.cuda.is_available():
        return "no device"
    return f"{torch.version.cuda}, {torch.cuda.device_count()} × {torch.cuda.get_device_name(0)}"


def load_component(component: tuple[str, str, str] | None) -> Loaded:
    """Load one component, by group, distribution and name; None imports only what all components need.

    Faults are output, a changed state of Python or torch, and threads that do not end.
    """
    if component is None:
        warnings.showwarning = lambda *arguments, **options: None  # is not output of the plugin
        for module in _FIRST:
            import_module(module)
        return Loaded()
    group, distribution, name = component
    registry = next(registry for registry in (registries | hooks).values() if registry.group == group)
    provider = next(provider for provider in registry.providers_of(distribution) if provider.name == name)
    state, threads = read_state(), set(threading.enumerate())
    with _captured_output() as output:
        error = _load_error(registry, provider)
    faults = [f"loading it prints to {stream}: {text[:200]!r}" for stream, text in output.items() if text]
    faults += [f"loading it changes {change}" for change in describe_changes(state, read_state())]
    left = new_threads(threads, wait=_THREAD_WAIT)
    if left:
        faults.append(f"loading it starts threads that do not end: {', '.join(left)}")
    return Loaded(error, tuple(faults))


def _load_error(registry: Registry, provider: Provider) -> str:
    """Load a component, and return why this fails; "" if it does not."""
    try:
        registry.check_provider(provider)
    except ProtgraphError as e:
        return str(e).partition("\n")[0]
    except BaseException as e:  # noqa: BLE001 -- e.g. KeyboardInterrupt, which ends any program that loads it
        return f"loading it raises {type(e).__name__}: {e}"
    return ""


@contextmanager
def _captured_output() -> Iterator[dict[str, str]]:
    """Collect what is written to standard output and standard error in the block, also by C code."""
    output: dict[str, str] = {}
    streams = {"standard output": sys.stdout, "standard error": sys.stderr}
    saved = {}
    for name, stream in streams.items():
        stream.flush()
        saved[name] = (os.dup(stream.fileno()), tempfile.TemporaryFile())  # noqa: SIM115 -- closed below
        os.dup2(saved[name][1].fileno(), stream.fileno())
    try:
        yield output
    finally:
        for name, stream in streams.items():
            stream.flush()
            before, file = saved[name]
            os.dup2(before, stream.fileno())
            os.close(before)
            file.seek(0)
            output[name] = file.read().decode("utf-8", "replace").strip()
            file.close()
