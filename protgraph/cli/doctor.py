"""``protgraph doctor``: versions, optional dependencies, and components that cannot be loaded."""

from __future__ import annotations

import platform
from importlib import metadata, util

import typer

from protgraph.registry import PluginProblem, registries, unreadable_distributions

__all__ = ["doctor_command"]

DISTRIBUTIONS = ("protgraph-pyg", "torch", "torch-geometric", "e3nn", "biotite", "lightning", "torchmetrics", "numpy")
#: Optional distribution → (module, extra that installs it).
EXTRAS = {
    "torch-scatter": ("torch_scatter", "scatter"),
    "plotly": ("plotly", "view"),
    "pandas": ("pandas", "pandas"),
    "openpyxl": ("openpyxl", "xlsx"),
    "transformers": ("transformers", "esm"),
    "cuequivariance-torch": ("cuequivariance_torch", "cuequivariance"),
}


def doctor_command() -> None:
    """Check the installation: print versions, load every component, and report problems.

    The exit code is 1 if there are problems, 0 otherwise.

    \b
    Example:
      protgraph doctor
    """
    typer.secho("versions", bold=True)
    for label, value in (("python", platform.python_version()), *((d, _version(d)) for d in DISTRIBUTIONS)):
        typer.echo(f"  {label:<16} {value}")
    typer.echo(f"  {'cuda':<16} {_cuda()}")
    problems = [*_check_extras(), *unreadable_distributions()]
    typer.secho("cache", bold=True)
    typer.echo(f"  {_cache()}")
    typer.secho("components", bold=True)
    for plural, registry in registries.items():
        broken = registry.problems(load=True)
        typer.echo(f"  {plural:<16} {len(registry) - len(broken)} of {len(registry)} loaded")
        problems += broken
    if not problems:
        typer.secho("no problems", fg="green")
        return
    typer.secho(f"{len(problems)} problem{'s' * (len(problems) > 1)}", fg="red", bold=True)
    for problem in problems:
        typer.echo(f"  {problem.kind} {problem.name} ({problem.source})")
        typer.echo("    " + problem.message.replace("\n", "\n    "))
    raise typer.Exit(1)


def _version(distribution: str) -> str:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return "not installed"


def _cuda() -> str:
    import torch

    if not torch.cuda.is_available():
        return "no device"
    return f"{torch.version.cuda}, {torch.cuda.device_count()} × {torch.cuda.get_device_name(0)}"


def _cache() -> str:
    """Return path and size of the folder of prepared and downloaded files."""
    from protgraph.structure.io.fetch import cache_dir

    folder = cache_dir()
    size = sum(p.stat().st_size for p in folder.rglob("*") if p.is_file())
    return (
        f"{folder}: {size / 2**20:,.0f} MiB; may be deleted, files are created or downloaded again (location: "
        "$PROTGRAPH_CACHE)"
    )


def _check_extras() -> list[PluginProblem]:
    """Print the optional dependencies; one that does not import is a problem, e.g. if built for another torch."""
    typer.secho("optional dependencies", bold=True)
    problems = []
    for distribution, (module, extra) in EXTRAS.items():
        state = _version(distribution)
        if util.find_spec(module) is None:
            state = f"not installed (pip install --no-build-isolation 'protgraph-pyg[{extra}]')"
        else:
            try:
                __import__(module)
            except (ImportError, OSError, RuntimeError) as e:
                state = "broken"
                message = f"{type(e).__name__}: {e}\nReinstall it against this torch: pip install --no-build-isolation"
                problems.append(PluginProblem("extra", extra, distribution, message))
        typer.echo(f"  {distribution:<22} {state}")
    return problems
