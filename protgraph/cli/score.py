"""``protgraph score``: how likely sequences are for backbones, residue by residue."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from protgraph.cli.design import Device, Files, Model, Noise, Weights, finish, load_model, read
from protgraph.errors import OptionError

if TYPE_CHECKING:
    from protgraph.design import Scores

__all__ = ["score"]


def score(
    files: Files,
    out: Annotated[Path, typer.Option("--out", "-o", help="File to write: .csv, or .npz.")],
    model: Model = "proteinmpnn.v_48_020",
    weights: Weights = None,
    mode: Annotated[
        str, typer.Option(help="Which types a residue is told: forced (before it), conditional (all), unconditional.")
    ] = "forced",
    orders: Annotated[int, typer.Option(help="Random orders to average over.")] = 1,
    sequences: Annotated[Path | None, typer.Option(help="FASTA of sequences to score, not the native ones.")] = None,
    seed: Annotated[int, typer.Option(help="Of the orders.")] = 0,
    noise: Noise = 0.0,
    device: Device = "auto",
) -> None:
    """Write the log-probability of every type at every residue, natural logarithm.

    A CSV has a row a residue: protein, sequence, chain, res_id, ins_code, type, its log-probability, then all types.
    An .npz holds log_probs (R, types), aatype (R,), ptr, proteins, sequences and residues. Residues that lack an atom
    of the backbone keep their row, without numbers. Prints the mean of -log p of each sequence.

    \b
    Examples:
      protgraph score 1ubq.cif -o scores.csv
      protgraph score 1ubq.cif --mode conditional --orders 4 -o scores.npz
      protgraph score 1ubq.cif --sequences designs.fasta -o scores.csv
    """
    from protgraph.design import read_sequences
    from protgraph.design import score as run

    if out.suffix not in (".csv", ".npz"):
        raise OptionError(f"scores are written as .csv or .npz; got {str(out)!r}")
    given = read_sequences(sequences) if sequences else ()
    network = load_model(model, weights, device)
    proteins, failures = read(files, network)
    found = list(run(network, proteins, mode=mode, orders=orders, seed=seed, noise=noise, sequences=given))
    if found:
        out.parent.mkdir(parents=True, exist_ok=True)
        (_write_csv if out.suffix == ".csv" else _write_npz)(out, found)
        for s in found:
            typer.echo(f"{s.residues.name} {s.name}".strip() + f": {s.score:.4f}")
        typer.echo(f"{sum(len(s.residues) for s in found)} residues → {out}")
    finish(failures, out, some=bool(found))


def _write_csv(path: Path, found: Sequence[Scores]) -> None:
    import math

    from protgraph.structure import ALPHABET

    types = found[0].log_probs.shape[1]
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(["protein", "sequence", "chain", "res_id", "ins_code", "type", "log_p", *ALPHABET[:types]])
        for s in found:
            r = s.residues
            for n, (chain, number, code) in enumerate(zip(r.chain, r.res_id.tolist(), r.ins_code, strict=True)):
                numbers = ["" if math.isnan(x) else f"{x:.7g}" for x in (s.each[n], *s.log_probs[n])]
                table.writerow([r.name, s.name, chain, number, code, ALPHABET[s.aatype[n]], *numbers])


def _write_npz(path: Path, found: Sequence[Scores]) -> None:
    import numpy as np

    np.savez_compressed(
        path,
        log_probs=np.concatenate([s.log_probs for s in found]),
        aatype=np.concatenate([s.aatype for s in found]),
        ptr=np.cumsum([0, *(len(s.residues) for s in found)]),
        proteins=np.array([s.residues.name for s in found]),
        sequences=np.array([s.name for s in found]),
        residues=np.concatenate([s.residues.ids for s in found]),
    )
