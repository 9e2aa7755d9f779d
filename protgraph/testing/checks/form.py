"""Checks of declarations: options, fields read and written, shapes and types, finite and non-trivial outputs."""

from __future__ import annotations

import gc
import inspect
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from protgraph.data.graph.fields import FieldSpec
from protgraph.featurize import EdgeFeaturizer, EdgeList
from protgraph.model import ModelSpec
from protgraph.nn.module import Head
from protgraph.registry import component_options
from protgraph.testing.fault_location import line_of_change, require_finite
from protgraph.testing.featurizer_wiring import StructureModule
from protgraph.testing.inputs import Inputs
from protgraph.testing.model_wiring import unused_featurizers
from protgraph.testing.runner import ConformityError, NotApplicable, Runner, difference, sum_of_outputs
from protgraph.testing.structure_inputs import StructureInputs
from protgraph.testing.tensor_inputs import TensorInputs
from protgraph.testing.wiring import Wiring

__all__ = ["builds", "finite", "inputs_unchanged", "memory_layout", "non_trivial", "reads_writes", "signature"]

#: Smallest change of an output, relative to its size, that counts as one; smallest magnitude that counts as a value.
_CHANGE, _MAGNITUDE = 1e-6, 1e-6
#: Largest output of a new layer or head for features of about 1.
_LARGEST = 1e4


def builds(runner: Runner) -> None:
    """Check that it can be built with its default options, on inputs that its declarations allow."""
    with runner.errors_as_failures("it cannot be built"):
        for wiring in runner.wirings:
            runner.module(wiring)
    loaded = runner.component.loaded
    if isinstance(loaded, ModelSpec):
        return
    required = [option.name for option in component_options(loaded).values() if option.is_required]
    if required:
        raise runner.failure(f"option {required[0]!r} has no default")


def signature(runner: Runner) -> None:
    """Check that every option is named and keyword-only, and that a model spec round-trips through a dict."""
    loaded = runner.component.loaded
    if isinstance(loaded, ModelSpec):
        if ModelSpec.from_dict(loaded.to_dict()) != loaded:
            raise runner.failure("from_dict(to_dict()) gives another model spec")
        return
    parameters = list(inspect.signature(loaded).parameters.values())
    expected: tuple[str, ...] = ()
    if issubclass(loaded, Head):
        expected = ("fields", "target")
    elif hasattr(loaded, "variadic"):
        expected = ("fields",)
    positional = []
    open_ended = []
    for p in parameters:
        if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD):
            positional.append(p.name)
        elif p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            open_ended.append(str(p))
    if open_ended:
        raise runner.failure(f"{open_ended[0]} in __init__ would accept misspelled options. Name every option.")
    if len(positional) != len(expected):
        raise runner.failure(
            f"positional parameters are ({', '.join(positional)}); allowed are "
            f"({', '.join(expected)}). Put options after a bare *."
        )


def reads_writes(runner: Runner) -> None:
    """Check that it reads only declared fields and returns the declared ones in their shape and type."""
    loaded = runner.component.loaded
    if isinstance(loaded, ModelSpec):
        _require_no_dead_part(runner, loaded)
    for wiring in runner.wirings:
        module = runner.module(wiring)
        argument = wiring.inputs.argument(runner.device, runner.dtype)
        recorded = _RecordingFields(argument, loaded) if isinstance(argument, dict) else argument
        with torch.no_grad(), runner.errors_as_failures(wiring.label or "it does not run"):
            out = module(recorded)
        undeclared = sorted(getattr(recorded, "undeclared", ()))
        if undeclared:
            raise runner.failure(f"it reads {undeclared[0]!r}, which it does not declare")
        _require_same_names(runner, wiring, module, out)
        for name in out:
            _check_output(runner, wiring, name, out[name])
        if isinstance(module, StructureModule) and isinstance(module.featurizer, EdgeFeaturizer):
            for residues in argument:
                _check_edges(runner, module.featurizer(residues), len(residues))


def _require_no_dead_part(runner: Runner, spec: ModelSpec) -> None:
    """Require that a prediction depends on every layer and featurizer of a model."""
    if spec.dead_layers():
        raise runner.failure(f"no head depends on the output of {', '.join(spec.dead_layers())}")
    unused = unused_featurizers(runner.wirings[0])
    if unused:
        raise runner.failure(f"no prediction depends on the featurizer {', '.join(unused)}. Remove it.")


