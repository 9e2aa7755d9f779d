"""Plugin for protgraph, which finds the components through the entry points in ``pyproject.toml``."""
