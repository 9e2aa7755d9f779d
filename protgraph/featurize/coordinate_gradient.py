"""Gradients with respect to coordinates: recompute in torch what was computed before, or raise.

Features of the structure stage are NumPy arrays: gradients of a model do not pass through them. Those that can be
computed in torch are; for the others a gradient would be silently incomplete.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from protgraph.data.graph.levels import prefixed
from protgraph.errors import GradientError
from protgraph.structure.residues.chain_breaks import bonded_to_next
from protgraph.structure.residues.residues import CA

if TYPE_CHECKING:
    from protgraph.featurize.plan import FeaturePlan

__all__ = ["linked_rows", "recompute_features", "require_gradients"]


def require_gradients(f: Mapping[str, Any]) -> bool:
    """Return True if gradients with respect to ``pos`` or ``backbone`` are recorded."""
    return torch.is_grad_enabled() and any(f[name].requires_grad for name in ("pos", "backbone") if name in f)


def recompute_features(
    plan: FeaturePlan, f: Mapping[str, Any], read: Collection[str], *, partial: bool = False
) -> dict[str, Any]:
    """Return the fields of a batch, with those of the structure stage computed in torch for complete gradients."""
    f = dict(f)
    constant = _join_coordinates(plan, f, read)
    for node, node_featurizer in plan.nodes:
        fields = {prefixed(node_featurizer.name, name): x for name, x in node_featurizer.differentiable(f).items()}
        f |= fields
        written = {prefixed(node_featurizer.name, "pos"), *map(node.output_field, node_featurizer.out)}
        of_coordinates = {name for name in written & set(read) if plan.fields[name].dtype.startswith("float")}
        if of_coordinates - set(fields):
            constant.append(node.name)
    for node, featurizer in plan.structure:
        written = {node.output_field(local) for local in featurizer.out}
        if not written & set(read) or not featurizer.needs_coordinates or featurizer.zero_gradient:
            continue
        is_possible = plan.node_type == "residue" and not node.nodes and "backbone" in f
        values = featurizer.differentiable(f) if is_possible else None
        if values is None:
            constant.append(node.name)
        else:
            f |= {node.output_field(local): value for local, value in values.items()}
    if constant and not partial:
        raise GradientError(
            f"gradient with respect to coordinates: {', '.join(constant)} cannot be computed in torch from the "
            "coordinates of the graph, so the gradient would lack its part. Allowed: features that can, e.g. edge_rbf, "
            "dihedral. Use a model with these, or accept an incomplete gradient: model.partial_gradients = True."
        )
    return f


def _join_coordinates(plan: FeaturePlan, f: dict[str, Any], read: Collection[str]) -> list[str]:
    """Let ``pos`` and ``backbone`` have the same CA, of the one that requires gradients; return those that cannot."""
    if "backbone" not in f or f["pos"].requires_grad == f["backbone"].requires_grad:
        return []
    pos, backbone = f["pos"], f["backbone"]
    if plan.node_type != "residue":
        without = "backbone" if pos.requires_grad else "pos"
        return [without] if without in read else []
    if not torch.equal(pos.detach().nan_to_num(), backbone[:, CA].detach().nan_to_num()):
        raise GradientError(
            "gradient with respect to coordinates: pos differs from CA of backbone. Move both: "
            f"graph.backbone[:, {CA}] = graph.pos."
        )
    if pos.requires_grad:
        f["backbone"] = torch.cat([backbone[:, :CA], pos.unsqueeze(1), backbone[:, CA + 1 :]], 1)
    else:
        f["pos"] = backbone[:, CA]
    return []


def linked_rows(f: Mapping[str, Any]) -> Tensor:
    """Return the residues that are bonded to the next one, ``(R,)`` int64 numbers of nodes of a batch."""
    number = f["proteins"].chains.cpu().numpy()  # different in all proteins of the batch
    backbone, pos = (f[name].detach().cpu().numpy() for name in ("backbone", "pos"))
    linked = bonded_to_next(number, backbone, pos)
    return torch.from_numpy(np.flatnonzero(linked)).to(f["pos"].device)
