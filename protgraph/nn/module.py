"""Base classes of layers and heads: maps from named fields to named fields.

A layer's code uses *local* names, e.g. ``f["h"]``. The model specification wires them to fields of the model, so one
layer serves every branch and skip connection without options for names.
"""

from __future__ import annotations

import inspect
from abc import ABCMeta, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor, nn

from protgraph.data.graph.fields import FieldSpec, Level, field, is_registered
from protgraph.errors import WiringError

if TYPE_CHECKING:
    from protgraph.data.datasets.target import Target

__all__ = ["LOOPS_OVER_PROTEINS", "GraphLayer", "Head"]

#: Expected failure of layers that compute pairs one protein after the other.
LOOPS_OVER_PROTEINS = {"compiled": "it loops over the proteins of a batch: compiled again for another number of them"}


class _LayerType(ABCMeta):
    """Type of layers: ``help(GraphLayer)`` and ``help(Head)`` show what an author needs, without ``nn.Module``."""

    def __dir__(cls) -> list[str]:
        """List all attributes; of an abstract class only the public ones that ``nn.Module`` does not have."""
        names = [str(name) for name in super().__dir__()]
        if not inspect.isabstract(cls):
            return names
        added = [name for name in names if not name.startswith("_") and not hasattr(nn.Module, name)]
        return ["__init__", "forward", *added]


