"""Datasets of published sources: a card, a function that reads the source, and files that are prepared once."""

from __future__ import annotations

from protgraph.lazy_names import lazy_names

# Public name → module that exports it.
_HOME = {
    "PreparationResult": "protgraph_plugins.published.preparation",
    "check_counts": "protgraph_plugins.published.preparation",
    "damaged_files": "protgraph_plugins.published.preparation",
    "prepare_dataset": "protgraph_plugins.published.preparation",
    "PreparedDataset": "protgraph_plugins.published.prepared_dataset",
    "is_site_archive": "protgraph_plugins.published.site_sources",
    "read_columns": "protgraph_plugins.published.site_sources",
    "read_repository_labels": "protgraph_plugins.published.site_sources",
    "read_site_archive": "protgraph_plugins.published.site_sources",
    "download_source": "protgraph_plugins.published.source_download",
    "SourceFolder": "protgraph_plugins.published.source_folder",
    "SourceProtein": "protgraph_plugins.published.source_folder",
    "hold_out_clusters": "protgraph_plugins.published.source_folder",
    "read_tsv": "protgraph_plugins.published.source_folder",
    "write_tsv": "protgraph_plugins.published.source_folder",
}

__all__ = list(_HOME)
__getattr__, __dir__ = lazy_names(__name__, _HOME)
