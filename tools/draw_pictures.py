"""Draw the pictures of the documentation: ``docs/assets/PAGE.svg`` or ``.png``, from the data of this checkout.

Run ``python tools/draw_pictures.py`` in the checkout for all of them, or with names: ``python tools/draw_pictures.py
edges splits``. ``view``, the page of ``protgraph view``, requires the extra ``test``, Chromium and its driver;
``design``, ``generation``, ``mutations`` and ``mutation_models`` require ProteinMPNN's weights. A second run gives the
same bytes, except for ``view``.
"""

from __future__ import annotations

import argparse
import io
import re
import shutil
import tempfile
import textwrap
import time
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from matplotlib import rc_context
from matplotlib.collections import LineCollection
from matplotlib.colors import ListedColormap
from matplotlib.patches import FancyBboxPatch
from PIL import Image
from torch.nn.functional import cross_entropy
from torch_geometric.loader import DataLoader

import protgraph as pg
from protgraph.bench import make_figure
from protgraph.structure import ALPHABET
from protgraph.structure.descriptors import DSSP_STATES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["PICTURES", "main"]

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
STRUCTURES = ROOT / "datasets" / "pdb_core" / "structures"
# Okabe & Ito 2008, safe for color-blind readers.
BLUE, ORANGE, GREEN, PINK, YELLOW, SKY = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"
GRAY, PALE, INK = "#8a929b", "#eef2f6", "#1f2933"
WIDTH = 9.375  # inches: 900 pixels of a browser
STYLE = {"svg.hashsalt": "protgraph", "font.size": 11, "axes.titlesize": 12, "axes.titlelocation": "left"}
STYLE |= {"image.interpolation": "none"}  # an SVG has the cells of a heat map as they are


# --- figures ----------------------------------------------------------------------------------------------------------


def _panels(height: float, columns: int = 1, ratios: Sequence[float] | None = None) -> tuple[Figure, list[Axes]]:
    """Create a row of panels without frames at the top and right."""
    figure = make_figure(WIDTH, height)
    grid = figure.subplots(1, columns, squeeze=False, gridspec_kw={"width_ratios": ratios})
    panels = list(grid[0])
    for panel in panels:
        panel.spines[["top", "right"]].set_visible(False)
    return figure, panels


def _save(figure: Figure, path: Path) -> None:
    """Write a figure without a date and without the version of matplotlib."""
    if path.suffix == ".svg":
        figure.savefig(path, metadata={"Date": None, "Creator": None})
        text = re.sub(r' (?:d|points)="[^"]*"|<use [^>]*>', _rounded, path.read_text(encoding="utf-8"))
        path.write_text("\n".join(line.strip() for line in text.splitlines()) + "\n", encoding="utf-8")
    else:
        # 64 colors: a third of the bytes of RGBA
        buffer = io.BytesIO()
        figure.savefig(buffer, dpi=120)
        Image.open(buffer).convert("RGB").quantize(64, dither=Image.Dither.NONE).save(path, optimize=True)


def _rounded(match: re.Match[str]) -> str:
    """Return coordinates of an SVG with two decimals: half the bytes of a file."""
    return re.sub(r"(\d\.\d\d)\d+", r"\1", match[0])


def _scheme(height: float) -> tuple[Figure, Axes]:
    """Create a panel without axes, 100 units wide, with units of the same length in both directions."""
    figure = make_figure(WIDTH, height, layout=None)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_xlim(0, 100)
    axes.set_ylim(0, 100 * height / WIDTH)
    axes.set_axis_off()
    return figure, axes


def _box(axes: Axes, x: float, y: float, width: float, height: float, title: str, body: str, color: str = BLUE) -> None:
    """Draw a box with its lower left corner at (x, y): a bold title, and lines of text below it."""
    shape = FancyBboxPatch((x, y), width, height, boxstyle="round,pad=0,rounding_size=0.8")
    shape.set(facecolor=PALE, edgecolor=color, linewidth=1.6)
    axes.add_patch(shape)
    top = y + height - 1.2
    axes.text(x + width / 2, top, title, ha="center", va="top", weight="bold", color=color, fontsize=10.5)
    axes.text(x + width / 2, top - 2.9, body, ha="center", va="top", color=INK, fontsize=9.2, linespacing=1.45)


def _arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float]) -> None:
    axes.annotate("", end, start, arrowprops={"arrowstyle": "-|>", "color": INK, "linewidth": 1.4})


def _row(axes: Axes, y: float, height: float, boxes: Sequence[tuple[str, str]], color: str = BLUE) -> None:
    """Draw boxes of equal size from left to right, with arrows between them."""
    gap = 3.4
    width = (98 - gap * (len(boxes) - 1)) / len(boxes)
    for number, (title, body) in enumerate(boxes):
        x = 1 + number * (width + gap)
        _box(axes, x, y, width, height, title, body, color)
        if number:
            _arrow(axes, (x - gap, y + height / 2), (x, y + height / 2))


def _flow(path: Path, boxes: Sequence[tuple[str, str]], height: float = 1.5) -> None:
    """Draw one row of boxes."""
    figure, axes = _scheme(height)
    _row(axes, 1, 100 * height / WIDTH - 2, boxes)
    _save(figure, path)


def _projected(pos: np.ndarray) -> np.ndarray:
    """Project positions ``(N, 3)`` to the plane of their largest extent, ``(N, 2)``."""
    centered = pos - pos.mean(0)
    axes = np.linalg.svd(centered, full_matrices=False)[2][:2]
    signs = np.sign(axes[np.arange(2), np.abs(axes).argmax(1)])
    return centered @ (axes * signs[:, None]).T


def _plot_trace(axes: Axes, xy: np.ndarray, color: str = INK, width: float = 1.6) -> None:
    """Draw the CA trace ``(N, 2)``."""
    axes.plot(xy[:, 0], xy[:, 1], color=color, linewidth=width, solid_joinstyle="round", zorder=2)
    axes.set_aspect("equal", adjustable="datalim")
    axes.set_axis_off()


def _plot_edges(axes: Axes, xy: np.ndarray, edge_index: torch.Tensor) -> int:
    """Draw every connected pair once, and return the number of pairs."""
    pairs = {(min(pair), max(pair)) for pair in edge_index.T.tolist()}
    axes.add_collection(LineCollection([xy[list(pair)] for pair in sorted(pairs)], colors=SKY, linewidths=0.7))
    return len(pairs)


