"""One's own structure files as batches for a trained model; what cannot be read is listed, and the rest goes on."""

from __future__ import annotations

import csv
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from protgraph.data.graph.protein_graph import ProteinGraph
from protgraph.featurize.plan import FeaturePlan
from protgraph.structure import Residues
from protgraph.structure.io.sources import entries
from protgraph.structure.residues.alphabet import UNKNOWN
from protgraph.train.checkpoint import Checkpoint, load_checkpoint
from protgraph.train.prepare import Failure

__all__ = ["Protein", "as_checkpoint", "in_batches", "read_proteins", "write_failures"]


@dataclass(frozen=True, eq=False)
class Protein:
    """One protein of a file.

    Parameters
    ----------
    file : str
        As it was given; of a FASTA record, with "#" and its name behind it.
    residues : Residues
        Nothing hidden.
    graph : ProteinGraph
        What the model may see of it.
    """

    file: str
    residues: Residues
    graph: ProteinGraph

    @property
    def chains(self) -> str:
        """Its chains, joined by commas."""
        return ",".join(self.residues.chain_names)


def as_checkpoint(given: str | Path | Checkpoint) -> Checkpoint:
    """The checkpoint itself, or the one of a file."""
    return given if isinstance(given, Checkpoint) else load_checkpoint(given)


def read_proteins(
    files: str | Path | Iterable[str | Path],
    plan: FeaturePlan,
    failures: list[Failure],
    *,
    hidden: Collection[str] = (),
    one_chain: bool = False,
    visible_types: bool = False,
    chains: Sequence[str] | None = None,
    model: int = 1,
    altloc: str = "occupancy",
    assembly: str | None = None,
) -> Iterator[Protein]:
    """Read proteins one after the other.

    Parameters
    ----------
    files : str, Path or iterable of those
        Structure or FASTA files, or one of them.
    plan : FeaturePlan
        What to make of them.
    failures : list of Failure
        Files and chains that cannot be used are appended here.
    hidden : collection of str
        What is taken away before; see :meth:`protgraph.structure.Residues.hide`.
    one_chain : bool
        Make every chain a protein of its own.
    visible_types : bool
        Show residue types to the model, though they may be hidden from featurizers; unknown ones (X) are masked, for
        the model to guess.
    chains, model, altloc, assembly
        How every file is read; see :func:`protgraph.structure.io.sources.entries`.
    """
    how = {"chains": chains, "model": model, "altloc": altloc, "assembly": assembly}
    how |= dict.fromkeys(("ligands", "nucleic"), plan.wants_ligands)
    for file in [files] if isinstance(files, str | Path) else files:
        for label, whole in _wholes(file, how, failures):
            for names in [(name,) for name in whole.chain_names] if one_chain else [whole.chain_names]:
                try:
                    residues = whole.chains(names) if one_chain else whole  # ligands have chains of their own
                    graph = plan.precompute(residues.hide(hidden), aatype=residues.aatype if visible_types else None)
                    if visible_types:
                        graph.masked = graph.aatype == UNKNOWN
                    yield Protein(label, residues, graph)
                except Exception as e:  # noqa: BLE001 -- a foreign featurizer may raise anything; the others go on
                    failures.append(Failure.of(label, ",".join(names), e))


def _wholes(file: str | Path, how: Mapping[str, Any], failures: list[Failure]) -> Iterator[tuple[str, Residues]]:
    """The proteins of a file with all their chains, each with its label."""
    try:
        found = entries(file, **how)
    except Exception as e:  # noqa: BLE001 -- parsers raise many things on broken files; the others go on
        failures.append(Failure.of(file, "", e))
        return
    for entry in found:
        try:
            whole = entry.read()
        except Exception as e:  # noqa: BLE001 -- as above
            failures.append(Failure.of(entry.label, "", e))
            continue
        yield entry.label, whole


def in_batches(proteins: Iterable[Protein], max_nodes: int) -> Iterator[list[Protein]]:
    """Proteins in groups of at most this many residues, in order; a larger one goes alone."""
    held: list[Protein] = []
    for protein in proteins:
        if held and sum(len(p.residues) for p in held) + len(protein.residues) > max_nodes:
            yield held
            held = []
        held.append(protein)
    if held:
        yield held


def write_failures(path: str | Path, failures: Sequence[Failure]) -> Path:
    """Write which files and proteins failed, and why, as CSV: file, id, reason."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(["file", "id", "reason"])
        table.writerows([f.file, f.id, f.reason] for f in failures)
    return path
