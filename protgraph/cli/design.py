"""``protgraph design``: sequences for the backbones of one's own structure files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from protgraph.design import Wish
    from protgraph.model import GraphModel
    from protgraph.structure import Residues
    from protgraph.train.prepare import Failure

__all__ = ["design", "finish", "load_model", "read"]

Files = Annotated[list[Path], typer.Argument(help="Structure files (PDB, mmCIF, BinaryCIF, .gz), or folders.")]
Model = Annotated[str, typer.Option(help="A model with published weights, or what 'protgraph train' wrote of one.")]
Weights = Annotated[Path | None, typer.Option(help="Weights of this model in the published layout, in a file.")]
Seed = Annotated[int, typer.Option(help="Of orders and types: the same one gives the same sequences.")]
Noise = Annotated[float, typer.Option(help="Å, standard deviation of what is added to every coordinate.")]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1.")]


def design(
    files: Files,
    out: Annotated[Path, typer.Option("--out", "-o", help="FASTA file to write.")],
    model: Model = "proteinmpnn.v_48_020",
    weights: Weights = None,
    n: Annotated[int, typer.Option("--n", help="Sequences of each protein.")] = 1,
    temperature: Annotated[float, typer.Option(help="Of the drawing; 0 takes the likeliest type.")] = 0.1,
    chains: Annotated[str, typer.Option(help="Chains to design, 'A,B'; the others are seen and stay.")] = "",
    fixed: Annotated[str, typer.Option(help="Residues that stay: 'A:10-20,A:52B,C'.")] = "",
    omit: Annotated[str, typer.Option(help="Types that are not chosen, 'CM'; X is never.")] = "",
    bias: Annotated[str, typer.Option(help="'A=-1.5,P=0.3' on the logits, or a table (CSV).")] = "",
    pssm: Annotated[Path | None, typer.Option(help="A table (CSV) of probabilities of types.")] = None,
    pssm_weight: Annotated[float, typer.Option(help="From 0 to 1, how much the table counts.")] = 0.5,
    tied: Annotated[
        list[str] | None, typer.Option(help="'A,B': chains that are alike; 'A:1-9,B:1-9': residues. Again for more.")
    ] = None,
    seed: Seed = 0,
    noise: Noise = 0.0,
    device: Device = "auto",
) -> None:
    """Draw sequences for backbones, and say how likely they are and how much of the native sequence they recover.

    Tables have the columns chain, res_id, maybe ins_code, and one-letter codes. Files that fail do not stop the others:
    OUT.failures.csv lists them, and the exit code is 1 (2 if all fail).

    \b
    Examples:
      protgraph design 1ubq.cif --n 8 -o designs.fasta
      protgraph design dimer.pdb --chains A --fixed A:10-20 --omit C -o designs.fasta
      protgraph design trimer.pdb --tied A,B,C --temperature 0.2 -o designs.fasta
    """
    from protgraph.design import Wish, records, write_fasta
    from protgraph.design import design as run

    network = load_model(model, weights, device)
    wish = Wish(
        chains=tuple(filter(None, chains.split(","))),
        fixed=fixed,
        omit=omit + "X",
        bias=bias,
        pssm=pssm,
        pssm_weight=pssm_weight,
        tied=tuple(tied or ()),
    )
    proteins, failures = read(files, network)
    fitting, refused = _fitting(proteins, wish, network)
    found: list[tuple[str, str]] = []
    for made in run(network, fitting, wish, copies=n, temperature=temperature, seed=seed, noise=noise):
        found += records(made, model=model, temperature=temperature, seed=seed)
    if found:
        write_fasta(out, found)
        typer.echo(f"{n * len(fitting)} sequences for {len(fitting)} proteins → {out}")
    finish([*failures, *refused], out, some=bool(found))


def _fitting(proteins: Sequence[Residues], wish: Wish, model: GraphModel) -> tuple[list[Residues], list[Failure]]:
    """The proteins for which the wishes make sense, and why the others are left out."""
    from protgraph.errors import ProtgraphError
    from protgraph.train.prepare import Failure

    fitting, refused = [], []
    for residues in proteins:
        try:
            wish.constraints(residues, model.target.size)
            fitting.append(residues)
        except ProtgraphError as e:
            refused.append(Failure.of(residues.name, "", e))
    return fitting, refused


def load_model(name: str, weights: Path | None, device: str) -> GraphModel:
    """A model by registry name with published weights, or out of a checkpoint."""
    from protgraph.model import pretrained
    from protgraph.train import load_checkpoint
    from protgraph.train.config import find_device

    if name.endswith(".safetensors"):
        model = load_checkpoint(name).model
    else:
        model = pretrained(name, file=weights)
    return model.to(find_device(device))


def read(files: list[Path], model: GraphModel) -> tuple[list[Residues], list[Failure]]:
    """The proteins of the files that can be read, and why the others cannot."""
    from protgraph.cli.files import structure_files
    from protgraph.train.files import read_proteins

    failures: list[Failure] = []
    return [p.residues for p in read_proteins(structure_files(files), model.plan, failures)], failures


def finish(failures: Sequence[Failure], out: Path, *, some: bool) -> None:
    """List what failed beside the output, and leave with 1 where there is ``some`` output, else with 2."""
    if not failures:
        return
    from protgraph.train.files import write_failures

    path, first = write_failures(out.parent / f"{out.name}.failures.csv", failures), failures[0]
    typer.echo(f"{len(failures)} failed; {path} says why. The first: {first.file}: {first.reason}", err=True)
    raise typer.Exit(1 if some else 2)
