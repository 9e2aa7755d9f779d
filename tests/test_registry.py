"""The registry: lazy, no silent winners, telling errors, and broken plugins that hurt only themselves."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest

from protgraph.errors import DuplicateNameError, OptionError, PluginLoadError, ProtgraphError, UnknownNameError
from protgraph.registry import Family, Registry, options_of, registries
from protgraph.registry.claim import unreadable_distributions

if TYPE_CHECKING:
    from somewhere import TypeCheckersOnly

Install = Callable[..., Path]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Put a distribution on ``sys.path``: its entry points by group, and its modules by name."""

    def make(name: str, points: Mapping[str, Mapping[str, str]], modules: Mapping[str, str] | None = None) -> Path:
        site = tmp_path / name
        info = site / f"{name}-1.2.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n")
        sections = [f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in of.items()) for group, of in points.items()]
        (info / "entry_points.txt").write_text("\n".join(sections))
        for module, text in (modules or {}).items():
            (site / f"{module}.py").write_text(textwrap.dedent(text))
            monkeypatch.delitem(sys.modules, module, raising=False)
        monkeypatch.syspath_prepend(str(site))
        return site

    return make


@pytest.fixture
def shapes() -> Registry:
    return Registry(kind="shape", group="protgraph.shapes")


class Box:
    """A component with every sort of option that is checked."""

    def __init__(
        self,
        fields: object,
        *,
        side: float = 1.0,
        count: int = 2,
        closed: bool = True,
        colour: str | None = None,
        way: Literal["in", "out"] = "in",
        opaque: TypeCheckersOnly = None,
    ) -> None:
        self.fields, self.side, self.count, self.way, self.opaque = fields, side, count, way, opaque


class Ball:
    def __init__(self, *, radius: float) -> None:
        self.radius = radius


# --- sessions ---------------------------------------------------------------------------------------------------


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


# --- unknown names ----------------------------------------------------------------------------------------------


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


# --- options ----------------------------------------------------------------------------------------------------


@pytest.fixture
def filled(shapes: Registry) -> Registry:
    shapes.register("box", Box)
    shapes.register("ball", Ball)
    return shapes


def test_create_passes_arguments_and_options(filled: Registry) -> None:
    box = filled.create("box", "fields", options={"side": 3, "count": 5, "colour": "red", "way": "out", "opaque": []})
    assert (box.fields, box.side, box.count, box.way, box.opaque) == ("fields", 3, 5, "out", [])
    assert filled.create("box", "fields").side == 1.0


def test_unknown_option_has_path_signature_and_hint(filled: Registry) -> None:
    with pytest.raises(OptionError) as e:
        filled.create("box", None, path="layers[2]", options={"sides": 3})
    assert str(e.value).startswith("layers[2] (box): got 'sides'; box takes side=1.0, count=2, closed=True")
    assert str(e.value).endswith("Did you mean 'side'?")
    assert isinstance(e.value, TypeError)


def test_path_may_hold_the_name_already(filled: Registry) -> None:
    with pytest.raises(OptionError, match=r"^layers\[2\] \(box\): got"):
        filled.create("box", None, path="layers[2] (box)", options={"sides": 3})


def test_without_a_path_the_kind_and_name_stand_in(filled: Registry) -> None:
    with pytest.raises(OptionError, match="^shape 'box': got 'zzz'"):
        filled.create("box", None, options={"zzz": 3})


def test_missing_required_option(filled: Registry) -> None:
    with pytest.raises(OptionError, match=r"'radius' is missing; ball takes radius \(required\)"):
        filled.create("ball")


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("side", "3"),
        ("side", True),
        ("count", 2.0),
        ("count", True),
        ("closed", 1),
        ("colour", 3),
        ("way", "up"),
        ("side", None),
    ],
)
def test_mistyped_option(filled: Registry, option: str, value: object) -> None:
    with pytest.raises(OptionError, match=f"{option}=.* is not .*; box takes"):
        filled.create("box", None, options={option: value})


