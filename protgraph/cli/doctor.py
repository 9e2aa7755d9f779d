"""``protgraph doctor``: versions, optional dependencies, and every installed component, loaded in child processes."""

from __future__ import annotations

import os
import platform
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib import import_module, metadata, util
from subprocess import DEVNULL
from typing import Annotated, NamedTuple

import typer

from protgraph.errors import ProtgraphError
from protgraph.process_state import describe_changes, new_threads, read_state
from protgraph.registry import PluginProblem, Registry, distributions_with_components, hooks, registries
from protgraph.registry.discovery import PLUGINS_VARIABLE, allowed_plugins, malformed_metadata, metadata_problems
from protgraph.registry.provider import IMPORT_VARIABLE, Provider
from protgraph.wording import count_noun
from protgraph.worker_process import WorkerDied, WorkerProcess, WorkerRaised

__all__ = ["Loaded", "doctor_command", "import_library", "load_component"]

ENTRY_POINTS = {"protgraph.commands": {"doctor": "doctor_command"}}

DISTRIBUTIONS = ("protgraph-pyg", "torch", "torch-geometric", "e3nn", "biotite", "lightning", "torchmetrics", "numpy")
#: Optional distribution → (module, extra that installs it).
EXTRAS = {
    "foldcomp": ("foldcomp", "foldcomp"),
    "molstar-cli": ("molstar_cli", "view"),
    "openpyxl": ("openpyxl", "xlsx"),
    "pandas": ("pandas", "pandas"),
    "transformers": ("transformers", "esm"),
    "cuequivariance-torch": ("cuequivariance_torch", "cuequivariance"),
}
_AT_ONCE = 4  # worker processes
_START_LIMIT = 600.0  # seconds until a process has imported what all components need


def doctor_command(
    timeout: Annotated[
        float, typer.Option(min=1.0, help="Seconds for loading all components of one distribution.")
    ] = 30.0,
) -> None:
    """Check the installation: print versions, load every component, and report problems.

    The components of each distribution are loaded in a process of their own. Reported are components that cannot be
    loaded, hang, crash or print, that are not of the kind of their entry-point group, that start threads, or that
    change the global state of Python or torch; names of several distributions; and invalid metadata. The exit code is 1
    if there are problems, 0 otherwise.

    \b
    Examples:
      protgraph doctor
      protgraph doctor --timeout 120
    """
    os.environ.pop(IMPORT_VARIABLE, None)  # only distributions are checked
    _print_versions()
    problems = malformed_metadata()
    if problems:
        _report([*problems, *metadata_problems()])
    typer.secho("cache", bold=True)
    typer.echo(f"  {_cache()}")
    sources = {name: version for name, version in distributions_with_components().items() if _components(name)}
    with ThreadPoolExecutor(min(_AT_ONCE, os.cpu_count() or 1)) as pool:
        loads = {name: pool.submit(_load, name, timeout) for name in sources}
        problems += _check_libraries(timeout)
        typer.secho("components", bold=True)
        for name, version in sources.items():
            found, good, seconds = loads[name].result()
            count = f"{good} of {len(_components(name))} loaded"
            typer.echo(f"  {f'{name} {version}':<30} {count:<20} {seconds:6.1f} s")
            problems += [PluginProblem(kind, one, f"{name} {version}", text) for kind, one, text in found]
    problems += [problem for registry in (registries | hooks).values() for problem in registry.problems()]
    _report([*problems, *metadata_problems()])


def _print_versions() -> None:
    """Print the versions of Python and of the main libraries, and which plugins are allowed if not all are."""
    typer.secho("versions", bold=True)
    typer.echo(f"  {'python':<16} {platform.python_version()}")
    for distribution in DISTRIBUTIONS:
        typer.echo(f"  {distribution:<16} {_version(distribution)}")
    allowed = allowed_plugins()
    if allowed is not None:
        names = ", ".join(sorted(allowed)) or "those of protgraph"
        typer.echo(f"  {'plugins':<16} only {names} ({PLUGINS_VARIABLE})")


