"""``protgraph bench pockets``: share of ligands that the best pockets find, beside other programs; calibration."""

from __future__ import annotations

import json
import tarfile
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from protgraph.cli import check_output, progress_bar
from protgraph.errors import DatasetError, OptionError

if TYPE_CHECKING:
    import numpy as np
    from protgraph_plugins.pockets.find import PocketFinder
    from protgraph_plugins.pockets.rivals import RankedPockets

    from protgraph.structure import Residues

__all__ = ["bench_pockets_command"]
ENTRY_POINTS = {"protgraph.commands": {"bench.pockets": "bench_pockets_command"}}

_CONTACT = 4.5  # Å between heavy atoms of a residue of the site and of the ligand
_LINING = 1 / 3  # of the residues of a pocket are labeled: a ligand binds there in some structure of the protein

# Results of other programs on these files, from the README of the dataset; fpocket ran on 205 of the 465 of test.
_HEAD = (
    "| pockets of | proteins | ligands | DCA top-n | DCA top-(n+2) | DCC top-n | overlap | DVO | recall | ECE |\n"
    "|---|---:|---:|---|---|---|---|---|---:|---:|"
)
_PAIRS_HEAD = "| difference | proteins | clusters | DCA top-n |\n|---|---:|---:|---|"
_PUBLISHED = {"test": {"fpocket 4, 205 structures": (0.332, 0.571)}}


class _Protein(NamedTuple):
    file: str
    cluster: str
    ligands: list[np.ndarray]  # (A, 3) each
    labeled: set[tuple[str, int, str]]  # residues that bind a ligand in some structure of the protein


class _PocketsOfProtein(NamedTuple):
    residues: Residues
    ranked: RankedPockets
    features: np.ndarray | None = None  # (P, 4), of which the probability is a function


class _Scored(NamedTuple):
    """P pockets of a protein and L ligands."""

    cluster: str
    to_atom: np.ndarray  # (P, L) Å, from the center to the nearest atom of the ligand
    to_center: np.ndarray  # (P, L) Å, to the center of the ligand
    overlap: np.ndarray  # (P, L) Jaccard index of the residues
    volume_overlap: np.ndarray  # (P, L) of cells of 1 Å; NaN if the program has no volumes
    score: np.ndarray  # (P,)
    probability: np.ndarray  # (P,)
    is_bound: np.ndarray  # (P,) bool
    features: np.ndarray | None