@pytest.mark.parametrize(("option", "value"), [("side", 3), ("colour", None), ("way", "out"), ("opaque", object())])
def test_well_typed_option(filled: Registry, option: str, value: object) -> None:
    filled.create("box", None, options={option: value})


def test_numpy_numbers_are_numbers(filled: Registry) -> None:
    np = pytest.importorskip("numpy")
    filled.create("box", None, options={"side": np.float32(2), "count": np.int64(3)})


def test_wrong_number_of_positional_arguments_is_an_option_error(filled: Registry) -> None:
    with pytest.raises(OptionError, match="missing a required argument: 'fields'"):
        filled.create("box")


def test_positional_parameter_given_as_option_says_how_to_write_it(shapes: Registry) -> None:
    shapes.register("loose", lambda fields, dim=3: (fields, dim))
    with pytest.raises(OptionError, match="'dim' is positional there"):
        shapes.create("loose", None, options={"dim": 4})


def test_open_signatures_are_refused(shapes: Registry, install: Install) -> None:
    def swallow(**anything: object) -> None: ...

    with pytest.raises(OptionError, match=r"\*\*anything"):
        shapes.register("swallow", swallow)
    install("open_dist", {"protgraph.shapes": {"hole": "open_mod:hole"}}, {"open_mod": "def hole(**k): ..."})
    with pytest.raises(OptionError, match=r"\*\*k"):
        shapes.create("hole")
    (problem,) = shapes.problems(load=True)
    assert (problem.name, problem.source) == ("hole", "open_dist 1.2")


def test_instances_come_as_they_are_and_take_no_options(shapes: Registry) -> None:
    shapes.register("answer", (4, 2))
    assert shapes.create("answer") == (4, 2)
    with pytest.raises(OptionError, match="answer takes no options"):
        shapes.create("answer", options={"base": 10})


def test_options_of_shows_defaults_and_types() -> None:
    options = options_of(Box)
    assert [o.type_name for o in options.values()] == [
        "float",
        "int",
        "bool",
        "str | None",
        "'in' or 'out'",
        "TypeCheckersOnly",
    ]
    assert options_of(Ball)["radius"].required and not options["side"].required


# --- families and renames ---------------------------------------------------------------------------------------


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


def test_a_distribution_renames_through_its_own_group(shapes: Registry, install: Install) -> None:
    points = {"protgraph.shapes": {"new": "rn_mod:NEW"}, "protgraph.shapes.renamed": {"old": "new"}}
    install("rn_dist", points, {"rn_mod": "NEW = object()"})
    assert shapes.names() == ["new"] and "rn_mod" not in sys.modules
    with pytest.warns(DeprecationWarning, match="'old' is now called 'new'"):
        assert shapes.get("old") is shapes.get("new")


# --- installed distributions ------------------------------------------------------------------------------------


def test_entry_points_are_listed_without_import_and_loaded_on_first_get(shapes: Registry, install: Install) -> None:
    install("lazy_dist", {"protgraph.shapes": {"cone": "lazy_mod:Cone"}}, {"lazy_mod": "class Cone: pass"})
    assert shapes.names() == ["cone"] and "cone" in shapes
    entry = shapes.entry("cone")
    assert (entry.source, entry.object, entry.loaded) == ("lazy_dist 1.2", "lazy_mod:Cone", False)
    assert shapes.problems() == [] and "lazy_mod" not in sys.modules
    assert shapes.get("cone").__name__ == "Cone"
    assert shapes.entry("cone").loaded and shapes.where("cone").endswith("lazy_mod.py:1")


