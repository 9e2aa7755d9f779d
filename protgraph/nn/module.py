"""What every layer and head is: named fields in, named fields out.

A layer's code uses its own *local* names (``f["h"]``); which fields of the model they are, the model graph
says. So one layer serves every branch and skip connection without options for names.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor, nn

from protgraph.data.datasets.target import Target
from protgraph.data.graph.fields import FieldSpec, field, is_registered
from protgraph.errors import WiringError
from protgraph.nn.kv_cache import KVCache

__all__ = ["GraphLayer", "Head"]


class GraphLayer(nn.Module, ABC):
    """A map from named fields to named fields.

    Subclasses state ``reads``, ``optional`` and ``writes`` as class attributes, take their options as
    keyword-only arguments with defaults, and call :meth:`declare` with the irreps of what they write.

    Parameters
    ----------
    fields : mapping of str to FieldSpec
        What each local name holds, as resolved by the model graph: widths are never repeated as options.

    Attributes
    ----------
    reads : tuple of str
        Local names that must be given. ``edges`` and ``proteins`` are the reduction objects.
    optional : tuple of str
        Local names that are read where the model graph wires them.
    variadic : bool
        True where the layer reads any list of fields besides ``reads``, under their own names.
    writes : tuple of str
        Local names of the outputs, each declared in ``__init__``.
    special_tokens : tuple of int
        Nodes of its own that it puts before and after those of each protein, such as ``<cls>`` and ``<eos>``.
    out : dict of str to FieldSpec
        The declared outputs.

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
        super().__init__()
        missing = [name for name in self.reads if name not in fields]
        if missing:
            raise WiringError(f"{type(self).__name__} reads {missing[0]!r}, which is not among {sorted(fields)}")
        self.fields: dict[str, FieldSpec] = dict(fields)
        self.out: dict[str, FieldSpec] = {}

    def scalar_width(self, name: str) -> int:
        """Width of a field that must be rotation invariant; raises :class:`WiringError` where it is not."""
        spec = self.fields[name]
        if not spec.is_scalar:
            raise WiringError(
                f"{type(self).__name__} reads {name!r} as scalars, but {spec.name!r} is {spec.irreps}: mixing vector "
                "components breaks rotation equivariance. Take its invariants first (layer 'invariants')."
            )
        return spec.dim

    def declare(self, **irreps: str | FieldSpec) -> None:
        """KVCache what each written name holds: irreps, or a whole spec where it is no plain node field.

        A field made from chiral or odd scalars is chiral too (see :class:`FieldSpec`).
        """
        odd = any(s.is_tensor and (s.chiral or (s.is_scalar and "o" in s.irreps)) for s in self.fields.values())
        for name, given in irreps.items():
            if name not in self.writes:
                raise WiringError(f"{type(self).__name__} declares {name!r}, which is not in its writes {self.writes}")
            if isinstance(given, FieldSpec):
                spec = given
            else:
                level = self.fields[name].level if name in self.fields else "node"
                if name not in self.fields and is_registered(name):
                    level = field(name).level
                spec = FieldSpec(name, level, given)
            self.out[name] = spec.as_(name, chiral=spec.chiral or odd)

    @abstractmethod
    def forward(self, f: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Exactly the written names; inputs are never changed in place."""

    def step(self, f: Mapping[str, Tensor], cache: KVCache) -> tuple[dict[str, Tensor], KVCache]:
        """What :meth:`forward` gives for the next nodes of each protein alone, and the state that knows them too.

        A layer that reads neither ``edges`` nor ``proteins`` sees each node by itself and keeps nothing. One that sees
        others, earlier ones only, has a step of its own (see :mod:`protgraph.nn.kv_cache`).

        Parameters
        ----------
        f : mapping of str to Tensor
            What it reads, of the next nodes: the l after those that were seen.
        state : mapping of str to Tensor, optional
            What the step before gave; None at the first.

        Raises
        ------
        WiringError
            The layer cannot go on from earlier nodes.
        """
        seen = sorted({"edges", "proteins"} & set(self.fields))
        if seen:
            raise WiringError(
                f"{type(self).__name__} sees other nodes ({', '.join(seen)}) and cannot go on from those before; "
                "do without a cache"
            )
        return self.forward(f), cache


class Head(GraphLayer):
    """A layer that writes the prediction, ``logits``, for a :class:`Target`.

    ``logits`` are ``(N, C)`` floats: N counts nodes, edges, proteins or pairs as the target's level says, C is
    its size; unnormalized log-probabilities for classes, log-odds for labels, values in the target's unit. For vectors
    and coordinates they are ``(N, C, 3)``, in the target's unit, and turn with the protein.
    """

    writes: ClassVar[tuple[str, ...]] = ("logits",)
    #: ``(C,)``, how much 1 of the last linear map is in the target's unit; None where logits are taken as they are.
    scale: Tensor | None

    def __init__(self, fields: Mapping[str, FieldSpec], target: Target) -> None:
        super().__init__(fields)
        self.target = target
        self.register_buffer("scale", None)

    @property
    def last_linear(self) -> nn.Linear | None:
        """The linear map that gives the logits, where there is one."""
        return None

    def initialize_logits(self, logits: Tensor) -> None:
        """Make every prediction begin at ``logits`` ``(C,)``: bias of the last linear map, whose weights become 0.

        Training calls it with what the labels' frequencies alone give, so that no epoch is spent on learning those
        (Lin et al. 2017, arXiv:1708.02002, sec. 3.3). A head without a last linear map stays as it is.
        """
        if self.last_linear is not None:
            with torch.no_grad():
                self.last_linear.weight.zero_()
                self.last_linear.bias.copy_(logits if self.scale is None else logits / self.scale)

    def rescale(self, out: Tensor) -> Tensor:
        """What the last linear map gives, in the target's unit."""
        return out if self.scale is None else out * self.scale
