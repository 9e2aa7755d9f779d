"""Pockets of proteins: alpha spheres between atoms, cavity descriptors of residues."""
