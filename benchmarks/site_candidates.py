"""Write a sample of the dataset ``ligand_site_dsdp`` for the comparison of models ``candidates.toml``.

``python -m benchmarks.site_candidates FOLDER`` writes structures, a table of labels and splits, and the spec to FOLDER.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import protgraph as pg

__all__ = ["main"]

EVERY = 5  # training proteins, in the order of the dataset
SPEC = Path(__file__).with_name("candidates.toml")


def main() -> None:
    """Write the sample."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="folder to write")
    folder = parser.parse_args().folder
    dataset = pg.load_dataset("ligand_site_dsdp")
    train = dataset.examples("ligand_site", "train")[::EVERY]
    examples = [*train, *dataset.examples("ligand_site", "val")]

    structures = folder / "structures"
    structures.mkdir(parents=True, exist_ok=True)
    for example in examples:
        shutil.copyfile(example.path, structures / example.path.name)

    table = pq.read_table(dataset.folder / "residue_labels.parquet")
    split_of = {example.path.name: example.split for example in examples}
    files = table["file"].to_numpy()
    rows = np.flatnonzero(np.isin(files, list(split_of)))
    columns = {name: table[name].take(rows) for name in ("file", "chain", "res_id", "ins_code")}
    columns["split"] = pa.array([split_of[file] for file in files[rows]])
    columns["ligand_site"] = pa.array(table["ligand_site"].to_numpy()[rows].astype(np.int64))
    pq.write_table(pa.table(columns), folder / "labels.parquet")
    shutil.copyfile(SPEC, folder / SPEC.name)
    print(f"{folder}: {len(train)} training proteins, {len(examples) - len(train)} validation proteins")


if __name__ == "__main__":
    main()
