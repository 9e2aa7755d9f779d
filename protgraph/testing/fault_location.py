"""Find the line of a component, or the component of a model, that makes values not finite or changes an input."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves

from protgraph.errors import ComponentError
from protgraph.model.nonfinite import find_nonfinite_component
from protgraph.registry.component_fault import code_location
from protgraph.testing.inputs import Inputs
from protgraph.testing.model_wiring import MultiHeadModel
from protgraph.testing.runner import Runner
from protgraph.testing.wiring import Wiring

__all__ = ["line_of_change", "require_finite"]

_FILL = {"full", "full_like", "new_full", "fill_", "masked_fill", "masked_fill_", "where", "tensor", "__setitem__"}


def require_finite(
    runner: Runner, wiring: Wiring, out: Mapping[str, Tensor], *, inputs: Inputs | None = None, when: str = ""
) -> None:
    """Raise :class:`ConformityError` if an output is NaN or infinite, with the component and the line at fault."""
    bad = [name for name, x in out.items() if not bool(torch.isfinite(x).all())]
    if not bad:
        return
    kind = "NaN" if bool(out[bad[0]].isnan().any()) else "infinite"
    origin = _origin(runner, wiring, wiring.inputs if inputs is None else inputs)
    problem = " ".join(part for part in (f"{bad[0]!r} is {kind}", when) if part)
    raise runner.failure(f"{problem}{wiring.suffix}: {origin}", fault=f"not finite: {origin}")


def _origin(runner: Runner, wiring: Wiring, inputs: Inputs) -> str:
    """Return the component of a model that returns values that are not finite, or the line in any other component."""
    module, argument = runner.module(wiring), inputs.argument(runner.device, runner.dtype)
    if isinstance(module, MultiHeadModel):
        error = find_nonfinite_component(module.model, argument)
        return "of the model" if error is None else f"from {error.kind} {error.name!r} ({error.location})"
    return f"from {_line_of(runner.component.code, module, argument, _FirstNonFinite())}"


def line_of_change(runner: Runner, wiring: Wiring) -> str:
    """Return ``file:line`` where a component or a layer of a model changes its input, or of its definition."""
    module, argument = runner.module(wiring), wiring.inputs.argument(runner.device, runner.dtype)
    if isinstance(argument, list):
        return _line_of(runner.component.code, module, [residues.read_only() for residues in argument], _FirstChange())
    mode, layers = _FirstChange(), runner.component.layers(module)
    if not layers:
        mode.watch(argument)
    hooks = []
    for layer in layers.values():
        hooks.append(layer.register_forward_pre_hook(lambda m, args: mode.watch(args[0])))
        hooks.append(layer.register_forward_hook(lambda m, args, out: mode.watch({})))
    try:
        return _line_of(runner.component.code, module, argument, mode)
    finally:
        for hook in hooks:
            hook.remove()


def _line_of(code: Callable[..., object], module: nn.Module, argument: Any, mode: TorchFunctionMode) -> str:
    """Run a module in a mode that raises at the fault, and return the line."""
    try:
        with torch.no_grad(), mode:
            module(argument)
    except ComponentError as e:  # of a layer in a model
        return e.location
    except (_FoundError, ValueError) as e:  # ValueError: NumPy refuses to change a read-only array
        return code_location(code, e)
    return code_location(code)


class _FoundError(RuntimeError):
    """The fault is in the operation that runs."""


class _FirstNonFinite(TorchFunctionMode):
    """Raise in the first operation that makes NaN or +inf of finite values; −inf and fill values may be masks."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None) -> Any:
        out = func(*args, **(kwargs or {}))
        if getattr(func, "__name__", "") in _FILL or not any(_is_wrong(x) for x in tree_leaves(out)):
            return out
        if not any(_is_wrong(x) for x in tree_leaves((args, kwargs))):
            raise _FoundError
        return out


def _is_wrong(x: object) -> bool:
    return isinstance(x, Tensor) and x.is_floating_point() and bool((x.isnan() | x.isposinf()).any())


class _FirstChange(TorchFunctionMode):
    """Raise in the first operation that changes a watched tensor in place."""

    def __init__(self) -> None:
        super().__init__()
        self._watched: list[tuple[Tensor, int]] = []

    def watch(self, fields: Mapping[str, Any]) -> None:
        """Watch the tensors of some fields, and no longer those of before."""
        self._watched = [(x, x._version) for _, x in fields.items() if isinstance(x, Tensor)]

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None) -> Any:
        out = func(*args, **(kwargs or {}))
        if any(x._version != version for x, version in self._watched):
            raise _FoundError
        return out
