"""Programs of the child processes of ``protgraph doctor``: load components, or optional dependencies, and report."""

from __future__ import annotations

import os
import sys
import threading
import warnings
from importlib import import_module

from protgraph.cli.child_process import EventWriter
from protgraph.errors import ProtgraphError
from protgraph.process_state import describe_changes, new_threads, read_state
from protgraph.registry import registries

__all__ = ["load_distribution", "load_environment"]


def load_distribution(events: str, distribution: str) -> None:
    """Load every component of one distribution; report failures, output, changed state and remaining threads.

    Events: "load" before each component, "failed" with a message, "printed" with the bytes of a stream, "changed" with
    a description.
    """
    from protgraph.cli.doctor_preload import PRELOAD

    report = EventWriter(events)
    for module in PRELOAD:
        import_module(module)
    warnings.showwarning = lambda *arguments, **options: None  # is not output of the plugin
    threads, state = set(threading.enumerate()), read_state()
    report.write("ready")
    for registry in registries.values():
        for provider in registry.providers_of(distribution):
            component = {"kind": registry.kind, "name": provider.name}
            report.write("load", **component)
            sizes = _output_sizes()
            try:
                registry.check_provider(provider)
            except ProtgraphError as e:
                report.write("failed", message=str(e).partition("\n")[0], **component)
            except BaseException as e:  # noqa: BLE001 -- e.g. KeyboardInterrupt, which ends any program that loads it
                report.write("failed", message=f"loading it raises {type(e).__name__}: {e}", **component)
            for stream, (start, end) in enumerate(zip(sizes, _output_sizes(), strict=True)):
                if end > start:
                    report.write("printed", stream=stream, start=start, end=end, **component)
            now = read_state()
            for change in describe_changes(state, now):
                report.write("changed", change=change, **component)
            state = now
    for name in new_threads(threads, wait=0.5):
        report.write("thread", thread=name)
    report.write("done")
    os._exit(0)  # a thread that does not end would keep the process alive


def load_environment(events: str, *modules: str) -> None:
    """Import torch and the given modules; report the device as event "device", and failures as "failed"."""
    import torch

    report = EventWriter(events)
    report.write("ready")
    device = "no device"
    if torch.cuda.is_available():
        device = f"{torch.version.cuda}, {torch.cuda.device_count()} × {torch.cuda.get_device_name(0)}"
    report.write("device", text=device)
    for module in modules:
        report.write("load", kind="module", name=module)
        try:
            import_module(module)
        except (Exception, SystemExit) as e:  # noqa: BLE001 -- a broken build may raise anything
            report.write("failed", kind="module", name=module, message=f"{type(e).__name__}: {e}")
    report.write("done")
    os._exit(0)


def _output_sizes() -> tuple[int, int]:
    """Return how many bytes were written to standard output and standard error, which are files."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    return os.fstat(1).st_size, os.fstat(2).st_size
