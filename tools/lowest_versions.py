"""Print the lowest allowed version of every dependency as constraints of pip: ``python tools/lowest_versions.py``.

``make test-lowest`` runs the tests with them.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

__all__ = ["lowest_versions", "main"]

_PYPROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"


def lowest_versions(dependencies: list[str]) -> list[str]:
    """Return ``name==version`` for each dependency.

    Raises
    ------
    ValueError
        A dependency has no lower bound.
    """
    constraints = []
    for dependency in dependencies:
        requirement, _, marker = dependency.partition(";")
        bound = re.fullmatch(r"([\w.-]+)>=([\w.]+)(,.*)?", requirement.strip())
        if bound is None:
            raise ValueError(f"dependency {dependency!r} has no lower bound. Write name>=version.")
        constraint = f"{bound[1]}=={bound[2]}"
        constraints.append(f"{constraint} ; {marker.strip()}" if marker else constraint)
    return constraints


def main() -> None:
    """Print one constraint a line."""
    project = tomllib.loads(_PYPROJECT.read_text(encoding="utf-8"))["project"]
    print("\n".join(lowest_versions(project["dependencies"])))


if __name__ == "__main__":
    main()
