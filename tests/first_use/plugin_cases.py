"""Ninety distributions with a fault each, and the command that must name the fault.

Distributions that end or block a process are in ``broken_plugins.py``; ``protgraph doctor`` loads those.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.first_use.broken_plugins import BrokenPlugin

__all__ = ["PLUGIN_GROUPS", "PluginCase"]

KINDS = ("layer", "featurizer", "head", "model", "task", "dataset")
_HEAD = "import numpy as np\nimport torch\nfrom torch import nn\nimport protgraph as pg\n\n"
_TRAIN = "--data A --epochs 1 -q --log none --device cpu -o new.safetensors"


@dataclass(frozen=True)
class PluginCase:
    """A distribution, the command, its exit code and the data of its output."""

    plugin: BrokenPlugin
    args: str
    code: int
    parts: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.plugin.name}: protgraph {self.args}"


def _plugin(name: str, points: dict[str, str], code: str) -> BrokenPlugin:
    """Return a distribution ``fault-NAME`` with entry points: group → object of its module."""
    text = "".join(f"[protgraph.{group}s]\n{_key(name)} = {{m}}:{obj}\n" for group, obj in points.items())
    return BrokenPlugin(f"fault-{name}", text, _HEAD + code)


def _key(name: str) -> str:
    return f"fault_{name.replace('-', '_')}"


_AT_IMPORT = {
    "error": ("raise RuntimeError('no license here')", "no license here"),
    "syntax": ("x = = 1", "SyntaxError"),
    "module": ("import no_such_module_anywhere", "no_such_module_anywhere"),
    "memory": ("raise MemoryError('too much')", "MemoryError"),
    "recursion": ("def f(): f()\nf()", "RecursionError"),
    "exit": ("import sys; sys.exit(5)", "SystemExit"),
    "attribute": ("pass", "Component"),
}
_OBJECTS = {"int": "3", "text": "'gcn'", "function": "lambda: None", "class": "type('Plain', (), {})", "none": "None"}


def _import_faults() -> list[PluginCase]:
    """Return modules that fail to import, behind entry points of every kind."""
    cases = []
    for kind in KINDS:
        for fault, (code, part) in _AT_IMPORT.items():
            name = f"{kind}-{fault}"
            plugin = _plugin(name, {kind: "Component"}, f"{code}\n")
            cases.append(PluginCase(plugin, f"info {_key(name)}", 2, (part, f"fault-{name}")))
    return cases


def _wrong_types() -> list[PluginCase]:
    """Return entry points of every kind to objects of other types."""
    cases = []
    for kind in KINDS:
        for label, value in _OBJECTS.items():
            name = f"{kind}-{label}"
            plugin = _plugin(name, {kind: "Component"}, f"Component = {value}\n")
            cases.append(PluginCase(plugin, f"info {_key(name)}", 2, (f"fault-{name}", kind)))
    return cases


_LAYER = """
class Layer(pg.GraphLayer):
    reads, writes = ("h",), ("h",)
    conformity = pg.Conformity(inputs={{"h": "8x0e"}})

    def __init__(self, fields, *, {options}):
        super().__init__(fields)
        self.linear = nn.Linear(fields["h"].dim, fields["h"].dim)
        {more}
        self.declare(h=fields["h"].irreps)

    def forward(self, f):
{forward}

MODEL = pg.ModelSpec("m", ["knn"], [pg.component("embed", reads=["aatype"], dim=8), pg.component("{name}")])
"""


def _layer(name: str, forward: str, *, more: str = "pass", options: str = "dim: int = 8") -> BrokenPlugin:
    body = "\n".join(f"        {line}" for line in forward.split("\n"))
    code = _LAYER.format(forward=body, more=more, options=options, name=_key(name))
    return _plugin(name, {"layer": "Layer", "model": "MODEL"}, code)


#: Fault of a layer → (forward, part of the error in training).
_LAYERS_TRAIN = {
    "raises": ("raise ValueError('own bug')", "own bug"),
    "undeclared": ("return {'h': f['nothere']}", "nothere"),
    "nan": ("return {'h': self.linear(f['h']) * float('nan')}", "finite"),
    "shape": ("return {'h': self.linear(f['h'])[:, :3]}", "shape"),
    "none": ("return None", "None"),
    "other-key": ("return {'x': self.linear(f['h'])}", "x"),
    "no-grad": ("torch.set_grad_enabled(False)\nreturn {'h': self.linear(f['h'])}", "grad"),
    "exits": ("import sys; sys.exit(5)", "exit"),
}
#: Fault of a layer → (forward, name of the failing check).
_LAYERS_CHECK = {
    "random": ("return {'h': self.linear(f['h']) + torch.rand(1, dtype=f['h'].dtype)}", "✗ global_state"),
    "state": ("self.n = getattr(self, 'n', 0) + 1\nreturn {'h': self.linear(f['h']) * self.n}", "✗ seed"),
    "in-place": ("f['h'].add_(1)\nreturn {'h': self.linear(f['h'])}", "✗ inputs_unchanged"),
    "seeds": ("torch.manual_seed(0)\nreturn {'h': self.linear(f['h'])}", "✗ global_state"),
    "mode": ("self.train()\nreturn {'h': self.linear(f['h'])}", "✗ global_state"),
    "extra": ("return {'h': self.linear(f['h']), 'extra': f['h']}", "extra"),
    "batch": ("return {'h': self.linear(f['h'] - f['h'].mean(0))}", "✗ no_leak"),
}


def _layers() -> list[PluginCase]:
    cases = []
    for fault, (forward, part) in _LAYERS_TRAIN.items():
        name = f"layer-{fault}"
        args = f"train {_key(name)} --task secondary_structure {_TRAIN}"
        cases.append(PluginCase(_layer(name, forward), args, 2, (part, _key(name), f"fault-{name}")))
    for fault, (forward, part) in _LAYERS_CHECK.items():
        name = f"layer-{fault}"
        cases.append(PluginCase(_layer(name, forward), f"check {_key(name)} --kind layers", 1, (part,)))
    good = "return {'h': self.linear(f['h'])}"
    kwargs = _layer("layer-kwargs", good, options="dim: int = 8, **options")
    cases.append(PluginCase(kwargs, "check fault_layer_kwargs --kind layers", 1, ("✗ signature", "**options")))
    unused = _layer("layer-unused", good, more="self.norm = nn.BatchNorm1d(8)")
    cases.append(PluginCase(unused, "check fault_layer_unused --kind layers", 1, ("✗ every_parameter_learns",)))
    return cases


_FEATURIZER = """
class Feature(pg.StructureFeaturizer):
    writes = ("b_factor",)

    def __call__(self, residues):
{call}

