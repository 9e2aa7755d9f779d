"""Checks of training mode and of options: the same function as in evaluation, and no option without effect."""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from protgraph.registry import component_options
from protgraph.registry.options import Option
from protgraph.testing.inputs import Inputs
from protgraph.testing.runner import EXACT, NotApplicable, Runner, difference
from protgraph.testing.structure_inputs import StructureInputs
from protgraph.testing.symmetry import rotations
from protgraph.testing.wiring import Wiring

__all__ = ["options", "training"]

#: Words in the names of options that switch random numbers in training on.
_STOCHASTIC = ("drop", "noise")
_RATE = 0.3
_KERNEL = "backend"
_TRIED = 3  # values of a second option


def training(runner: Runner) -> float:
    """Check that training computes what evaluation does, if its options dropout and noise are 0, and keeps no state.

    With dropout, the output must still turn with the protein.
    """
    errors = [0.0]
    stochastic = _stochastic_options(runner)
    for wiring in runner.wirings:
        limit = max(EXACT, runner.limit(wiring))  # two kernels may compute one formula
        module = wiring.build(dtype=runner.dtype, options=dict.fromkeys(stochastic, 0.0)).to(runner.device)
        expected, changed_in_evaluation = _run_and_watch(runner, wiring, module.eval(), "in evaluation")
        state = _shapes(module)
        outputs = wiring.outputs(module)

        # two calls in training compute the same, and change nothing
        for when in ("in training", "in a second call in training"):
            _require_mode(runner, wiring, module.train(), is_training=True)
            output, changed = _run_and_watch(runner, wiring, module, when)
            if changed and not changed_in_evaluation:  # otherwise the fault of inputs_unchanged
                raise runner.failure(f"it changes its input {changed[0]!r} {when}{wiring.suffix}. Change a copy.")
            error = difference(output, expected, outputs)
            errors.append(runner.at_most(error, wiring, f"the output {when}", limit=limit))

        # and evaluation after them, too
        _require_mode(runner, wiring, module.eval(), is_training=False)
        after = _run(runner, wiring, module)
        error = difference(after, expected, outputs)
        runner.at_most(error, wiring, "evaluation after two calls in training", limit=limit)
        if _shapes(module) != state:
            raise runner.failure(f"the shapes of its state_dict change in training{wiring.suffix}")
        if stochastic and "rotation" not in runner.conformity.expected_failures:
            errors.append(_error_of_rotation(runner, wiring, stochastic))
    return max(errors)


def _require_mode(runner: Runner, wiring: Wiring, module: nn.Module, *, is_training: bool) -> None:
    """Require that ``train()`` and ``eval()`` reached every part of the module."""
    for name, part in module.named_modules():
        if part.training != is_training:
            method = "train()" if is_training else "eval()"
            raise runner.failure(f"{method} does not change the mode of {name or 'the layer'!r}{wiring.suffix}")


def _stochastic_options(runner: Runner) -> list[str]:
    """Return the names of options of type float that switch dropout or noise on."""
    names = []
    for option in component_options(runner.component.loaded).values():
        is_rate = isinstance(option.default, float) or option.annotation is float
        if is_rate and any(word in option.name for word in _STOCHASTIC):
            names.append(option.name)
    return names


def _shapes(module: nn.Module) -> dict[str, tuple[int, ...]]:
    return {name: tuple(x.shape) for name, x in module.state_dict().items()}