def _require_same_names(runner: Runner, wiring: Wiring, module: nn.Module, out: Mapping[str, Tensor]) -> None:
    """Compare the names that are returned, listed in ``writes`` and passed to ``declare``; name those that differ."""
    declared = set(wiring.outputs(module))
    listed = set(getattr(module, "writes", None) or declared)
    returned = set(out)
    if returned == listed == declared:
        return
    source = "the heads declare" if isinstance(runner.component.loaded, ModelSpec) else "declare() was called for"
    problems = []
    if returned != listed:
        problems.append(f"forward returns {sorted(returned)}; writes lists {sorted(listed)}")
    if listed != declared:
        problems.append(f"writes lists {sorted(listed)}; {source} {sorted(declared) or 'nothing'}")
    raise runner.failure(f"{'. '.join(problems)}. All must name the same fields.")


def _check_output(runner: Runner, wiring: Wiring, name: str, value: Tensor) -> None:
    spec = wiring.outputs(runner.module(wiring))[name]
    num_rows = sum(wiring.inputs.rows(spec.level))
    shape = (num_rows, *spec.trailing_shape)
    if tuple(value.shape) != shape:
        raise runner.failure(f"{name!r} has shape {tuple(value.shape)}; declared is {shape}")
    is_float = spec.dtype.startswith("float")
    if runner.component.kind == "featurizer":  # may round to float32, as files do; a feature plan casts
        is_declared = value.is_floating_point() == is_float
    elif is_float:
        is_declared = value.dtype == runner.dtype
    else:
        is_declared = value.dtype == getattr(torch, spec.dtype)
    if not is_declared:
        raise runner.failure(f"{name!r} is {value.dtype}; inputs are {runner.dtype} and declared is {spec.dtype}")


def _check_edges(runner: Runner, edges: EdgeList, n: int) -> None:
    """Check the edges ``(2, E)`` of a protein of n nodes."""
    source = edges.source
    target = edges.target
    pairs = np.stack([target, source])
    distinct = np.unique(pairs, axis=1)
    has_duplicates = distinct.shape[1] != len(target)
    has_loops = (source == target).any()
    if has_duplicates or (has_loops and not runner.component.loaded.loops):
        raise runner.failure("it returns duplicate edges, or edges from a node to itself")
    is_sorted = (np.diff(target) >= 0).all()
    is_in_range = not len(source) or (pairs.min() >= 0 and pairs.max() < n)
    if not (is_sorted and is_in_range):
        raise runner.failure(f"edges are not sorted by target, or refer to nodes beyond {n - 1}")
    if edges.degree is not None:
        degrees = np.bincount(target, minlength=n)
        if (degrees != edges.degree).any():
            raise runner.failure(f"degree is {edges.degree}, but not every node has that many edges")


class _RecordingFields(dict):
    """Input fields that record which names were read without being declared."""

    def __init__(self, fields: Mapping[str, Any], loaded: Any) -> None:
        super().__init__(fields)
        self._declared = {*fields, *loaded.reads, *getattr(loaded, "optional", ())}
        self.undeclared: set[str] = set()

    def _record(self, name: object) -> None:
        if name not in self._declared:
            self.undeclared.add(str(name))

    def __missing__(self, name: str) -> Any:
        if name in self._declared:
            raise ConformityError(f"it reads {name!r}, which is not wired here")
        raise ConformityError(f"it reads {name!r}, which it does not declare")

    def __contains__(self, name: object) -> bool:
        self._record(name)
        return super().__contains__(name)

    def get(self, name: str, default: Any = None) -> Any:
        self._record(name)
        return super().get(name, default)


class _State(NamedTuple):
    """Buffers, and version counters of the weights: large models are not copied."""

    buffers: dict[str, Tensor]
    versions: dict[str, int]

    @classmethod
    def of(cls, module: nn.Module) -> _State:
        buffers = {name: x.clone() for name, x in module.named_buffers()}
        return cls(buffers, {name: x._version for name, x in module.named_parameters()})

    def changes(self, module: nn.Module) -> list[str]:
        """Return the names of buffers and weights that a module has changed or added since then."""
        names = []
        for name, buffer in module.named_buffers():
            if name not in self.buffers or not torch.equal(buffer, self.buffers[name]):
                names.append(name)
        for name, weight in module.named_parameters():
            if weight._version != self.versions.get(name):
                names.append(name)
        return names


def inputs_unchanged(runner: Runner) -> None:
    """Check that a call modifies neither inputs nor, in evaluation, weights and buffers, and keeps no tensor."""
    for wiring in runner.wirings:
        argument = wiring.inputs.argument(runner.device, runner.dtype)
        module = runner.module(wiring)
        before = {name: _copy(x) for name, x in _arrays(argument)}
        state = _State.of(module)
        layers = runner.component.layers(module)
        with torch.no_grad(), runner.errors_as_failures(wiring.label or "it does not run"), _changes(layers) as changed:
            module(argument)
        if changed:
            raise _changed(runner, wiring, f"{changed[0]} in place")
        _require_equal_inputs(runner, wiring, argument, before)
        altered = state.changes(module)
        if altered:
            raise _changed(runner, wiring, f"it changes {altered[0]!r} in a call in evaluation")
        _require_nothing_kept(runner, wiring, module)