MODEL = pg.ModelSpec("m", ["knn", "{name}"], [pg.component("embed", reads=["aatype", "b_factor"], dim=8)])
"""
_CALLS = {
    "raises": ("raise ValueError('own bug')", ("own bug",)),
    "none": ("return None", ("None",)),
    "one-d": ("return {'b_factor': residues.b_factor}", ("(46,)",)),
    "rows": ("return {'b_factor': residues.b_factor[1:, None]}", ("rows",)),
    "exits": ("import sys; sys.exit(5)", ("exit",)),
    "key": ("return {'other': residues.b_factor[:, None]}", ("other",)),
    "nan": ("return {'b_factor': residues.b_factor[:, None] * np.nan}", ("finite",)),
    "changes": ("residues.pos[:] = 0\nreturn {'b_factor': residues.b_factor[:, None]}", ("read-only",)),
}


def _featurizers() -> list[PluginCase]:
    cases = []
    for fault, (call, parts) in _CALLS.items():
        name = f"feature-{fault}"
        body = "\n".join(f"        {line}" for line in call.split("\n"))
        code = _FEATURIZER.format(call=body, name=_key(name))
        plugin = _plugin(name, {"featurizer": "Feature", "model": "MODEL"}, code)
        args = f"train {_key(name)} --task secondary_structure {_TRAIN}"
        own = parts if fault != "rows" and fault != "one-d" else ()
        cases.append(PluginCase(plugin, args, 2, (*own, _key(name), f"fault-{name}")))
    return cases


_TASK = """
from protgraph import registry
from protgraph.task import Metric, cross_entropy

def derive(residues):
{derive}

def loss(logits, y):
{loss}

def score(predictions):
{score}

METRIC = Metric("score", "max", score)
TARGET = pg.Target("{name}", "node", "classification", 2, ("a", "b"))
TASK = pg.Task("{name}", TARGET, loss, (METRIC,), "score", derive=derive)
"""
_GOOD = {"derive": "return residues.aatype % 2", "loss": "return cross_entropy(logits, y)", "score": "return 0.5"}
_TASKS = {
    "derive-raises": ("derive", "raise ValueError('own bug')", "own bug"),
    "derive-none": ("derive", "return None", "None"),
    "derive-length": ("derive", "return residues.aatype[1:] % 2", "derive"),
    "derive-range": ("derive", "return residues.aatype % 2 + 5", "5"),
    "derive-float": ("derive", "return residues.b_factor", "float"),
    "derive-exits": ("derive", "import sys; sys.exit(5)", "exit"),
    "loss-raises": ("loss", "raise ValueError('own bug')", "own bug"),
    "loss-vector": ("loss", "return logits.sum(1)", "loss"),
    "metric-raises": ("score", "raise ValueError('own bug')", "own bug"),
}


def _tasks() -> list[PluginCase]:
    cases = []
    for fault, (part_of_task, body, part) in _TASKS.items():
        name = f"task-{fault}"
        bodies = {key: f"    {body if key == part_of_task else good}" for key, good in _GOOD.items()}
        plugin = _plugin(name, {"task": "TASK"}, _TASK.format(name=_key(name), **bodies))
        cases.append(PluginCase(plugin, f"train gcn --task {_key(name)} {_TRAIN}", 2, (part, _key(name))))
    return cases


_NAMES = {"space": "two words", "dot": "my.layer", "umlaut": "schicht_ä", "upper": "LAYER"}


def _names() -> list[PluginCase]:
    """Return odd names, claims on built-in names, and groups that do not exist; all are listed without an error."""
    cases = []
    for label, key in _NAMES.items():
        plain = _layer(f"name-{label}", "return {'h': self.linear(f['h'])}")
        plugin = BrokenPlugin(plain.name, f"[protgraph.layers]\n{key} = {{m}}:Layer\n", plain.code)
        cases.append(PluginCase(plugin, "list layers", 0, (key, plain.name)))
    claim = _layer("claim", "return {'h': self.linear(f['h'])}")
    claim = BrokenPlugin(claim.name, "[protgraph.layers]\ngcn = {m}:Layer\n", claim.code)
    cases.append(PluginCase(claim, "list layers", 0, ("fault-claim/gcn",)))
    cases.append(PluginCase(claim, "info gcn --kind layers", 0, ("protgraph.nn.layers.convolutions",)))
    cases.append(PluginCase(claim, f"train gcn --task secondary_structure {_TRAIN}", 0, ("checkpoint",)))
    return cases


#: Group → its cases.
PLUGIN_GROUPS = {
    "plugins: import": _import_faults(),
    "plugins: types": _wrong_types(),
    "plugins: layers": _layers(),
    "plugins: featurizers": _featurizers(),
    "plugins: tasks": _tasks(),
    "plugins: names": _names(),
}
