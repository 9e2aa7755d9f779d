"""Registration in a process: conflicts, errors with suggestions, variants."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path

import pytest

from protgraph import GraphLayer, ModelSpec
from protgraph.errors import (
    ComponentTypeError,
    DuplicateNameError,
    InvalidNameError,
    OptionError,
    ProtgraphError,
    UnknownNameError,
)
from protgraph.model.build import as_model_spec
from protgraph.registry import Family, Registry, heads, layers, registries


class Box:
    def __init__(self, fields: object, *, side: float = 1.0) -> None: ...


class Ball:
    def __init__(self, *, radius: float) -> None:
        self.radius = radius


@pytest.fixture
def filled(shapes: Registry) -> Registry:
    shapes.register("box", Box)
    shapes.register("ball", Ball)
    return shapes


def test_register_returns_the_object(shapes: Registry) -> None:
    assert shapes.register("box")(Box) is Box
    assert shapes.register("ball", Ball) is Ball
    assert shapes.get("box") is Box
    assert shapes.names() == list(shapes) == ["ball", "box"]
    assert len(shapes) == 2 and "box" in shapes and "cone" not in shapes and 3 not in shapes


def test_registering_the_same_object_twice_has_no_effect(shapes: Registry) -> None:
    shapes.register("box", Box)
    assert shapes.register("box", Box) is Box
    assert len(shapes) == 1 and shapes.problems(load=True) == []


def test_second_object_under_a_name_raises_with_both_locations(shapes: Registry) -> None:
    shapes.register("box", Box)
    with pytest.raises(DuplicateNameError) as e:
        shapes.register("box", Ball)
    assert "Box (this session" in str(e.value) and "Ball (this session" in str(e.value)
    assert str(e.value).count("test_registry.py:") == 2
    assert shapes.get("box") is Box


def test_two_classes_of_the_same_qualified_name_conflict(shapes: Registry) -> None:
    def make() -> type:
        class Same:
            pass

        return Same

    shapes.register("same", make())
    with pytest.raises(DuplicateNameError):
        shapes.register("same", make())


def test_replace_and_unregister(shapes: Registry) -> None:
    shapes.register("box", Box)
    with pytest.raises(DuplicateNameError, match="replace=True"):
        shapes.register("box", Ball)
    assert shapes.register("box", Ball, replace=True) is Ball and shapes.get("box") is Ball
    assert shapes.register("box", replace=True)(Box) is Box and shapes.get("box") is Box
    assert shapes.unregister("box") is Box and "box" not in shapes
    shapes.register("box", Ball)
    with pytest.raises(UnknownNameError, match="'cone'"):
        shapes.unregister("cone")


def test_names_of_distributions_are_neither_replaced_nor_unregistered() -> None:
    for arguments in ({}, {"replace": True}):
        with pytest.raises(DuplicateNameError, match="protgraph-pyg"):
            layers.register("gcn", type("Own", (GraphLayer,), {"forward": None}), **arguments)
    with pytest.raises(UnknownNameError, match="'gcn'.*protgraph-pyg"):
        layers.unregister("gcn")


def test_an_equal_object_replaces_the_earlier_one(shapes: Registry) -> None:
    first, second = ModelSpec("mine", layers=["gcn"]), ModelSpec("mine", layers=["gcn"])
    for spec in (first, second):
        shapes.register("mine", spec)
    assert shapes.get("mine") is second
    with pytest.raises(DuplicateNameError):
        shapes.register("mine", ModelSpec("mine", layers=["gat"]))


CELL = """
class Cell:
    pass
