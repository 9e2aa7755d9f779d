# Written by tools/stubs.py.
from protgraph_plugins.published.preparation import (
    PreparationResult as PreparationResult,
    check_counts as check_counts,
    damaged_files as damaged_files,
    prepare_dataset as prepare_dataset,
)
from protgraph_plugins.published.prepared_dataset import PreparedDataset as PreparedDataset
from protgraph_plugins.published.site_sources import (
    is_site_archive as is_site_archive,
    read_columns as read_columns,
    read_repository_labels as read_repository_labels,
    read_site_archive as read_site_archive,
)
from protgraph_plugins.published.source_download import download_source as download_source
from protgraph_plugins.published.source_folder import (
    SourceFolder as SourceFolder,
    SourceProtein as SourceProtein,
    hold_out_clusters as hold_out_clusters,
    read_tsv as read_tsv,
    write_tsv as write_tsv,
)
