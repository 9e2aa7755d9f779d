"""``protgraph score``: compute log-probabilities of sequences for backbones, per residue."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from protgraph_plugins.design.command_inputs import (
    Device,
    Files,
    Model,
    ProteinReader,
    Weights,
    load_model,
    protein_files,
)

import protgraph
from protgraph.cli import (
    Chimerax,
    Defattr,
    Overwrite,
    Pymol,
    Structure,
    StructureOutput,
    TableOutput,
    chain_names,
    chains_option,
    reads_structures,
)
from protgraph.file_io import atomic_write

if TYPE_CHECKING:
    from protgraph_plugins.design import Scores

    from protgraph.structure import ReadOptions
    from protgraph.structure.io import ResidueValues

__all__ = ["score_command"]

ENTRY_POINTS = {"protgraph.commands": {"score": "score_command"}}

ScoredChains = chains_option("Chains to score, 'A,B'; the others are visible.")
ScoreValue = Annotated[str, typer.Option(help="Value of each residue for --structure and --defattr: p or log_p.")]


@reads_structures(chains=False)
def score_command(
    files: Files,
    out: Annotated[Path, typer.Option("--out", "-o", help="Output file, .csv, .parquet, .npz, or '-'.")],
    model: Model = "proteinmpnn.v_48_020",
    weights: Weights = None,
    chains: ScoredChains = None,
    mode: Annotated[
        str, typer.Option(help="Conditioning of each residue: teacher_forced, conditional or unconditional.")
    ] = "teacher_forced",
    orders: Annotated[int, typer.Option(min=1, help="Random decoding orders to average over.")] = 1,
    sequences: Annotated[
        Path | None, typer.Option(help="FASTA file with sequences of the scored chains, in place of the native ones.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the decoding orders and the noise.")] = 0,
    noise: Annotated[float, typer.Option(help="Gaussian coordinate noise (standard deviation, Å).")] = 0.0,
    structure: Structure = None,
    value: ScoreValue = "p",
    defattr: Defattr = None,
    pymol: Pymol = None,
    chimerax: Chimerax = None,
    device: Device = "auto",
    overwrite: Overwrite = False,
    *,
    read: ReadOptions,
) -> None:
    """Write the log-probability of every type at every residue, and print the mean of −log p per sequence.

    CSV and Parquet: one row per residue with protein, sequence, chain, res_id, ins_code, type, its log-probability,
    then all types.

    NPZ: log_probs (R, types), aatype (R,), ptr, proteins, sequences and residues.

    Residues with an incomplete backbone keep their row, with empty cells.

    --structure writes the structure again, with the probability of each residue's type in percent as B factor, or with
    --value log_p its logarithm. With --sequences, it is that of the first sequence of each protein.

    In a FASTA file of 'protgraph design', sequences belong to the protein of the native header before them.

    \b
    Modes:
      teacher_forced  given the backbone and the types of residues decoded before it
      conditional     given the backbone and the types of all other residues
      unconditional   given the backbone only

    \b
    Examples:
      protgraph score 1ubq.cif -o scores.csv
      protgraph score 1ubq.cif --mode conditional --orders 4 -o scores.npz
      protgraph score dimer.cif --chain A --sequences dimer.fasta -o scores.csv
      protgraph score 1ubq.cif -o scores.csv --structure scored.cif --pymol scored.pml
    """
    from protgraph_plugins.design import read_design_sequences, score_sequences, sequences_by_protein
    from protgraph_plugins.design.results import check_score_value

    from protgraph.wording import count_noun

    sources = protein_files(files)
    inputs = [*files, *sources, model, weights, sequences]
    output = TableOutput(out, inputs=inputs, overwrite=overwrite, suffixes=list(_WRITERS))
    structures = StructureOutput(
        structure,
        defattr,
        pymol,
        chimerax,
        sources=sources,
        inputs=inputs,
        read=read,
        overwrite=overwrite,
        output=output,
    )
    check_score_value(value)
    records = read_design_sequences(sequences) if sequences else ()
    network = load_model(model, weights, device)
    proteins, refused = ProteinReader(sources, network, read), []
    values: dict[str, ResidueValues] = {}
    origin = (f"model {model}", f"mode {mode}", f"protgraph {protgraph.__version__}")

    def printed() -> Iterator[Scores]:
        scored = score_sequences(
            network,
            proteins.residues,
            chains=chain_names(chains),
            mode=mode,
            orders=orders,
            seed=seed,
            noise=noise,
            sequences=sequences_by_protein(records, [r.name for r in proteins.residues]),
            refused=refused,
        )
        for s in scored:
            output.print(f"{s.residues.name} {s.name}".strip() + f": {s.score:.4f}")
            values.setdefault(proteins.source_of(s.residues.name), s.residue_values(value, origin=origin))
            yield s

    with output.file(".csv") as path:
        count = _WRITERS[path.suffix](path, printed())
    if count and output.path is not None:
        output.print(f"{count_noun(count, 'residue')} → {output.path}")
    failures = structures.write(values) if structures.is_used and count else []
    proteins.finish(output.path, refused, failures)


def _write_npz(path: Path, scores: Iterable[Scores]) -> int:
    """Write the arrays of all sequences, and return the number of residues."""
    from protgraph_plugins.design import write_scores

    collected = list(scores)
    if collected:
        write_scores(path, collected)
    return sum(len(s.residues) for s in collected)


def _write_csv(path: Path, scores: Iterable[Scores]) -> int:
    """Write rows as they are computed, rename the file when it is complete, and return the number of rows."""
    count = 0
    with atomic_write(path) as temporary:
        with temporary.open("w", encoding="utf-8", newline="") as file:
            table = csv.writer(file)
            for s in scores:
                if not count:
                    table.writerow(_columns(s))
                for identity, numbers in _rows(s):
                    table.writerow([*identity, *("" if math.isnan(x) else f"{x:.7g}" for x in numbers)])
                count += len(s.residues)
        if not count:
            temporary.unlink()
    return count


def _write_parquet(path: Path, scores: Iterable[Scores]) -> int:
    """Write a table with a row per residue, and return the number of rows."""
    from protgraph.inference import ResultTable

    rows, columns = [], ()
    for s in scores:
        columns = _columns(s)
        rows += [(*identity, *numbers) for identity, numbers in _rows(s)]
    if rows:
        ResultTable(columns, rows).write(path)
    return len(rows)


_WRITERS = {".csv": _write_csv, ".parquet": _write_parquet, ".npz": _write_npz}


def _columns(s: Scores) -> tuple[str, ...]:
    from protgraph.structure import ALPHABET

    identity = ("protein", "sequence", "chain", "res_id", "ins_code", "type", "log_p")
    return (*identity, *ALPHABET[: s.log_probs.shape[1]])


def _rows(s: Scores) -> Iterator[tuple[tuple[str | int, ...], list[float]]]:
    """Yield protein, sequence, chain, number, insertion code and type of each residue, and its log-probabilities."""
    import numpy as np

    from protgraph.structure import ALPHABET

    r = s.residues
    identities = zip(r.chain.tolist(), r.res_id.tolist(), r.ins_code.tolist(), s.aatype.tolist(), strict=True)
    numbers = np.column_stack([s.sequence_log_probs, s.log_probs]).tolist()
    for (chain, number, code, aatype), log_probs in zip(identities, numbers, strict=True):
        yield (r.name, s.name, chain, number, code, ALPHABET[aatype]), log_probs
