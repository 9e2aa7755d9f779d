"""Whether a component can be trained, saved and repeated: gradients, proteins at the edge, state and random numbers."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from protgraph.testing.case import Case
from protgraph.testing.rigid_transforms import rotations
from protgraph.testing.scene import Scene
from protgraph.testing.trial import ConformityError, NotApplicable, Trial, at_most, difference

__all__ = ["degenerate", "every_parameter_learns", "float32", "seed", "state_dict"]

#: A gradient this much smaller than the largest one is rounding error of float64.
_NO_GRADIENT = 1e-13


def every_parameter_learns(trial: Trial) -> None:
    """Every parameter gets a gradient."""
    learned = False
    for case in trial.cases:
        module = copy.deepcopy(trial.module(case))
        parameters = {n: p for n, p in module.named_parameters() if p.requires_grad}
        if not parameters:
            continue
        learned = True
        with trial.naming(f"backward ({case.label})"):
            _backward(module(case.prepare(case.scene, trial.device, trial.dtype)))
        sizes = {n: 0.0 if p.grad is None else float(p.grad.abs().max()) for n, p in parameters.items() if p.numel()}
        largest = max(sizes.values())
        without = [n for n, size in sizes.items() if not size > _NO_GRADIENT * largest]
        if without:
            raise ConformityError(f"{trial.subject}: parameter {without[0]!r} gets no gradient ({case.label})")
    if not learned:
        raise NotApplicable("it has no parameters")


def degenerate(trial: Trial) -> None:
    """Finite values and gradients: one residue, no edges, coincident, collinear or missing atoms, no chain name."""
    for case in trial.cases:
        for what, scene in case.degenerate().items():
            module = copy.deepcopy(trial.module(case))
            with trial.naming(f"on {what} ({case.label})"):
                given = case.prepare(scene, trial.device, trial.dtype)
                leaves = dict(_leaves(given))
                out = module(given)
                _backward(out)
            for name, x in out.items():
                if not torch.isfinite(x).all():
                    raise ConformityError(f"{trial.subject}: {name!r} is not finite on {what} ({case.label})")
            for name, x in [*leaves.items(), *module.named_parameters()]:
                if x.grad is not None and not torch.isfinite(x.grad).all():
                    raise ConformityError(
                        f"{trial.subject}: the gradient of {name!r} is not finite on {what} ({case.label})"
                    )


def _leaves(given: Any) -> Iterator[tuple[str, Tensor]]:
    """Floating inputs, made to collect gradients."""
    for name, x in given.items() if hasattr(given, "items") else ():
        if torch.is_tensor(x) and x.is_floating_point():
            yield name, x.requires_grad_()


def _backward(out: dict[str, Tensor]) -> None:
    """Gradients of a sum in which no output, row or column counts like another."""
    total = [(x * torch.linspace(-1, 2, x.numel(), dtype=x.dtype, device=x.device).view_as(x).sin()).sum()
             for x in out.values() if x.requires_grad]  # fmt: skip
    if total:
        sum(total[1:], start=total[0]).backward()


def state_dict(trial: Trial) -> None:
    """What ``state_dict`` saves is all that has to be saved."""
    for case in trial.cases:
        saved = {n: x.clone() for n, x in trial.module(case).state_dict().items()}
        other = case.build(seed=1, dtype=trial.dtype).to(trial.device)
        _run(trial, case, other)  # whatever is made on the way belongs to the old weights
        with trial.naming("state_dict"):
            other.load_state_dict(saved)
        error = difference(_run(trial, case, other), trial.run(case), case.written(other))
        at_most(error, 1e-12, f"{trial.subject}: loaded from its state_dict ({case.label})")


def seed(trial: Trial) -> None:
    """The same seed gives the same weights; in evaluation the same input gives the same output."""
    for case in trial.cases:
        one, two = (case.build(seed=7, dtype=trial.dtype).to(trial.device) for _ in range(2))
        outs = []
        for number, module in enumerate((one, one, two)):
            with torch.random.fork_rng(devices=[trial.device] if trial.device.startswith("cuda") else []):
                torch.manual_seed(number)
                outs.append(_run(trial, case, module))
        for out, what in ((outs[1], "the same call again"), (outs[2], "the same seed again")):
            at_most(difference(out, outs[0], case.written(one)), 1e-12, f"{trial.subject}: {what} ({case.label})")


def _run(trial: Trial, case: Case, module: nn.Module, scene: Scene | None = None) -> dict[str, Tensor]:
    return case.run(module, case.scene if scene is None else scene, device=trial.device, dtype=trial.dtype)


def float32(trial: Trial) -> float:
    """In float32, moved 100 to 300 Å away, it stays within its tolerance of the truth in float64."""
    worst = 0.0
    single, motions = Trial(trial.subject, trial.device, torch.float32), rotations().first(8)
    for case in single.cases:
        error = single.motion_error(case, motions) or 0.0
        worst = max(worst, at_most(error, trial.conformity.tolerance, f"{trial.subject}: float32 ({case.label})"))
    return worst
