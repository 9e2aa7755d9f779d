"""Sizes are counted as defined: each line once, as code, docstring, comment or blank."""

from __future__ import annotations

import ast

from tools.measure_size import Size, measure_folder, measure_source, print_table

SOURCE = '''"""Two lines

of text."""

# a comment
def f(x):
    """One line."""
    return """not
a docstring"""  # counts as code
'''


def test_lines_and_nodes_of_one_module():
    nodes = len(list(ast.walk(ast.parse(SOURCE))))
    assert measure_source(SOURCE) == Size(nodes, modules=1, code=3, docstrings=4, lines=9)


def test_folders_add_up_and_are_printed(tmp_path, capsys):
    (tmp_path / "protgraph" / "inner").mkdir(parents=True)
    (tmp_path / "protgraph" / "one.py").write_text("x = 1\n")
    (tmp_path / "protgraph" / "inner" / "two.py").write_text("x = 1\n\n# end\n")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "page.md").write_text("# Two words\n")
    assert measure_folder(tmp_path / "protgraph") == Size(10, modules=2, code=2, docstrings=0, lines=4)
    print_table(tmp_path)
    rows = capsys.readouterr().out.splitlines()
    assert rows[1].split() == ["protgraph", "10", "2", "2", "0", "4", "5.0"]
    assert rows[-1] == "words in docs/: 3"
