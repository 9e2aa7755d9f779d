"""An executed notebook shows structures, graphs, models, results and predictions as tables, and a progress bar."""

from __future__ import annotations

import importlib.util
import shutil

import pytest

#: Last line of a cell → a cell of the HTML table of its output.
CELLS = {
    'pg.load_structure("my/1crn.bcif")': ">A<",
    'pg.clean(pg.load_structure("my/1crn.bcif"))': "TTCCPSIVARSNFNVCRLPGTPEAICATYTGCIIIPGATCPGDYAN",
    'pg.build_graph(pg.load_structure("my/1crn.bcif"), ["dihedral", "contact"])': ">dihedral<",
    'pg.models.get("gcn")': ">gcn<",
    "result": "accuracy",
    "pg.predict(result.checkpoint(), 'my/1crn.bcif')": ">THR<",
}
FIT = """import protgraph as pg
config = pg.FitConfig(epochs=1, device="cpu")
result = pg.fit("gcn", "my", "secondary_structure", config=config, progress=True)"""


@pytest.mark.slow
def test_a_notebook_shows_tables_and_progress(structures_dir, tmp_path):
    nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed")
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")
    (tmp_path / "my").mkdir()
    for name in ("1crn", "1vii", "2erl", "1ajj"):
        shutil.copy(structures_dir / f"{name}.bcif", tmp_path / "my")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code) for code in (FIT, *CELLS)])
    client = nbclient.NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    )
    client.execute()
    first, *others = notebook.cells
    shown = [output.get("text", "") + str(output.get("data", "")) for output in first.outputs]
    if importlib.util.find_spec("ipywidgets"):
        assert len(shown) == 1 and "Training" in shown[0], "one widget"
    else:
        text = "".join(shown).strip()
        assert text.startswith("Training") and "Epoch 0" in text and "\n" not in text, "one line of text"
    for cell, part in zip(others, CELLS.values(), strict=True):
        (output,) = (one for one in cell.outputs if one.output_type == "execute_result")
        assert "<table" in output.data["text/html"] and part in output.data["text/html"], cell.source