def bench_pockets_command(
    folder: Annotated[Path, typer.Argument(help="Folder of ligand_site: structures, labels.tsv.gz, ligands.tsv.gz.")],
    split: Annotated[str, typer.Option(help="Split of the dataset.")] = "test",
    models: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            help="Trained model, 'none' for geometry alone, 'pykvfinder', 'pocketnet', 'concavity', 'fpocket' if "
            "installed; repeat.  [default: none, ligand_site]",
        ),
    ] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Only this many proteins, evenly spaced in the list of the split.")
    ] = None,
    fit: Annotated[
        Path | None, typer.Option(help="File for the probabilities of pockets, fitted here: calibration.json.")
    ] = None,
) -> None:
    """Compare pockets with the ligands of the dataset ligand_site.

    DCA top-n is the share of ligands with one of the n best pocket centers within 4 Å of one of their atoms, DCC top-n
    within 4 Å of their center; n is the number of ligands of the file. Overlap is the mean Jaccard index of the
    residues at a ligand and those of the best of n + 2 pockets, DVO the same of volumes in cells of 1 Å, for programs
    that have volumes. Recall is the share of ligands that are found if the
    pockets of all proteins are ranked together, at one false pocket per protein. ECE is the expected calibration error
    of the probabilities of pockets, in brackets with one vote per cluster of proteins: a pocket counts as bound if its
    center is that close, or a third of its residues are labeled in any structure of the protein. Intervals are over
    clusters. A second table has the differences between ligand_site and the others on the same proteins.

    \b
    Examples:
      protgraph bench pockets ligand_site/
      protgraph bench pockets ligand_site/ --limit 40 --model ligand_site --model pykvfinder --model pocketnet
      protgraph bench pockets ligand_site/ --split val --fit calibration.json
    """
    from protgraph_plugins.pockets.find import DEFAULT_MODEL

    names = models or ["none", DEFAULT_MODEL]
    if fit is not None:
        _check_fit(fit, folder, names)
    proteins = _read_proteins(folder, split)
    if limit is not None and limit < len(proteins):
        proteins = [proteins[i * len(proteins) // limit] for i in range(limit)]
    fitted: dict[str, dict[str, object]] = {}
    scored_by: dict[str, list[_Scored]] = {}
    typer.echo(_HEAD)
    with tempfile.TemporaryDirectory() as unpacked:
        _unpack(folder, {protein.file for protein in proteins}, Path(unpacked))
        for name in names:
            scored = list(_scored(name, proteins, Path(unpacked)))
            scored_by[name] = scored
            typer.echo(_line(name, scored))
            if fit is not None:
                fitted[name] = _fit(scored, split)
    for name, (best, more) in _PUBLISHED.get(split, {}).items():
        typer.echo(f"| {name} | | | {best:.3f} | {more:.3f} | – | – | – | – | – |")
    _print_differences(scored_by)
    if fit is not None:
        _write_fit(fit, fitted)


def _check_fit(fit: Path, folder: Path, names: Sequence[str]) -> None:
    """Raise if the file of --fit cannot be written, or a program has no probability that could be fitted."""
    from protgraph_plugins.pockets.rivals import RIVALS

    check_output(fit, option="--fit", inputs=[folder], overwrite=True, suffixes=[".json"])
    for name in names:
        if name in RIVALS:
            raise OptionError(f"bench pockets: --fit is for models of protgraph. Leave out --model {name}.")


def _write_fit(fit: Path, fitted: Mapping[str, Mapping[str, object]]) -> None:
    """Write the coefficients beside those of other models in the file."""
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


def _finder(name: str) -> Callable[[Path], _PocketsOfProtein]:
    """Return the function from a file to its pockets, of a rival or of a model of residues."""
    from protgraph_plugins.pockets.find import PocketFinder
    from protgraph_plugins.pockets.rivals import RIVALS

    if name in RIVALS:
        return lambda path: _pockets_of_rival(name, path)
    finder = PocketFinder(name)
    return lambda path: _pockets_of_model(finder, path)


def _pockets_of_rival(name: str, path: Path) -> _PocketsOfProtein:
    from protgraph_plugins.pockets.rivals import RIVALS

    from protgraph.structure.io import read_residues

    residues = read_residues(path)
    return _PocketsOfProtein(residues, RIVALS[name](residues))


def _pockets_of_model(finder: PocketFinder, path: Path) -> _PocketsOfProtein:
    import numpy as np
    from protgraph_plugins.pockets.metrics import voxels_of_spheres
    from protgraph_plugins.pockets.pockets import pocket_features
    from protgraph_plugins.pockets.rivals import RankedPockets

    residues, probability_of_residue, pockets = finder(path)
    is_lining = np.zeros((len(pockets), len(residues)), bool)
    for row, pocket in enumerate(pockets):
        is_lining[row, pocket.residues] = True
    probability = np.array([pocket.probability for pocket in pockets])
    score = np.array([pocket.score for pocket in pockets])
    ranked = RankedPockets(
        np.array([pocket.center for pocket in pockets]).reshape(-1, 3),
        is_lining,
        score if np.isnan(probability).any() else probability,
        probability,
        [voxels_of_spheres(pocket.sphere_center, pocket.sphere_radius) for pocket in pockets],
    )
    return _PocketsOfProtein(residues, ranked, pocket_features(pockets, probability_of_residue))


def _scored(name: str, proteins: list[_Protein], folder: Path) -> Iterator[_Scored]:
    """Yield the pockets of each protein with what they find."""
    import numpy as np
    from protgraph_plugins.pockets.metrics import ATOM_RADIUS, CUTOFF, dca, dcc, dvo, jaccard, voxels_of_spheres

    find = _finder(name)
    with progress_bar() as bar:
        for protein in bar.track(proteins, description=name):
            residues, ranked, features = find(folder / protein.file)
            to_atom = dca(ranked.centers, protein.ligands)
            keys = zip(residues.chain.tolist(), residues.res_id.tolist(), residues.ins_code.tolist(), strict=True)
            is_labeled = np.array([key in protein.labeled for key in keys])
            volume_overlap = np.full(to_atom.shape, np.nan)
            if len(ranked.voxels) == len(to_atom):
                radii = [np.full(len(ligand), ATOM_RADIUS) for ligand in protein.ligands]
                volumes = [
                    voxels_of_spheres(*ligand, around=0.0) for ligand in zip(protein.ligands, radii, strict=True)
                ]
                volume_overlap = dvo(ranked.voxels, volumes)
            labeled_part = (ranked.residues & is_labeled).sum(1) / np.maximum(ranked.residues.sum(1), 1)
            yield _Scored(
                protein.cluster,
                to_atom,
                dcc(ranked.centers, protein.ligands),
                jaccard(ranked.residues, _sites(residues, protein.ligands)),
                volume_overlap,
                ranked.scores,
                ranked.probability,
                (to_atom <= CUTOFF).any(1) | (labeled_part >= _LINING),
                features,
            )


def _sites(residues: Residues, ligands: list[np.ndarray]) -> np.ndarray:
    """Return the residues ``(L, N)`` with a heavy atom at each ligand."""
    import numpy as np
    from scipy.spatial import cKDTree

    sites = np.zeros((len(ligands), len(residues)), bool)
    for row, ligand in enumerate(ligands):
        distance, _ = cKDTree(ligand).query(residues.atom_pos)
        sites[row, residues.atom_residue[distance <= _CONTACT]] = True
    return sites


def _line(name: str, scored: list[_Scored]) -> str:
    """Return the row of a program, with intervals over clusters."""
    import numpy as np
    from protgraph_plugins.pockets.metrics import found_by_top_n, recall_of_ranking

    values: list[np.ndarray] = []  # (L, 5) of each protein
    for protein in scored:
        count = protein.to_atom.shape[1]
        best_overlap = protein.overlap[: count + 2].max(axis=0, initial=0)
        best_volume = protein.volume_overlap[: count + 2].max(axis=0, initial=0)
        columns = [
            found_by_top_n(protein.to_atom),
            found_by_top_n(protein.to_atom, extra=2),
            found_by_top_n(protein.to_center),
            best_overlap,
            best_volume,
        ]
        values.append(np.column_stack(columns).astype(float))
    mean, low, high = _mean_and_interval(values, [protein.cluster for protein in scored])
    cells = [f"{mean[k]:.3f} [{low[k]:.3f}, {high[k]:.3f}]" for k in range(len(mean))]
    if np.isnan(mean[-1]):
        cells[-1] = "–"

    ranking = recall_of_ranking([protein.score for protein in scored], [protein.to_atom for protein in scored])
    allowed = ranking.false_positives <= len(scored)
    recall = ranking.recall[allowed].max(initial=0)
    ligands = sum(len(rows) for rows in values)
    error, error_of_clusters = _calibration_errors(scored)
    cells += [f"{recall:.3f}", "–" if np.isnan(error) else f"{error:.3f} ({error_of_clusters:.3f})"]
    return f"| {name} | {len(scored)} | {ligands} | {' | '.join(cells)} |"


def _print_differences(scored_by: Mapping[str, list[_Scored]]) -> None:
    """Print the table of differences between ligand_site and the others, if both are among the rows."""
    from protgraph_plugins.pockets.find import DEFAULT_MODEL

    if len(scored_by) < 2 or DEFAULT_MODEL not in scored_by:
        return
    typer.echo(f"\n{_PAIRS_HEAD}")
    for name, scored in scored_by.items():
        if name != DEFAULT_MODEL:
            typer.echo(_difference(name, scored_by[DEFAULT_MODEL], scored))


def _difference(name: str, ours: list[_Scored], theirs: list[_Scored]) -> str:
    """Return the row of the difference in DCA top-n between ligand_site and another, with its interval over clusters.

    Both have the same proteins in the same order, and the resampled clusters are the same for both.
    """
    from protgraph_plugins.pockets.find import DEFAULT_MODEL
    from protgraph_plugins.pockets.metrics import found_by_top_n

    values = []
    for protein, other in zip(ours, theirs, strict=True):
        difference = found_by_top_n(protein.to_atom).astype(float) - found_by_top_n(other.to_atom)
        values.append(difference[:, None])
    clusters = [protein.cluster for protein in ours]
    mean, low, high = _mean_and_interval(values, clusters)
    interval = f"{mean[0]:+.3f} [{low[0]:+.3f}, {high[0]:+.3f}]"
    return f"| {DEFAULT_MODEL} − {name} | {len(ours)} | {len(set(clusters))} | {interval} |"


def _mean_and_interval(values: list[np.ndarray], clusters: list[str]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the mean over ligands ``(K,)``, and the ends of its 95 % interval, from resampled clusters."""
    import numpy as np

    from protgraph.evaluation import draw_copies

    total = np.stack([rows.sum(0) for rows in values])  # (P, K)
    count = np.array([len(rows) for rows in values])
    _, number = np.unique(clusters, return_inverse=True)
    copies = draw_copies(number.tolist())  # (resamples, P)
    resampled = (copies @ total) / (copies @ count)[:, None]
    low, high = np.percentile(resampled, [2.5, 97.5], axis=0)
    return total.sum(0) / count.sum(), low, high


def _calibration_errors(scored: list[_Scored]) -> tuple[float, float]:
    """Return the expected calibration error over ten bins of equal width; NaN without probabilities.

    First of all pockets, then with one vote for each cluster of proteins.
    """
    import numpy as np

    from protgraph.evaluation import cluster_weights

    probability = np.concatenate([protein.probability for protein in scored])
    is_bound = np.concatenate([protein.is_bound for protein in scored])
    if len(probability) == 0 or np.isnan(probability).any():
        return np.nan, np.nan
    bin_of_pocket = np.minimum((probability * 10).astype(int), 9)
    _, cluster = np.unique([protein.cluster for protein in scored], return_inverse=True)
    pockets = [len(protein.probability) for protein in scored]
    errors = []
    for weight_of_protein in (np.ones(len(scored)), cluster_weights(cluster.tolist())):
        weight = np.repeat(weight_of_protein, pockets)
        gaps = np.abs(np.bincount(bin_of_pocket, weight * (probability - is_bound), 10))
        errors.append(float(gaps.sum() / weight.sum()))
    return errors[0], errors[1]


def _fit(scored: list[_Scored], split: str) -> dict[str, object]:
    """Fit the logistic function of a pocket's features; the card states the data."""
    import numpy as np
    from scipy.optimize import minimize

    features = np.concatenate([protein.features for protein in scored if protein.features is not None])
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
