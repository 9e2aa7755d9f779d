"""``protgraph design``: sequences for the backbones of one's own structure files."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from protgraph.cli.read_options import reads_structures

if TYPE_CHECKING:
    from protgraph.design import Design
    from protgraph.design.run import RefusedProteins
    from protgraph.model import ProteinModel
    from protgraph.structure import Residues
    from protgraph.train.prepare import Failure

__all__ = ["Proteins", "design_command", "load_model", "names", "writable"]

Files = Annotated[list[Path], typer.Argument(help="Structure files (PDB, mmCIF, BinaryCIF, .gz), or folders.")]
Model = Annotated[str, typer.Option(help="A model with published weights, or what 'protgraph train' wrote of one.")]
Weights = Annotated[Path | None, typer.Option(help="Weights of this model in the published layout, in a file.")]
Seed = Annotated[int, typer.Option(help="Of orders and types: the same one gives the same sequences.")]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1.")]


@reads_structures(chains=False)
def design_command(
    files: Files,
    out: Annotated[Path, typer.Option("--out", "-o", help="FASTA file to write; .gz is gzipped.")],
    model: Model = "proteinmpnn.v_48_020",
    weights: Weights = None,
    n: Annotated[int, typer.Option("--n", help="Sequences of each protein at each temperature.")] = 1,
    temperature: Annotated[str, typer.Option(help="Of the drawing, '0.1,0.2'; 0 takes the likeliest type.")] = "0.1",
    chains: Annotated[str, typer.Option(help="Chains to design, 'A,B'; the others are seen and stay.")] = "",
    fixed: Annotated[str, typer.Option(help="Residues that stay: 'A:10-20,A:52B,A:90-,C'.")] = "",
    omit: Annotated[str, typer.Option(help="Types that are not chosen, 'CM', and tables, 'CM,T.csv'.")] = "",
    bias: Annotated[str, typer.Option(help="Added to logits, 'A=-1.5,P=0.3', and tables, 'A=-1.5,T.csv'.")] = "",
    pssm: Annotated[Path | None, typer.Option(help="A table of probabilities of types.")] = None,
    pssm_weight: Annotated[float, typer.Option(help="From 0 to 1, how much --pssm counts.")] = 0.5,
    pssm_log_odds: Annotated[
        Path | None, typer.Option(help="A table of log-odds; types not above --pssm-threshold become 1000 times rarer.")
    ] = None,
    pssm_threshold: Annotated[float, typer.Option(help="For --pssm-log-odds.")] = 0.0,
    tied: Annotated[
        list[str] | None,
        typer.Option(
            help="'A,B': chains that are alike; 'A:1-9,B:1-9': residues; 'A=1,B=-0.5': weighted. Again: more."
        ),
    ] = None,
    side_chains: Annotated[
        bool, typer.Option("--side-chains", help="Show side chains of residues that stay, if the model looks at any.")
    ] = False,
    save: Annotated[Path | None, typer.Option(help="Also write types, scores, probabilities: a .npz.")] = None,
    seed: Seed = 0,
    noise: Annotated[float, typer.Option(help="Å, standard deviation on every coordinate, anew a sequence.")] = 0.0,
    device: Device = "auto",
    *,
    reading: dict[str, Any],
) -> None:
    """Draw sequences for backbones, and say how likely they are and how much of the native sequence they recover.

    Tables are CSV: chain, res_id (10, 10-20, 10- or empty), maybe ins_code, and one-letter codes.

    Files that fail do not stop the others: they are listed in OUT.failures.csv, and the exit code is 1 (2 if all fail).

    \b
    Examples:
      protgraph design 1ubq.cif --n 8 -o designs.fasta
      protgraph design dimer.pdb --chains A --fixed A:10-20 --omit C --temperature 0.1,0.3 -o designs.fasta
      protgraph design trimer.pdb --tied A,B,C --save designs.npz -o designs.fasta
    """
    from rich.console import Console
    from rich.progress import Progress

    from protgraph.design import DesignSpec, design_records, write_designs, write_design_fasta
    from protgraph.design import design_sequences as run

    writable(out)
    writable(save, ".npz")
    wish = DesignSpec(
        chains=names(chains),
        fixed=fixed,
        omit=omit,
        bias=bias,
        pssm=pssm,
        pssm_weight=pssm_weight,
        pssm_log_odds=pssm_log_odds,
        pssm_threshold=pssm_threshold,
        tied=tuple(tied or ()),
    )
    how = {"copies": n, "temperature": _temperatures(temperature), "seed": seed, "noise": noise}
    network = load_model(model, weights, device)
    proteins, refused = Proteins(files, network, **reading), []
    kept: list[Design] = []
    made = run(
        network, proteins.residues, wish, **how, details=save is not None, sidechains=side_chains, refused=refused
    )

    console = Console(stderr=True)

    def written() -> Iterator[tuple[str, str]]:
        with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
            for one in progress.track(made, total=len(proteins.residues), description="proteins"):
                if save is not None:
                    kept.append(one)
                yield from design_records(one, model=model, seed=seed)

    count = write_design_fasta(out, written())
    if count:
        done = len(proteins.residues) - len(refused)
        typer.echo(f"{_counted(count - done, 'sequence')} for {_counted(done, 'protein')} → {out}")
    if kept and save is not None:
        typer.echo(f"arrays → {write_designs(save, kept)}")
    proteins.finish(out, refused)


def _counted(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def _temperatures(words: str) -> list[float]:
    from protgraph.errors import OptionError

    try:
        return [float(word) for word in words.split(",")]
    except ValueError as e:
        raise OptionError(f"temperature={words!r}: give a number, or several, '0.1,0.2'") from e


def names(words: str) -> tuple[str, ...]:
    """Chains ``"A,B"`` one by one."""
    return tuple(filter(None, (name.strip() for name in words.split(","))))


def writable(path: Path | None, *suffixes: str) -> None:
    """That there is no folder in the place of an output, and that it has one of the suffixes.

    Raises
    ------
    OptionError
        Otherwise.
    """
    from protgraph.errors import OptionError

    if path is not None and suffixes and path.suffix not in suffixes:
        raise OptionError(f"this is written as {' or '.join(suffixes)}; got {str(path)!r}")
    if path is not None and path.is_dir():
        raise OptionError(f"{str(path)!r} is a folder: name a file to write")


def load_model(name: str, weights: Path | None, device: str) -> ProteinModel:
    """A model that tells residue types, by registry name with published weights, or out of a checkpoint.

    Raises
    ------
    OptionError
        There are no weights, or two sets of them.
    WiringError
        It predicts something else than residue types.
    """
    from protgraph.design import check_design_model
    from protgraph.errors import OptionError
    from protgraph.model import pretrained
    from protgraph.model.build import as_model_spec
    from protgraph.train import load_checkpoint
    from protgraph.train.config import find_device

    if name.endswith(".safetensors"):
        if weights is not None:
            raise OptionError(f"{name!r} has its own weights; leave --weights, or name a model of the registry")
        trained = load_checkpoint(name)
        model = trained.model
        if model.decoder is None and (trained.visible_types or "residue_type" not in trained.hidden):
            raise OptionError(
                f"{name!r} was trained on {trained.task!r}, where it is shown the types of other residues; here it "
                "would see none of them.\nTrain it on inverse_folding."
            )
    elif as_model_spec(name).weights:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            model = pretrained(name, file=weights)
        for message in dict.fromkeys(str(w.message) for w in told if issubclass(w.category, UserWarning)):
            typer.echo(f"warning: {message}", err=True)
    else:
        known = ", ".join(_with_weights())
        raise OptionError(
            f"model {name!r} has no published weights: give the .safetensors file that 'protgraph train' wrote of it, "
            f"or one of {known}"
        )
    check_design_model(model)
    return model.to(find_device(device)).eval()


def _with_weights() -> list[str]:
    """Models with published weights whose last layer is a decoder."""
    from protgraph.errors import PluginLoadError
    from protgraph.nn.decoder import Decoder
    from protgraph.registry import layers, models

    found = []
    for base in models:
        try:
            family = models.family(base)
            for name in [f"{base}.{variant}" for variant in family.variants] if family else [base]:
                graph = models.get(name)
                if graph.weights and issubclass(layers.get(graph.layers[-1].name), Decoder):
                    found.append(name)
        except PluginLoadError:  # it hurts only itself; protgraph doctor tells it
            continue
    return found


class Proteins:
    """The proteins of files, and what became of the files.

    Parameters
    ----------
    files : sequence of Path
        Structure files and folders; FASTA files in a folder are none.
    model : ProteinModel
        What they are for.
    **reading
        How files are read; see :func:`protgraph.train.files.read_proteins`.
    """

    def __init__(self, files: Sequence[Path], model: ProteinModel, /, **reading: Any) -> None:
        from dataclasses import replace

        from protgraph.cli.source_files import structure_files
        from protgraph.structure.io.fasta import FASTA_SUFFIXES
        from protgraph.train.files import read_proteins

        self.failures: list[Failure] = []
        paths = structure_files(files)
        fasta = {p for p in paths if p not in files and str(p).removesuffix(".gz").endswith(FASTA_SUFFIXES)}
        read = list(read_proteins([p for p in paths if p not in fasta], model.plan, self.failures, **reading))
        given = [p.residues.name for p in read]
        self.residues: list[Residues] = [
            replace(p.residues, name=p.file) if given.count(p.residues.name) > 1 else p.residues for p in read
        ]
        self._file = {id(r): p.file for r, p in zip(self.residues, read, strict=True)}

    def finish(self, out: Path, refused: RefusedProteins) -> None:
        """List what failed beside the output, and leave with 1 where something was done, else with 2."""
        from protgraph.train.files import write_failures
        from protgraph.train.prepare import Failure

        failures = self.failures + [Failure.of(self._file[id(r)], "", e) for r, e in refused]
        path = out.parent / f"{out.name}.failures.csv"
        if not failures:
            path.unlink(missing_ok=True)  # of a run before
            return
        first = failures[0]
        write_failures(path, failures)
        told = first.reason if first.reason.startswith(first.file) else f"{first.file}: {first.reason}"
        typer.echo(f"{len(failures)} failed; {path} says why. The first: {told}", err=True)
        raise typer.Exit(1 if len(self.residues) > len(refused) else 2)
