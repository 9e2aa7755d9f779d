"""Fixtures: random small proteins and graphs, folders of structure and FASTA files, label tables."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from protgraph.data.graph.protein_graph import ProteinGraph
from protgraph.structure.residues.loss_report import LossReport
from protgraph.structure.residues.residues import Residues


@pytest.fixture
def make_graph() -> Callable[..., ProteinGraph]:
    """Return ``make_graph(n, degree=None | K, seed=0, level="node")``: N nodes, random edges or K nearest neighbors."""

    def make(n: int, *, degree: int | None = None, seed: int = 0, level: str = "node") -> ProteinGraph:
        g = torch.Generator().manual_seed(1000 * n + seed)
        graph = ProteinGraph(
            aatype=torch.randint(21, (n,), generator=g),
            chain=torch.sort(torch.randint(2, (n,), generator=g))[0],
            res_id=torch.arange(5, 5 + n),
            pos=torch.randn(n, 3, generator=g),
            backbone=torch.randn(n, 4, 3, generator=g),
            backbone_mask=torch.rand(n, 4, generator=g) > 0.1,
        )
        if degree is not None:
            k = min(degree, n - 1)
            distance = torch.cdist(graph.pos, graph.pos).fill_diagonal_(torch.inf)
            source = distance.topk(k, largest=False).indices.flatten()
            graph.edge_index = torch.stack([source, torch.arange(n).repeat_interleave(k)])
            graph.degree = k
        else:
            linked = (torch.rand(n, n, generator=g) < 0.3).fill_diagonal_(False).nonzero()
            graph.edge_index = linked.T.flip(0).contiguous()
        if level != "node":
            graph.y = torch.randn(1, 2, generator=g) if level == "graph" else torch.rand(n * n, 1, generator=g)
        else:
            graph.y = torch.randint(-1, 3, (n,), generator=g)
        graph.y_level = level
        graph.name = f"protein {n}"
        graph.residue_ids = np.array([f"A:{i}" for i in range(5, 5 + n)])
        graph.report = {"waters": n}
        return graph

    return make


@pytest.fixture
def make_residues() -> Callable[..., Residues]:
    """Return ``make_residues(["A:1", "A:1B", …])``: alanine residues with these identifiers, CA only."""

    def make(ids: list[str], name: str = "toy") -> Residues:
        n = len(ids)
        chain, rest = zip(*(i.split(":") for i in ids), strict=True) if ids else ((), ())
        ins = [r[-1] if r[-1].isalpha() else "" for r in rest]
        pos = np.random.default_rng(n).normal(size=(n, 3)).astype(np.float32)
        backbone = np.full((n, 4, 3), np.nan, np.float32)
        backbone[:, 1] = pos
        return Residues(
            name=name,
            chain=np.array(chain, dtype=str),
            res_id=np.array([int(r.removesuffix(i)) for r, i in zip(rest, ins, strict=True)], dtype=np.int64),
            ins_code=np.array(ins, dtype=str),
            res_name=np.full(n, "ALA"),
            aatype=np.zeros(n, np.int64),
            pos=pos,
            backbone=backbone,
            b_factor=np.zeros(n, np.float32),
            seq_pos=np.arange(n),
            atom_pos=pos,
            atom_name=np.full(n, "CA"),
            atom_element=np.full(n, "C"),
            atom_residue=np.arange(n),
            report=LossReport(),
        )

    return make


@pytest.fixture
def folder(tmp_path, structures_dir) -> Path:
    """Return a folder with four real structures."""
    structures = tmp_path / "structures"
    structures.mkdir()
    for name in ("1ubq", "2d7t", "1orc", "5cq2"):
        shutil.copy(structures_dir / f"{name}.bcif", structures)
    return structures


@pytest.fixture
def table(tmp_path):
    """Return ``table("file,chain", ["1ubq,A", …])``, which writes a CSV file and returns its path."""

    def write(header: str, rows: list[str]) -> Path:
        path = tmp_path / "labels.csv"
        path.write_text("\n".join([header, *rows]) + "\n")
        return path

    return write


@pytest.fixture
def sequences(tmp_path) -> Path:
    """Return a folder with three records in two FASTA files."""
    folder = tmp_path / "sequences"
    folder.mkdir()
    (folder / "two.fasta").write_text(">a\nMKT\n>b_long name\nGGGG\n")
    (folder / "one.fa").write_text(">c|Chain D|x\nAYAY\n")
    return folder
