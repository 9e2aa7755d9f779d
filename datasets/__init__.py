"""Datasets of protgraph: one package per dataset, registered through entry points."""
