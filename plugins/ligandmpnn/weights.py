"""Find, read and convert the published weights of LigandMPNN."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from pkgutil import resolve_name

import torch
from protgraph_plugins.ligandmpnn.family import VARIANTS
from torch import Tensor

from protgraph import Target
from protgraph.model import PublishedWeights, convert_state, find_weights, read_model_state
from protgraph.structure import ALPHABET
from protgraph.structure.residues import ELEMENTS

__all__ = [
    "FOLDER_VARIABLE",
    "convert_ligandmpnn_state",
    "load_ligandmpnn",
    "find_ligandmpnn_file",
]

_PROGRAM = "LigandMPNN"
#: Environment variable with a folder of weights, in place of the installed distribution's.
FOLDER_VARIABLE = "PROTGRAPH_LIGANDMPNN"
#: Converts the parts shared with ProteinMPNN, which have the same names in both reference programs.
_PROTEIN_PART = "protgraph_plugins.proteinmpnn.weights:convert_proteinmpnn_state"
_FOLDER = "data/model_params"
_BEFORE = 4  # number of layers before the encoders
#: Columns of the one-hot code of the reference: element (one unused), group, period.
_ONE_HOT = (len(ELEMENTS) + 2, 19, 8)
_DIRECTION = 4
#: Required numbers of neighbors and context atoms in a file.
_SIZES = {"num_edges": 32, "atom_context_num": 25}


def load_ligandmpnn(name: str, file: str | Path | None = None) -> PublishedWeights:
    """Load the weights of a variant, e.g. ``"ligandmpnn.v_32_010_25"``, or of a file, for the 20 residue types and X.

    Raises
    ------
    MissingExtraError
        The weights are not installed.
    CheckpointError
        The file is damaged or from another program.
    """
    target = Target("residue_type", "node", "classification", len(ALPHABET), tuple(ALPHABET))
    path = file or find_ligandmpnn_file(name.rpartition(".")[2])
    state = read_model_state(path, _PROGRAM, sizes=_SIZES)
    return PublishedWeights(target, convert_state(state, convert_ligandmpnn_state, path=path, program=_PROGRAM))


def find_ligandmpnn_file(variant: str) -> Path:
    """Find the file of a variant in ``$PROTGRAPH_LIGANDMPNN``, or in the installed package ``ligandmpnn``."""
    file = VARIANTS[variant]
    inside = f"{_FOLDER}/{file}"
    return find_weights(
        f"ligandmpnn.{variant}", variable=FOLDER_VARIABLE, names=[file], package="ligandmpnn", inside=inside
    )


def convert_ligandmpnn_state(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Convert a state of the reference to the state of our model.

    Consecutive linear maps are multiplied: ``type_linear`` of element, group and period with the map into features of
    residue–atom edges, and ``W_edges_y`` of atom–atom edges with the map into messages.
    """
    encoders = 1 + max(int(k.split(".")[1]) for k in state if k.startswith("encoder_layers."))
    rounds = 1 + max((int(k.split(".")[1]) for k in state if k.startswith("context_encoder_layers.")), default=-1)
    first = _BEFORE + encoders
    shared = resolve_name(_PROTEIN_PART)(state)
    decoder, moved = f"layers.{first}.", f"layers.{first + 6 + 2 * rounds}."
    ours = {k.replace(decoder, moved) if k.startswith(decoder) else k: v for k, v in shared.items()}
    sections = [_residue_atom_edges(state), _atoms(state), _linear(state, "linear", "W_c")]
    for n in range(rounds):
        sections += [_atom_round(state, n), _residue_round(state, n)]
    sections += [_linear(state, "linear", "V_C"), _linear(state, "norm", "V_C_norm")]
    for place, part in enumerate(sections, first):
        ours |= {f"layers.{place}.{name}": value for name, value in part.items()}
    return ours


def _linear(state: Mapping[str, Tensor], ours: str, theirs: str) -> dict[str, Tensor]:
    """Return the weight and, if present, the bias of a linear map or norm."""
    kinds = [kind for kind in ("weight", "bias") if f"{theirs}.{kind}" in state or kind == "weight"]
    return {f"{ours}.{kind}": state[f"{theirs}.{kind}"] for kind in kinds}


def _tables(columns: Tensor) -> dict[str, Tensor]:
    """Split the columns of a one-hot code into three embedding tables."""
    element, group, period = columns.t().split(_ONE_HOT)
    element = element[: len(ELEMENTS) + 1]
    named = {"context_element": element, "context_group": group, "context_period": period}
    return {f"tables.{name}.weight": table for name, table in named.items()}


def _residue_atom_edges(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Convert ``node_project_down`` of radial bases, types and angles, its norm, ``W_v``."""
    joined, types = state["features.node_project_down.weight"], state["features.type_linear.weight"]
    basis, of_type, angle = joined.split([joined.size(1) - len(types) - _DIRECTION, len(types), _DIRECTION], 1)
    bias = state["features.node_project_down.bias"] + of_type @ state["features.type_linear.bias"]
    ours = {"linear.weight": torch.cat([basis, angle], 1), "linear.bias": bias}
    ours |= _tables(of_type @ types)
    return ours | _linear(state, "norm", "features.norm_nodes") | _linear(state, "out_map", "W_v")


def _atoms(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Convert ``y_nodes``, its norm, ``W_nodes_y``."""
    ours = _tables(state["features.y_nodes.weight"]) | _linear(state, "norm", "features.norm_y_nodes")
    return ours | _linear(state, "out_map", "W_nodes_y")


def _atom_round(state: Mapping[str, Tensor], n: int) -> dict[str, Tensor]:
    theirs = f"y_context_encoder_layers.{n}."
    basis, weight = state["features.y_edges.weight"], state[f"{theirs}W1.weight"]
    target, edge = weight.split([weight.size(1) - len(basis), len(basis)], 1)
    ours = {
        "pair.weight": basis,
        "pair.bias": basis.new_zeros(len(basis)),  # the reference has none
        "target.weight": target,
        "edge.weight": edge @ state["W_edges_y.weight"],
        "edge.bias": edge @ state["W_edges_y.bias"] + state[f"{theirs}W1.bias"],
    }
    return ours | _linear(state, "pair_norm", "features.norm_y_edges") | _message(state, theirs)


def _residue_round(state: Mapping[str, Tensor], n: int) -> dict[str, Tensor]:
    theirs = f"context_encoder_layers.{n}."
    dim = state[f"{theirs}W2.weight"].size(0)
    target, edge, source = state[f"{theirs}W1.weight"].split(dim, 1)
    ours = {
        "target.weight": target,
        "source.weight": source,
        "edge.weight": edge,
        "edge.bias": state[f"{theirs}W1.bias"],
    }
    return ours | _message(state, theirs)


def _message(state: Mapping[str, Tensor], theirs: str) -> dict[str, Tensor]:
    """Convert the second map of a message, and the node update."""
    names = {"middle": "W2", "update.out": "W3", "update.norms.0": "norm1", "update.norms.1": "norm2"}
    names |= {"update.feed_forward.0": "dense.W_in", "update.feed_forward.2": "dense.W_out"}
    return {k: v for ours, other in names.items() for k, v in _linear(state, ours, theirs + other).items()}
