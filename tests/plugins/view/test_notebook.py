"""A notebook that shows a graph inline."""

from __future__ import annotations

import html

import pytest


@pytest.mark.slow
def test_a_notebook_shows_a_graph_inline(structures_dir):
    import nbformat
    from nbclient import NotebookClient

    code = f"""import protgraph as pg
from protgraph_plugins.view import view
graph = pg.build_graph(pg.load_structure({str(structures_dir / "1crn.bcif")!r}), ["contact", "dihedral"])
view(graph, color="dihedral:4")"""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
    NotebookClient(notebook, timeout=180, kernel_name="python3").execute()
    (output,) = (one for one in notebook.cells[0].outputs if one.output_type == "execute_result")
    assert output.data["text/plain"] == "Scene('1crn', 46 residues, 189 edges, colored by dihedral:4)"
    frame = output.data["text/html"]
    assert frame.startswith("<iframe srcdoc=") and 'id="molstar">' in html.unescape(frame)