class GraphLayer(nn.Module, metaclass=_LayerType):
    """A map from named fields to named fields.

    A subclass names its inputs in ``reads`` and ``optional``, and its outputs in ``writes``. Its ``__init__`` takes
    ``fields`` and keyword-only options with defaults, reads widths by :meth:`scalar_width`, and calls :meth:`declare`
    with the irreps of each output. :meth:`forward` returns the outputs.

    A field of irreps ``Cx0e`` has the shape ``(N, C)``, and of ``Vx1o`` ``(N, 3V)``: x, y, z of the first vector, then
    of the next.

    Parameters
    ----------
    fields : mapping of str to FieldSpec
        Specs of the wired input fields, by local name. Widths come from here and are never options.

    Attributes
    ----------
    reads : tuple of str
        Local names of required inputs. ``edges`` and ``proteins`` are the reduction objects.
    optional : tuple of str
        Local names of inputs that are read if the model wires them.
    variadic : bool
        Whether the layer reads any list of fields besides ``reads``, under their own names.
    writes : tuple of str
        Local names of the outputs, each declared in ``__init__``.
    special_tokens : tuple of int
        Numbers of nodes that the layer adds before and after those of each protein, e.g. ``<cls>`` and ``<eos>``.
    out : dict of str to FieldSpec
        The declared outputs.
    conformity : Conformity, optional
        Test inputs and expected failures for :mod:`protgraph.testing`.

    Examples
    --------
    >>> class NeighborMean(GraphLayer):
    ...     reads, writes = ("h", "edges"), ("h",)
    ...     def __init__(self, fields, *, dim: int = 64):
    ...         super().__init__(fields)
    ...         self.linear = nn.Linear(self.scalar_width("h"), dim)
    ...         self.declare(h=f"{dim}x0e")
    ...     def forward(self, f):
    ...         return {"h": self.linear(f["edges"].mean(f["edges"].source(f["h"])))}
    """

    reads: ClassVar[tuple[str, ...]] = ()
    optional: ClassVar[tuple[str, ...]] = ()
    variadic: ClassVar[bool] = False
    writes: ClassVar[tuple[str, ...]] = ()
    special_tokens: ClassVar[tuple[int, int]] = (0, 0)

    def __init__(self, fields: Mapping[str, FieldSpec]) -> None:
        """Store the specs of the wired inputs as ``self.fields``."""
        super().__init__()
        missing = [name for name in self.reads if name not in fields]
        if missing:
            raise WiringError(
                f"{type(self).__name__} reads {missing[0]!r}, which is not wired. Wired: {sorted(fields)}."
            )
        self.fields: dict[str, FieldSpec] = dict(fields)
        self.out: dict[str, FieldSpec] = {}

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("fields", "out") and not isinstance(value, dict):
            raise self._reserved(name, value)
        if hasattr(GraphLayer, name) and isinstance(value, (nn.Module, nn.Parameter)):
            raise self._reserved(name, value)
        super().__setattr__(name, value)

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Register ``tensor``, of any shape; see :meth:`torch.nn.Module.register_buffer`."""
        if hasattr(GraphLayer, name):
            raise self._reserved(name, tensor)
        super().register_buffer(name, tensor, persistent)

    def _reserved(self, name: str, value: object) -> WiringError:
        """Return the error for a value under the name of an attribute of every layer."""
        return WiringError(
            f"{type(self).__name__} sets self.{name} to {type(value).__name__}, but {name!r} is an attribute of every "
            "layer. Choose another name."
        )

    def scalar_width(self, name: str) -> int:
        """Return the width of a field that must be rotation-invariant; 0 for an optional field that is not wired.

        Raises :class:`WiringError` if the field has vectors or higher degrees.
        """
        if name in self.optional and name not in self.fields:
            return 0
        spec = self.fields[name]
        if not spec.is_scalar:
            raise WiringError(
                f"{type(self).__name__} reads {name!r} as scalars, but {spec.name!r} is {spec.irreps}: mixing vector "
                "components breaks rotation equivariance. Add a layer 'invariants' before."
            )
        return spec.dim

    def common_level(self) -> Level:
        """Return the level of all wired fields, e.g. "node".

        Raises :class:`WiringError` if there are none, or they have different levels.
        """
        levels = {name: spec.level for name, spec in self.fields.items()}
        if len(set(levels.values())) != 1:
            raise WiringError(f"{type(self).__name__} reads {levels}. It needs one or more fields of one level.")
        return next(iter(levels.values()))

    def declare(self, **irreps: str | FieldSpec) -> None:
        """Declare the outputs, e.g. ``declare(h="64x0e", v="16x1o")``, or by a whole spec.

        Without a spec, an output has the level of the input of this name, else that of the field of this name, else
        "node". A field computed from chiral fields or pseudoscalars is chiral too (see :class:`FieldSpec`).
        """
        chiral = any(_is_chiral(spec) for spec in self.fields.values())
        for name, declared in irreps.items():
            if name not in self.writes:
                raise WiringError(f"{type(self).__name__} declares {name!r}, which is not in its writes {self.writes}.")
            spec = declared if isinstance(declared, FieldSpec) else FieldSpec(name, self._level_of(name), declared)
            if not spec.is_tensor:
                raise WiringError(f"{type(self).__name__} declares {name!r} as an object. Allowed outputs: tensors.")
            self.out[name] = spec.as_(name, chiral=spec.chiral or chiral)

    def _level_of(self, name: str) -> Level:
        """Return the level of an input, else that in the field table, else "node"."""
        if name in self.fields:
            return self.fields[name].level
        return field(name).level if is_registered(name) else "node"

    @abstractmethod
    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Compute exactly the fields in ``writes``; inputs are never modified in place.

        The fields in ``f`` and in the result all have the shapes of their specs; ``f["edges"]`` and
        ``f["proteins"]`` are :class:`~protgraph.Edges` and :class:`~protgraph.Proteins`, all others tensors.
        """


