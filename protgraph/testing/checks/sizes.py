"""Checks of large proteins, large and small values, and the growth of memory with the number of nodes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from protgraph.errors import ProtgraphError
from protgraph.nn.module import Head
from protgraph.testing.fault_location import require_finite
from protgraph.testing.inputs import Inputs
from protgraph.testing.runner import NotApplicable, Runner, permute_outputs, sum_of_outputs
from protgraph.testing.structure_inputs import StructureInputs
from protgraph.testing.tensor_inputs import TensorInputs
from protgraph.testing.wiring import Wiring

__all__ = ["large_proteins", "memory", "scale"]

#: Residues of the large protein, of one for featurizers of structures, in a quick run, and where rows are pairs.
_LARGE, _LARGE_NUMPY, _LARGE_QUICK, _LARGE_PAIRS = 2000, 600, 300, 150
#: Largest relative error in float32 of sums over hundreds of neighbors in another order.
_ROUNDING = 1e-3
#: Share of changed rows at the end of a large protein, relative to that at its start.
_SHARE = 0.2
_FACTORS = (1e4, 1e-4)
_NODES, _NODES_OF_PAIRS, _TIMES = 128, 24, 4
#: Growth of the largest tensor: 4 times the proteins, and 4 times the residues of one protein.
_LINEAR, _BELOW_QUADRATIC = 1.3 * _TIMES, 2.0 * _TIMES


def large_proteins(runner: Runner) -> None:
    """Check a protein of 2,000 residues with a node of 300 neighbors: values, order of nodes and edges, last residues.

    It finds tables and windows that end at some number of residues or neighbors. For featurizers of structures, the
    protein has 600 residues, with ``--quick`` 300; where rows are pairs, 150.
    """
    single = replace(runner, dtype=torch.float32)
    for wiring in _few_wirings(runner):
        if wiring.make_large is None:
            raise NotApplicable("it is a model, whose parts are checked alone")
        residues = _LARGE_QUICK if runner.quick else _LARGE
        if _has_pairs(runner, wiring):
            residues = _LARGE_PAIRS
        elif wiring.tensors is None:  # NumPy often computes all pairs
            residues = min(residues, _LARGE_NUMPY)
        elif _refuses(single, wiring, residues):
            residues = _LARGE_QUICK
        inputs = wiring.make_large(residues, 1, True)
        where = f"on a protein of {residues} residues"
        with runner.errors_as_failures(f"{where}{wiring.suffix}"):
            usual = single.run(wiring, inputs)
        require_finite(single, wiring, usual, inputs=inputs, when=where)
        _require_same_in_other_order(single, wiring, inputs, usual, where)
        _require_changes_at_the_end(single, wiring, inputs, usual, where)


def _few_wirings(runner: Runner) -> tuple[Wiring, ...]:
    is_layer = runner.component.kind in ("layer", "head")
    return runner.component.small_wirings if is_layer else runner.wirings


def _refuses(runner: Runner, wiring: Wiring, residues: int) -> bool:
    """Return True if the component states in an error of protgraph that a protein is too long."""
    assert wiring.make_large is not None
    try:
        runner.run(wiring, wiring.make_large(residues, 1, True))
    except ProtgraphError:
        return True
    except Exception:  # noqa: BLE001 -- the check reports it
        return False
    return False


def _has_pairs(runner: Runner, wiring: Wiring) -> bool:
    """Return True if rows of an input or output are all pairs of nodes."""
    specs = list(wiring.outputs(runner.module(wiring)).values())
    if wiring.tensors is not None:
        specs += wiring.tensors.specs.values()
    return any(spec.level == "pair" for spec in specs)


def _require_same_in_other_order(
    runner: Runner, wiring: Wiring, inputs: Inputs, usual: Mapping[str, Tensor], where: str
) -> None:
    """Compare with another order of nodes and of edges, where the component states no dependence on it."""
    if not isinstance(inputs, TensorInputs):
        return
    outputs = wiring.outputs(runner.module(wiring))
    outputs = {name: spec for name, spec in outputs.items() if usual[name].any()}  # without ligands nearby: zeros
    orders = {"node_order": inputs.permuted, "edge_order": inputs.edges_permuted}
    for check, permute in orders.items():
        if check in runner.conformity.expected_failures:
            continue
        other, order = permute()
        expected, got = permute_outputs(usual, outputs, order), runner.run(wiring, other)
        error = max((_relative_change(got[name], expected[name]) for name in outputs), default=0.0)
        change = f"another {check.replace('_order', '')} order {where}"
        runner.at_most(error, wiring, change, limit=max(_ROUNDING, runner.conformity.tolerance))


def _relative_change(got: Tensor, expected: Tensor) -> float:
    """Return the largest difference, relative to the largest value."""
    return float((got.double() - expected.double()).abs().max() / expected.double().abs().max())


def _require_changes_at_the_end(
    runner: Runner, wiring: Wiring, inputs: Inputs, usual: Mapping[str, Tensor], where: str
) -> None:
    """Change all values: as many of the last rows of a protein must change as of its first quarter."""
    other = inputs.perturbed() if isinstance(inputs, StructureInputs) else inputs.last_perturbed()
    got = runner.run(wiring, other)
    for name, spec in wiring.outputs(runner.module(wiring)).items():
        rows = len(usual[name])
        if spec.level not in ("node", "edge", "pair") or rows < 8 or len(got[name]) != rows:
            continue
        is_changed = (got[name] != usual[name]).flatten(1).any(1) if usual[name].dim() > 1 else got[name] != usual[name]
        first, last = (float(x.double().mean()) for x in (is_changed[: rows // 4], is_changed[-max(rows // 20, 2) :]))
        if name == "edge_index" and runner.conformity.proteins == "short" and not usual[name].any():
            raise runner.failure(f"it makes no edges {where}")
        if last < _SHARE * first:
            raise runner.failure(
                f"{name!r} of the last residues {where} does not depend on them: {last:.0%} of the last rows change "
                f"with all inputs, {first:.0%} of the first quarter{wiring.suffix}"
            )


def scale(runner: Runner) -> None:
    """Check that values and gradients are finite in float32 for features × 10⁴ and × 10⁻⁴; logits are not bounded."""
    has_features = False
    for wiring in runner.wirings:
        inputs = wiring.tensors
        assert inputs is not None  # contract: of layers and heads
        features = inputs.features
        has_features = has_features or bool(features)
        for factor in _FACTORS if features else ():
            values = {**inputs.values, **{name: factor * inputs.values[name] for name in features}}
            scaled = replace(inputs, values=values)
            out = _forward_backward(runner, wiring, scaled, f"features × {factor:.0e}")
            if factor > 1 and runner.component.kind == "head":
                _require_unbounded(runner, wiring, out)
    if not has_features:
        raise NotApplicable("it reads no features of other layers")


def _forward_backward(runner: Runner, wiring: Wiring, inputs: TensorInputs, when: str) -> dict[str, Tensor]:
    module = runner.private_module(wiring, dtype=torch.float32)
    argument = inputs.argument(runner.device, torch.float32)
    leaves = {n: argument[n].requires_grad_() for n in inputs.features}
    with runner.errors_as_failures(f"{when}{wiring.suffix}"):
        out = module(argument)
        total = sum_of_outputs(out)
        parameters = {n: p for n, p in module.named_parameters() if p.requires_grad}
        gradients: tuple[Tensor | None, ...] = ()
        if total is not None:
            gradients = torch.autograd.grad(total, [*leaves.values(), *parameters.values()], allow_unused=True)
    single = replace(runner, dtype=torch.float32)
    require_finite(single, wiring, out, inputs=inputs, when=f"for {when}")
    for name, gradient in zip((*leaves, *parameters), gradients, strict=False):
        if gradient is not None and not bool(gradient.isfinite().all()):
            raise runner.failure(f"the gradient of {name!r} is not finite for {when}{wiring.suffix}")
    return out


def _require_unbounded(runner: Runner, wiring: Wiring, out: Mapping[str, Tensor]) -> None:
    loaded = runner.component.loaded
    assert issubclass(loaded, Head)
    logits = out["logits"]
    if logits.is_floating_point() and logits.numel() and float(logits.detach().abs().max()) <= 1:
        raise runner.failure(
            f"logits stay within ±1 for features × {_FACTORS[0]:.0e}, as probabilities do{wiring.suffix}. Return them "
            "before softmax or sigmoid."
        )


def memory(runner: Runner) -> float:
    """Check that the largest tensor grows linearly with the proteins, and less than as the square of their residues.

    Tensors of the backward pass count. Returned is the exponent: 1 if the tensor grows as the number of residues of a
    protein, 2 if as all pairs.
    """
    worst = 0.0
    for wiring in _few_wirings(runner):
        if wiring.make_large is None or wiring.tensors is None:
            raise NotApplicable("it computes with NumPy, or is a model, whose parts are checked alone")
        has_pairs = _has_pairs(runner, wiring)
        nodes = _NODES_OF_PAIRS if has_pairs else _NODES
        one = wiring.make_large(nodes, 1, False)
        size = _largest_tensor(runner, wiring, one)
        batch = _largest_tensor(runner, wiring, wiring.make_large(nodes, _TIMES, False))
        if batch > _LINEAR * size:
            raise runner.failure(
                f"a tensor is {batch / size:.1f} times as large for {_TIMES} times the proteins: it has entries for "
                f"pairs of different proteins{wiring.suffix}"
            )
        if has_pairs:
            continue
        long = _largest_tensor(runner, wiring, wiring.make_large(_TIMES * nodes, 1, False))
        worst = max(worst, math.log(long / size, _TIMES))
        if long > _BELOW_QUADRATIC * size:
            raise runner.failure(
                f"a tensor is {long / size:.1f} times as large for {_TIMES} times the residues: it has entries for all "
                f"pairs of residues{wiring.suffix}. Reduce over edges, or in tiles."
            )
    return worst


def _largest_tensor(runner: Runner, wiring: Wiring, inputs: Inputs) -> int:
    """Return the number of elements of the largest tensor of a forward and backward pass."""
    module = runner.private_module(wiring, dtype=torch.float32)
    argument = inputs.argument(runner.device, torch.float32)
    with _LargestTensor() as recorded, runner.errors_as_failures(wiring.label or "it does not run"):
        total = sum_of_outputs(module(argument))
        parameters = [p for p in module.parameters() if p.requires_grad]
        if total is not None and parameters:
            torch.autograd.grad(total, parameters, allow_unused=True)
    return recorded.elements


class _LargestTensor(TorchDispatchMode):
    """Record the number of elements of the largest tensor that an operation returns; views are no new memory."""

    def __init__(self) -> None:
        super().__init__()
        self.elements = 1

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None) -> Any:
        out = func(*args, **(kwargs or {}))
        for x in tree_leaves(out):
            if isinstance(x, Tensor):
                self.elements = max(self.elements, x.untyped_storage().nbytes() // x.element_size())
        return out