def test_where_of_an_installed_instance_is_its_assignment(shapes: Registry, install: Install) -> None:
    points = {"unit": "inst_mod:UNIT", "again": "door_mod:TWO"}
    modules = {"inst_mod": "'''doc'''\n\nUNIT = (1, 1)\n", "door_mod": "from inst_mod import UNIT as TWO"}
    install("inst_dist", {"protgraph.shapes": points}, modules)
    assert shapes.where("unit").endswith("inst_mod.py:3")
    assert shapes.where("again").endswith("inst_mod.py:3")


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("raise RuntimeError('needs a licence\\nsecond line')", "RuntimeError: needs a licence"),
        ("import no_such_module_anywhere", "No module named 'no_such_module_anywhere'"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("x = = 1", "SyntaxError"),
        ("", "has no attribute 'Bad'"),
    ],
)
def test_a_broken_plugin_hurts_only_itself(shapes: Registry, install: Install, text: str, cause: str) -> None:
    install("good_dist", {"protgraph.shapes": {"good": "good_mod:Good"}}, {"good_mod": "class Good: pass"})
    install("bad_dist", {"protgraph.shapes": {"bad": "bad_mod:Bad"}}, {"bad_mod": text})
    assert shapes.names() == ["bad", "good"] and shapes.get("good").__name__ == "Good"
    with pytest.raises(PluginLoadError) as e:
        shapes.get("bad")
    for part in ("shape 'bad'", "bad_dist 1.2", "bad_mod:Bad", cause):
        assert part in str(e.value)
    assert str(e.value).count("\n") <= 2 and e.value.__cause__ is not None and isinstance(e.value, ImportError)
    (problem,) = shapes.problems(load=True)
    assert (problem.kind, problem.name, problem.source) == ("shape", "bad", "bad_dist 1.2")
    assert cause in problem.message and shapes.problems() == []


def test_a_plugin_that_nobody_named_is_never_imported(shapes: Registry, install: Install, tmp_path: Path) -> None:
    mark = tmp_path / "imported"
    install("quiet", {"protgraph.shapes": {"q": "quiet_mod:Q"}}, {"quiet_mod": f"open({str(mark)!r}, 'w')\nQ = 1"})
    shapes.register("box", Box)
    shapes.create("box", None)
    with pytest.raises(UnknownNameError):
        shapes.get("quiet")
    repr(shapes), shapes.names(hidden=True), shapes.problems()
    assert not mark.exists()


def test_two_distributions_with_different_objects_conflict(shapes: Registry, install: Install) -> None:
    install("one_dist", {"protgraph.shapes": {"cone": "one_mod:Cone"}}, {"one_mod": "class Cone: pass"})
    install("two_dist", {"protgraph.shapes": {"cone": "two_mod:Cone"}}, {"two_mod": "class Cone: pass\nclass Ok: pass"})
    install("three_dist", {"protgraph.shapes": {"ok": "two_mod:Ok"}})
    assert shapes.names() == ["cone", "ok"] and shapes.get("ok").__name__ == "Ok"
    with pytest.raises(DuplicateNameError) as e:
        shapes.get("cone")
    assert "one_mod:Cone (one_dist 1.2)" in str(e.value) and "two_mod:Cone (two_dist 1.2)" in str(e.value)
    for load in (False, True):
        (problem,) = shapes.problems(load=load)
        assert problem.name == "cone" and {"one_dist 1.2", "two_dist 1.2"} == set(problem.source.split(", "))


def test_two_distributions_with_the_same_object_do_not_conflict(shapes: Registry, install: Install) -> None:
    install("home", {"protgraph.shapes": {"cone": "home_mod:Cone"}}, {"home_mod": "class Cone: pass"})
    install("same_ref", {"protgraph.shapes": {"cone": "home_mod:Cone"}})
    assert shapes.get("cone").__name__ == "Cone"
    install("re_export", {"protgraph.shapes": {"cone": "re_mod:Cone"}}, {"re_mod": "from home_mod import Cone"})
    assert shapes.get("cone").__module__ == "home_mod" and shapes.problems(load=True) == []


def test_a_session_cannot_clobber_an_installed_name(shapes: Registry, install: Install) -> None:
    install("first", {"protgraph.shapes": {"cone": "first_mod:Cone"}}, {"first_mod": "class Cone: pass"})
    with pytest.raises(DuplicateNameError, match=r"first_mod:Cone \(first 1.2\) and by .*Box \(this session"):
        shapes.register("cone", Box)
    assert shapes.get("cone").__name__ == "Cone"


