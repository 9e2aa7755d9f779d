"""Options of ``protgraph predict`` that write attributions, and the writing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from protgraph.cli.output_path import check_output
from protgraph.cli.structure_output import StructureOutput
from protgraph.errors import OptionError

if TYPE_CHECKING:
    from protgraph.failure import Failure
    from protgraph.structure import ReadOptions
    from protgraph.train import Checkpoint

__all__ = ["Explain", "ExplainOutput", "ExplainResidue", "ExplainStructure"]

Explain = Annotated[
    Path | None, typer.Option(help="Also write the attribution of each residue to the prediction, .csv or .parquet.")
]
ExplainResidue = Annotated[
    str | None, typer.Option(help="Residue whose prediction is explained, e.g. A:42.  [default: mean of the protein]")
]
ExplainStructure = Annotated[
    Path | None, typer.Option(help="Also write the structure with attributions as B factors: .cif, .pdb; or a folder.")
]


class ExplainOutput:
    """Files of attributions that a command writes.

    Parameters
    ----------
    table, structure : Path, optional
        Output files.
    residue : str, optional
    sources, inputs, read, overwrite
        See :class:`protgraph.cli.structure_output.StructureOutput`.

    Raises
    ------
    OptionError
        An output cannot be written for these inputs.
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
    ) -> None:
        self.table, self.residue, self.sources, self.read = table, residue, sources, read
        for option, given in (("--explain-residue", residue), ("--explain-structure", structure)):
            if given is not None and table is None:
                raise OptionError(f"{option} {str(given)!r} needs the attributions. Add --explain FILE.")
        if table is not None:
            check_output(table, option="--explain", inputs=inputs, overwrite=overwrite, suffixes=[".csv", ".parquet"])
        options = {"sources": sources, "inputs": inputs, "read": read, "overwrite": overwrite}
        self._shown = StructureOutput(structure, None, None, None, **options)

    @property
    def outputs(self) -> list[Path]:
        """Files to write."""
        return [*self._shown.outputs, *([] if self.table is None else [self.table])]

    def write(self, trained: Checkpoint, *, value: str | None, device: str) -> list[Failure]:
        """Compute and write attributions, print how complete they are, and return what failed."""
        from protgraph.train import explain
        from protgraph.wording import count_noun

        result = explain(trained, self.sources, value=value, residue=self.residue, read=self.read, device=device)
        for line in result.completeness:
            typer.echo(line)
        if result.incomplete:
            proteins = count_noun(len(result.completeness), "protein")
            typer.echo(
                f"warning: attributions of {result.incomplete} of {proteins} are incomplete by over 1 %", err=True
            )
        result.write(self.table)
        typer.echo(f"attributions to {result.value} → {self.table}")
        return self._shown.write(result.residue_values()) if self._shown.is_used else []
