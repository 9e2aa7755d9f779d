"""Exceptions that protgraph raises, with the lists and "did you mean" hints of their messages.

Each exception subclasses the builtin exception of the same meaning. Its message names what failed, where, what is
allowed and how to fix it, in at most three lines. The command line prints a :class:`ProtgraphError` as one message and
exits with code 2.
"""

from __future__ import annotations

import signal
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

__all__ = [
    "AbsentFilesError",
    "AlignmentError",
    "CheckpointError",
    "CodeChangeWarning",
    "ComponentError",
    "ComponentTypeError",
    "DatasetError",
    "DuplicateNameError",
    "EmptyStructureError",
    "ExternalProgramError",
    "FetchError",
    "FieldError",
    "Interrupted",
    "InvalidNameError",
    "LabelError",
    "LeakError",
    "MissingCoordinatesError",
    "MissingExtraError",
    "MutationError",
    "NotInArchiveError",
    "OfflineError",
    "OptionError",
    "OutputFileError",
    "PluginLoadError",
    "ProtgraphError",
    "ProtgraphWarning",
    "SelectionError",
    "StructureFileError",
    "UnknownNameError",
    "WiringError",
    "WorkerDiedError",
    "list_first",
    "suggest",
]


def suggest(name: str, choices: Iterable[str], *, also: Iterable[str] = (), cutoff: float = 0.6) -> str:
    """Return the sentence " Did you mean 'a' or 'b'?" for a misspelled name, or "" if nothing is similar.

    Upper and lower case are the same. The name itself is never suggested: then something else is wrong.

    ``name``: the misspelled name. ``choices``: allowed names. ``also``: further suggestions to append. ``cutoff``:
    least similarity, 0 to 1, of :func:`difflib.get_close_matches`.

    Examples
    --------
    >>> suggest("heds", ["heads", "dim"])
    " Did you mean 'heads'?"
    >>> suggest("heds", ["dim"]), suggest("heads", ["heads"])
    ('', '')
    >>> suggest("GCN", ["gcn"])
    " Did you mean 'gcn'?"
    """
    from difflib import get_close_matches

    folded: dict[str, list[str]] = {}
    for choice in choices:
        folded.setdefault(choice.lower(), []).append(choice)
    similar = get_close_matches(name.lower(), list(folded), n=3, cutoff=cutoff)
    near = dict.fromkeys([*(choice for key in similar for choice in folded[key]), *also])
    near.pop(name, None)
    return f" Did you mean {' or '.join(map(repr, near))}?" if near else ""


def list_first(texts: Sequence[str], limit: int) -> str:
    """Return the first texts, joined by commas, followed by "…" if there are more than ``limit``.

    Examples
    --------
    >>> list_first(["A", "B", "C"], 2)
    'A, B, …'
    """
    return ", ".join([*texts[:limit], *(["…"] if len(texts) > limit else [])])


class ProtgraphError(Exception):
    """Base class of the exceptions that protgraph raises.

    Attributes
    ----------
    failures : sequence of protgraph.failure.Failure
        Proteins that could not be used before the error, e.g. of a training run that has none left.
    """

    failures: Sequence[Any] = ()

    def __str__(self) -> str:
        # subclasses of KeyError would print the repr of the message
        return str(self.args[0]) if self.args else ""


class UnknownNameError(ProtgraphError, LookupError):
    """No component, field, target or task has this name."""


class DuplicateNameError(ProtgraphError, ValueError):
    """Two different objects are registered under one name."""


class InvalidNameError(ProtgraphError, ValueError):
    """A component cannot be registered under this name."""


class ComponentTypeError(ProtgraphError, TypeError):
    """An object that is registered, or is behind an entry point, is not a component of this kind."""


class PluginLoadError(ProtgraphError, ImportError):
    """A component of a plugin cannot be imported; other components are not affected."""


class Interrupted(KeyboardInterrupt):
    """A computation was stopped by Ctrl-C or SIGTERM.

    ``result``: what was finished before.
    """

    def __init__(self, cause: KeyboardInterrupt, result: Any) -> None:
        super().__init__("interrupted; what was finished before is the attribute 'result'")
        self.signal, self.result = getattr(cause, "signal", signal.SIGINT), result


class OptionError(ProtgraphError, TypeError):
    """An option is unknown to a component or has an invalid value."""


class OutputFileError(ProtgraphError, OSError):
    """A file could not be written, e.g. because the disk is full; an earlier file of this name is unchanged."""