def _residues(name: str) -> pg.Residues:
    return pg.clean(pg.load_structure(STRUCTURES / f"{name}.bcif"))


def _table(page: Path, header: str) -> list[list[str]]:
    """Return the rows of the first table of a page whose header line begins so."""
    lines = page.read_text(encoding="utf-8").splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith(header))
    rows = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows


# --- a model trained in seconds, for three pictures -------------------------------------------------------------------


class Trained(NamedTuple):
    """A model of 40 proteins, and its curves."""

    model: pg.ProteinModel
    losses: list[float]
    accuracies: list[float]


def _accuracy_of(model: pg.ProteinModel, graph: pg.ProteinGraph) -> float:
    with torch.no_grad():
        predicted = model(graph)["logits"].argmax(1)
    return float((predicted == graph.y)[graph.y >= 0].float().mean())


@cache
def _train(name: str) -> Trained:
    """Train a model on secondary structure with the loop of ``docs/own_loop.md``: 40 proteins, 10 epochs."""
    dataset = pg.load_dataset("pdb_core", task="secondary_structure")
    features = pg.models.get(name).features
    train = list(dataset.graphs("secondary_structure", "train", features=features))[:40]
    val = list(dataset.graphs("secondary_structure", "val", features=features))
    model = pg.build_model(name, pg.tasks.get("secondary_structure").target, seed=0)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    torch.manual_seed(0)
    losses, accuracies = [], []
    for _ in range(10):
        model.train()
        values = []
        for batch in DataLoader(train, batch_size=4, shuffle=True):
            loss = cross_entropy(model(batch)["logits"], batch.y, ignore_index=-1)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            values.append(loss.item())
        model.eval()
        losses.append(float(np.mean(values)))
        accuracies.append(float(np.mean([_accuracy_of(model, graph) for graph in val])))
    return Trained(model, losses, accuracies)


# --- Start ------------------------------------------------------------------------------------------------------------


def draw_index(path: Path) -> None:
    """Draw ubiquitin as a CA trace, as a graph, and with predictions."""
    residues = _residues("1ubq")
    helix = pg.predict("secondary_structure", STRUCTURES / "1ubq.bcif").column("p_H")
    graph = pg.build_graph(residues, [pg.component("knn", k=8)])
    xy = _projected(residues.pos)
    figure, panels = _panels(2.5, 3)
    for panel in panels:
        _plot_trace(panel, xy)
    _plot_edges(panels[1], xy, graph.edge_index)
    panels[1].scatter(*xy.T, s=22, color=BLUE, zorder=3)
    dots = panels[2].scatter(*xy.T, s=40, c=helix, cmap="viridis", vmin=0, vmax=1, zorder=3)
    figure.colorbar(dots, ax=panels[2], label="p(helix)")
    for panel, title in zip(panels, ("1 · structure", "2 · graph", "3 · prediction"), strict=True):
        panel.set_title(title)
    _save(figure, path)


def draw_installation(path: Path) -> None:
    """Draw the steps of the installation, and the extras by what they are for."""
    figure, axes = _scheme(2.7)
    steps = [
        ("1 · clone", "the repository"),
        ("2 · environment", "python3 -m venv .venv\n. .venv/bin/activate"),
        ("3 · install", "pip install .\nall models and commands"),
        ("4 · check", "protgraph doctor\nends with “no problems”"),
    ]
    extras = [
        ("view", "structures in\na browser"),
        ("pandas, xlsx", "data frames,\nExcel tables"),
        ("align, mmseqs", "fast splits\nwithout relatives"),
        ("esm", "ESM-2"),
        ("proteinmpnn", "design, score,\nmutate, scan"),
    ]
    _row(axes, 16.5, 11, steps)
    axes.text(1, 12.6, "optional:", fontsize=11, color=INK)
    for number, (title, body) in enumerate(extras):
        _box(axes, 1 + number * 19.8, 1, 18.8, 10.4, title, body, GREEN)
    _save(figure, path)


def draw_questions(path: Path) -> None:
    """Draw the sections of the guide with their pages, from the navigation."""
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").split("  - Recipes:")[0]
    sections = re.split(r'\n +- "(\d · [^"]+)":\n', text)
    figure, axes = _scheme(4.6)
    colors = (BLUE, GREEN, ORANGE, PINK, BLUE, GREEN, ORANGE)
    for number, (title, block) in enumerate(zip(sections[1::2], sections[2::2], strict=True)):
        pages = re.findall(r"([\w]+)\.md", block)
        row, column = divmod(number, 4)
        body = "\n".join(page.replace("_", " ") for page in pages)
        x = 1 + column * 24.7 + row * 12.35
        _box(axes, x, 25.0 - row * 24.1, 23.8, 23.2, title, body, colors[number])
    _save(figure, path)


# --- 1 · Use trained models -------------------------------------------------------------------------------------------


def draw_trained_models(path: Path) -> None:
    """Plot the AUPRC of the models of binding sites on their test splits, from their cards."""
    figure, (axes,) = _panels(2.9)
    names = []
    for name in pg.trained_models.names():
        result = pg.trained_models.get(name).card().splits["test"]
        if "auprc" not in result.metrics:
            continue
        value, low, high = result.metrics["auprc"]
        row = len(names)
        axes.plot([low, high], [row, row], color=BLUE, linewidth=3, label="95 % interval over clusters of proteins")
        axes.plot(value, row, "o", color=BLUE, markersize=8, label="model")
        axes.plot(result.positives[0] / result.labels, row, "d", color=ORANGE, markersize=8, label="random ranking")
        names.append(name)
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set_xlim(0, 1)
    axes.set_xlabel("AUPRC on the test split")
    axes.grid(axis="x", color="#dde2e7")
    handles = axes.get_legend_handles_labels()[0][:3]
    figure.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False)
    _save(figure, path)


def draw_embeddings(path: Path) -> None:
    """Draw the steps from structures to vectors, and what they are for."""
    boxes = [
        ("structures", "my_structures/*.cif"),
        ("model", "protgraph embed\nstructure_encoder"),
        ("vectors", "one per residue,\ntheir mean per protein\nvectors.npz"),
        ("use", "search: similar proteins\nfit a model of yours\nbench probes: their worth"),
    ]
    _flow(path, boxes, 1.35)


