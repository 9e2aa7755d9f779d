"""Test the readability check on functions that break its rules."""

from __future__ import annotations

import ast
import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
spec = importlib.util.spec_from_file_location("check_readability", ROOT / "tools" / "check_readability.py")
check_readability = importlib.util.module_from_spec(spec)
spec.loader.exec_module(check_readability)

BRANCHES = "".join(f"    if x == {i}:\n        return {i}\n" for i in range(12))

BROKEN = {
    "complexity": [
        f"def f(x):\n{BRANCHES}    return x\n",
        "def f(x):\n    return x and " + " and ".join(f"x > {i}" for i in range(12)) + "\n",  # boolean operators count
        f"def f(x):\n    def g(y):\n        return y\n{BRANCHES}    return x\n",
    ],
    "nested_comprehension": ["x = [[j for j in y] for i in z]\n", "x = {i: sum(j for j in y) for i in y}\n"],
    "long_condition": ["x = [\n    i\n    for i in range(9)\n    if i > 3 and i < 8\n]\n"],
    "filled_parameter": [
        "def f(rows: list[int]):\n    rows.append(1)\n",
        "def f(*, table: dict[str, int]):\n    table['a'] = 1\n",
    ],
    "unnamed_results": ["def f():\n    return 1, 2, 3, 4\n"],
    "vague_name": ["def f(x):\n    found = x\n    y = 1\n    y += 1\n    y += 2\n    return found\n"],
}
PLAIN = """
def f(rows: list[int], table: dict[str, int]) -> tuple[int, int, int]:
    result = [row for row in rows if row > 0]
    result.append(1)
    found = len(table)
    return found, 2, 3


def __reduce__(self):
    return 1, 2, 3, 4, 5
"""


@pytest.mark.parametrize(("rule", "code"), [(rule, code) for rule, codes in BROKEN.items() for code in codes])
def test_each_rule_finds_what_breaks_it(rule: str, code: str) -> None:
    assert len(list(check_readability.RULES[rule](Path("a.py"), ast.parse(code)))) == 1


@pytest.mark.parametrize("rule", check_readability.RULES)
def test_plain_code_passes(rule: str) -> None:
    assert list(check_readability.RULES[rule](Path("a.py"), ast.parse(PLAIN))) == []


def test_a_count_that_rises_or_falls_is_an_error(tmp_path, monkeypatch, capsys) -> None:
    (tmp_path / "protgraph").mkdir()
    (tmp_path / "protgraph" / "a.py").write_text(BROKEN["unnamed_results"][0], encoding="utf-8")
    limits = tmp_path / "readability.toml"
    monkeypatch.setattr(check_readability, "ROOT", tmp_path)
    monkeypatch.setattr(check_readability, "LIMITS", limits)
    monkeypatch.setattr(check_readability.findings_of, "__defaults__", (tmp_path,))
    counts = {**dict.fromkeys(check_readability.RULES, 0), "complexity": []}

    def write(**changed: int) -> None:
        limits.write_text("".join(f"{rule} = {n}\n" for rule, n in {**counts, **changed}.items()), encoding="utf-8")

    write(unnamed_results=1)
    assert check_readability.main([]) == 0
    write(unnamed_results=0)
    assert check_readability.main([]) == 1
    assert "a.py:2: f returns 4 values" in capsys.readouterr().out
    assert check_readability.main(["--update"]) == 1, "a higher count is not written"
    write(unnamed_results=2)
    assert check_readability.main([]) == 1
    assert check_readability.main(["--update"]) == 0
    assert "unnamed_results = 1" in limits.read_text(encoding="utf-8")
    (tmp_path / "protgraph" / "b.py").write_text(BROKEN["complexity"][0], encoding="utf-8")
    write(unnamed_results=1)
    assert check_readability.main([]) == 1
    write(unnamed_results=1, complexity=["f"])
    assert check_readability.main([]) == 0
    write(unnamed_results=1, complexity=["f", "g"])
    assert check_readability.main([]) == 1, "a name that is not complex any more is taken out"
