"""``protgraph recipe``: make a trained model from a recipe."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from protgraph.cli import Overwrite, check_output_folder
from protgraph.errors import OptionError

if TYPE_CHECKING:
    from protgraph.checkpoint import Checkpoint

__all__ = ["recipe_command"]

ENTRY_POINTS = {"protgraph.commands": {"recipe": "recipe_command"}}


def recipe_command(
    recipe: Annotated[str, typer.Argument(help="TOML file, or trained model by name.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder to write.")],
    evaluate: Annotated[
        bool,
        typer.Option("--evaluate", help="Train nothing: evaluate the weights beside the recipe again, for a new card."),
    ] = False,
    calibrate: Annotated[
        bool,
        typer.Option(
            "--calibrate",
            help="With --evaluate: fit the calibration of the recipe again. The weights of the members stay.",
        ),
    ] = False,
    jobs: Annotated[int, typer.Option(help="Processes that read structure files.")] = 1,
    overwrite: Overwrite = False,
) -> None:
    """Train the models of a recipe, calibrate and evaluate their mean, and write a folder with weights and card.

    The TOML file has the keys name, summary, dataset, task, models, seeds, calibration, float16 and [fit]. Each model
    is trained with each seed; predictions are of their mean logits. Calibration and thresholds are fitted on
    validation, and test splits are evaluated once. [[evaluate]] adds other datasets, whose homologs are not trained on.
    The folder has model.safetensors for 'protgraph predict', the recipe, card.json, README.md and reliability.svg. An
    interrupted run continues with the next member.

    \b
    Examples:
      protgraph recipe secondary_structure -o reproduced
      protgraph recipe my_site.toml -o my_site
      protgraph recipe ddg_binding --evaluate -o evaluated
      protgraph recipe dna_site --evaluate --calibrate -o calibrated
      protgraph predict my_site/model.safetensors 1ubq.cif -o out.csv
    """
    from protgraph_plugins.recipes.run import evaluate_recipe, run_recipe

    from protgraph.checkpoint import TrainedModel
    from protgraph.registry import trained_models

    path = trained_models.get(recipe).recipe if recipe in trained_models else Path(recipe)
    if calibrate and not evaluate:
        raise OptionError(
            "--calibrate: only with --evaluate; a recipe that is run is calibrated anyway. Add --evaluate."
        )
    check_output_folder(out, inputs=[path], overwrite=overwrite, apart=True)
    if evaluate:
        before = TrainedModel(path.parent, check_code=False)
        trained = evaluate_recipe(before, out, jobs=jobs, overwrite=overwrite, recalibrate=calibrate)
    else:
        trained = run_recipe(path, out, jobs=jobs, overwrite=overwrite, on_member=_print_member)
    typer.echo(trained.doc)
    if left_out := trained.card().left_out:
        typer.echo(f"left out of training: {left_out}")
    typer.echo(f"trained model → {out}")


def _print_member(label: str, member: Checkpoint) -> None:
    typer.echo(f"{label}: {member}", err=True)