def draw_predictions(path: Path) -> None:
    """Plot the probability of a ligand site on the trace and along the sequence, with the residues that touch it."""
    dataset = pg.load_dataset("pdb_core", task="ligand_binding")
    graph = next(g for g in dataset.graphs("ligand_binding", "test", features=["knn"]) if g.name.startswith("6ntj"))
    residues = _residues("6ntj").chains("A")
    p = pg.predict("ligand_site", STRUCTURES / "6ntj.bcif").column("p_ligand_site")
    is_site = graph.y[:, 0].numpy() == 1
    figure, (trace, line) = _panels(3.2, 2, (1, 1.7))
    xy = _projected(residues.pos)
    _plot_trace(trace, xy, GRAY, 1.2)
    dots = trace.scatter(*xy.T, s=38, c=p, cmap="viridis", vmin=0, zorder=3)
    figure.colorbar(dots, ax=trace, label="p(site)", location="left", shrink=0.8)
    line.plot(residues.res_id, p, color=BLUE, linewidth=1.5, label="predicted probability")
    line.plot(residues.res_id[is_site], np.full(is_site.sum(), -0.05), "|", color=ORANGE, markersize=11, mew=2.2)
    line.text(residues.res_id[-1], -0.13, "residues that touch the ligand", color=ORANGE, ha="right", va="center")
    line.set_ylim(-0.18, 1)
    line.set_xlabel("residue number")
    line.set_ylabel("p(site)")
    _save(figure, path)


def draw_model_quality(path: Path) -> None:
    """Plot lDDT and deviation per residue of a model whose second domain is rotated by 30°."""
    from protgraph_plugins.similarity import compare_structures
    from scipy.spatial.transform import Rotation

    native = _residues("1h4a")
    turn = Rotation.from_euler("x", 30, degrees=True).as_matrix().astype(np.float32)
    hinge, is_moved = native.pos[83], np.arange(len(native)) >= 84
    is_moved_atom = is_moved[native.atom_residue]

    def moved(pos: np.ndarray, rows: np.ndarray) -> np.ndarray:
        return np.where(rows.reshape(-1, *[1] * (pos.ndim - 1)), (pos - hinge) @ turn.T + hinge, pos)

    model = native.copy_with(
        pos=moved(native.pos, is_moved),
        backbone=moved(native.backbone, is_moved),
        atom_pos=moved(native.atom_pos, is_moved_atom),
    )
    comparison = compare_structures(model, native)
    aligned, _ = Rotation.align_vectors(native.pos - native.pos.mean(0), model.pos - model.pos.mean(0))
    fitted = aligned.apply(model.pos - model.pos.mean(0)) + native.pos.mean(0)
    figure, (trace, line) = _panels(3.2, 2, (1, 1.7))
    both = _projected(np.concatenate([native.pos, fitted]))
    _plot_trace(trace, both[: len(native)], INK)
    _plot_trace(trace, both[len(native) :], ORANGE)
    trace.set_title("native (black), model (orange)")
    line.plot(native.res_id, comparison.lddt_ca.residue, color=BLUE, linewidth=2)
    line.set_ylim(0, 1.05)
    line.set_xlabel("residue number")
    line.set_ylabel("lDDT of CA", color=BLUE)
    right = line.twinx()
    right.spines["top"].set_visible(False)
    right.plot(native.res_id, np.linalg.norm(fitted - native.pos, axis=1), "--", color=ORANGE, linewidth=2)
    right.set_ylim(bottom=0)
    right.set_ylabel("deviation after superposition, Å", color=ORANGE)
    _save(figure, path)


# --- 2 · Structures as graphs -----------------------------------------------------------------------------------------


def draw_files(path: Path) -> None:
    """Draw the steps from a file to a graph, with the numbers of an entry."""
    structure = pg.load_structure(STRUCTURES / "1atp.bcif")
    residues = pg.clean(structure)
    graph = pg.build_graph(residues, ["dihedral", "knn", "edge_distance"])
    report = "\n".join(textwrap.fill(line, 29) for line in residues.report.lines())
    boxes = [
        ("file", "1atp.bcif\nPDB, mmCIF,\nBinaryCIF, foldcomp"),
        ("Residues", f"clean(…)\n{len(residues)} residues\n{len(residues.chain_names)} chains"),
        ("loss report", report),
        ("ProteinGraph", f"{graph.num_nodes} nodes, {graph.num_edges} edges\ndihedral, edge_dist"),
    ]
    _flow(path, boxes, 1.6)


def draw_descriptors(path: Path) -> None:
    """Plot descriptors of each residue of ubiquitin."""
    names = ["sasa", "contact_number", "half_sphere_exposure", "protrusion", "dihedral", "b_factor", "dssp"]
    graph = pg.build_graph(_residues("1ubq"), names)
    rows = {
        "relative_sasa": graph.relative_sasa[:, 0],
        "contact_number": graph.contact_number[:, 0],
        "half_sphere_ca, up": graph.half_sphere_ca[:, 0],
        "protrusion, mean": graph.protrusion[:, 0],
        "cos φ": graph.dihedral[:, 0],
        "cos ψ": graph.dihedral[:, 1],
        "b_factor": graph.b_factor[:, 0],
    }
    values = torch.stack(list(rows.values())).numpy()
    values = (values - values.min(1, keepdims=True)) / np.ptp(values, axis=1, keepdims=True)
    figure = make_figure(WIDTH, 3.3)
    top, axes = figure.subplots(2, 1, sharex=True, gridspec_kw={"height_ratios": (1, 7)})
    letters = [(*DSSP_STATES, "?")[state] for state in graph.dssp.tolist()]
    colors = {"H": ORANGE, "G": YELLOW, "E": SKY, "B": SKY}
    for number, letter in enumerate(letters, start=1):
        top.bar(number, 1, width=1, color=colors.get(letter, PALE))
        top.text(number, 0.5, letter, ha="center", va="center", fontsize=8)
    top.set_ylim(0, 1)
    top.tick_params(length=0)
    top.spines[:].set_visible(False)
    top.set_yticks([0.5], ["dssp"])
    image = axes.imshow(values, aspect="auto", cmap="cividis", extent=(0.5, 76.5, len(rows), 0))
    axes.set_yticks(np.arange(len(rows)) + 0.5, list(rows))
    axes.set_xlabel("residue number of 1ubq")
    bar = figure.colorbar(image, ax=axes, ticks=[0, 1], pad=0.01)
    bar.ax.set_yticklabels(["lowest", "highest"])
    _save(figure, path)


