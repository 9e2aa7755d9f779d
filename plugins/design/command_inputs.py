"""Inputs of the commands: models that predict residue types, and proteins of structure files."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from protgraph.cli import print_reader_notes, report_failures, with_standard_input

if TYPE_CHECKING:
    from protgraph_plugins.design.run import RefusedProteins

    from protgraph.featurize import Failure
    from protgraph.model import ProteinModel
    from protgraph.structure import ReadOptions, Residues

__all__ = [
    "Device",
    "Files",
    "Model",
    "ProteinReader",
    "Weights",
    "load_model",
    "models_with_weights",
    "protein_files",
]

Files = Annotated[list[Path], typer.Argument(help="Structure files (PDB, mmCIF, BinaryCIF, .gz), or folders.")]
Model = Annotated[str, typer.Option(help="A model with published weights, or a checkpoint of 'protgraph train'.")]
Weights = Annotated[Path | None, typer.Option(help="File of weights of this model, in the published layout.")]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:1.")]


def protein_files(files: Sequence[Path]) -> list[str]:
    """Return the structure files, archive entries and graph stores of sources; FASTA files in folders are skipped.

    ``-`` is standard input.
    """
    from protgraph.featurize import expand_sources
    from protgraph.structure.io import FASTA_SUFFIXES

    files = with_standard_input(files)
    named = list(map(str, files))
    sources = []
    for source in expand_sources(files):
        is_fasta = source.lower().removesuffix(".gz").endswith(FASTA_SUFFIXES)
        if source in named or not is_fasta:
            sources.append(source)
    return sources


def load_model(name: str, weights: Path | None, device: str) -> ProteinModel:
    """Load a model that predicts residue types, by registry name with published weights or from a checkpoint.

    Raises
    ------
    OptionError
        The model has no weights, ``weights`` is given for a checkpoint, or the checkpoint used types as input.
    WiringError
        The model predicts another target.
    """
    from protgraph_plugins.design import check_design_model

    from protgraph.checkpoint import load_checkpoint
    from protgraph.errors import OptionError
    from protgraph.model import as_model_spec, find_device, pretrained

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
    from protgraph.nn import Decoder
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
    reads_all_models : bool
        All models of the files are read, and no note about the others is printed.
    """

    def __init__(
        self, sources: Sequence[str], model: ProteinModel, read: ReadOptions, *, reads_all_models: bool = False
    ) -> None:
        from dataclasses import replace

        from protgraph.featurize import ModelInputs, iter_graphs, successes

        self.failures: list[Failure] = []
        results = list(successes(iter_graphs(sources, model.plan, read=read, step=ModelInputs()), self.failures))
        reports = {p.source: p.residues.report for p in results}
        if reads_all_models:
            reports = {source: report.without("models") for source, report in reports.items()}
        print_reader_notes(reports)
        names = [p.residues.name for p in results]
        self.residues: list[Residues] = [
            replace(p.residues, name=p.source) if names.count(p.residues.name) > 1 else p.residues for p in results
        ]
        self._source = {id(r): p.source for r, p in zip(self.residues, results, strict=True)}

    def source_of(self, name: str) -> str:
        """Return the source of a protein by its name in :attr:`residues`."""
        return next(self._source[id(r)] for r in self.residues if r.name == name)

    def finish(self, out: Path | None, refused: RefusedProteins, others: Sequence[Failure] = ()) -> None:
        """List failures beside the output; exit with 1 if any protein succeeded, else with 2."""
        failures = [*self.failures_with(refused), *others]
        report_failures(failures, out, any_succeeded=len(self.residues) > len(refused))

    def failures_with(self, refused: RefusedProteins) -> list[Failure]:
        """Return the files that could not be read, and the proteins that were refused."""
        from protgraph.featurize import Failure

        return self.failures + [Failure.of(self._source[id(r)], "", e) for r, e in refused]
