"""``protgraph fetch``: download structures of the PDB and AlphaFold DB by identifier."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from protgraph.cli.console import text_console
from protgraph.cli.output_path import Overwrite, check_output_folder

__all__ = ["fetch_command"]

ENTRY_POINTS = {"protgraph.commands": {"fetch": "fetch_command"}}


def fetch_command(
    ids: Annotated[
        list[str], typer.Argument(help="1ubq or pdb:1ubq; af:P69905 or AF-P69905-F1; @ids.txt with one per line.")
    ],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder for copies of the files; the cache keeps its own.")
    ] = None,
    form: Annotated[str, typer.Option("--format", help="bcif (BinaryCIF) or cif (mmCIF).")] = "bcif",
    offline: Annotated[bool, typer.Option("--offline", help="Use the cache only, download nothing.")] = False,
    retries: Annotated[int, typer.Option(help="Attempts after the first if a server or the network fails.")] = 4,
    overwrite: Overwrite = False,
) -> None:
    """Download structures from the Protein Data Bank and AlphaFold DB to the cache.

    Complete files are not downloaded again, and interrupted downloads continue. Other commands accept the same
    identifiers, written pdb:1ubq and af:P69905, in place of files.

    Environment: PROTGRAPH_CACHE is the folder of the cache, PROTGRAPH_OFFLINE=1 forbids downloads. Addresses of other
    servers, as "…/{id}.cif.gz": PROTGRAPH_PDB_URL and PROTGRAPH_AF_URL (mmCIF), PROTGRAPH_PDB_BCIF_URL and
    PROTGRAPH_AF_BCIF_URL.

    \b
    Examples:
      protgraph fetch 1ubq AF-P69905-F1 -o structures
      protgraph fetch @ids.txt --format cif -o structures
      protgraph predict gat.safetensors pdb:1ubq -o out.csv
    """
    from rich.text import Text

    from protgraph.errors import OptionError, ProtgraphError
    from protgraph.structure.io.archives import fetch as run
    from protgraph.structure.io.sources import expand_lists
    from protgraph.structure.io.transfer import is_offline

    if retries < 0:
        raise OptionError(f"--retries {retries}. Allowed: 0 or more.")
    names = expand_lists(ids)
    if out is not None:
        check_output_folder(out, overwrite=True)  # files of other names stay
    failed = 0
    for name in names:
        try:
            path = run(name, form=form, offline=offline or is_offline(), retries=retries)
            typer.echo(f"{name} → {path if out is None else _copy(path, out, overwrite=overwrite)}")
        except ProtgraphError as e:
            failed += 1
            text_console(stderr=True).print(Text.assemble((name, "bold red"), f": {e}"), soft_wrap=True)
    if failed:
        raise typer.Exit(2 if failed == len(names) else 1)


def _copy(path: Path, folder: Path, *, overwrite: bool) -> Path:
    """Copy a file into a folder, unless it is there."""
    import shutil

    from protgraph.errors import OptionError
    from protgraph.file_io import atomic_write, file_sha256

    copy = folder / path.name
    if copy.is_file() and file_sha256(copy) == file_sha256(path):
        return copy
    if copy.exists() and not overwrite:
        raise OptionError(f"{str(copy)!r} exists and differs from the archive's file. Add --overwrite to replace it.")
    with atomic_write(copy) as temporary:
        shutil.copyfile(path, temporary)
    return copy
