"""Print the tests of what a branch changes: those of each changed package, and tests that changed themselves.

Run ``python tools/changed_tests.py`` in the checkout (``make test-changed`` passes its output to pytest). Changes are
those since the branch left ``main``, committed or not. Users of a changed package are not followed: before you publish
a change, run ``make test``.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

__all__ = ["changed_files", "main", "tests_of"]

ROOT = Path(__file__).resolve().parents[1]

#: Folder → its tests, for folders whose packages have no tests of their own.
TESTS_OF_FOLDERS = {
    "benchmarks": "tests/benchmarks",
    "docs": "tests/docs",
    "tools": "tests/tools",
}


def changed_files(branch: str = "main") -> list[str]:
    """Return the files that differ from the commit at which this branch left another, and new files."""
    base = _git("merge-base", "HEAD", branch)
    return [
        *_git("diff", "--name-only", base).splitlines(),
        *_git("ls-files", "--others", "--exclude-standard").splitlines(),
    ]


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def tests_of(files: Iterable[str], root: Path = ROOT) -> list[str]:
    """Return the test files and folders of files, none within another; paths are relative to the checkout.

    Examples
    --------
    >>> tests_of(["protgraph/nn/layers/convolutions.py", "tests/nn/test_irreps.py", "docs/start.md"])
    ['tests/docs', 'tests/nn', 'tests/test_documentation.py']
    """
    paths: set[str] = set()
    for file in files:
        paths |= _tests_of_file(PurePosixPath(file), root)
    outermost = []
    for path in sorted(paths):
        if not path.startswith(tuple(f"{folder}/" for folder in paths)):
            outermost.append(path)
    return outermost


def _tests_of_file(file: PurePosixPath, root: Path) -> set[str]:
    folder, *below = file.parts
    is_in_package = len(below) > 1
    candidates = [TESTS_OF_FOLDERS.get(folder, "")]
    if folder == "tests" and file.name.startswith("test_"):
        candidates = [str(file)]
    elif folder == "protgraph":
        candidates = [f"tests/{below[0]}" if is_in_package else f"tests/test_{file.stem}.py"]
    elif folder in ("plugins", "datasets") and is_in_package:
        candidates = _tests_of_extension(folder, below[0], root)
    if file.suffix == ".md":
        candidates.append("tests/test_documentation.py")
    return {candidate for candidate in candidates if candidate and (root / candidate).exists()}


def _tests_of_extension(folder: str, name: str, root: Path) -> list[str]:
    files = sorted((root / "tests" / folder).glob(f"test_{name}*.py"))
    return [f"tests/{folder}/{name}", *(path.relative_to(root).as_posix() for path in files)]


def main() -> int:
    """Print the tests in one line, for a command line of pytest."""
    tests = tests_of(changed_files())
    if not tests:
        print("no changed file has tests", file=sys.stderr)
        return 1
    print(" ".join(tests))
    return 0


if __name__ == "__main__":
    sys.exit(main())
