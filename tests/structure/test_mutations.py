"""Real files with random damage give a graph or a typed error, in bounded time and memory, and never a wrong atom.

``PROTGRAPH_MUTATIONS=10000 pytest -m slow tests/structure/test_mutations.py`` runs ten thousand and prints a summary.
"""

from __future__ import annotations

import gzip
import io
import os
import resource
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from biotite.structure.io import pdbx

from protgraph.errors import ProtgraphError
from protgraph.featurize.plan import FeaturePlan
from protgraph.registry.component import component
from protgraph.structure import Residues, clean, load_structure
from protgraph.structure.io.readers import read_atoms

TRIALS = int(os.environ.get("PROTGRAPH_MUTATIONS", "600"))
ENTRIES = ("1l2y", "1k6p", "1o1z", "5zng", "1igy")
SECONDS, MEBIBYTES = 30, 2048  # per file, and above the initial memory of the process
KINDS = ("cut", "bytes", "lines", "nan", "far", "twice")


@dataclass(frozen=True)
class Damaged:
    """Content of a damaged file, and the number of atoms with impossible coordinates."""

    content: bytes
    kind: str
    spoiled: int = 0


class Source:
    """One entry in one format."""

    def __init__(self, path: Path) -> None:
        self.suffix, self.content = path.suffix, path.read_bytes()
        self.residues = clean(load_structure(path))
        self.atoms = _all_places(path)
        self.lines, self.models = self.content.split(b"\n"), self.residues.report.models
        first_model = next((i for i, line in enumerate(self.lines) if line.startswith(b"ENDMDL")), len(self.lines))
        self.first = [i for i, line in enumerate(self.lines[:first_model]) if self._is_first_protein(line)]

    def _is_first_protein(self, line: bytes) -> bool:
        """Return True for a protein atom record of the first model."""
        return line.startswith(b"ATOM ") and (self.suffix == ".pdb" or line.split()[-1] == b"1")

    def damage(self, kind: str, rng: np.random.Generator) -> Damaged:
        if kind == "cut":
            return Damaged(self.content[: rng.integers(len(self.content))], kind)
        if kind == "bytes":
            content = bytearray(self.content)
            for place in rng.integers(len(content), size=rng.integers(1, 40)):
                content[place] = rng.integers(256)
            return Damaged(bytes(content), kind)
        return self._rows(kind, rng) if self.suffix == ".bcif" else self._text(kind, rng)

    def _text(self, kind: str, rng: np.random.Generator) -> Damaged:
        lines, rows = list(self.lines), rng.choice(self.first, size=rng.integers(1, 6), replace=False)
        if kind == "lines":
            i, j = rng.integers(len(lines), size=2)
            lines[i], lines[j] = lines[j], lines[i]
        elif kind == "twice":
            for i in sorted(rows, reverse=True):
                lines.insert(i, lines[i])
        else:
            for i in rows:
                lines[i] = self._spoiled(lines[i], kind)
        return Damaged(b"\n".join(lines), kind, len(rows) if kind in ("nan", "far") else 0)

    def _spoiled(self, line: bytes, kind: str) -> bytes:
        if self.suffix == ".pdb":
            return line[:30] + (b"     nan" if kind == "nan" else b"1.00e+09") + line[38:]
        words = line.split(b" ")
        place = [i for i, word in enumerate(words) if word][10]  # Cartn_x in the order of the PDB's own files
        words[place] = b"nan" if kind == "nan" else b"1000000000.0"
        return b" ".join(words)

    def _rows(self, kind: str, rng: np.random.Generator) -> Damaged:
        file = pdbx.BinaryCIFFile.read(io.BytesIO(self.content))
        site = file.block["atom_site"]
        size = site.row_count
        rows, order = rng.integers(size, size=rng.integers(1, 6)), np.arange(size)
        if kind in ("nan", "far"):
            x = site["Cartn_x"].as_array(float).copy()
            x[rows] = np.nan if kind == "nan" else 1e9
            site["Cartn_x"] = x
        elif kind == "lines":
            order[rows] = order[rng.permutation(rows)]
        else:
            order = np.sort(np.concatenate([order, rows]))
        if kind in ("lines", "twice"):
            columns = {name: column.as_array()[order] for name, column in site.items() if name in KEPT}
            file.block["atom_site"] = pdbx.BinaryCIFCategory(columns)
        out = io.BytesIO()
        file.write(out)
        return Damaged(out.getvalue(), kind)


