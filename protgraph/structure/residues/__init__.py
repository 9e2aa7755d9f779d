"""Residues."""
