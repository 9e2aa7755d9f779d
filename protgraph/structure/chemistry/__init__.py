"""Bonds, hydrogen bonds, functional groups and van der Waals radii."""
