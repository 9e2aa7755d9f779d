"""Output of predicted sites, of values per residue for molecular viewers and of attributions: options and writing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from protgraph.cli.output_path import check_no_standard_output, check_output
from protgraph.errors import MissingExtraError, OptionError, OutputFileError, ProtgraphError
from protgraph.wording import count_noun

if TYPE_CHECKING:
    from protgraph.checkpoint import CallRule, Checkpoint
    from protgraph.cli.table_output import TableOutput
    from protgraph.data.datasets import Target
    from protgraph.failure import Failure
    from protgraph.inference import Predictions
    from protgraph.inference.result_table import Row
    from protgraph.structure import ReadOptions
    from protgraph.structure.io import ResidueValues, WrittenStructure

__all__ = [
    "Chimerax",
    "Defattr",
    "Explain",
    "ExplainOutput",
    "ExplainResidue",
    "ExplainStructure",
    "Pymol",
    "SiteOutput",
    "Sites",
    "Structure",
    "StructureOutput",
    "Value",
]

Structure = Annotated[
    Path | None,
    typer.Option(
        help="Also write the structure with the values as B factors: .cif, .pdb (.gz); for several files, a folder."
    ),
]
Value = Annotated[str | None, typer.Option(help="Value of each residue to write, a predicted column.")]
Defattr = Annotated[Path | None, typer.Option(help="Also write the values as a ChimeraX attribute file, .defattr.")]
Pymol = Annotated[
    Path | None, typer.Option(help="Also write a PyMOL script that colors the file of --structure, .pml.")
]
Chimerax = Annotated[
    Path | None, typer.Option(help="Also write a ChimeraX script that colors the file of --structure, .cxc.")
]
Explain = Annotated[
    Path | None, typer.Option(help="Also write the attribution of each residue to the prediction, .csv or .parquet.")
]
ExplainResidue = Annotated[
    str | None, typer.Option(help="Residue whose prediction is explained, e.g. A:42.  [default: mean of the protein]")
]
ExplainStructure = Annotated[
    Path | None, typer.Option(help="Also write the structure with attributions as B factors: .cif, .pdb; or a folder.")
]

#: Viewer → name in messages and suffix of its scripts.
_VIEWERS = {"pymol": ("PyMOL", ".pml"), "chimerax": ("ChimeraX", ".cxc")}


class StructureOutput:
    """Files for molecular viewers that a command writes.

    ``structure``, ``defattr``, ``pymol``, ``chimerax``: output files, of the options of the same names. ``sources``:
    structure and sequence files of the command. ``inputs``: all inputs of the command, which are not replaced.
    ``overwrite``: allow existing files. ``output``: table of the command: messages go to standard error if it is on
    standard output. Raises :class:`OptionError` if an output cannot be written for these inputs. Raises
    :class:`MissingExtraError` if scripts require an extension that is not installed.
    """

    def __init__(
        self,
        structure: Path | None,
        defattr: Path | None,
        pymol: Path | None,
        chimerax: Path | None,
        *,
        sources: Sequence[str],
        inputs: Sequence[str | Path],
        read: ReadOptions,
        overwrite: bool,
        output: TableOutput,
    ) -> None:
        self.structure, self.defattr, self.read, self.output = structure, defattr, read, output
        if defattr is not None:
            check_output(defattr, option="--defattr", inputs=inputs, overwrite=overwrite, suffixes=[".defattr"])
        self.scripts = {viewer: path for viewer, path in (("pymol", pymol), ("chimerax", chimerax)) if path is not None}
        for viewer, path in self.scripts.items():
            suffixes = [_VIEWERS[viewer][1]]
            check_output(path, option=f"--{viewer}", inputs=inputs, overwrite=overwrite, suffixes=suffixes)
        for viewer, path in self.scripts.items():
            if structure is None:
                raise OptionError(f"--{viewer} {str(path)!r} colors a written structure. Add --structure FILE.")
            _script_writer(viewer)
        if structure is not None:
            check_no_standard_output(structure, f"--structure {str(structure)!r}")
        self.paths = {} if structure is None else _plan(structure, sources)
        for path in self.paths.values():
            check_output(path, option="--structure", inputs=inputs, overwrite=overwrite)

    @property
    def is_used(self) -> bool:
        """True if any of the files is requested."""
        return self.structure is not None or self.defattr is not None

    def write(self, values: Mapping[str, ResidueValues]) -> list[Failure]:
        """Write the files, print their names, and return what failed.

        ``values``: source → values of its residues. Sources without a structure, such as FASTA records, are left out.
        """
        from protgraph.structure.io import write_defattr
        from protgraph.wording import count_noun

        written, failures = self._write_structures(values)
        if self.structure is not None:
            self._report(list(written.values()))
            sequences = len(set(values) - set(self.paths))
            if sequences:
                self.output.print(
                    f"{count_noun(sequences, 'sequence')} without a structure not written to {self.structure}"
                )
            values = {source: values[source] for source in values if source in written}
        if values and self.defattr is not None:
            self.output.print(f"ChimeraX attributes → {write_defattr(self.defattr, values)}")
        if written:
            self._write_scripts([structure.path for structure in written.values()], values)
        return failures

    def _write_structures(
        self, values: Mapping[str, ResidueValues]
    ) -> tuple[dict[str, WrittenStructure], list[Failure]]:
        from protgraph.failure import Failure
        from protgraph.structure.io import write_residue_values

        failures: list[Failure] = []
        written: dict[str, WrittenStructure] = {}
        for source, path in self.paths.items():
            if source not in values:
                continue
            try:
                written[source] = write_residue_values(path, source, values[source], read=self.read)
            except OutputFileError:
                raise
            except ProtgraphError as e:
                failures.append(Failure.of(source, "", e))
        return written, failures

    def _write_scripts(self, structures: Sequence[Path], values: Mapping[str, ResidueValues]) -> None:
        for viewer, path in self.scripts.items():
            script = _script_writer(viewer)(path, structures, values, attributes=self.defattr)
            self.output.print(f"{_VIEWERS[viewer][0]} script → {script}")

    def _report(self, written: Sequence[WrittenStructure]) -> None:
        """Print one line for all structures, with the numbers of residues with and without a value."""
        from protgraph.wording import count_noun

        if not written:
            return
        files = str(written[0].path) if len(written) == 1 else f"{count_noun(len(written), 'file')} in {self.structure}"
        self.output.print(f"{_describe_values(written)} → {files}")
        for w in written:
            for change in w.changes:
                typer.echo(f"note: {w.path}: {change}", err=True)


def _describe_values(written: Sequence[WrittenStructure]) -> str:
    """Return the numbers of residues with and without a value."""
    from protgraph.wording import count_noun

    residues = sum(w.residues for w in written)
    repeated = sum(w.repeated for w in written)
    without_value = sum(w.without_value for w in written)
    other = sum(w.other for w in written)
    line = f"{count_noun(residues, 'residue')} with a value"
    if repeated:
        line += f", in {residues + repeated} entries of the file"
    counts = []
    if without_value:
        counts.append(count_noun(without_value, "residue"))
    if other:
        counts.append(count_noun(other, "other molecule"))
    if counts:
        line += f"; B factor 0, since without a value, in {' and '.join(counts)}"
    return line


class ExplainOutput:
    """Files of attributions that a command writes.

    ``table``, ``structure``: output files. ``sources``, ``inputs``, ``read``, ``overwrite``, ``output``: see
    :class:`StructureOutput`. Raises :class:`OptionError` if an output cannot be written for these inputs.
    """

    def __init__(
        self,
        table: Path | None,
        residue: str | None,
        structure: Path | None,
        *,
        sources: Sequence[str],
        inputs: Sequence[str | Path],
        read: ReadOptions,
        overwrite: bool,
        output: TableOutput,
    ) -> None:
        self.table, self.residue, self.sources, self.read = table, residue, sources, read
        self.output = output
        for option, argument in (("--explain-residue", residue), ("--explain-structure", structure)):
            if argument is not None and table is None:
                raise OptionError(f"{option} {str(argument)!r} needs the attributions. Add --explain FILE.")
        if table is not None:
            _require_attributions()
            check_output(table, option="--explain", inputs=inputs, overwrite=overwrite, suffixes=[".csv", ".parquet"])
        self._structures = StructureOutput(
            structure, None, None, None, sources=sources, inputs=inputs, read=read, overwrite=overwrite, output=output
        )

    def write(self, trained: Checkpoint, *, value: str | None, device: str) -> list[Failure]:
        """Compute and write requested attributions, print how complete they are, and return what failed."""
        if self.table is None:
            return []
        from protgraph.registry import functions
        from protgraph.wording import count_noun

        explain = functions.get("explain")
        result = explain(trained, self.sources, value=value, residue=self.residue, read=self.read, device=device)
        for line in result.completeness:
            self.output.print(line)
        if result.incomplete:
            proteins = count_noun(len(result.completeness), "protein")
            typer.echo(
                f"warning: attributions of {result.incomplete} of {proteins} are incomplete by over 1 %", err=True
            )
        result.write(self.table)
        self.output.print(f"attributions to {result.value} → {self.table}")
        return self._structures.write(result.residue_values()) if self._structures.is_used else []


def _require_attributions() -> None:
    """Raise if no extension computes attributions."""
    from protgraph.registry import functions

    if "explain" not in functions:
        raise MissingExtraError(
            "--explain: no installed distribution computes attributions. Leave --explain out, or install the extension "
            "'attribution' of protgraph-pyg."
        )


def _script_writer(viewer: str) -> Callable[..., Path]:
    """Return the function that writes scripts for a viewer, from an extension."""
    from protgraph.registry import viewer_scripts

    if viewer not in viewer_scripts:
        raise MissingExtraError(
            f"--{viewer}: no installed distribution writes scripts of {_VIEWERS[viewer][0]}. Color the file of "
            "--structure by B factor, or install the extension 'view' of protgraph-pyg."
        )
    return viewer_scripts.get(viewer)


def _plan(structure: Path, sources: Sequence[str]) -> dict[str, Path]:
    """Return the output file of each structure file; files that cannot be read are left out, they fail later."""
    from protgraph.data.store.store_description import is_store
    from protgraph.structure.io import open_source
    from protgraph.structure.io.registered_readers import sequence_format
    from protgraph.structure.io.write_values import structure_format

    for source in sources:
        if is_store(source):
            raise OptionError(f"--structure: {source!r} is a graph store, without all atoms. Give the structure files.")
    is_folder = structure.is_dir() or not structure.suffix
    if not is_folder:
        structure_format(structure)
    paths: dict[str, Path] = {}
    sequences = []
    for source in sources:
        try:
            file = open_source(source)
            form = file.format
        except ProtgraphError:
            continue
        if form in ("fasta", sequence_format(file.path)):
            sequences.append(source)
        elif is_folder:
            name = Path(file.path).name
            stem = name[: len(Path(name.lower().removesuffix(".gz")).stem)]
            suffix = ".pdb" if form == "pdb" else ".cif"
            paths[source] = structure / f"{stem}{suffix}"
        else:
            paths[source] = structure
    if sequences and not paths:
        raise OptionError(f"--structure: {sequences[0]!r} has sequences only. Give structure files.")
    _check_distinct(structure, paths, is_folder=is_folder)
    return paths


def _check_distinct(structure: Path, paths: Mapping[str, Path], *, is_folder: bool) -> None:
    source_of: dict[Path, str] = {}
    for source, path in paths.items():
        if path in source_of:
            fix = "Rename one of them" if is_folder else "Give a folder"
            raise OptionError(
                f"--structure {str(structure)!r}: {source_of[path]!r} and {source!r} would be written to "
                f"{str(path)!r}. {fix}."
            )
        source_of[path] = source


# --- sites -----------------------------------------------------------------------------------------------------------

Sites = Annotated[
    Path | None,
    typer.Option(help="Table of sites, groups of called residues in contact, .csv or .parquet."),
]

#: Files, and sites of a file, that are printed, and the smallest size of a site.
_SHOWN_FILES, _SHOWN_SITES, _SMALLEST = 20, 8, 3


class SiteOutput:
    """Sites that ``protgraph predict`` prints and writes.

    ``path``: table of the sites. ``checkpoint``: name or file of the model. Its card has the rule by which residues are
    called. ``target``: what it predicts. ``sources``: structure files. Graph stores have no atoms, and thus no sites.
    ``rule``: None if nothing is called; ``reason`` states why. Raises :class:`OptionError` if a table is requested, and
    nothing is called.
    """

    def __init__(self, path: Path | None, checkpoint: str, target: Target, sources: Sequence[str]) -> None:
        from protgraph.checkpoint import find_card
        from protgraph.data.store.store_description import is_store
        from protgraph.inference.prediction_table import target_names
        from protgraph.inference.sites import has_sites

        self.path, self.reason = path, ""
        self.rule: CallRule | None = None
        stores = [source for source in sources if is_store(source)]
        card = find_card(checkpoint)
        if not has_sites(target):
            self.reason = f"the model predicts {target.name!r}, {target.kind} per {target.level}"
        elif stores:
            self.reason = f"{stores[0]!r} is a graph store, without all atoms. Give the structure files"
        else:
            self.rule = None if card is None else card.call(target_names(target)[0])
            self.reason = (
                f"no card of {checkpoint!r} has a threshold with its precision and recall on validation. 'protgraph "
                "recipe' writes such a card beside the weights"
            )
        if self.rule is None and path is not None:
            raise OptionError(f"--sites {str(path)!r}: no sites: {self.reason}.")

    def check_output_exists(self, *, has_files: bool) -> None:
        """Raise :class:`OptionError` if there are neither sites to print nor files to write."""
        if self.rule is None and not has_files:
            raise OptionError(
                f"no output: no sites to print, since {self.reason}. Add -o FILE.csv, or -o - to print a table."
            )

    def write(self, predictions: Predictions, out: TableOutput) -> None:
        """Print the ranked sites of each file, and the threshold in plain words; write the table if requested."""
        from protgraph.inference.result_table import rows_by_file
        from protgraph.inference.sites import find_sites

        if self.rule is None:
            return
        sites = find_sites(predictions)
        files, sites_of = list(dict.fromkeys(str(row[0]) for row in predictions.rows)), rows_by_file(sites.rows)
        for file in files[:_SHOWN_FILES]:
            for line in _lines(file, sites_of.get(file, [])):
                out.print(line)
        if len(files) > _SHOWN_FILES:
            out.print(f"… {count_noun(len(files) - _SHOWN_FILES, 'more file')}; --sites FILE.csv has all sites")
        out.print(_threshold_text(self.rule))
        if self.path is not None:
            out.print(f"{count_noun(len(sites), 'site')} → {sites.write(self.path)}")


def _threshold_text(rule: CallRule) -> str:
    """Return the threshold of a call in plain words, with its precision and recall on validation and test."""
    lines = [
        f"called: residues with a probability of {rule.range}, a threshold chosen on validation. A called residue is "
        f"right if {rule.truth}."
    ]
    for split, proteins in (("val", "validation"), ("test", "test")):
        if split in rule.splits:
            counts = rule.splits[split]
            lines.append(
                f"  {proteins} proteins: {counts.precision:.0%} of the called residues are right (precision), and "
                f"{counts.recall:.0%} of the residues to call are called (recall)"
            )
    return "\n".join(lines)


def _lines(file: str, rows: list[Row]) -> list[str]:
    large = [row for row in rows if int(row[2]) >= _SMALLEST]
    in_small = sum(int(row[2]) for row in rows) - sum(int(row[2]) for row in large)
    apart = f", and {count_noun(in_small, 'called residue')} in smaller groups" if in_small else ""
    lines = [f"{file}: {count_noun(len(large), 'site')} of {_SMALLEST} or more residues{apart}"]
    for _, rank, size, mean, expected, text, pymol, chimerax in large[:_SHOWN_SITES]:
        numbers = (
            f"{size} residues, mean probability {float(mean):.2f}, {float(expected):.1f} of them expected to be right"
        )
        lines += [f"  {rank}. {numbers}", f"     {text}", f"     PyMOL:    {pymol}", f"     ChimeraX: {chimerax}"]
    if len(large) > _SHOWN_SITES:
        lines.append(f"  … {count_noun(len(large) - _SHOWN_SITES, 'more site')}")
    return lines
