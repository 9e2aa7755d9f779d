"""Adapters: low-rank terms of a fine-tuned model, saved without the weights to which they are added."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from torch import Tensor

from protgraph.checkpoint.checkpoint_header import AdapterBase, weights_digest
from protgraph.errors import CheckpointError
from protgraph.model.build import ProteinModel
from protgraph.model.frozen_parts import last_match
from protgraph.nn.lora import add_low_rank_terms, is_low_rank_term, merge_low_rank_terms

__all__ = ["Adapters", "add_adapters", "add_to_base", "adapters_of"]


@dataclass(frozen=True, eq=False)
class Adapters:
    """Low-rank terms of a trained model, and everything else that training changed.

    ``base``: weights to which they are added. ``tensors``: terms, head, and buffers such as those of a standardization,
    of any shapes. ``share``: parameters of the low-rank terms, relative to those of the model.
    """

    base: AdapterBase
    tensors: Mapping[str, Tensor]
    share: float


def add_adapters(model: ProteinModel, lora: Mapping[str, int], *, seed: int) -> list[str]:
    """Add low-rank terms to the linear maps of a model that match a pattern, in place; return their paths."""
    return add_low_rank_terms(model, partial(last_match, lora), seed=seed)


def adapters_of(model: ProteinModel, base: AdapterBase) -> Adapters:
    """Return the adapters of a trained model whose low-rank terms are not merged."""
    trained = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    trained |= {name for name, _ in model.named_buffers()}
    state = {name: value.detach().cpu().clone() for name, value in model.state_dict().items()}
    terms = sum(value.numel() for name, value in state.items() if is_low_rank_term(name))
    others = sum(parameter.numel() for name, parameter in model.named_parameters() if not is_low_rank_term(name))
    return Adapters(base, {name: value for name, value in state.items() if name in trained}, terms / others)


def add_to_base(model: ProteinModel, base: AdapterBase, tensors: Mapping[str, Tensor]) -> None:
    """Add adapters to a model with the weights of their base, and merge them, in place.

    ``model``: with the initial weights of the base's seed, and those of its source. ``tensors``: those of
    :class:`Adapters`.
    """
    if weights_digest(model.get_submodule("layers")) != base.digest:
        raise CheckpointError(
            f"the adapters belong to other weights than {base.source or model.spec.name!r} has now. Use the base of "
            "training, or the merged checkpoint."
        )
    add_adapters(model, base.lora, seed=0)
    report = model.load_state_dict(tensors, strict=False)
    absent = [name for name in report.missing_keys if is_low_rank_term(name) or name.startswith("head.")]
    if report.unexpected_keys or absent:
        raise CheckpointError(
            f"the adapters do not fit model {model.spec.name!r}: {[*report.unexpected_keys, *absent][0]}."
        )
    merge_low_rank_terms(model)
