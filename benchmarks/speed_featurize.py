"""From a file to a residue graph with 30 neighbors, dihedrals, radial bases: ours, beside the bare parse and peers."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path

import numpy as np

from benchmarks.peer_programs import peers
from benchmarks.timing import Measurement, interleave
from protgraph import registry
from protgraph.errors import DatasetError
from protgraph.featurize.plan import FeaturePlan
from protgraph.registry.component import component
from protgraph.structure import clean, load_structure

__all__ = ["ENTRIES", "NEIGHBOURS", "measure"]

ENTRIES, NEIGHBOURS = 50, 30
FEATURES = ("dihedral", component("knn", k=NEIGHBOURS), "edge_distance", "edge_rbf")
FORMATS = {".pdb": "PDB", ".cif": "mmCIF", ".bcif": "BinaryCIF"}

Way = Callable[[Path], np.ndarray | None]


def measure(*, seconds: float = 5.0, files: Sequence[Path] = ()) -> list[Measurement]:
    """One measurement a format, over all files of it in turn; times are of all of them together.

    Parameters
    ----------
    seconds : float
        About how long all formats together are measured.
    files : sequence of Path
        Structure files of proteins, not gzipped; 50 entries of ``pdb_core`` in three formats by default.

    Notes
    -----
    The error compares our graphs' distances, Å, with those of brute force.
    """
    if files:
        by_format = {suffix: list(g) for suffix, g in groupby(sorted(files, key=_suffix), _suffix) if suffix in FORMATS}
        if not by_format:
            raise DatasetError(f"none of {len(files)} files to measure ends in {', '.join(FORMATS)}")
        return [_measure(suffix, found, seconds / len(by_format)) for suffix, found in by_format.items()]
    with tempfile.TemporaryDirectory() as folder:
        written = _written(Path(folder))
        return [_measure(suffix, found, seconds / len(written)) for suffix, found in written.items()]


def _suffix(path: Path) -> str:
    return path.suffix.lower()


def _measure(suffix: str, files: Sequence[Path], seconds: float) -> Measurement:
    plan = FeaturePlan(FEATURES)

    def graph(path: Path) -> np.ndarray:
        whole = plan.featurize(plan.precompute(clean(load_structure(path))))
        return whole.edge_dist.numpy()

    ways: dict[str, Way] = {
        "protgraph": graph,
        "biotite: bare parse": lambda path: _parse(path) and None,
        "biotite: parse, numpy brute-force kNN": _parse_and_search,
        **peers(suffix, NEIGHBOURS),
    }
    proteins = [clean(load_structure(path)) for path in files]
    residues = np.mean([len(r) for r in proteins])
    timed = {name: partial(_each, way, files) for name, way in ways.items()}
    rows = interleave(timed, reference="protgraph", seconds=seconds)
    size = sum(path.stat().st_size for path in files) / len(files)
    return Measurement(
        title=f"{len(files)} {FORMATS[suffix]} files of {residues:.0f} residues and {size / 1024:.0f} KiB on "
        f"average → graph, {NEIGHBOURS} neighbors, dihedrals, radial bases (ms for all)",
        reference="protgraph",
        rows=rows,
        floor=f"a file's bytes read and decoded, {residues * NEIGHBOURS * 17 * 4 / 1024:.0f} KiB of edge "
        f"features written; protgraph takes {rows[0].median_ms / len(files):.2f} ms a file, the bare parse "
        f"{rows[1].median_ms / len(files):.2f}",
        error=max(
            float(np.abs(graph(path).ravel() - _nearest(r.pos).ravel()).max())
            for path, r in zip(files, proteins, strict=True)
        ),
    )


def _each(way: Way, files: Sequence[Path]) -> None:
    for path in files:
        way(path)


def _parse(path: Path) -> object:
    """The first model's atoms as biotite gives them, with what any graph needs of them."""
    from biotite.structure.io import pdb, pdbx

    fields = ["b_factor", "occupancy"]
    if path.suffix.lower() == ".pdb":
        return pdb.PDBFile.read(path).get_structure(model=1, extra_fields=fields)
    reader = pdbx.BinaryCIFFile if path.suffix.lower() == ".bcif" else pdbx.CIFFile
    return pdbx.get_structure(reader.read(path), model=1, extra_fields=fields)


def _parse_and_search(path: Path) -> np.ndarray:
    atoms = _parse(path)
    return _nearest(atoms.coord[(atoms.atom_name == "CA") & (atoms.element == "C")])


def _nearest(pos: np.ndarray) -> np.ndarray:
    """``(N, k)`` distances of the nearest, Å, by all differences."""
    pos = pos.astype(np.float64)
    d2 = ((pos[:, None] - pos[None]) ** 2).sum(-1)  # (N, N)
    np.fill_diagonal(d2, np.inf)
    k = min(NEIGHBOURS, len(pos) - 1)
    return np.sqrt(np.sort(np.partition(d2, k - 1, axis=1)[:, :k], axis=1))


def _written(folder: Path) -> Mapping[str, list[Path]]:
    """The first entries of ``pdb_core`` that a PDB file can hold, written as PDB and mmCIF too."""
    from biotite.structure.io import pdb, pdbx

    dataset = registry.datasets.create("pdb_core")
    paths = sorted({e.path for e in dataset.examples(dataset.tasks()[0])})
    found: dict[str, list[Path]] = {suffix: [] for suffix in FORMATS}
    for path in paths:
        atoms = load_structure(path).atoms
        if len(found[".pdb"]) == ENTRIES:
            break
        if max(map(len, atoms.res_name)) > 3 or max(map(len, atoms.chain_id)) > 1:
            continue
        made = {suffix: folder / f"{path.stem}{suffix}" for suffix in FORMATS}
        text, entry = pdb.PDBFile(), pdbx.CIFFile()
        text.set_structure(atoms)
        pdbx.set_structure(entry, atoms)
        text.write(made[".pdb"])
        entry.write(made[".cif"])
        made[".bcif"].write_bytes(path.read_bytes())
        for suffix, where in made.items():
            found[suffix].append(where)
    return found
