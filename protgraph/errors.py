"""Exceptions that protgraph raises, and the "did you mean" hint of their messages.

Each exception subclasses the builtin exception of the same meaning. Its message names what failed, what is allowed, where,
and how to fix it, in at most three lines. The command line prints a :class:`ProtgraphError` as one message and exits
with code 2.
"""

from __future__ import annotations

from collections.abc import Iterable

__all__ = [
    "CheckpointError",
    "DatasetError",
    "DuplicateNameError",
    "EmptyStructureError",
    "FetchError",
    "FieldError",
    "LabelError",
    "LeakError",
    "MissingCoordinatesError",
    "MissingExtraError",
    "NotInArchiveError",
    "OfflineError",
    "OptionError",
    "PluginLoadError",
    "ProtgraphError",
    "SelectionError",
    "StructureFileError",
    "UnknownNameError",
    "WiringError",
    "suggest",
]


def suggest(name: str, choices: Iterable[str], *, also: Iterable[str] = (), cutoff: float = 0.6) -> str:
    """Return the sentence " Did you mean 'a' or 'b'?" for a misspelled name, or "" if nothing is similar.

    Parameters
    ----------
    name : str
        The name that was given.
    choices : iterable of str
        The names that are allowed.
    also : iterable of str
        Further suggestions to append.
    cutoff : float
        Least similarity, 0 to 1, of :func:`difflib.get_close_matches`.

    Examples
    --------
    >>> suggest("heds", ["heads", "dim"])
    " Did you mean 'heads'?"
    >>> suggest("heds", ["dim"])
    ''
    """
    from difflib import get_close_matches

    near = dict.fromkeys([*get_close_matches(name, list(choices), n=3, cutoff=cutoff), *also])
    return f" Did you mean {' or '.join(map(repr, near))}?" if near else ""


class ProtgraphError(Exception):
    """Base of every error that protgraph raises on purpose."""

    def __str__(self) -> str:
        # LookupError subclasses would print the repr of their message.
        return str(self.args[0]) if self.args else ""


class UnknownNameError(ProtgraphError, LookupError):
    """No component, field, target or task has this name."""


class DuplicateNameError(ProtgraphError, ValueError):
    """Two different objects claim one registry name."""


class PluginLoadError(ProtgraphError, ImportError):
    """A plugin's object could not be imported; only that component is unusable."""


class OptionError(ProtgraphError, TypeError):
    """A component was given an option that its signature does not take."""


class FieldError(ProtgraphError, ValueError):
    """A graph field is unregistered or has the wrong shape, dtype or level."""


class WiringError(ProtgraphError, ValueError):
    """The nodes of a model graph do not fit together."""


class StructureFileError(ProtgraphError, ValueError):
    """A file is missing or is no structure file that can be read."""


class EmptyStructureError(ProtgraphError, ValueError):
    """A structure holds nothing of what was asked for (no protein, say)."""


class SelectionError(ProtgraphError, LookupError):
    """A model, chain, assembly or residue that was asked for is not in the structure."""


class MissingCoordinatesError(ProtgraphError, ValueError):
    """A protein that is only a sequence was given to what needs a structure."""


class FetchError(ProtgraphError, OSError):
    """A structure could not be fetched from its archive."""


class NotInArchiveError(FetchError):
    """An archive has no entry of this identifier."""


class OfflineError(FetchError):
    """An entry is not in the cache, and fetching is switched off."""


class DatasetError(ProtgraphError, ValueError):
    """A dataset card, folder or split is incomplete or contradicts itself."""


class LabelError(ProtgraphError, ValueError):
    """Labels name residues or proteins that are not there, or have the wrong type."""


class CheckpointError(ProtgraphError, ValueError):
    """A checkpoint cannot be read or does not fit the installed components."""


class LeakError(ProtgraphError, ValueError):
    """A model would see what it is asked for."""


class MissingExtraError(ProtgraphError, ImportError):
    """An optional dependency is needed; the message has the install command."""
