"""``protgraph bench pockets``: share of ligands that the best pockets find, calibration, and its fit."""

from __future__ import annotations

import json
import tarfile
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from protgraph.cli import check_output, progress_bar
from protgraph.errors import DatasetError

if TYPE_CHECKING:
    import numpy as np
    from protgraph_plugins.pockets.find import PocketFinder
    from protgraph_plugins.pockets.pockets import Pocket

__all__ = ["bench_pockets_command"]
ENTRY_POINTS = {"protgraph.commands": {"bench.pockets": "bench_pockets_command"}}

_FOUND = 4.0  # Å from the center of a pocket to an atom of the ligand
_LINING = 1 / 3  # of the residues of a pocket are labeled: a ligand binds there in some structure of the protein

# Results of other programs on these files, from the README of the dataset; fpocket ran on 205 of the 465 of test.
_PUBLISHED = {"test": {"fpocket 4, 205 structures": (0.332, 0.571)}}


class _Protein(NamedTuple):
    file: str
    cluster: str
    ligands: list[np.ndarray]  # (A, 3) each
    labeled: set[tuple[str, int, str]]  # residues that bind a ligand in some structure of the protein


class _Scored(NamedTuple):
    cluster: str
    features: np.ndarray  # (P, 4)
    probability: np.ndarray  # (P,)
    is_bound: np.ndarray  # (P,) bool
    hits: list[tuple[bool, bool]]  # of each ligand: found by the best n pockets, by the best n + 2


def bench_pockets_command(
    folder: Annotated[Path, typer.Argument(help="Folder of ligand_site: structures, labels.tsv.gz, ligands.tsv.gz.")],
    split: Annotated[str, typer.Option(help="Split of the dataset.")] = "test",
    models: Annotated[
        list[str] | None,
        typer.Option("--model", help="Trained model, or 'none'; repeat.  [default: none, ligand_site]"),
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first proteins.")] = None,
    fit: Annotated[
        Path | None, typer.Option(help="File for the probabilities of pockets, fitted here: calibration.json.")
    ] = None,
) -> None:
    """Compare pockets with the ligands of the dataset ligand_site.

    top-n is the share of ligands with one of the n best pocket centers within 4 Å of one of their atoms; n is the
    number of ligands of the file. ECE is the expected calibration error of the probabilities of pockets: a pocket
    counts as bound if its center is that close, or a third of its residues are labeled in any structure of the
    protein. Intervals are over clusters of proteins.

    \b
    Examples:
      protgraph bench pockets ligand_site/
      protgraph bench pockets ligand_site/ --split val --fit calibration.json
    """
    from protgraph_plugins.pockets.find import PocketFinder

    if fit is not None:
        check_output(fit, option="--fit", inputs=[folder], overwrite=True, suffixes=[".json"])
    proteins = _read_proteins(folder, split)[:limit]
    fitted: dict[str, dict[str, object]] = {}
    typer.echo("| pockets of | proteins | ligands | top-n | top-(n+2) | ECE |\n|---|---:|---:|---|---|---:|")
    with tempfile.TemporaryDirectory() as unpacked:
        _unpack(folder, {protein.file for protein in proteins}, Path(unpacked))
        for name in models or ["none", "ligand_site"]:
            finder = PocketFinder(name)
            scored = list(_scored(finder, proteins, Path(unpacked)))
            typer.echo(_line(name, scored))
            fitted[name] = _fit(scored, split)
    for name, (best, more) in _PUBLISHED.get(split, {}).items():
        typer.echo(f"| {name} | | | {best:.3f} | {more:.3f} | – |")
    if fit is not None:
        earlier = json.loads(fit.read_text(encoding="utf-8")) if fit.exists() else {}
        fit.write_text(json.dumps({**earlier, **fitted}, indent=1) + "\n", encoding="utf-8")
        typer.echo(f"coefficients → {fit}")


def _read_proteins(folder: Path, split: str) -> list[_Protein]:
    """Return the proteins of a split, in the order of their names."""
    import numpy as np

    splits = _columns(folder / "splits.tsv", "file", "split", "cluster30")
    clusters = {file: cluster for file, name, cluster in zip(*splits, strict=True) if name == split}
    if not clusters:
        raise DatasetError(f"bench pockets: {folder} has no split {split!r}. Allowed: train, val, test, near_test.")
    atoms: dict[str, dict[str, list[list[float]]]] = defaultdict(lambda: defaultdict(list))
    for file, ligand, *pos in zip(*_columns(folder / "ligands.tsv.gz", "file", "ligand", *"xyz"), strict=True):
        atoms[file][ligand].append([float(x) for x in pos])
    labeled: dict[str, set[tuple[str, int, str]]] = defaultdict(set)
    labels = _columns(folder / "labels.tsv.gz", "file", "chain", "res_id", "ins_code", "label")
    for file, chain, number, code, label in zip(*labels, strict=True):
        if label == "1" and file in clusters:
            labeled[file].add((chain, int(number), code))
    proteins: list[_Protein] = []
    for file, cluster in sorted(clusters.items()):
        ligands = [np.array(ligand) for ligand in atoms[file].values()]
        proteins.append(_Protein(file, cluster, ligands, labeled[file]))
    return proteins


def _columns(path: Path, *names: str) -> list[list[str]]:
    """Return columns of a table as texts."""
    import pyarrow as pa
    from pyarrow import csv

    if not path.exists():
        raise DatasetError(f"bench pockets: no file {path}. Give the folder of the dataset ligand_site.")
    as_text = csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()), include_columns=names)
    table = csv.read_csv(path, parse_options=csv.ParseOptions(delimiter="\t"), convert_options=as_text)
    return [table[name].to_pylist() for name in names]


