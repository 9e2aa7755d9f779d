"""Neighbors."""