def test_a_module_may_register_its_own_entry_point(install: Install) -> None:
    code = """
        from protgraph.registry import layers
        @layers.register("own_layer")
        class Own:
            def __init__(self, *, dim: int = 3): self.dim = dim
    """
    install("own_dist", {"protgraph.layers": {"own_layer": "own_mod:Own"}}, {"own_mod": code})
    assert registries["layers"].create("own_layer").dim == 3
    assert "own_layer" not in {p.name for p in registries["layers"].problems()}
    registries["layers"]._session.pop("own_layer")


def test_an_old_name_cannot_be_taken_by_a_stranger(shapes: Registry, install: Install) -> None:
    shapes.register("box", Box)
    shapes.rename("cube", "box")
    install("thief", {"protgraph.shapes": {"cube": "thief_mod:Cube"}}, {"thief_mod": "class Cube: pass"})
    with pytest.raises(DuplicateNameError, match="thief 1.2.*old name of 'box'"):
        shapes.get("cube")
    assert [p.name for p in shapes.problems(load=True)] == ["cube"]


def test_a_shadowed_copy_of_a_distribution_does_not_count(shapes: Registry, install: Install, tmp_path: Path) -> None:
    install("dup_dist", {"protgraph.shapes": {"cone": "dup_mod:Old"}})
    (tmp_path / "dup_dist").rename(tmp_path / "older")
    sys.path[sys.path.index(str(tmp_path / "dup_dist"))] = str(tmp_path / "older")
    install("dup_dist", {"protgraph.shapes": {"cone": "dup_mod:New"}})
    assert shapes.entry("cone").object == "dup_mod:New"


def test_what_a_build_left_among_the_sources_does_not_count(shapes: Registry, install: Install, tmp_path: Path) -> None:
    install("built_dist", {"protgraph.shapes": {"cone": "built_mod:New"}})
    site = install("sources", {"protgraph.shapes": {"cone": "built_mod:Old"}})
    info = site / "built_dist.egg-info"
    (site / "sources-1.2.dist-info").rename(info)
    (info / "METADATA").rename(info / "PKG-INFO")
    (info / "PKG-INFO").write_text("Metadata-Version: 2.1\nName: built_dist\nVersion: 1.1\n")
    assert sys.path.index(str(site)) < sys.path.index(str(tmp_path / "built_dist"))
    assert shapes.entry("cone").object == "built_mod:New"


def test_a_malformed_distribution_is_left_out_and_reported(shapes: Registry, install: Install) -> None:
    site = install("torn", {"protgraph.shapes": {"cone": "torn_mod:Cone"}})
    (site / "torn-1.2.dist-info" / "entry_points.txt").write_text("[protgraph.shapes]\nno equals sign\n")
    install("whole", {"protgraph.shapes": {"ok": "whole_mod:OK"}}, {"whole_mod": "OK = 1"})
    assert shapes.names() == ["ok"]
    assert [p.source for p in unreadable_distributions()] == ["torn 1.2"]


# --- the six kinds ----------------------------------------------------------------------------------------------


def test_there_are_six_kinds_with_a_group_each() -> None:
    assert list(registries) == ["featurizers", "layers", "heads", "models", "tasks", "datasets"]
    assert {f"protgraph.{plural}" for plural in registries} == {r.group for r in registries.values()}
    assert all(plural == f"{r.kind}s" for plural, r in registries.items())


def test_listing_loads_neither_torch_nor_plugins() -> None:
    code = """if True:
        import sys, protgraph as pg
        for r in (pg.featurizers, pg.layers, pg.heads, pg.models, pg.tasks, pg.datasets):
            [r.entry(n) for n in r.names(hidden=True)], r.problems(), 'gcn' in r
        light = {'protgraph.registry', 'protgraph.errors', 'protgraph'}
        ours = {'.'.join(m.split('.')[:2]) for m in sys.modules if m.startswith('protgraph')}
        print(ours - light, {'torch', 'numpy', 'e3nn', 'biotite'} & set(sys.modules))
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set() set()"


@pytest.mark.parametrize("plural", registries)
def test_every_component_in_the_house_is_healthy(plural: str) -> None:
    assert registries[plural].problems(load=True) == []
