"""Many files to graphs: in several processes, with a record of each, and going on where an earlier run stopped."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass, field
from functools import cache
from multiprocessing import get_context
from pathlib import Path

from protgraph import __version__
from protgraph.data.graph.protein_graph import ProteinGraph
from protgraph.data.store.graph_file import read_graph_file, read_graph_info, write_graph_file
from protgraph.errors import DatasetError, ProtgraphError
from protgraph.featurize.plan import FeaturePlan
from protgraph.file_io import file_sha256
from protgraph.registry.component import ComponentSpec, as_component
from protgraph.structure.io.accession import as_accession
from protgraph.structure.io.fetch import fetch
from protgraph.structure.io.sources import ProteinSource, entries
from protgraph.structure.residues.loss_report import LossReport

__all__ = ["Outcome", "featurize_files", "graphs_of"]


@dataclass(frozen=True)
class Outcome:
    """What became of one protein of one file.

    Parameters
    ----------
    file : str
        As it was given; of a FASTA record, the path, "#" and the record's name.
    protein : str
        The graph's name; "" where there is none.
    residues, edges : int
        Of the graph.
    seconds : float
        From opening the file to the graph.
    sha256 : str
        Of the file's bytes; "" where it cannot be read.
    loss : dict
        What was left out, as :meth:`protgraph.structure.LossReport.to_dict` gives it.
    error : str
        Why there is no graph; "" where there is one.
    part : str
        File of the graph until all are done.
    """

    file: str
    protein: str = ""
    residues: int = 0
    edges: int = 0
    seconds: float = 0.0
    sha256: str = ""
    loss: dict[str, object] = field(default_factory=dict)
    error: str = ""
    part: str = ""

    @property
    def left_out(self) -> str:
        """The loss report in words."""
        return "; ".join(LossReport.from_dict(self.loss).lines())


@dataclass(frozen=True)
class _Request:
    """What is asked of every file, as plain text that another process can be given."""

    features: str
    node_type: str
    chains: tuple[str, ...] | None
    model: int
    altloc: str
    assembly: str | None
    ligands: bool
    nucleic: bool
    parts: str


def featurize_files(
    files: Iterable[str | Path],
    features: Sequence[ComponentSpec | str],
    parts: str | Path,
    *,
    chains: Sequence[str] | None = None,
    model: int = 1,
    altloc: str = "occupancy",
    assembly: str | None = None,
    ligands: bool = False,
    nucleic: bool = False,
    node_type: str = "residue",
    jobs: int = 1,
) -> Iterator[tuple[int, list[Outcome]]]:
    """Make the graphs of files one by one, in any order, and say what became of each.

    Parameters
    ----------
    files : iterable of str or Path
        Structure or FASTA files, or "pdb:1ubq".
    features : sequence of ComponentSpec or str
        Featurizers.
    parts : str or Path
        Folder for the graphs that are done. A protein whose graph is there already, made of a file of the same bytes by
        the same featurizers and version, is not made again.
    chains, model, altloc, assembly, ligands, nucleic
        See :func:`protgraph.structure.io.sources.entries`.
    node_type : {"residue", "backbone", "atom"}
        What the nodes of the graphs are.
    jobs : int
        Processes; 1 works in this one.

    Yields
    ------
    tuple of int and list of Outcome
        Place of a file among those given, and an outcome for each of its proteins: of a FASTA file there are several.

    Raises
    ------
    DatasetError
        A process died; what is done is kept.
    """
    wanted = [as_component(n) for n in features]
    plan = FeaturePlan(wanted, node_type=node_type)  # a wrong request is an error before anything is read
    ligands, nucleic = ligands or plan.wants_ligands, nucleic or plan.wants_ligands
    plain = json.dumps([n.to_dict() for n in wanted], sort_keys=True)
    only = None if chains is None else tuple(chains)
    request = _Request(plain, node_type, only, model, altloc, assembly, ligands, nucleic, str(parts))
    Path(parts).mkdir(parents=True, exist_ok=True)
    if jobs <= 1:
        yield from ((i, _file(str(file), request)) for i, file in enumerate(files))
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=_one_thread) as pool:
        waiting = {pool.submit(_file, str(file), request): i for i, file in enumerate(files)}
        try:
            for done in as_completed(waiting):
                yield waiting[done], done.result()
        except BrokenProcessPool as e:
            raise DatasetError(
                "a process died, most likely for want of memory; run again with fewer --jobs: what is done is kept"
            ) from e
        finally:
            pool.shutdown(cancel_futures=True)


def graphs_of(outcomes: Iterable[Outcome]) -> Iterator[ProteinGraph]:
    """The graphs of all outcomes that have one, in their order."""
    return (read_graph_file(o.part) for o in outcomes if o.part)


def _one_thread() -> None:
    import torch

    torch.set_num_threads(1)


@cache
def _plan(features: str, node_type: str) -> FeaturePlan:
    return FeaturePlan(json.loads(features), node_type=node_type)


def _file(file: str, request: _Request) -> list[Outcome]:
    begun = time.perf_counter()
    sha256 = ""
    try:
        path = file if (accession := as_accession(file)) is None else str(fetch(accession))
        sha256 = _digest(path)
        found = entries(
            path,
            chains=request.chains,
            model=request.model,
            altloc=request.altloc,
            assembly=request.assembly,
            ligands=request.ligands,
            nucleic=request.nucleic,
        )
    except ProtgraphError as e:
        return [Outcome(file, sha256=sha256, seconds=time.perf_counter() - begun, error=_words(e))]
    return [_protein(e, e.label.replace(path, file, 1), sha256, request) for e in found]


def _protein(entry: ProteinSource, label: str, sha256: str, request: _Request) -> Outcome:
    """The graph of one protein, in a file of its own named after everything that it depends on."""
    begun = time.perf_counter()
    key = [__version__, sha256, label, *(value for name, value in asdict(request).items() if name != "parts")]
    part = Path(request.parts) / hashlib.sha256(json.dumps(key).encode()).hexdigest()[:32]
    if part.is_file():
        return Outcome(**read_graph_info(part), part=str(part))
    try:
        plan = _plan(request.features, request.node_type)
        residues = entry.read()
        graph = plan.featurize(plan.precompute(residues))
        graph.validate()
    except Exception as e:  # noqa: BLE001 -- a foreign featurizer may raise anything; the others go on
        return Outcome(label, sha256=sha256, seconds=time.perf_counter() - begun, error=_words(e))
    loss, seconds = residues.report.to_dict(), time.perf_counter() - begun
    made = Outcome(label, residues.name, len(residues), graph.num_edges, seconds, sha256, loss)
    info = {name: value for name, value in asdict(made).items() if name != "part"}
    write_graph_file(part, graph, info=info)
    return Outcome(**info, part=str(part))


def _digest(path: str) -> str:
    """SHA-256 of a file; "" where it cannot be read, which reading it will say."""
    try:
        return file_sha256(path)
    except OSError:
        return ""


def _words(error: BaseException) -> str:
    """An error in one line; the type is said where it is none of ours."""
    text = " ".join(str(error).split())
    return text if isinstance(error, ProtgraphError) else f"{type(error).__name__}: {text}"
