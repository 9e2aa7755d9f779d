"""``protgraph doctor``: versions, optional dependencies, and every installed component, loaded in child processes."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata, util
from subprocess import DEVNULL
from typing import Annotated

import typer

from protgraph.cli.doctor_load import Loaded, import_library, load_component
from protgraph.registry import PluginProblem, distributions_with_components, hooks, registries
from protgraph.registry.discovery import PLUGINS_VARIABLE, allowed_plugins, malformed_metadata, metadata_problems
from protgraph.registry.provider import IMPORT_VARIABLE
from protgraph.wording import count_noun
from protgraph.worker_process import WorkerDied, WorkerProcess, WorkerRaised

__all__ = ["doctor_command"]

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
