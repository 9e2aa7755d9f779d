"""Checks of symmetry: rotations, reflections, orders of nodes and edges, and independence of proteins in a batch."""

from __future__ import annotations

import torch
from torch import Tensor

from protgraph.testing.inputs import Inputs
from protgraph.testing.runner import (
    NotApplicable,
    Runner,
    difference,
    permute_outputs,
)
from protgraph.testing.structure_inputs import StructureInputs
from protgraph.testing.symmetry import reflections, rotations
from protgraph.testing.wiring import Wiring

__all__ = [
    "batch_equals_singles",
    "edge_order",
    "no_leak",
    "node_order",
    "numbering",
    "reflection",
    "rotation",
    "same_on_cuda",
]


def rotation(runner: Runner) -> float:
    """Check outputs against their irreps, under 32 random rotations with translations of 100 to 300 Å."""
    worst = 0.0
    for wiring in runner.wirings:
        error = runner.transform_error(wiring, rotations()) or 0.0
        worst = max(worst, runner.at_most(error, wiring, "moved proteins"))
    return worst


def reflection(runner: Runner) -> float:
    """Check outputs that are not declared chiral against their parity, under 8 random reflections.

    Outputs of chiral inputs are chiral. They are checked with these inputs as plain scalars, too.
    """
    errors = []
    even = [wiring.make_even() for wiring in runner.wirings if wiring.make_even is not None]
    for wiring in (*runner.wirings, *(one for one in even if one is not None)):
        error = runner.transform_error(wiring, reflections(), mirrored=True)
        if error is not None:
            errors.append(runner.at_most(error, wiring, "mirrored proteins"))
    if not errors:
        raise NotApplicable("every output is declared chiral")
    return max(errors)


def node_order(runner: Runner) -> float:
    """Check that another order of a protein's nodes, or of chains and atoms in its file, only reorders the output."""
    worst = 0.0
    for wiring in runner.wirings:
        for inputs in _inputs_to_reorder(wiring):
            other, order = inputs.permuted()
            outputs = wiring.outputs(runner.module(wiring))
            expected = permute_outputs(runner.run(wiring, inputs), outputs, order)
            got = runner.run(wiring, other)
            if inputs is not wiring.inputs:  # small chains may have no edge of a kind
                outputs = {name: spec for name, spec in outputs.items() if expected[name].any() or got[name].any()}
            error = difference(got, expected, outputs)
            worst = max(worst, runner.at_most(error, wiring, "another order of nodes"))
        if isinstance(wiring.inputs, StructureInputs) and wiring.inputs.node_type == "residue":
            got = runner.run(wiring, wiring.inputs.with_atoms_reversed())
            error = difference(got, runner.run(wiring), wiring.outputs(runner.module(wiring)))
            worst = max(worst, runner.at_most(error, wiring, "another order of the atoms of a residue"))
    return worst


def _inputs_to_reorder(wiring: Wiring) -> list[Inputs]:
    """Return the inputs of a wiring, its tensors, and for structures three chains: two have the same neighbors."""
    inputs = list(dict.fromkeys(x for x in (wiring.inputs, wiring.tensors) if x is not None))
    if isinstance(wiring.inputs, StructureInputs):
        inputs.append(wiring.make_degenerate()["several chains"])
    return inputs


def edge_order(runner: Runner) -> float:
    """Check that the order of a node's neighbors, and a stated constant degree, do not change the output."""
    worst, reads_edges = 0.0, False
    for wiring in runner.wirings:
        if wiring.tensors is None or not {"edges", *wiring.tensors.more_edges} & wiring.tensors.specs.keys():
            continue
        reads_edges = True
        outputs = wiring.outputs(runner.module(wiring))
        other, order = wiring.tensors.edges_permuted()
        variants = [(other, permute_outputs(runner.run(wiring, wiring.tensors), outputs, order))]
        if wiring.regular is not None:
            variants.append((wiring.regular.without_degree(), runner.run(wiring, wiring.regular)))
        for inputs, expected in variants:
            error = difference(runner.run(wiring, inputs), expected, outputs)
            worst = max(worst, runner.at_most(error, wiring, "another order of edges"))
    if not reads_edges:
        raise NotApplicable("it reads no edges")
    return worst


