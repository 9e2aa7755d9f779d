"""Options are checked against the signature of the component; errors contain the path."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest

from protgraph.errors import OptionError
from protgraph.registry import Registry, component_options

if TYPE_CHECKING:
    from somewhere import TypeCheckersOnly

Install = Callable[..., Path]


class Box:
    """Component with one option of each checked type."""

    def __init__(
        self,
        fields: object,
        *,
        side: float = 1.0,
        count: int = 2,
        closed: bool = True,
        color: str | None = None,
        way: Literal["in", "out"] = "in",
        opaque: TypeCheckersOnly = None,
    ) -> None:
        self.fields, self.side, self.count, self.way, self.opaque = fields, side, count, way, opaque


class Ball:
    def __init__(self, *, radius: float) -> None:
        self.radius = radius


@pytest.fixture
def filled(shapes: Registry) -> Registry:
    shapes.register("box", Box)
    shapes.register("ball", Ball)
    return shapes


def test_create_passes_arguments_and_options(filled: Registry) -> None:
    box = filled.create("box", "fields", options={"side": 3, "count": 5, "color": "red", "way": "out", "opaque": []})
    assert (box.fields, box.side, box.count, box.way, box.opaque) == ("fields", 3, 5, "out", [])
    assert filled.create("box", "fields").side == 1.0


def test_unknown_option_has_path_signature_and_hint(filled: Registry) -> None:
    with pytest.raises(OptionError) as e:
        filled.create("box", None, path="layers[2]", options={"sides": 3})
    assert str(e.value).startswith("layers[2] (box): ")
    assert all(part in str(e.value) for part in ("'sides'", "side=1.0, count=2, closed=True", "'side'"))
    assert isinstance(e.value, TypeError)


def test_path_that_contains_the_name_is_not_doubled(filled: Registry) -> None:
    with pytest.raises(OptionError, match=r"^layers\[2\] \(box\): "):
        filled.create("box", None, path="layers[2] (box)", options={"sides": 3})


def test_label_without_a_path_is_kind_and_name(filled: Registry) -> None:
    with pytest.raises(OptionError, match="^shape 'box': .*'zzz'"):
        filled.create("box", None, options={"zzz": 3})


def test_missing_required_option_raises(filled: Registry) -> None:
    with pytest.raises(OptionError, match=r"'radius'.*radius \(required\)"):
        filled.create("ball")


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("side", "3"),
        ("side", True),
        ("count", 2.0),
        ("count", True),
        ("closed", 1),
        ("color", 3),
        ("way", "up"),
        ("side", None),
    ],
)
def test_option_of_another_type_raises(filled: Registry, option: str, value: object) -> None:
    with pytest.raises(OptionError, match=f"{option}="):
        filled.create("box", None, options={option: value})


@pytest.mark.parametrize(("option", "value"), [("side", 3), ("color", None), ("way", "out"), ("opaque", object())])
def test_option_of_the_declared_type_is_accepted(filled: Registry, option: str, value: object) -> None:
    filled.create("box", None, options={option: value})


def test_numpy_numbers_are_numbers(filled: Registry) -> None:
    np = pytest.importorskip("numpy")
    filled.create("box", None, options={"side": np.float32(2), "count": np.int64(3)})


def test_wrong_number_of_positional_arguments_is_an_option_error(filled: Registry) -> None:
    with pytest.raises(OptionError, match="'fields'"):
        filled.create("box")


def test_positional_parameter_given_as_option_raises(shapes: Registry) -> None:
    shapes.register("loose", lambda fields, dim=3: (fields, dim))
    with pytest.raises(OptionError, match="'dim'"):
        shapes.create("loose", None, options={"dim": 4})


def test_signatures_with_var_keyword_raise(shapes: Registry, install: Install) -> None:
    def swallow(**options: object) -> None: ...

    with pytest.raises(OptionError, match=r"\*\*options"):
        shapes.register("swallow", swallow)
    install("open_dist", {"protgraph.shapes": {"hole": "open_mod:hole"}}, {"open_mod": "def hole(**k): ..."})
    with pytest.raises(OptionError, match=r"\*\*k"):
        shapes.create("hole")
    (problem,) = shapes.problems(load=True)
    assert (problem.name, problem.source) == ("hole", "open_dist 1.2")


def test_instances_are_returned_and_take_no_options(shapes: Registry) -> None:
    shapes.register("answer", (4, 2))
    assert shapes.create("answer") == (4, 2)
    with pytest.raises(OptionError, match="answer"):
        shapes.create("answer", options={"base": 10})


def test_component_options_have_defaults_and_types() -> None:
    options = component_options(Box)
    assert [o.type_name for o in options.values()] == [
        "float",
        "int",
        "bool",
        "str | None",
        "'in' or 'out'",
        "TypeCheckersOnly",
    ]
    assert component_options(Ball)["radius"].is_required and not options["side"].is_required


def test_replaced_init_has_its_own_signature(filled: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    assert filled.create("ball", options={"radius": 1.0}).radius == 1.0

    def longer(self: Ball, *, radius: float, holes: int = 0) -> None:
        self.radius, self.holes = radius, holes

    monkeypatch.setattr(Ball, "__init__", longer)
    assert filled.create("ball", options={"radius": 1.0, "holes": 2}).holes == 2
    monkeypatch.undo()
    with pytest.raises(OptionError, match="'holes'"):
        filled.create("ball", options={"radius": 1.0, "holes": 2})


def test_redefined_component_has_its_own_signature(shapes: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    def cell(options: str) -> object:
        scope: dict[str, object] = {"__name__": "__main__"}
        exec(f"class Cube:\n    def __init__(self, *, {options}=1.0): self.size = {options}", scope)
        return scope["Cube"]

    monkeypatch.setattr("sys.ps1", ">>> ", raising=False)  # a cell of a notebook, run twice
    for option in ("side", "edge"):
        shapes.register("cube", cell(option))
        assert shapes.create("cube", options={option: 2.0}).size == 2.0
    with pytest.raises(OptionError, match="'side'.*edge=1.0"):
        shapes.create("cube", options={"side": 2.0})


def test_signature_cache_does_not_keep_components_alive(shapes: Registry) -> None:
    import gc
    import weakref

    def disc(*, radius: float = 1.0) -> float:
        return radius

    reference = weakref.ref(disc)
    component_options(disc)
    del disc
    gc.collect()
    assert reference() is None