def draw_edges(path: Path) -> None:
    """Draw edges of four kinds in crambin."""
    residues = _residues("1crn")
    xy = _projected(residues.pos)
    kinds = {
        "knn, k = 8": pg.component("knn", k=8),
        "radius, 8 Å": pg.component("radius", radius=8.0),
        "contact, 4.5 Å": pg.component("contact"),
        "hydrogen_bond": pg.component("hydrogen_bond"),
    }
    figure, panels = _panels(2.45, len(kinds))
    for panel, (title, kind) in zip(panels, kinds.items(), strict=True):
        graph = pg.build_graph(residues, [kind])
        _plot_trace(panel, xy, GRAY, 1.2)
        count = _plot_edges(panel, xy, graph.edge_index)
        panel.scatter(*xy.T, s=14, color=BLUE, zorder=3)
        panel.set_title(f"{title}\n{count} pairs", loc="center")
    _save(figure, path)


# --- 3 · Train on your data -------------------------------------------------------------------------------------------


def draw_user_data(path: Path) -> None:
    """Draw the steps from a folder and a table to predictions."""
    figure, axes = _scheme(2.5)
    _box(axes, 1, 14, 20, 11.6, "folder", "my_structures/\n1ubq.cif, 1crn.pdb, …")
    _box(axes, 1, 1, 20, 11.6, "label table", "labels.csv:\nfile, chain, res_id, site")
    boxes = [
        ("graphs", "a graph per file,\nlabels on its\nresidues;\ntrain, val, test"),
        ("model", "protgraph train gat\n--data my_structures\n--labels labels.csv\n--task site"),
        ("checkpoint", "best epoch of val,\nscores of test\n\ngat.safetensors"),
        ("predictions", "protgraph predict\ngat.safetensors\nnew.cif -o new.csv"),
    ]
    for number, (title, body) in enumerate(boxes):
        x = 25 + number * 18.7
        _box(axes, x, 4.5, 17, 17, title, body, GREEN if number == 3 else BLUE)
        if number:
            _arrow(axes, (x - 1.9, 13.2), (x + 0.1, 13.2))
    _arrow(axes, (21, 19.5), (25, 15.5))
    _arrow(axes, (21, 7), (25, 11))
    _save(figure, path)


def _first_of_split(clusters: Sequence[str], split_of: dict[str, str], split: str) -> list[str]:
    """Return the first four clusters of a split."""
    return [cluster for cluster in clusters if split_of[cluster] == split][:4]


def draw_splits(path: Path) -> None:
    """Plot chains of pdb_core by cluster, in random splits with and without regard to clusters."""
    from protgraph.data.datasets.splits import group_split

    lines = (STRUCTURES.parent / "chains.tsv").read_text(encoding="utf-8").splitlines()
    column = lines[0].split("\t").index("cluster30")
    clusters = [line.split("\t")[column] for line in lines[1:]]
    together = group_split(clusters, seed=0)
    split_of = dict(zip(clusters, together, strict=True))
    by_size = sorted(split_of, key=lambda name: (-clusters.count(name), name))
    chosen: list[str] = []
    for split in ("train", "val", "test"):
        chosen += _first_of_split(by_size, split_of, split)
    figure, panels = _panels(3.3, 2)
    assignments = {
        "each chain for itself": group_split(range(len(clusters)), seed=0),
        "relatives together": together,
    }
    styles = {"train": (SKY, "o"), "val": (YELLOW, "s"), "test": (ORANGE, "^")}
    for panel, (title, splits) in zip(panels, assignments.items(), strict=True):
        for row, name in enumerate(chosen):
            members = sorted(split for split, cluster in zip(splits, clusters, strict=True) if cluster == name)
            members.sort(key=list(styles).index)
            for place, split in enumerate(members):
                color, marker = styles[split]
                panel.plot(place + 1, row, marker, color=color, markersize=8, label=split)
        panel.set_title(title)
        panel.set_yticks(range(12), [f"cluster {row + 1}" for row in range(12)])
        panel.invert_yaxis()
        panel.set_xticks([])
        panel.spines[["bottom"]].set_visible(False)
    handles = [panels[0].plot([], [], m, color=c, markersize=8, label=s)[0] for s, (c, m) in styles.items()]
    figure.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False)
    _save(figure, path)


def draw_complexes(path: Path) -> None:
    """Draw the chains of hemoglobin, their interfaces, and the number of residues in them."""
    from protgraph.structure.compare import chain_interfaces

    residues = _residues("4hhb")
    names = residues.chain_names
    interfaces = chain_interfaces(residues, cutoff=5.0)
    figure, (trace, matrix) = _panels(3.5, 2, (1.4, 1))
    xy = _projected(residues.pos)
    for name, color in zip(names, (BLUE, ORANGE, GREEN, PINK), strict=True):
        rows = residues.chain == name
        _plot_trace(trace, xy[rows], color, 1.4)
        middle = xy[rows].mean(0)
        trace.text(*middle * 2.3, name, fontsize=16, weight="bold", color=color, ha="center", va="center")
    counts = np.zeros((len(names), len(names)))
    for interface in interfaces:
        i, j = (names.index(chain) for chain in interface.chains)
        counts[i, j], counts[j, i] = (len(rows) for rows in interface.residues)
        touching = np.concatenate([np.asarray(rows) for rows in interface.residues])
        trace.scatter(*xy[touching].T, s=14, color=INK, zorder=4)
    trace.set_title("4hhb: chains, and residues of interfaces (black)")
    matrix.imshow(counts, cmap="Blues", vmax=40)
    for i in range(len(names)):
        for j in range(len(names)):
            matrix.text(j, i, f"{counts[i, j]:.0f}" if i != j else "–", ha="center", va="center")
    matrix.set_xticks(range(len(names)), names)
    matrix.set_yticks(range(len(names)), names)
    matrix.set_xlabel("within 5 Å of chain")
    matrix.set_ylabel("residues of chain")
    _save(figure, path)


