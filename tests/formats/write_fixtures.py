"""Write files of the present version of each format, for tests that open them with every later version.

    python -m tests.formats.write_fixtures

Files of a version never change, so an existing one is kept. Run it after raising the version of a format, and commit
the new file with the numbers that it gives (``expected.json``).
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from protgraph.bench.rows import ROW_VERSION, BenchRow, append_row
from protgraph.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from protgraph.checkpoint.adapters import adapters_of, add_adapters
from protgraph.checkpoint.checkpoint_header import ADAPTER_VERSION, FORMAT_VERSION, AdapterBase, weights_digest
from protgraph.data.datasets.target import Target
from protgraph.data.store import GraphStore
from protgraph.data.store.store_description import VERSION as STORE_VERSION
from protgraph.featurize import FeaturePlan
from protgraph.inference import embed, predict
from protgraph.inference.embedding import EMBEDDINGS_VERSION
from protgraph.model import ModelSpec, build_model
from protgraph.nn.lora import merge_low_rank_terms
from protgraph.prepare import prepare_store
from protgraph.registry.component import component
from protgraph.validation import TOML_VERSION

__all__ = ["FOLDER", "STRUCTURE", "describe_store", "numbers_of"]

FOLDER = Path(__file__).parent
STRUCTURE = FOLDER.parents[1] / "datasets" / "pdb_core" / "structures" / "1crn.bcif"
TARGET = Target("secondary_structure", "node", "classification", 3, ("helix", "strand", "coil"))


def numbers_of(checkpoint: Checkpoint) -> list[list[float]]:
    """Return the probabilities of the residues of one entry."""
    rows = predict(checkpoint, STRUCTURE, device="cpu").rows
    return [[value for value in row if isinstance(value, float)] for row in rows]


def describe_store(store: GraphStore) -> dict[str, Any]:
    """Return names, sequences and the sum of each field of the first protein."""
    graph = store[0]
    sums = {}
    for name, value in graph.to_dict().items():
        if isinstance(value, torch.Tensor):
            sums[name] = [list(value.shape), float(value.double().nan_to_num().sum())]
    return {"names": store.names, "sequence": store.residues(0).sequence, "sums": sums}


def tiny_spec() -> ModelSpec:
    """Return two graph convolutions of four channels."""
    block = [component("gcn", dim=4, writes={"h": "m"}), component("residual", reads={"update": "m"})]
    embed_layer = component("embed", reads=["aatype", "dihedral"], dim=4)
    return ModelSpec("tiny", features=["dihedral", component("knn", k=8)], layers=[embed_layer, *2 * block])


def fill(model: torch.nn.Module) -> None:
    """Set all parameters to the same numbers with every version of torch."""
    with torch.no_grad():
        for i, parameter in enumerate(model.parameters()):
            values = torch.sin(torch.arange(parameter.numel(), dtype=torch.float64) * (i + 1) + i)
            parameter.copy_((0.5 * values).reshape(parameter.shape).half())


def write_checkpoint(path: Path) -> None:
    """Write an ensemble of two models."""
    models = [build_model(tiny_spec(), TARGET, seed=seed).eval() for seed in range(2)]
    for model in models:
        fill(model)
    with torch.no_grad():
        next(iter(models[1].head.parameters())).mul_(2)
    save_checkpoint(path, Checkpoint(models[0], "secondary_structure", others=models[1:]))


def write_adapters(path: Path) -> None:
    """Write low-rank terms of the first model of the checkpoint of version 3."""
    base = "version_3.safetensors[0]"
    model = load_checkpoint(base).model
    lora = {"layers": 1}
    record = AdapterBase(source=base, seed=0, digest=weights_digest(model.get_submodule("layers")), lora=lora)
    add_adapters(model, lora, seed=0)
    fill(model.head)
    for name, parameter in model.named_parameters():
        if ".parametrizations." in name and not name.endswith("original"):
            with torch.no_grad():
                parameter.fill_(0.25)
        parameter.requires_grad_(not name.endswith("original"))
    adapters = adapters_of(model, record)
    merge_low_rank_terms(model)
    save_checkpoint(path, Checkpoint(model, "secondary_structure"), adapters=adapters)


def write_store(path: Path) -> None:
    """Write a store of one protein with its manifest."""
    plan = FeaturePlan(["dihedral", component("knn", k=8)])
    prepare_store(os.path.relpath(STRUCTURE), path, plan, jobs=0, manifest=FOLDER / "manifest" / f"{path.name}.json")


def write_rows(path: Path) -> None:
    """Write one row of a benchmark."""
    metrics = {"val": {"accuracy": 0.5}, "test": {"accuracy": 0.25, "mcc": float("nan")}}
    history = ({"epoch": 1, "train_loss": 1.5, "val_loss": 1.25, "accuracy": 0.5},)
    row = BenchRow("0123456789abcdef", "gcn", "secondary_structure", "pdb_core", 0, {"epochs": 1}, metrics=metrics)
    append_row(path, BenchRow.from_dict(row.to_dict() | {"monitor": "accuracy", "history": history, "epochs": 1}))


def write_model(path: Path) -> None:
    """Write a model specification."""
    path.write_text(tiny_spec().to_toml(), encoding="utf-8")


def write_embeddings(path: Path) -> None:
    """Write the vectors of one protein."""
    embeddings = embed("version_2.safetensors", STRUCTURE, device="cpu")
    replace(embeddings, files=("1crn.bcif",), checkpoint="version_2.safetensors").write(path)


WRITERS: dict[str, Callable[[Path], None]] = {
    f"checkpoint/version_{FORMAT_VERSION}.safetensors": write_checkpoint,
    f"checkpoint/version_{ADAPTER_VERSION}.safetensors": write_adapters,
    f"store/version_{STORE_VERSION}": write_store,
    f"rows/version_{ROW_VERSION}.jsonl": write_rows,
    f"model/version_{TOML_VERSION}.toml": write_model,
    f"embeddings/version_{EMBEDDINGS_VERSION}.npz": write_embeddings,
}


def main() -> None:
    """Write the files that do not exist, and the numbers that they give, with relative paths in all of them."""
    with contextlib.chdir(FOLDER / "checkpoint"):
        _write_all()


def _write_all() -> None:
    for name, write in WRITERS.items():
        path = FOLDER / name
        path.parent.mkdir(exist_ok=True)
        if not path.exists():
            write(path)
            print("written:", path)
    expected = json.loads((FOLDER / "expected.json").read_text("utf-8"))
    for path in sorted((FOLDER / "checkpoint").iterdir()):
        if path.name not in expected:
            expected[path.name] = numbers_of(load_checkpoint(path))
    for path in sorted((FOLDER / "store").iterdir()):
        expected.setdefault(f"store {path.name}", describe_store(GraphStore(path)))
    (FOLDER / "expected.json").write_text(json.dumps(expected) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