class ComponentError(ProtgraphError, RuntimeError):
    """The code of a component raised an error or returned something else than it declares; the cause is attached.

    Parameters
    ----------
    kind, name : str
        E.g. "featurizer", "dihedral".
    source : str
        "distribution version", a file of ``--import``, "this session", or "" if unknown.
    protein : str
        Name of the protein that it ran on; "" if it was not one protein.
    location : str
        "file:line" of the fault, or of the definition of the component.
    """

    def __init__(
        self, message: str, *, kind: str = "", name: str = "", source: str = "", protein: str = "", location: str = ""
    ) -> None:
        super().__init__(message)
        self.kind, self.name, self.source, self.protein, self.location = kind, name, source, protein, location


class NonFiniteError(ComponentError):
    """The loss or a gradient of a training step is NaN or infinite.

    ``step``, ``epoch``: number of the optimizer step from 0, and of the epoch from 1. ``proteins``: names of the
    proteins with such values; all of the batch if it is none in particular. ``folder``: folder with the saved step for
    ``protgraph replay``; "" if it was not saved. ``cause``: names the component at fault.
    """

    def __init__(
        self,
        message: str,
        *,
        step: int,
        epoch: int,
        proteins: tuple[str, ...],
        folder: str = "",
        cause: ComponentError | None = None,
    ) -> None:
        fault = cause or ComponentError("")
        super().__init__(message, kind=fault.kind, name=fault.name, source=fault.source, location=fault.location)
        self.step, self.epoch, self.proteins, self.folder = step, epoch, proteins, folder


class FieldError(ProtgraphError, ValueError):
    """A graph field is not registered, or has the wrong shape, dtype or level."""


class GradientError(ProtgraphError, RuntimeError):
    """A gradient with respect to coordinates would be incomplete, because features are not computed in torch."""


class IndexRangeError(ProtgraphError, IndexError):
    """The number of a node, edge or segment is negative or beyond the last one."""


class WiringError(ProtgraphError, ValueError):
    """The components of a model spec cannot be connected."""


class StructureFileError(ProtgraphError, ValueError):
    """A file is missing or is not a readable structure file."""


class EmptyStructureError(ProtgraphError, ValueError):
    """A structure lacks the requested content, e.g. protein residues."""


class SelectionError(ProtgraphError, LookupError):
    """A requested model, chain, assembly or residue is not in the structure."""


class MutationError(ProtgraphError, ValueError):
    """A mutation cannot be parsed, or does not fit a structure.

    ``mutation``: the mutation as given. ``kind``: cause: "syntax", "separator", "sequence", "ambiguous", "letter",
    "deletion", "insertion", "frameshift", "stop", "nucleotide", "no_chain", "duplicate", "unknown_chain",
    "unknown_residue", "wild_type", "numbering" or "no_value".
    """

    def __init__(self, message: str, *, mutation: str = "", kind: str = "") -> None:
        super().__init__(message)
        self.mutation, self.kind = mutation, kind


class MissingCoordinatesError(ProtgraphError, ValueError):
    """Coordinates are required, but the protein is only a sequence, or lacks the side chains."""


class AlignmentError(ProtgraphError, ValueError):
    """A multiple sequence alignment is missing, cannot be read, or is of another protein.

    ``path``: file of the alignment; "" if there is none. ``row``: number of the sequence in the file, from 1.
    """

    def __init__(self, message: str, *, path: str = "", row: int | None = None) -> None:
        super().__init__(message)
        self.path, self.row = path, row


class FetchError(ProtgraphError, OSError):
    """A structure could not be downloaded from its archive."""


class NotInArchiveError(FetchError):
    """An archive has no entry with this identifier."""


class OfflineError(FetchError):
    """An entry is not in the cache, and downloads are disabled."""


class DatasetError(ProtgraphError, ValueError):
    """A dataset card, folder or split is incomplete or contradictory."""


class LabelError(ProtgraphError, ValueError):
    """Labels refer to missing residues or proteins, or have the wrong type."""


class AbsentFilesError(LabelError):
    """Rows of a label table name files that do not exist; ``rows`` maps each name to its first row."""

    def __init__(self, message: str, rows: Mapping[str, int] | None = None) -> None:
        super().__init__(message)
        self.rows = dict(rows or {})


class WorkerDiedError(ProtgraphError, RuntimeError):
    """A worker process died while it processed a file, e.g. because memory was exhausted."""


class ExternalProgramError(ProtgraphError, RuntimeError):
    """A program outside of Python, e.g. MMseqs2, failed or is too old; the message has what it printed."""


class CheckpointError(ProtgraphError, ValueError):
    """A checkpoint cannot be read, or does not match the installed components."""


class LeakError(ProtgraphError, ValueError):
    """A model would receive its target as input."""


class ProtgraphWarning(UserWarning):
    """Base class of the warnings that protgraph issues; the command line prints them as notes."""


class CodeChangeWarning(ProtgraphWarning):
    """The installed version of a component, or an imported file, is not that of the training of a checkpoint."""


class MissingExtraError(ProtgraphError, ImportError):
    """An optional dependency is required; the message has the install command."""