def _require_equal_inputs(runner: Runner, wiring: Wiring, argument: Any, before: Mapping[str, Any]) -> None:
    """Require that no array of an argument has changed, and none is gone."""
    after = {name: _copy(x) for name, x in _arrays(argument)}
    for name, values in after.items():
        is_float = values.dtype.kind == "f"
        if name not in before or not np.array_equal(values, before[name], equal_nan=is_float):
            raise _changed(runner, wiring, f"it changes its input {name!r} in place")
    if len(before) != len(after):
        raise runner.failure("it removes inputs")


def _require_nothing_kept(runner: Runner, wiring: Wiring, module: nn.Module) -> None:
    """Require that the inputs and outputs of a call are freed with the last reference of the caller."""
    argument = wiring.inputs.argument(runner.device, runner.dtype)
    if not isinstance(argument, dict):  # NumPy arrays of a structure, or a batch of PyG
        return
    numbers = {name: x for name, x in argument.items() if torch.is_tensor(x) and x.is_floating_point()}
    watched = [(f"its input {name!r}", weakref.ref(x)) for name, x in numbers.items()]
    out = module(argument)
    watched += [(f"its output {name!r}", weakref.ref(x)) for name, x in out.items()]
    del argument, numbers, out
    gc.collect()
    kept = [name for name, reference in watched if reference() is not None]
    if kept:
        raise runner.failure(f"it keeps {kept[0]} in memory after the call{wiring.suffix}. Keep no tensor of a call.")


def _changed(runner: Runner, wiring: Wiring, problem: str) -> ConformityError:
    fault = f"{problem} ({line_of_change(runner, wiring)})"
    return runner.failure(f"{fault}. Change a copy.", fault=fault)


@contextmanager
def _changes(layers: Mapping[str, nn.Module]) -> Iterator[list[str]]:
    """Record which layers of a model change their inputs, by the version counters of the tensors."""
    changed: list[str] = []
    versions: dict[nn.Module, dict[str, int]] = {}

    def read(args: tuple[Any, ...]) -> dict[str, int]:
        return {name: x._version for name, x in args[0].items() if torch.is_tensor(x)}

    def compare(path: str, module: nn.Module, args: tuple[Any, ...]) -> None:
        before = versions[module]
        for name, version in read(args).items():
            if version != before.get(name):
                changed.append(f"{path} changes {name!r}")

    hooks = []
    for path, layer in layers.items():
        hooks.append(layer.register_forward_pre_hook(lambda m, args: versions.update({m: read(args)})))
        hooks.append(layer.register_forward_hook(lambda m, args, out, path=path: compare(path, m, args)))
    try:
        yield changed
    finally:
        for hook in hooks:
            hook.remove()


def _arrays(argument: Any) -> list[tuple[str, Any]]:
    """Return every input array with its name."""
    if not isinstance(argument, list):
        return [(name, x) for name, x in argument.items() if torch.is_tensor(x)]
    arrays = []
    for residues in argument:
        for name, x in vars(residues).items():
            if isinstance(x, np.ndarray):
                arrays.append((f"{residues.name}.{name}", x))
    return arrays


def _copy(x: Any) -> np.ndarray:
    if torch.is_tensor(x):
        x = x.detach().cpu().numpy()
    return x.copy()


def memory_layout(runner: Runner) -> float:
    """Check that tensors that are not contiguous in memory, e.g. slices, give the same output."""
    worst = 0.0
    for wiring in runner.wirings:
        if not isinstance(wiring.inputs, TensorInputs):
            raise NotApplicable("it reads no tensors of layers")
        argument = wiring.inputs.argument(runner.device, runner.dtype)
        sliced = {name: _sliced(x) if torch.is_tensor(x) else x for name, x in argument.items()}
        with torch.no_grad(), runner.errors_as_failures(f"inputs that are not contiguous{wiring.suffix}"):
            out = runner.module(wiring)(sliced)
        of_sliced = {}
        for name, x in out.items():
            of_sliced[name] = x.to("cpu", torch.float64 if x.is_floating_point() else x.dtype)
        error = difference(of_sliced, runner.run(wiring), wiring.outputs(runner.module(wiring)))
        worst = max(worst, runner.at_most(error, wiring, "inputs that are not contiguous"))
    return worst


def _sliced(x: Tensor) -> Tensor:
    """Return the same values as the first columns of a wider tensor."""
    if x.dim() < 2:
        return x
    wider = torch.cat([x, torch.zeros_like(x)], -1)
    return wider[..., : x.size(-1)]


