"""``protgraph verify``: repeat the predictions that are stored with a model."""

from __future__ import annotations

from typing import Annotated

import typer

__all__ = ["verify_model_command"]

ENTRY_POINTS = {"protgraph.commands": {"verify": "verify_model_command"}}


def verify_model_command(
    models: Annotated[list[str], typer.Argument(metavar="MODEL...", help="Trained models by name, or checkpoints.")],
) -> None:
    """Predict again what is stored with a model, and compare, to test that this installation gives the same numbers.

    When a model is saved, its predictions for ten entries of pdb_core are saved with it. Exit code 1: a prediction
    differs by more than 1e-4, relative to the largest of its protein, at least 1; 2: no predictions are stored.

    \b
    Examples:
      protgraph verify ligand_site
      protgraph verify gat.safetensors
    """
    from protgraph.inference import verify_model

    is_equal = True
    for model in models:
        result = verify_model(model)
        typer.echo(f"{model}, saved with protgraph {result.version}")
        for protein in result.proteins:
            verdict = "equal" if protein.is_equal else f"differs, allowed: {protein.tolerance:.1g}"
            typer.echo(
                f"  {protein.protein}  {protein.numbers:6} numbers  difference {protein.difference:.1e}  {verdict}"
            )
        is_equal = is_equal and result.is_equal
    if not is_equal:
        raise typer.Exit(1)
