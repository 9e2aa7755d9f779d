"""Datasets of published sources: a card, a function that reads the source, and files that are prepared once."""

from __future__ import annotations

from protgraph.lazy_names import lazy_names

_NAMES = {
    "preparation": ("PreparationResult", "check_counts", "damaged_files", "prepare_dataset"),
    "prepared_dataset": ("PreparedDataset",),
    "source_download": ("download_source",),
    "source_folder": (
        *("SourceFolder", "SourceProtein", "hold_out_clusters", "read_repository_labels"),
        *("read_tsv", "write_tsv"),
    ),
}
# Public name → module that exports it.
_HOME = {name: f"{__name__}.{module}" for module, names in _NAMES.items() for name in names}

__all__ = [*_HOME]

__getattr__, __dir__ = lazy_names(__name__, _HOME)
