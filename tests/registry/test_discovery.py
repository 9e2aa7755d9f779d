"""Discovery of installed distributions: no import for listing, failures isolated, conflicts reported."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from protgraph.errors import DuplicateNameError, PluginLoadError, UnknownNameError
from protgraph.registry import Registry, registries
from protgraph.registry.discovery import unreadable_distributions

Install = Callable[..., Path]


class Box:
    pass


def test_entry_points_are_listed_without_import_and_loaded_on_first_get(shapes: Registry, install: Install) -> None:
    install("lazy_dist", {"protgraph.shapes": {"cone": "lazy_mod:Cone"}}, {"lazy_mod": "class Cone: pass"})
    assert shapes.names() == ["cone"] and "cone" in shapes
    entry = shapes.entry("cone")
    assert (entry.source, entry.object, entry.is_loaded) == ("lazy_dist 1.2", "lazy_mod:Cone", False)
    assert shapes.problems() == [] and "lazy_mod" not in sys.modules
    assert shapes.get("cone").__name__ == "Cone"
    assert shapes.entry("cone").is_loaded and shapes.where("cone").endswith("lazy_mod.py:1")


def test_where_of_an_instance_follows_reexports_to_its_assignment(shapes: Registry, install: Install) -> None:
    points = {"unit": "inst_mod:UNIT", "again": "door_mod:TWO"}
    modules = {"inst_mod": "'''doc'''\n\nUNIT = (1, 1)\n", "door_mod": "from inst_mod import UNIT as TWO"}
    install("inst_dist", {"protgraph.shapes": points}, modules)
    assert shapes.where("unit").endswith("inst_mod.py:3")
    assert shapes.where("again").endswith("inst_mod.py:3")


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("raise RuntimeError('needs a license\\nsecond line')", "RuntimeError: needs a license"),
        ("import no_such_module_anywhere", "No module named 'no_such_module_anywhere'"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("x = = 1", "SyntaxError"),
        ("", "has no attribute 'Bad'"),
    ],
)
def test_broken_plugin_does_not_affect_others(shapes: Registry, install: Install, text: str, cause: str) -> None:
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


def test_listing_and_errors_import_no_plugin(shapes: Registry, install: Install, tmp_path: Path) -> None:
    mark = tmp_path / "imported"
    install("quiet", {"protgraph.shapes": {"q": "quiet_mod:Q"}}, {"quiet_mod": f"open({str(mark)!r}, 'w')\nQ = 1"})
    shapes.register("box", Box)
    shapes.create("box")
    with pytest.raises(UnknownNameError):
        shapes.get("quiet")
    repr(shapes), shapes.names(), shapes.problems()
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


def test_registering_an_installed_name_raises(shapes: Registry, install: Install) -> None:
    install("first", {"protgraph.shapes": {"cone": "first_mod:Cone"}}, {"first_mod": "class Cone: pass"})
    with pytest.raises(DuplicateNameError, match=r"first_mod:Cone \(first 1.2\).*Box \(this session"):
        shapes.register("cone", Box)
    assert shapes.get("cone").__name__ == "Cone"


def test_module_may_register_its_own_entry_point(install: Install) -> None:
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


def test_shadowed_copy_of_a_distribution_is_ignored(shapes: Registry, install: Install, tmp_path: Path) -> None:
    install("dup_dist", {"protgraph.shapes": {"cone": "dup_mod:Old"}})
    (tmp_path / "dup_dist").rename(tmp_path / "older")
    sys.path[sys.path.index(str(tmp_path / "dup_dist"))] = str(tmp_path / "older")
    install("dup_dist", {"protgraph.shapes": {"cone": "dup_mod:New"}})
    assert shapes.entry("cone").object == "dup_mod:New"


def test_egg_info_does_not_shadow_an_installed_distribution(shapes: Registry, install: Install, tmp_path: Path) -> None:
    install("built_dist", {"protgraph.shapes": {"cone": "built_mod:New"}})
    site = install("sources", {"protgraph.shapes": {"cone": "built_mod:Old"}})
    info = site / "built_dist.egg-info"
    (site / "sources-1.2.dist-info").rename(info)
    (info / "METADATA").rename(info / "PKG-INFO")
    (info / "PKG-INFO").write_text("Metadata-Version: 2.1\nName: built_dist\nVersion: 1.1\n")
    assert sys.path.index(str(site)) < sys.path.index(str(tmp_path / "built_dist"))
    assert shapes.entry("cone").object == "built_mod:New"


def test_malformed_distribution_is_skipped_and_reported(shapes: Registry, install: Install) -> None:
    site = install("torn", {"protgraph.shapes": {"cone": "torn_mod:Cone"}})
    (site / "torn-1.2.dist-info" / "entry_points.txt").write_text("[protgraph.shapes]\nno equals sign\n")
    install("whole", {"protgraph.shapes": {"ok": "whole_mod:OK"}}, {"whole_mod": "OK = 1"})
    assert shapes.names() == ["ok"]
    assert [p.source for p in unreadable_distributions()] == ["torn 1.2"]
