"""Reading stage of the pipeline: the requested proteins of one file, which is opened once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from protgraph.errors import SelectionError
from protgraph.featurize.steps import ProteinRequest
from protgraph.structure.io.read_options import ReadOptions
from protgraph.structure.io.sources import ProteinSource, open_source, proteins_of
from protgraph.structure.residues.residues import Residues

__all__ = ["ReadProtein", "read_requests"]


@dataclass(frozen=True, eq=False)
class ReadProtein:
    """One requested protein after reading.

    Parameters
    ----------
    label : str
        The source; for a FASTA record, followed by "#" and its name.
    residues : Residues or Exception
        The protein, or the error that reading it raised.
    sha256 : str
        Hexadecimal SHA-256 of the file; "" if it was not read.
    """

    label: str
    request: ProteinRequest
    residues: Residues | Exception
    sha256: str = ""


def read_requests(requests: Sequence[ProteinRequest], read: ReadOptions) -> Iterator[ReadProtein]:
    """Read the proteins of one source; errors take the place of residues."""
    if requests[0].read is not None:
        for request in requests:
            assert request.read is not None  # contract: all requests of a source are of one kind
            sha256 = getattr(request.read, "sha256", "")
            yield ReadProtein(request.source, request, _attempt(request.read, request), sha256)
        return
    source = requests[0].source
    file = _attempt(lambda: open_source(source))
    sha256 = "" if isinstance(file, Exception) else file.sha256
    proteins = file if isinstance(file, Exception) else _attempt(lambda: proteins_of(file, read, label=source))
    for request in requests:
        for protein in _chosen(proteins, request):
            residues = protein if isinstance(protein, Exception) else _attempt(protein.read, request)
            label = request.source if isinstance(protein, Exception) else protein.label
            yield ReadProtein(label, request, residues, sha256)


def _chosen(proteins: list[ProteinSource] | Exception, request: ProteinRequest) -> list[ProteinSource | Exception]:
    """Return the proteins of a file that a request names."""
    if isinstance(proteins, Exception):
        return [proteins]
    if request.record is None:
        return list(proteins)
    names = [protein.record for protein in proteins]
    if request.record not in names:
        listed = ", ".join(repr(name) for name in names[:20] if name)
        return [SelectionError(f"{request.source}: no record {request.record!r}; records here: {listed}")]
    return [proteins[names.index(request.record)]]


def _attempt(read: Callable[[], Any], request: ProteinRequest | None = None) -> Any:
    """Return what a function returns, with the chains of a request, or the error that it raises."""
    try:
        value = read()
        return value if request is None or request.chains is None else value.chains(request.chains)
    except Exception as e:  # noqa: BLE001 -- parsers raise many types of error on broken files; the others continue
        return e