KEPT = {"group_PDB", "id", "type_symbol", "auth_atom_id", "auth_comp_id", "auth_asym_id", "auth_seq_id", "Cartn_x",
        "Cartn_y", "Cartn_z", "occupancy", "B_iso_or_equiv", "pdbx_PDB_model_num"}  # fmt: skip


def _places(r: Residues) -> dict[tuple[str, int, str, str], bytes]:
    """Return the coordinates, as bytes, of each atom by identity."""
    keys = (r.chain[r.atom_residue], r.res_id[r.atom_residue], r.ins_code[r.atom_residue], r.atom_name)
    return dict(zip(zip(*(k.tolist() for k in keys), strict=True), map(bytes, r.atom_pos), strict=True))


def _all_places(path: Path) -> dict[tuple[str, int, str, str], set[bytes]]:
    """Return the coordinates of each atom of the first model in any conformation, by identity."""
    atoms = read_atoms(path).atoms
    columns = (atoms.chain_id, atoms.res_id, atoms.ins_code, atoms.atom_name)
    result: dict[tuple[str, int, str, str], set[bytes]] = {}
    for *key, place in zip(*(c.tolist() for c in columns), map(bytes, atoms.coord.astype(np.float32)), strict=True):
        result.setdefault(tuple(key), set()).add(place)
    return result


def _check(source: Source, damaged: Damaged, r: Residues) -> None:
    """Check the invariants of residues, and those of this kind of damage."""
    assert len(r) and len(set(r.ids)) == len(r)
    assert np.isfinite(r.pos).all() and np.isfinite(r.atom_pos).all() and np.isfinite(r.b_factor).all()
    assert (np.diff(r.atom_residue) >= 0).all() and len(np.unique(r.atom_residue)) == len(r)
    if damaged.kind in ("nan", "far"):
        assert r.report.invalid_atoms >= damaged.spoiled
    swapped = damaged.kind == "lines" and (source.suffix == ".bcif" or (source.suffix == ".pdb" and not source.models))
    if swapped or damaged.kind in ("cut", "nan", "far", "twice"):
        moved = {key for key, place in _places(r).items() if place not in source.atoms.get(key, {place})}
        assert not moved, f"atoms moved: {sorted(moved)[:3]}"
    if damaged.kind == "twice" and source.suffix != ".bcif":
        assert r.ids == source.residues.ids


@pytest.mark.slow
def test_damaged_files_give_a_graph_or_a_typed_error(shared_data, tmp_path, capsys):
    rng = np.random.default_rng(20261121)
    plan = FeaturePlan(["dihedral", component("knn", k=8), "edge_distance"])
    sources = [Source(shared_data / "formats" / f"{e}.{s}") for e in ENTRIES for s in ("pdb", "cif", "bcif")]
    outcomes: Counter[tuple[str, str]] = Counter()
    slowest, before = 0.0, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for trial in range(TRIALS):
        source, kind = sources[rng.integers(len(sources))], KINDS[trial % len(KINDS)]
        damaged = source.damage(kind, rng)
        packed = rng.random() < 0.25
        path = tmp_path / f"x{source.suffix}{'.gz' if packed else ''}"
        path.write_bytes(gzip.compress(damaged.content, 1) if packed else damaged.content)
        begun = time.perf_counter()
        try:
            residues = clean(load_structure(path))
            _check(source, damaged, residues)
            plan.featurize(plan.precompute(residues)).validate()
            outcomes[kind, "graph"] += 1
        except ProtgraphError as e:
            assert len(str(e).splitlines()) <= 3
            outcomes[kind, type(e).__name__] += 1
        except Exception as e:
            (tmp_path / "kept").write_bytes(path.read_bytes())
            raise AssertionError(f"trial {trial}: {kind} in {source.residues.name}{source.suffix}: {e!r}") from e
        slowest = max(slowest, time.perf_counter() - begun)
        assert slowest < SECONDS, f"trial {trial}: {kind} in {source.residues.name}{source.suffix}"
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert grown < MEBIBYTES
    counts = "; ".join(f"{kind}: " + ", ".join(f"{n} {what}" for (k, what), n in sorted(outcomes.items()) if k == kind)
                       for kind in KINDS)  # fmt: skip
    with capsys.disabled():
        print(f"\n{TRIALS} mutations, no traceback, slowest {slowest:.1f} s, {grown:.0f} MiB more memory: {counts}")
