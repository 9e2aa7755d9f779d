"""Other programs that make residue graphs of files, where they are installed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch

__all__ = ["peers"]


def peers(suffix: str, k: int) -> dict[str, Callable[[Path], None]]:
    """Name → function of a file, of the programs that are installed and read files of this suffix."""
    found: dict[str, Callable[[Path], None]] = {}
    if find_spec("Bio") and suffix in (".pdb", ".cif"):
        found["Biopython, then torch as GVP does"] = partial(_gvp_style, k=k)
    if find_spec("graphein") and suffix == ".pdb":  # its mmCIF reader asks for optional columns
        found["Graphein construct_graph, kNN edges"] = _graphein(k)
    return found


def _gvp_style(path: Path, *, k: int) -> None:
    """Biopython's objects, one by one, to tensors; then all distances, dihedrals and radial bases in torch.

    Jing et al. 2021, arXiv:2009.01411, whose program reads coordinates that another has taken from the file.
    """
    parsers = import_module("Bio.PDB")  # the extra "peers"
    parser = (parsers.PDBParser if path.suffix == ".pdb" else parsers.MMCIFParser)(QUIET=True)
    names = ("N", "CA", "C", "O")
    residues = [r for r in parser.get_structure("x", path)[0].get_residues() if all(n in r for n in names)]
    x = torch.tensor(np.array([[r[n].coord for n in names] for r in residues]))  # (N, 4, 3)
    ca = x[:, 1]
    distance, _ = torch.cdist(ca, ca).topk(min(k + 1, len(ca)), largest=False)
    torch.exp(-(((distance[:, 1:, None] - torch.linspace(0, 20, 16)) / 1.25) ** 2))  # (N, k, 16)
    bond = torch.nn.functional.normalize(x[:, :3].flatten(0, 1).diff(dim=0), dim=-1)  # (3N - 1, 3)
    normal = torch.nn.functional.normalize(torch.linalg.cross(bond[:-1], bond[1:]), dim=-1)
    cosine = (normal[:-1] * normal[1:]).sum(-1).clamp(-1, 1)
    torch.sign((bond[:-2] * normal[1:]).sum(-1)) * torch.acos(cosine)


def _graphein(k: int) -> Callable[[Path], None]:
    # no extra can bring it: it asks for NumPy 1, though it runs with NumPy 2
    config, distance, graphs = (import_module(f"graphein.protein.{m}") for m in ("config", "edges.distance", "graphs"))
    edges = [partial(distance.add_k_nn_edges, k=k)]
    asked = config.ProteinGraphConfig(edge_construction_functions=edges)

    def construct(path: Path) -> None:
        graphs.construct_graph(config=asked, path=str(path), verbose=False)

    return construct
