"""Edges against those of Graphein 1.7 on 60 structures; every difference is explained.

``PROTGRAPH_GRAPHEIN=/path/to/python pytest -m slow -s tests/featurize/test_graphein.py`` with an interpreter that has
Graphein prints the table of ``benchmarks/README.md``.
"""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path

import biotite.structure as struc
import numpy as np
import pytest
from biotite.structure.io.pdb import PDBFile
from protgraph_plugins.interactions import aromatic_rings, close_atom_pairs, sidechain_mask

from protgraph.featurize import build_graph
from protgraph.registry.component import component
from protgraph.structure import Residues, clean, load_structure
from protgraph.structure.chemistry.vdw import vdw_radii
from protgraph.structure.neighbors.search import close_pairs

pytestmark = pytest.mark.slow
STRUCTURES, LONGEST = 60, 400

PROGRAM = """
import json, sys, warnings
warnings.filterwarnings("ignore")
from pathlib import Path
from loguru import logger
logger.remove()
from graphein.protein.config import ProteinGraphConfig
from graphein.protein.edges import distance as d
from graphein.protein.graphs import construct_graph
kinds = [d.add_disulfide_interactions, d.add_hydrophobic_interactions, d.add_ionic_interactions, d.add_salt_bridges,
         d.add_aromatic_interactions, d.add_pi_stacking_interactions, d.add_t_stacking, d.add_cation_pi_interactions,
         d.add_aromatic_sulphur_interactions, d.add_vdw_interactions, d.add_delaunay_triangulation]
config, edges = ProteinGraphConfig(edge_construction_functions=kinds, verbose=False), {}
for path in sorted(Path(sys.argv[1]).glob("*.pdb")):
    g = construct_graph(config=config, path=str(path), verbose=False)
    number, own = {n: int(n.split(":")[2]) - 1 for n in g}, {}
    for a, b, kind in g.edges(data="kind"):
        for k in kind:
            own.setdefault(k, []).append(sorted((number[a], number[b])))
    edges[path.stem] = own
print(json.dumps(edges))
"""

Pairs = set[tuple[int, int]]


@pytest.fixture(scope="module")
def proteins(structures_dir) -> dict[str, Residues]:
    """Return entries of standard residues, numbered from 1 in one chain, with coordinates rounded as in PDB files."""
    chosen = {}
    for path in sorted(structures_dir.glob("*.bcif")):
        residues = clean(load_structure(path))
        if len(residues) <= LONGEST and not (residues.report.modified or residues.report.unknown):
            chosen[residues.name] = replace(residues, atom_pos=residues.atom_pos.astype(np.float64).round(3))
        if len(chosen) == STRUCTURES:
            return chosen
    raise AssertionError("too few structures")


@pytest.fixture(scope="module")
def theirs(proteins, tmp_path_factory) -> dict[str, dict[str, Pairs]]:
    python = os.environ.get("PROTGRAPH_GRAPHEIN")
    if not python:
        pytest.skip("set PROTGRAPH_GRAPHEIN to a Python that has Graphein")
    folder: Path = tmp_path_factory.mktemp("pdb")
    for name, residues in proteins.items():
        atoms = struc.AtomArray(len(residues.atom_name))
        atoms.coord, atoms.res_id = residues.atom_pos.astype(np.float32), residues.atom_residue + 1
        atoms.chain_id[:], atoms.res_name = "A", residues.res_name[residues.atom_residue]
        atoms.atom_name, atoms.element = residues.atom_name, residues.atom_element
        file = PDBFile()
        file.set_structure(atoms)
        file.write(folder / f"{name}.pdb")
    done = subprocess.run([python, "-c", PROGRAM, str(folder)], capture_output=True, text=True, check=True)
    edges = json.loads(done.stdout.splitlines()[-1])
    return {name: {k: set(map(tuple, pairs)) for k, pairs in kinds.items()} for name, kinds in edges.items()}


def ours(residues: Residues, name: str, **options: object) -> Pairs:
    return {(i, j) for i, j in build_graph(residues, [component(name, **options)]).edge_index.T.tolist() if i < j}


def unordered(residue: np.ndarray) -> Pairs:
    return {(min(p), max(p)) for p in residue.T.tolist()}


