"""Real proteins and common operations of featurizer tests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from protgraph import featurizers
from protgraph.data.graph.conformity import Conformity
from protgraph.featurize import FeaturePlan
from protgraph.featurize.plan import ALWAYS
from protgraph.registry.component import ComponentSpec
from protgraph.structure import Residues, clean, load_structure


@pytest.fixture(scope="session")
def proteins(structures_dir) -> list[Residues]:
    """Return twelve committed entries with one or several chains, 84 to 755 residues, the shortest first."""
    return sorted((clean(load_structure(path)) for path in sorted(structures_dir.glob("*.bcif"))[::22]), key=len)


@pytest.fixture(scope="session")
def move() -> Callable[..., Residues]:
    """Return ``move(residues, q, shift)``, which maps every coordinate to ``x @ q + shift`` in float64."""

    def moved(residues: Residues, q: np.ndarray, shift: float = 0.0) -> Residues:
        coordinates = ("pos", "backbone", "atom_pos")
        taken = {c: getattr(residues, c).astype(np.float64) @ q + shift for c in coordinates}
        if residues.ligands is not None:
            atoms = residues.ligands.atom_pos.astype(np.float64) @ q + shift
            taken["ligands"] = replace(residues.ligands, atom_pos=atoms)
        return replace(residues, **taken)

    return moved


@pytest.fixture(scope="session")
def plan_of() -> Callable[[str], FeaturePlan]:
    """Return ``plan_of(name)``: a plan with one featurizer and those that write its inputs, offline."""
    writers = {"edges": "knn"}
    for other in featurizers.names():
        writers |= {field: other for field in featurizers.get(other).writes if field != "edge_index"}

    def needed(name: str) -> list[str]:
        before = [writers[field] for field in featurizers.get(name).reads if field not in (*ALWAYS, "proteins")]
        return [*(writer for other in before for writer in needed(other)), name]

    def by_default(name: str) -> ComponentSpec:
        stated = getattr(featurizers.get(name), "conformity", None) or Conformity()
        return ComponentSpec(name, stated.offline)

    def plan(name: str) -> FeaturePlan:
        if name == "edge_cosine":  # its nodes are edges
            angle = ComponentSpec(name, edges="line", reads={"node_vec": "edge_vec"})
            return FeaturePlan(["knn", "edge_vector", "line_graph", angle])
        if name == "edge_point":  # its nodes are points of the surface
            between_points = ComponentSpec("radius", {"radius": 4.0}, nodes="sas", edges="patch")
            return FeaturePlan(["sas", between_points, ComponentSpec(name, edges="patch")])
        return FeaturePlan([by_default(other) for other in dict.fromkeys(needed(name))])

    return plan
