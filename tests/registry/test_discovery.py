"""Discovery of installed distributions: no import for listing, failures isolated, conflicts reported."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from protgraph.errors import ComponentTypeError, DuplicateNameError, PluginLoadError, UnknownNameError
from protgraph.registry import Registry, registries
from protgraph.registry.discovery import malformed_metadata

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
    assert shapes.names() == ["cone", "ok", "one_dist/cone", "two_dist/cone"] and shapes.get("ok").__name__ == "Ok"
    with pytest.raises(DuplicateNameError) as e:
        shapes.get("cone")
    assert "one_mod:Cone (one_dist 1.2)" in str(e.value) and "two_mod:Cone (two_dist 1.2)" in str(e.value)
    assert "'one_dist/cone' or 'two_dist/cone'" in str(e.value)
    assert shapes.get("one_dist/cone").__module__ == "one_mod" and shapes.get("Two-Dist/cone").__module__ == "two_mod"
    for load in (False, True):
        (problem,) = shapes.problems(load=load)
        assert problem.name == "cone" and {"one_dist 1.2", "two_dist 1.2"} == set(problem.source.split(", "))


def test_the_built_in_component_keeps_its_name_and_claims_are_qualified(shapes: Registry, install: Install) -> None:
    box = "class Box: pass"
    install("acme-forms", {"protgraph.shapes": {"box": "acme_mod:Box", "cone": "acme_mod:Box"}}, {"acme_mod": box})
    install("protgraph-pyg", {"protgraph.shapes": {"box": "built_mod:Box"}}, {"built_mod": box})
    install("zeta.forms", {"protgraph.shapes": {"box": "zeta_mod:FORMS"}}, {"zeta_mod": ZETA})
    assert shapes.names() == ["acme-forms/box", "box", "cone", "zeta.forms/box"]
    assert shapes.get("box").__module__ == "built_mod" and "acme_mod" not in sys.modules
    assert shapes.get("acme-forms/box").__module__ == "acme_mod" and shapes.create("acme_forms/box") is not None
    assert shapes.get("zeta.forms/box.round") == "round" and "zeta.forms/box.flat" not in shapes
    assert shapes.family("zeta.forms/box").default == "round"
    entry = shapes.entry("acme-forms/box")
    assert (entry.name, entry.source, entry.distribution) == ("acme-forms/box", "acme-forms 1.2", "acme-forms")
    assert shapes.entry("acme-forms/cone").name == "cone" and shapes.entry("protgraph-pyg/box").name == "box"
    assert shapes.where("acme-forms/box").endswith("acme_mod.py:1")
    assert {p.name: p.source for p in shapes.problems()} == {
        "acme-forms/box": "acme-forms 1.2",
        "zeta.forms/box": "zeta.forms 1.2",
    }
    assert [p.qualified_name for p in shapes.providers_of("ACME_forms")] == ["acme-forms/box", "acme-forms/cone"]
    with pytest.raises(UnknownNameError, match="acme-forms/sphere"):
        shapes.get("acme-forms/sphere")


ZETA = """
from protgraph.registry import Family
FORMS = Family({"round": "round"})
"""


def test_a_module_that_registers_its_claim_on_a_built_in_name_is_available(shapes: Registry, install: Install) -> None:
    code = "import protgraph.registry as r\nBOX = r.shapes_of_test.register('box', (1, 2))"
    install("claims", {"protgraph.shapes": {"box": "claim_mod:BOX"}}, {"claim_mod": code})
    install("protgraph-pyg", {"protgraph.shapes": {"box": "first_built_mod:BOX"}}, {"first_built_mod": "BOX = (3,)"})
    import protgraph.registry

    protgraph.registry.shapes_of_test = shapes
    try:
        assert shapes.get("claims/box") == (1, 2) and shapes.get("box") == (3,)
    finally:
        del protgraph.registry.shapes_of_test


@pytest.mark.parametrize("value", ["NUMBER", "Plain", "function", "Proxy()"])
def test_an_entry_point_of_another_type_is_an_error_with_its_source(install: Install, value: str) -> None:
    code = """
    class Plain: pass
    class Proxy:
        __class__ = property(lambda self: 1 / 0)
        def __getattr__(self, name): raise RuntimeError(name)
    NUMBER = 3
    def function(): pass
"""
    code += f"    OBJECT = {value}\n"
    install("odd_types", {f"protgraph.{plural}": {"odd": "odd_types_mod:OBJECT"} for plural in registries}, {
        "odd_types_mod": textwrap.dedent(code)
    })  # fmt: skip
    for registry in registries.values():
        if value == "function" and registry.kind in ("command", "function"):
            continue
        with pytest.raises(ComponentTypeError) as e:
            registry.get("odd")
        assert f"{registry.kind} 'odd' of odd_types_mod:OBJECT (odd_types 1.2)" in str(e.value)
        assert [p.name for p in registry.problems(load=True) if p.source == "odd_types 1.2"] == ["odd"]


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
        from protgraph.registry import models
        from protgraph.model import ModelSpec
        OWN = models.register("own_model", ModelSpec("own_model"))
    """
    install("own_dist", {"protgraph.models": {"own_model": "own_mod:OWN"}}, {"own_mod": code})
    assert registries["models"].get("own_model").name == "own_model"
    assert "own_model" not in {p.name for p in registries["models"].problems()}


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
    (problem,) = malformed_metadata()
    assert problem.source == "torn 1.2" and "line 2" in problem.message


def test_only_the_distributions_of_the_variable_are_used(shapes: Registry, install: Install, monkeypatch) -> None:
    install("round_dist", {"protgraph.shapes": {"disc": "round_mod:Disc"}}, {"round_mod": "class Disc: pass"})
    install("Flat.dist", {"protgraph.shapes": {"plane": "flat_mod:Plane"}}, {"flat_mod": "raise RuntimeError"})
    assert shapes.names() == ["disc", "plane"]
    monkeypatch.setenv("PROTGRAPH_PLUGINS", "")
    assert shapes.names() == []
    with pytest.raises(UnknownNameError, match="PROTGRAPH_PLUGINS"):
        shapes.get("disc")
    monkeypatch.setenv("PROTGRAPH_PLUGINS", " flat-dist , round_dist")
    assert shapes.names() == ["disc", "plane"]
    monkeypatch.setenv("PROTGRAPH_PLUGINS", "round-dist")
    assert shapes.names() == ["disc"] and shapes.get("disc").__name__ == "Disc"
    monkeypatch.setenv("PROTGRAPH_PLUGINS", "rond-dist")
    with pytest.raises(UnknownNameError, match="round_dist"):
        shapes.names()
    monkeypatch.delenv("PROTGRAPH_PLUGINS")
    assert shapes.names() == ["disc", "plane"]
