"""Graphs as data: the field table, protein graphs and batches, stores, datasets, splits and loaders."""