def draw_small_data(path: Path) -> None:
    """Plot bootstrap intervals of the accuracy over proteins, by the number of test proteins."""
    model = _train("gcn").model
    dataset = pg.load_dataset("pdb_core", task="secondary_structure")
    test = dataset.graphs("secondary_structure", "test", features=pg.models.get("gcn").features)
    accuracies = np.array([_accuracy_of(model, graph) for graph in test])
    generator = np.random.default_rng(0)
    accuracies = generator.permutation(accuracies)
    figure, (axes,) = _panels(2.9)
    for row, count in enumerate((5, 10, 20, 40, len(accuracies))):
        chosen = accuracies[:count]
        means = generator.choice(chosen, (1000, count)).mean(1)
        low, high = np.percentile(means, [2.5, 97.5])
        axes.plot(chosen, np.full(count, row), "|", color=GRAY, markersize=14)
        axes.plot([low, high], [row, row], color=BLUE, linewidth=7, solid_capstyle="butt")
        axes.plot(chosen.mean(), row, "o", color=ORANGE, markersize=8)
    axes.set_yticks(range(5), [f"{count} proteins" for count in (5, 10, 20, 40, len(accuracies))])
    axes.invert_yaxis()
    axes.set_xlabel("accuracy; gray: each protein, orange: mean, blue: 95 % interval of the mean")
    _save(figure, path)


def draw_tasks(path: Path) -> None:
    """Draw which parts of a protein each task hides from the model."""
    inputs = {"residue_type": "types", "sidechain": "side chains", "coordinates": "coordinates"}
    inputs |= {"b_factor": "B factors", "ligands": "ligands"}
    names = [*pg.load_dataset("pdb_core").card.tasks, "model_quality"]
    figure, (axes,) = _panels(3.8)
    for row, name in enumerate(names):
        masking = pg.tasks.get(name).inputs
        for column, hideable in enumerate(inputs):
            text, color = "visible", "#dcebf5"
            if hideable in masking.hidden:
                text, color = "hidden", ORANGE
            if hideable == "residue_type" and masking.visible_types:
                text, color = "hidden in part", YELLOW
            if hideable == "coordinates" and masking.noise:
                text, color = "with noise", YELLOW
            axes.barh(row, 0.96, left=column + 0.02, height=0.9, color=color)
            axes.text(column + 0.5, row, text, ha="center", va="center", fontsize=10, color=INK)
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set_xlim(0, len(inputs))
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_xticks(np.arange(len(inputs)) + 0.5, list(inputs.values()))
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    axes.spines[["left", "bottom"]].set_visible(False)
    _save(figure, path)


def draw_datasets(path: Path) -> None:
    """Plot the shares of the splits of the datasets of proteins, from their cards."""
    names = ["pdb_core", "dna_site", "sugar_site", "paratope", "cryptic_pocket", "ppi_site", "db55_interface"]
    names += ["db55_pairs", "ligysis", "model_quality", "scop_fold"]
    colors = {"train": SKY, "val": YELLOW, "test": ORANGE}
    figure, (axes,) = _panels(3.7)
    for row, name in enumerate(names):
        splits = pg.datasets.get(name)().card.splits
        counts = {split: splits[split].proteins for split in colors if split in splits}
        left, total = 0.0, sum(counts.values())
        for split, count in counts.items():
            share = 100 * count / total
            axes.barh(row, share, left=left, color=colors[split], height=0.8)
            if share > 4:
                axes.text(left + share / 2, row, f"{count:,}", ha="center", va="center", fontsize=9.5)
            left += share
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set_xlabel("share of the proteins, %")
    axes.set_xlim(0, 100)
    handles = [axes.barh(0, 0, color=color, label=split) for split, color in colors.items()]
    figure.legend(handles=handles, loc="outside right upper", frameon=False)
    _save(figure, path)


def draw_training(path: Path) -> None:
    """Draw what a run writes, and from where it continues."""
    boxes = [
        ("train", "an epoch on train,\nthen metrics on val"),
        ("state", "OUT.run: weights,\noptimizer, random streams;\n--resume continues here"),
        ("checkpoint", "best epoch of val\nOUT.safetensors"),
        ("test", "metrics with\n95 % intervals,\nonce, at the end"),
    ]
    _flow(path, boxes, 1.35)


def draw_make_a_trained_model(path: Path) -> None:
    """Draw the steps of a recipe."""
    boxes = [
        ("recipe", "my_site.toml:\ndataset, task,\nmodels, seeds"),
        ("members", "one per seed,\nmean of their logits"),
        ("calibration", "probabilities and\nthreshold,\nfitted on val"),
        ("evaluation", "every other split,\nonce"),
        ("folder", "model.safetensors\ncard with results\nand limits"),
    ]
    _flow(path, boxes, 1.35)


def draw_own_loop(path: Path) -> None:
    """Plot the curves of the loop of the page, on 40 proteins."""
    _, losses, accuracies = _train("gcn")
    epochs = range(1, len(losses) + 1)
    figure, (left, right) = _panels(2.6, 2)
    left.plot(epochs, losses, "o-", color=BLUE)
    left.set_ylabel("training loss")
    right.plot(epochs, accuracies, "o-", color=ORANGE)
    right.set_ylabel("validation accuracy")
    for panel in (left, right):
        panel.set_xlabel("epoch")
        panel.grid(color="#dde2e7")
    _save(figure, path)


# --- 4 · Compare models -----------------------------------------------------------------------------------------------


def draw_attention(path: Path) -> None:
    """Plot the attention of two heads of a trained transformer beside the contacts of the structure."""
    residues = _residues("1ubq")
    model = _train("transformer").model
    maps = model.attention(model.plan.precompute(residues))
    weights = next(iter(maps.values()))[0].weights.detach().numpy()
    count = len(residues)
    distance = np.linalg.norm(residues.pos[:, None] - residues.pos[None], axis=-1)
    figure, panels = _panels(3.0, 3, (1, 1, 1))
    for head, panel in enumerate(panels[:2]):
        ratio = np.log10(np.maximum(weights[head] * count, 0.1))
        image = panel.imshow(ratio, cmap="PuOr_r", vmin=-1, vmax=1)
        panel.set_title(f"layer 1, head {head + 1}")
        panel.set_xlabel("attended residue")
    panels[0].set_ylabel("residue")
    figure.colorbar(image, ax=panels[:2], label="log₁₀(weight × residues)", shrink=0.8)
    figure.get_layout_engine().set(wspace=0.06)
    panels[2].imshow(distance < 8, cmap=ListedColormap(["white", BLUE]))
    panels[2].set_title("CA within 8 Å")
    panels[2].set_xlabel("residue")
    _save(figure, path)


