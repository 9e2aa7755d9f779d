"""``protgraph design``: sample sequences for the backbones of structure files."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

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

from protgraph.cli import (
    FAILURES_SUFFIX,
    Overwrite,
    chain_names,
    chains_option,
    check_output,
    end_interrupted,
    end_with_files_left,
    progress_bar,
    reads_structures,
)

if TYPE_CHECKING:
    from protgraph_plugins.design import Design, RefusedProteins

    from protgraph.structure import ReadOptions

__all__ = ["design_command"]

ENTRY_POINTS = {"protgraph.commands": {"design": "design_command"}}

_SILENCE = 20.0  # seconds without a line when standard error is no terminal

DesignedChains = chains_option("Chains to design, 'A,B'; the others are visible and fixed.")
Seed = Annotated[int, typer.Option(help="Seed of decoding orders, types and noise.")]


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
    from protgraph_plugins.design import DesignSpec, design_sequences, write_design_fasta, write_designs

    from protgraph.structure.io import FASTA_SUFFIXES
    from protgraph.wording import count_noun

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
    temperatures = _temperatures(temperature)
    network = load_model(model, weights, device)
    proteins, refused = ProteinReader(sources, network, read), []
    progress = _Progress(n * len(temperatures), len(proteins.residues), keeps_designs=save is not None)
    designs = design_sequences(
        network,
        proteins.residues,
        spec,
        copies=n,
        temperature=temperatures,
        seed=seed,
        noise=noise,
        details=save is not None,
        sidechains=side_chains,
        refused=refused,
        on_sequences=progress.add,
    )
    count = write_design_fasta(out, progress.records(designs, model=model, seed=seed))
    if count:
        designed = len(progress.sequences)
        typer.echo(f"{count_noun(count - designed, 'sequence')} for {count_noun(designed, 'protein')} → {out}")
    if progress.designs and save is not None:
        typer.echo(f"arrays → {write_designs(save, progress.designs)}")
    if progress.stopped is not None:
        _end(progress, proteins, refused, out, sources)
    proteins.finish(out, refused)


class _Progress:
    """Sequences that are sampled: a bar on a terminal, else a line at times; and what was finished before Ctrl-C.

    ``copies`` is the number of sequences per protein. ``sequences`` has the number of finished ones by the name of the
    protein, and ``designs`` the designs, if they are kept.
    """

    def __init__(self, copies: int, proteins: int, *, keeps_designs: bool) -> None:
        self.copies, self.total, self.keeps_designs = copies, copies * proteins, keeps_designs
        self.designs: list[Design] = []
        self.sequences: dict[str, int] = {}
        self.stopped: KeyboardInterrupt | None = None
        self._bar = progress_bar()
        self._task = self._bar.add_task("sequences", total=self.total)
        self._done, self._start, self._printed = 0, time.monotonic(), time.monotonic()

    def add(self, count: int) -> None:
        """Count sequences that were sampled."""
        self._done += count
        self._bar.advance(self._task, count)
        now = time.monotonic()
        if self._bar.disable and now - self._printed > _SILENCE:
            left = (now - self._start) * (self.total / self._done - 1) / 60
            typer.echo(f"{self._done} of {self.total} sequences, about {left:.0f} min left", err=True)
            self._printed = now

    def records(self, designs: Iterator[Design], *, model: str, seed: int) -> Iterator[tuple[str, str]]:
        """Yield the FASTA records of designs, until Ctrl-C."""
        from protgraph_plugins.design import design_records

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
    complete = [name for name, count in progress.sequences.items() if count == progress.copies]
    if most and not complete:
        end_interrupted(
            e,
            f"{most} of {progress.copies} sequences are finished, {out} has them. To continue, repeat the command with "
            "a smaller --n, another --seed and another --out.",
        )
    done = {proteins.source_of(name) for name in complete} | {failure.source for failure in failures}
    end_with_files_left(e, out, sources, done)


def _temperatures(text: str) -> list[float]:
    from protgraph.errors import OptionError

    try:
        return [float(part) for part in text.split(",")]
    except ValueError as e:
        raise OptionError(f"invalid temperature: {text!r}. Use a number, or several: '0.1,0.2'.") from e
