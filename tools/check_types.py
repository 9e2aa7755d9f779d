"""Run mypy on the packages, and compare the number of errors with ``tools/type_errors.toml``: none may rise.

Run ``python tools/check_types.py`` in the checkout (``make lint`` does). A number that fell is an error too, so that it
cannot rise again: ``python tools/check_types.py --update`` writes the lower ones.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from pathlib import Path

__all__ = ["count_errors", "link_packages", "main"]

ROOT = Path(__file__).resolve().parents[1]
LIMITS = ROOT / "tools" / "type_errors.toml"
PACKAGES = {"protgraph": "protgraph", "plugins": "protgraph_plugins", "datasets": "protgraph_datasets"}


def link_packages(folder: Path) -> None:
    """Link the packages under their importable names: type checkers cannot follow an editable installation."""
    for source, package in PACKAGES.items():
        (folder / package).symlink_to(ROOT / source, target_is_directory=True)


def count_errors() -> tuple[dict[str, int], str]:
    """Return the number of errors of each package of ``protgraph``, and the output of mypy."""
    with tempfile.TemporaryDirectory() as folder:
        link_packages(Path(folder))
        command = [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml"), "-p", "protgraph"]
        command += ["--cache-dir", str(Path(folder, "cache"))]
        environment = os.environ | {"MYPYPATH": folder}
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise RuntimeError(f"mypy failed: {done.stdout}{done.stderr}")
    places = [line.split(":")[0] for line in done.stdout.splitlines() if ": error: " in line]
    counts = Counter(Path(place).parts[1].removesuffix(".py") for place in places)
    return dict(sorted(counts.items())), done.stdout


def main(arguments: list[str]) -> int:
    """Compare with the recorded numbers and return the exit code."""
    limits = tomllib.loads(LIMITS.read_text(encoding="utf-8"))
    counts, output = count_errors()
    rose = [name for name, count in counts.items() if count > limits.get(name, 0)]
    fell = [name for name, limit in limits.items() if counts.get(name, 0) < limit]
    if rose:
        print(output)
        print(f"more type errors than in {LIMITS.name}: {', '.join(rose)}.")
        return 1
    if fell and "--update" not in arguments:
        print(f"fewer type errors than in {LIMITS.name}: {', '.join(fell)}. Run python tools/check_types.py --update.")
        return 1
    if fell:
        lines = [f"{name} = {count}\n" for name, count in counts.items()]
        LIMITS.write_text("# Errors of mypy in each package of protgraph; may only fall.\n" + "".join(lines), "utf-8")
    print(f"types: {sum(counts.values())} errors of mypy, as recorded")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
