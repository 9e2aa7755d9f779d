"""File to residue graph with 30 neighbors, dihedrals, radial bases: protgraph, parsing alone, and other programs.

Times are relative to biotite's parser without anything else: sums over files of the least times of many repeats, in
turns, with the difference between even and odd rounds. The atoms of every file are compared with biotite's, attribute
by attribute, and with gemmi's coordinates; the edges with those of brute force.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from benchmarks.atom_comparison import differences
from benchmarks.peer_programs import peer_programs
from benchmarks.timing import Measurement, interleave_inputs
from protgraph import registry
from protgraph.errors import DatasetError, EmptyStructureError, StructureFileError
from protgraph.featurize.plan import FeaturePlan
from protgraph.registry.component import component
from protgraph.structure import clean, load_structure
from protgraph.structure.io import read_atoms

__all__ = ["ENTRIES", "NEIGHBORS", "measure"]

ENTRIES, NEIGHBORS = 50, 30
FEATURES = ("dihedral", component("knn", k=NEIGHBORS), "edge_distance", "edge_rbf")
FORMATS = {".pdb": "PDB", ".cif": "mmCIF", ".bcif": "BinaryCIF"}

BIOTITE, LIMIT = "biotite: parse only", "limit: read the file, write the edges"
EDGE_BYTES = 2 * 8 + 17 * 4  # two node numbers, the distance and 16 radial bases

Function = Callable[[Path], object]


def measure(*, seconds: float = 5.0, files: Sequence[Path] = ()) -> list[Measurement]:
    """Measure each format over all its files; times are for all files together.

    Parameters
    ----------
    seconds : float
        Least duration for all formats together; every file is read at least 20 times.
    files : sequence of Path
        Structure files, not gzipped; by default 50 entries of ``pdb_core`` in three formats. Files without a protein
        are left out, and printed.

    Notes
    -----
    The error is the largest difference of the distances from those of brute force and of the coordinates from gemmi's,
    Å; infinite if the atoms of a file differ from biotite's.
    """
    if files:
        return _measure_formats(_by_format([Path(file) for file in files]), seconds)
    with tempfile.TemporaryDirectory() as folder:
        return _measure_formats(_write_entries(Path(folder)), seconds)


def _by_format(files: Sequence[Path]) -> dict[str, list[Path]]:
    """Return the structure files of each format, by suffix."""
    for file in files:
        if not file.exists():
            raise StructureFileError(f"{file}: file not found. Give structure files or folders.")
    by_format: dict[str, list[Path]] = {}
    for file in sorted(files, key=_suffix):
        if _suffix(file) in FORMATS and _has_protein(file):
            by_format.setdefault(_suffix(file), []).append(file)
    if not by_format:
        raise DatasetError(
            f"{len(files)} files: no structure file of a protein. Allowed suffixes: {', '.join(FORMATS)}."
        )
    return by_format


def _measure_formats(by_format: Mapping[str, Sequence[Path]], seconds: float) -> list[Measurement]:
    return [_measure(suffix, paths, seconds / len(by_format)) for suffix, paths in by_format.items()]


def _has_protein(path: Path) -> bool:
    """Return False, and print the reason, for a file without protein residues, e.g. of RNA."""
    try:
        clean(load_structure(path))
    except EmptyStructureError as e:
        print(f"left out: {e}")
        return False
    return True


def _suffix(path: Path) -> str:
    return path.suffix.lower()


def _measure(suffix: str, files: Sequence[Path], seconds: float) -> Measurement:
    plan = FeaturePlan(FEATURES)
    proteins = [clean(load_structure(path)) for path in files]
    residues = np.mean([len(r) for r in proteins])
    edge_bytes = int(residues * NEIGHBORS * EDGE_BYTES)

    def graph(path: Path) -> np.ndarray:
        protein_graph = plan.featurize(plan.precompute(clean(load_structure(path))))
        return protein_graph.edge_dist.numpy()

    peers = peer_programs(suffix, NEIGHBORS)
    ways: dict[str, Function] = {
        "protgraph: file to graph": graph,
        "protgraph: parse only": load_structure,
        BIOTITE: _parse,
        "biotite: parse, numpy brute-force kNN": _parse_and_search,
        **peers,
        LIMIT: partial(_move_bytes, np.zeros(edge_bytes, np.uint8)),
    }
    rows = interleave_inputs(ways, files, reference=BIOTITE, slow=peers, seconds=seconds)
    limit = next(row.ms for row in rows if row.name == LIMIT) / len(files)
    size = sum(path.stat().st_size for path in files) / len(files)
    largest = max(
        float(np.abs(graph(path).ravel() - _nearest(r.pos).ravel()).max(initial=0))
        for path, r in zip(files, proteins, strict=True)
    )
    return Measurement(
        title=f"{len(files)} {FORMATS[suffix]} files of {residues:.0f} residues and {size / 1024:.0f} KiB on "
        f"average → graph, {NEIGHBORS} neighbors, dihedrals, radial bases (ms for all)",
        reference=BIOTITE,
        rows=rows,
        lower_bound=f"{size / 1024:.0f} KiB of a file read once from the disk cache and {edge_bytes / 1024:.0f} KiB of "
        f"edges and their features written take {limit:.2f} ms per file (measured); protgraph takes "
        f"{rows[0].ms / len(files):.2f} ms, {rows[0].ms / len(files) / limit:.0f} times as long, of that "
        f"{rows[1].ms / len(files):.2f} to parse",
        error=max(largest, *(_parse_error(path) for path in files)),
    )


def _parse_error(path: Path) -> float:
    """Return the largest difference of coordinates from gemmi's, Å; infinity if an attribute differs from biotite's."""
    if differences(path):
        return float("inf")
    if path.suffix == ".bcif" or not find_spec("gemmi"):
        return 0.0
    model = import_module("gemmi").read_structure(str(path))[0]
    theirs = np.array([atom.atom.pos.tolist() for atom in model.all()])
    ours = read_atoms(path).atoms.coord
    if theirs.shape != ours.shape:
        return float("inf")
    # gemmi joins the parts of a chain, which changes the order of atoms
    return float(np.abs(np.sort(theirs.astype(np.float32), axis=0) - np.sort(ours, axis=0)).max())


def _move_bytes(edges: np.ndarray, path: Path) -> None:
    """Read a file and write as many bytes as the edges of its graph have."""
    path.read_bytes()
    edges.copy()


def _parse(path: Path) -> object:
    """Read the atoms of the first model with biotite."""
    from biotite.structure.io import pdb, pdbx

    fields = ["b_factor", "occupancy"]
    if path.suffix.lower() == ".pdb":
        return pdb.PDBFile.read(path).get_structure(model=1, extra_fields=fields)
    reader = pdbx.BinaryCIFFile if path.suffix.lower() == ".bcif" else pdbx.CIFFile
    return pdbx.get_structure(reader.read(path), model=1, extra_fields=fields, use_author_fields=True)


def _parse_and_search(path: Path) -> np.ndarray:
    atoms = _parse(path)
    return _nearest(atoms.coord[(atoms.atom_name == "CA") & (atoms.element == "C")])


def _nearest(pos: np.ndarray) -> np.ndarray:
    """Compute the ``(N, k)`` distances of the k nearest, Å, from all differences."""
    pos = pos.astype(np.float64)
    d2 = ((pos[:, None] - pos[None]) ** 2).sum(-1)  # (N, N)
    np.fill_diagonal(d2, np.inf)
    k = min(NEIGHBORS, len(pos) - 1)
    return np.sqrt(np.sort(np.partition(d2, k - 1, axis=1)[:, :k], axis=1))


def _write_entries(folder: Path) -> Mapping[str, list[Path]]:
    """Write the first entries of ``pdb_core`` that fit the PDB format as PDB, mmCIF and BinaryCIF."""
    from biotite.structure.io import pdb, pdbx

    dataset = registry.datasets.create("pdb_core")
    paths = sorted({e.path for e in dataset.examples(dataset.tasks()[0])})
    files: dict[str, list[Path]] = {suffix: [] for suffix in FORMATS}
    for path in paths:
        atoms = load_structure(path).atoms
        if len(files[".pdb"]) == ENTRIES:
            break
        if max(map(len, atoms.res_name)) > 3 or max(map(len, atoms.chain_id)) > 1:
            continue
        targets = {suffix: folder / f"{path.stem}{suffix}" for suffix in FORMATS}
        text, entry = pdb.PDBFile(), pdbx.CIFFile()
        text.set_structure(atoms)
        pdbx.set_structure(entry, atoms)
        text.write(targets[".pdb"])
        entry.write(targets[".cif"])
        targets[".bcif"].write_bytes(path.read_bytes())
        for suffix, target in targets.items():
            files[suffix].append(target)
    return files
