"""How a model is trained: all that decides a run besides the model, the dataset and the task."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

import torch

from protgraph.errors import OptionError

__all__ = ["FitConfig"]

_CHOICES = {
    "schedule": ("cosine", "constant"),
    "precision": ("float32", "bfloat16"),
}
_POSITIVE = ("epochs", "lr", "batch_residues", "patience", "gradient_clip", "max_time")


@dataclass(frozen=True, kw_only=True)
class FitConfig:
    """Options of :func:`protgraph.train.fit`.

    Parameters
    ----------
    epochs : int
        At most this many passes over the training proteins.
    lr : float
        Largest learning rate of AdamW.
    weight_decay : float
        Of AdamW.
    schedule : {"cosine", "constant"}
        The learning rate after a warm-up over the first twentieth of all steps: down to 0 along half a cosine by the
        last epoch, or as it is.
    batch_residues : int
        Residues a training batch; a larger protein goes alone.
    seed : int
        Of the initial weights, the order of proteins, and dropout. On the CPU the same seed and number of threads
        give the same bits.
    patience : int, optional
        Stop after this many epochs without a better monitored metric on validation; None goes on to the end.
    gradient_clip : float, optional
        Largest norm of all gradients together.
    pos_weight : float or "balanced", optional
        Weight of positives in the loss of yes/no labels; "balanced" is negatives / positives of the training split.
    device : str
        "auto" takes a GPU if there is one; or "cpu", "cuda", "cuda:1".
    precision : {"float32", "bfloat16"}
        Of the forward pass in training; weights and evaluation are float32.
    deterministic : bool
        On a GPU, use only operations that give the same bits every time.
    noise : float
        Å, standard deviation of what is added to every coordinate of a training batch, anew each time. Edges stay those
        of the exact structure; models with features that are worked out from it beforehand are refused.
    max_time : float, optional
        Seconds after which training stops, in the middle of an epoch if need be; such a run does not repeat exactly.
    """

    epochs: int = 30
    lr: float = 5e-3
    weight_decay: float = 1e-2
    schedule: Literal["cosine", "constant"] = "cosine"
    batch_residues: int = 2048
    seed: int = 0
    patience: int | None = 10
    gradient_clip: float | None = 1.0
    pos_weight: float | Literal["balanced"] | None = None
    device: str = "auto"
    precision: Literal["float32", "bfloat16"] = "float32"
    deterministic: bool = True
    noise: float = 0.0
    max_time: float | None = None

    def __post_init__(self) -> None:
        for name in _POSITIVE:
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise OptionError(f"FitConfig: {name} = {value!r} must be greater than 0")
        for name in ("weight_decay", "noise"):
            if not getattr(self, name) >= 0:
                raise OptionError(f"FitConfig: {name} = {getattr(self, name)!r} must not be negative")
        for name, allowed in _CHOICES.items():
            if getattr(self, name) not in allowed:
                raise OptionError(f"FitConfig: {name} = {getattr(self, name)!r} is none of {', '.join(allowed)}")
        weight = self.pos_weight
        if not (weight in (None, "balanced") or (isinstance(weight, int | float) and weight > 0)):
            raise OptionError(f"FitConfig: pos_weight = {weight!r} is neither 'balanced' nor a number greater than 0")

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)

    def torch_device(self) -> torch.device:
        """The device to train on.

        Raises
        ------
        OptionError
            There is no such device here.
        """
        return find_device(self.device)


def find_device(name: str) -> torch.device:
    """The device of a name; "auto" is a GPU if there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError as e:
        raise OptionError(f"device {name!r} is none that torch knows; use 'auto', 'cpu', 'cuda' or 'cuda:1'") from e
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise OptionError(f"device {name!r}: {torch.cuda.device_count()} CUDA devices are here; use 'auto' or 'cpu'")
    return device