def _run(runner: Runner, wiring: Wiring, module: nn.Module, inputs: Inputs | None = None) -> dict[str, Tensor]:
    """Return the outputs for some inputs, by default those of the wiring, always with the same random numbers."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(5)
        return wiring.run(module, inputs, device=runner.device, dtype=runner.dtype)


def _run_and_watch(runner: Runner, wiring: Wiring, module: nn.Module, when: str) -> tuple[dict[str, Tensor], list[str]]:
    """Return the outputs, and the inputs that the call changes."""
    argument = wiring.inputs.argument(runner.device, runner.dtype)
    before = {name: x.clone() for name, x in argument.items() if torch.is_tensor(x)}
    names = set(argument)
    with torch.random.fork_rng(devices=[]), runner.errors_as_failures(f"{when}{wiring.suffix}"):
        torch.manual_seed(5)
        out = {name: x.detach() for name, x in module(argument).items()}
    changed = []
    for name, x in before.items():
        if not torch.equal(x.nan_to_num(), argument[name].nan_to_num()):
            changed.append(name)
    changed += sorted(names ^ set(argument))
    outputs = {}
    for name, x in out.items():
        outputs[name] = x.to("cpu", torch.float64 if x.is_floating_point() else x.dtype)
    return outputs, changed


def _error_of_rotation(runner: Runner, wiring: Wiring, stochastic: list[str]) -> float:
    """Return the error of a rotation in training with dropout, with the same random numbers."""
    module = wiring.build(dtype=runner.dtype, options=dict.fromkeys(stochastic, _RATE))
    module = module.to(runner.device).train()
    outputs = {name: spec for name, spec in wiring.outputs(module).items() if not spec.is_scalar}
    if not outputs:
        return 0.0
    rotation = rotations()[:1]
    usual = _run(runner, wiring, module)
    moved = _run(runner, wiring, module, wiring.inputs.moved(rotation))
    back = {name: rotation.undo(moved[name][None], spec)[0] for name, spec in outputs.items()}
    error = difference(back, usual, outputs)
    return runner.at_most(error, wiring, f"moved proteins in training with {stochastic[0]}={_RATE}")


def options(runner: Runner) -> None:
    """Check that every option changes the weights, the output or the declared fields, or refuses other values.

    An option may need another value of a second option, e.g. an average degree that divides sums, not means. One named
    ``backend`` chooses among kernels that compute the same.
    """
    all_options = component_options(runner.component.loaded)
    if not all_options:
        raise NotApplicable("it has no options")
    stated = {**runner.conformity.options, **runner.conformity.offline}
    for option in all_options.values():
        second_options = [other for other in all_options.values() if other.name not in (option.name, *stated)]
        is_checked = option.name not in stated and option.name != _KERNEL
        if is_checked and not _has_effect(runner, option, second_options):
            raise runner.failure(
                f"option {option.name!r} has no effect: other values than {option.default!r} give the same weights and "
                "outputs on all test inputs. Remove it, or refuse the values that are not supported. If only rare "
                "proteins show it, state its value in Conformity(options=…)."
            )


class _Behavior:
    """The weights, declared fields and outputs of a component with some options."""

    def __init__(self, runner: Runner, wiring: Wiring, module: nn.Module) -> None:
        self.wiring = wiring
        with torch.no_grad():
            self.weights = {name: x.clone() for name, x in module.state_dict().items()}
            self.fields = {name: repr(spec) for name, spec in wiring.outputs(module).items()}
            self.values = [_run(runner, wiring, module)]
            if runner.component.kind != "featurizer":
                self.values.append(_run(runner, wiring, module.train()))
                return
            unusual = list(wiring.make_degenerate().values())  # missing atoms
            if isinstance(wiring.inputs, StructureInputs):
                unusual.append(wiring.inputs.perturbed())  # gaps in the numbering
            self.values += [_run(runner, wiring, module, inputs) for inputs in unusual]

    def differs(self, other: _Behavior) -> bool:
        """Return True if anything differs."""
        if self.fields != other.fields or _differ(self.weights, other.weights):
            return True
        return any(_differ(a, b) for a, b in zip(self.values, other.values, strict=True))


def _differ(a: Mapping[str, Tensor], b: Mapping[str, Tensor]) -> bool:
    if a.keys() != b.keys():
        return True
    for name, x in a.items():
        y = b[name].to(x.dtype)
        if x.shape != y.shape or not torch.equal(x, y):
            return True
    return False


def _has_effect(runner: Runner, option: Option, second_options: list[Option]) -> bool:
    """Return True if a value changes something, also together with another option, or if other values are refused.

    One accepted value may mean the same as the default, e.g. a width that is that of the input if it is None.
    """
    accepted = refused = 0
    values = _other_values(runner, option)
    for wiring in runner.wirings:
        reference = _Behavior(runner, wiring, wiring.build(dtype=runner.dtype))
        for value in values:
            module = _built(runner, wiring, {option.name: value})
            if module is None:
                refused += 1
                continue
            accepted += 1
            if _changes(runner, reference, module):
                return True
    is_refused = accepted == 0 or (accepted < 2 and refused > 0)
    return is_refused or _has_effect_with_another(runner, option, second_options)


def _has_effect_with_another(runner: Runner, option: Option, second_options: list[Option]) -> bool:
    """Return True if a value changes something for another choice of a second option."""
    wiring = runner.wirings[-1]
    for second in second_options:
        for choice in _other_values(runner, second)[:_TRIED]:
            module = _built(runner, wiring, {second.name: choice})
            if module is None:
                continue
            reference = _Behavior(runner, wiring, module)
            for value in _other_values(runner, option):
                module = _built(runner, wiring, {second.name: choice, option.name: value})
                if module is not None and _changes(runner, reference, module):
                    return True
    return False


def _built(runner: Runner, wiring: Wiring, chosen: Mapping[str, object]) -> nn.Module | None:
    """Return an instance with some options; None if it refuses them."""
    try:
        return wiring.build(dtype=runner.dtype, options=chosen)
    except Exception:  # noqa: BLE001 -- a component may refuse a value with any error
        return None


def _changes(runner: Runner, reference: _Behavior, module: nn.Module) -> bool:
    """Return True if an instance behaves in another way, or refuses the inputs, e.g. as too long."""
    try:
        return _Behavior(runner, reference.wiring, module).differs(reference)
    except Exception:  # noqa: BLE001 -- a component may refuse inputs with any error
        return True


def _choices(runner: Runner, option: Option) -> list[object]:
    """Return the other values of an option that has a few: those of a ``Literal``, of the docstring, or True and False.

    A docstring lists them as in ``reduce : {"sum", "mean"}``.
    """
    text = inspect.getdoc(runner.component.loaded) or ""
    line = re.search(rf"^[\w, ]*\b{option.name}\b[\w, ]* : \{{(.*)\}}", text, re.MULTILINE)
    names = re.findall(r'"([^"]*)"', line[1]) if line else []
    values = [*_literals(option.annotation), *names]
    if isinstance(option.default, bool):
        values.append(not option.default)
    return [value for value in dict.fromkeys(values) if value != option.default]


def _other_values(runner: Runner, option: Option) -> list[object]:
    """Return values other than the default, of the types that the annotation names."""
    choices = _choices(runner, option)
    if choices:
        return choices
    return [value for value in _values_like(option) if value != option.default]


def _literals(annotation: object) -> list[object]:
    """Return the values that a ``Literal``, also in a union, lists."""
    if typing.get_origin(annotation) is typing.Literal:
        return list(typing.get_args(annotation))
    values: list[object] = []
    for member in typing.get_args(annotation):
        values += _literals(member)
    return values


def _values_like(option: Option) -> list[object]:
    """Return values near the default, or usual ones of the annotated type."""
    default: Any = option.default
    if isinstance(default, int):
        return [2 * default, default + 1, max(default // 2, 1), default - 1, 1, default + 5]
    if isinstance(default, float):
        return [default / 2, 2 * default, 10 * default, default / 10, 0.5, 0.0]
    if isinstance(default, (tuple, list)) and default:
        kind = type(default)
        doubled = [2 * x for x in default if isinstance(x, int)]
        return [kind(default[:-1]), kind([*default, default[-1]]), kind(doubled)]
    return _values_of_type(option.type_name, is_text=isinstance(default, str))


def _values_of_type(text: str, *, is_text: bool) -> list[object]:
    """Return usual values of the types that an annotation names."""
    values: list[object] = [None]
    values += [(8,), (8, 8)] if "Sequence" in text or "tuple" in text else []
    values += _WORDS if "str" in text or is_text else ()
    values += [4, 8, 16, 1] if "int" in text else []
    values += [0.5, 5.0] if "float" in text else []
    values += [True, False] if "bool" in text else []
    return values


#: Usual values of options that are names.
_WORDS = ("sum", "mean", "max", "relu", "tanh", "gelu", "layer", "batch", "none", "softmax", "add", "16x0e+8x1o")
