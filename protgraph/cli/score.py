"""``protgraph score``: compute log-probabilities of sequences for backbones, per residue."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from protgraph.cli.design import Device, Files, Model, ProteinReader, Weights, load_model, names, protein_files
from protgraph.cli.output_path import Overwrite, check_output, set_aside_if_failed
from protgraph.cli.read_options import reads_structures
from protgraph.file_io import atomic_write

if TYPE_CHECKING:
    from protgraph.design import Scores
    from protgraph.structure import ReadOptions

__all__ = ["score_command"]


@reads_structures(chains=False)
def score_command(
    files: Files,
    out: Annotated[Path, typer.Option("--out", "-o", help="Output file, .csv or .npz.")],
    model: Model = "proteinmpnn.v_48_020",
    weights: Weights = None,
    chains: Annotated[str, typer.Option(help="Chains to score, 'A,B'; the others are visible.")] = "",
    mode: Annotated[
        str, typer.Option(help="Conditioning of each residue: teacher_forced, conditional or unconditional.")
    ] = "teacher_forced",
    orders: Annotated[int, typer.Option(help="Random decoding orders to average over.")] = 1,
    sequences: Annotated[
        Path | None, typer.Option(help="FASTA file with sequences of the scored chains, in place of the native ones.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the decoding orders and the noise.")] = 0,
    noise: Annotated[float, typer.Option(help="Gaussian coordinate noise (standard deviation, Å).")] = 0.0,
    device: Device = "auto",
    overwrite: Overwrite = False,
    *,
    read: ReadOptions,
) -> None:
    """Write the log-probability of every type at every residue, and print the mean of −log p per sequence.

    CSV: one row per residue with protein, sequence, chain, res_id, ins_code, type, its log-probability, then all types.

    NPZ: log_probs (R, types), aatype (R,), ptr, proteins, sequences and residues.

    Residues with an incomplete backbone keep their row, with empty cells.

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
      protgraph score dimer.cif --chains A --sequences dimer.fasta -o scores.csv
    """
    from protgraph.design import read_design_sequences, sequences_by_protein
    from protgraph.design import score_sequences as run

    sources = protein_files(files)
    inputs = [*files, *sources, model, weights, sequences]
    out = check_output(out, inputs=inputs, overwrite=overwrite, suffixes=[".csv", ".npz"])
    with set_aside_if_failed(out):
        records = read_design_sequences(sequences) if sequences else ()
        network = load_model(model, weights, device)
        proteins, refused = ProteinReader(sources, network, read), []
        given = sequences_by_protein(records, [r.name for r in proteins.residues])
        how = {"chains": names(chains), "mode": mode, "orders": orders, "seed": seed, "noise": noise}
        scores = _print_scores(run(network, proteins.residues, **how, sequences=given, refused=refused))
        count = _write_csv(out, scores) if out.suffix == ".csv" else _write_npz(out, scores)
        if count:
            typer.echo(f"{count} residues → {out}")
        proteins.finish(out, refused)


def _print_scores(scores: Iterable[Scores]) -> Iterator[Scores]:
    for s in scores:
        typer.echo(f"{s.residues.name} {s.name}".strip() + f": {s.score:.4f}")
        yield s


def _write_npz(path: Path, scores: Iterable[Scores]) -> int:
    """Write the arrays of all sequences, and return the number of residues."""
    from protgraph.design import write_scores

    collected = list(scores)
    if collected:
        write_scores(path, collected)
    return sum(len(s.residues) for s in collected)


def _write_csv(path: Path, scores: Iterable[Scores]) -> int:
    """Write rows as they are computed, rename the file when it is complete, and return the number of rows."""
    from protgraph.structure import ALPHABET

    count = 0
    with atomic_write(path) as temporary:
        with temporary.open("w", encoding="utf-8", newline="") as file:
            table = csv.writer(file)
            for s in scores:
                if not count:
                    types = ALPHABET[: s.log_probs.shape[1]]
                    table.writerow(["protein", "sequence", "chain", "res_id", "ins_code", "type", "log_p", *types])
                table.writerows(_rows(s))
                count += len(s.residues)
        if not count:
            temporary.unlink()
    return count


def _rows(s: Scores) -> Iterator[list[object]]:
    from protgraph.structure import ALPHABET

    r, log_probs = s.residues, s.sequence_log_probs
    for n, (chain, number, code) in enumerate(zip(r.chain, r.res_id.tolist(), r.ins_code, strict=True)):
        numbers = ["" if math.isnan(x) else f"{x:.7g}" for x in (log_probs[n], *s.log_probs[n])]
        yield [r.name, s.name, chain, number, code, ALPHABET[s.aatype[n]], *numbers]
