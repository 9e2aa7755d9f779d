"""Compress chains, and decompress entries of foldcomp in a process of its own, which is started again after a crash.

foldcomp ends the process on some entries, e.g. by a segmentation fault on a chain of one residue, and keeps the text of
every entry in memory (foldcomp 1.0.0, 2026-11-22).
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import importlib.util
import os
import subprocess
import sys
import threading

from protgraph.errors import MissingExtraError, StructureFileError
from protgraph.worker_process import WorkerDied, WorkerProcess, WorkerRaised

__all__ = ["TIME_LIMIT", "decompress"]

_REFERENCES = 2  # to a text in a variable and in the call of getrefcount

TIME_LIMIT = 60.0
"""Seconds for one entry, with the start of the process; an entry takes some milliseconds."""


def decompress(entry: bytes, path: str | os.PathLike[str] = "content", *, time_limit: float = TIME_LIMIT) -> bytes:
    """Return the PDB text of a foldcomp entry, as the foldcomp package decompresses it.

    Parameters
    ----------
    entry : bytes
        Content of an .fcz file.
    path : str or PathLike
        Name of the entry in errors.
    time_limit : float
        Seconds after which decompression is stopped.

    Raises
    ------
    MissingExtraError
        foldcomp is not installed.
    StructureFileError
        foldcomp refuses the entry, crashes, or exceeds the time limit.
    """
    _require_package(path)
    process, lock = _process(os.getpid())
    with lock:
        text = process.run(entry, time_limit=time_limit)
    if isinstance(text, WorkerDied):
        raise StructureFileError(
            f"{path}: foldcomp failed to decompress the entry: its process {text.reason}. "
            "The file is damaged, or it holds a chain that foldcomp cannot store, e.g. of one residue."
        )
    if isinstance(text, WorkerRaised):
        reason = str(text.error).strip() or type(text.error).__name__
        raise StructureFileError(f"{path}: foldcomp failed to decompress the entry: {reason}") from text.error
    return text


def _require_package(path: str | os.PathLike[str]) -> None:
    if not _is_installed():
        raise MissingExtraError(f"{path}: foldcomp is not installed. Run: pip install 'protgraph-pyg[foldcomp]'")


@functools.cache
def _is_installed() -> bool:
    return importlib.util.find_spec("foldcomp") is not None


@functools.cache
def _process(pid: int) -> tuple[WorkerProcess, threading.Lock]:
    """Return the process that decompresses for the process ``pid``; a fork of this process gets its own."""
    process = WorkerProcess(_decompress, subprocess.DEVNULL)
    atexit.register(lambda: process.close() if os.getpid() == pid else None)
    return process, threading.Lock()


def _decompress(entry: bytes) -> bytes:
    """Run in the other process."""
    import foldcomp

    try:
        _, text = foldcomp.decompress(entry)
    except foldcomp.error as e:
        raise StructureFileError(str(e)) from e
    if sys.getrefcount(text) > _REFERENCES:  # of foldcomp 1.0.0, which never releases a text
        ctypes.pythonapi.Py_DecRef(ctypes.py_object(text))
    return text.encode("latin-1")
