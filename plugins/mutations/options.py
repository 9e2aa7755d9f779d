"""Options of the commands that score mutations, and the scorers of ``--model``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from protgraph_plugins.design import load_model, models_with_weights

from protgraph.cli import allow_generators
from protgraph.errors import OptionError, UnknownNameError, suggest
from protgraph.registry import models, mutation_scorers

if TYPE_CHECKING:
    from protgraph_plugins.mutations.scorer import MutationScorer

    from protgraph.cli import TableOutput

__all__ = [
    "Ensemble",
    "Files",
    "Mode",
    "Orders",
    "Partners",
    "ScorerName",
    "ScorerWeights",
    "Seed",
    "load_scorer",
    "print_convention",
]

Files = Annotated[
    list[Path],
    typer.Argument(help="Structure files (PDB, mmCIF, BinaryCIF, .gz), folders, pdb:1ubq, or '-'. One or more."),
]
ScorerName = Annotated[
    str | None,
    typer.Option(
        "--model",
        help="Scorer: one of 'protgraph list mutation_scorers', a model with published weights, or a checkpoint of "
        "inverse_folding. Several, 'A,B', are an ensemble.  [default: ddg; ddg_binding with --partners; ProteinMPNN "
        "with --mode, --orders, --seed or --weights]",
    ),
]
ScorerWeights = Annotated[
    str | None, typer.Option("--weights", help="File of weights of a single model, or ESM checkpoint (name or folder).")
]
Mode = Annotated[
    str, typer.Option(help="Conditioning of log-odds: conditional, unconditional or teacher_forced (whole sequences).")
]
Orders = Annotated[int, typer.Option(min=1, metavar="<int>", help="Random decoding orders to average log-odds over.")]
Seed = Annotated[int, typer.Option(help="Seed of the decoding orders.")]
Ensemble = Annotated[
    str,
    typer.Option(
        help="Ensemble of several models: mean of their scores, or scaled: each divided by its standard deviation over "
        "all substitutions of the structure."
    ),
]

Partners = Annotated[
    str,
    typer.Option(
        help="Score binding instead: the complex minus its separated partners, with the chains of each, 'H,L/A'."
    ),
]


_DEFAULT, _DEFAULT_OF_BINDING, _DEFAULT_OF_LOG_ODDS = "ddg", "ddg_binding", "proteinmpnn.v_48_020"
_LOG_ODDS_DEFAULTS = {"mode": "conditional", "orders": 1, "seed": 0}


def load_scorer(
    names: str | None,
    weights: str | None = None,
    *,
    mode: str = "conditional",
    orders: int = 1,
    seed: int = 0,
    ensemble: str = "mean",
    device: str = "auto",
    partners: str = "",
) -> MutationScorer:
    """Load the scorer of a name, or an ensemble of several names separated by commas.

    With ``partners``, chains separated by commas and sides by "/", it is a scorer of binding. Without a name, it is the
    trained model of folding or of binding; with options of log-odds, ProteinMPNN.
    """
    allow_generators()
    from protgraph_plugins.mutations.binding_scorer import BindingScorer, is_binding_model
    from protgraph_plugins.mutations.ensemble_scorer import ENSEMBLE_MODES, EnsembleScorer

    from protgraph.validation import check_choice

    check_choice("ensemble", ensemble, ENSEMBLE_MODES)
    options = {"mode": mode, "orders": orders, "seed": seed}
    if names is None:
        names = _default_scorer(weights, options, partners)
    scorer_names = _scorer_names(names)
    is_ensemble = len(scorer_names) > 1
    if is_ensemble and weights is not None:
        raise OptionError("--weights is for a single model. Leave it out, or score with one model at a time.")
    if not is_ensemble and ensemble != "mean":
        raise OptionError(f"--ensemble {ensemble} is for several models, and {names!r} is one. Leave it out.")
    scorers = [_load_one(name, weights, options, device) for name in scorer_names]
    if partners:
        sides = _sides(partners)
        scorers = [BindingScorer(scorer, sides) for scorer in scorers]
    if not is_ensemble:
        return scorers[0]
    if not partners and any(map(is_binding_model, scorers)):
        raise OptionError(f"--model {names!r} has a model of binding: an ensemble with it needs --partners, e.g. A/B.")
    return EnsembleScorer(scorers, how=ensemble)


def _default_scorer(weights: str | None, options: dict[str, str | int], partners: str) -> str:
    """Return the name of the scorer that fits the options that are given."""
    if weights is not None or options != _LOG_ODDS_DEFAULTS:
        return _DEFAULT_OF_LOG_ODDS
    return _DEFAULT_OF_BINDING if partners else _DEFAULT


def _scorer_names(text: str) -> list[str]:
    """Return the names of ``--model``, which must differ."""
    names = [name.strip() for name in text.split(",")]
    if not all(names) or len(set(names)) < len(names):
        raise OptionError(f"invalid --model: {text!r}. Give different names, separated by commas.")
    return names


def _sides(text: str) -> list[list[str]]:
    """Return the chains of each partner of ``--partners``."""
    sides = []
    for side in text.split("/"):
        names = [name.strip() for name in side.split(",")]
        sides.append([name for name in names if name])
    return sides


def _load_one(name: str, weights: str | None, options: dict[str, str | int], device: str) -> MutationScorer:
    """Load a registered scorer, or a model that predicts residue types."""
    if name in mutation_scorers and name not in models:
        changed = [key for key, value in options.items() if value != _LOG_ODDS_DEFAULTS[key]]
        if changed:
            raise OptionError(f"--{changed[0]} does not apply to the scorer {name!r}. Leave it out.")
        own_options = {"device": device}
        if weights is not None:
            own_options["weights"] = weights
        return mutation_scorers.create(name, options=own_options)  # type: ignore[return-value]
    if name not in models and not name.endswith(".safetensors"):
        hint = suggest(name, [*mutation_scorers, *models_with_weights()])
        raise UnknownNameError(
            f"--model: no scorer {name!r}.{hint} Allowed: a name of 'protgraph list mutation_scorers', a model with "
            "published weights, or a checkpoint (.safetensors)."
        )
    from protgraph_plugins.mutations.log_odds_scorer import LogOddsScorer

    model = load_model(name, None if weights is None else Path(weights), device)
    return LogOddsScorer(model, **options, name=name)  # type: ignore[arg-type]


def print_convention(scorer: MutationScorer, out: TableOutput) -> None:
    """Print the name of the column of scores, their definition and sign, and the calls that the card supports."""
    from protgraph_plugins.mutations.scorer import call_rules, score_column, sign_convention

    out.print(f"{score_column(scorer)}: {sign_convention(scorer)}")
    for rule in call_rules(scorer):
        out.print(f"  {rule.sentence}")
    if not call_rules(scorer):
        out.print(f"  no calls: {scorer.name} has no card with thresholds and their precision and recall on validation")