def finite(runner: Runner) -> None:
    """Check that no output is NaN or infinite, and those of a new layer or head are below 10⁴."""
    for wiring in runner.wirings:
        out = runner.run(wiring)
        require_finite(runner, wiring, out)
        if runner.component.kind not in ("layer", "head"):
            continue
        for name, values in out.items():
            largest = float(values.detach().double().abs().max()) if values.numel() else 0.0
            if largest > _LARGEST:
                raise runner.failure(
                    f"{name!r} reaches {largest:.0e} for features of about 1 and new weights{wiring.suffix}. Allowed: "
                    f"{_LARGEST:.0e}. Start with smaller weights, or divide by the number of terms of a sum."
                )


def non_trivial(runner: Runner) -> float | None:
    """Check that no irrep of an output is close to 0, and that the output depends on every field and channel read."""
    changes = []
    for wiring in runner.wirings:
        usual = runner.run(wiring)
        for name, spec in wiring.outputs(runner.module(wiring)).items():
            if _has_empty_block(usual[name], spec):
                raise runner.failure(f"{name!r} is zero or close to zero{wiring.suffix}")
            if runner.component.kind == "head" and _has_empty_column(usual[name]):
                raise runner.failure(f"a column of {name!r} is always zero{wiring.suffix}")
        for read, inputs in _variations(wiring).items():
            varied = runner.run(wiring, inputs)
            require_finite(runner, wiring, varied, inputs=inputs, when=f"after a change of {read!r}")
            change = max(_relative_change(usual[name], varied[name]) for name in usual)
            changes.append(change)
            if not change >= _CHANGE:
                raise runner.failure(f"its output does not depend on {read!r} (change {change:.0e}){wiring.suffix}")
        _require_every_channel(runner, wiring)
    return min(changes, default=None)


def _require_every_channel(runner: Runner, wiring: Wiring) -> None:
    """Require that every channel of the features of other layers has a gradient in some row.

    An irrep without any path to the outputs, e.g. pseudoscalars of a layer of vectors, may have none.
    """
    if wiring.tensors is None or not wiring.tensors.features:
        return
    module = runner.private_module(wiring)
    argument = wiring.tensors.argument(runner.device, runner.dtype)
    leaves = {name: argument[name].requires_grad_() for name in wiring.tensors.features}
    total = sum_of_outputs(module(argument))
    if total is None:
        return
    gradients = torch.autograd.grad(total, list(leaves.values()), allow_unused=True)
    for name, gradient in zip(leaves, gradients, strict=True):
        if gradient is None or not gradient.any():  # an input that need not count in these tensors
            continue
        has_gradient = (gradient != 0).flatten(1).any(0)
        for block in _blocks(wiring.tensors.specs[name], len(has_gradient)):
            of_block = has_gradient[block]
            if of_block.any() and not of_block.all():
                first = block.start + int((~of_block).nonzero()[0])
                raise runner.failure(
                    f"its output does not depend on column {first} of {name!r} ({int((~of_block).sum())} of "
                    f"{len(of_block)} channels of its kind have no effect){wiring.suffix}"
                )


def _has_empty_block(value: Tensor, spec: FieldSpec) -> bool:
    """Return True if an irrep of an output is close to 0 for all rows; positions and indices have none."""
    flat = value.double().view(len(value), -1)  # a category has no second dimension
    blocks = [] if spec.irreps == "point" else _blocks(spec, flat.size(1))
    return any(bool(flat[:, block].abs().max() < _MAGNITUDE) for block in blocks)


def _has_empty_column(value: Tensor) -> bool:
    """Return True if an output is 0 in one column for all rows."""
    return value.dim() > 1 and value.is_floating_point() and not bool(value.flatten(1).any(0).all())


def _blocks(spec: FieldSpec, width: int) -> list[slice]:
    """Return the columns of each irrep of a field; all columns if it states none."""
    irreps = None if spec.irreps == "point" else spec.o3
    if irreps is None:
        return [slice(0, width)]
    return [block for block in irreps.slices() if block.start != block.stop]


def _variations(wiring: Wiring) -> dict[str, Inputs]:
    """Return the inputs after a change of each field."""
    if wiring.tensors is None:
        assert isinstance(wiring.inputs, StructureInputs)
        return {"the structure": wiring.inputs.perturbed()}
    return {name: wiring.tensors.changed(name) for name in wiring.reads}


def _relative_change(a: Tensor, b: Tensor) -> float:
    a = a.double()
    b = b.double()
    scale = a.abs().max()
    if not scale > 0:
        return 0.0
    return float((a - b).abs().max() / scale)
