"""``protgraph doctor``: versions, optional dependencies, and every installed component, loaded in child processes."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib import metadata, util
from typing import Annotated

import typer

from protgraph.cli.child_process import ChildResult, run_child
from protgraph.registry import PluginProblem, distributions_with_components, registries
from protgraph.registry.import_source import IMPORT_VARIABLE
from protgraph.registry.metadata_check import malformed_metadata, metadata_problems
from protgraph.wording import count_noun

__all__ = ["doctor_command"]

DISTRIBUTIONS = ("protgraph-pyg", "torch", "torch-geometric", "e3nn", "biotite", "lightning", "torchmetrics", "numpy")
#: Optional distribution → (module, extra that installs it).
EXTRAS = {
    "foldcomp": ("foldcomp", "foldcomp"),
    "molstar-cli": ("molstar_cli", "view"),
    "openpyxl": ("openpyxl", "xlsx"),
    "faiss-cpu": ("faiss", "search"),
    "pandas": ("pandas", "pandas"),
    "transformers": ("transformers", "esm"),
    "cuequivariance-torch": ("cuequivariance_torch", "cuequivariance"),
}
_AT_ONCE = 4  # child processes
_SHOWN = 200  # characters of what a plugin prints


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
    typer.secho("versions", bold=True)
    for label, value in (("python", platform.python_version()), *((d, _version(d)) for d in DISTRIBUTIONS)):
        typer.echo(f"  {label:<16} {value}")
    problems = malformed_metadata()
    if problems:
        _report([*problems, *metadata_problems()])
    typer.secho("cache", bold=True)
    typer.echo(f"  {_cache()}")
    with ThreadPoolExecutor(min(_AT_ONCE, os.cpu_count() or 1)) as pool:
        modules = [module for module, _ in EXTRAS.values() if util.find_spec(module) is not None]
        environment = pool.submit(run_child, "protgraph.cli.doctor_load:load_environment", *modules, timeout=timeout)
        run = partial(run_child, timeout=timeout, preload=["protgraph.cli.doctor_preload"])
        sources = {name: version for name, version in distributions_with_components().items() if _count(name)}
        loads = {name: pool.submit(run, "protgraph.cli.doctor_load:load_distribution", name) for name in sources}
        problems += _print_environment(environment.result())
        typer.secho("components", bold=True)
        for name, version in sources.items():
            problems += _print_distribution(f"{name} {version}", _count(name), loads[name].result())
    problems += [problem for registry in registries.values() for problem in registry.problems()]
    _report([*problems, *metadata_problems()])


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


def _count(distribution: str) -> int:
    return sum(len(registry.providers_of(distribution)) for registry in registries.values())


def _cache() -> str:
    """Return path and size of the folder of prepared and downloaded files."""
    from protgraph.structure.io.cache_folder import cache_dir

    folder = cache_dir()
    size = sum(p.stat().st_size for p in folder.rglob("*") if p.is_file())
    return (
        f"{folder}: {size / 2**20:,.0f} MiB; may be deleted, files are created or downloaded again (location: "
        "$PROTGRAPH_CACHE)"
    )


def _print_environment(result: ChildResult) -> list[PluginProblem]:
    """Print the device and the optional dependencies; one that does not import is a problem, e.g. a wrong build."""
    device = next((event["text"] for event in result.of("device")), "torch cannot be imported")
    typer.secho("device", bold=True)
    typer.echo(f"  {'cuda':<16} {device}")
    typer.secho("optional dependencies", bold=True)
    failed = {event["name"]: event["message"] for event in result.of("failed")}
    if result.ending:
        last = [event["name"] for event in result.of("load")][-1:] or ["torch"]
        failed[last[0]] = f"importing {last[0]} {result.ending}. {_last_line(result)}"
    problems = []
    if "torch" in failed:
        problems.append(PluginProblem("library", "torch", f"torch {_version('torch')}", failed["torch"]))
    for distribution, (module, extra) in EXTRAS.items():
        state = _version(distribution)
        if util.find_spec(module) is None:
            state = f"not installed ({_install(extra)})"
        elif module in failed:
            state = "broken"
            command = f"pip install --force-reinstall --no-deps {distribution}"
            problems.append(PluginProblem("extra", extra, distribution, f"{failed[module]}\nReinstall it: {command}"))
        typer.echo(f"  {distribution:<22} {state}")
    return problems


def _install(extra: str) -> str:
    """Return the install command of an extra."""
    return f"pip install 'protgraph-pyg[{extra}]'"


def _print_distribution(source: str, count: int, result: ChildResult) -> list[PluginProblem]:
    """Print how many components of a distribution can be loaded; return the problems of its process."""
    started = result.of("load")
    unfinished = count - len(started) + (1 if result.ending and started else 0)
    good = count - unfinished - len({(e["kind"], e["name"]) for e in result.of("failed")})
    typer.echo(f"  {source:<30} {f'{good} of {count} loaded':<20} {result.seconds:6.1f} s")
    return list(_problems(source, result, unfinished))


def _problems(source: str, result: ChildResult, unfinished: int) -> Iterator[PluginProblem]:
    for event in result.of("failed"):
        yield PluginProblem(event["kind"], event["name"], source, event["message"])
    for event in result.of("printed"):
        text = result.output[event["stream"]][event["start"] : event["end"]].decode("utf-8", "replace").strip()
        stream = ("standard output", "standard error")[event["stream"]]
        yield PluginProblem(event["kind"], event["name"], source, f"loading it prints to {stream}: {text[:_SHOWN]!r}")
    changes: dict[tuple[str, str], list[str]] = {}
    for event in result.of("changed"):
        changes.setdefault((event["kind"], event["name"]), []).append(event["change"])
    for (kind, name), texts in changes.items():
        yield PluginProblem(kind, name, source, "\n".join(f"loading it changes {text}" for text in texts))
    threads = [event["thread"] for event in result.of("thread")]
    if threads:
        message = f"loading its components starts threads that do not end: {', '.join(threads)}"
        yield PluginProblem("distribution", source.rpartition(" ")[0], source, message)
    if result.ending:
        started = result.of("load")
        kind, name = (started[-1]["kind"], started[-1]["name"]) if started else ("distribution", source)
        rest = f" {count_noun(unfinished - 1, 'further component')} not checked." if started and unfinished > 1 else ""
        text = f" {_last_line(result)}" if not started else ""
        yield PluginProblem(kind, name, source, f"loading it {result.ending}.{rest}{text}")


def _last_line(result: ChildResult) -> str:
    """Return the last line that the process wrote to standard error, e.g. that of a traceback."""
    lines = result.output[1].decode("utf-8", "replace").strip().splitlines()
    return lines[-1][:_SHOWN] if lines else ""
