"""The pipeline: every protein gives a graph or a failure, and each file is opened once."""

from __future__ import annotations

import gzip
import hashlib
import json
import pickle
import shutil

import numpy as np
import pytest
from biotite.structure.io import pdb, pdbx

from protgraph import registry
from protgraph.errors import OptionError, UnknownNameError
from protgraph.featurize import Failure, FeaturePlan, ModelInputs, ProteinRequest, iter_graphs, pipeline, write_manifest
from protgraph.featurize.base import StructureFeaturizer
from protgraph.featurize.plan import build_graph
from protgraph.featurize.result import COLUMNS
from protgraph.registry.component import component
from protgraph.structure import clean, load_structure

FEATURES = ["dihedral", component("knn", k=8), "edge_distance"]


@pytest.fixture
def files(structures_dir, tmp_path):
    (tmp_path / "broken.pdb").write_text("HEADER    nothing\n")
    return [structures_dir / "1crn.bcif", tmp_path / "broken.pdb", structures_dir / "1jk9.bcif", tmp_path / "none.cif"]


def run(sources, **options):
    return list(iter_graphs(sources, FeaturePlan(FEATURES), **options))


def same_graphs(one, two):
    assert set(one.keys()) == set(two.keys())
    for key in one.keys():  # noqa: SIM118 -- Data iterates over pairs
        np.testing.assert_array_equal(one[key], two[key], err_msg=key)


def test_every_file_gives_a_graph_or_a_failure(files):
    results = run(files)
    assert [r.source for r in results] == [str(f) for f in files]
    assert [isinstance(r, Failure) for r in results] == [False, True, False, True]
    assert [r.error_type for r in results if isinstance(r, Failure)] == ["EmptyStructureError", "StructureFileError"]
    assert [r.sha256 for r in results[:3]] == [hashlib.sha256(f.read_bytes()).hexdigest() for f in files[:3]]
    assert results[3].sha256 == "" and "none.cif" in str(results[3])
    for result, file in ((results[0], files[0]), (results[2], files[2])):
        same_graphs(result.graph, build_graph(clean(load_structure(file)), FEATURES))
        assert (result.protein, len(result.residues)) == (file.stem, result.graph.num_nodes)
    assert results[2].loss["ligands"] == {"SO4": 2, "ZN": 4}


@pytest.mark.parametrize("name", ["x.bcif", "x.cif.gz", "x.pdb", "x.fasta"])
def test_each_file_is_opened_once(structures_dir, tmp_path, name, opened_files):
    path = tmp_path / name
    atoms = load_structure(structures_dir / "1crn.bcif").atoms
    if name == "x.fasta":
        path.write_text(">a\nMKT\n>b\nGGG\n")
    elif name == "x.bcif":
        shutil.copy(structures_dir / "1crn.bcif", path)
    elif name == "x.pdb":
        file = pdb.PDBFile()
        file.set_structure(atoms)
        file.write(path)
    else:
        file = pdbx.CIFFile()
        pdbx.set_structure(file, atoms)
        path.write_bytes(gzip.compress(file.serialize().encode()))
    plan = FeaturePlan(["residue_one_hot"])
    opened_files.clear()
    results = list(iter_graphs([path], plan))
    assert opened_files.count(str(path)) == 1
    assert [type(r).__name__ for r in results] == ["GraphResult"] * (2 if name == "x.fasta" else 1)


def test_a_file_of_several_requests_is_opened_once(structures_dir, opened_files):
    path = str(structures_dir / "1hf9.bcif")
    requests = [ProteinRequest(path, f"1hf9_{chain}", chains=(chain,)) for chain in "ABZ"]
    results = run(requests)
    assert opened_files.count(path) == 1
    assert [r.protein for r in results] == ["1hf9_A", "1hf9_B", "1hf9_Z"]
    assert results[2].error_type == "SelectionError" and results[1].residues.chain_names == ("B",)


