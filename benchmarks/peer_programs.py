"""Other installed programs that parse structure files, or make residue graphs from them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch

__all__ = ["GEMMI", "peer_programs"]

GEMMI = "gemmi: parse only"


def peer_programs(suffix: str, k: int) -> dict[str, Callable[[Path], object]]:
    """Return name → function of a file for the installed programs that read files with this suffix."""
    functions: dict[str, Callable[[Path], object]] = {}
    if find_spec("gemmi") and suffix in (".pdb", ".cif"):
        functions[GEMMI] = _gemmi
    if find_spec("Bio") and suffix in (".pdb", ".cif"):
        functions["Biopython: parse only"] = _biopython
        functions["Biopython, then torch as GVP does"] = partial(_gvp_style, k=k)
    if find_spec("graphein") and suffix == ".pdb":  # its mmCIF reader requires optional columns
        functions["Graphein construct_graph, kNN edges"] = _graphein(k)
    return functions


def _gemmi(path: Path) -> object:
    return import_module("gemmi").read_structure(str(path))


def _biopython(path: Path) -> Any:
    parsers = import_module("Bio.PDB")  # the extra "peers"
    parser = (parsers.PDBParser if path.suffix == ".pdb" else parsers.MMCIFParser)(QUIET=True)
    return parser.get_structure("x", path)


def _gvp_style(path: Path, *, k: int) -> None:
    """Convert Biopython's objects to tensors, then compute distances, dihedrals and radial bases in torch.

    Features of Jing et al. 2021, arXiv:2009.01411, whose program starts from extracted coordinates.
    """
    names = ("N", "CA", "C", "O")
    coordinates = []
    for residue in _biopython(path)[0].get_residues():
        if all(name in residue for name in names):
            coordinates.append([residue[name].coord for name in names])
    x = torch.tensor(np.array(coordinates))  # (N, 4, 3)
    ca = x[:, 1]
    distance, _ = torch.cdist(ca, ca).topk(min(k + 1, len(ca)), largest=False)
    torch.exp(-(((distance[:, 1:, None] - torch.linspace(0, 20, 16)) / 1.25) ** 2))  # (N, k, 16)
    bond = torch.nn.functional.normalize(x[:, :3].flatten(0, 1).diff(dim=0), dim=-1)  # (3N - 1, 3)
    normal = torch.nn.functional.normalize(torch.linalg.cross(bond[:-1], bond[1:]), dim=-1)
    cosine = (normal[:-1] * normal[1:]).sum(-1).clamp(-1, 1)
    torch.sign((bond[:-2] * normal[1:]).sum(-1)) * torch.acos(cosine)


def _graphein(k: int) -> Callable[[Path], None]:
    # not in an extra: it requires NumPy 1, but runs with NumPy 2
    config, distance, graphs = (import_module(f"graphein.protein.{m}") for m in ("config", "edges.distance", "graphs"))
    edges = [partial(distance.add_k_nn_edges, k=k)]
    options = config.ProteinGraphConfig(edge_construction_functions=edges)

    def construct(path: Path) -> None:
        graphs.construct_graph(config=options, path=str(path), verbose=False)

    return construct
