"""Tensors of a checkpoint file: weights of each member, and descriptors of the training set, by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from protgraph.model.build import ProteinModel
from protgraph.train.training_set import TrainingSetSummary

__all__ = ["join_tensors", "round_to_half", "split_tensors"]

_TRAINING_SET = "training_set/"
_MEMBER = "member/"  # of further members, with their numbers from 1; the first one has no prefix


def join_tensors(members: Sequence[ProteinModel], training_set: TrainingSetSummary | None) -> dict[str, Tensor]:
    """Return all tensors of a file, of any shape, on the CPU; float32 numbers as float16 where that is exact."""
    tensors = dict(members[0].state_dict())
    for i, member in enumerate(members[1:], 1):
        tensors |= {f"{_MEMBER}{i}/{name}": value for name, value in member.state_dict().items()}
    if training_set is not None:
        tensors |= {f"{_TRAINING_SET}{name}": value for name, value in training_set.tensors().items()}
    return {name: _smallest(value.detach().cpu().clone().contiguous()) for name, value in tensors.items()}


def split_tensors(tensors: Mapping[str, Tensor]) -> tuple[list[dict[str, Tensor]], TrainingSetSummary | None]:
    """Return the weights of each member, all with the same shapes, and the descriptors of the training set."""
    members: list[dict[str, Tensor]] = [{}]
    known: dict[str, Tensor] = {}
    for name, value in tensors.items():
        if name.startswith(_TRAINING_SET):
            known[name.removeprefix(_TRAINING_SET)] = value.float()
            continue
        number, own = 0, name
        if name.startswith(_MEMBER):
            text, _, own = name.removeprefix(_MEMBER).partition("/")
            number = int(text)
        members += [{} for _ in range(number + 1 - len(members))]
        members[number][own] = value
    return members, TrainingSetSummary.from_tensors(known)


def round_to_half(network: ProteinModel) -> None:
    """Round the weights in place to numbers of float16, so that a checkpoint file has half the size.

    Scale and shift of the head stay as they are: they have the target's unit, and may be 1e-9 or 1e9.
    """
    with torch.no_grad():
        for name, value in network.state_dict().items():
            if value.is_floating_point() and name not in ("head.scale", "head.shift"):
                rounded = value.half().to(value.dtype)
                if not bool(torch.isfinite(rounded).all()):
                    raise OverflowError(f"{name} of {network.spec.name!r}: {float(value.abs().max())} > 65504")
                value.copy_(rounded)


def _smallest(value: Tensor) -> Tensor:
    if value.dtype != torch.float32:
        return value
    half = value.half()
    return half if torch.equal(half.float(), value) else value
