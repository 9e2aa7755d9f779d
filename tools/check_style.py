"""Check what ruff does not: exported names, and the words of code, documentation and command-line help.

Run ``python tools/check_style.py`` in the checkout (``make lint`` does), or with files or folders to check only those.
Prints one line per finding and exits with 1 if there is any.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

__all__ = ["Finding", "main", "words_in_text"]

ROOT = Path(__file__).resolve().parents[1]
CODE = ("protgraph", "plugins", "datasets", "benchmarks", "tools")
VAGUE_FILES = {"utils", "util", "common", "helpers", "misc"}

#: Figurative verbs and archaisms that readers of PyG, biotite or scikit-learn documentation do not expect.
BANNED = re.compile(
    r"""\b(
        told | tells | says | said | hears | heard | listens | listener | wish | wishes | wished | wants | knows | anew
      | amiss | stranger | strangers | stranger's | house | mutely | unmade | stands | slip | slips
      | by\ heart | goes\ by | is\ tried | are\ tried | is\ looked\ at | are\ looked\ at | is\ had | are\ had
      | (?:that|this|which)\ is\ no(?!\ longer) | ,\ say
      | one's\ own | are\ taught | is\ taught | of\ ours | is\ none\ of
    )\b""",
    re.IGNORECASE | re.VERBOSE,
)
#: Words of an identifier; fewer than in prose, where the grammar decides.
BANNED_IDENTIFIERS = {
    "told", "tells", "says", "said", "hears", "heard", "listens", "wish", "wishes", "wants", "knows", "anew", "amiss",
    "stranger", "strangers", "house", "stands", "slip", "mutely", "unmade",
}  # fmt: skip
BRITISH = re.compile(
    r"\b\w*(eighbour|colour|favour|behaviour|centre[sd]?\b|licence|sulphur|labelled|modelled|normalis|recognis|summaris"
    r"|initialis|materialis|standardis|symmetris|generalis|learnt\b)\w*",
    re.IGNORECASE,
)
#: Names of other programs' functions and options, as they are written there.
QUOTED = re.compile(r"add_aromatic_sulphur_interactions")
#: A docstring that begins so describes by a relative clause what an imperative or a noun phrase would name.
RELATIVE = re.compile(r"(What|Whether|Which|How|Where|Who)\b(?!.*\?)")

#: Title of a docstring section with its underline on the same line, as a text editor's reflow leaves it.
JOINED_TITLE = re.compile(r"^\s*([A-Z][a-z ]+) (-{4,}|={4,})", re.MULTILINE)

Finding = tuple[Path, int, str]


def python_files(*folders: str) -> list[Path]:
    """Return the Python files of these folders, sorted."""
    return sorted(p for folder in folders for p in (ROOT / folder).rglob("*.py") if "__pycache__" not in p.parts)


def words_in_text(text: str) -> Iterator[tuple[int, str]]:
    """Yield line number and word for each banned word and British spelling of a text."""
    for number, line in enumerate(QUOTED.sub("", text).splitlines(), 1):
        for pattern in (BANNED, BRITISH):
            yield from ((number, match.group()) for match in pattern.finditer(line))


def words_in_code(path: Path) -> Iterator[Finding]:
    """Yield banned words of comments, strings and identifiers."""
    source = path.read_text(encoding="utf-8")
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.NAME:
            for word in re.findall(r"[A-Z]?[a-z]+", token.string):
                if word.lower() in BANNED_IDENTIFIERS:
                    yield path, token.start[0], f"{token.string!r} contains {word!r}"
        elif token.type in (tokenize.STRING, tokenize.COMMENT, getattr(tokenize, "FSTRING_MIDDLE", -1)):
            for line, word in words_in_text(token.string):
                yield path, token.start[0] + line - 1, f"{word!r}"


def relative_titles(path: Path) -> Iterator[Finding]:
    """Yield docstrings whose first line is a relative clause."""
    for item in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(item, ast.Module | ast.ClassDef | ast.FunctionDef):
            first = (ast.get_docstring(item) or "").partition("\n")[0]
            is_property = any(getattr(d, "id", getattr(d, "attr", "")) in ("property", "cached_property")
                              for d in getattr(item, "decorator_list", []))  # fmt: skip
            if RELATIVE.match(first) and not is_property:
                yield path, getattr(item, "lineno", 1), f"docstring begins with {first.split()[0]!r}"


def undocumented(path: Path) -> Iterator[Finding]:
    """Yield public classes, functions, methods and properties without a docstring of their own."""

    def inside(body: list[ast.stmt], owner: str) -> Iterator[Finding]:
        for item in body:
            if not isinstance(item, ast.ClassDef | ast.FunctionDef) or item.name.startswith("_"):
                continue
            marks = {getattr(d, "id", getattr(d, "attr", "")) for d in item.decorator_list}
            if not ast.get_docstring(item) and not marks & {"overload", "setter", "deleter"}:
                yield path, item.lineno, f"{owner}{item.name} has no docstring"
            if isinstance(item, ast.ClassDef):
                yield from inside(item.body, f"{item.name}.")

    yield from inside(ast.parse(path.read_text(encoding="utf-8")).body, "")


def joined_titles(path: Path) -> Iterator[Finding]:
    """Yield section titles that are joined with their underline, so that no tool sees the section."""
    source = path.read_text(encoding="utf-8")
    for match in JOINED_TITLE.finditer(source):
        yield path, source.count("\n", 0, match.start(1)) + 1, f"section title {match[1]!r} and underline on one line"


def words_in_pages() -> Iterator[Finding]:
    """Yield banned words of all Markdown pages and of ``pyproject.toml``."""
    for path in [*sorted(ROOT.rglob("*.md")), ROOT / "pyproject.toml"]:
        hidden = any(part.startswith(".") or part in ("runs", "build") for part in path.relative_to(ROOT).parts[:-1])
        if not hidden and "site-packages" not in path.parts:
            for line, word in words_in_text(path.read_text(encoding="utf-8")):
                yield path, line, f"{word!r}"


def words_in_help() -> Iterator[Finding]:
    """Yield banned words of the help of every command, as the terminal shows it."""
    from protgraph.cli.app import COMMANDS

    program = "import sys; from protgraph.cli.app import main; main(sys.argv[1:])"
    for command in ([], *([name] for name in COMMANDS)):
        shown = subprocess.run(
            [sys.executable, "-c", program, *command, "--help"], capture_output=True, text=True, check=False
        )
        for line, word in words_in_text(shown.stdout):
            yield Path("protgraph", *command, "--help"), line, f"{word!r}"


def module_form(path: Path) -> Iterator[Finding]:
    """Yield modules that are undocumented, vaguely named, or without ``__all__``."""
    parts = path.relative_to(ROOT).parts
    if VAGUE_FILES & {part.removesuffix(".py") for part in parts}:
        yield path, 1, f"a file name must state its content; not {', '.join(sorted(VAGUE_FILES))}"
    if path.name.startswith("test_") or path.name == "conftest.py" or "tests" in parts:
        return
    source = path.read_text(encoding="utf-8")
    tree = ast.parse(source, str(path))
    is_package = path.name == "__init__.py"
    if not ast.get_docstring(tree):
        yield path, 1, "no module docstring"
    if not is_package and "from __future__ import annotations" not in source:
        yield path, 1, "no `from __future__ import annotations`"
    for message in _export_faults(tree, is_package=is_package):
        yield path, 1, message


def _export_faults(tree: ast.Module, *, is_package: bool) -> Iterator[str]:
    """Yield what is wrong with ``__all__``; a package may list names that it imports lazily."""
    declared, public = exported(tree), public_names(tree)
    if declared is None:
        if public:
            yield f"no __all__, but public names: {', '.join(sorted(public))}"
        return
    absent = declared - bound_names(tree)
    if absent and not is_package:
        yield f"__all__ lists names that do not exist: {', '.join(sorted(absent))}"


def public_names(tree: ast.Module) -> set[str]:
    """Return the public functions and classes that a module defines."""
    names = {item.name for item in tree.body if isinstance(item, ast.FunctionDef | ast.ClassDef)}
    return {name for name in names if not name.startswith("_")}


def bound_names(tree: ast.Module) -> set[str]:
    """Return all names that the top level of a module binds."""
    names = {a.asname or a.name for item in tree.body if isinstance(item, ast.ImportFrom) for a in item.names}
    stored = (n for item in tree.body for n in ast.walk(item) if isinstance(n, ast.Name))
    names |= {n.id for n in stored if isinstance(n.ctx, ast.Store)}
    return names | {item.name for item in tree.body if isinstance(item, ast.FunctionDef | ast.ClassDef)}


def exported(tree: ast.Module) -> set[str] | None:
    """Return the literal ``__all__`` of a module; None without one."""
    for item in tree.body:
        if isinstance(item, ast.Assign) and getattr(item.targets[0], "id", "") == "__all__":
            return {e.value for e in ast.walk(item.value) if isinstance(e, ast.Constant)}
    return None


def findings(*, with_help: bool = True) -> Iterator[Finding]:
    """Yield every finding of the checkout."""
    for path in python_files(*CODE, "tests"):
        yield from module_form(path)
        if path != Path(__file__).resolve() and path.name != "test_check_style.py":
            yield from words_in_code(path)
    for path in python_files(*CODE):
        yield from relative_titles(path)
        yield from joined_titles(path)
        if not {"tests", "benchmarks"} & set(path.relative_to(ROOT).parts):
            yield from undocumented(path)
    yield from words_in_pages()
    if with_help:
        yield from words_in_help()


def main(arguments: list[str]) -> int:
    """Print the findings, of the given files and folders or of all, and return the exit code."""
    count, chosen = 0, tuple(str(Path(a)) for a in arguments)
    for path, line, text in findings(with_help=not chosen):
        relative = path.relative_to(ROOT) if path.is_absolute() else path
        if chosen and not str(relative).startswith(chosen):
            continue
        count += 1
        print(f"{relative}:{line}: {text}")
    print(f"{count} findings" if count else "style: no findings")
    return int(count > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
