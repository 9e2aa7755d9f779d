"""Options outside of their limits or choices are errors that name the featurizer and the option."""

from __future__ import annotations

import pytest

from protgraph import featurizers
from protgraph.errors import OptionError

NAN = float("nan")
WRONG = [
    ("aromatic", "low", 8.0),
    ("aromatic_sulfur", "cutoff", None),
    ("ca_density", "cutoff", "20"),
    ("ca_density", "functions", 2.5),
    ("cation_pi", "cutoff", 1e9),
    ("clash", "overlap", NAN),
    ("contact", "cutoff", -1),
    ("contact_number", "radius", 0),
    ("delaunay", "cutoff", 0),
    ("distant_knn", "k", 1.5),
    ("distant_knn", "separation", 0),
    ("disulfide", "cutoff", 0),
    ("dssp_hydrogen_bond", "best", 0),
    ("edge_bessel", "bins", 0),
    ("edge_bessel", "cutoff", 0),
    ("edge_bessel", "envelope", 1),
    ("edge_harmonics", "degree", 0),
    ("edge_harmonics", "degree", 1.5),
    ("edge_harmonics", "degree", 9),
    ("edge_offset", "clip", 0),
    ("edge_rbf", "bins", 0),
    ("edge_rbf", "cutoff", None),
    ("edge_sidechain", "bins", 1),
    ("half_sphere_exposure", "radius", 0),
    ("hydrophobic", "cutoff", -5.0),
    ("ionic", "cutoff", "6"),
    ("knn", "k", 0),
    ("knn", "k", True),
    ("knn", "of", "ca"),
    ("knn", "separation", -1),
    ("laplacian_encoding", "size", 0),
    ("laplacian_encoding", "width", 0),
    ("pi_stacking", "shape", "t"),
    ("protrusion", "radius", 0),
    ("radius", "radius", NAN),
    ("radius", "radius", "10"),
    ("radius", "separation", 0.5),
    ("random_long_range", "exponent", NAN),
    ("random_long_range", "k", 0),
    ("random_long_range", "seed", -1),
    ("random_walk_encoding", "steps", 0),
    ("salt_bridge", "cutoff", 0),
    ("sasa", "points", 1.5),
    ("sasa", "probe", -1),
    ("sequence", "k", 0),
    ("sequence_offset", "offset", 0),
    ("shell_composition", "points", 0),
    ("van_der_waals", "tolerance", -1),
]


@pytest.mark.parametrize(("name", "option", "value"), WRONG)
def test_wrong_options_are_errors(name: str, option: str, value: object) -> None:
    with pytest.raises(OptionError, match=f"{name}.*{option}"):
        featurizers.create(name, options={option: value})


def test_limits_are_part_of_the_message() -> None:
    with pytest.raises(OptionError, match=r"degree=9 is not int ≥ 1, ≤ 8"):
        featurizers.create("edge_harmonics", options={"degree": 9})
    with pytest.raises(OptionError, match=r"cutoff=-1 is not float > 0 \| None"):
        featurizers.create("delaunay", options={"cutoff": -1})
