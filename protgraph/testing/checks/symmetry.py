"""What may be done to proteins, nodes and edges without changing what a component says of them."""

from __future__ import annotations

import copy

import torch
from torch import Tensor

from protgraph.testing.case import Case
from protgraph.testing.rigid_transforms import reflections, rotations
from protgraph.testing.scene import Scene
from protgraph.testing.trial import EXACT, ConformityError, NotApplicable, Trial, at_most, difference, reorder

__all__ = ["batch_equals_singles", "edge_order", "no_leak", "node_order", "reflection", "rotation"]


def rotation(trial: Trial) -> float:
    """Outputs turn as their irreps say, under 32 random rotations with translations of 100 to 300 Å."""
    worst = 0.0
    for case in trial.cases:
        error = trial.motion_error(case, rotations())
        worst = max(worst, at_most(error or 0.0, trial.limit(case), f"{trial.subject}: moved proteins ({case.label})"))
    return worst


def reflection(trial: Trial) -> float:
    """Outputs that are not declared chiral have the parity that they declare, under 8 random reflections."""
    errors = []
    for case in trial.cases:
        error = trial.motion_error(case, reflections(), mirror=True)
        if error is not None:
            errors.append(at_most(error, trial.limit(case), f"{trial.subject}: mirrored proteins ({case.label})"))
    if not errors:
        raise NotApplicable("every output is declared chiral")
    return max(errors)


def node_order(trial: Trial) -> float:
    """Another order of a protein's nodes, or of its chains in the file, reorders the output and does no more."""
    worst = 0.0
    for case in trial.cases:
        for scene in dict.fromkeys(s for s in (case.scene, case.stored) if s is not None):
            other, order = scene.reordered()
            written = case.written(trial.module(case))
            want = reorder(trial.run(case, scene), written, order)
            error = difference(trial.run(case, other), want, written)
            worst = max(
                worst, at_most(error, trial.limit(case), f"{trial.subject}: another order of nodes ({case.label})")
            )
    return worst


def edge_order(trial: Trial) -> float:
    """Neighbors of a node may come in any order, and as a list of any or of constant length."""
    worst, found = 0.0, False
    for case in trial.cases:
        if case.stored is None or "edges" not in case.stored.specs:
            continue
        found = True
        other, order = case.stored.edges_reordered()
        written = case.written(trial.module(case))
        usual = trial.run(case, case.stored)
        for scene, want in ((other, reorder(usual, written, order)), (case.stored.irregular(), usual)):
            error = difference(trial.run(case, scene), want, written)
            worst = max(
                worst, at_most(error, trial.limit(case), f"{trial.subject}: another order of edges ({case.label})")
            )
    if not found:
        raise NotApplicable("it reads no edges")
    return worst


def batch_equals_singles(trial: Trial) -> float:
    """Proteins in one batch get what each gets alone."""
    worst = 0.0
    for case in trial.cases:
        singles = [trial.run(case, case.scene.single(b)) for b in range(len(case.scene.sizes))]
        want = {name: torch.cat([out[name] for out in singles]) for name in singles[0]}
        error = difference(trial.run(case), want, case.written(trial.module(case)))
        worst = max(
            worst, at_most(error, trial.limit(case), f"{trial.subject}: a batch and its proteins ({case.label})")
        )
    return worst


def no_leak(trial: Trial) -> float:
    """In training too, what one protein gets does not depend on the others of its batch."""
    worst = 0.0
    for case in trial.cases:
        scene = case.scene if case.stored is None else case.stored
        one, other = (_trained(trial, case, s) for s in (scene, scene.disturbed()))
        for name, w in case.written(trial.module(case)).items():
            own = sum(scene.rows(w.level)[:-1])
            a, b = one[name][:own].double(), other[name][:own].double()
            if not (torch.isfinite(a).all() and torch.isfinite(b).all()):
                raise ConformityError(f"{trial.subject}: {name!r} is not finite in training ({case.label})")
            error = float((a - b).abs().max() / a.abs().max().clamp(min=1e-30))
            what = f"{trial.subject}: {name!r} of one protein, where another of its batch changed ({case.label})"
            worst = max(worst, at_most(error, trial.limit(case), what))
    return worst


def _trained(trial: Trial, case: Case, scene: Scene) -> dict[str, Tensor]:
    """Outputs in training mode, with the same random numbers each time."""
    module = copy.deepcopy(trial.module(case)).train()
    with torch.random.fork_rng(devices=[trial.device] if trial.device.startswith("cuda") else []):
        torch.manual_seed(5)
        return case.run(module, scene, device=trial.device, dtype=trial.dtype)


def same_on_cuda(trial: Trial) -> float:
    """On a GPU: the same values for moved proteins, and no waiting for the host in the forward pass."""
    if not torch.cuda.is_available():
        raise NotApplicable("no CUDA device is here")
    worst = 0.0
    for dtype in (torch.float64, torch.float32):
        there = Trial(trial.subject, "cuda", dtype)
        for case in there.cases:
            error = there.motion_error(case, rotations()) or 0.0
            limit = EXACT if dtype == torch.float64 and case.exact else trial.conformity.tolerance
            worst = max(worst, at_most(error, limit, f"{trial.subject}: {dtype} on CUDA ({case.label})"))
            _never_wait(there, case)
    return worst


def _never_wait(trial: Trial, case: Case) -> None:
    module, given = trial.module(case), case.prepare(case.scene, trial.device, trial.dtype)
    with torch.no_grad():
        module(given)  # whatever is set up once
        given = case.prepare(case.scene, trial.device, trial.dtype)
        torch.cuda.synchronize()
        torch.cuda.set_sync_debug_mode("error")
        try:
            module(given)
        except RuntimeError as e:
            raise ConformityError(f"{trial.subject}: the GPU waits for the host: {str(e).splitlines()[0]}") from e
        finally:
            torch.cuda.set_sync_debug_mode("default")
