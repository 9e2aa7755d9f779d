"""Whether a component is what its declarations say: how it is built, what it reads, what it writes, and whether that
says anything at all."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from protgraph.featurize import EdgeFeaturizer, EdgeList
from protgraph.model import ModelSpec
from protgraph.nn.module import Head
from protgraph.registry import component_options
from protgraph.testing.case import Case, LayerCase, StructureCase
from protgraph.testing.trial import ConformityError, Trial

__all__ = ["builds", "finite", "inputs_unchanged", "non_trivial", "reads_writes", "signature"]

#: A change of the output, relative to its size, that counts as one; and the smallest size that counts as a value.
_MOVES, _SIZE = 1e-6, 1e-6


def builds(trial: Trial) -> None:
    """It is built with its default options, on inputs that its declarations allow."""
    with trial.naming("it is not built"):
        for case in trial.cases:
            trial.module(case)
    if isinstance(trial.component, ModelSpec):
        return
    required = [option.name for option in component_options(trial.component).values() if option.is_required]
    if required:
        raise ConformityError(f"{trial.subject}: option {required[0]!r} has no default")


def signature(trial: Trial) -> None:
    """Every option is spelt out and keyword-only; a model is data that round-trips."""
    component = trial.component
    if isinstance(component, ModelSpec):
        if ModelSpec.from_dict(component.to_dict()) != component:
            raise ConformityError(f"{trial.subject}: from_dict(to_dict()) gives another model graph")
        return
    parameters = list(inspect.signature(component).parameters.values())
    given = (
        ("fields", "target") if issubclass(component, Head) else ("fields",) if hasattr(component, "variadic") else ()
    )
    positional = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    open_ended = [str(p) for p in parameters if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    if open_ended:
        raise ConformityError(f"{trial.subject}: {open_ended[0]} would swallow misspelt options; spell them out")
    if len(positional) != len(given):
        raise ConformityError(
            f"{trial.subject}: it takes {', '.join(positional) or 'nothing'} by position; it is given "
            f"{', '.join(given) or 'nothing'}: options stand after a bare *"
        )


def reads_writes(trial: Trial) -> None:
    """It reads what it declares and no more, and gives exactly what it declares, in the declared shape and type."""
    if isinstance(trial.component, ModelSpec) and trial.component.dead_layers():
        raise ConformityError(f"{trial.subject}: nothing reads the output of {', '.join(trial.component.dead_layers())}")
    for case in trial.cases:
        module = trial.module(case)
        given = case.prepare(case.scene, trial.device, trial.dtype)
        watched = _Watched(given, trial) if isinstance(case, LayerCase) else given
        with torch.no_grad(), trial.naming(case.label or "it does not run"):
            out = module(watched)
        undeclared = sorted(getattr(watched, "undeclared", ()))
        if undeclared:
            raise ConformityError(f"{trial.subject}: it reads {undeclared[0]!r}, which it does not declare")
        declared = set(getattr(module, "writes", None) or case.written(module))
        if set(out) != declared or set(out) != set(case.written(module)):
            raise ConformityError(f"{trial.subject}: it gives {sorted(out)}; it declares {sorted(declared)}")
        for name in out:
            _check_output(trial, case, name, out[name])
        if isinstance(case, StructureCase) and issubclass(trial.component, EdgeFeaturizer):
            for residues in given:
                _check_edges(trial, case.create()(residues), len(residues))


def _check_output(trial: Trial, case: Case, name: str, value: Tensor) -> None:
    written = case.written(trial.module(case))[name]
    spec, rows = written.spec, sum(case.scene.rows(written.level))
    shape = (rows, *spec.trailing_shape)
    if tuple(value.shape) != shape:
        raise ConformityError(f"{trial.subject}: {name!r} has shape {tuple(value.shape)}; it declares {shape}")
    if trial.subject.kind == "featurizer":  # may round to float32, as files do; a feature plan casts
        fits = value.is_floating_point() == spec.dtype.startswith("float")
    else:
        fits = value.dtype == (trial.dtype if spec.dtype.startswith("float") else getattr(torch, spec.dtype))
    if not fits:
        raise ConformityError(f"{trial.subject}: {name!r} is {value.dtype} where its inputs are {trial.dtype}")


def _check_edges(trial: Trial, edges: EdgeList, n: int) -> None:
    source, target = edges.source, edges.target
    pairs = np.stack([target, source])
    if len(np.unique(pairs, axis=1).T) != len(target) or ((source == target).any() and not trial.component.loops):
        raise ConformityError(f"{trial.subject}: some edges are there twice, or join a node with itself")
    if (np.diff(target) < 0).any() or (len(source) and (pairs.min() < 0 or pairs.max() >= n)):
        raise ConformityError(f"{trial.subject}: edges are not sorted by target, or name nodes that are not there")
    if edges.degree is not None and (np.bincount(target, minlength=n) != edges.degree).any():
        raise ConformityError(f"{trial.subject}: not every node has the {edges.degree} edges of its degree")


class _Watched(dict):
    """Inputs that remember which names were asked for without being declared."""

    def __init__(self, given: Mapping[str, Any], trial: Trial) -> None:
        super().__init__(given)
        self._declared = {*given, *trial.component.reads, *getattr(trial.component, "optional", ())}
        self.undeclared: set[str] = set()

    def _ask(self, name: object) -> None:
        if name not in self._declared:
            self.undeclared.add(str(name))

    def __missing__(self, name: str) -> Any:
        raise ConformityError(
            f"it reads {name!r}, which it " + ("needs" if name in self._declared else "does not declare")
        )

    def __contains__(self, name: object) -> bool:
        self._ask(name)
        return super().__contains__(name)

    def get(self, name: str, default: Any = None) -> Any:
        self._ask(name)
        return super().get(name, default)


def inputs_unchanged(trial: Trial) -> None:
    """It leaves its inputs as they are."""
    for case in trial.cases:
        given = case.prepare(case.scene, trial.device, trial.dtype)
        before = {name: _copy(x) for name, x in _arrays(given)}
        with torch.no_grad(), trial.naming(case.label or "it does not run"):
            trial.module(case)(given)
        for name, x in _arrays(given):
            if name not in before or not np.array_equal(_copy(x), before[name], equal_nan=_copy(x).dtype.kind == "f"):
                raise ConformityError(f"{trial.subject}: it changes its input {name!r} in place")
        if len(before) != len(_arrays(given)):
            raise ConformityError(f"{trial.subject}: it takes inputs away")


def _arrays(given: Any) -> list[tuple[str, Any]]:
    """Every array that a component is given, by name."""
    if isinstance(given, list):
        return [(f"{r.name}.{n}", x) for r in given for n, x in vars(r).items() if isinstance(x, np.ndarray)]
    return [(n, x) for n, x in given.items() if torch.is_tensor(x)]


def _copy(x: Any) -> np.ndarray:
    return x.detach().cpu().numpy().copy() if torch.is_tensor(x) else x.copy()


def finite(trial: Trial) -> None:
    """No output is NaN or infinite."""
    for case in trial.cases:
        for name, x in trial.run(case).items():
            if not torch.isfinite(x).all():
                raise ConformityError(f"{trial.subject}: {name!r} is not finite ({case.label})")


def non_trivial(trial: Trial) -> float | None:
    """No part of an output is 0 or next to it, and the output moves with every field that is read."""
    weakest = None
    for case in trial.cases:
        usual, module = trial.run(case), trial.module(case)
        for name, w in case.written(module).items():
            irreps = None if w.spec.irreps == "point" else w.spec.o3
            flat = usual[name].double().view(len(usual[name]), -1)  # a category has no second dimension
            for block in [slice(None)] if irreps is None else irreps.slices():
                if block.start != block.stop and flat[:, block].abs().max() < _SIZE:
                    raise ConformityError(
                        f"{trial.subject}: {name!r} is nothing but zeros, or next to it ({case.label})"
                    )
        for read, other in _variations(trial, case, usual).items():
            moved = max(_moved(usual[n], other[n]) for n in usual)
            weakest = moved if weakest is None else min(weakest, moved)
            if not moved >= _MOVES:
                raise ConformityError(
                    f"{trial.subject}: its output does not move with {read!r} (change {moved:.0e}; {case.label})"
                )
    return weakest


def _variations(trial: Trial, case: Case, usual: dict[str, Tensor]) -> dict[str, dict[str, Tensor]]:
    """The outputs after a change of each thing that is read."""
    if isinstance(case, StructureCase):
        return {"the structure": trial.run(case, case.scene.changed())}
    return {name: trial.run(case, case.stored.changed(name)) for name in case.reads}


def _moved(a: Tensor, b: Tensor) -> float:
    a, b = a.double(), b.double()
    scale = a.abs().max()
    return float((a - b).abs().max() / scale) if scale > 0 else 0.0
