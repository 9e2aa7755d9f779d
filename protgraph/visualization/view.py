"""Show a protein in a notebook: its residues, edges, and the predictions of a model, as an interactive page."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from protgraph.argument_types import check_arguments
from protgraph.errors import OptionError, suggest
from protgraph.registry.component import ComponentSpec, as_components
from protgraph.structure import ReadOptions, Residues, Structure, clean
from protgraph.structure.io import open_source, read_residues
from protgraph.train.checkpoint import Checkpoint, as_checkpoint
from protgraph.visualization.model_colors import attention_edges, prediction_colors
from protgraph.visualization.scene import PLAIN_COLORS, Color, Scene, is_color, make_scene

__all__ = ["view"]


@check_arguments("protein", "color", "checkpoint")
def view(
    protein: str | os.PathLike[str] | Structure | Residues,
    *,
    edges: Sequence[ComponentSpec | str | Mapping[str, Any]] = (),
    color: str | None = None,
    checkpoint: str | Path | Checkpoint | None = None,
    attention: bool = False,
) -> Scene:
    """Show a protein with edges and one value per residue as color.

    The last expression of a notebook cell is shown inline. The page works offline and requires plotly
    (``pip install "protgraph-pyg[view]"``). :func:`protgraph.visualization.write_page` writes it to a file.

    Parameters
    ----------
    protein : str, PathLike, Structure or Residues
        A structure file, "pdb:1ubq", or a protein that is read already.
    edges : sequence of str, dict or ComponentSpec
        Edge featurizers: ``["contact", pg.component("knn", k=8)]``.
    color : str, optional
        "chain", "residue", "seq_pos", "b_factor", a featurizer ("sasa", "dihedral:4"), or a predicted column.
        Default: the first predicted column, or "chain".
    checkpoint : str, Path or Checkpoint, optional
        Trained model whose predictions are shown.
    attention : bool
        Show the strongest attention weights of the trained model as edges.

    Returns
    -------
    Scene

    Raises
    ------
    OptionError
        A color or an edge featurizer is unknown, or ``attention`` is True without a checkpoint.

    Examples
    --------
    >>> import protgraph as pg
    >>> pg.view("datasets/pdb_core/structures/1crn.bcif", edges=["contact"], color="b_factor")
    Scene('1crn', 46 residues, 189 contact, colored by b_factor)
    """
    if attention and checkpoint is None:
        raise OptionError("attention=True requires a trained model. Add checkpoint=.")
    trained = None if checkpoint is None else as_checkpoint(checkpoint)
    read = _read(protein, needs_ligands=trained is not None and trained.model.plan.needs_ligands)
    residues = replace(read, ligands=None)
    columns: dict[str, Color] = {} if trained is None else prediction_colors(trained, read)
    chosen = next(iter(columns), "chain") if color is None else color
    if columns and chosen not in columns and not is_color(chosen):
        hint = suggest(chosen, [*columns, *PLAIN_COLORS])
        raise OptionError(
            f"color {chosen!r} not found.{hint} Allowed: a featurizer, or a predicted column: {', '.join(columns)}."
        )
    value = columns.pop(chosen, chosen)
    scene = make_scene(residues, edges=as_components(edges, "edges"), color=value, shown=list(columns.values()))
    if attention:
        scene = replace(scene, edges=(*scene.edges, attention_edges(trained, read)))
    return scene


def _read(protein: str | os.PathLike[str] | Structure | Residues, *, needs_ligands: bool) -> Residues:
    if isinstance(protein, Residues):
        return protein
    if isinstance(protein, Structure):
        return clean(protein, ligands=needs_ligands, nucleic=needs_ligands)
    return read_residues(open_source(os.fspath(protein)), ReadOptions().with_ligands(needs_ligands))