def draw_benchmarks(path: Path) -> None:
    """Plot the AUPRC of the models of ``protgraph bench sites`` on each task, from the table of the measurements."""
    tasks = ["dna_site", "sugar_site", "sugar_site,\nno homolog", "paratope", "paratope_cdr", "ppi_site"]
    rows = _table(DOCS.parent / "benchmarks" / "README.md", "| model | `dna_site` | `sugar_site`")
    markers = ("|", "x", "+", "v", "o", "s", "<", "^", "D", "P", "*")
    colors = (GRAY, GRAY, GRAY, YELLOW, SKY, GREEN, YELLOW, BLUE, ORANGE, PINK, INK)
    figure, (axes,) = _panels(3.6)
    for (name, *cells), marker, color in zip(rows, markers, colors, strict=True):
        values = [float(cell.split("±")[0]) for cell in cells]
        axes.plot(values, range(6), marker, color=color, markersize=9, mew=2, label=name.strip("`"))
    axes.set_yticks(range(6), tasks)
    axes.invert_yaxis()
    axes.grid(color="#dde2e7")
    axes.set_axisbelow(True)
    axes.set_xlim(0, 1)
    axes.set_xlabel("AUPRC on test, mean of 3 seeds")
    figure.legend(loc="outside right center", frameon=False)
    _save(figure, path)


# --- 5 · Sequences and design -----------------------------------------------------------------------------------------


def draw_sequences(path: Path) -> None:
    """Plot accuracies of models of the sequence and of the structure, from the table of the measurements."""
    rows = _table(DOCS.parent / "benchmarks" / "README.md", "| model | reads | masked_lm perplexity")
    colors = {"nothing": GRAY, "sequence": YELLOW, "both": BLUE}
    figure, panels = _panels(2.8, 2)
    for panel, column, title in zip(panels, (4, 3), ("secondary_structure", "masked_lm"), strict=True):
        for number, row in enumerate(rows):
            value, deviation = map(float, row[column].split("±"))
            panel.barh(number, value, xerr=deviation, color=colors[row[1]], height=0.75)
        panel.set_yticks(range(len(rows)), [row[0].removesuffix(" (baseline)") for row in rows])
        panel.invert_yaxis()
        panel.set_title(title)
        panel.set_xlabel("test accuracy")
    labels = {"nothing": "reads nothing", "sequence": "reads the sequence", "both": "reads sequence and structure"}
    handles = [panels[0].barh(0, 0, color=colors[key], label=label) for key, label in labels.items()]
    figure.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False)
    _save(figure, path)


