"""Measure the rate of each stage from a foldcomp database to a graph store, and print the plan of a large set.

Run it as ``python -m benchmarks.large_set_plan``; add ``--database afdb_swissprot_v4`` to measure real entries. Rates
are CPU time of one core, which other work on the machine changes little. ``--write`` puts the tables into
``docs/large_sets.md``.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import biotite.structure as struc
import numpy as np
from biotite.structure.io.pdb import PDBFile

from benchmarks.synthetic_records import synthetic_records
from protgraph.cli.feature_options import parse_feature
from protgraph.data.store.store_writer import write_shard
from protgraph.featurize import AllFeatures, FeaturePlan, ProteinRequest
from protgraph.file_io import file_sha256
from protgraph.prepare import split_shards
from protgraph.structure import ReadOptions
from protgraph.structure.io import FileContent, open_foldcomp_database, read_residues
from protgraph.structure.io.foldcomp_tables import TABLES, read_database_tables
from protgraph.structure.io.readers import read_atoms

__all__ = ["FEATURES", "Stage", "measure_stages", "plan_table"]

FEATURES = ("dihedral", "knn:k=30")
"""Featurizers by default."""
_WIDE = ("edge_distance", "edge_rbf")  # the store whose size the page compares
_WRITING = "writing shards"
_BOND = 2.0  # Å, longest C–N distance within a chain
_ENTRIES = Path(__file__).parents[1] / "datasets" / "pdb_core" / "structures"


@dataclass(frozen=True)
class Stage:
    """One stage of the preparation.

    Parameters
    ----------
    name : str
    per_record, per_residue : float
        CPU seconds.
    bytes_per_record, bytes_per_residue : float
        On disk, after the stage.
    """

    name: str
    per_record: float = 0.0
    per_residue: float = 0.0
    bytes_per_record: float = 0.0
    bytes_per_residue: float = 0.0


def measure_stages(
    entries: Sequence[bytes], features: Sequence[str] = FEATURES, *, lines: int = 200_000
) -> list[Stage]:
    """Measure all stages on foldcomp entries, and those of tables on synthetic ones.

    Parameters
    ----------
    entries : sequence of bytes
        Content of .fcz files.
    features : sequence of str
        Featurizers, as for ``protgraph featurize --feature``.
    lines : int
        Entries of the synthetic tables.
    """
    import foldcomp

    plan, read, step = FeaturePlan([parse_feature(text) for text in features]), ReadOptions(), AllFeatures()
    files = [FileContent(f"{i}.fcz", entry) for i, entry in enumerate(entries)]
    decompressed = _cpu(lambda: [foldcomp.decompress(entry) for entry in entries])
    residues = [read_residues(file, read) for file in files]  # the process that decompresses starts here
    count = sum(map(len, residues))
    reading = _cpu(lambda: [read_residues(file, read) for file in files])
    step(residues[0], plan, ProteinRequest("first"))
    graphs = []
    featurizing = _cpu(lambda: graphs.extend(step(own, plan, ProteinRequest(own.name)) for own in residues))
    with tempfile.TemporaryDirectory() as folder:
        written: list[Path] = []
        writing = _cpu(lambda: written.append(_write(folder, graphs, residues)))
        size = written[0].stat().st_size
        verifying = _cpu(lambda: file_sha256(written[0]))
        tables, table_bytes = _tables(Path(folder, "db"), lines)
    scheduling = _cpu(lambda: sum(1 for _ in split_shards(synthetic_records(lines))))
    return [
        Stage("foldcomp database", bytes_per_residue=sum(map(len, entries)) / count),
        Stage("tables of entries and names", tables / lines, 0.0, table_bytes / lines),
        Stage("grouping to shards", scheduling / lines),
        Stage("decompressing", 0.0, decompressed / count),
        Stage("reading and cleaning", 0.0, reading / count),
        Stage("features", 0.0, featurizing / count),
        Stage(_WRITING, 0.0, writing / count, 0.0, size / count),
        Stage("checksums", 0.0, verifying / count),
    ]


def _cpu(work: Callable[[], object]) -> float:
    begin = time.process_time()
    work()
    return time.process_time() - begin


def _write(folder: str, graphs: list, residues: list) -> Path:
    sources = [own.name for own in residues]
    write_shard(folder, "measured", graphs, residues=residues, sources=sources, checksums=["0" * 64] * len(sources))
    return next(Path(folder, "shards").iterdir())


def _tables(path: Path, lines: int) -> tuple[float, int]:
    """Return the seconds and bytes of the tables of a database with so many entries."""
    with open(f"{path}.index", "w") as index, open(f"{path}.lookup", "w") as lookup:
        for number in range(lines):
            index.write(f"{number}\t{5000 * number}\t5000\n")
            lookup.write(f"{number}\tAF-A{number:09d}-F1-model_v4\t0\n")
    tables: dict[str, np.ndarray] = {}
    seconds = _cpu(lambda: tables.update(read_database_tables(path)))
    return seconds, sum(tables[name].nbytes for name in TABLES)


def plan_table(
    stages: Sequence[Stage], *, records: int, residues: float, cores: int, price: float, shard_residues: int
) -> list[tuple[str, float, float, float, float]]:
    """Return name, CPU hours, hours, gigabytes and cost of each stage, and their sums; tables are made on one core."""
    rows = []
    for stage in stages:
        hours = records * (stage.per_record + residues * stage.per_residue) / 3600
        wall = hours if stage.per_record else hours / cores
        size = records * (stage.bytes_per_record + residues * stage.bytes_per_residue) / 1e9
        rows.append((stage.name, hours, wall, size, hours * price))
    sums = [sum(row[column] for row in rows) for column in range(1, 5)]
    return [*rows, (f"all, {records * residues / shard_residues:,.0f} shards", *sums)]


def _sample(count: int) -> list[bytes]:
    """Return the longest chains without gaps of the entries of pdb_core, compressed."""
    import foldcomp

    entries = []
    for path in sorted(_ENTRIES.glob("*.bcif"))[:count]:
        atoms = read_atoms(path).atoms
        atoms = atoms[~atoms.hetero & (atoms.altloc_id == "") & (atoms.element != "H") & (atoms.ins_code == "")]
        atoms = atoms[struc.filter_canonical_amino_acids(atoms)]
        atoms = atoms[atoms.chain_id == atoms.chain_id[0]] if len(atoms) else atoms
        if _is_continuous(atoms):
            file = PDBFile()
            file.set_structure(atoms)
            lines = [line for line in file.lines if line.startswith("ATOM")]
            entries.append(foldcomp.compress(path.stem, "\n".join(lines) + "\n"))
    return entries


def _is_continuous(atoms: struc.AtomArray) -> bool:
    """Return True for more than 50 residues of consecutive numbers, with all backbone atoms and C–N bonds."""
    numbers = np.unique(atoms.res_id)
    n, ca, c = (atoms[atoms.atom_name == name] for name in ("N", "CA", "C"))
    if len(numbers) <= 50 or (np.diff(numbers) != 1).any() or not len(n) == len(ca) == len(c) == len(numbers):
        return False
    return bool((np.linalg.norm(n.coord[1:] - c.coord[:-1], axis=1) < _BOND).all())


def main(arguments: Sequence[str] | None = None) -> None:
    """Print rates and the plan."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--database", type=Path, help="foldcomp database; default: chains of pdb_core")
    parser.add_argument("--feature", "-f", action="append", help="as for prepare; default: dihedral, knn:k=30")
    parser.add_argument("--sample", type=int, default=100, help="number of entries that are measured")
    parser.add_argument("--records", type=int, default=214_000_000)
    parser.add_argument("--residues", type=float, default=335.0, help="mean residues per record")
    parser.add_argument("--cores", type=int, default=1000)
    parser.add_argument("--price", type=float, default=0.04, help="of a core for an hour")
    parser.add_argument("--shard-residues", type=int, default=1_000_000)
    parser.add_argument("--write", action="store_true", help="write the tables of docs/large_sets.md")
    options = parser.parse_args(arguments)
    if options.database is None:
        entries = _sample(options.sample)
    else:
        database = open_foldcomp_database(options.database)
        entries = [database.read(database[i]) for i in np.linspace(0, len(database) - 1, options.sample).astype(int)]
    features = tuple(options.feature or FEATURES)
    stages = measure_stages(entries, features)
    print(f"{'stage':40} {'µs/record':>10} {'µs/residue':>10} {'B/record':>9} {'B/residue':>9}")
    for s in stages:
        rates = (1e6 * s.per_record, 1e6 * s.per_residue, s.bytes_per_record, s.bytes_per_residue)
        print(f"{s.name:40} {rates[0]:10.2f} {rates[1]:10.2f} {rates[2]:9.1f} {rates[3]:9.1f}")
    set_ = {"records": options.records, "residues": options.residues, "cores": options.cores, "price": options.price}
    print(f"\n{'stage':40} {'CPU hours':>10} {'hours':>10} {'GB':>9} {'cost':>9}")
    for name, *values in plan_table(stages, **set_, shard_residues=options.shard_residues):
        print(f"{name:40} {values[0]:10,.1f} {values[1]:10,.2f} {values[2]:9,.0f} {values[3]:9,.0f}")
    if options.write:
        from benchmarks.large_set_page import LargeSet, figures_table, stages_table, write_page

        large = LargeSet(**set_, shard_residues=options.shard_residues)
        wide = next(s.bytes_per_residue for s in measure_stages(entries, (*features, *_WIDE)) if s.name == _WRITING)
        texts = [" ".join(f"-f {name}" for name in names) for names in (features, (*features, *_WIDE))]
        figures = figures_table(stages, large, wide=wide, features=texts[0], wide_features=texts[1])
        write_page({"stages": stages_table(stages, large), "figures": figures})


if __name__ == "__main__":
    main()
