"""Wrong arguments of public functions raise typed errors that name the argument, its value and what is allowed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import protgraph
from protgraph import ProtgraphError
from tests.first_use.api_calls import API_CALLS, ApiCall


@pytest.fixture(scope="module")
def names(structures_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return the objects that the expressions use."""
    import shutil

    import protgraph as pg
    from protgraph.featurize import FeaturePlan

    folder = tmp_path_factory.mktemp("calls") / "A"
    folder.mkdir()
    for name in ("1crn", "1vii", "2erl", "1ajj"):
        shutil.copy(structures_dir / f"{name}.bcif", folder)
    table = folder.parent / "size.csv"
    table.write_text("file,size\n1crn.bcif,1.25\n1vii.bcif,2.5\n2erl.bcif,3.75\n1ajj.bcif,4.5\n")
    file = folder / "1crn.bcif"
    structure = pg.load_structure(file)
    residues = pg.clean(structure)
    task = pg.tasks.get("secondary_structure")
    config = pg.FitConfig(epochs=1, device="cpu")
    checkpoint = folder.parent / "ss.safetensors"
    pg.fit("gcn", folder, "secondary_structure", config=config).save(checkpoint)
    return {
        "pg": pg,
        "protgraph": protgraph,
        "folder": folder,
        "table": table,
        "file": file,
        "structure": structure,
        "residues": residues,
        "graph": pg.build_graph(residues),
        "plan": FeaturePlan(["knn"]),
        "task": task,
        "target": task.target,
        "model": pg.build_model("gcn", task.target, seed=0),
        "inverse": pg.build_model("gcn", pg.tasks.get("inverse_folding").target, seed=0),
        "checkpoint": checkpoint,
    }


@pytest.mark.parametrize("call", API_CALLS, ids=lambda call: call.expression)
def test_a_wrong_argument_raises_a_typed_error_with_its_data(call: ApiCall, names: dict[str, Any]) -> None:
    with pytest.raises(ProtgraphError) as caught:
        eval(call.expression, {"__builtins__": __builtins__}, names)
    error = caught.value
    assert isinstance(error, TypeError | ValueError | LookupError | OSError | ImportError)
    assert not [part for part in call.parts if part not in str(error)], str(error)
    assert len(str(error)) < 1000
