"""Model families of protgraph: one package per family, registered through entry points."""
