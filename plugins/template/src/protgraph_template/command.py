"""Command ``protgraph template``. Heavy imports are inside the function: ``protgraph --help`` imports this module."""

from __future__ import annotations

from typing import Annotated

import typer

from protgraph.cli import print_rows

__all__ = ["template_command"]


def template_command(
    file: Annotated[str, typer.Argument(help="Structure file, pdb:1ubq or af:P69905.")],
    radius: Annotated[float, typer.Option(min=0.0, help="Largest distance of a neighbor, Å.")] = 10.0,
) -> None:
    """Print the number of neighbors of each residue.

    \b
    Example:
      protgraph template 1ubq.cif --radius 8
    """
    import numpy as np

    import protgraph as pg

    residues = pg.clean(pg.load_structure(file))
    crowding = pg.featurizers.create("template_crowding", options={"radius": radius})
    neighbors = np.expm1(crowding(residues)["template_crowding"][:, 0]).round().astype(int)
    columns = residues.chain, residues.res_id, residues.res_name, neighbors
    print_rows([("chain", "number", "type", "neighbors"), *zip(*(map(str, column) for column in columns), strict=True)])
