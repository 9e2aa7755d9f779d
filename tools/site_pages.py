"""MkDocs hooks: generate the pages of the documentation site that come from the code and from other folders.

The pages are the API reference (one page per package, a table of registry names), the README files of model families
and trained models, the cards of the datasets, the changelog and the rules for contributors. No component is imported:
names come from the syntax trees of the modules and from ``pyproject.toml``.
"""

from __future__ import annotations

import posixpath
import re
import tomllib
from typing import Any

from card_pages import card_files, dataset_page
from griffe_roles import to_markdown
from mkdocs.structure.files import File, Files
from public_names import ROOT, exports, home, modules_of, public_names, summary

__all__ = ["generated_pages", "on_config", "on_files", "on_page_markdown"]

#: Packages without an API: the commands have a page of their own.
WITHOUT_API = ("protgraph.cli",)
KINDS = ("featurizers", "layers", "heads", "models", "tasks", "datasets", "trained_models")
LINK = re.compile(r"\[([^\]]*)\]\(([^)\s:#]+)(#[^)\s]*)?\)")


def on_config(config: Any) -> Any:
    """Fill the sections "Families", "API" and those of the cards in the navigation with the generated pages."""
    pages = [uri for uri in sorted(generated_pages(), key=_title) if uri != "families/template.md"]
    folders = {
        "Families": "families/",
        "Cards of trained models": "model_cards/",
        "Cards of datasets": "dataset_cards/",
        "API": "reference/protgraph",
    }
    sections = {}
    for title, folder in folders.items():
        sections[title] = [uri for uri in pages if uri.startswith(folder)]

    def fill(items: list[Any]) -> None:
        for item in (i for i in items if isinstance(i, dict)):
            for title, inner in item.items():
                if title in sections:
                    item[title] = [{_title(uri): uri} for uri in sections[title]]
                elif isinstance(inner, list):
                    fill(inner)

    fill(config.nav)
    return config


def _title(uri: str) -> str:
    """Return the title of a page in the navigation: packages without ``protgraph.``, which is the same for all."""
    return posixpath.basename(uri).removesuffix(".md").removeprefix("protgraph.")


def on_files(files: Files, *, config: Any) -> Files:
    """Add the generated pages, and the figures of the model cards, to the files of the site."""
    for uri, text in generated_pages().items():
        files.append(File.generated(config, uri, content=text))
    for source, uri in _PLACES.items():
        if source.endswith(".svg"):
            files.append(File.generated(config, uri, abs_src_path=str(ROOT / source)))
    return files


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Files) -> str:
    """Redirect links to files outside of ``docs``, and links of README files, which are relative to their folder."""
    source_of = {uri: source for source, uri in _PLACES.items() if source.endswith(".md")}
    own = page.file.src_uri not in source_of
    if page.file.generated_by and own:
        return markdown
    folder = posixpath.dirname(source_of.get(page.file.src_uri, f"docs/{page.file.src_uri}"))

    def redirect(match: re.Match[str]) -> str:
        title, path, anchor = match.groups()
        source = posixpath.normpath(posixpath.join(folder, path))
        if own and source.startswith("docs/"):
            return match[0]
        target = _PLACES.get(source, source.removeprefix("docs/") if source.startswith("docs/") else None)
        target = target or _PLACES.get(f"{source}/README.md")
        if target is None or files.get_file_from_path(target) is None:
            return f"{title} (`{source}`)"  # a file of the checkout without a page
        return f"[{title}]({posixpath.relpath(target, posixpath.dirname(page.file.src_uri))}{anchor or ''})"

    return LINK.sub(redirect, markdown)


def _places() -> dict[str, str]:
    """Return file of the checkout → page or figure of the site, for the files outside of ``docs``."""
    places = {"CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md"}
    for pattern, folder in (("plugins/*/README.md", "families"), ("plugins/trained/*/README.md", "model_cards")):
        for readme in sorted(ROOT.glob(pattern)):
            places[readme.relative_to(ROOT).as_posix()] = f"{folder}/{readme.parent.name}.md"
    for figure in sorted(ROOT.glob("plugins/trained/*/*.svg")):
        places[figure.relative_to(ROOT).as_posix()] = f"model_cards/{figure.parent.name}-{figure.name}"
    for folder in sorted(path.parent for path in ROOT.glob("datasets/*/dataset.py")):
        for file in (*card_files(folder), *folder.glob("README.md")):
            places[file.relative_to(ROOT).as_posix()] = f"dataset_cards/{folder.name}.md"
    return places


