"""Find, read and convert the published weights of ProteinMPNN."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path

import torch
from protgraph_plugins.proteinmpnn.family import VARIANTS
from torch import Tensor

from protgraph import Target
from protgraph.errors import CheckpointError
from protgraph.model import PublishedWeights, convert_state, find_weights, read_model_state
from protgraph.structure import ALPHABET

__all__ = [
    "FOLDER_VARIABLE",
    "convert_proteinmpnn_state",
    "load_proteinmpnn",
    "read_proteinmpnn_state",
    "find_proteinmpnn_file",
]

_PROGRAM = "ProteinMPNN"
#: Environment variable with a folder of weights, in place of the installed distribution's.
FOLDER_VARIABLE = "PROTGRAPH_PROTEINMPNN"
#: Names of the atoms of i and j in the reference's order of its 25 blocks of radial bases.
_PAIRS = (
    *("CaCa", "NN", "CC", "OO", "CbCb", "CaN", "CaC", "CaO", "CaCb", "NC", "NO", "NCb", "CbC"),
    *("CbO", "OC", "NCa", "CCa", "OCa", "CbCa", "CN", "ON", "CbN", "CCb", "OCb", "CO"),
)
_CA_PAIRS = ("11", "00", "22", "01", "02", "10", "12", "20", "21")  # before, own, after; of i, then of j
_CA_BASIS, _ORIENTATION = 144, 7  # widths
_NEIGHBORS = 48
_ATOMS = ("N", "Ca", "C", "O", "Cb")
_JOINED = "features.edge_embedding.weight"
#: Parameters of CA-only files that the reference does not use.
_UNUSED = [f"{m}.{k}" for m in ("W_v", "features.norm_nodes", "features.node_embedding") for k in ("weight", "bias")]
_POSITION = 16  # width of the sequence offset embedding of the reference


def load_proteinmpnn(name: str, file: str | Path | None = None) -> PublishedWeights:
    """Load the weights of a variant, e.g. ``"proteinmpnn.v_48_020"``, or of a file, for the 20 residue types and X.

    Raises
    ------
    MissingExtraError
        The weights are not installed.
    CheckpointError
        The file is damaged or from another program.
    """
    variant = name.rpartition(".")[2]
    if variant.startswith("ca_v"):
        warnings.warn(
            f"features of {name} are not invariant to rotations and translations: predictions depend on the coordinate "
            f"frame of the file. {name.replace('ca_v', 'ca_corrected_v')} has invariant features.",
            stacklevel=3,
        )
    target = Target("residue_type", "node", "classification", len(ALPHABET), tuple(ALPHABET))
    path = file or find_proteinmpnn_file(variant)
    state = read_proteinmpnn_state(path)
    if _JOINED in state and _on_trace(state) != variant.startswith("ca_"):
        kind, other = ("CA only", "ca_v_48_020") if _on_trace(state) else ("complete backbones", "v_48_020")
        raise CheckpointError(f"weights do not fit {name}: {path} is for {kind}. Use proteinmpnn.{other}.")
    converted = convert_state(state, convert_proteinmpnn_state, path=path, program=_PROGRAM, unused=_UNUSED)
    return PublishedWeights(target, converted)


def _on_trace(state: Mapping[str, Tensor]) -> bool:
    return state[_JOINED].size(1) == _POSITION + _CA_BASIS + _ORIENTATION


def find_proteinmpnn_file(variant: str) -> Path:
    """Find the file of a variant in ``$PROTGRAPH_PROTEINMPNN``, or in the installed package ``proteinmpnn``.

    In the folder of the variable, both ``vanilla_model_weights/v_48_020.pt`` and ``vanilla_v_48_020.pt`` are found.
    """
    inside = VARIANTS[variant]
    folder, _, file = inside.partition("/")
    return find_weights(
        f"proteinmpnn.{variant}",
        variable=FOLDER_VARIABLE,
        names=[inside, f"{folder.partition('_')[0]}_{file}"],
        package="proteinmpnn",
        inside=f"data/{inside}",
    )


def read_proteinmpnn_state(path: str | Path) -> dict[str, Tensor]:
    """Read the state of a file of the reference program, also of a training checkpoint.

    Raises
    ------
    CheckpointError
        The file is missing, has no ``model_state_dict``, or has another number of neighbors.
    """
    return read_model_state(path, _PROGRAM, sizes={"num_edges": _NEIGHBORS})


def convert_proteinmpnn_state(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Convert a state of the reference, with any number of layers, to the state of our model.

    First maps of concatenated inputs become one map per input. The first encoder reads no h, which is 0 in the
    reference. Blocks of radial bases are reordered as in ``atom_pair_rbf``.
    """
    encoders = 1 + max(int(k.split(".")[1]) for k in state if k.startswith("encoder_layers."))
    decoders = 1 + max(int(k.split(".")[1]) for k in state if k.startswith("decoder_layers."))
    ours = _edges(state)
    for n in range(encoders):
        ours |= {f"layers.{4 + n}.{k}": v for k, v in _encoder(state, f"encoder_layers.{n}.", first=n == 0).items()}
    decoder = f"layers.{4 + encoders}."
    ours[f"{decoder}embed.weight"] = state["W_s.weight"]
    for n in range(decoders):
        ours |= {f"{decoder}layers.{n}.{k}": v for k, v in _decoder(state, f"decoder_layers.{n}.").items()}
    ours |= {f"head.mlp.0.{kind}": state[f"W_out.{kind}"] for kind in ("weight", "bias")}
    return ours


