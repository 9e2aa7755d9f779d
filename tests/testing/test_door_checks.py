"""Checks of metrics, readers and commands: honest ones pass, and each broken one is found by its check."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

import protgraph as pg
from protgraph.errors import SelectionError
from protgraph.structure.io import FileContent, read_atoms
from protgraph.task import Metric, as_metric
from protgraph.testing import CHECKS, check_component, find_components
from protgraph.testing.checks import command_form


def failed(what: object, *only: str) -> dict[str, str]:
    """Return the messages of the checks that fail, by name."""
    (component,) = find_components(what)
    return {report.check: report.message for report in check_component(component, only=only) if not report.ok}


# --- metrics ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", pg.metrics)
def test_a_built_in_metric_passes_every_check(name):
    assert failed(pg.metrics.get(name)) == {}


def mean_error(o) -> float:
    """Mean absolute error of all known values."""
    return (o.logits - o.y).abs().nanmean()


def of_samples(o, place, times):
    error = (o.logits - o.y).abs().double().numpy()
    known = ~np.isnan(error)
    sums, counts = (
        np.stack([np.bincount(place, column, times.shape[1]) for column in values.reshape(len(place), -1).T]).sum(0)
        for values in (np.where(known, error, 0), known)
    )
    return times @ sums / (times @ counts)


def one_of_samples(o, place, times):
    return np.full(len(times), float(mean_error(o)))


def in_place(o) -> float:
    """Mean absolute error."""
    error = mean_error(o)
    o.logits.sub_(1)
    return error


def seeds(o) -> float:
    """Mean absolute error."""
    random.random()
    return mean_error(o)


def of_the_last(o) -> float:
    """Error of the last known row."""
    return (o.logits - o.y)[~o.y.isnan()][-1].abs()


def undefined(o) -> float:
    """Undefined."""
    return float("nan")


def undocumented(o) -> float:
    return mean_error(o)


def test_an_honest_metric_passes_every_check():
    assert failed(as_metric("min")(mean_error)) == failed(Metric("mine", "min", mean_error, of_samples)) == {}


ACCURACY = pg.metrics.get("accuracy").function
BROKEN_METRICS = {
    "wrong direction": (Metric("mine", "min", ACCURACY), "metric_values", "mode is 'min'"),
    "NaN": (Metric("mine", "max", undefined), "metric_values", "nan"),
    "no docstring": (Metric("mine", "min", undocumented), "builds", "docstring"),
    "no direction": (Metric("mine", "up", mean_error), "builds", "'up'"),
    "in place": (Metric("mine", "min", in_place), "metric_inputs", "'logits'"),
    "random": (Metric("mine", "min", seeds), "metric_inputs", "random state of Python"),
    "order": (Metric("mine", "min", of_the_last), "metric_order", "another order"),
    "weights": (Metric("mine", "min", mean_error, one_of_samples), "metric_weights", "weighted gives"),
}


@pytest.mark.parametrize("defect", BROKEN_METRICS)
def test_a_broken_metric_is_found(defect):
    metric, check, words = BROKEN_METRICS[defect]
    messages = failed(metric)
    assert next(iter(messages)) == check and words in messages[check]


# --- readers ---------------------------------------------------------------------------------------------------------

TEXT = "".join(
    f"ATOM  {i:5d}  {name:<3} ALA A{r:4d}    {3.8 * r + x:8.3f}{y:8.3f}   0.000  1.00  0.00           {name[0]}\n"
    for r in range(1, 5)
    for i, (name, x, y) in enumerate((("N", 0, 0), ("CA", 1.4, 0), ("C", 2.0, 1.4), ("O", 1.3, 2.4)), 4 * r)
)


class Honest(pg.Reader):
    """PDB text behind a word of its own, alone (.mine) or many in a folder-like file (.many)."""

    suffixes = (".mine",)

    def recognizes(self, content):
        return content.startswith(b"MINE\n")

    def parse(self, content, path, model):
        return read_atoms(FileContent(path, content.removeprefix(b"MINE\n")), model=model)

    def matches(self, path):
        return path.endswith(".many")

    def entries(self, path):
        return Path(path).read_text().split()

    def read(self, path, name):
        if name not in self.entries(path):
            raise SelectionError(f"{path}: no entry {name!r}")
        return b"MINE\n" + TEXT.encode()

    def example(self, folder):
        (folder / "a.mine").write_text("MINE\n" + TEXT)
        (folder / "b.many").write_text("one two")
        return [folder / "a.mine", folder / "b.many"]


class Half(pg.Reader):
    def recognizes(self, content):
        return False


class UpperSuffix(Honest):
    suffixes = ("MINE",)


class TakesAll(Honest):
    def recognizes(self, content):
        return True


class MatchesAll(Honest):
    def matches(self, path):
        return True


class Slow(Honest):
    def matches(self, path):
        sum(range(200_000))
        return path.endswith(".many")


class WithoutAtoms(Honest):
    def parse(self, content, path, model):
        parsed = super().parse(content, path, model)
        parsed.atoms.coord[:] = np.nan
        return parsed


class Moving(Honest):
    calls = 0

    def parse(self, content, path, model):
        parsed = super().parse(content, path, model)
        Moving.calls += 1
        parsed.atoms.coord += Moving.calls
        return parsed


class Repeats(Honest):
    def entries(self, path):
        return ["one", "one"]


class TakesAnyName(Honest):
    def read(self, path, name):
        return b"MINE\n" + TEXT.encode()


BROKEN_READERS = {
    Half: ("builds", "Missing: parse"),
    UpperSuffix: ("builds", "'MINE'"),
    TakesAll: ("refuses_others", "recognizes a.pdb"),
    MatchesAll: ("refuses_others", "matches a.pdb"),
    Slow: ("refuses_others", "ms"),
    WithoutAtoms: ("reads", "none of 16 atoms"),
    Moving: ("reads", "different atoms"),
    Repeats: ("entries", "one name"),
    TakesAnyName: ("entries", "absent entry"),
}


def test_an_honest_reader_passes_every_check():
    assert failed(Honest) == {}


@pytest.mark.parametrize("reader", BROKEN_READERS, ids=lambda cls: cls.__name__)
def test_a_broken_reader_is_found(reader):
    check, words = BROKEN_READERS[reader]
    messages = failed(reader)
    assert next(iter(messages)) == check and words in messages[check]


def test_files_and_entries_of_a_registered_reader_are_read(tmp_path):
    pg.readers.register("mine", Honest)
    alone, many = Honest().example(tmp_path)
    structure = pg.load_structure(alone)
    assert (structure.format, structure.name, len(structure.atoms)) == ("mine", "a", 16)
    assert pg.load_structure(f"{many}:two").name == "two"
    graphs = list(pg.iter_graphs(tmp_path, pg.featurize.FeaturePlan(["knn"])))
    assert [Path(graph.source).name for graph in graphs] == ["a.mine", "b.many:one", "b.many:two"]


def test_a_reader_that_cannot_be_imported_is_named_for_a_file_that_no_other_reads(install, tmp_path):
    install("broken", {"protgraph.readers": {"lost": "no_such_reader_module:Reader"}})
    (tmp_path / "a.lost").write_text("LOST")
    with pytest.raises(pg.errors.StructureFileError, match="not a structure file.*\n.*\n.*reader 'lost' of broken 1.2"):
        pg.load_structure(tmp_path / "a.lost")
    (tmp_path / "a.pdb").write_text(TEXT)
    assert len(pg.load_structure(tmp_path / "a.pdb").atoms) == 16


# --- commands --------------------------------------------------------------------------------------------------------

COMMANDS = '''
from typing import Annotated
import typer
{imports}

def command({parameter}) -> None:
    """{help}"""
    typer.echo("done")
'''
OPTION = "size: Annotated[int, typer.Option(help='Size.')] = 1"
HELP = "Print a word.\n\n    protgraph mine --size 2\n    "


def install_command(install, *, imports: str = "", parameter: str = OPTION, help: str = HELP) -> None:
    code = COMMANDS.format(imports=imports, parameter=parameter, help=help)
    command_form._run.cache_clear()  # another command of this name ran before
    install("mine_dist", {"protgraph.commands": {"mine": "mine_command_mod:command"}}, {"mine_command_mod": code})


@pytest.mark.slow
def test_an_honest_command_passes_every_check(install):
    install_command(install)
    assert failed("mine") == {}


#: Defect → what differs, the check that finds it, and part of its message.
BROKEN_COMMANDS = {
    "import": ({"imports": "import no_such_module"}, "builds", "no_such_module"),
    "type": ({"parameter": "size: 'NoSuchType'"}, "builds", "NoSuchType"),
    "no help": ({"help": ""}, "help", "docstring"),
    "no example": ({"help": "Print a word."}, "help", "protgraph mine"),
    "silent option": ({"parameter": "size: int = 1"}, "help", "--size"),
    "exit": ({"imports": "raise SystemExit(3)"}, "builds", "SystemExit"),
    "heavy": ({"imports": "import torch"}, "light_import", "torch"),
    "exit code": ({"imports": "import os, sys\nif '--help' in sys.argv: os._exit(7)"}, "exit_codes", "--help exits"),
}


@pytest.mark.slow
@pytest.mark.parametrize("defect", BROKEN_COMMANDS)
def test_a_broken_command_is_found(install, defect):
    changes, check, words = BROKEN_COMMANDS[defect]
    install_command(install, **changes)
    messages = failed("mine")
    assert next(iter(messages)) == check and words in messages[check]


def test_every_check_of_these_kinds_has_a_broken_twin():
    checks = {check.name for check in CHECKS if {"metric", "reader", "command"} & set(check.kinds)}
    twins = [*BROKEN_METRICS.values(), *BROKEN_COMMANDS.values()]
    assert checks == {check for _, check, _ in twins} | {check for check, _ in BROKEN_READERS.values()}
