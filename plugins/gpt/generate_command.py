"""Command ``protgraph generate``: sample sequences from a causal model."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from protgraph.cli import Overwrite, TableOutput, progress_bar

__all__ = ["generate_command"]

ENTRY_POINTS = {"protgraph.commands": {"generate": "generate_command"}}


def generate_command(
    checkpoint: Annotated[Path, typer.Argument(help="Checkpoint of a causal model, written by 'protgraph train'.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="FASTA file to write, or '-'.")],
    n: Annotated[int, typer.Option("--n", "-n", min=1, help="Number of sequences.")] = 8,
    length: Annotated[int, typer.Option(help="Residues per sequence, the prompt included.")] = 120,
    prompt: Annotated[str, typer.Option(help="One-letter codes at the start of every sequence.")] = "",
    temperature: Annotated[
        float, typer.Option(help="Divides the logits: below 1 sharpens, above 1 flattens probabilities.")
    ] = 1.0,
    top_k: Annotated[int | None, typer.Option(help="Sample from this many most probable residues only.")] = None,
    top_p: Annotated[
        float | None,
        typer.Option(help="Sample from the fewest most probable residues whose probabilities add up to this."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the sampling.")] = 0,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1.")] = "auto",
    overwrite: Overwrite = False,
) -> None:
    """Sample sequences from a model trained on the task 'next_residue', and write them as FASTA.

    FASTA headers have the mean log-probability (nats per residue) and the perplexity of the generated residues, both at
    temperature 1.

    \b
    Examples:
      protgraph generate gpt.safetensors -o new.fasta --n 8 --prompt MKT
      protgraph generate gpt.safetensors -o new.fasta --temperature 0.8
    """
    from protgraph_plugins.gpt.generation import generate, write_generated

    from protgraph.checkpoint import load_checkpoint
    from protgraph.structure.io import FASTA_SUFFIXES
    from protgraph.wording import count_noun

    output = TableOutput(out, inputs=[checkpoint], overwrite=overwrite, suffixes=FASTA_SUFFIXES)
    loaded = load_checkpoint(checkpoint)
    start = time.perf_counter()
    with progress_bar() as progress:
        residues = progress.add_task("residues", total=length)
        sequences = generate(
            loaded,
            n=n,
            length=length,
            prompt=prompt,
            device=device,
            on_residue=lambda done: progress.update(residues, completed=done),
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            seed=seed,
        )
    seconds = time.perf_counter() - start
    settings = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "seed": seed}
    with output.file(".fasta") as path:
        write_generated(path, sequences, name=loaded.model.spec.name, settings=settings)
    perplexity = sum(s.perplexity for s in sequences) / n
    rate = n * (length - len(prompt)) / seconds
    what = f"{count_noun(n, 'sequence')} of {count_noun(length, 'residue')}"
    place = output.path or "standard output"
    output.print(f"{what}, mean perplexity {perplexity:.2f}, {rate:.0f} residues/s → {place}")