class Head(GraphLayer):
    """A layer that predicts a :class:`Target`: it writes ``logits``.

    ``logits`` are ``(N, C)`` floats, where N counts nodes, edges, proteins or pairs, by the target's level, and C
    is the target's size. They are unnormalized log-probabilities (classification), log-odds (multilabel) or values in
    the target's unit (regression). For vectors and coordinates they are ``(N, C, 3)`` in the target's unit and rotate
    with the protein. A regression of a number and a vector has the irreps of ``target.irreps``.

    Subclasses set ``reads``, take their options as keyword-only arguments with defaults, and declare the irreps of the
    logits: ``self.declare(logits=f"{target.size}x0e")``.

    A head with more outputs, e.g. the parameters of a distribution, has them in ``writes`` beside ``logits``, declares
    their irreps, and computes its loss from all of them in :meth:`training_loss`.

    A head for regression learns labels of any unit if it registers the buffers ``scale`` (ones) and ``shift`` (zeros),
    both ``(C,)``, and returns ``self.rescale(out)``: training sets them to the standard deviation and the mean of the
    training labels.

    Parameters
    ----------
    fields : mapping of str to FieldSpec
        Specs of the wired input fields, by local name.
    target : Target
        Quantity to predict; ``target.size`` is C.

    Examples
    --------
    >>> class LinearHead(Head):
    ...     reads = ("h",)
    ...     def __init__(self, fields, target):
    ...         super().__init__(fields, target)
    ...         self.linear = nn.Linear(self.scalar_width("h"), target.size)
    ...         self.declare(logits=f"{target.size}x0e")
    ...     def forward(self, f):
    ...         return {"logits": self.linear(f["h"])}
    """

    writes: ClassVar[tuple[str, ...]] = ("logits",)
    #: Level of its targets, if it is the default head of none and its name does not have it.
    level: ClassVar[Level | None] = None
    #: Fields of the table that the task puts on each graph; no layer or featurizer of the model writes them.
    task_fields: ClassVar[tuple[str, ...]] = ()
    #: ``(C,)``, factor from the last linear map to the target's unit; None: 1.
    scale: Tensor | None
    #: ``(C,)``, constant in the target's unit that is added after that; None: 0.
    shift: Tensor | None

    def __init__(self, fields: Mapping[str, FieldSpec], target: Target) -> None:
        super().__init__(fields)
        self.target = target
        self.register_buffer("scale", None)
        self.register_buffer("shift", None)

    def _load_from_state_dict(self, state_dict: dict[str, Tensor], prefix: str, *options: object) -> None:
        """Load weights; in those of earlier versions the bias of the last linear map has the mean of the labels."""
        if self.shift is not None and f"{prefix}scale" in state_dict:
            state_dict.setdefault(f"{prefix}shift", torch.zeros_like(self.shift))
        super()._load_from_state_dict(state_dict, prefix, *options)

    @property
    def last_linear(self) -> nn.Linear | None:
        """The linear map that gives the logits, if there is one."""
        return None

    def initialize_logits(self, logits: Tensor) -> None:
        """Make every initial prediction equal ``logits`` ``(C,)``.

        Sets the bias of the last linear map and its weights to 0. Training calls it with the label frequencies or
        means, so that no epoch is spent on learning them (Lin et al. 2017, arXiv:1708.02002, sec. 3.3). No-op without a
        last linear map.
        """
        if self.last_linear is not None:
            with torch.no_grad():
                self.last_linear.weight.zero_()
                logits = logits if self.shift is None else logits - self.shift
                self.last_linear.bias.copy_(logits if self.scale is None else logits / self.scale)

    def training_loss(self, outputs: Mapping[str, Tensor], y: Tensor) -> Tensor | None:
        """Compute the loss in training from all outputs, a scalar; None (the default) means the loss of the task.

        Validation loss and metrics are those of the task and of the logits.

        ``outputs``: what :meth:`forward` returns, float32. ``y``: labels, ``(N,)`` classes (−1: unknown) or of the
        shape of the logits (NaN: unknown).
        """
        return None

    def rescale(self, out: Tensor) -> Tensor:
        """Convert the output of the last linear map to the target's unit, ``(…, C)`` to the same shape."""
        out = out if self.scale is None else out * self.scale
        return out if self.shift is None else out + self.shift


def _is_chiral(spec: FieldSpec) -> bool:
    """Return True for a chiral field and for pseudoscalars."""
    if not spec.is_tensor:
        return False
    return spec.chiral or (spec.is_scalar and "o" in spec.irreps)
