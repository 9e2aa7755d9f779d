"""Every error that protgraph raises on purpose.

Each subclasses the builtin that it is, says what was asked, what is allowed, where, and what to do, in at
most three lines. The command line turns a :class:`ProtgraphError` into one message and exit code 2.
"""

from __future__ import annotations

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
]


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