def _edges(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Convert ``layers.0`` to ``layers.3``: sequence offset, concatenated features, their norm, W_e."""
    joined = state[_JOINED]
    position, basis = joined[:, :_POSITION], joined[:, _POSITION:]
    on_trace = _on_trace(state)
    pairs, atoms = (_CA_PAIRS, "012") if on_trace else (_PAIRS, _ATOMS)
    basis, orientation = basis.split([basis.size(1) - _ORIENTATION * on_trace, _ORIENTATION * on_trace], 1)
    order = [pairs.index(a + b) for a in atoms for b in atoms]
    basis = torch.cat([basis.unflatten(1, (len(pairs), -1))[:, order].flatten(1), orientation], 1)
    ours = {
        "layers.0.tables.relative_position.weight": state["features.embeddings.linear.weight"].t()
        + state["features.embeddings.linear.bias"],
        "layers.1.linear.weight": torch.cat([position, basis], 1),
        "layers.1.linear.bias": joined.new_zeros(joined.size(0)),  # the reference has none
    }
    for kind in ("weight", "bias"):
        ours[f"layers.2.norm.{kind}"] = state[f"features.norm_edges.{kind}"]
        ours[f"layers.3.linear.{kind}"] = state[f"W_e.{kind}"]
    return ours


def _encoder(state: Mapping[str, Tensor], theirs: str, *, first: bool) -> dict[str, Tensor]:
    dim = state[f"{theirs}W2.weight"].size(0)
    ours = _update(state, theirs)
    for mine, number, has_node in (("message", "1", not first), ("edge_message", "11", True)):
        target, edge, source = state[f"{theirs}W{number}.weight"].split(dim, 1)
        ours |= {f"{mine}.target.weight": target, f"{mine}.source.weight": source} if has_node else {}
        ours |= {f"{mine}.edge.weight": edge, f"{mine}.edge.bias": state[f"{theirs}W{number}.bias"]}
        middle = {"1": "W2", "11": "W12"}[number]
        ours |= {f"{mine}.middle.{kind}": state[f"{theirs}{middle}.{kind}"] for kind in ("weight", "bias")}
    for kind in ("weight", "bias"):
        ours[f"edge_out.{kind}"] = state[f"{theirs}W13.{kind}"]
        ours[f"edge_norm.{kind}"] = state[f"{theirs}norm3.{kind}"]
    return ours


def _decoder(state: Mapping[str, Tensor], theirs: str) -> dict[str, Tensor]:
    dim = state[f"{theirs}W2.weight"].size(0)
    parts = dict(zip(("target", "edge", "of_type", "source"), state[f"{theirs}W1.weight"].split(dim, 1), strict=True))
    ours = _update(state, theirs) | {f"{name}.weight": part for name, part in parts.items()}
    ours["edge.bias"] = state[f"{theirs}W1.bias"]
    return ours | {f"middle.{kind}": state[f"{theirs}W2.{kind}"] for kind in ("weight", "bias")}


def _update(state: Mapping[str, Tensor], theirs: str) -> dict[str, Tensor]:
    names = {"out": "W3", "norms.0": "norm1", "norms.1": "norm2"}
    names |= {"feed_forward.0": "dense.W_in", "feed_forward.2": "dense.W_out"}
    return {
        f"update.{mine}.{kind}": state[f"{theirs}{other}.{kind}"]
        for mine, other in names.items()
        for kind in ("weight", "bias")
    }
