"""Options of reading a structure file, one record for every function and command that reads files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from protgraph.argument_types import check_fields
from protgraph.errors import OptionError
from protgraph.structure.io.altloc import check_altloc

__all__ = ["SEARCH", "ReadOptions"]

SEARCH = "search:"
"""Prefix of a FASTA file in ``ReadOptions.alignment``: alignments are made by a search in its sequences."""

#: Option → type in plain data.
_PLAIN_TYPES = {
    "chains": list[str] | tuple[str, ...],
    "model_number": int,
    "altloc": str,
    "assembly": str,
    "ligands": bool,
    "nucleic": bool,
    "alignment": str,
}


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """Selection of chains, model, alternate locations and assembly, and which molecules are kept.

    Parameters
    ----------
    chains : tuple of str, optional
        Author chain ids to keep; None keeps all. In a FASTA file, records of these chains.
    model_number : int
        Model of a structure file by its place, from 1.
    altloc : str
        Alternate location per residue: "occupancy" (the highest, summed over the residue), "first", or an id such as
        "B".
    assembly : str, optional
        Biological assembly to build, e.g. "1"; its copies of chain A are "A", "A-2", …. None keeps the asymmetric unit.
    ligands, nucleic : bool
        Keep ligands and nucleotides; see :func:`protgraph.structure.clean`.
    alignment : str, optional
        Alignment file, or folder of those, in which featurizers that read alignments find that of each protein by its
        sequence; "search:my.fasta" makes it from the sequences of a file. See :meth:`protgraph.Reader.align`.

    Raises
    ------
    OptionError
        ``altloc`` or ``model_number`` is not valid.

    Examples
    --------
    >>> ReadOptions(chains=["A"], assembly="1").to_dict()
    {'chains': ['A'], 'assembly': '1'}
    """

    chains: tuple[str, ...] | None = None
    model_number: int = 1
    altloc: str = "occupancy"
    assembly: str | None = None
    ligands: bool = False
    nucleic: bool = False
    alignment: str | None = None

    def __post_init__(self) -> None:
        if self.chains is not None:
            chains = (self.chains,) if isinstance(self.chains, str) else self.chains
            chains = tuple(chains) if isinstance(chains, Sequence) else chains
            object.__setattr__(self, "chains", chains)
        check_fields(self, "chains", "model_number", "altloc", "assembly", "ligands", "nucleic", "alignment")
        if self.chains == ():
            raise OptionError("ReadOptions: chains = (). Allowed: one chain or more, or None for all.")
        check_altloc(self.altloc)
        if self.model_number < 1:
            raise OptionError(f"model_number {self.model_number}: models are counted from 1")

    def with_ligands(self, needed: bool = True) -> ReadOptions:
        """Return these options with ligands and nucleotides kept if ``needed``."""
        return replace(self, ligands=True, nucleic=True) if needed else self

    def to_dict(self) -> dict[str, Any]:
        """Return the options that differ from the defaults as plain data."""
        default, own = asdict(ReadOptions()), asdict(self)
        chosen = {name: value for name, value in own.items() if value != default[name]}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in chosen.items()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], *, where: str = "read") -> ReadOptions:
        """Return the options of plain data; ``where`` names their place in errors.

        Raises :class:`OptionError` if a key or value is not valid.
        """
        from protgraph.validation import check_value, unknown_name

        for name, value in data.items():
            if name not in _PLAIN_TYPES:
                raise OptionError(f"{where}: {unknown_name(name, _PLAIN_TYPES)}")
            check_value(value, _PLAIN_TYPES[name], path=f"{where}.{name}")
        try:
            return cls(**data)
        except OptionError as e:
            raise OptionError(f"{where}: {e}") from e
