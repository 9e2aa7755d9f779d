"""Descriptors."""
