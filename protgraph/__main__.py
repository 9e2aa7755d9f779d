"""Entry point of ``python -m protgraph``."""

from __future__ import annotations

from protgraph.cli.app import main

if __name__ == "__main__":
    main()