def _report(problems: Sequence[PluginProblem]) -> None:
    """Print the problems and exit with code 1, or print that there are none."""
    if not problems:
        typer.secho("no problems", fg="green")
        return
    typer.secho(count_noun(len(problems), "problem"), fg="red", bold=True)
    for problem in problems:
        typer.echo(f"  {problem.kind} {problem.name} ({problem.source})")
        typer.echo("    " + problem.message.replace("\n", "\n    "))
    raise typer.Exit(1)


def _version(distribution: str) -> str:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return "not installed"


def _components(distribution: str) -> list[tuple[str, str, str]]:
    """Return group, kind and name of the components of a distribution."""
    components = []
    for registry in (registries | hooks).values():
        components += [(registry.group, registry.kind, one.name) for one in registry.providers_of(distribution)]
    return components


def _cache() -> str:
    """Return path and size of the folder of prepared and downloaded files."""
    from protgraph.structure.io.transfer import cache_dir

    folder = cache_dir()
    size = sum(p.stat().st_size for p in folder.rglob("*") if p.is_file())
    return (
        f"{folder}: {size / 2**20:,.0f} MiB; may be deleted, files are created or downloaded again (location: "
        "$PROTGRAPH_CACHE)"
    )


def _check_libraries(timeout: float) -> list[PluginProblem]:
    """Print the device and the optional dependencies; one that does not import is a problem, e.g. a wrong build."""
    problems = []
    worker = WorkerProcess(import_library, log=DEVNULL)
    device = worker.run("torch", time_limit=_START_LIMIT)
    if isinstance(device, WorkerDied | WorkerRaised):
        message = f"importing torch: {_reason(device)}"
        problems.append(PluginProblem("library", "torch", f"torch {_version('torch')}", message))
        device = "torch cannot be imported"
    typer.secho("device", bold=True)
    typer.echo(f"  {'cuda':<16} {device}")
    typer.secho("optional dependencies", bold=True)
    for distribution, (module, extra) in EXTRAS.items():
        state = _version(distribution)
        if util.find_spec(module) is None:
            state = f"not installed (pip install 'protgraph-pyg[{extra}]')"
        else:
            result = worker.run(module, time_limit=timeout)
            if isinstance(result, WorkerDied | WorkerRaised):
                state = "broken"
                command = f"pip install --force-reinstall --no-deps {distribution}"
                message = f"{_reason(result)}\nReinstall it: {command}"
                problems.append(PluginProblem("extra", extra, distribution, message))
        typer.echo(f"  {distribution:<22} {state}")
    worker.close()
    return problems


def _load(distribution: str, timeout: float) -> tuple[list[tuple[str, str, str]], int, float]:
    """Load the components of a distribution in a process of their own, up to the first that ends the process.

    The result has kind, name and message of each problem, the number of loaded components, and the seconds they took.
    """
    worker = WorkerProcess(load_component, log=DEVNULL)
    problems = []
    good = 0
    ready = worker.run(None, time_limit=_START_LIMIT)
    if isinstance(ready, WorkerDied | WorkerRaised):
        return [("distribution", distribution, f"protgraph cannot be imported: {_reason(ready)}")], 0, 0.0
    start = time.monotonic()
    components = _components(distribution)
    for number, (group, kind, name) in enumerate(components):
        left = round(timeout - (time.monotonic() - start), 1)
        result = worker.run((group, distribution, name), time_limit=max(left, 0.0))
        if not isinstance(result, Loaded):
            further = len(components) - number - 1
            skipped = f" {count_noun(further, 'further component')} not checked." if further else ""
            problems.append((kind, name, f"loading it: {_reason(result)}.{skipped}"))
            break
        texts = [result.error] if result.error else []
        texts += result.faults
        good += not result.error
        if texts:
            problems.append((kind, name, "\n".join(texts)))
    worker.close()
    return problems, good, time.monotonic() - start


def _reason(result: WorkerDied | WorkerRaised) -> str:
    """Return how a process ended, or the type and message of an exception."""
    if isinstance(result, WorkerDied):
        return result.reason
    return f"{type(result.error).__name__}: {result.error}"


# --- functions of the worker processes: import a library, or load one component, and report --------------------------


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
