"""Sampling of classes from logits: temperature, top-k and nucleus (top-p) sampling."""

# Not transformers: an optional dependency, and its top-p filter does not work in float64 (transformers 4, 2026-11-22).

from __future__ import annotations

import torch
from torch import Generator, Tensor

from protgraph.errors import OptionError

__all__ = ["check_sampling", "sampling_probabilities", "sample_classes"]


def check_sampling(
    *, temperature: float = 1.0, top_k: int | None = None, top_p: float | None = None, classes: int | None = None
) -> None:
    """Check sampling options."""
    if not 0 < temperature < float("inf"):
        raise OptionError(
            f"temperature={temperature!r} must be above 0, because logits are divided by it. "
            "Use top_k=1 to take the most probable class."
        )
    most = "" if classes is None else f" and at most {classes}, the number of classes"
    if top_k is not None and not 1 <= top_k <= (classes or top_k):
        raise OptionError(f"top_k={top_k!r} must be at least 1{most}.")
    if top_p is not None and not 0 < top_p <= 1:
        raise OptionError(f"top_p={top_p!r} must be above 0 and at most 1.")


def sampling_probabilities(
    logits: Tensor, *, temperature: float = 1.0, top_k: int | None = None, top_p: float | None = None
) -> Tensor:
    """Compute ``softmax(logits / T)`` over the candidate classes, 0 for the others.

    ``logits``: ``(n, C)``. ``temperature``: T > 0; values below 1 sharpen the distribution, values above 1 flatten it.
    ``top_k``: keep only the k most probable classes. ``top_p``: of those, keep only the smallest set of most probable
    classes with total probability of at least p (the nucleus). Returns ``(n, C)`` float64; rows sum to 1. Equally
    probable classes are ranked by index.

    References
    ----------
    Top-k: Fan et al. 2018, arXiv:1805.04833, sec. 5.3. Nucleus: Holtzman et al. 2020, arXiv:1904.09751, eqs. 2–3.

    Examples
    --------
    >>> p = torch.tensor([[0.5, 0.3, 0.2]]).log()
    >>> [round(x, 3) for x in sampling_probabilities(p, top_p=0.7)[0].tolist()]
    [0.625, 0.375, 0.0]
    """
    check_sampling(temperature=temperature, top_k=top_k, top_p=top_p, classes=logits.size(-1))
    p = (logits.double() / temperature).softmax(-1)
    p, order = p.sort(dim=-1, descending=True, stable=True)
    if top_k is not None:
        p[:, top_k:] = 0.0
        p = p / p.sum(-1, keepdim=True)
    if top_p is not None:
        before = p.cumsum(-1) - p  # total probability of the more probable classes
        p = p.masked_fill(before >= top_p, 0.0)
        p = p / p.sum(-1, keepdim=True)
    return torch.zeros_like(p).scatter(-1, order, p)


def sample_classes(
    logits: Tensor,
    *,
    generator: Generator,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
) -> Tensor:
    """Sample one class per row from :func:`sampling_probabilities`.

    ``logits``: ``(n, C)``, on any device. ``generator``: a CPU generator: the same seed gives the same classes on every
    device. ``temperature``, ``top_k``, ``top_p``: see :func:`sampling_probabilities`. Returns ``(n,)`` int64, on the
    device of the logits.
    """
    p = sampling_probabilities(logits, temperature=temperature, top_k=top_k, top_p=top_p)
    return torch.multinomial(p.cpu(), 1, generator=generator).squeeze(1).to(logits.device)
