"""Low-rank adaptation (LoRA) of linear maps: a small trained term is added to weights that stay fixed."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

__all__ = ["LowRankTerm", "add_low_rank_terms", "is_low_rank_term", "merge_low_rank_terms"]


class LowRankTerm(nn.Module):
    """Add ``B A`` of rank R to a weight: ``W' = W + B A`` (Hu et al. 2022, eq. 3, with α = R).

    A is random and B is 0, so that W' = W before training.

    ``weight``: ``(out, in)``, the weight W. ``rank``: R. ``generator``: of the initial A.

    References
    ----------
    Hu et al. 2022, arXiv:2106.09685.
    """

    def __init__(self, weight: Tensor, rank: int, generator: torch.Generator) -> None:
        super().__init__()
        rows, columns = weight.shape
        down = torch.randn(rank, columns, generator=generator) * columns**-0.5
        self.down = nn.Parameter(down.to(weight))  # A, (R, in)
        self.up = nn.Parameter(weight.new_zeros(rows, rank))  # B, (out, R)

    def forward(self, weight: Tensor) -> Tensor:
        """Compute W + B A, ``(out, in)``."""
        return weight + self.up @ self.down


def add_low_rank_terms(model: nn.Module, rank_of: Callable[[str], int | None], *, seed: int) -> list[str]:
    """Add a low-rank term to linear maps in place; return their paths.

    The weights of a linear map become ``parametrizations.weight.original`` and ``parametrizations.weight.0.up`` and
    ``.down``, as ``torch.nn.utils.parametrize`` names them.

    ``rank_of``: path of a linear map to the rank, or None to leave it as it is. ``seed``: of the random initial terms.
    """
    generator = torch.Generator().manual_seed(seed)
    paths = []
    for path, module in list(model.named_modules()):
        rank = rank_of(path) if isinstance(module, nn.Linear) else None
        if rank is not None:
            term = LowRankTerm(module.weight.detach(), rank, generator)
            parametrize.register_parametrization(module, "weight", term)
            paths.append(path)
    return paths


def merge_low_rank_terms(model: nn.Module) -> None:
    """Replace each weight that has a low-rank term by their sum, in place; parameters have their names of before."""
    for module in list(model.modules()):
        if isinstance(module, nn.Linear) and parametrize.is_parametrized(module, "weight"):
            parametrize.remove_parametrizations(module, "weight", leave_parametrized=True)


def is_low_rank_term(name: str) -> bool:
    """Return True for the name of a parameter of a low-rank term."""
    return name.endswith((".parametrizations.weight.0.up", ".parametrizations.weight.0.down"))