def by_oxt(residues: Residues, types: tuple[str, ...], others: tuple[str, ...], cutoff: float) -> Pairs:
    """Return pairs that exist only if OXT of the last residue is a side-chain atom, as in Graphein."""
    last = residues.atom_name == "OXT"
    kind = residues.res_name[residues.atom_residue]
    masks = [sidechain_mask(residues, t) | (last & np.isin(kind, t)) for t in (types, others)]
    return unordered(residues.atom_residue[close_atom_pairs(residues, *masks, cutoff)])


def compare(proteins, theirs, kind, name, options=None, *, only_ours=None, only_theirs=None) -> None:
    """Compare the pairs; functions of the residues return the pairs that may differ."""
    both = extra = other = 0
    for label, residues in proteins.items():
        a, b = ours(residues, name, **(options or {})), theirs[label].get(kind, set())
        both, extra, other = both + len(a & b), extra + len(a - b), other + len(b - a)
        assert a - b <= (only_ours(residues) if only_ours else set()), label
        assert b - a <= (only_theirs(residues) if only_theirs else set()), label
    print(f"| {name} | {kind} | {both} | {extra} | {other} |")
    assert both + extra > 0


ACIDS, BASES = ("ASP", "GLU"), ("LYS", "ARG", "HIS")
HYDROPHOBIC_TYPES = ("ALA", "VAL", "LEU", "ILE", "MET", "PHE", "TRP", "PRO", "TYR")


def test_equal_kinds(proteins, theirs):
    compare(proteins, theirs, "disulfide", "disulfide")
    compare(proteins, theirs, "delaunay", "delaunay")


def test_charged_and_hydrophobic_kinds_differ_by_the_last_oxygen(proteins, theirs):
    compare(proteins, theirs, "ionic", "ionic", only_theirs=lambda r: by_oxt(r, ACIDS, BASES, 6.0))
    compare(
        proteins,
        theirs,
        "hydrophobic",
        "hydrophobic",
        only_theirs=lambda r: by_oxt(r, HYDROPHOBIC_TYPES, HYDROPHOBIC_TYPES, 5.0),
    )


def test_salt_bridges_differ_by_one_nitrogen_of_arginine(proteins, theirs):
    def with_arginine(r: Residues) -> Pairs:
        return {p for p in ours(r, "salt_bridge") if "ARG" in r.res_name[list(p)]}

    compare(proteins, theirs, "salt_bridge", "salt_bridge", {"histidine": False}, only_ours=with_arginine)


def test_rings_differ_by_the_second_ring_of_tryptophan(proteins, theirs):
    def with_tryptophan(r: Residues) -> Pairs:
        rings = aromatic_rings(r)
        near = rings.residue[close_pairs(rings.center, 12.0)]
        return {p for p in unordered(near) if "TRP" in r.res_name[list(p)]}

    compare(proteins, theirs, "aromatic", "aromatic", only_ours=with_tryptophan)


def test_stacking_differs_by_the_sign_of_normals_and_the_definition_of_t(proteins, theirs):
    def all_stacking(r: Residues) -> Pairs:
        return ours(r, "pi_stacking")

    compare(proteins, theirs, "pi_stacking", "pi_stacking", {"shape": "parallel"}, only_ours=all_stacking)
    compare(proteins, theirs, "t_stacking", "pi_stacking", {"shape": "t_shaped"}, only_ours=all_stacking)


def test_graphein_has_no_cation_pi_nor_sulfur_edges(proteins, theirs):
    for kind in ("cation_pi", "aromatic_sulfur"):
        compare(proteins, theirs, kind, kind, only_ours=lambda r, kind=kind: ours(r, kind))
        assert not any(edges.get(kind) for edges in theirs.values())


def test_van_der_waals_pairs_differ_by_bonded_and_clashing_atoms(proteins, theirs):
    def touching(r: Residues) -> Pairs:
        """Return pairs with touching atoms, bonded or not."""
        pos, radius = r.atom_pos, vdw_radii(r)
        a, b = close_pairs(pos, 4.3)
        near = np.linalg.norm(pos[a] - pos[b], axis=1) - radius[a] - radius[b] <= 0.5
        return unordered(r.atom_residue[np.stack([a[near], b[near]])])

    compare(proteins, theirs, "vdw", "van_der_waals", only_theirs=touching)
