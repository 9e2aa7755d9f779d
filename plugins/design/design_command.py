"""``protgraph design``: sample sequences for the backbones of structure files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import monotonic
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
    TableOutput,
    chain_names,
    chains_option,
    check_output,
    check_output_folder,
    end_interrupted,
    end_with_files_left,
    progress_bar,
    reads_structures,
)
from protgraph.errors import OptionError

if TYPE_CHECKING:
    from protgraph_plugins.design import Design, DesignSpec, RefusedProteins

    from protgraph.inference import ResultTable
    from protgraph.model import ProteinModel
    from protgraph.structure import ReadOptions, Residues

__all__ = ["design_command"]

ENTRY_POINTS = {"protgraph.commands": {"design": "design_command"}}

_SHOWN, _WIDTH = 10, 60  # rows of a ranked table that are printed, and characters of their mutations
_LONG_RUN = 20.0  # seconds, from which an estimate is printed
_SILENCE = 20.0  # seconds without a line when standard error is no terminal

DesignedChains = chains_option("Chains to design, 'A,B'; the others are visible and fixed.")
Seed = Annotated[int, typer.Option(help="Seed of decoding orders, types and noise.")]


@reads_structures(chains=False)
def design_command(
    files: Files,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="FASTA file, gzipped if the name ends in .gz, with the ranked table OUT.csv beside it; or '-'.",
        ),
    ] = None,
    model: Model = "proteinmpnn.v_48_020",
    weights: Weights = None,
    n: Annotated[int, typer.Option("--n", min=1, help="Sequences per protein and temperature.")] = 1,
    temperature: Annotated[
        str, typer.Option(help="Sampling temperatures, '0.1,0.2'; 0 takes the most probable type.")
    ] = "0.1",
    chains: DesignedChains = None,
    redesign: Annotated[
        str, typer.Option(help="The only residues to design, e.g. a loop: 'A:45-60,A:52B'; '45-60' of a single chain.")
    ] = "",
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
    options: Annotated[
        Path | None,
        typer.Option(help="Options per file, CSV: file, then any of chains, fixed, redesign, omit, bias, tied."),
    ] = None,
    states: Annotated[
        str,
        typer.Option(help="Models of a file that one sequence must fit, '1,2,5' or 'all'."),
    ] = "",
    orders: Annotated[
        int, typer.Option(min=0, help="Random decoding orders over which the ranking averages scores; 0 does not rank.")
    ] = 8,
    structures: Annotated[
        Path | None, typer.Option(help="Folder for a structure file (.cif) of each design, NAME_RANK.cif.")
    ] = None,
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
    """Sample sequences for backbones, and rank the different ones.

    The ranked table has a row per sequence: its score, the mean of −log p per designed residue over the same random
    decoding orders for all (lower is better), the number of equal samples, the identity to the native sequence and the
    mutations. Its first rows are printed. Differences below the deviation of the scores over the orders mean nothing.

    With '-o -', standard output has the FASTA records only, and the ranked sequences are printed on standard error.

    Structure files have the backbone, with side chains of residues that keep their types.

    Tables are CSV with the columns chain, res_id (10, 10-20, 10- or empty), optionally ins_code, and one-letter codes.

    Files that fail are listed in OUT.failures.csv and do not stop the others. The exit code is then 1, or 2 if all
    fail.

    \b
    Examples:
      protgraph design 1ubq.cif --redesign A:45-60 --n 20
      protgraph design 1ubq.cif --n 8 -o designs.fasta --structures designs/
      protgraph design nmr.pdb --states all --n 8 -o designs.fasta
      protgraph design folder/ --options options.csv -o designs.fasta
      protgraph design dimer.pdb --chain A --fixed A:10-20 --omit C -o d.fasta
      protgraph design trimer.pdb --tied A,B,C --save designs.npz -o designs.fasta
    """
    from protgraph_plugins.design import (
        DesignSpec,
        design_sequences,
        design_states,
        read_states,
        write_design_fasta,
        write_designs,
    )

    from protgraph.wording import count_noun

    sources = protein_files(files)
    tables = [pssm, pssm_log_odds, options, *omit.split(","), *bias.split(",")]
    inputs = [*files, *sources, model, weights, *tables]
    output = TableOutput(out, inputs=inputs, overwrite=overwrite, suffixes=_fasta_suffixes())
    paths = _Paths.checked(output.path, save, structures, inputs=inputs, overwrite=overwrite, has_table=orders > 0)
    spec = DesignSpec(
        chains=chain_names(chains),
        fixed=fixed,
        redesign=redesign,
        omit=omit,
        bias=bias,
        pssm=pssm,
        pssm_weight=pssm_weight,
        pssm_log_odds=pssm_log_odds,
        pssm_threshold=pssm_threshold,
        tied=tuple(tied or ()),
    )
    if states:
        _check_for_states(save=save, noise=noise, side_chains=side_chains, model_number=read.model_number)
    temperatures = _temperatures(temperature)
    network = load_model(model, weights, device)
    proteins, refused = ProteinReader(sources, network, read, reads_all_models=bool(states)), []
    specs = _specs_of_proteins(proteins, options, spec)
    progress = _Progress(n * len(temperatures), proteins.residues, keeps_designs=save is not None)
    ranking = _Ranking(network, paths, output, orders=orders, seed=seed, sidechains=side_chains)
    if states:
        sample = partial(
            design_states, network, copies=n, temperature=temperatures, seed=seed, on_sequences=progress.add
        )
        states_of = partial(read_states, read=read, states=states)
        designs = _designs_of_states(sample, states_of, proteins, specs, refused, ranking)
    else:
        designs = design_sequences(
            network,
            proteins.residues,
            specs,
            copies=n,
            temperature=temperatures,
            seed=seed,
            noise=noise,
            details=save is not None,
            sidechains=side_chains,
            refused=refused,
            on_sequences=progress.add,
        )
    with output.file(".fasta") as path:
        count = write_design_fasta(path, progress.records(designs, ranking, model=model, seed=seed))
    if count and output.path is not None:
        designed = len(progress.sequences)
        output.print(f"{count_noun(count - designed, 'sequence')} for {count_noun(designed, 'protein')} → {out}")
    ranking.finish()
    if progress.designs and save is not None:
        output.print(f"arrays → {write_designs(save, progress.designs)}")
    if progress.stopped is not None:
        _end(progress, proteins, refused, output.path, sources)
    proteins.finish(output.path, refused)


@dataclass(frozen=True)
class _Paths:
    """Files that the command writes beside the FASTA file."""

    table: Path | None
    structures: Path | None

    @classmethod
    def checked(
        cls,
        out: Path | None,
        save: Path | None,
        structures: Path | None,
        *,
        inputs: Sequence[str | Path | None],
        overwrite: bool,
        has_table: bool,
    ) -> _Paths:
        """Return the files beside the FASTA file ``out``, after a check that each can be written."""
        table = None
        if out is not None and has_table:
            table = out.with_name(out.name.removesuffix(".gz")).with_suffix(".csv")
            inputs = [*inputs, out]
            check_output(table, option="table of --out", inputs=inputs, overwrite=overwrite)
        if save is not None:
            check_output(save, option="--save", inputs=inputs, overwrite=overwrite, suffixes=[".npz"])
        if structures is not None:
            if not has_table:
                raise OptionError("--structures writes ranked designs, and --orders 0 does not rank. Use --orders 8.")
            check_output_folder(structures, option="--structures", inputs=inputs, overwrite=overwrite, apart=True)
        return cls(table, structures)


def _fasta_suffixes() -> list[str]:
    from protgraph.structure.io import FASTA_SUFFIXES

    return [f"{suffix}{gz}" for gz in ("", ".gz") for suffix in FASTA_SUFFIXES]


def _specs_of_proteins(proteins: ProteinReader, options: Path | None, spec: DesignSpec) -> dict[str, DesignSpec]:
    """Return the options of each protein by its name; a file that the table lacks has those of the command line."""
    from protgraph_plugins.design import read_design_specs

    by_file = {} if options is None else read_design_specs(options, spec)
    specs: dict[str, DesignSpec] = {}
    used: set[str] = set()
    for residues in proteins.residues:
        source = proteins.source_of(residues.name)
        names = [name for name in (source, Path(source).name, residues.name) if name in by_file]
        specs[residues.name] = by_file[names[0]] if names else spec
        used.update(names[:1])
    unused = [name for name in by_file if name not in used]
    if unused:
        raise OptionError(f"--options {str(options)!r}: no file {unused[0]!r} among the files of the command.")
    return specs


def _check_for_states(*, save: Path | None, noise: float, side_chains: bool, model_number: int) -> None:
    """Raise for options that designs of several states do not have."""
    options = {
        "--save": save is not None,
        "--noise": bool(noise),
        "--side-chains": side_chains,
        "--model-number": model_number != 1,
    }
    for option, is_given in options.items():
        if is_given:
            raise OptionError(f"{option} does not apply to --states. Leave it out.")


def _designs_of_states(
    sample: Callable[[Sequence[Residues], DesignSpec], Design],
    states_of: Callable[[str], list[Residues]],
    proteins: ProteinReader,
    specs: Mapping[str, DesignSpec],
    refused: RefusedProteins,
    ranking: _Ranking,
) -> Iterator[Design]:
    """Yield the design of each file for its states, which the ranking scores too."""
    from protgraph.errors import ProtgraphError

    for residues in proteins.residues:
        try:
            models = states_of(proteins.source_of(residues.name))
            design = sample(models, specs[residues.name])
        except ProtgraphError as e:
            refused.append((residues, e))
            continue
        ranking.states = models
        ranking.output.print(f"{residues.name}: one sequence for {len(models)} states")
        yield design


class _Ranking:
    """Ranked table of the designs, its printed rows, and structure files.

    ``states`` are those of the design that is ranked next.
    """

    def __init__(
        self, model: ProteinModel, paths: _Paths, output: TableOutput, *, orders: int, seed: int, sidechains: bool
    ) -> None:
        self.model, self.paths, self.output = model, paths, output
        self.orders, self.seed, self.sidechains = orders, seed, sidechains
        self.states: Sequence[Residues] = ()
        self.rows: list[tuple] = []
        self.structures = 0

    def add(self, design: Design) -> None:
        """Rank the sequences of a design, print the first ones, and write their structures."""
        from protgraph_plugins.design import rank_designs, ranking_table, write_design_structures

        if not self.orders:
            return
        ranked = rank_designs(
            self.model, design, orders=self.orders, seed=self.seed, sidechains=self.sidechains, states=self.states
        )
        table = ranking_table(design, ranked)
        self.rows += table.rows
        if self.paths.structures is not None:
            self.structures += len(write_design_structures(self.paths.structures, design, ranked))
        for line in _ranking_lines(table, design, self.orders):
            self.output.print(line)

    def finish(self) -> None:
        """Write the table of all designs, and print the names of files."""
        from protgraph_plugins.design.ranking import RANKING_COLUMNS

        from protgraph.inference import ResultTable
        from protgraph.wording import count_noun

        if self.rows and self.paths.table is not None:
            ResultTable(RANKING_COLUMNS, self.rows).write(self.paths.table)
            self.output.print(f"ranked table of {count_noun(len(self.rows), 'sequence')} → {self.paths.table}")
        if self.structures:
            self.output.print(f"{count_noun(self.structures, 'structure')} → {self.paths.structures}")


def _ranking_lines(table: ResultTable, design: Design, orders: int) -> list[str]:
    """Return the printed rows of a ranked table."""
    from protgraph.wording import count_noun

    first = dict(zip(table.columns, table.rows[0], strict=True))
    unique, designed = count_noun(len(table), "different sequence"), int(design.designed.sum())
    lines = [
        f"{design.residues.name}: {unique} of {len(design.aatype)}, {count_noun(designed, 'designed residue')}; score: "
        f"mean of −log p over {count_noun(orders, 'decoding order')}, native {first['native_score']:.3f}",
        "  rank   score  deviation  copies  identity  mutations",
    ]
    for row in table.rows[:_SHOWN]:
        cells = dict(zip(table.columns, row, strict=True))
        mutations = str(cells["mutations"])
        text = mutations if len(mutations) <= _WIDTH else f"{mutations[:_WIDTH]}… ({cells['n_mutations']} mutations)"
        lines.append(
            f"  {cells['rank']:>4}  {cells['score']:6.3f}  {cells['score_deviation']:9.3f}  {cells['copies']:>6}  "
            f"{cells['sequence_identity']:8.0%}  {text}"
        )
    if len(table) > _SHOWN:
        lines.append(f"  … {len(table) - _SHOWN} more")
    return lines


class _Progress:
    """Sequences that are sampled: a bar on a terminal, else a line at times; and what was finished before Ctrl-C.

    ``copies`` is the number of sequences per protein. ``sequences`` has the number of finished ones by the name of the
    protein, and ``designs`` the designs, if they are kept.
    """

    def __init__(self, copies: int, proteins: Sequence[Residues], *, keeps_designs: bool) -> None:
        self.copies, self.total, self.keeps_designs = copies, copies * len(proteins), keeps_designs
        self.designs: list[Design] = []
        self.sequences: dict[str, int] = {}
        self.stopped: KeyboardInterrupt | None = None
        self._bar = progress_bar()
        self._task = self._bar.add_task("sequences", total=self.total)
        self._residues = copies * sum(map(len, proteins))
        self._done, self._done_residues = 0, 0
        self._start = self._printed = monotonic()

    def add(self, sequences: int, residues: int) -> None:
        """Count sequences that were sampled; after the first ones, which are few, print an estimate of a long run."""
        from protgraph.wording import format_duration

        is_first = self._done == 0
        self._done, self._done_residues = self._done + sequences, self._done_residues + residues
        self._bar.advance(self._task, sequences)
        now = monotonic()
        left = (now - self._start) * (self._residues / self._done_residues - 1)
        if is_first and left > _LONG_RUN:
            typer.echo(f"estimate: {self.total:,} sequences, about {format_duration(left)}", err=True)
        elif self._bar.disable and now - self._printed > _SILENCE and self._done < self.total:
            typer.echo(f"{self._done:,} of {self.total:,} sequences, about {format_duration(left)} left", err=True)
        else:
            return
        self._printed = now

    def records(
        self, designs: Iterator[Design], ranking: _Ranking, *, model: str, seed: int
    ) -> Iterator[tuple[str, str]]:
        """Yield the FASTA records of designs, which are ranked too, until Ctrl-C."""
        from protgraph_plugins.design import design_records

        with self._bar:
            try:
                for design in designs:
                    self.sequences[design.residues.name] = len(design.aatype)
                    if self.keeps_designs:
                        self.designs.append(design)
                    yield from design_records(design, model=model, seed=seed)
                    ranking.add(design)
            except KeyboardInterrupt as e:
                self.stopped = e


def _end(
    progress: _Progress, proteins: ProteinReader, refused: RefusedProteins, out: Path | None, sources: Sequence[str]
) -> NoReturn:
    """List failures, print what was finished before Ctrl-C and how to continue, and exit."""
    from protgraph.featurize import write_failures

    failures = proteins.failures_with(refused)
    if out is not None:
        write_failures(out.with_name(f"{out.name}{FAILURES_SUFFIX}"), failures)
    e, most = progress.stopped, max(progress.sequences.values(), default=0)
    where = "" if out is None else f", {out} has them"
    complete = [name for name, count in progress.sequences.items() if count == progress.copies]
    if most and not complete:
        end_interrupted(
            e,
            f"{most} of {progress.copies} sequences are finished{where}. To continue, repeat the command with "
            "a smaller --n, another --seed and another --out.",
        )
    done = {proteins.source_of(name) for name in complete} | {failure.source for failure in failures}
    end_with_files_left(e, out, sources, done)


def _temperatures(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError as e:
        raise OptionError(f"invalid temperature: {text!r}. Use a number, or several: '0.1,0.2'.") from e
