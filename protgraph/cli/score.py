"""``protgraph score``: how likely sequences are for backbones, residue by residue."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from protgraph.cli.design import Device, Files, Model, Proteins, Weights, load_model, names, writable
from protgraph.cli.read_options import reads_structures
from protgraph.file_io import atomic_write

if TYPE_CHECKING:
    from protgraph.design import Scores

__all__ = ["score_command"]


@reads_structures(chains=False)
def score_command(
    files: Files,
    out: Annotated[Path, typer.Option("--out", "-o", help="File to write: .csv, or .npz.")],
    model: Model = "proteinmpnn.v_48_020",
    weights: Weights = None,
    chains: Annotated[str, typer.Option(help="Chains to score, 'A,B'; the others are seen.")] = "",
    mode: Annotated[
        str, typer.Option(help="Which types a residue is told: forced (before it), conditional (all), unconditional.")
    ] = "forced",
    orders: Annotated[int, typer.Option(help="Random orders to average over.")] = 1,
    sequences: Annotated[
        Path | None, typer.Option(help="FASTA of sequences of these chains to score, not the native ones.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the orders.")] = 0,
    noise: Annotated[float, typer.Option(help="Å, standard deviation on every coordinate.")] = 0.0,
    device: Device = "auto",
    *,
    reading: dict[str, Any],
) -> None:
    """Write the log-probability of every type at every residue, natural logarithm.

    A CSV has a row a residue: protein, sequence, chain, res_id, ins_code, type, its log-probability, then all types.

    An .npz holds log_probs (R, types), aatype (R,), ptr, proteins, sequences and residues.

    Residues that lack an atom of the backbone keep their row, without numbers.

    In a FASTA file of 'protgraph design', sequences are those of the protein in the header before them.

    Prints the mean of -log p of each sequence.

    \b
    Examples:
      protgraph score 1ubq.cif -o scores.csv
      protgraph score 1ubq.cif --mode conditional --orders 4 -o scores.npz
      protgraph score dimer.cif --chains A --sequences designs.fasta -o scores.csv
    """
    from protgraph.design import sequences_by_protein, read_design_sequences, write_scores
    from protgraph.design import score_sequences as run

    writable(out, ".csv", ".npz")
    read = read_design_sequences(sequences) if sequences else ()
    network = load_model(model, weights, device)
    proteins, refused = Proteins(files, network, **reading), []
    given = sequences_by_protein(read, [r.name for r in proteins.residues])
    how = {"chains": names(chains), "mode": mode, "orders": orders, "seed": seed, "noise": noise, "sequences": given}
    found = _told(run(network, proteins.residues, **how, refused=refused))
    if out.suffix == ".csv":
        count = _write_csv(out, found)
    else:
        every = list(found)
        count = sum(len(s.residues) for s in every)
        if every:
            write_scores(out, every)
    if count:
        typer.echo(f"{count} residues → {out}")
    proteins.finish(out, refused)


def _told(found: Iterable[Scores]) -> Iterator[Scores]:
    for s in found:
        typer.echo(f"{s.residues.name} {s.name}".strip() + f": {s.score:.4f}")
        yield s


def _write_csv(path: Path, found: Iterable[Scores]) -> int:
    """Write rows as they come, under the name when all are there; say how many."""
    from protgraph.structure import ALPHABET

    count = 0
    with atomic_write(path) as temporary:
        with temporary.open("w", encoding="utf-8", newline="") as file:
            table = csv.writer(file)
            for s in found:
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

    r, each = s.residues, s.each
    for n, (chain, number, code) in enumerate(zip(r.chain, r.res_id.tolist(), r.ins_code, strict=True)):
        numbers = ["" if math.isnan(x) else f"{x:.7g}" for x in (each[n], *s.log_probs[n])]
        yield [r.name, s.name, chain, number, code, ALPHABET[s.aatype[n]], *numbers]
