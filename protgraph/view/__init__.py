"""Proteins, and what models make of them, as pictures."""
