"""Options of predict and score that write values per residue for molecular viewers, and the writing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from protgraph.cli.output_path import check_output
from protgraph.errors import OptionError, OutputFileError, ProtgraphError

if TYPE_CHECKING:
    from protgraph.failure import Failure
    from protgraph.structure import ReadOptions
    from protgraph.structure.io import ResidueValues, WrittenStructure

__all__ = ["Chimerax", "Defattr", "Pymol", "Structure", "StructureOutput", "Value"]

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


class StructureOutput:
    """Files for molecular viewers that a command writes.

    Parameters
    ----------
    structure, defattr, pymol, chimerax : Path, optional
        Output files, of the options of the same names.
    sources : sequence of str
        Structure and sequence files of the command.
    inputs : sequence of str or Path
        All inputs of the command, which are not replaced.
    read : ReadOptions
    overwrite : bool
        Allow existing files.

    Raises
    ------
    OptionError
        An output cannot be written for these inputs.
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
    ) -> None:
        self.structure, self.defattr, self.pymol, self.chimerax, self.read = structure, defattr, pymol, chimerax, read
        scripts = {"--defattr": (defattr, ".defattr"), "--pymol": (pymol, ".pml"), "--chimerax": (chimerax, ".cxc")}
        for option, (path, suffix) in scripts.items():
            if path is not None:
                check_output(path, option=option, inputs=inputs, overwrite=overwrite, suffixes=[suffix])
        for option, path in (("--pymol", pymol), ("--chimerax", chimerax)):
            if path is not None and structure is None:
                raise OptionError(f"{option} {str(path)!r} colors a written structure. Add --structure FILE.")
        self.paths = {} if structure is None else _plan(structure, sources)
        for path in self.paths.values():
            check_output(path, option="--structure", inputs=inputs, overwrite=overwrite)

    @property
    def outputs(self) -> list[Path]:
        """Files to write."""
        scripts = (self.defattr, self.pymol, self.chimerax)
        return [*self.paths.values(), *(path for path in scripts if path is not None)]

    @property
    def is_used(self) -> bool:
        """True if any of the files is requested."""
        return self.structure is not None or self.defattr is not None

    def write(self, values: Mapping[str, ResidueValues]) -> list[Failure]:
        """Write the files, print their names, and return what failed.

        Parameters
        ----------
        values : mapping of str to ResidueValues
            Source → values of its residues. Sources without a structure, such as FASTA records, are left out.
        """
        from protgraph.failure import Failure
        from protgraph.structure.io import write_residue_values
        from protgraph.visualization.viewer_scripts import write_chimerax_script, write_defattr, write_pymol_script
        from protgraph.wording import count_noun

        failures: list[Failure] = []
        written: list[WrittenStructure] = []
        for source, path in self.paths.items():
            if source in values:
                try:
                    written.append(write_residue_values(path, source, values[source], read=self.read))
                except OutputFileError:
                    raise
                except ProtgraphError as e:
                    failures.append(Failure.of(source, "", e))
        done = {
            source: own
            for source, own in values.items()
            if self.structure is None or self.paths.get(source) in {w.path for w in written}
        }
        structures = [w.path for w in written]
        self._report(written)
        sequences = 0 if self.structure is None else len(set(values) - set(self.paths))
        if sequences:
            typer.echo(f"{count_noun(sequences, 'sequence')} without a structure not written to {self.structure}")
        if done and self.defattr is not None:
            typer.echo(f"ChimeraX attributes → {write_defattr(self.defattr, done)}")
        if structures and self.pymol is not None:
            typer.echo(f"PyMOL script → {write_pymol_script(self.pymol, structures, done)}")
        if structures and self.chimerax is not None:
            script = write_chimerax_script(self.chimerax, structures, done, attributes=self.defattr)
            typer.echo(f"ChimeraX script → {script}")
        return failures

    def _report(self, written: Sequence[WrittenStructure]) -> None:
        """Print one line for all structures, with the numbers of residues with and without a value."""
        from protgraph.wording import count_noun

        if not written:
            return
        residues, without = sum(w.residues for w in written), sum(w.without_value for w in written)
        other, repeated = sum(w.other for w in written), sum(w.repeated for w in written)
        files = str(written[0].path) if len(written) == 1 else f"{count_noun(len(written), 'file')} in {self.structure}"
        counts = [count_noun(without, "residue")] if without else []
        counts += [count_noun(other, "other molecule")] if other else []
        zero = f"; B factor 0, since without a value, in {' and '.join(counts)}" if counts else ""
        more = f", in {residues + repeated} entries of the file" if repeated else ""
        typer.echo(f"{count_noun(residues, 'residue')} with a value{more}{zero} → {files}")
        for w in written:
            for change in w.changes:
                typer.echo(f"note: {w.path}: {change}", err=True)


def _plan(structure: Path, sources: Sequence[str]) -> dict[str, Path]:
    """Return the output file of each structure file; files that cannot be read are left out, they fail later."""
    from protgraph.data.store.open_store import is_store
    from protgraph.structure.io import open_source
    from protgraph.structure.io.write_values import structure_format

    stores = [source for source in sources if is_store(source)]
    if stores:
        raise OptionError(f"--structure: {stores[0]!r} is a graph store, without all atoms. Give the structure files.")
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
        if form == "fasta":
            sequences.append(source)
        else:
            stem = Path(Path(file.path).name.lower().removesuffix(".gz")).stem
            stem = Path(file.path).name[: len(stem)]
            name = f"{stem}{'.pdb' if form == 'pdb' else '.cif'}"
            paths[source] = structure / name if is_folder else structure
    if sequences and not paths:
        raise OptionError(f"--structure: {sequences[0]!r} has sequences only. Give structure files.")
    _check_distinct(structure, paths, is_folder=is_folder)
    return paths


def _check_distinct(structure: Path, paths: Mapping[str, Path], *, is_folder: bool) -> None:
    first: dict[Path, str] = {}
    for source, path in paths.items():
        if path in first:
            fix = "Rename one of them" if is_folder else "Give a folder"
            raise OptionError(
                f"--structure {str(structure)!r}: {first[path]!r} and {source!r} would be written to {str(path)!r}. "
                f"{fix}."
            )
        first[path] = source
