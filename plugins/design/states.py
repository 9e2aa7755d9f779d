"""One sequence for several states of a protein, e.g. the models of a file; the states do not see each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from protgraph_plugins.design.decoding import check_design_model
from protgraph_plugins.design.results import Design
from protgraph_plugins.design.run import BATCH_DECODED, BATCH_RESIDUES
from protgraph_plugins.design.sampling import SamplingRequest, check_temperature, sample_designs
from protgraph_plugins.design.spec import DesignSpec

from protgraph.errors import OptionError
from protgraph.model import ProteinModel
from protgraph.structure import ReadOptions, Residues
from protgraph.structure.io import open_source, read_residues

__all__ = ["design_states", "read_states"]


def read_states(source: str, read: ReadOptions, states: str) -> list[Residues]:
    """Return models of a structure file as states with the same residues.

    Parameters
    ----------
    states : str
        Numbers of models, ``"1,2,5"``, or ``"all"``.

    Raises
    ------
    OptionError
        The text is invalid, there are fewer than two states, or residues of two states differ.
    """
    content = open_source(source)
    numbers = _numbers(states)
    if not numbers:
        first = read_residues(content, read)
        numbers = list(range(1, first.report.models + 2))  # the report counts the others
    if len(numbers) < 2:
        raise OptionError(f"--states {states!r}: {source} has one model. Give a file with several, or leave it out.")
    models = [read_residues(content, replace(read, model_number=number)) for number in numbers]
    for number, residues in zip(numbers[1:], models[1:], strict=True):
        if residues.ids != models[0].ids or not np.array_equal(residues.aatype, models[0].aatype):
            raise OptionError(
                f"--states {states!r}: model {number} of {source} has other residues than model {numbers[0]}. Give "
                "models with the same residues."
            )
    return models


def _numbers(states: str) -> list[int]:
    """Return the numbers of models; empty for "all"."""
    if states == "all":
        return []
    try:
        numbers = [int(number) for number in states.split(",")]
    except ValueError as e:
        raise OptionError(f"invalid --states {states!r}. Use numbers of models, '1,2,5', or 'all'.") from e
    if min(numbers) < 1 or len(set(numbers)) < len(numbers):
        raise OptionError(f"invalid --states {states!r}. Use different numbers from 1.")
    return numbers


def design_states(
    model: ProteinModel,
    states: Sequence[Residues],
    spec: DesignSpec | None = None,
    *,
    copies: int = 1,
    temperature: Sequence[float] = (0.1,),
    seed: int = 0,
    on_sequences: Callable[[int, int], None] | None = None,
) -> Design:
    """Sample sequences that fit several states of a protein.

    Every state is a graph of its own, so that no residue has a neighbor in another state. Residues with the same place
    in the states get one type, from the mean of the logits of the states. Scores are means over the residues of all
    states.

    Parameters
    ----------
    model, spec, copies, seed, on_sequences
        See :func:`design_sequences`.
    states : sequence of Residues
        Two or more, with the same residues in the same order.
    temperature : sequence of float

    Returns
    -------
    Design
        With the residues of the first state.

    Raises
    ------
    OptionError
        Numbers are out of range, the states differ, or the model reads unresolved residues.
    """
    check_design_model(model)
    for t in temperature:
        check_temperature(t)
    if len(states) < 2 or any(state.ids != states[0].ids for state in states):
        raise OptionError("states to design: give two or more with the same residues.")
    if model.plan.inserts_unresolved:
        raise OptionError(f"model {model.spec.name!r} reads unresolved residues. Use another one for several states.")
    spec = spec or DesignSpec()
    request = SamplingRequest(
        copies=copies,
        temperatures=list(temperature),
        seed=seed,
        noise=0.0,
        details=False,
        batch_residues=BATCH_RESIDUES,
        batch_decoded=BATCH_DECODED,
        states=True,
        on_sequences=on_sequences,
    )
    constraints = [spec.constraints(state, model.target.size) for state in states]
    return sample_designs(model, list(states), constraints, request)[0]
