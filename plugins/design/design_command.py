"""``protgraph design``: sample sequences for the backbones of structure files."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from protgraph.cli.console import text_console
from protgraph.cli.interrupted import end_interrupted, end_with_files_left
from protgraph.cli.output_path import FAILURES_SUFFIX, Overwrite, check_output
from protgraph.cli.read_options import chain_names, chains_option, print_reader_notes, reads_structures

if TYPE_CHECKING:
    from protgraph.design import Design
    from protgraph.design.run import RefusedProteins
    from protgraph.featurize import Failure
    from protgraph.model import ProteinModel
    from protgraph.structure import ReadOptions, Residues

__all__ = ["Device", "ProteinReader", "design_command", "load_model", "models_with_weights", "protein_files"]

ENTRY_POINTS = {"protgraph.commands": {"design": "design_command"}}

_SILENCE = 20.0  # seconds without a line when standard error is no terminal

Files = Annotated[list[Path], typer.Argument(help="Structure files (PDB, mmCIF, BinaryCIF, .gz), or folders.")]
Model = Annotated[str, typer.Option(help="A model with published weights, or a checkpoint of 'protgraph train'.")]
Weights = Annotated[Path | None, typer.Option(help="File of weights of this model, in the published layout.")]
DesignedChains = chains_option("Chains to design, 'A,B'; the others are visible and fixed.")
Seed = Annotated[int, typer.Option(help="Seed of decoding orders, types and noise.")]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:1.")]


@reads_structures(chains=False)
def design_command(
    files: Files,
    out: Annotated[Path, typer.Option("--out", "-o", help="FASTA file to write, gzipped if the name ends in .gz.")],
    model: Model = "proteinmpnn.v_48_020",
    weights: Weights = None,
    n: Annotated[int, typer.Option("--n", min=1, help="Sequences per protein and temperature.")] = 1,
    temperature: Annotated[
        str, typer.Option(help="Sampling temperatures, '0.1,0.2'; 0 takes the most probable type.")
    ] = "0.1",
    chains: DesignedChains = None,
    fixed: Annotated[str, typer.Option(help="Residues that keep their types: 'A:10-20,A:52B,A:90-,C'.")] = "",
    omit: Annotated[str, typer.Option(help="Types that are never chosen, 'CM', and tables, 'CM,T.csv'.")] = "",
    bias: Annotated[str, typer.Option(help="Terms added to logits, 'A=-1.5,P=0.3', and tables, 'A=-1.5,T.csv'.")] = "",
    pssm: Annotated[Path | None, typer.Option(help="Table of probabilities of types (a profile).")] = None,
    pssm_weight: Annotated[float, typer.Option(help="Weight of --pssm, from 0 to 1.")] = 0.5,
    pssm_log_odds: Annotated[
        Path | None,
        typer.Option(help="Table of log-odds; types up to --pssm-threshold become 1000 times less probable."),
    ] = None,
    pssm_threshold: Annotated[float, typer.Option(help="Threshold of --pssm-log-odds.")] = 0.0,
    tied: Annotated[
        list[str] | None,
        typer.Option(
            help="Chains, 'A,B', or residues, 'A:1-9,B:1-9', with equal types; weighted: 'A=1,B=-0.5'. Repeatable."
        ),
    ] = None,
    side_chains: Annotated[
        bool, typer.Option("--side-chains", help="Give side chains of fixed residues to models that use them.")
    ] = False,
    save: Annotated[
        Path | None, typer.Option(help="Also write types, scores and probabilities to this .npz file.")
    ] = None,
    seed: Seed = 0,
    noise: Annotated[
        float, typer.Option(help="Gaussian coordinate noise (standard deviation, Å), resampled for each sequence.")
    ] = 0.0,
    device: Device = "auto",
    overwrite: Overwrite = False,
    *,
    read: ReadOptions,
) -> None:
    """Sample sequences for backbones, with their scores and the recovery of the native sequence.

    Tables are CSV with the columns chain, res_id (10, 10-20, 10- or empty), optionally ins_code, and one-letter codes.

    Files that fail are listed in OUT.failures.csv and do not stop the others. The exit code is then 1, or 2 if all
    fail.

    \b
    Examples:
      protgraph design 1ubq.cif --n 8 -o designs.fasta
      protgraph design dimer.pdb --chain A --fixed A:10-20 --omit C -o d.fasta
      protgraph design trimer.pdb --tied A,B,C --save designs.npz -o designs.fasta
    """
    from protgraph.design import DesignSpec, write_design_fasta, write_designs
    from protgraph.design import design_sequences as run
    from protgraph.structure.io import FASTA_SUFFIXES

    sources = protein_files(files)
    tables = [pssm, pssm_log_odds, *omit.split(","), *bias.split(",")]
    inputs = [*files, *sources, model, weights, *tables]
    suffixes = [f"{suffix}{gz}" for gz in ("", ".gz") for suffix in FASTA_SUFFIXES]
    out = check_output(out, inputs=inputs, overwrite=overwrite, suffixes=suffixes)
    if save is not None:
        inputs.append(out)
        save = check_output(save, option="--save", inputs=inputs, overwrite=overwrite, suffixes=[".npz"])
    spec = DesignSpec(
        chains=chain_names(chains),
        fixed=fixed,
        omit=omit,
        bias=bias,
        pssm=pssm,
        pssm_weight=pssm_weight,
        pssm_log_odds=pssm_log_odds,
        pssm_threshold=pssm_threshold,
        tied=tuple(tied or ()),
    )
    options = {"copies": n, "temperature": _temperatures(temperature), "seed": seed, "noise": noise}
    network = load_model(model, weights, device)
    proteins, refused = ProteinReader(sources, network, read), []
    progress = _Progress(n * len(options["temperature"]), len(proteins.residues), keeps_designs=save is not None)
    designs = run(
        network,
        proteins.residues,
        spec,
        **options,
        details=save is not None,
        sidechains=side_chains,
        refused=refused,
        on_sequences=progress.add,
    )
    count = write_design_fasta(out, progress.records(designs, model=model, seed=seed))
    if count:
        designed = len(progress.sequences)
        typer.echo(f"{_counted(count - designed, 'sequence')} for {_counted(designed, 'protein')} → {out}")
    if progress.designs and save is not None:
        typer.echo(f"arrays → {write_designs(save, progress.designs)}")
    if progress.stopped is not None:
        _end(progress, proteins, refused, out, sources)
    proteins.finish(out, refused)


class _Progress:
    """Sequences that are sampled: a bar on a terminal, else a line at times; and what was finished before Ctrl-C.

    Parameters
    ----------
    each : int
        Sequences per protein.
    proteins : int
    keeps_designs : bool

    Attributes
    ----------
    designs : list of Design
    sequences : dict of str to int
        Name of each designed protein → number of its sequences.
    stopped : KeyboardInterrupt or None
    """

    def __init__(self, each: int, proteins: int, *, keeps_designs: bool) -> None:
        from rich.progress import Progress

        self.each, self.total, self.keeps_designs = each, each * proteins, keeps_designs
        self.designs: list[Design] = []
        self.sequences: dict[str, int] = {}
        self.stopped: KeyboardInterrupt | None = None
        self._console = text_console(stderr=True)
        self._bar = Progress(console=self._console, transient=True, disable=not self._console.is_terminal)
        self._task = self._bar.add_task("sequences", total=self.total)
        self._done, self._start, self._printed = 0, time.monotonic(), time.monotonic()

    def add(self, count: int) -> None:
        """Count sequences that were sampled."""
        self._done += count
        self._bar.advance(self._task, count)
        now = time.monotonic()
        if not self._console.is_terminal and now - self._printed > _SILENCE:
            left = (now - self._start) * (self.total / self._done - 1) / 60
            typer.echo(f"{self._done} of {self.total} sequences, about {left:.0f} min left", err=True)
            self._printed = now

    def records(self, designs: Iterator[Design], *, model: str, seed: int) -> Iterator[tuple[str, str]]:
        """Yield the FASTA records of designs, until Ctrl-C."""
        from protgraph.design import design_records

        with self._bar:
            try:
                for design in designs:
                    self.sequences[design.residues.name] = len(design.aatype)
                    if self.keeps_designs:
                        self.designs.append(design)
                    yield from design_records(design, model=model, seed=seed)
            except KeyboardInterrupt as e:
                self.stopped = e


def _end(
    progress: _Progress, proteins: ProteinReader, refused: RefusedProteins, out: Path, sources: Sequence[str]
) -> NoReturn:
    """List failures, print what was finished before Ctrl-C and how to continue, and exit."""
    from protgraph.featurize import write_failures

    failures = proteins.failures_with(refused)
    write_failures(out.with_name(f"{out.name}{FAILURES_SUFFIX}"), failures)
    e, most = progress.stopped, max(progress.sequences.values(), default=0)
    complete = [name for name, count in progress.sequences.items() if count == progress.each]
    if most and not complete:
        end_interrupted(
            e,
            f"{most} of {progress.each} sequences are finished, {out} has them. To continue, repeat the command with a "
            "smaller --n, another --seed and another --out.",
        )
    done = {proteins.source_of(name) for name in complete} | {failure.source for failure in failures}
    end_with_files_left(e, out, sources, done)


def _counted(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def _temperatures(text: str) -> list[float]:
    from protgraph.errors import OptionError

    try:
        return [float(part) for part in text.split(",")]
    except ValueError as e:
        raise OptionError(f"invalid temperature: {text!r}. Use a number, or several: '0.1,0.2'.") from e


def protein_files(files: Sequence[Path]) -> list[str]:
    """Return the structure files, archive entries and graph stores of sources; FASTA files in folders are skipped."""
    from protgraph.featurize import expand_sources
    from protgraph.structure.io import FASTA_SUFFIXES

    named = list(map(str, files))
    return [
        source
        for source in expand_sources(files)
        if source in named or not source.lower().removesuffix(".gz").endswith(FASTA_SUFFIXES)
    ]


def load_model(name: str, weights: Path | None, device: str) -> ProteinModel:
    """Load a model that predicts residue types, by registry name with published weights or from a checkpoint.

    Raises
    ------
    OptionError
        The model has no weights, ``weights`` is given for a checkpoint, or the checkpoint used types as input.
    WiringError
        The model predicts another target.
    """
    from protgraph.checkpoint import load_checkpoint
    from protgraph.design import check_design_model
    from protgraph.errors import OptionError
    from protgraph.model import pretrained
    from protgraph.model.build import as_model_spec
    from protgraph.model.devices import find_device

    if name.endswith(".safetensors"):
        if weights is not None:
            raise OptionError(f"--weights does not apply to a checkpoint: {name}. Leave it out or use a registry name.")
        trained = load_checkpoint(name)
        model = trained.single_model("design")
        if model.decoder is None and (trained.visible_types or "residue_type" not in trained.hidden):
            raise OptionError(
                f"model not usable for design: {name}. Task {trained.task!r} gives it the types of other residues as "
                "input.\nTrain it on inverse_folding."
            )
    elif as_model_spec(name).weights:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = pretrained(name, file=weights)
        for message in dict.fromkeys(str(w.message) for w in caught if issubclass(w.category, UserWarning)):
            typer.echo(f"warning: {message}", err=True)
    else:
        raise OptionError(
            f"no published weights for model {name!r}. Use a .safetensors checkpoint of 'protgraph train', or one of "
            f"{', '.join(models_with_weights())}."
        )
    check_design_model(model)
    return model.to(find_device(device)).eval()


def models_with_weights() -> list[str]:
    """Return the names of models with published weights whose last layer is a decoder."""
    from protgraph.errors import PluginLoadError
    from protgraph.nn.decoder import Decoder
    from protgraph.registry import layers, models

    names = []
    for base in models:
        try:
            family = models.family(base)
            for name in [f"{base}.{variant}" for variant in family.variants] if family else [base]:
                graph = models.get(name)
                if graph.weights and issubclass(layers.get(graph.layers[-1].name), Decoder):
                    names.append(name)
        except PluginLoadError:  # reported by protgraph doctor
            continue
    return names


class ProteinReader:
    """Proteins of files, and the files that failed.

    Parameters
    ----------
    sources : sequence of str
        Structure files, archive entries and graph stores; see :func:`protein_files`.
    model : ProteinModel
    read : ReadOptions
    """

    def __init__(self, sources: Sequence[str], model: ProteinModel, read: ReadOptions) -> None:
        from dataclasses import replace

        from protgraph.featurize import ModelInputs, iter_graphs, successes

        self.failures: list[Failure] = []
        results = list(successes(iter_graphs(sources, model.plan, read=read, step=ModelInputs()), self.failures))
        print_reader_notes({p.source: p.residues.report for p in results})
        names = [p.residues.name for p in results]
        self.residues: list[Residues] = [
            replace(p.residues, name=p.source) if names.count(p.residues.name) > 1 else p.residues for p in results
        ]
        self._source = {id(r): p.source for r, p in zip(self.residues, results, strict=True)}

    def source_of(self, name: str) -> str:
        """Return the source of a protein by its name in :attr:`residues`."""
        return next(self._source[id(r)] for r in self.residues if r.name == name)

    def finish(self, out: Path, refused: RefusedProteins, others: Sequence[Failure] = ()) -> None:
        """List failures beside the output; exit with 1 if any protein succeeded, else with 2."""
        from protgraph.cli.failures import report_failures

        failures = [*self.failures_with(refused), *others]
        report_failures(failures, out, any_succeeded=len(self.residues) > len(refused))

    def failures_with(self, refused: RefusedProteins) -> list[Failure]:
        """Return the files that could not be read, and the proteins that were refused."""
        from protgraph.featurize import Failure

        return self.failures + [Failure.of(self._source[id(r)], "", e) for r, e in refused]
