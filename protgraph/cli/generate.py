"""``protgraph generate``: new sequences from a causal model."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

__all__ = ["generate_command"]


def generate_command(
    checkpoint: Annotated[Path, typer.Argument(help="What 'protgraph train' wrote, of a causal model.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="FASTA file to write.")],
    n: Annotated[int, typer.Option("--n", "-n", help="Sequences.")] = 8,
    length: Annotated[int, typer.Option(help="Residues of each, the prompt included.")] = 120,
    prompt: Annotated[str, typer.Option(help="One-letter codes that every sequence begins with.")] = "",
    temperature: Annotated[float, typer.Option(help="Below 1 sharpens probabilities, above 1 flattens them.")] = 1.0,
    top_k: Annotated[int | None, typer.Option(help="Only this many most probable residues stay possible.")] = None,
    top_p: Annotated[float | None, typer.Option(help="Only the fewest most probable ones that add up to this.")] = None,
    seed: Annotated[int, typer.Option(help="The same one gives the same sequences.")] = 0,
    cache: Annotated[bool, typer.Option(help="Keep keys and values of the residues so far.")] = True,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1.")] = "auto",
) -> None:
    """Draw sequences from a model that was trained on 'next_residue', and write them as FASTA.

    Headers give the mean log-probability (nats a residue) and the perplexity of what was generated, both under the
    model itself, whatever temperature it was drawn at.

    \b
    Examples:
      protgraph generate gpt.safetensors -o new.fasta --n 8 --length 120 --prompt MKT --temperature 0.8 --top-p 0.9
      protgraph train gpt --data pdb_core --task next_residue --epochs 2 -o gpt.safetensors
    """
    from rich.console import Console
    from rich.progress import Progress

    from protgraph.train import load_checkpoint
    from protgraph.train.generate import generate as draw
    from protgraph.train.generate import write_generated

    loaded = load_checkpoint(checkpoint)
    options = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "seed": seed}
    begun = time.perf_counter()
    with Progress(console=Console(stderr=True), transient=True) as progress:
        shown = progress.add_task("residues", total=length)
        made = draw(
            loaded,
            n=n,
            length=length,
            prompt=prompt,
            cache=cache,
            device=device,
            on_residue=lambda done: progress.update(shown, completed=done),
            **options,
        )
    seconds = time.perf_counter() - begun
    write_generated(out, made, name=loaded.model.spec.name, settings=options)
    perplexity = sum(s.perplexity for s in made) / n
    rate = n * (length - len(prompt)) / seconds
    typer.echo(f"{n} sequences of {length} residues, mean perplexity {perplexity:.2f}, {rate:.0f} residues/s → {out}")
