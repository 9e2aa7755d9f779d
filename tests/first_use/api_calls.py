"""Python calls with wrong arguments. Each must raise a :class:`ProtgraphError` whose message has the given data."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["API_CALLS", "ApiCall", "api_names", "call_faults"]

STRUCTURES = Path(__file__).resolve().parents[2] / "datasets" / "pdb_core" / "structures"


@dataclass(frozen=True)
class ApiCall:
    """An expression on the names of ``test_api_calls.py`` and parts of the message of its error."""

    expression: str
    parts: tuple[str, ...]

    def __str__(self) -> str:
        return self.expression


def api_names(place: Path) -> dict[str, Any]:
    """Return the objects that the expressions use; files are written beside ``place``."""
    from protgraph_plugins import design

    import protgraph
    from protgraph.featurize import FeaturePlan

    pg = protgraph
    folder = place.with_name("calls") / "A"
    folder.mkdir(parents=True)
    for name in ("1crn", "1vii", "2erl", "1ajj"):
        shutil.copy(STRUCTURES / f"{name}.bcif", folder)
    table = folder.parent / "size.csv"
    table.write_text("file,size\n1crn.bcif,1.25\n1vii.bcif,2.5\n2erl.bcif,3.75\n1ajj.bcif,4.5\n")
    structure = pg.load_structure(folder / "1crn.bcif")
    residues = pg.clean(structure)
    task = pg.tasks.get("secondary_structure")
    checkpoint = folder.parent / "ss.safetensors"
    pg.fit("gcn", folder, "secondary_structure", config=pg.FitConfig(epochs=1, device="cpu")).save(checkpoint)
    return {
        "pg": pg,
        "design": design,
        "protgraph": protgraph,
        "folder": folder,
        "table": table,
        "file": folder / "1crn.bcif",
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


def call_faults(call: ApiCall, names: Mapping[str, Any]) -> list[str]:
    """Evaluate an expression; return what is wrong about its error."""
    from protgraph import ProtgraphError

    try:
        eval(call.expression, {"__builtins__": __builtins__}, dict(names))
    except ProtgraphError as e:
        text = str(e)
        faults = [f"message lacks {part!r}: {text}" for part in call.parts if part not in text]
        if not isinstance(e, TypeError | ValueError | LookupError | OSError | ImportError):
            faults.append(f"{type(e).__name__} is not one of Python's errors")
        if len(text) > 1000:
            faults.append(f"message of {len(text)} characters")
        return faults
    except Exception as e:  # noqa: BLE001 -- what the test looks for
        return [f"{type(e).__name__}: {e}"]
    return ["accepted"]


def _calls(*rows: tuple[str, ...]) -> list[ApiCall]:
    return [ApiCall(expression, parts) for expression, *parts in rows]


_STRUCTURES = _calls(
    ("pg.clean('x.cif')", "structure", "'x.cif'", "Structure"),
    ("pg.clean(None)", "structure", "None", "Structure"),
    ("pg.clean(3)", "structure", "3", "Structure"),
    ("pg.clean(residues)", "structure", "Residues", "Structure"),
    ("pg.clean(structure, chains=[])", "chains"),
    ("pg.clean(structure, chains=3)", "chains", "3"),
    ("pg.clean(structure, chains=[1])", "chains", "1"),
    ("pg.clean(structure, chains='Q')", "'Q'"),
    ("pg.clean(structure, ligands='yes')", "ligands", "'yes'"),
    ("pg.load_structure(None)", "path", "None"),
    ("pg.load_structure(3)", "path", "3"),
    ("pg.load_structure('')", "path", "''"),
    ("pg.load_structure('nothere.pdb')", "nothere.pdb"),
    ("pg.load_structure([file])", "path"),
    ("pg.load_structure(file, model_number='1')", "model_number", "'1'"),
    ("pg.load_structure(file, model_number=0)", "0"),
    ("pg.load_structure(file, model_number=1.5)", "model_number", "1.5"),
    ("pg.load_structure(file, chains=[])", "chains"),
    ("pg.load_structure(file, chains=7)", "chains", "7"),
    ("pg.load_structure(file, altloc='zzz')", "zzz"),
    ("pg.load_structure(file, altloc=None)", "altloc", "None"),
    ("pg.load_structure(file, assembly=1)", "assembly", "1"),
    ("pg.load_fasta(None)", "path", "None"),
    ("pg.load_fasta(3)", "path", "3"),
    ("pg.from_atom_array(None)", "atoms", "None", "AtomArray"),
    ("pg.from_atom_array([1, 2])", "atoms", "AtomArray"),
    ("pg.from_atom_array(residues)", "atoms", "Residues", "AtomArray"),
    ("pg.to_atom_array(None)", "residues", "None", "Residues"),
    ("pg.to_atom_array(structure)", "residues", "Structure", "Residues"),
    ("pg.fetch(None)", "accession", "None"),
    ("pg.fetch(7)", "accession", "7"),
    ("pg.fetch('1ubq', form='pdb')", "'pdb'", "bcif"),
    ("pg.fetch('1ubq', offline=True, retries=-1)", "retries", "-1"),
    ("pg.fetch('')", "''"),
)

_GRAPHS = _calls(
    ("pg.build_graph(None)", "protein", "None", "Residues"),
    ("pg.build_graph('x.cif')", "protein", "'x.cif'", "Residues"),
    ("pg.build_graph(3)", "protein", "3"),
    ("pg.build_graph(residues, None)", "features", "None"),
    ("pg.build_graph(residues, 'knn')", "features", "'knn'"),
    ("pg.build_graph(residues, [3])", "features", "3"),
    ("pg.build_graph(residues, ['knnn'])", "'knn'"),
    ("pg.build_graph(residues, node_type='atoms')", "'atoms'", "'atom'"),
    ("pg.build_graph(residues, node_type=None)", "node_type", "None"),
    ("pg.collate(None)", "graphs", "None"),
    ("pg.collate([])", "graphs"),
    ("pg.collate([1])", "graphs", "1", "ProteinGraph"),
    ("pg.collate(graph)", "graphs", "ProteinGraph"),
    ("pg.to_networkx(None)", "graph", "None", "ProteinGraph"),
    ("pg.to_networkx(residues)", "graph", "Residues", "ProteinGraph"),
    ("pg.to_pyg(3)", "graph", "3", "ProteinGraph"),
    ("pg.to_pyg(graph, x=['nothere'])", "nothere"),
    ("pg.from_pyg(None)", "data", "None", "Data"),
    ("pg.from_pyg('x')", "data", "'x'", "Data"),
    ("pg.GraphStore(None)", "path", "None"),
    ("pg.GraphStore(3)", "path", "3"),
    ("pg.GraphStore('nothere')", "nothere"),
    ("list(pg.iter_graphs(None, plan))", "sources", "None"),
    ("list(pg.iter_graphs(3, plan))", "sources", "3"),
    ("list(pg.iter_graphs(file, None))", "plan", "None", "FeaturePlan"),
    ("list(pg.iter_graphs(file, plan, jobs=0))", "jobs", "0"),
    ("list(pg.iter_graphs(file, plan, read='A'))", "read", "'A'", "ReadOptions"),
    ("pg.FieldSpec('f', 'node', 'foo')", "irreps", "'foo'"),
    ("pg.FieldSpec('f', 'node', '1x0e', dtype='float99')", "dtype", "'float99'"),
    ("pg.FieldSpec('f', 'nodes', '1x0e')", "level", "'nodes'"),
    ("pg.FieldSpec(3, 'node', '1x0e')", "name", "3"),
    ("pg.FieldSpec('', 'node', '1x0e')", "name", "''"),
    ("pg.FieldSpec('my_index', 'node', '1x0e')", "my_index"),
    ("pg.FieldSpec('f', 'node', 7)", "irreps", "7"),
    ("pg.FieldSpec('f', 'node', '1x0e', classes=-1)", "classes", "-1"),
    ("pg.register_field('f')", "'f'", "FieldSpec"),
    ("pg.field('h_')", "'h_'"),
    ("pg.field(None)", "None"),
)

_MODELS = _calls(
    ("pg.build_model(None, target)", "model", "NoneType"),
    ("pg.build_model(3, target)", "model", "int"),
    ("pg.build_model('gnc', target)", "'gcn'"),
    ("pg.build_model('gcn', None)", "target", "None", "Target"),
    ("pg.build_model('gcn', 'secondary_structure')", "target", "'secondary_structure'", "Target"),
    ("pg.build_model('gcn', target, seed='1')", "seed", "'1'"),
    ("pg.build_model('gcn', target, seed=-1)", "seed", "-1"),
    ("pg.build_model({}, target)", "name"),
    ("pg.ProteinModel('gcn', target)", "spec", "'gcn'", "ModelSpec"),
    ("pg.ModelSpec(3)", "name", "3"),
    ("pg.ModelSpec('m', features=3)", "features", "3"),
    ("pg.ModelSpec('m', layers=[3])", "layers", "3"),
    ("pg.ModelSpec('m', node_type='atoms')", "'atoms'"),
    ("pg.component(3)", "name", "3"),
    ("pg.component('knn', reads=3)", "reads", "3"),
    ("pg.pretrained('gcn')", "'gcn'"),
    ("pg.pretrained(None)", "model", "NoneType"),
    ("pg.Target('t', 'nodes', 'regression', 1)", "level", "'nodes'"),
    ("pg.Target('t', 'node', 'regresion', 1)", "kind", "'regresion'"),
    ("pg.Target('t', 'node', 'regression', 0)", "size", "0"),
    ("pg.Target('t', 'node', 'classification', '3')", "size", "'3'"),
    ("pg.Target(3, 'node', 'regression', 1)", "name", "3"),
    ("pg.Task('t', None, print, (), 'x')", "target", "None"),
    ("pg.Family({})", "variants"),
    ("pg.Family(3)", "variants", "3"),
    ("pg.layers.register(3)", "3"),
    ("pg.layers.get('gnc')", "'gcn'"),
    ("pg.layers.get(None)", "None"),
    ("pg.layers.create('gat', {}, options={'heds': 2})", "'heads'"),
)

_TRAINING = _calls(
    ("pg.FitConfig(epochs=2.5)", "epochs", "2.5"),
    ("pg.FitConfig(epochs='3')", "epochs", "'3'"),
    ("pg.FitConfig(epochs=0)", "epochs", "0"),
    ("pg.FitConfig(seed=-1)", "seed", "-1"),
    ("pg.FitConfig(seed=10**20)", "seed", "1000"),
    ("pg.FitConfig(lr='big')", "lr", "'big'"),
    ("pg.FitConfig(device=3)", "device", "3"),
    ("pg.FitConfig(epoch=3)", "epoch"),
    ("pg.FitConfig(3)", "3"),
    ("pg.fit(None, folder, 'secondary_structure')", "model", "NoneType"),
    ("pg.fit(model, folder, 'secondary_structure')", "model", "ProteinModel"),
    ("pg.fit('gcn', None, 'secondary_structure')", "dataset", "None"),
    ("pg.fit('gcn', 3, 'secondary_structure')", "dataset", "int"),
    ("pg.fit('gcn', '', 'secondary_structure')", "dataset", "empty"),
    ("pg.fit('gcn', folder, None)", "no task is given", "no label table"),
    ("pg.fit('gcn', folder, 3)", "task", "3"),
    ("pg.fit('gcn', folder, 'secondary_structur')", "'secondary_structure'"),
    ("pg.fit('gcn', folder, 'secondary_structure', config={'epochs': 1})", "config", "FitConfig"),
    ("pg.fit('gcn', folder, 'secondary_structure', config='fast')", "config", "'fast'", "FitConfig"),
    ("pg.load_dataset(None)", "dataset", "None"),
    ("pg.load_dataset('nothere')", "nothere"),
    ("pg.load_dataset(folder, labels=3)", "labels", "int"),
    ("pg.load_dataset(folder, labels=table, columns=3)", "columns", "3"),
    ("pg.load_dataset(folder, labels=table, columns='siz')", "'size'"),
    ("pg.load_dataset(folder, labels=table, kind='regresion')", "'regression'"),
    ("pg.load_dataset(folder, task='secondary_structure', seed='x')", "seed", "'x'"),
    ("pg.load_checkpoint(None)", "path", "None"),
    ("pg.load_checkpoint(3)", "path", "3"),
    ("pg.load_checkpoint('nothere.safetensors')", "nothere.safetensors"),
    ("pg.predict(None, file)", "checkpoint", "None"),
    ("pg.predict(model, file)", "checkpoint", "ProteinModel"),
    ("pg.predict(checkpoint, None)", "sources", "None"),
    ("pg.predict(checkpoint, 3)", "sources", "3"),
    ("pg.predict(checkpoint, [3])", "sources", "3"),
    ("pg.predict(checkpoint, file, device='mps')", "'mps'"),
    ("pg.predict(checkpoint, file, device=0)", "device", "0"),
    ("pg.embed(None, file)", "checkpoint", "None"),
    ("pg.embed(checkpoint, None)", "sources", "None"),
    ("pg.embed(checkpoint, file, batch_residues='x')", "batch_residues", "'x'"),
    ("pg.evaluate(None, None, None)", "model", "None", "ProteinModel"),
    ("pg.evaluate(model, 'store', task)", "store", "'store'", "GraphStore"),
    ("pg.generate(checkpoint)", "secondary_structure"),
    ("pg.generate(None)", "checkpoint", "None"),
    ("pg.generate(checkpoint, n='x')", "n", "'x'"),
    ("list(design.design_sequences(None, [residues]))", "model", "None", "ProteinModel"),
    ("list(design.design_sequences(model, [residues]))", "secondary_structure"),
    ("list(design.design_sequences(inverse, None))", "proteins", "None"),
    ("list(design.design_sequences(inverse, residues))", "proteins", "Residues"),
    ("list(design.design_sequences(inverse, [3]))", "proteins", "3"),
    ("list(design.design_sequences(inverse, [residues], 'A'))", "spec", "'A'", "DesignSpec"),
    ("list(design.design_sequences(inverse, [residues], copies='two'))", "copies", "'two'"),
    ("list(design.score_sequences(None, [residues]))", "model", "None", "ProteinModel"),
    ("list(design.score_sequences(inverse, 'x.pdb'))", "proteins", "'x.pdb'"),
    ("list(design.score_sequences(inverse, [residues], mode='conditionl'))", "'conditionl'"),
    ("design.DesignSpec(chains=3)", "chains", "3"),
    ("design.DesignSpec(fixed=3)", "fixed", "3"),
    ("design.DesignSpec(pssm_weight='x')", "pssm_weight", "'x'"),
    ("pg.run_bench(None)", "spec", "None", "BenchSpec"),
    ("pg.run_bench('spec.toml')", "spec", "'spec.toml'", "BenchSpec"),
    ("pg.write_report('spec.toml', [])", "spec", "'spec.toml'", "BenchSpec"),
    ("pg.BenchSpec(name=3)", "name", "3"),
    ("pg.BenchSpec.from_toml(None)", "path", "None"),
    ("pg.BenchSpec.from_dict(None)", "None"),
    ("protgraph.testing.check_component(3)", "3"),
)

API_CALLS = [*_STRUCTURES, *_GRAPHS, *_MODELS, *_TRAINING]
