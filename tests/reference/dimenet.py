"""Weights of PyG's DimeNet and DimeNet++ in our layers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import torch
from protgraph_plugins.dimenet.layers import DimeNet, DimeNetEmbedding, DimeNetOutput, DimeNetPlusPlus
from torch import Tensor
from torch_geometric.nn.models.dimenet_utils import Jn, Jn_zeros

from protgraph.data.graph.fields import FieldSpec, field
from protgraph.nn.reference_weights import check_parameter_names, load_reference_state

__all__ = ["DimeNetLayers", "load_dimenet"]

# Theirs → ours. The residual block before the skip connection is a list of one.
INTERACTION = {"layers_before_skip.0.": "before.", "layers_after_skip.": "after.", "lin_rbf": "lin_radial"}
INTERACTION |= {"lin_sbf": "lin_spherical", "W": "bilinear"}


class DimeNetLayers(NamedTuple):
    """The layers of a network; its output is the sum of those of ``outputs``, one before the first interaction."""

    embedding: DimeNetEmbedding
    interactions: list[DimeNet | DimeNetPlusPlus]
    outputs: list[DimeNetOutput]


def load_dimenet(state_dict: Mapping[str, Tensor], *, degrees: int, cutoff: float) -> DimeNetLayers:
    """Build the layers from the state of a PyG ``DimeNet`` or ``DimeNetPlusPlus`` with envelope exponent 5 and SiLU.

    Parameters
    ----------
    state_dict : mapping of str to Tensor
        State of the network; ``emb.emb.weight``, the embedding of atom types that ``h`` contains, is not loaded.
    degrees : int
        Its ``num_spherical``.
    cutoff : float
        Its ``cutoff``, Å.

    Notes
    -----
    Our Bessel functions of distances are theirs times sqrt(2). Our angle of DimeNet++ is π minus theirs: weights of odd
    degrees change sign. PyG rounds the zeros of the spherical Bessel functions to float32, here too. The frequencies
    ``rbf.freq`` have to be those of the initialization, since ours are not trained.
    """
    names = [r"rbf\.freq", r"emb\.(emb|lin_rbf|lin)\.(weight|bias)", r"output_blocks\.\d+\.(lin|lins)\S+"]
    names += [r"output_blocks\.\d+\.lin_(rbf|up)\.weight", r"interaction_blocks\.\d+\.(layers_\w+|lin|W)\S*"]
    check_parameter_names(state_dict, names, "DimeNet")
    state = {key: value / 2**0.5 if _reads_distances(key) else value for key, value in state_dict.items()}
    basis, dim = state["rbf.freq"].numel(), state["emb.lin.weight"].size(0)
    assert torch.allclose(state["rbf.freq"], torch.pi * torch.arange(1, basis + 1).to(state["rbf.freq"]))
    common = {"basis": basis, "cutoff": cutoff}
    edges, edge_vec = field("edges"), field("edge_vec")

    # [h_i, h_j, e_ji] of their embedding are our maps of targets, sources and edges.
    h = FieldSpec("h", "node", f"{dim}x0e")
    embedding = DimeNetEmbedding({"h": h, "edges": edges, "edge_vec": edge_vec}, dim=dim, **common)
    target, source, of_edge = state["emb.lin.weight"].split(dim, 1)
    loaded = {"target.weight": target, "source.weight": source, "of_edge.weight": of_edge}
    loaded |= {"target.bias": state["emb.lin.bias"]}
    loaded |= {f"edge.{name}": state[f"emb.lin_rbf.{name}"] for name in ("weight", "bias")}
    load_reference_state(embedding, loaded, "DimeNet")

    interactions = []
    for block in _blocks(state, "interaction_blocks."):
        interactions.append(_interaction(block, degrees=degrees, dim=dim, **common))
    fields = {"edge_h": FieldSpec("edge_h", "edge", f"{dim}x0e"), "edges": edges, "edge_vec": edge_vec}
    outputs = []
    for block in _blocks(state, "output_blocks."):
        depth = sum(key.startswith("lins.") for key in block) // 2
        hidden = block["lin_up.weight"].size(0) if "lin_up.weight" in block else None
        output = DimeNetOutput(fields, dim=block["lin.weight"].size(0), hidden=hidden, depth=depth, **common)
        renamed = {}
        for key, value in block.items():
            if key.startswith("lins."):  # our activations are entries of the MLP
                _, number, name = key.split(".")
                key = f"mlp.{2 * int(number)}.{name}"
            renamed[key.replace("lin_rbf", "lin_radial")] = value
        load_reference_state(output, renamed, "DimeNet")
        outputs.append(output)
    return DimeNetLayers(embedding, interactions, outputs)


def _reads_distances(key: str) -> bool:
    """Return whether a weight is multiplied by Bessel functions of distances."""
    return key.endswith(("lin_rbf.weight", "lin_rbf1.weight"))


def _blocks(state: Mapping[str, Tensor], prefix: str) -> list[dict[str, Tensor]]:
    """Return the states of the modules of a list, by their number."""
    entries = [key.removeprefix(prefix).partition(".") for key in state if key.startswith(prefix)]
    blocks: list[dict[str, Tensor]] = [{} for _ in {number for number, _, _ in entries}]
    for number, _, name in entries:
        blocks[int(number)][name] = state[f"{prefix}{number}.{name}"]
    return blocks


def _interaction(
    block: Mapping[str, Tensor], *, degrees: int, dim: int, basis: int, cutoff: float
) -> DimeNet | DimeNetPlusPlus:
    """Build the layer of one interaction block."""
    fields = {"h": FieldSpec("h", "edge", f"{dim}x0e"), "edges": field("edges"), "node_vec": field("node_vec")}
    after = len({key.split(".")[1] for key in block if key.startswith("layers_after_skip")})
    state = {}
    for key, value in block.items():
        old = next((old for old in INTERACTION if key.startswith(old)), "")
        state[INTERACTION.get(old, "") + key.removeprefix(old)] = value
    layer: DimeNet | DimeNetPlusPlus
    common = {"degrees": degrees, "basis": basis, "cutoff": cutoff, "after": after}
    if "bilinear" in state:
        layer = DimeNet(fields, bilinear=state["bilinear"].size(1), angle="target", **common)
    else:
        narrow, inner = state["lin_spherical2.weight"].shape
        layer = DimeNetPlusPlus(fields, narrow=narrow, inner=inner, **common)
        sign = (-1.0) ** torch.arange(degrees).repeat_interleave(basis)
        state["lin_spherical1.weight"] = state["lin_spherical1.weight"] * sign.to(state["lin_spherical1.weight"])
    load_reference_state(layer, state, "DimeNet")
    zeros = Jn_zeros(degrees, basis)
    normalizer = [1 / np.sqrt([0.5 * Jn(z, degree + 1) ** 2 for z in zeros[degree]]) for degree in range(degrees)]
    layer.spherical.zeros, layer.spherical.scale = torch.from_numpy(zeros), torch.from_numpy(np.stack(normalizer))
    return layer