def _unpack(folder: Path, files: set[str], target: Path) -> None:
    """Extract files from the archives of structures."""
    for archive in sorted(folder.glob("structures_*.tar.xz")):
        with tarfile.open(archive) as tar:
            for member in tar:
                name = Path(member.name).name
                if name in files:
                    tar.extract(member.replace(name=name), target, filter="data")


def _scored(finder: PocketFinder, proteins: list[_Protein], folder: Path) -> Iterator[_Scored]:
    """Yield the pockets of each protein with what they find."""
    import numpy as np
    from protgraph_plugins.pockets.pockets import pocket_features

    with progress_bar() as bar:
        for protein in bar.track(proteins, description=finder.name):
            residues, probability, pockets = finder(folder / protein.file)
            distance = np.array([_distances(pockets, ligand) for ligand in protein.ligands]).reshape(-1, len(pockets))
            n = len(protein.ligands)
            close = distance <= _FOUND
            hits = [(bool(row[:n].any()), bool(row[: n + 2].any())) for row in close]
            keys = list(zip(residues.chain.tolist(), residues.res_id.tolist(), residues.ins_code.tolist(), strict=True))
            is_labeled = np.array([key in protein.labeled for key in keys])
            lining = np.array([is_labeled[pocket.residues].mean() for pocket in pockets])
            yield _Scored(
                protein.cluster,
                pocket_features(pockets, probability),
                np.array([pocket.probability for pocket in pockets]),
                close.any(0) | (lining >= _LINING),
                hits,
            )


def _distances(pockets: list[Pocket], ligand: np.ndarray) -> list[float]:
    """Return the distance of each pocket's center to the nearest atom of a ligand."""
    import numpy as np

    return [float(np.linalg.norm(ligand - pocket.center, axis=1).min()) for pocket in pockets]


def _line(name: str, scored: list[_Scored]) -> str:
    """Return the row of a model, with intervals over clusters."""
    import numpy as np

    by_cluster: dict[str, list[tuple[bool, bool]]] = defaultdict(list)
    for protein in scored:
        by_cluster[protein.cluster] += protein.hits
    clusters = [np.array(hits, float) for hits in by_cluster.values()]
    rng = np.random.default_rng(0)
    draws = []
    for _ in range(1000):
        drawn = rng.integers(len(clusters), size=len(clusters))
        draws.append(np.concatenate([clusters[i] for i in drawn]).mean(0))
    low, high = np.percentile(draws, [2.5, 97.5], axis=0)
    mean = np.concatenate(clusters).mean(0)
    cells = [f"{mean[k]:.3f} [{low[k]:.3f}, {high[k]:.3f}]" for k in (0, 1)]
    ligands = sum(len(protein.hits) for protein in scored)
    return f"| {name} | {len(scored)} | {ligands} | {cells[0]} | {cells[1]} | {_calibration_error(scored):.3f} |"


def _calibration_error(scored: list[_Scored]) -> float:
    """Return the expected calibration error over ten bins of equal width; NaN without probabilities."""
    import numpy as np

    probability = np.concatenate([protein.probability for protein in scored])
    is_bound = np.concatenate([protein.is_bound for protein in scored])
    if np.isnan(probability).any():
        return np.nan
    number = np.minimum((probability * 10).astype(int), 9)
    gaps = np.abs(np.bincount(number, probability - is_bound, 10))
    return float(gaps.sum() / len(probability))


def _fit(scored: list[_Scored], split: str) -> dict[str, object]:
    """Fit the logistic function of a pocket's features; the card states the data."""
    import numpy as np
    from scipy.optimize import minimize

    features = np.concatenate([protein.features for protein in scored])
    is_bound = np.concatenate([protein.is_bound for protein in scored])
    center, scale = features.mean(0), features.std(0) + 1e-9
    x = np.column_stack([(features - center) / scale, np.ones(len(features))])
    sign = np.where(is_bound, 1.0, -1.0)

    def loss(weights: np.ndarray) -> float:
        return float(np.logaddexp(0, -sign * (x @ weights)).sum() + 0.5 * (weights[:-1] ** 2).sum())

    weights = minimize(loss, np.zeros(x.shape[1]), method="BFGS").x
    coefficients = weights[:-1] / scale
    return {
        "coefficients": coefficients.round(5).tolist(),
        "intercept": round(float(weights[-1] - coefficients @ center), 5),
        "features": ["log(1 + score)", "evidence", "log(rank)", "log(1 + volume)"],
        "fitted_on": f"ligand_site, {split}: {len(scored)} proteins, {len(features)} pockets, {is_bound.sum()} bound",
        "bound": "center within 4 Å of an atom of the ligand, or a third of the residues labeled",
    }
