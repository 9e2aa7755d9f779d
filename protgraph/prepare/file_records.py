"""Files and proteins of graph stores as input records, and their graphs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache, partial

from protgraph.data.cache_key import alignment_stamps, digest
from protgraph.data.store.graph_store import open_store
from protgraph.errors import FetchError, SelectionError, StructureFileError
from protgraph.failure import Failure
from protgraph.featurize.pipeline import Source, graph_digest, iter_graphs, request_units
from protgraph.featurize.plan import FeaturePlan
from protgraph.featurize.result import GraphResult
from protgraph.featurize.steps import AllFeatures, ProteinRequest, StoreEntry
from protgraph.file_io import file_sha256
from protgraph.prepare.shard_task import InputRecord
from protgraph.prepare.shard_work import RecordWork
from protgraph.registry.component import ComponentSpec
from protgraph.structure.io.archives import as_accession, fetch
from protgraph.structure.io.read_options import ReadOptions
from protgraph.structure.io.registered_readers import installed_readers, split_entry
from protgraph.structure.io.sniff import read_file

__all__ = ["expected_residues", "file_records", "file_work"]

#: Bytes per residue of a file by its suffix: about the medians of PDB entries; they only set the sizes of shards.
_BYTES = {"pdb": 900.0, "ent": 900.0, "cif": 1300.0, "mmcif": 1300.0, "bcif": 200.0, "fasta": 1.2}
_COMPRESSION = 4.5  # ratio of gzip
_UNKNOWN = 300.0  # residues of an entry that is not fetched yet, or of a missing file


def file_records(sources: Source | Iterable[Source], read: ReadOptions) -> Iterator[InputRecord]:
    """Yield a record for each file, archive entry and protein of a graph store.

    ``sources``, ``read``: see :func:`protgraph.featurize.iter_graphs`.
    """
    for unit in request_units(sources, read):
        entry = unit[0].read
        if isinstance(entry, StoreEntry):
            residues = open_store(entry.path).num_residues_of(entry.number)
            yield InputRecord(f"{entry.path}#{entry.number}", residues, tuple(unit))
        elif _is_whole(unit):
            yield InputRecord(unit[0].source, expected_residues(unit[0].source))
        else:
            records = "".join(f"#{request.record}" for request in unit if request.record)
            yield InputRecord(f"{unit[0].source}{records}", expected_residues(unit[0].source), tuple(unit))


def _bytes_per_residue(path: str) -> float:
    """Return the bytes per residue of a file by its suffix; of FASTA for a suffix that is not known."""
    name = path.lower()
    stem = name.removesuffix(".gz")
    ratio = _COMPRESSION if stem != name else 1.0
    for reader in installed_readers().values():
        if stem.endswith(reader.suffixes):
            return reader.bytes_per_residue / ratio
    return _BYTES.get(stem.rpartition(".")[2], _BYTES["fasta"]) / ratio


def expected_residues(path: str) -> float:
    """Return the number of residues of a file, estimated from its size; 300 if it cannot be read yet."""
    entry = split_entry(path)
    if entry is not None:
        size = entry.reader.size(entry.container, entry.name)
        return _UNKNOWN if size is None else max(1.0, size / entry.reader.bytes_per_residue)
    try:
        size = os.stat(path).st_size
    except OSError:
        return _UNKNOWN
    return max(1.0, size / _bytes_per_residue(path))


def file_work(plan: FeaturePlan, read: ReadOptions) -> RecordWork:
    """Return the work for records of :func:`file_records`: read a file and make its graphs, with all features."""
    code = graph_digest(plan, AllFeatures())
    return RecordWork(
        results=partial(_results, plan.components, plan.node_type, read),
        content=_content,
        code=code and digest(code, read.to_dict(), alignment_stamps(read), plan.node_type),
    )


def _content(record: InputRecord) -> str:
    """Return the SHA-256 of the file; for a protein of a store, the digest of its shard and place."""
    request = _unit(record)[0]
    if isinstance(request.read, StoreEntry):
        store = open_store(request.read.path)
        number, place = store.shard_of(request.read.number)
        return digest(store.shards[number].sha256, place, request.chains)
    accession = as_accession(request.source)
    try:
        if split_entry(request.source) is not None:
            return read_file(request.source).sha256
        return file_sha256(request.source if accession is None else fetch(accession))
    except (OSError, FetchError, SelectionError, StructureFileError):
        return ""


def _results(
    components: tuple[ComponentSpec, ...], node_type: str, read: ReadOptions, record: InputRecord
) -> tuple[str, Sequence[GraphResult | Failure]]:
    """Return the digest of the content, and a graph or failure for each protein."""
    unit = _unit(record)
    results = list(iter_graphs(list(unit), _plan(components, node_type), read=read))
    if isinstance(unit[0].read, StoreEntry):
        return _content(record), results
    return next((result.sha256 for result in results if result.sha256), ""), results


def _is_whole(unit: Sequence[ProteinRequest]) -> bool:
    """Return True for all proteins of one file; its name is then all that a record keeps."""
    own = unit[0]
    return len(unit) == 1 and (own.read, own.record, own.chains, own.data, own.protein) == (None, None, None, None, "")


def _unit(record: InputRecord) -> tuple[ProteinRequest, ...]:
    """Return the requests of a record of :func:`file_records`."""
    return record.data if isinstance(record.data, tuple) else (ProteinRequest(record.label),)


@lru_cache(maxsize=4)
def _plan(components: tuple[ComponentSpec, ...], node_type: str) -> FeaturePlan:
    return FeaturePlan(components, node_type=node_type)
