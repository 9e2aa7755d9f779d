"""Folders laid out like public repositories, from the tables and archives of the shared data."""

from __future__ import annotations

import csv
from collections.abc import Collection
from pathlib import Path

import numpy as np
from biotite.structure.io import pdbx
from protgraph_plugins.published import read_tsv, write_tsv

from protgraph.file_io import unpack_tar
from tests.datasets.chain_archive import ChainArchive

__all__ = [
    "lay_out_bioemu",
    "lay_out_cgdms",
    "lay_out_eigenfold",
    "lay_out_lbs_comparison",
    "lay_out_metl",
    "lay_out_mutils",
]

MEGASCALE = "bioemu_benchmarks/assets/folding_free_energies_benchmark_0.1/folding_free_energies"


def _write_csv(path: Path, rows: list[tuple[object, ...]], separator: str = ",") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter=separator).writerows(rows)


def _link_structures(archive: Path, scratch: Path, target: Path) -> None:
    """Link each structure under the name of the repository; formats are recognized by content."""
    scratch.mkdir(parents=True, exist_ok=True)
    unpack_tar(archive, scratch)
    target.mkdir(parents=True, exist_ok=True)
    for path in sorted(scratch.rglob("*.bcif")):
        (target / f"{path.stem}.pdb").symlink_to(path)


def lay_out_metl(shared: Path, folder: Path, sets: list[str]) -> Path:
    """Write ``data/dms_data`` and ``data/pdb_files`` as metl-pub has them."""
    from protgraph_datasets.fitness.dataset import FOLDER

    _link_structures(shared / "structures.tar.xz", folder / "bcif", folder / "data" / "pdb_files")
    archive_name = folder / "data" / "pdb_files" / "6qji_trunc_2022.pdb"
    archive_name.rename(archive_name.with_name("6qji_p_trunc_2022.pdb"))
    names = {"r": "train", "v": "val", "t": "test", "s": "stest"}
    for folders in read_tsv(FOLDER / "splits.tsv"):
        name = folders["set"]
        if name not in sets:
            continue
        rows = read_tsv(shared / f"{name}.tsv.gz")
        place = folder / "data" / "dms_data" / name
        place.mkdir(parents=True)
        cells = [(row["variant"], row["n_mutations"], row["score"]) for row in rows]
        write_tsv(place / f"{name}.tsv", [("variant", "num_mutations", "score"), *cells])
        for kind in ("standard", "mutation", "position"):
            numbers: dict[str, list[str]] = {}
            for number, row in enumerate(rows):
                numbers.setdefault(row[f"{kind}_0"], []).append(str(number))
            split_folder = place / "splits" / "main" / folders[kind]
            split_folder.mkdir(parents=True)
            for letter, file in names.items():
                if letter in numbers:
                    (split_folder / f"{file}.txt").write_text("\n".join(numbers[letter]) + "\n")
    return folder


def lay_out_bioemu(shared: Path, folder: Path) -> Path:
    """Write ``system_info.csv`` and ``reference_wildtypes`` as bioemu-benchmarks has them."""
    _link_structures(shared / "structures.tar.xz", folder / "bcif", folder / MEGASCALE / "reference_wildtypes")
    rows: list[tuple[object, ...]] = [("name", "name_wt", "mutant", "ddg_exp")]
    for row in read_tsv(shared / "mutations.tsv.gz"):
        rows.append((row["name"], row["wild_type_name"], row["is_mutant"] == "1", row["ddg"]))
    _write_csv(folder / MEGASCALE / "system_info.csv", rows)
    return folder


