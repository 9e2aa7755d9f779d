"""Show a protein or a graph: cartoon, edges, predictions, attributions and labels, as an interactive page."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from protgraph_plugins.view.residue_colors import (
    agreement,
    attention_edges,
    attribution_color,
    label_color,
    prediction_colors,
)
from protgraph_plugins.view.scene import (
    PLAIN_COLORS,
    Color,
    Scene,
    color_of_field,
    edges_of_graph,
    is_color,
    make_scene,
    residues_of_graph,
)

from protgraph.argument_types import check_arguments
from protgraph.checkpoint import Checkpoint, as_checkpoint
from protgraph.data import ProteinGraph
from protgraph.errors import OptionError, list_first, suggest
from protgraph.featurize import model_notes
from protgraph.registry import ComponentSpec, as_components
from protgraph.structure import ReadOptions, Residues, Structure, clean
from protgraph.structure.io import open_source, read_residues

__all__ = ["view"]


@check_arguments("protein", "prediction", "label")
def view(
    protein: str | os.PathLike[str] | Structure | Residues | ProteinGraph,
    *,
    color: Any = None,
    edges: Sequence[ComponentSpec | str | Mapping[str, Any]] = (),
    prediction: str | Path | Checkpoint | Sequence[str | Path | Checkpoint] | None = None,
    attention: bool = False,
    attribution: bool = False,
    labels: Any = None,
    label: str | None = None,
) -> Scene:
    """Show a protein with edges and one value per residue as color.

    The last expression of a notebook cell is shown inline. The page works offline and requires the extra ``view``
    (``pip install "protgraph-pyg[view]"``). :func:`protgraph_plugins.view.write_page` writes it to a file.

    Parameters
    ----------
    protein : str, PathLike, Structure, Residues or ProteinGraph
        A structure file, "pdb:1ubq", or a protein that is read already. Of a graph, its own edges are shown, and the
        backbone instead of all atoms.
    color : str, array or Tensor, optional
        "chain", "residue", "seq_pos", "b_factor", a featurizer ("sasa", "dihedral:4"; of a graph: a node field), a
        predicted column, or one value per residue, ``(N,)``. Default: attributions, else the first predicted column,
        else labels, else "chain".
    edges : sequence of str, dict or ComponentSpec
        Edge featurizers: ``["contact", pg.component("knn", k=8)]``; not for a graph.
    prediction : str, Path, Checkpoint or sequence of those, optional
        Trained model, by name or file, whose predictions are shown. The predictions of a second one are shown beside
        those of the first; their columns are named with the model, e.g. "p_dna_site (dna_site)".
    attention : bool
        Show the strongest attention weights of the trained model as edges; one model only.
    attribution : bool
        Compute attributions of the prediction (:func:`protgraph.explain`); one model only.
    labels : str, Path or data frame, optional
        Table of labels per residue, as for training (columns file, chain, res_id and the label). With a prediction,
        the page shows the labels beside it, and where both agree.
    label : str, optional
        Label column; required if the table has several.

    Returns
    -------
    Scene

    Raises
    ------
    OptionError
        A color or an edge featurizer is unknown, or an option requires another one.

    Examples
    --------
    >>> from protgraph_plugins.view import view
    >>> view("datasets/pdb_core/structures/1crn.bcif", edges=["contact"], color="b_factor")
    Scene('1crn', 46 residues, 189 contact, colored by b_factor)
    """
    is_single = isinstance(prediction, str | Path | Checkpoint)
    models = [prediction] if is_single else list(prediction or ())
    _check_models(models, attention=attention, attribution=attribution)
    _check_options(protein, models, edges, labels, label)
    if isinstance(protein, ProteinGraph):
        return _graph_scene(protein, color, labels, label)
    residues = _read(protein)
    notes: list[str] = []
    if residues.report.models:
        notes += model_notes({residues.name: residues.report})
        residues = replace(residues, report=residues.report.without("models"))
    without_ligands = replace(residues, ligands=None)
    edge_components = as_components(edges, "edges")

    # Values that the page can show as color: attributions, predictions, labels.
    checkpoints = [as_checkpoint(model) for model in models]
    if len(models) > 1:
        values = _values_of_models(models, checkpoints, residues)
    elif models:
        values = _values_of_model(checkpoints[0], residues, color, attribution=attribution)
    else:
        values = _Values({}, ())
    columns, beside = values.columns, values.beside
    notes += values.notes
    if labels is not None:
        label_columns, label_notes = _label_columns(columns, without_ligands, labels, label)
        if columns:
            beside = next(iter(label_columns))
        columns |= label_columns
        notes += label_notes

    scene = _colored_scene(without_ligands, color, columns, edge_components)
    if attention:
        attended = attention_edges(checkpoints[0], _model_input(checkpoints[0], residues))
        scene = replace(scene, edges=(*scene.edges, attended))
    return replace(scene, residues=residues, beside=beside, notes=tuple(notes))


class _Values(NamedTuple):
    """Values of models that the page can show as color, notes, and the name of the values beside the first ones."""

    columns: dict[str, Color]
    notes: tuple[str, ...]
    beside: str | None = None


def _values_of_model(trained: Checkpoint, residues: Residues, color: Any, *, attribution: bool) -> _Values:
    """Return the predictions of a model; with ``attribution``, before them the attributions to the column ``color``."""
    model_input = _model_input(trained, residues)
    predicted, notes = prediction_colors(trained, model_input)
    if not attribution:
        return _Values(predicted, notes)
    is_explained = isinstance(color, str) and color in predicted and predicted[color].is_probability
    explained, attribution_notes = attribution_color(trained, model_input, value=color if is_explained else None)
    return _Values({"attribution": explained, **predicted}, (*notes, *attribution_notes))


def _values_of_models(
    models: Sequence[str | Path | Checkpoint], checkpoints: Sequence[Checkpoint], residues: Residues
) -> _Values:
    """Return the predictions of several models, with the model in their names; the second one is shown beside."""
    columns: dict[str, Color] = {}
    first_columns: list[str] = []
    notes: list[str] = []
    for model, trained in zip(models, checkpoints, strict=True):
        name = trained.task if isinstance(model, Checkpoint) else Path(model).name
        predicted, prediction_notes = prediction_colors(trained, _model_input(trained, residues))
        named = _named(predicted, name, columns)
        columns |= named
        first_columns.append(next(iter(named)))
        notes += [_of_model(note, name) for note in prediction_notes]
    return _Values(columns, tuple(notes), beside=first_columns[1])


def _model_input(trained: Checkpoint, residues: Residues) -> Residues:
    """Return the protein, without ligands unless the model reads them."""
    return residues if trained.model.plan.needs_ligands else replace(residues, ligands=None)


def _named(predicted: Mapping[str, Color], model: str, columns: Mapping[str, Color]) -> dict[str, Color]:
    """Return the predictions of one of several models, with the model in their names."""
    names = {name: f"{name} ({model})" for name in predicted}
    if any(name in columns for name in names.values()):
        raise OptionError(f"prediction {model!r} occurs twice. Allowed: models with different names.")
    return {names[name]: replace(color, name=names[name]) for name, color in predicted.items()}


def _of_model(note: str, model: str) -> str:
    prefix = "warning: " if note.startswith("warning: ") else ""
    return f"{prefix}{model}: {note.removeprefix(prefix)}"


def _check_models(models: Sequence[object], *, attention: bool, attribution: bool) -> None:
    for name, is_on in (("attention", attention), ("attribution", attribution)):
        if is_on and not models:
            raise OptionError(f"{name}=True requires a trained model. Add prediction=.")
        if is_on and len(models) > 1:
            raise OptionError(f"{name}=True: {len(models)} models. Allowed: one model. Remove the other predictions.")


def _check_options(
    protein: object, models: Sequence[object], edges: Sequence[object], labels: object, label: str | None
) -> None:
    if isinstance(protein, ProteinGraph):
        if models:
            raise OptionError("prediction= requires a structure: a graph lacks side chains. Give the structure file.")
        if len(edges):
            raise OptionError("edges= is for structures: of a graph, its own edges are shown. Remove edges=.")
    if label is not None and labels is None:
        raise OptionError(f"label={label!r} requires a table. Add labels=.")


def _graph_scene(graph: ProteinGraph, color: Any, labels: Any, label: str | None) -> Scene:
    residues = residues_of_graph(graph)
    columns: dict[str, Color] = {}
    notes = ["side chains are not in the graph"]
    if labels is not None:
        columns, label_notes = _label_columns({}, residues, labels, label)
        notes += label_notes
    if isinstance(color, str) and color not in columns:
        columns[color] = color_of_field(graph, residues, color)
    scene = _colored_scene(residues, color, columns)
    return replace(scene, edges=edges_of_graph(graph), notes=tuple(notes))


def _colored_scene(
    residues: Residues, color: Any, columns: Mapping[str, Color], edges: Sequence[ComponentSpec] = ()
) -> Scene:
    """Return a scene in the chosen color, with the other columns as text."""
    chosen, values = _choose(color, columns, residues)
    other_columns = [column for name, column in columns.items() if name != chosen]
    return make_scene(residues, edges=edges, color=values, shown=other_columns)


def _label_columns(
    predicted: Mapping[str, Color], residues: Residues, labels: Any, label: str | None
) -> tuple[dict[str, Color], tuple[str, ...]]:
    """Return the labels and their agreement with predictions as colors, labels first, and notes."""
    truth, notes = label_color(labels, residues, column=label)
    if truth.name in predicted:
        truth = replace(truth, name=f"label {truth.name}")
    columns = {truth.name: truth}
    same = agreement(truth, list(predicted.values()))
    if same is not None:
        columns[same.name] = same
    return columns, notes


def _choose(color: Any, columns: Mapping[str, Color], residues: Residues) -> tuple[str, Color | str]:
    """Return the name of the values that color the protein, and the values or a name for ``color_of``."""
    if color is None:
        chosen = next(iter(columns), "chain")
        return chosen, columns.get(chosen, chosen)
    if isinstance(color, Color):
        return color.name, color
    if isinstance(color, str):
        if columns and color not in columns and not is_color(color):
            hint = suggest(color, [*columns, *PLAIN_COLORS])
            raise OptionError(
                f"color {color!r} not found.{hint} Allowed: a featurizer, or a column: {', '.join(columns)}."
            )
        return color, columns.get(color, color)
    return "value", Color("value", _values_per_residue(color, len(residues)))


def _values_per_residue(color: Any, number: int) -> np.ndarray:
    """Return an array or tensor ``(N,)`` or ``(N, 1)`` as float64 ``(N,)``."""
    try:
        values = np.asarray(color.detach().cpu() if hasattr(color, "detach") else color, dtype=float)
    except (TypeError, ValueError) as e:
        raise OptionError(f"color {color!r} has no numbers. Allowed: a name, or one number per residue.") from e
    if values.ndim == 2 and values.shape[1] == 1:
        values = values.reshape(-1)
    if values.shape != (number,):
        first = list_first([f"{value:g}" for value in values.ravel()], 3)
        raise OptionError(
            f"color = {first} has the shape {values.shape}. Allowed: a name, or one number per residue, ({number},)."
        )
    return values


def _read(protein: str | os.PathLike[str] | Structure | Residues) -> Residues:
    if isinstance(protein, Residues):
        return protein
    if isinstance(protein, Structure):
        return clean(protein, ligands=True, nucleic=True)
    return read_residues(open_source(os.fspath(protein)), ReadOptions().with_ligands())