def test_records_of_fasta_are_proteins_of_their_own(tmp_path):
    path = tmp_path / "x.fasta"
    path.write_text(">a\nMKT\n>b\nM1T\n>c\nGG\n")
    plan = FeaturePlan(["residue_one_hot"])
    results = list(iter_graphs(path, plan))
    assert [r.source for r in results] == [f"{path}#a", f"{path}#b", f"{path}#c"]
    assert [isinstance(r, Failure) for r in results] == [False, True, False]
    [one] = iter_graphs(f"{path}#c", plan)
    assert one.residues.sequence == "GG"
    [absent] = iter_graphs(f"{path}#d", plan)
    assert absent.error_type == "SelectionError" and "'d'" in absent.message


def test_folders_and_patterns_are_expanded(structures_dir, tmp_path):
    (tmp_path / "below").mkdir()
    for name in ("1crn", "1vii"):
        shutil.copy(structures_dir / f"{name}.bcif", tmp_path / "below")
    for source in (tmp_path, f"{tmp_path}/*/*.bcif", [tmp_path / "below" / "1crn.bcif", tmp_path]):
        assert [r.protein for r in run(source)] == ["1crn", "1vii"]


def test_chains_are_split_on_request(structures_dir):
    results = run(structures_dir / "1hf9.bcif", split_chains=True, step=ModelInputs())
    assert [(r.chains, len(r.residues)) for r in results] == [("A", 41), ("B", 41)]


@pytest.mark.slow
def test_two_processes_give_the_results_of_one(files):
    one, two = run(files), run(files, jobs=2)
    for a, b in zip(one, two, strict=True):
        assert (a.source, a.protein, a.sha256) == (b.source, b.protein, b.sha256)
        if isinstance(a, Failure):
            assert a == b
        else:
            same_graphs(a.graph, b.graph)
            assert a.residues.ids == b.residues.ids


class OwnForPipeline(StructureFeaturizer):
    """Registered in this process only."""

    writes = ("b_factor",)

    def __call__(self, residues):
        return {"b_factor": residues.b_factor[:, None]}


@pytest.mark.slow
def test_featurizers_of_this_session_run_in_this_process(files):
    registry.featurizers.register("own_for_pipeline", OwnForPipeline)
    plan = FeaturePlan(["own_for_pipeline"])
    one, two = (list(iter_graphs(files, plan, jobs=jobs)) for jobs in (1, 2))
    assert [isinstance(r, Failure) for r in two] == [False, True, False, True]
    same_graphs(one[2].graph, two[2].graph)


def test_an_unknown_featurizer_is_an_error_before_any_file():
    with pytest.raises(UnknownNameError):
        FeaturePlan(["dihedrals"])


def test_fatal_errors_stop_the_run(files):
    def step(residues, plan, request):
        raise OptionError("stop")

    with pytest.raises(OptionError):
        run(files, step=step, fatal=(OptionError,))
    assert [r.error_type for r in run(files, step=step)][::2] == ["OptionError", "OptionError"]


def test_every_manifest_has_the_same_columns(files, tmp_path):
    results = run(files)
    for suffix in ("csv", "tsv"):
        text = write_manifest(tmp_path / f"m.{suffix}", results).read_text()
        header = text.splitlines()[0].split("," if suffix == "csv" else "\t")
        assert tuple(header[: len(COLUMNS)]) == COLUMNS and set(header[len(COLUMNS) :]) == set().union(
            *(r.loss for r in results if not isinstance(r, Failure))
        )
    rows = json.loads(write_manifest(tmp_path / "m.json", results).read_text())
    assert [tuple(row) for row in rows] == [(*COLUMNS, "loss")] * 4
    assert [row["status"] for row in rows] == ["done", "failed", "done", "failed"]
    assert rows[0]["edges"] == results[0].graph.num_edges


def test_a_worker_makes_the_same_plan():
    plan = FeaturePlan(FEATURES)
    assert pipeline._plan(pickle.loads(pickle.dumps(plan.components)), plan.node_type).key() == plan.key()
