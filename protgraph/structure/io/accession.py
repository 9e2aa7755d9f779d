"""Accessions of public structure archives and the addresses of their files."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass

from protgraph.errors import OptionError, SelectionError, suggest

__all__ = ["FORMATS", "Accession", "as_accession", "parse_accession"]

FORMATS = ("bcif", "cif")
"""Formats for download: BinaryCIF and mmCIF."""

# Environment variable and default of each archive's addresses.
_ADDRESSES = {
    ("pdb", "bcif"): ("PROTGRAPH_PDB_BCIF_URL", "https://models.rcsb.org/{id}.bcif.gz"),
    ("pdb", "cif"): ("PROTGRAPH_PDB_URL", "https://files.rcsb.org/download/{id}.cif.gz"),
    ("af", "bcif"): (
        "PROTGRAPH_AF_BCIF_URL",
        "https://alphafold.ebi.ac.uk/files/AF-{id}-F{fragment}-model_v{version}.bcif",
    ),
    ("af", "cif"): ("PROTGRAPH_AF_URL", "https://alphafold.ebi.ac.uk/files/AF-{id}-F{fragment}-model_v{version}.cif"),
}
_VERSIONS = (6, 5, 4)  # of models in AlphaFold DB, the newest first; v4 are the models of 2022

_PDB = re.compile(r"(?:pdb_0000)?([0-9][a-z0-9]{3})", re.IGNORECASE)
# UniProt's own expression for accessions, uniprot.org/help/accession_numbers
_UNIPROT = r"[OPQ][0-9][A-Z0-9]{3}[0-9]|[A-NR-Z][0-9](?:[A-Z][A-Z0-9]{2}[0-9]){1,2}"
_AF = re.compile(rf"(?:AF-)?({_UNIPROT})(?:-F([0-9]+))?(?:-model_v([0-9]+))?", re.IGNORECASE)


@dataclass(frozen=True)
class Accession:
    """One entry of an archive.

    Parameters
    ----------
    archive : {"pdb", "af"}
        Protein Data Bank or AlphaFold DB.
    id : str
        PDB id in lower case, or UniProt accession in upper case.
    fragment : int
        Fragment number of a long protein in AlphaFold DB.
    version : int, optional
        Model version in AlphaFold DB. None: the newest available.
    """

    archive: str
    id: str
    fragment: int = 1
    version: int | None = None

    @property
    def name(self) -> str:
        """Return the identifier, e.g. "1ubq" or "AF-P69905-F1"."""
        version = f"-model_v{self.version}" if self.version else ""
        return self.id if self.archive == "pdb" else f"AF-{self.id}-F{self.fragment}{version}"

    def addresses(self, form: str) -> Iterator[str]:
        """Yield the addresses at which the file may be, in the order to try.

        Raises
        ------
        OptionError
            ``form`` is not one of :data:`FORMATS`.
        """
        if form not in FORMATS:
            raise OptionError(f"unknown format {form!r}.{suggest(form, FORMATS)} Choose from {', '.join(FORMATS)}.")
        variable, default = _ADDRESSES[self.archive, form]
        pattern = os.environ.get(variable, default)
        versions = (self.version,) if self.version else _VERSIONS if "{version}" in pattern else (None,)
        for version in versions:
            yield pattern.format(id=self.id, fragment=self.fragment, version=version)


def parse_accession(text: str) -> Accession:
    """Parse "1ubq", "pdb:1ubq", "P69905", "af:P69905" or "AF-P69905-F1".

    Raises
    ------
    SelectionError
        The text is not an accession of the archive.

    Examples
    --------
    >>> parse_accession("pdb:1UBQ").name, parse_accession("P69905").name
    ('1ubq', 'AF-P69905-F1')
    """
    archive, colon, rest = text.partition(":")
    archive, rest = (archive.lower(), rest) if colon else ("", text)
    pdb, af = _PDB.fullmatch(rest), _AF.fullmatch(rest)
    if pdb and archive in ("pdb", ""):
        return Accession("pdb", pdb[1].lower())
    if af and archive in ("af", ""):
        return Accession("af", af[1].upper(), int(af[2] or 1), int(af[3]) if af[3] else None)
    other = "af" if af else "pdb"
    hint = f" Did you mean {other}:{rest}?" if archive and (pdb or af) else ""
    raise SelectionError(
        f"{text!r} is not an accession of a structure archive.{hint}\n"
        "Write a PDB id as 1ubq or pdb:1ubq, a model of AlphaFold DB as af:P69905 or AF-P69905-F1 (UniProt accession)."
    )


def as_accession(path: str | os.PathLike[str]) -> Accession | None:
    """Parse "pdb:…" or "af:…"; return None for everything else, which is a path.

    Raises
    ------
    SelectionError
        The text after the colon is not an accession.
    """
    text = os.fspath(path)
    return parse_accession(text) if text.lower().startswith(("pdb:", "af:")) else None