@cache
def _design() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return types ``(8, 76)``, recoveries ``(8,)`` and log-probabilities ``(76, 20)`` of designs of ubiquitin."""
    from protgraph_plugins.design import DesignSpec, design_sequences

    residues = _residues("1ubq")
    model = pg.pretrained("proteinmpnn.v_48_020")
    types, recoveries = [], []
    for temperature in (0.1, 1.0):
        (design,) = design_sequences(model, [residues], DesignSpec(), copies=4, temperature=temperature, details=True)
        types.append(design.aatype)
        recoveries.append(design.recovery)
    assert design.log_probs is not None
    return np.concatenate(types), np.concatenate(recoveries), design.log_probs[0][:, :20]


def draw_generation(path: Path) -> None:
    """Plot probabilities of the types of one residue, as they are and with the options of sampling."""
    from protgraph_plugins.gpt import sampling_probabilities

    log_probs = _design()[2]
    entropy = -(np.exp(log_probs) * log_probs).sum(1)
    logits = torch.tensor(log_probs[np.argsort(entropy)[len(entropy) * 2 // 3]])[None]
    order = logits[0].argsort(descending=True)
    options = {
        "temperature 1": {},
        "temperature 0.5": {"temperature": 0.5},
        "top-k 4": {"top_k": 4},
        "top-p 0.8": {"top_p": 0.8},
    }
    figure, panels = _panels(2.5, 4)
    for panel, (title, option) in zip(panels, options.items(), strict=True):
        p = sampling_probabilities(logits, **option)[0, order]
        panel.bar(range(12), p[:12], color=BLUE)
        panel.set_xticks(range(12), [ALPHABET[i] for i in order[:12]])
        panel.set_ylim(0, 0.75)
        panel.set_title(title)
        panel.tick_params(axis="x", length=0, labelsize=9.5)
    panels[0].set_ylabel("probability")
    _save(figure, path)


def draw_design(path: Path) -> None:
    """Draw designs of ubiquitin at two temperatures, and where they equal the native sequence."""
    types, recoveries, _ = _design()
    native = _residues("1ubq").aatype
    figure, (axes,) = _panels(2.6)
    columns = slice(0, 50)
    rows = [native, *types]
    same = np.array([row == native for row in rows], float)
    same[0] = 2
    axes.imshow(same[:, columns], cmap=ListedColormap(["#f6e3d5", "#a9d3ee", "#d5dbe1"]), vmin=0, vmax=2, aspect="auto")
    for number, row in enumerate(rows):
        for place, letter in enumerate(row[columns]):
            axes.text(place, number, ALPHABET[letter], ha="center", va="center", fontsize=8, family="monospace")
    labels = [f"T = {t:g}: {100 * r:.0f} %" for t, r in zip([0.1] * 4 + [1.0] * 4, recoveries, strict=True)]
    axes.set_yticks(range(9), ["native", *labels])
    axes.set_xticks(range(9, 50, 10), [str(n) for n in range(10, 51, 10)])
    axes.set_xlabel("residue number of 1ubq")
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    _save(figure, path)


def draw_mutations(path: Path) -> None:
    """Draw the heat map of ``protgraph scan 1ubq.bcif``."""
    from protgraph_plugins.mutations import draw_scan, scan_mutations
    from protgraph_plugins.mutations.options import load_scorer

    scan = scan_mutations(load_scorer("proteinmpnn.v_48_020"), _residues("1ubq"))
    with tempfile.TemporaryDirectory() as folder:
        draw_scan(path, Path(folder) / "scan.html", scan)


def draw_mutation_models(path: Path) -> None:
    """Plot ΔΔG of all pairs of types at one residue of ubiquitin."""
    from protgraph_plugins.mutations import scan_mutations
    from protgraph_plugins.mutations.options import load_scorer

    residues = _residues("1ubq")
    figure, panels = _panels(3.6, 2)
    order = [ALPHABET.index(letter) for letter in "GPAVILMFYWCSTNQHKRDE"]
    for panel, number in zip(panels, (30, 63), strict=True):
        scores = scan_mutations(load_scorer("ddg"), residues, [number - 1]).scores[0][order]
        image = panel.imshow(scores[None] - scores[:, None], cmap="RdBu_r", vmin=-4, vmax=4)
        panel.set_xticks(range(20), [ALPHABET[i] for i in order], fontsize=9)
        panel.set_yticks(range(20), [ALPHABET[i] for i in order], fontsize=9)
        panel.set_title(f"1ubq, residue {residues.sequence[number - 1]}{number}")
        panel.set_xlabel("to type")
    panels[0].set_ylabel("from type")
    figure.colorbar(image, ax=panels, label="ΔΔG, kcal/mol")
    _save(figure, path)


def draw_structure_prediction(path: Path) -> None:
    """Plot distances of CA while a structure module is fitted to one chain, from its sequence."""
    task = pg.tasks.get("structure_prediction")
    dataset = pg.load_dataset("pdb_core", task=task.name)
    features = pg.models.get("structure_module").features
    graph = min(dataset.graphs(task.name, "train", features=features), key=lambda g: (g.num_nodes, g.name))
    model = pg.build_model("structure_module", task.target, seed=0)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    torch.manual_seed(0)
    maps = {}
    for step in range(301):
        logits = model(graph)["logits"]
        loss = task.batch_loss(task.loss, logits, graph.y, graph)
        if step in {0, 50, 300}:
            maps[f"step {step}, FAPE {loss.item():.1f}"] = logits[:, 1].detach().numpy()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    maps[f"native, {graph.name}"] = graph.y[:, 1].numpy()
    figure, panels = _panels(2.6, 4)
    for panel, (title, pos) in zip(panels, maps.items(), strict=True):
        image = panel.imshow(np.linalg.norm(pos[:, None] - pos[None], axis=-1), cmap="viridis_r", vmin=0, vmax=30)
        panel.set_title(title, fontsize=10.5)
        panel.set_xlabel("residue")
    figure.colorbar(image, ax=panels, label="distance of CA, Å", shrink=0.8)
    _save(figure, path)


# --- 6 · Train at scale -----------------------------------------------------------------------------------------------


def draw_training_at_scale(path: Path) -> None:
    """Plot batches of two epochs of pdb_core: each protein is a piece of its batch."""
    from protgraph.data import ProteinBatches

    lines = (STRUCTURES.parent / "chains.tsv").read_text(encoding="utf-8").splitlines()
    columns = lines[0].split("\t")
    rows = [dict(zip(columns, line.split("\t"), strict=True)) for line in lines[1:]]
    lengths = [int(row["n_residues"]) for row in rows if row["split"] == "train"]
    batches = ProteinBatches(lengths, max_nodes=2048, shuffle=True, seed=0)
    figure, panels = _panels(2.8, 2)
    for epoch, panel in enumerate(panels):
        for number, batch in enumerate(list(batches.at_epoch(epoch))[:7]):
            left = 0
            for place, protein in enumerate(batch):
                color = (BLUE, SKY)[place % 2]
                panel.barh(number, lengths[protein], left=left, color=color, height=0.8)
                left += lengths[protein]
        panel.axvline(2048, color=ORANGE, linestyle="--", linewidth=1.5)
        panel.set_title(f"epoch {epoch + 1}")
        panel.set_xlabel("residues; dashed: --batch-residues 2048")
        panel.set_yticks(range(7), [f"batch {number + 1}" for number in range(7)])
        panel.invert_yaxis()
    _save(figure, path)


def draw_memory_and_time(path: Path) -> None:
    """Plot the peak memory of training, from the page of benchmarks."""
    rows = _table(ROOT / "benchmarks" / "README.md", "| model | 1024 | 2048 | 4096 | evaluation |")
    rows.sort(key=lambda row: float(row[2]))
    figure, (axes,) = _panels(3.5)
    axes.barh(range(len(rows)), [float(row[2]) for row in rows], color=BLUE, height=0.75)
    for number, row in enumerate(rows):
        axes.text(float(row[2]) + 15, number, row[2], va="center", fontsize=10)
    axes.set_yticks(range(len(rows)), [row[0] for row in rows])
    axes.set_xlabel("peak memory of training on the CPU at 2,048 residues per batch, MiB")
    _save(figure, path)


def draw_large_sets(path: Path) -> None:
    """Draw the steps from a database to training, in parts."""
    boxes = [
        ("database", "afdb_uniprot_v4\nfoldcomp,\nmillions of entries"),
        ("lists", "part_000.txt\npart_001.txt\n…"),
        ("stores", "featurize\n@part_000.txt\n-o part_000"),
        ("check", "data verify part_000\nfailures in the\nmanifest"),
        ("train", "train gat\n--data part_000\nmemory-mapped"),
    ]
    _flow(path, boxes, 1.35)


# --- 7 · Write components ---------------------------------------------------------------------------------------------


def draw_plugins(path: Path) -> None:
    """Draw the steps from a package to a model, and the fields that its components exchange."""
    figure, axes = _scheme(3.3)
    package = [
        ("your package", 'class MyLayer(GraphLayer)\nreads = ("h", "edges")\nwrites = ("h",)'),
        ("entry point", '[…"protgraph.layers"]\nmy_layer =\n"my_plugin:MyLayer"'),
        ("registry", "pg.layers\nprotgraph list layers\nprotgraph check my_layer"),
        ("model", 'layers = ["embed",\n"my_layer"]\ntrain, bench, predict'),
    ]
    model = [
        ("featurizers", "dihedral, knn,\nedge_distance"),
        ("embed", "reads dihedral\nwrites h"),
        ("my_layer", "reads h, edges\nwrites h"),
        ("head", "reads h\nwrites logits"),
        ("task", "labels, loss,\nmetrics"),
    ]
    _row(axes, 19.8, 14.2, package)
    axes.text(1, 16, "The model is a list of components, which exchange fields by name:", fontsize=11, color=INK)
    _row(axes, 1, 12.4, model, GREEN)
    _save(figure, path)


def draw_fine_tuning(path: Path) -> None:
    """Draw what becomes of the parts of a parent model."""
    _flow(
        path,
        [
            ("parent", "ligand_site: layers, head,\nstandardization"),
            ("layers", "loaded where component,\ninputs and shapes agree"),
            ("head", "loaded for the same target,\nelse new"),
            ("training", "all parts, or --freeze,\n--lr-scale, --lora"),
        ],
    )


def draw_models_as_data(path: Path) -> None:
    """Draw how a model in a file is used."""
    _flow(
        path,
        [
            ("file or Python", "tiny.toml, pg.ModelSpec:\nfeaturizers and layers"),
            ("change", "--set layers.1.dim=128,\n[[models]] of a bench spec"),
            ("model", "built with the target\nof a task"),
            ("commands", "describe, check,\ntrain, bench"),
        ],
    )


def draw_registries(path: Path) -> None:
    """Draw the sources of names, the registries, and where names are used."""
    kinds = ("featurizers", "layers", "heads", "models", "tasks", "datasets", "metrics", "readers", "trained_models")
    kinds += ("mutation_scorers", "commands", "functions")
    names = "\n".join(f"pg.{kind}" for kind in kinds)
    figure, axes = _scheme(2.9)
    sources = [
        ("installed packages", "entry points; in all processes"),
        ("--import my_layer.py", "a file; in a command"),
        ("pg.layers.register(…)", "a notebook; in this process"),
    ]
    uses = [
        ("commands", "protgraph train NAME"),
        ("model specs", "pg.component(NAME, dim=32)"),
        ("checkpoints", "name, distribution, version"),
    ]
    _box(axes, 39, 1, 22, 29, "registries", names, ORANGE)
    for number in range(3):
        y = 21.6 - number * 10.3
        _box(axes, 1, y, 31, 8.4, *sources[number])
        _box(axes, 68, y, 31, 8.4, *uses[number], GREEN)
        _arrow(axes, (32, y + 4.2), (39, y + 4.2))
        _arrow(axes, (61, y + 4.2), (68, y + 4.2))
    _save(figure, path)


# --- the page of protgraph view ---------------------------------------------------------------------------------------


def draw_view(path: Path) -> None:
    """Take a picture of ``protgraph view`` in Chromium: ubiquitin with its prediction and graph edges."""
    from protgraph_plugins.view import view, write_page

    scene = view(STRUCTURES / "1ubq.bcif", edges=["hydrogen_bond"], prediction="secondary_structure", color="p_H")
    with tempfile.TemporaryDirectory() as folder:
        _photograph(write_page(scene, Path(folder) / "view.html"), path)


def draw_pockets(path: Path) -> None:
    """Take a picture of the page of ``protgraph pockets``: dihydrofolate reductase, with its best pocket selected."""
    from protgraph_plugins.pockets import PocketFinder
    from protgraph_plugins.pockets.output import write_pocket_page

    protein = PocketFinder()(STRUCTURES / "1rx2.bcif")
    with tempfile.TemporaryDirectory() as folder:
        page = write_pocket_page(Path(folder) / "pockets.html", protein)
        _photograph(page, path, action="document.querySelector('input[name=surface]').click()")


def _photograph(page: Path, path: Path, *, action: str = "") -> None:
    """Open a page of Mol* in Chromium, run a script on it, and write a picture of it."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    flags = ("headless=new", "no-sandbox", "use-angle=swiftshader", "enable-unsafe-swiftshader")
    for flag in (*flags, "disable-dev-shm-usage", "window-size=900,780"):
        options.add_argument(f"--{flag}")
    service = webdriver.ChromeService(shutil.which("chromedriver"))
    with webdriver.Chrome(options=options, service=service) as browser:
        browser.get(page.as_uri())
        for script in ("", action):
            browser.execute_script(script)
            while browser.execute_script("return document.body.getAttribute('aria-busy')") != "false":
                time.sleep(0.5)
        time.sleep(5.0)
        path.write_bytes(browser.get_screenshot_as_png())


