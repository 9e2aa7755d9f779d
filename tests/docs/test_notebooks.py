"""The notebooks of the documentation run, and print as much as they show."""

from __future__ import annotations

from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).resolve().parents[2] / "docs" / "notebooks").glob("*.ipynb"))


def printed_lines(cell) -> int:
    streams = [output["text"] for output in cell.outputs if output.output_type == "stream" and output.name == "stdout"]
    return len("".join(streams).splitlines())


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs(path, tmp_path):
    nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed")
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")
    shown = nbformat.read(path, as_version=4)
    notebook = nbformat.read(path, as_version=4)
    resources = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(notebook, timeout=600, kernel_name="python3", resources=resources).execute()
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    expected = [cell for cell in shown.cells if cell.cell_type == "code"]
    assert cells and [printed_lines(cell) for cell in cells] == [printed_lines(cell) for cell in expected]
    outputs = [output.output_type for cell in expected for output in cell.outputs]
    assert "execute_result" in outputs and "stream" in outputs and "error" not in outputs
