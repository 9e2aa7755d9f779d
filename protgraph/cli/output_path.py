"""Where a command is to write: looked at before the work is done, not after."""

from __future__ import annotations

import os
from pathlib import Path

from protgraph.errors import OptionError

__all__ = ["check_output"]


def check_output(path: Path) -> Path:
    """The file to write, in a folder that is there and takes files.

    Raises
    ------
    OptionError
        It is a folder, or its folder cannot be made or written to.
    """
    if path.is_dir():
        raise OptionError(f"--out {str(path)!r} is a folder; give the name of a file")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise OptionError(f"--out {str(path)!r}: its folder cannot be made: {e.strerror}") from e
    if not os.access(path.parent, os.W_OK):
        raise OptionError(f"--out {str(path)!r}: its folder cannot be written to")
    return path