_PLACES = _places()


def generated_pages() -> dict[str, str]:
    """Return page of the site → Markdown text, of all generated pages."""
    pages = {}
    for source, uri in _PLACES.items():
        if source.endswith(".md"):
            pages[uri] = (ROOT / source).read_text(encoding="utf-8")
            pages[uri] += _family_api(uri)
    for uri in sorted(set(_PLACES.values())):
        if uri.startswith("dataset_cards/"):
            pages[uri] = dataset_page(ROOT / "datasets" / posixpath.basename(uri).removesuffix(".md"))
    packages = sorted({module.rpartition(".")[0] for module in modules_of("protgraph") if "." in module})
    for package in packages:
        if package != "protgraph" and not package.startswith(WITHOUT_API):
            pages[f"reference/{package}.md"] = _package_page(package)
    pages["reference/protgraph.md"] = _top_page([p for p in packages if f"reference/{p}.md" in pages])
    pages["reference/protgraph_datasets.md"] = (
        "# protgraph_datasets {#protgraph_datasets}\n\nDatasets of this distribution.\n\n"
        + _modules("protgraph_datasets", level=2)
    )
    pages["reference/components.md"] = _components_page()
    return pages


def _family_api(uri: str) -> str:
    """Return the section that the page of a model family ends with; "" for other pages."""
    folder, _, name = uri.removesuffix(".md").rpartition("/")
    if folder != "families" or name == "template":
        return ""
    return f"\n\n## API\n\n{_modules(f'protgraph_plugins.{name}', level=3)}"


def _package_page(package: str) -> str:
    """Return the page of one package: what it exports, then its modules."""
    lines = [f"# {package} {{#{package}}}", "", _text(package), ""]
    if names := exports(package):
        lines += [f"Import from `{package}`:", "", "| name | content |", "|---|---|"]
        lines += [_row(name, home(package, name)) for name in names]
    return "\n".join(lines) + "\n\n" + _modules(package, level=2, deep=False)


def _modules(package: str, *, level: int, deep: bool = True) -> str:
    """Return mkdocstrings' directives for the public names of all modules of a package."""
    return "\n".join(_directive(module, level) for module in modules_of(package, deep=deep))


def _top_page(packages: list[str]) -> str:
    """Return the page of ``import protgraph as pg``."""
    start = "`import protgraph as pg` has the names of the main path. Each is imported on first use."
    lines = ["# protgraph {#protgraph}", "", start, "", "| name | content |", "|---|---|"]
    inner = {p.partition(".")[2] for p in packages}
    lines += [_row(f"pg.{name}", home("protgraph", name)) for name in exports("protgraph") if name not in inner]
    lines += ["", "## Packages", "", "| package | content |", "|---|---|"]
    lines += [f"| [{package}]({package}.md) | {_text(package)} |" for package in packages]
    outside = [module for module in modules_of("protgraph", deep=False) if module.count(".") == 1]
    return "\n".join(lines) + "\n\n## Modules outside of packages\n\n" + "\n".join(
        _directive(module, 3) for module in outside
    )  # fmt: skip


def _row(shown: str, path: str) -> str:
    return f"| [`{shown}`][{path}] | {_text(path)} |"


def _text(path: str) -> str:
    return to_markdown(summary(path)).replace("|", "\\|")


def _directive(module: str, level: int) -> str:
    names = "".join(f"\n        - {name}" for name in public_names(module))
    return f"::: {module}\n    options:\n      heading_level: {level}\n      members:{names}\n"


def _components_page() -> str:
    """Return the tables of registry names, from the entry points of ``pyproject.toml``."""
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["entry-points"]
    lines = ["# Registry names", "", "Components of this distribution. `protgraph list` also lists those of installed",
             "plugins, `protgraph info NAME` the options, and the fields read and written.", ""]  # fmt: skip
    for kind in KINDS:
        names = groups.get(f"protgraph.{kind}", {})
        lines += [f"## {kind.replace('_', ' ').capitalize()} ({len(names)})", "", "| name | content |", "|---|---|"]
        for name, place in names.items():
            module, _, member = place.partition(":")
            path = f"{module}.{member}"
            shown = f"[`{name}`][{path}]" if member in public_names(module) else f"`{name}`"
            lines.append(f"| {shown} | {_text(path) or _text(module)} |")
        lines.append("")
    return "\n".join(lines)
