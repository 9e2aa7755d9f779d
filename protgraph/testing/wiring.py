"""One way to build and run a component: its inputs, its module and the fields that the module writes.

Checks handle every kind of component through :class:`Wiring`; the adapters below turn featurizers and models into
torch modules with the attribute ``outputs``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor, nn

from protgraph.data.graph.fields import FieldSpec
from protgraph.testing.inputs import Inputs
from protgraph.testing.tensor_inputs import TensorInputs

__all__ = ["Wiring"]


@dataclass(frozen=True, eq=False)
class Wiring:
    """A component with its input fields and options chosen."""

    label: str  # the chosen input fields; empty if the component has only one wiring
    # takes options other than the usual ones; returns a new module with parameters from torch's global generator
    create: Callable[[Mapping[str, object]], nn.Module]
    make_inputs: Callable[[], Inputs]  # returns the inputs; rigid transforms of whole proteins act on these
    make_degenerate: Callable[[], Mapping[str, Inputs]]  # returns degenerate inputs, by description
    # returns the inputs as named tensors, of which orders and values can be changed; None if there are none
    make_tensors: Callable[[Inputs], TensorInputs] | None = None
    # returns the names in those tensors that the output must depend on
    find_reads: Callable[[TensorInputs], tuple[str, ...]] | None = None
    # makes tensors in which all nodes have equally many neighbors
    make_regular: Callable[[], TensorInputs] | None = None
    # takes a number of residues, of proteins, and whether one node has hundreds of neighbors; returns inputs
    make_large: Callable[[int, int, bool], Inputs] | None = None
    # returns the wiring in which pseudoscalars and chiral scalars are plain scalars; None if it reads none of them
    make_even: Callable[[], Wiring | None] | None = None

    @property
    def suffix(self) -> str:
        """The label in parentheses, for the end of a message; empty if there is none."""
        return f" ({self.label})" if self.label else ""

    @cached_property
    def inputs(self) -> Inputs:
        """The inputs that rigid transforms act on."""
        return self.make_inputs()

    @cached_property
    def tensors(self) -> TensorInputs | None:
        """The inputs as named tensors; None for featurizers of structures."""
        if isinstance(self.inputs, TensorInputs):
            return self.inputs
        return None if self.make_tensors is None else self.make_tensors(self.inputs)

    @cached_property
    def regular(self) -> TensorInputs | None:
        """Tensors that state how many neighbors every node has; None if there are none."""
        if self.make_regular is not None:
            return self.make_regular()
        return None if self.tensors is None or self.tensors.degree is None else self.tensors

    @cached_property
    def reads(self) -> tuple[str, ...]:
        """Names in :attr:`tensors` that the output must depend on."""
        if self.tensors is None or self.find_reads is None:
            return ()
        return self.find_reads(self.tensors)

    @cached_property
    def is_exact(self) -> bool:
        """True if the component computes in the type of its inputs, so that float64 is held to 1e-10."""
        if isinstance(self.inputs, TensorInputs):
            return True
        argument = self.inputs.argument()
        values = self.sample()(argument).values() if self.tensors is None else [x for _, x in argument.items()]
        return all(x.dtype == torch.float64 for x in values if torch.is_tensor(x) and x.is_floating_point())

    def sample(self) -> nn.Module:
        """Return an instance to read declarations from; the global generator stays as it was."""
        with torch.random.fork_rng(devices=[]):
            return self.create({})

    def build(
        self, *, seed: int = 0, dtype: torch.dtype = torch.float64, options: Mapping[str, object] | None = None
    ) -> nn.Module:
        """Return a new instance in evaluation mode, with options other than the usual ones if there are any.

        Constant parameters (zero biases and last layers, gains of 1) are perturbed: they can hide at initialization
        what a trained network shows.
        """
        with torch.random.fork_rng(devices=[]), _default_dtype(dtype):
            torch.manual_seed(seed)
            module = self.create(options or {}).to(dtype)
            for p in module.parameters():
                if p.is_floating_point() and p.numel() and bool((p == p.flatten()[0]).all()):
                    p.data.add_(0.1 * torch.randn_like(p))
        return module.eval()

    def outputs(self, module: nn.Module) -> dict[str, FieldSpec]:
        """Return the fields that an instance declares to write."""
        return getattr(module, "outputs", None) or dict(getattr(module, "out", {}))

    def run(
        self,
        module: nn.Module,
        inputs: Inputs | None = None,
        *,
        device: torch.device | str = "cpu",
        dtype: torch.dtype = torch.float64,
    ) -> dict[str, Tensor]:
        """Return the outputs for some inputs (default: the wiring's), float64 on the CPU, without gradients.

        They have the shapes of their specs.
        """
        argument = (self.inputs if inputs is None else inputs).argument(device, dtype)
        with torch.no_grad():
            out = module(argument)
        return {name: x.to("cpu", torch.float64 if x.is_floating_point() else x.dtype) for name, x in out.items()}


@contextmanager
def _default_dtype(dtype: torch.dtype) -> Iterator[None]:
    """Set torch's default floating type within the context."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)
