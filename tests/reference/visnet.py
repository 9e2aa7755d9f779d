"""Weights of PyG's ViSNet in our layers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from protgraph_plugins.visnet.layers import ViSNet, ViSNetEdge, ViSNetEmbedding
from torch import Tensor, nn

from protgraph.data.graph.fields import FieldSpec, field
from protgraph.nn.reference_weights import check_parameter_names, load_reference_state

__all__ = ["ViSNetLayers", "load_visnet"]


class ViSNetLayers(NamedTuple):
    """The layers of a network; all blocks but the last update edges too."""

    embedding: ViSNetEmbedding
    blocks: list[ViSNet]
    edges: list[ViSNetEdge]
    norm: nn.LayerNorm


def load_visnet(state_dict: Mapping[str, Tensor], *, lmax: int, heads: int, cutoff: float) -> ViSNetLayers:
    """Build the layers from the state of a PyG ``ViSNetBlock`` without normalization of vectors and with fixed RBFs.

    Parameters
    ----------
    state_dict : mapping of str to Tensor
        State of the block. Its two embeddings of types are our maps of ``h``, one-hot types.
    lmax, heads, cutoff : int, int, float
        Its options, which the state does not contain.
    """
    names = [r"embedding\.weight", r"distance_expansion\.(means|betas)", r"(vec_)?out_norm\.(weight|bias)"]
    names += [r"neighbor_embedding\.\S+", r"edge_embedding\.\S+", r"vis_mp_layers\.\d+\.\S+"]
    check_parameter_names(state_dict, names, "ViSNetBlock")
    types, dim = state_dict["embedding.weight"].shape
    geometry = {"edges": field("edges"), "edge_vec": field("edge_vec")}
    edge_h, v = FieldSpec("edge_h", "edge", f"{dim}x0e"), f"{dim}x1o" if lmax == 1 else f"{dim}x1o+{dim}x2e"

    basis = state_dict["distance_expansion.means"].numel()
    fields = {"h": FieldSpec("h", "node", f"{types}x0e"), **geometry}
    embedding = ViSNetEmbedding(fields, dim=dim, basis=basis, cutoff=cutoff)
    of_own, of_neighbors = state_dict["neighbor_embedding.combine.weight"].split(dim, 1)
    state = {"own.weight": of_own @ state_dict["embedding.weight"].t(), "combine.weight": of_neighbors}
    state["own.bias"] = state_dict["neighbor_embedding.combine.bias"]
    state["neighbor.weight"] = state_dict["neighbor_embedding.embedding.weight"].t()
    for name in ("weight", "bias"):
        state[f"filter.{name}"] = state_dict[f"neighbor_embedding.distance_proj.{name}"]
        state[f"edge.{name}"] = state_dict[f"edge_embedding.edge_proj.{name}"]
    load_reference_state(embedding, state, "ViSNetBlock")

    blocks, updates = [], []
    depth = len({key.split(".")[1] for key in state_dict if key.startswith("vis_mp_layers.")})
    for number in range(depth):
        prefix = f"vis_mp_layers.{number}."
        state = {k.removeprefix(prefix): x for k, x in state_dict.items() if k.startswith(prefix)}
        of_edges = {k: x for k, x in state.items() if k.startswith(("f_proj", "w_", "t_"))}
        of_nodes = {k: x for k, x in state.items() if k not in of_edges and not k.startswith("vec_layernorm")}
        fields = {
            "h": FieldSpec("h", "node", f"{dim}x0e"),
            **geometry,
            "edge_h": edge_h,
            "v": FieldSpec("v", "node", v),
        }
        block = ViSNet(fields, lmax=lmax, heads=heads, cutoff=cutoff)
        load_reference_state(block, of_nodes, "ViSNetBlock")
        blocks.append(block)
        if of_edges:
            update = ViSNetEdge(
                {name: spec for name, spec in fields.items() if name != "h"}, vertex="t_src_proj.weight" in of_edges
            )
            load_reference_state(update, of_edges, "ViSNetBlock")
            updates.append(update)
    norm = nn.LayerNorm(dim)
    load_reference_state(norm, {k: state_dict[f"out_norm.{k}"] for k in ("weight", "bias")}, "ViSNetBlock")
    return ViSNetLayers(embedding, blocks, updates, norm)
