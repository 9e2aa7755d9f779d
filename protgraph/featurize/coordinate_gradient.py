"""Gradients with respect to coordinates: recompute in torch what was computed before, or raise.

Features of the structure stage are NumPy arrays: gradients of a model do not pass through them. Those that can be
computed in torch are; for the others a gradient would be silently incomplete.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from protgraph.data.graph.levels import prefixed
from protgraph.errors import GradientError
from protgraph.structure.residues.chain_breaks import bonded_to_next
from protgraph.structure.residues.residues import CA

if TYPE_CHECKING:
    from protgraph.featurize.base import NodeFeaturizer, StructureFeaturizer
    from protgraph.featurize.plan import FeaturePlan
    from protgraph.registry.component import ComponentSpec

__all__ = ["linked_rows", "recompute_features", "require_gradients"]


def require_gradients(f: Mapping[str, Any]) -> bool:
    """Return True if gradients with respect to ``pos`` or ``backbone`` are recorded."""
    return torch.is_grad_enabled() and any(f[name].requires_grad for name in ("pos", "backbone") if name in f)


def recompute_features(
    plan: FeaturePlan, f: Mapping[str, Any], read: Collection[str], *, partial: bool = False
) -> dict[str, Any]:
    """Return the fields of a batch, with those of the structure stage computed in torch for complete gradients."""
    f = dict(f)
    constant: list[str] = []  # what is read, but cannot be computed in torch

    # pos and backbone have the same CA. If one of them requires gradients, the other one is computed from it.
    fixed = _fixed_coordinates(f)
    if fixed is not None and plan.node_type == "residue":
        f[fixed] = _follow_ca(f, fixed)
    elif fixed is not None and fixed in read:
        constant.append(fixed)

    for node, node_featurizer in plan.nodes:
        fields = {prefixed(node_featurizer.name, name): x for name, x in node_featurizer.differentiable(f).items()}
        f |= fields
        of_coordinates = _float_fields(plan, node, node_featurizer) & set(read)
        if of_coordinates - fields.keys():
            constant.append(node.name)

    for node, featurizer in plan.structure:
        if not _has_gradient(node, featurizer, read):
            continue
        values = _recompute(plan, node, featurizer, f)
        if values is None:
            constant.append(node.name)
        else:
            f |= values
    if not partial:
        _require_complete(constant)
    return f


def _require_complete(constant: Sequence[str]) -> None:
    """Raise if there are fields or featurizers through which gradients do not pass."""
    if constant:
        raise GradientError(
            f"gradient with respect to coordinates: {', '.join(constant)} cannot be computed in torch from the "
            "coordinates of the graph, so the gradient would lack its part. Allowed: features that can, e.g. edge_rbf, "
            "dihedral. Use a model with these, or accept an incomplete gradient: model.partial_gradients = True."
        )


def _fixed_coordinates(f: Mapping[str, Any]) -> str | None:
    """Return which of ``pos`` and ``backbone`` requires no gradients while the other one does; None if none."""
    if "backbone" not in f or f["pos"].requires_grad == f["backbone"].requires_grad:
        return None
    return "backbone" if f["pos"].requires_grad else "pos"


def _follow_ca(f: Mapping[str, Any], fixed: str) -> Tensor:
    """Return ``pos`` or ``backbone`` with the CA of the other one, which requires gradients; raise if they differ."""
    pos, backbone = f["pos"], f["backbone"]
    if not torch.equal(pos.detach().nan_to_num(), backbone[:, CA].detach().nan_to_num()):
        raise GradientError(
            "gradient with respect to coordinates: pos differs from CA of backbone. Move both: "
            f"graph.backbone[:, {CA}] = graph.pos."
        )
    if fixed == "pos":
        return backbone[:, CA]
    return torch.cat([backbone[:, :CA], pos.unsqueeze(1), backbone[:, CA + 1 :]], 1)


def _float_fields(plan: FeaturePlan, node: ComponentSpec, featurizer: NodeFeaturizer) -> set[str]:
    """Return the floating-point fields of a node set, which can depend on coordinates."""
    written = {prefixed(featurizer.name, "pos"), *map(node.output_field, featurizer.out)}
    return {name for name in written if plan.fields[name].dtype.startswith("float")}


def _has_gradient(node: ComponentSpec, featurizer: StructureFeaturizer, read: Collection[str]) -> bool:
    """Check if a featurizer writes a field that is read and has a gradient with respect to coordinates."""
    written = {node.output_field(local) for local in featurizer.out}
    is_read = not written.isdisjoint(read)
    return is_read and featurizer.needs_coordinates and not featurizer.zero_gradient


def _recompute(
    plan: FeaturePlan, node: ComponentSpec, featurizer: StructureFeaturizer, f: Mapping[str, Any]
) -> dict[str, Tensor] | None:
    """Compute the fields of a structure featurizer in torch; None if it cannot be, e.g. for nodes that are atoms."""
    if plan.node_type != "residue" or node.nodes or "backbone" not in f:
        return None
    values = featurizer.differentiable(f)
    if values is None:
        return None
    return {node.output_field(local): value for local, value in values.items()}


def linked_rows(f: Mapping[str, Any]) -> Tensor:
    """Return the residues that are bonded to the next one, ``(R,)`` int64 numbers of nodes of a batch."""
    number = f["proteins"].chains.cpu().numpy()  # different in all proteins of the batch
    backbone, pos = (f[name].detach().cpu().numpy() for name in ("backbone", "pos"))
    linked = bonded_to_next(number, backbone, pos)
    return torch.from_numpy(np.flatnonzero(linked)).to(f["pos"].device)
