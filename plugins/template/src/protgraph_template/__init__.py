"""A protgraph plugin: protgraph finds its components through the entry points in ``pyproject.toml``."""
