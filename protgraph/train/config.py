"""Training options: everything that determines a run besides the model, the dataset and the task."""

from __future__ import annotations

import re
from dataclasses import asdict, field
from typing import Annotated, Any, Literal

import torch
from pydantic import ConfigDict, Field, ModelWrapValidatorHandler, ValidationError, model_validator
from pydantic.dataclasses import dataclass

from protgraph.errors import OptionError, suggest
from protgraph.model.devices import find_device
from protgraph.model.frozen_parts import last_match, matches_part
from protgraph.nn.lora import is_low_rank_term
from protgraph.validation import Seed

__all__ = ["FitConfig"]

PositiveInt = Annotated[int, Field(gt=0)]
PositiveFloat = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Seconds = Annotated[float, Field(gt=0, le=1e9)]
NonNegativeFloat = Annotated[float, Field(ge=0, allow_inf_nan=False)]


@dataclass(frozen=True, kw_only=True, config=ConfigDict(strict=True, extra="forbid"))
class FitConfig:
    """Options of :func:`protgraph.train.fit`.

    Parameters
    ----------
    epochs : int
        Maximum number of passes over the training proteins.
    lr : float
        Peak learning rate of AdamW.
    weight_decay : float
        Weight decay of AdamW.
    schedule : {"cosine", "constant"}
        Learning rate after a linear warm-up over the first twentieth of all steps: half a cosine down to 0 at the last
        epoch, or constant.
    batch_residues : int
        Maximum number of residues in a training batch of all processes together. A larger protein is a separate
        batch.
    seed : int
        Seed of the initial weights, the order of proteins and dropout. On the CPU the same seed and number of threads
        give the same bits.
    patience : int, optional
        Stop after this many epochs without an improvement of the monitored metric on validation. None never stops
        early.
    gradient_clip : float, optional
        Maximum norm of the gradient. None does not clip.
    pos_weight : float or "balanced", optional
        Weight of positives in the loss of yes/no labels. "balanced" is negatives / positives in the training split.
    class_weight : dict of str to float or "balanced", optional
        Weight of each class in the loss of classes, by name; other classes have 1. "balanced" is inversely proportional
        to the labels of each class in the training split, and 1 on average over the labels.
    device : str
        "cpu", "cuda", "cuda:1", or "auto" for a GPU if there is one.
    precision : {"float32", "bfloat16"}
        Precision of the forward pass in training. Weights and evaluation are float32.
    compile : bool
        Compile the layers of the model with ``torch.compile`` (:func:`protgraph.model.compile_layers`).
    deterministic : bool
        On a GPU, use only operations with reproducible results.
    standardize : bool
        Standardize continuous input features with the mean and scale of the training split, which are saved in the
        checkpoint; see :func:`protgraph.train.run_setup.standardize_inputs`.
    noise : float
        Standard deviation of Gaussian noise on the coordinates of a training batch, Å, drawn for every batch. Edges are
        those of the exact structure. Models with features computed from the exact coordinates raise.
    auxiliary : dict of str to float
        Auxiliary tasks by name, with the factors of their losses, which are added to the loss of the main task: e.g.
        ``{"secondary_structure": 0.3}``. Each has a head of its own on the layers of the model, and its own inputs,
        e.g. masked residues. It is trained on those proteins of a batch that have labels of it. The checkpoint has the
        head of the main task only, which also selects the best epoch. Not with the strategy "fsdp".
    start_from : str, optional
        Trained weights to start from: the name of a trained model (``"ligand_site"``, its first member;
        ``"ligand_site[2]"`` is another one) or of a model with published weights (``"proteinmpnn.v_48_020"``), or a
        checkpoint file. Layers that the model has in common with it are loaded, with their standardization.
    head : {"keep", "new"}, optional
        With ``start_from``: load the head, too, or train a new one. By default it is loaded if both predict the same
        target. A loaded head may have fewer classes; they are matched by name.
    freeze : list of str
        Patterns of parts that are not trained, e.g. ``["layers.*"]``: no gradients, no dropout, no optimizer state. A
        pattern is a name of a parameter, layer or head, or a shell pattern of such names, in which ``*`` also matches
        dots.
    unfreeze_after : dict of str to int
        Pattern → number of epochs in which these parts are frozen, before they are trained: gradual unfreezing. It has
        precedence over ``freeze``; of several patterns for a part the largest number counts.
    lr_scale : dict of str to float
        Pattern → factor of the learning rate of these parts. Of several patterns for a part the last one counts.
    lora : dict of str to int
        Pattern → rank of a low-rank term that is added to the linear maps of these parts (LoRA,
        :class:`protgraph.nn.LowRankTerm`), e.g. ``{"layers": 8}``. Of the layers, only these terms are trained, and the
        head is. The model has the sums at the end; :meth:`FitResult.save_adapters` writes the terms alone.
    max_time : float, optional
        Seconds after which training stops, within an epoch if necessary. Such a run is not reproducible.

    Raises
    ------
    OptionError
        A value has the wrong type or is out of range.

    Examples
    --------
    >>> FitConfig(epochs=2.5)
    Traceback (most recent call last):
    protgraph.errors.OptionError: FitConfig: epochs = 2.5. Input should be a valid integer...
    """

    epochs: PositiveInt = 30
    lr: PositiveFloat = 5e-3
    weight_decay: NonNegativeFloat = 1e-2
    schedule: Literal["cosine", "constant"] = "cosine"
    batch_residues: PositiveInt = 2048
    seed: Seed = 0
    patience: PositiveInt | None = 10
    gradient_clip: PositiveFloat | None = 1.0
    pos_weight: PositiveFloat | Literal["balanced"] | None = None
    class_weight: dict[str, PositiveFloat] | Literal["balanced"] | None = None
    device: str = "auto"
    precision: Literal["float32", "bfloat16"] = "float32"
    compile: bool = False
    deterministic: bool = True
    standardize: bool = True
    noise: NonNegativeFloat = 0.0
    auxiliary: dict[str, PositiveFloat] = field(default_factory=dict)
    start_from: str | None = None
    head: Literal["keep", "new"] | None = None
    freeze: list[str] = field(default_factory=list)
    unfreeze_after: dict[str, PositiveInt] = field(default_factory=dict)
    lr_scale: dict[str, PositiveFloat] = field(default_factory=dict)
    lora: dict[str, PositiveInt] = field(default_factory=dict)
    max_time: Seconds | None = None

    @model_validator(mode="wrap")
    @classmethod
    def _validate(cls, values: Any, handler: ModelWrapValidatorHandler[FitConfig]) -> FitConfig:
        """Raise our error in place of pydantic's."""
        try:
            return handler(values)
        except ValidationError as e:
            first = e.errors()[0]
            key = first["loc"][0] if first["loc"] else ""
            reasons = dict.fromkeys(error["msg"] for error in e.errors() if error["loc"][:1] == first["loc"][:1])
            choices = re.findall(r"'(\w+)'", str(first.get("ctx", {}).get("expected", "")))
            hint = suggest(str(first["input"]), choices) if key else ""
            raise OptionError(f"FitConfig: {key} = {first['input']!r}.{hint} {'; or '.join(reasons)}.") from e

    def is_frozen(self, name: str, epoch: float) -> bool:
        """Return True if the parameter or module of a name is frozen after a number of epochs."""
        ends = [end for pattern, end in self.unfreeze_after.items() if matches_part(name, pattern)]
        if ends:
            return epoch < max(ends)
        if self.lora and matches_part(name, "layers.*") and not is_low_rank_term(name):
            return True
        return any(matches_part(name, pattern) for pattern in self.freeze)

    def learning_rate(self, name: str) -> float:
        """Return the peak learning rate of the parameter of a name."""
        factor = last_match(self.lr_scale, name)
        return self.lr if factor is None else self.lr * factor

    def to_dict(self) -> dict[str, Any]:
        """Return the options as plain data."""
        return asdict(self)

    def torch_device(self) -> torch.device:
        """Return the device to train on; raise :class:`OptionError` if it does not exist."""
        return find_device(self.device)
