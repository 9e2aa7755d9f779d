"""Check of an output path before the work starts."""

from __future__ import annotations

import os
from pathlib import Path

from protgraph.errors import OptionError

__all__ = ["check_output"]


def check_output(path: Path) -> Path:
    """Return the path of an output file, after creating its folder.

    Raises
    ------
    OptionError
        The path is a folder, or its folder cannot be created or is not writable.
    """
    if path.is_dir():
        raise OptionError(f"--out {str(path)!r} is a folder. Give a file name.")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise OptionError(f"--out {str(path)!r}: the folder cannot be created: {e.strerror}") from e
    if not os.access(path.parent, os.W_OK):
        raise OptionError(f"--out {str(path)!r}: the folder is not writable")
    return path