def lay_out_mutils(shared: Path, folder: Path) -> Path:
    """Write ``data/SKEMPI2`` as mutils has it."""
    from protgraph_datasets.ddg_binding.dataset import METHODS

    source = folder / "data" / "SKEMPI2"
    _link_structures(shared / "structures.tar.xz", folder / "bcif", source / "PDBs")
    mappings: dict[str, list[str]] = {}
    for run in read_tsv(shared / "numbering.tsv.gz"):
        first, last, in_entry = (int(run[name]) for name in ("first_res_id", "last_res_id", "source_first_res_id"))
        for offset in range(last - first + 1):
            line = f"UNK {run['chain']} {in_entry + offset}{run['source_ins_code']} {first + offset}"
            mappings.setdefault(run["file"].removesuffix(".bcif"), []).append(line)
    for name, lines in mappings.items():
        (source / "PDBs" / f"{name}.mapping").write_text("\n".join(lines) + "\n")
    table = read_tsv(shared / "mutations.tsv.gz")
    raw = ["Affinity_mut (M)", "Affinity_mut_parsed", "Affinity_wt (M)", "Affinity_wt_parsed", "Temperature"]
    rows: list[tuple[object, ...]] = [("#Pdb", "Mutation(s)_cleaned", *raw)]
    rows += [(row["complex"], row["Mutation(s)_cleaned"], *(row[f"raw:{name}"] for name in raw)) for row in table]
    _write_csv(source / "skempi_v2.csv", rows, ";")
    for method, file in METHODS.items():
        column = f"pred_{method.replace(' ', '_')}"
        predicted = [(row["complex"], row["Mutation(s)_cleaned"], row[column]) for row in table if row[column]]
        _write_csv(source / "predictions_test" / file, [("complex", "mutstr", "ddG_pred"), *predicted])
    return folder


def lay_out_eigenfold(shared: Path, folder: Path) -> Path:
    """Write ``structures`` and ``pretrained_model`` as EigenFold has them; natives are numbered as the models."""
    from protgraph_datasets.model_quality.dataset import MODELS

    for name in ("natives", "models"):
        (folder / "bcif").mkdir(parents=True, exist_ok=True)
        unpack_tar(shared / f"{name}.tar.xz", folder / "bcif")
    columns = ("rmsd", "gdt_ts", "tm", "lddt")
    scores: dict[str, list[tuple[object, ...]]] = {}
    for row in read_tsv(shared / "natives.tsv.gz"):
        target = row["file"].removesuffix(".bcif")
        native = folder / "structures" / target[:2] / f"{target}.pdb"
        native.parent.mkdir(parents=True, exist_ok=True)
        native.symlink_to(folder / "bcif" / "natives" / row["file"])
    for row in read_tsv(shared / "models.tsv.gz"):
        target, set_ = row["target"], row["set"]
        model = folder / MODELS.format(set_) / f"{target}.pdb.{row['sample']}.pdb"
        model.parent.mkdir(parents=True, exist_ok=True)
        model.symlink_to(folder / "bcif" / "models" / row["file"])
        values = [row[name] for name in columns]
        scores.setdefault(set_, []).append((f"./structures/{target[:2]}/{target}.pdb", row["sample"], *values))
    for set_, rows in scores.items():
        _write_csv(folder / f"{MODELS.format(set_)}.csv", [("path", "copy", *columns), *rows])
    return folder


def lay_out_lbs_comparison(archive: Path, folder: Path, names: Collection[str]) -> Path:
    """Write the chains of an archive as LBS-comparison has them; formats are recognized by content."""
    target = folder / "DATA" / "trans_rep_chains"
    target.mkdir(parents=True)
    for name, read, _ in ChainArchive(archive).chains():
        if name in names:
            file = pdbx.BinaryCIFFile()
            pdbx.set_structure(file, read().atoms, data_block=name)
            file.write(target / f"{name}.trans.pdb")
    return folder


def lay_out_cgdms(archive: Path, folder: Path, names: Collection[str]) -> Path:
    """Write the chains of an archive as cgdms has them."""
    target = folder / "cgdms" / "protein_data" / "train_val"
    target.mkdir(parents=True)
    with np.load(archive, allow_pickle=False) as file:
        ids, ends, letters, xyz = file["ids"].tolist(), np.cumsum(file["length"], dtype=int), file["seq"], file["xyz"]
    for name, begin, end in zip(ids, [0, *ends[:-1].tolist()], ends.tolist(), strict=True):
        if name in names:
            sequence = "".join(map(chr, letters[begin:end]))
            lines = [" ".join(f"{x / 100}" for x in row) for row in xyz[begin:end].reshape(-1, 12).tolist()]
            (target / f"{name}.txt").write_text("\n".join([sequence, "C" * len(sequence), *lines]) + "\n")
    return folder
