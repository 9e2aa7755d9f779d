"""Folder for files that can be downloaded or computed again."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["cache_dir"]


def cache_dir(folder: str | Path | None = None) -> Path:
    """Return the cache folder: ``folder``, else ``$PROTGRAPH_CACHE``, else the user's cache folder of the platform."""
    if folder is not None:
        return Path(folder)
    if variable := os.environ.get("PROTGRAPH_CACHE"):
        return Path(variable)
    from platformdirs import user_cache_path

    return user_cache_path("protgraph", appauthor=False)
