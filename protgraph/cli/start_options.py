"""Options of ``protgraph train`` that start from trained weights: ``--from``, ``--head``, ``--freeze`` and others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias, TypeVar, cast

import typer

from protgraph.cli.model_argument import find_model
from protgraph.errors import OptionError

if TYPE_CHECKING:
    from protgraph.model import ModelSpec

__all__ = [
    "Freeze",
    "HeadOption",
    "LearningRateScale",
    "LowRank",
    "StartFrom",
    "UnfreezeAfter",
    "check_head",
    "model_to_train",
    "parse_pairs",
    "parse_ranks",
]

StartFrom: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="NAME|FILE",
        help="Start from the weights of a checkpoint, a trained model (NAME; NAME[2]: a member of an ensemble) or a "
        "model with published weights.",
    ),
]
HeadOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--head",
        metavar="new|keep",
        help="Head of --from: a new one, or that of NAME.  [default: keep for the same task]",
    ),
]
Freeze: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PATTERN", help="Parts that are not trained, e.g. 'layers.*'; repeat for more. See protgraph info NAME."
    ),
]
UnfreezeAfter: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(metavar="PATTERN=EPOCHS", help="Train these parts only after this many epochs; repeat for more."),
]
LearningRateScale: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(metavar="PATTERN=X", help="Multiply the learning rate of these parts by X; repeat for more."),
]

LowRank: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        metavar="RANK",
        help="Train low-rank terms of the layers' linear maps (LoRA) and the head only; PATTERN=RANK: of some layers.",
    ),
]

Number = TypeVar("Number", int, float)


def parse_pairs(
    option: str,
    texts: Sequence[str] | None,
    number: Callable[[str], Number],
    *,
    form: str = "PATTERN=NUMBER, e.g. 'layers.*=3'",
) -> dict[str, Number]:
    """Return the numbers of texts such as 'layers.*=0.1', by pattern; ``form`` is that of a text, for errors."""
    pairs: dict[str, Number] = {}
    for text in texts or ():
        pattern, _, value = text.rpartition("=")
        try:
            pairs[pattern] = number(value)
        except ValueError:
            pattern = ""
        if not pattern:
            raise OptionError(f"{option}: {text!r}. Allowed: {form}.")
    return pairs


def parse_ranks(texts: Sequence[str] | None) -> dict[str, int]:
    """Return the rank of each pattern of --lora; a number alone is the rank for all layers."""
    return parse_pairs("--lora", [text if "=" in text else f"layers={text}" for text in texts or ()], int)


def model_to_train(
    model: str | None, start_from: str | None, settings: list[str] | None, *, ligands: bool
) -> str | ModelSpec:
    """Return the model of the command line with its settings; without one, the specification of that to start from."""
    if model is not None:
        return find_model(model, settings, ligands=ligands)
    if settings or ligands:
        option = "--set" if settings else "--ligands"
        raise OptionError(f"{option} changes a model of the command line. Give MODEL, too.")
    if start_from is None:
        raise OptionError("MODEL is missing. Give the name of a model, or --from, whose model is then trained.")
    from protgraph.checkpoint.checkpoint_file import load_parent

    return load_parent(start_from).model.spec


def check_head(text: str | None) -> Literal["keep", "new"] | None:
    """Return the value of --head; raise :class:`OptionError` for another one."""
    if text not in (None, "keep", "new"):
        raise OptionError(f"--head: {text!r}. Allowed: 'new' or 'keep'.")
    return cast('Literal["keep", "new"] | None', text)
