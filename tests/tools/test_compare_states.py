"""The comparison of two states finds each kind of difference; the states are programs that print fixed texts."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
spec = importlib.util.spec_from_file_location("compare_states", ROOT / "tools" / "compare_states.py")
compare_states = importlib.util.module_from_spec(spec)
spec.loader.exec_module(compare_states)

PROGRAM = """#!{python}
import sys
from pathlib import Path
arguments = sys.argv[1:]
if arguments == ["list"]:
    print("layers (1)\\n  {layer}  x 0.1\\ntrained_models (1)\\n  site  x 0.1\\nmutation_scorers (1)\\n  esm2  x 0.1")
elif arguments[-1] == "--help":
    print("Usage\\n╭─ Commands ─╮\\n│ predict  {text} │" if arguments == ["--help"] else "Usage")
else:
    Path(arguments[-1]).write_text("p\\n{value}\\n")
"""


def record(folder: Path, name: str, rows: dict, **texts: str) -> Path:
    program, table = folder / f"{name}.py", folder / f"{name}.jsonl"
    program.write_text(PROGRAM.format(python=sys.executable, **texts), encoding="utf-8")
    program.chmod(0o755)
    lines = [{"model": "gcn", **rows}, {"model": "gat"}]
    lines = lines if name == "before" else lines[::-1]
    table.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    compare_states.record(folder / name, str(program), ["a.cif"], ["mine.safetensors"], table)
    predicted = {path.stem for path in (folder / name / "predictions").iterdir()}
    assert predicted == {"site", "mine"}
    return folder / name


@pytest.mark.skipif(sys.platform == "win32", reason="a program that begins with #!")
@pytest.mark.parametrize(
    ("changed", "code", "printed"),
    [
        ({}, 0, "results are equal"),
        ({"rows": {"f1": 0.5, "seconds": 9.0}}, 0, "results are equal"),
        ({"text": "Other."}, 0, "help of protgraph"),
        ({"layer": "gat"}, 1, "missing: gcn (layers)"),
        ({"value": "0.3"}, 1, "predictions/mine.csv"),
        ({"rows": {"f1": 0.6, "seconds": 1.0}}, 1, "rows.jsonl"),
    ],
)
def test_each_kind_of_difference_is_found(tmp_path, capsys, changed, code, printed):
    state = {"layer": "gcn", "text": "Predict.", "value": "0.2", "rows": {"f1": 0.5, "seconds": 1.0}}
    folders = [record(tmp_path, "before", **state), record(tmp_path, "after", **state | changed)]
    assert compare_states.main(["compare", *map(str, folders)]) == code
    assert printed in capsys.readouterr().out


@pytest.mark.skipif(sys.platform == "win32", reason="a program that begins with #!")
def test_a_checkpoint_with_the_name_of_a_model_is_an_error(tmp_path):
    program = tmp_path / "protgraph.py"
    program.write_text(PROGRAM.format(python=sys.executable, layer="gcn", text="", value="1"), encoding="utf-8")
    program.chmod(0o755)
    with pytest.raises(ValueError, match="site"):
        compare_states.record(tmp_path / "a", str(program), ["a.cif"], ["mine/site.safetensors"], None)
