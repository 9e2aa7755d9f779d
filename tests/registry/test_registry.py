"""Names in a session: no silent winners, telling errors, variants, old names."""

from __future__ import annotations

import pickle
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from protgraph.errors import DuplicateNameError, ProtgraphError, UnknownNameError
from protgraph.registry import Family, Registry


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


def test_decorator_and_direct_registration_give_the_object_back(shapes: Registry) -> None:
    assert shapes.register("box")(Box) is Box
    assert shapes.register("ball", Ball) is Ball
    assert shapes.get("box") is Box
    assert shapes.names() == list(shapes) == ["ball", "box"]
    assert len(shapes) == 2 and "box" in shapes and "cone" not in shapes and 3 not in shapes


def test_same_object_again_is_no_op(shapes: Registry) -> None:
    shapes.register("box", Box)
    assert shapes.register("box", Box) is Box
    assert len(shapes) == 1 and shapes.problems(load=True) == []


def test_another_object_under_a_taken_name_names_both_places(shapes: Registry) -> None:
    shapes.register("box", Box)
    with pytest.raises(DuplicateNameError) as e:
        shapes.register("box", Ball)
    assert "Box (this session" in str(e.value) and "Ball (this session" in str(e.value)
    assert str(e.value).count("test_registry.py:") == 2
    assert shapes.get("box") is Box


def test_two_classes_of_one_qualified_name_are_two_objects(shapes: Registry) -> None:
    def make() -> type:
        class Same:
            pass

        return Same

    shapes.register("same", make())
    with pytest.raises(DuplicateNameError):
        shapes.register("same", make())


def test_a_notebook_cell_may_define_its_own_component_again(shapes: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second, other = (type(name, (), {"__module__": "__main__"}) for name in ("Cell", "Cell", "Other"))
    monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
    shapes.register("cell", first)
    shapes.register("cell", second)
    assert shapes.get("cell") is second
    with pytest.raises(DuplicateNameError):
        shapes.register("cell", other)


def test_entry_of_a_session_says_so(shapes: Registry) -> None:
    shapes.register("box", Box)
    entry = shapes.entry("box")
    assert (entry.name, entry.kind, entry.source, entry.loaded) == ("box", "shape", "session", True)
    assert entry.object == f"{__name__}:Box"


def test_where_is_the_line_of_the_class(shapes: Registry) -> None:
    shapes.register("box", Box)
    path, _, line = shapes.where("box").rpartition(":")
    assert Path(path).read_text().splitlines()[int(line) - 1] == "class Box:"


def test_where_of_an_instance_is_the_line_that_registered_it(shapes: Registry) -> None:
    shapes.register("answer", (4, 2))
    assert "test_registry.py:" in shapes.where("answer")


def test_unknown_name_tells_near_ones_all_and_how_to_offer_one(shapes: Registry) -> None:
    shapes.register("ball", Ball)
    shapes.register("box", Box)
    for ask in (shapes.get, shapes.entry, shapes.where, shapes.create, shapes.family):
        with pytest.raises(UnknownNameError, match="Did you mean 'ball'.*Known: ball, box") as e:
            ask("bal")
        assert isinstance(e.value, LookupError)
        assert "protgraph.shapes" in str(e.value) and "register('bal')" in str(e.value)
        assert str(e.value).count("\n") <= 2


def test_unknown_name_in_an_empty_registry(shapes: Registry) -> None:
    with pytest.raises(UnknownNameError, match="Known: none"):
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
    with pytest.raises(UnknownNameError, match="no variant 'cantor'.*euclid300, riemann1854"):
        shapes.get("solid.cantor")


def test_a_family_survives_pickle() -> None:
    family = pickle.loads(pickle.dumps(Family({"euclid300": Box, "riemann1854": Ball}, doc="shapes")))
    assert dict(family.variants) == {"euclid300": Box, "riemann1854": Ball} and family.doc == "shapes"


def test_a_component_without_variants_has_no_dotted_names(filled: Registry) -> None:
    assert "box.any" not in filled and filled.family("box") is None
    with pytest.raises(UnknownNameError, match="'box' has no variants"):
        filled.get("box.any")


@pytest.mark.parametrize("variants", [{}, {"solid.one": Box}, {"": Box}])
def test_ill_formed_families_are_refused(variants: dict[str, object]) -> None:
    with pytest.raises(ProtgraphError):
        Family(variants)


def test_old_name_works_hidden_with_exactly_one_warning(filled: Registry) -> None:
    filled.rename("cube", "box")
    filled.rename("cube", "box")
    assert filled.names() == ["ball", "box"] and filled.names(hidden=True) == ["ball", "box", "cube"]
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        assert "cube" in filled and filled.entry("cube").name == "box"
        assert [filled.get("cube") for _ in range(3)] == [Box] * 3
        filled.create("cube", None)
        filled.where("cube")
    assert [(w.category, str(w.message)) for w in seen] == [(DeprecationWarning, "shape 'cube' is now called 'box'")]
    assert seen[0].filename == __file__


def test_renames_chain_and_reach_variants(shapes: Registry) -> None:
    shapes.register("solid", Family({"a": Box, "b": Ball}))
    shapes.rename("ball", "round")
    shapes.rename("round", "solid.b")
    with pytest.warns(DeprecationWarning, match="'ball' is now called 'solid.b'"):
        assert shapes.get("ball") is Ball


def test_renames_never_shadow(filled: Registry) -> None:
    with pytest.raises(DuplicateNameError, match="taken by"):
        filled.rename("box", "ball")
    filled.rename("cube", "box")
    with pytest.raises(DuplicateNameError, match="it is called 'box'"):
        filled.rename("cube", "ball")
    with pytest.raises(DuplicateNameError, match="old name of 'box'"):
        filled.register("cube", Ball)


def test_rename_in_a_circle_is_an_error(shapes: Registry) -> None:
    shapes.rename("a", "b")
    shapes.rename("b", "a")
    with pytest.raises(DuplicateNameError, match="circle: a → b → a"):
        shapes.get("a")


def test_a_distribution_renames_through_its_own_group(shapes: Registry, install: Callable[..., Path]) -> None:
    points = {"protgraph.shapes": {"new": "rn_mod:NEW"}, "protgraph.shapes.renamed": {"old": "new"}}
    install("rn_dist", points, {"rn_mod": "NEW = object()"})
    assert shapes.names() == ["new"] and "rn_mod" not in sys.modules
    with pytest.warns(DeprecationWarning, match="'old' is now called 'new'"):
        assert shapes.get("old") is shapes.get("new")