def batch_equals_singles(runner: Runner) -> float:
    """Check that the outputs of a batch equal those of its proteins one by one, also of 32 copies of all proteins."""
    worst = 0.0
    for wiring in runner.wirings:
        worst = max(worst, _error_of_copies(runner, wiring))
        singles = [runner.run(wiring, wiring.inputs.single(b)) for b in range(len(wiring.inputs.sizes))]
        expected = {}
        for name in singles[0]:
            expected[name] = torch.cat([out[name] for out in singles])
        error = difference(runner.run(wiring), expected, wiring.outputs(runner.module(wiring)))
        worst = max(worst, runner.at_most(error, wiring, "a batch and its proteins one by one"))
    return worst


def _error_of_copies(runner: Runner, wiring: Wiring) -> float:
    """Return the error in a batch with 32 copies of the proteins: more proteins and nodes than in other checks."""
    if runner.is_large(wiring):
        return 0.0
    no_moves = rotations().identity()
    usual = runner.run(wiring)
    expected = {name: x.repeat(len(no_moves), *[1] * (x.dim() - 1)) for name, x in usual.items()}
    got = runner.run(wiring, wiring.inputs.moved(no_moves))
    error = difference(got, expected, wiring.outputs(runner.module(wiring)))
    return runner.at_most(error, wiring, f"a batch of {len(no_moves)} copies of the proteins")


def no_leak(runner: Runner) -> float:
    """Check that in training too, the output of a protein does not depend on the others of its batch."""
    worst = 0.0
    for wiring in runner.wirings:
        inputs = wiring.inputs if wiring.tensors is None else wiring.tensors
        usual, other = (_run_in_training(runner, wiring, x) for x in (inputs, inputs.last_perturbed()))
        for name, spec in wiring.outputs(runner.module(wiring)).items():
            rows = sum(inputs.rows(spec.level)[:-1])
            a, b = usual[name][:rows].double(), other[name][:rows].double()
            if not (torch.isfinite(a).all() and torch.isfinite(b).all()):
                raise runner.failure(f"{name!r} is not finite in training{wiring.suffix}")
            error = float((a - b).abs().max() / a.abs().max().clamp(min=1e-30))
            worst = max(worst, runner.at_most(error, wiring, f"{name!r} of one protein after a change in another one"))
    return worst


def numbering(runner: Runner) -> float:
    """Check that author residue numbers, names of chains and the name of the protein do not change the output."""
    worst, has_numbers = 0.0, False
    for wiring in runner.wirings:
        renamed = wiring.inputs.renamed()
        if renamed is None:
            continue
        has_numbers = True
        error = difference(runner.run(wiring, renamed), runner.run(wiring), wiring.outputs(runner.module(wiring)))
        worst = max(worst, runner.at_most(error, wiring, "other residue numbers and names of chains"))
    if not has_numbers:
        raise NotApplicable("it reads no residue numbers")
    return worst


def _run_in_training(runner: Runner, wiring: Wiring, inputs: Inputs) -> dict[str, Tensor]:
    """Return outputs in training mode, with the same random numbers each time."""
    module = runner.private_module(wiring).train()
    with torch.random.fork_rng(devices=[runner.device] if runner.device.startswith("cuda") else []):
        torch.manual_seed(5)
        return wiring.run(module, inputs, device=runner.device, dtype=runner.dtype)


def same_on_cuda(runner: Runner) -> float:
    """Check that a GPU gives the same values, and that the forward pass does not synchronize with the host."""
    if not torch.cuda.is_available():
        raise NotApplicable("no CUDA device is available")
    worst, expected = 0.0, runner.conformity.expected_failures
    transforms = rotations()[:1].identity() if "rotation" in expected else rotations()
    for dtype in (torch.float64, torch.float32):
        if dtype == torch.float32 and "float32" in expected:
            continue
        on_gpu = Runner(runner.component, "cuda", dtype)
        for wiring in on_gpu.wirings:
            error = on_gpu.transform_error(wiring, transforms) or 0.0
            worst = max(worst, on_gpu.at_most(error, wiring, f"{dtype} on CUDA"))
            _require_no_synchronization(on_gpu, wiring)
    return worst


def _require_no_synchronization(runner: Runner, wiring: Wiring) -> None:
    module, argument = runner.module(wiring), wiring.inputs.argument(runner.device, runner.dtype)
    with torch.no_grad():
        module(argument)  # constants that are moved to the device once
        argument = wiring.inputs.argument(runner.device, runner.dtype)
        torch.cuda.synchronize()
        torch.cuda.set_sync_debug_mode("error")
        try:
            module(argument)
        except RuntimeError as e:
            raise runner.failure(f"the forward pass synchronizes with the host: {str(e).splitlines()[0]}") from e
        finally:
            torch.cuda.set_sync_debug_mode("default")
