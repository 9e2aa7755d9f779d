"""List the differences between protgraph and biotite on structure files: python tools/compare_readers.py FILES.

Folders are searched. The exit code is 1 if a file differs.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

__all__ = ["main"]

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.atom_comparison import differences
from protgraph.errors import StructureFileError
from protgraph.structure.io import expand_files


def main(sources: list[str]) -> int:
    """Print the differences of each file and their number; return the exit code."""
    warnings.simplefilter("ignore")
    files, different = expand_files(sources), 0
    for path in files:
        try:
            differing = differences(path)
        except StructureFileError as e:
            print(e)
            continue
        different += bool(differing)
        for line in differing:
            print(f"{path}: {line}")
    print(f"{len(files)} files, {different} with differences")
    return int(different > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