#: Picture in ``docs/assets``, named like its page → its function.
PICTURES: dict[str, Callable[[Path], None]] = {
    "index.png": draw_index,
    "installation.svg": draw_installation,
    "questions.svg": draw_questions,
    "trained_models.svg": draw_trained_models,
    "predictions.svg": draw_predictions,
    "embeddings.svg": draw_embeddings,
    "view.png": draw_view,
    "pockets.png": draw_pockets,
    "model_quality.svg": draw_model_quality,
    "files.svg": draw_files,
    "descriptors.svg": draw_descriptors,
    "edges.png": draw_edges,
    "user_data.svg": draw_user_data,
    "fine_tuning.svg": draw_fine_tuning,
    "splits.svg": draw_splits,
    "complexes.svg": draw_complexes,
    "small_data.svg": draw_small_data,
    "tasks.png": draw_tasks,
    "datasets.svg": draw_datasets,
    "training.svg": draw_training,
    "make_a_trained_model.svg": draw_make_a_trained_model,
    "own_loop.svg": draw_own_loop,
    "benchmarks.svg": draw_benchmarks,
    "attention.png": draw_attention,
    "sequences.svg": draw_sequences,
    "generation.svg": draw_generation,
    "design.png": draw_design,
    "mutations.png": draw_mutations,
    "mutation_models.svg": draw_mutation_models,
    "structure_prediction.svg": draw_structure_prediction,
    "training_at_scale.svg": draw_training_at_scale,
    "memory_and_time.svg": draw_memory_and_time,
    "large_sets.svg": draw_large_sets,
    "plugins.svg": draw_plugins,
    "models_as_data.svg": draw_models_as_data,
    "registries.svg": draw_registries,
}


def main() -> None:
    """Draw the chosen pictures."""
    names = [Path(file).stem for file in PICTURES]
    parser = argparse.ArgumentParser(description="Draw the pictures of the documentation.")
    parser.add_argument("pictures", nargs="*", choices=[[], *names], help="names of pages; all by default")
    parser.add_argument("--out", type=Path, default=DOCS / "assets", help="folder of the pictures")
    options = parser.parse_args()
    torch.set_num_threads(1)  # sums in one order: the same bytes each time
    with rc_context(STYLE):
        for file, draw in PICTURES.items():
            if not options.pictures or Path(file).stem in options.pictures:
                draw(options.out / file)
                print(options.out / file)


if __name__ == "__main__":
    main()