shapes.register("cell", Cell)
shapes.register("instance", Cell())
"""


def test_a_cell_or_module_that_is_executed_again_replaces_its_components(shapes: Registry) -> None:
    for _ in range(2):
        scope = {"__name__": "cell_of_test", "shapes": shapes}
        exec(compile(CELL, "/tmp/ipykernel_1/2.py", "exec"), scope)
        assert shapes.get("cell") is scope["Cell"]
    with pytest.raises(DuplicateNameError):
        exec(compile(CELL, "another_file.py", "exec"), scope)


def test_a_loop_that_registers_different_objects_raises(shapes: Registry) -> None:
    code = "for bits in ((1,), (2,)):\n    shapes.register('bits', bits)"
    with pytest.raises(DuplicateNameError):
        exec(compile(code, "/tmp/loop.py", "exec"), {"shapes": shapes})


@pytest.mark.parametrize("name", ["", "a b", "a.b", "a/b", "é", "-a", 3, None, Box], ids=repr)
def test_names_that_components_cannot_have_raise(shapes: Registry, name: object) -> None:
    for arguments in ((name, Box), (name,)):
        with pytest.raises(InvalidNameError, match="shape name"):
            shapes.register(*arguments)
    assert shapes.names() == []


@pytest.mark.parametrize("kind", [kind for kind, registry in registries.items() if registry.session])
@pytest.mark.parametrize("obj", [3, None, "gcn", Box, len, Family({"one": Box})], ids=repr)
def test_objects_of_another_kind_cannot_be_registered(kind: str, obj: object) -> None:
    with pytest.raises(ComponentTypeError, match=f"{registries[kind].kind} 'odd'"):
        registries[kind].register("odd", obj)
    assert "odd" not in registries[kind]


def test_commands_cannot_be_registered_by_a_session() -> None:
    with pytest.raises(OptionError, match="entry-point group 'protgraph.commands'"):
        registries["commands"].register("odd", lambda: None)


def test_classes_without_a_method_of_the_base_class_cannot_be_registered() -> None:
    with pytest.raises(ComponentTypeError, match="Unfinished.*forward"):
        layers.register("unfinished", type("Unfinished", (GraphLayer,), {}))


def test_layers_and_heads_are_different_kinds() -> None:
    with pytest.raises(ComponentTypeError):
        heads.register("odd", layers.get("gcn"))
    with pytest.raises(ComponentTypeError):
        layers.register("odd", heads.get(heads.names()[0]))


def test_interactive_session_may_redefine_its_component(shapes: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second, other = (type(name, (), {"__module__": "__main__"}) for name in ("Cell", "Cell", "Other"))
    monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
    shapes.register("cell", first)
    shapes.register("cell", second)
    assert shapes.get("cell") is second
    with pytest.raises(DuplicateNameError):
        shapes.register("cell", other)


def test_entry_of_a_registration_has_source_session(shapes: Registry) -> None:
    shapes.register("box", Box)
    entry = shapes.entry("box")
    assert (entry.name, entry.kind, entry.source, entry.is_loaded) == ("box", "shape", "session", True)
    assert entry.object == f"{__name__}:Box"


def test_where_of_a_class_is_its_definition(shapes: Registry) -> None:
    shapes.register("box", Box)
    path, _, line = shapes.where("box").rpartition(":")
    assert Path(path).read_text().splitlines()[int(line) - 1] == "class Box:"


def test_where_of_an_instance_is_its_registration(shapes: Registry) -> None:
    shapes.register("answer", (4, 2))
    assert "test_registry.py:" in shapes.where("answer")


def test_unknown_name_error_has_suggestions_and_all_names(shapes: Registry) -> None:
    shapes.register("ball", Ball)
    shapes.register("box", Box)
    for method in (shapes.get, shapes.entry, shapes.where, shapes.create, shapes.family):
        with pytest.raises(UnknownNameError, match="'bal'.*'ball'.*ball, box") as e:
            method("bal")
        assert isinstance(e.value, LookupError)
        assert "protgraph.shapes" in str(e.value) and "register('bal')" in str(e.value)
        assert str(e.value).count("\n") <= 2


def test_unknown_name_in_an_empty_registry(shapes: Registry) -> None:
    with pytest.raises(UnknownNameError, match="none"):
        shapes.get("box")


def test_first_variant_is_the_default(shapes: Registry) -> None:
    family = Family({"euclid300": Box, "riemann1854": Ball}, doc="shapes")
    shapes.register("solid", family)
    assert shapes.get("solid") is shapes.get("solid.euclid300") is Box
    assert shapes.get("solid.riemann1854") is Ball
    assert shapes.create("solid.riemann1854", options={"radius": 2.0}).radius == 2.0
    assert shapes.names() == ["solid"] and "solid.riemann1854" in shapes and "solid.cantor" not in shapes
    assert shapes.family("solid") is shapes.family("solid.euclid300") is family
    assert shapes.where("solid.riemann1854").rpartition(":")[0] == __file__
    with pytest.raises(UnknownNameError, match="'cantor'.*euclid300, riemann1854"):
        shapes.get("solid.cantor")


def test_family_pickles() -> None:
    family = pickle.loads(pickle.dumps(Family({"euclid300": Box, "riemann1854": Ball}, doc="shapes")))
    assert dict(family.variants) == {"euclid300": Box, "riemann1854": Ball} and family.doc == "shapes"


def test_a_component_without_variants_has_no_dotted_names(filled: Registry) -> None:
    assert "box.any" not in filled and filled.family("box") is None
    with pytest.raises(UnknownNameError, match="box.any"):
        filled.get("box.any")


@pytest.mark.parametrize("variants", [{}, {"solid.one": Box}, {"": Box}])
def test_invalid_families_raise(variants: dict[str, object]) -> None:
    with pytest.raises(ProtgraphError):
        Family(variants)


#: Cell of a notebook that registers a layer and a model with it.
LAYER_CELL = '''
import protgraph as pg
from torch import nn

@pg.layers.register("neighbor_mean")
class NeighborMean(pg.GraphLayer):
    """h_i ← W mean_j h_j over the neighbors j of i."""

    reads, writes = ("h", "edges"), ("h",)

    def __init__(self, fields, *, dim: int = 64):
        super().__init__(fields)
        self.linear = nn.Linear(self.scalar_width("h"), dim)
        self.declare(h=f"{dim}x0e")

    def forward(self, f):
        return {"h": self.linear(f["edges"].mean(f["edges"].source(f["h"])))}


block = [pg.component("neighbor_mean", writes={"h": "m"}), pg.component("residual", reads={"update": "m"})]
embed = pg.component("embed", reads=["aatype", "dihedral"], dim=64)
mine = pg.ModelSpec("mine", features=["dihedral", pg.component("knn", k=16)], layers=[embed, *block, *block])
pg.models.register("mine", mine)
'''


def test_a_cell_of_a_notebook_can_be_run_twice_and_its_model_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)  # a notebook
    scope = {"__name__": "__main__"}
    for number in (1, 2):
        exec(compile(LAYER_CELL, f"/tmp/ipykernel_1/{number}.py", "exec"), scope)
        assert layers.get("neighbor_mean") is scope["NeighborMean"]
    assert as_model_spec("mine").features[1].options["k"] == 16
    changed = LAYER_CELL.replace("k=16", "k=8")
    with pytest.raises(DuplicateNameError, match="replace=True"):
        exec(compile(changed, "/tmp/ipykernel_1/3.py", "exec"), scope)
    exec(compile(changed.replace("mine)\n", "mine, replace=True)\n"), "/tmp/ipykernel_1/4.py", "exec"), scope)
    assert as_model_spec("mine").features[1].options["k"] == 8
