"""Model argument of commands: a model or trained model by name, or a checkpoint file."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from protgraph.errors import CheckpointError, OptionError
from protgraph.registry import models, trained_models

if TYPE_CHECKING:
    from protgraph.checkpoint import Checkpoint
    from protgraph.model import ModelSpec

__all__ = ["SetValues", "find_checkpoint", "find_model", "model_names", "path_of_model", "trained_names"]

SetValues = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="PATH=VALUE",
        help="Change a value of the model: layers.1.dim=128, features.knn.k=16, layers.*.dropout=0.1; repeat for more.",
    ),
]


def find_model(argument: str, settings: list[str] | None, *, ligands: bool = False) -> str | ModelSpec:
    """Return the name of a model, or its specification if it is a TOML file or changed (``--ligands``, ``--set``)."""
    if not settings and not ligands and not argument.endswith(".toml"):
        return argument
    from protgraph.model import as_model_spec, change_model, parse_settings, with_pocket

    spec = as_model_spec(argument)
    if ligands:
        spec = with_pocket(spec)
    return change_model(spec, parse_settings(settings or []))


def find_checkpoint(argument: str, settings: list[str] | None = None) -> Checkpoint | None:
    """Load the checkpoint of a file or a trained model's name; return None for a model without weights.

    Raises :class:`CheckpointError` if the argument looks like a path ("x.safetensors", "runs/x") without a file, or the
    file is not a checkpoint. Raises :class:`OptionError` if there are settings (``--set``) for a trained model.
    """
    path = Path(argument)
    if path.suffix == ".toml":
        return None
    is_trained = argument in trained_models and argument not in models
    if settings and (is_trained or path.is_file()):
        raise OptionError(
            f"--set changes an untrained model; {argument!r} is trained. Leave --set out, or give a name."
        )
    if path.is_file():
        from protgraph.checkpoint import load_checkpoint

        return load_checkpoint(path)
    if is_trained:
        from protgraph.checkpoint.checkpoint_file import as_checkpoint

        return as_checkpoint(argument)
    if path.suffix == ".safetensors" or (len(path.parts) > 1 and argument not in models):
        problem = "is a folder" if path.is_dir() else "not found"
        raise CheckpointError(f"checkpoint {argument!r} {problem}. Give a file of 'protgraph train', or a model name.")
    return None


def trained_names(incomplete: str) -> list[str]:
    """Return the names of trained models for the completion of a shell."""
    return [name for name in trained_models.names() if name.startswith(incomplete)]


def model_names(argument: str) -> list[str]:
    """Return the models of an argument "a,b"; a file whose name has a comma is one model.

    Raises :class:`OptionError` if a name is empty or given twice.
    """
    if Path(argument).is_file():
        return [argument]
    names = [name.strip() for name in argument.split(",")]
    if not all(names) or len(set(names)) < len(names):
        raise OptionError(f"invalid models: {argument!r}. Give different names, separated by commas.")
    return names


def path_of_model(path: Path, name: str) -> Path:
    """Return an output path with the name of a model: ``out.dna_site.csv``, or ``folder/dna_site``.

    Examples
    --------
    >>> path_of_model(Path("a/out.csv"), "dna_site").as_posix(), path_of_model(Path("site.cif.gz"), "m[0]").as_posix()
    ('a/out.dna_site.csv', 'site.m_0_.cif.gz')
    """
    model = re.sub(r"[^\w.-]", "_", Path(name).name.removesuffix(".safetensors"))
    if not path.suffix:
        return path / model
    stem, dot, suffixes = path.name.partition(".")
    return path.with_name(f"{stem}.{model}{dot}{suffixes}")
