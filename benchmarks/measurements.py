"""The measurements by name."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from benchmarks.timing import Measurement
from protgraph.errors import OptionError, UnknownNameError, suggest

__all__ = ["MEASUREMENTS", "measure"]

#: Name → what it measures; each is the function ``measure`` of the module of its name.
MEASUREMENTS = {
    "attention": "attention over whole proteins beside PyG's TransformerConv on explicit complete edges",
    "collate": "batches from the store beside PyG's Batch.from_data_list and beside finding neighbors while collating",
    "edges": "sum over neighbors as a reshape beside index_add and scatter",
    "featurize": "file to residue graph beside biotite's bare parse and the programs that are installed",
    "generate": "sequences from a causal transformer with keys and values kept, beside all worked out again",
    "layers": "layers beside PyG's, e3nn's and their plain formulas",
    "neighbors": "the k nearest residues beside brute force, scipy's k-d tree and biotite's cell list",
    "proteinmpnn": "scoring and designing with ProteinMPNN beside the published program",
}


def measure(name: str, *, seconds: float = 5.0, files: Sequence[Path] = ()) -> list[Measurement]:
    """Run one measurement; it takes about ``seconds`` for each of its parts.

    ``files`` are structure files to measure "featurize" on; the others make their own input.

    Raises
    ------
    UnknownNameError
        With the names that there are.
    """
    if name not in MEASUREMENTS:
        raise UnknownNameError(f"no measurement {name!r}.{suggest(name, MEASUREMENTS)} Known: {', '.join(MEASUREMENTS)}")
    module = import_module(f"benchmarks.speed_{name}")
    if not files:
        return module.measure(seconds=seconds)
    if name != "featurize":
        raise OptionError(f"{name!r} is not measured on files; 'featurize' is")
    return module.measure(seconds=seconds, files=files)
