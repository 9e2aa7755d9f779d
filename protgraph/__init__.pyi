# Written by tools/stubs.py.
from protgraph import (
    bench as bench,
    data as data,
    errors as errors,
    featurize as featurize,
    model as model,
    nn as nn,
    ops as ops,
    registry as registry,
    structure as structure,
    task as task,
    testing as testing,
    train as train,
)
from protgraph.bench import BenchSpec as BenchSpec, run_bench as run_bench, write_report as write_report
from protgraph.checkpoint import TrainedModel as TrainedModel, load_checkpoint as load_checkpoint
from protgraph.data import (
    Conformity as Conformity,
    Dataset as Dataset,
    DatasetCard as DatasetCard,
    Example as Example,
    FieldSpec as FieldSpec,
    FolderDataset as FolderDataset,
    GraphStore as GraphStore,
    ProteinGraph as ProteinGraph,
    ProteinLabels as ProteinLabels,
    ResidueLabels as ResidueLabels,
    SplitCount as SplitCount,
    Target as Target,
    TaskCard as TaskCard,
    collate as collate,
    field as field,
    from_pyg as from_pyg,
    register_field as register_field,
    to_networkx as to_networkx,
    to_pyg as to_pyg,
)
from protgraph.errors import ComponentError as ComponentError, ProtgraphError as ProtgraphError
from protgraph.evaluation import evaluate as evaluate
from protgraph.featurize import (
    EdgeFeaturizer as EdgeFeaturizer,
    EdgeList as EdgeList,
    NodeFeaturizer as NodeFeaturizer,
    NodeList as NodeList,
    StructureFeaturizer as StructureFeaturizer,
    TensorFeaturizer as TensorFeaturizer,
    build_graph as build_graph,
    iter_graphs as iter_graphs,
)
from protgraph.inference import embed as embed, predict as predict
from protgraph.labels import inspect_dataset as inspect_dataset, load_dataset as load_dataset
from protgraph.model import (
    ComponentSpec as ComponentSpec,
    ModelSpec as ModelSpec,
    ProteinModel as ProteinModel,
    build_model as build_model,
    component as component,
    pretrained as pretrained,
)
from protgraph.nn import GraphLayer as GraphLayer, Head as Head
from protgraph.ops import Edges as Edges, Proteins as Proteins
from protgraph.registry import (
    Family as Family,
    commands as commands,
    datasets as datasets,
    featurizers as featurizers,
    functions as functions,
    heads as heads,
    layers as layers,
    metrics as metrics,
    models as models,
    mutation_scorers as mutation_scorers,
    readers as readers,
    tasks as tasks,
    trained_models as trained_models,
)
from protgraph.structure import (
    ParsedFile as ParsedFile,
    Reader as Reader,
    Residues as Residues,
    Structure as Structure,
    clean as clean,
    fetch as fetch,
    from_atom_array as from_atom_array,
    load_fasta as load_fasta,
    load_structure as load_structure,
    to_atom_array as to_atom_array,
)
from protgraph.task import InputMasking as InputMasking, Metric as Metric, Task as Task
from protgraph.train import FitConfig as FitConfig, cross_validate as cross_validate, fit as fit
from protgraph_plugins.attribution.attributions import explain as explain
from protgraph_plugins.gpt.generation import generate as generate
from protgraph_plugins.pockets.find import find_pockets as find_pockets
from protgraph_plugins.recipes.run import run_recipe as run_recipe

__version__: str
