"""Distributions with one fault each, and the words of ``protgraph doctor`` that name it.

``install_plugin`` writes one as a folder for ``sys.path`` or ``PYTHONPATH``; no installer is needed.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["BROKEN_PLUGINS", "MALFORMED_PLUGIN", "BrokenPlugin", "install_plugin"]

LAYER = """
from torch import nn
import protgraph as pg

class Layer(pg.GraphLayer):
    reads, writes = ("h",), ("h",)
    def __init__(self, fields):
        super().__init__(fields)
        self.declare(h=fields["h"].irreps)
    def forward(self, f):
        return {"h": f["h"]}
"""


@dataclass(frozen=True)
class BrokenPlugin:
    """A distribution with a fault.

    Parameters
    ----------
    name : str
        Of the distribution; its module is the same with underscores.
    entry_points : str
        Content of entry_points.txt; ``{m}`` is the module.
    code : str
        Source of the module.
    report : tuple of str
        What the report of ``protgraph doctor`` contains, beside the name.
    """

    name: str
    entry_points: str
    code: str = LAYER
    report: tuple[str, ...] = field(default=())

    @property
    def module(self) -> str:
        return self.name.replace("-", "_")


def layer(name: str, code: str, *report: str, key: str = "") -> BrokenPlugin:
    """Return a plugin with one layer, whose module runs ``code`` when it is imported."""
    points = f"[protgraph.layers]\n{key or name.replace('-', '_')} = {{m}}:Layer\n"
    return BrokenPlugin(name, points, textwrap.dedent(code) + LAYER, report)


STATE = """
import logging, os, random, signal, sys, warnings
import numpy, torch
torch.set_default_dtype(torch.float64)
torch.set_grad_enabled(False)
torch.set_num_threads(7)
torch.manual_seed(1); numpy.random.seed(1); random.seed(1)
signal.signal(signal.SIGINT, signal.SIG_IGN)
warnings.filterwarnings("ignore")
logging.getLogger().setLevel(logging.ERROR)
sys.path.append("/no/such/folder")
os.environ["BAD_STATE"] = "1"
os.chdir(os.path.dirname(os.getcwd()) or "/")
"""
CHANGES = (
    "default dtype of torch: torch.float32 → torch.float64",
    "gradient mode of torch: True → False",
    "number of threads of torch",
    "random state of torch",
    "random state of numpy",
    "random state of Python",
    "signal handlers: SIGINT",
    "warning filters",
    "root logger",
    "sys.path: + /no/such/folder",
    "environment variables: BAD_STATE",
    "working directory",
)
GROUPS = ("featurizers", "layers", "heads", "models", "tasks", "datasets")
TYPES = "NUMBER = 3\nTEXT = 'gcn'\ndef function(): pass\nimport sys as module\nclass Plain: pass\n"
TYPED = "".join(
    f"[protgraph.{group}]\n"
    + "".join(f"odd_{group}_{o.lower()} = {{m}}:{o}\n" for o in ("NUMBER", "TEXT", "function", "module", "Plain"))
    for group in GROUPS
)
HANG = "while True:\n    pass\n"
THREAD = """
import threading, time
def wait():
    while True: time.sleep(1)
threading.Thread(target=wait, name="endless").start()
"""

#: All can be installed at once; a session in which one of them is loaded may hang or end.
BROKEN_PLUGINS = (
    layer("bad-loop", HANG, "layer bad_loop", "did not finish within"),
    layer("bad-segfault", "import ctypes; ctypes.string_at(0)\n", "layer bad_segfault", "SIGSEGV"),
    layer("bad-interrupt", "raise KeyboardInterrupt\n", "layer bad_interrupt", "KeyboardInterrupt"),
    layer("bad-exit", "import os; os._exit(3)\n", "layer bad_exit", "exit status 3"),
    layer("bad-sys-exit", "import sys; sys.exit(5)\n", "layer bad_sys_exit", "SystemExit: 5"),
    layer("bad-error", "raise RuntimeError('no license here')\n", "layer bad_error", "RuntimeError: no license here"),
    layer("bad-syntax", "x = = 1\n", "layer bad_syntax", "SyntaxError"),
    layer("bad-import", "import no_such_module_anywhere\n", "layer bad_import", "no_such_module_anywhere"),
    layer("bad-thread", THREAD, "threads that do not end: endless"),
    layer("bad-print", "print('hello'); import os; os.write(2, b'from C')\n", "layer bad_print", "'hello'", "'from C'"),
    layer("bad-state", STATE, "layer bad_state", *CHANGES),
    layer("bad-claim", "", "layer bad-claim/gcn", "name of a component of protgraph-pyg", key="gcn"),
    layer("bad-twin-one", "", "layer shared_name", "'bad-twin-one/shared_name'", key="shared_name"),
    layer("bad-twin-two", "", "'bad-twin-two/shared_name'", key="shared_name"),
    layer("bad-name", "", "layer my layer.v1", key="my layer.v1"),
    BrokenPlugin("bad-types", TYPED, TYPES, tuple(f"odd_{group}_plain" for group in GROUPS)),
    BrokenPlugin("bad-group", "[protgraph.layer]\nany = {m}:Layer\n", report=("protgraph.layer", "'protgraph.layers'")),
    BrokenPlugin("bad-value", "[protgraph.layers]\nbad_value = {m} Layer\n", report=("bad_value", "module:attribute")),
)

#: With it, torch cannot be imported, so it is not among the others.
MALFORMED_PLUGIN = BrokenPlugin(
    "bad-metadata", "[protgraph.layers]\nlayer {m}:Layer\n", report=("bad-metadata", "line 2", "has no '='", "torch")
)


def install_plugin(plugin: BrokenPlugin, folder: Path) -> Path:
    """Write a distribution to a folder, which then belongs on ``sys.path``; return the folder."""
    info = folder / f"{plugin.module}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {plugin.name}\nVersion: 1.0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text(plugin.entry_points.replace("{m}", plugin.module), encoding="utf-8")
    (folder / f"{plugin.module}.py").write_text(plugin.code, encoding="utf-8")
    return folder
