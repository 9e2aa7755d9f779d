"""Registry of the speed measurements."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from benchmarks.cost_table import CostTable
from benchmarks.timing import Measurement
from protgraph.errors import OptionError, UnknownNameError, suggest

__all__ = ["COSTS", "MEASUREMENTS", "ON_GPU", "measure", "measure_costs"]

#: Name → description; each is the function ``measure`` of the module ``speed_<name>``.
MEASUREMENTS = {
    "attention": "attention within proteins; PyG's TransformerConv on complete edges; pair factors",
    "edges": "sum over neighbors as a reshape; index_add and scatter",
    "featurize": "file to residue graph; the parsers of biotite, gemmi and Biopython alone, and other programs",
    "layers": "layers; those of PyG and e3nn, and plain formulas",
    "neighbors": "k-nearest-neighbor search; brute force, scipy's k-d tree, biotite's cell list",
    "proteinmpnn": "scoring and design with ProteinMPNN; the published program",
}

#: Name → description of tables of costs, which are not compared with other programs; modules as above.
COSTS = {
    "estimate": "memory and time by --dry-run and in the run: training, a memory limit, preparation",
    "memory": "peak memory of training by model and residues per batch",
    "predict": "duration of `protgraph predict NAME FILE`, process start included",
    "scale": "growth of time and memory from 10³ to 10⁵ residues",
    "store": "rate of batches from a graph store; datasets of PyG",
    "train": "rate of `protgraph train`; the bare loop of the same model",
}


#: Measurements that can run on a GPU.
ON_GPU = ("attention", "edges", "estimate", "layers", "train")


def measure_costs(name: str, *, seconds: float = 5.0, device: str = "cpu") -> list[CostTable]:
    """Return the tables of one name of :data:`COSTS`, on a device."""
    return import_module(f"benchmarks.speed_{name}").measure(seconds=seconds, **_device_option(name, device))


def measure(name: str, *, seconds: float = 5.0, files: Sequence[Path] = (), device: str = "cpu") -> list[Measurement]:
    """Run one measurement for about ``seconds`` per part.

    ``files`` are structure files for "featurize"; the other measurements have synthetic input, on a ``device``.

    Raises
    ------
    UnknownNameError
        The measurement does not exist; the message lists all names.
    """
    if name not in MEASUREMENTS:
        names = sorted([*MEASUREMENTS, *COSTS])
        raise UnknownNameError(f"measurement {name!r} not found.{suggest(name, names)} Allowed: {', '.join(names)}.")
    module = import_module(f"benchmarks.speed_{name}")
    options = _device_option(name, device)
    if not files:
        return module.measure(seconds=seconds, **options)
    if name != "featurize":
        raise OptionError(f"--files with {name!r}: only 'featurize' is measured on files.")
    return module.measure(seconds=seconds, files=files)


def _device_option(name: str, device: str) -> dict[str, str]:
    """Return the option of a measurement on another device than the CPU."""
    if device == "cpu":
        return {}
    if name not in ON_GPU:
        raise OptionError(f"--device {device} with {name!r}: only {', '.join(ON_GPU)} are measured on a GPU.")
    return {"device": device}
