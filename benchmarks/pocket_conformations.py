"""Compare ``ligand_site`` on other conformations of labeled proteins with its predictions on their holo structures.

``python -m benchmarks.pocket_conformations DATA`` prints three tables: chains of LIGYSIS, apo/holo pairs, and models of
AlphaFold2. DATA has the folders ``sites/ligand_site``, ``sites/dna_site``, ``benchmark/ligysis_human_chains`` and
``quality``. Labels are those of the dataset ``ligand_site``: residues of the same protein that bind a ligand in any
structure. They are carried over by the alignment of the sequences.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import tarfile
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from biotite.structure import AtomArray
from protgraph_plugins.pockets import pockets_of
from protgraph_plugins.similarity import match_residues

import protgraph as pg
from protgraph.checkpoint import Checkpoint
from protgraph.evaluation import bootstrap_scores, percentile_interval
from protgraph.evaluation.bootstrap import cluster_scores
from protgraph.featurize import ProteinRequest
from protgraph.structure import Residues
from protgraph.task import SplitPredictions

__all__ = ["main"]

PARTS = ("chains", "pairs", "models")
UNSEEN = ("near_test", "test")
HEAD = (
    "| labels of | proteins | clusters | residues | structure | AUPRC | difference | one vote per cluster | difference "
    "|\n"
    "|---|---:|---:|---:|---|---:|---|---:|---|"
)
IDENTITY, COVERAGE = 0.95, 0.8  # of aligned residues, and of the shorter sequence, of the same protein
WORD = 5  # residues; proteins that share few words are not aligned
SHARED_WORDS = 0.5
ALIGNED = 5  # labeled proteins with the most shared words
AUPRC = pg.metrics.get("auprc")

Key = tuple[str, int, str]  # chain, residue number, insertion code


class LabeledProtein(NamedTuple):
    """Structure of the dataset ``ligand_site``."""

    file: str
    split: str
    cluster: str  # at 30 % identity
    same: str  # cluster at 95 % identity
    labels: dict[Key, float]
    words: dict[str, set[str]]  # of each chain


class Compared(NamedTuple):
    """Probabilities of M residues of a protein in several structures, and their labels."""

    name: str
    split: str
    cluster: str
    labels: np.ndarray  # (M,)
    probability: dict[str, np.ndarray]  # structure → (M,)


class Match(NamedTuple):
    """Rows of M aligned residues of two structures."""

    first: np.ndarray
    second: np.ndarray
    identity: float


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="folder with sites/, benchmark/ and quality/")
    parser.add_argument("--model", default="ligand_site", help="trained model with one yes/no label per residue")
    parser.add_argument("--part", choices=PARTS, action="append", help="table; default: all")
    parser.add_argument("--limit", type=int, help="only this many proteins of each table")
    options = parser.parse_args()
    checkpoint = pg.load_checkpoint(options.model)
    proteins = read_labeled(options.data / "sites" / "ligand_site")
    with tempfile.TemporaryDirectory() as unpacked:
        holo = unpack(sorted((options.data / "sites" / "ligand_site").glob("structures_*.tar.xz")), Path(unpacked))
        if "chains" in (options.part or PARTS):
            print_chains(compare_chains(options.data, proteins, holo, checkpoint, options.limit))
        if "pairs" in (options.part or PARTS):
            print_pairs(options.data, proteins, holo, checkpoint, options.limit)
        if "models" in (options.part or PARTS):
            print_models(options.data, proteins, holo, checkpoint, options.limit)


# --- structures, labels and alignments --------------------------------------------------------------------------------


def read_labeled(folder: Path) -> dict[str, LabeledProtein]:
    """Return the proteins of the dataset with their labels, by file."""
    labels: dict[str, dict[Key, float]] = defaultdict(dict)
    names: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for row in read_table(folder / "labels.tsv.gz"):
        names[row["file"]][row["chain"]].append(row["res_name"])
        if row["label"]:
            labels[row["file"]][row["chain"], int(row["res_id"]), row["ins_code"]] = float(row["label"])
    proteins = {}
    for row in read_table(folder / "splits.tsv"):
        file = row["file"]
        words_of_chains = {chain: words(residues) for chain, residues in names[file].items()}
        clusters = row["cluster30"], row["cluster95"]
        proteins[file] = LabeledProtein(file, row["split"], *clusters, labels[file], words_of_chains)
    return proteins


def read_table(path: Path) -> Iterator[dict[str, str]]:
    """Yield the rows of a table with tabs, which may be gzipped."""
    content = path.read_bytes()
    if path.suffix == ".gz":
        content = gzip.decompress(content)
    yield from csv.DictReader(content.decode().splitlines(), delimiter="\t")


def unpack(archives: Sequence[Path], folder: Path) -> Path:
    """Extract archives of structures into one folder, and return it."""
    for archive in archives:
        with tarfile.open(archive) as tar:
            for member in tar:
                if member.isfile():
                    tar.extract(member.replace(name=Path(member.name).name), folder, filter="data")
    return folder


@lru_cache(maxsize=64)
def load(path: Path) -> Residues:
    """Return the residues of a file."""
    return pg.clean(pg.load_structure(path))


def probabilities(checkpoint: Checkpoint, residues: Residues) -> np.ndarray:
    """Return the probability of each residue ``(N,)``; NaN where the model has none."""
    request = ProteinRequest(residues.name, residues.name, read=partial(_same, residues))
    predictions = pg.predict(checkpoint, [request], device="cpu")
    if not predictions.rows:
        raise predictions.failures[0].error
    value_of = {row[1:4]: float(row[-2]) for row in predictions.rows}
    return np.array([value_of.get(key, np.nan) for key in keys(residues)])


def _same(residues: Residues) -> Residues:
    return residues


def keys(residues: Residues) -> list[Key]:
    """Return chain, number and insertion code of each residue."""
    return list(zip(residues.chain.tolist(), residues.res_id.tolist(), residues.ins_code.tolist(), strict=True))


def best_match(chain: Residues, structure: Residues) -> Match | None:
    """Return the alignment of a chain with the chain of a structure that is the same protein; None without one."""
    best: Match | None = None
    for name in structure.chain_names:
        (name_of_chain,) = chain.chain_names
        match = match_residues(chain, structure, chains={name_of_chain: name}, by="sequence")
        shorter = min(len(chain), int((structure.chain == name).sum()))
        identity = match.same_type / max(match.known_types, 1)
        if identity < IDENTITY or len(match.model) < COVERAGE * shorter:
            continue
        if best is None or len(match.model) > len(best.first):
            best = Match(match.model, match.reference, identity)
    return best


class SameProteins:
    """Search of the labeled proteins that are the same as a chain.

    Parameters
    ----------
    proteins : dict of str to LabeledProtein
    folder : Path
        Their structures.
    """

    def __init__(self, proteins: dict[str, LabeledProtein], folder: Path) -> None:
        self.proteins, self.folder = proteins, folder
        self._chains_of_word: dict[str, list[tuple[str, str]]] = defaultdict(list)
        for file, protein in proteins.items():
            for chain, words_of_chain in protein.words.items():
                for word in words_of_chain:
                    self._chains_of_word[word].append((file, chain))

    def find(self, chain: Residues) -> tuple[LabeledProtein, Residues, Match] | None:
        """Return the labeled protein with the most aligned residues, its structure, and the alignment.

        One of the training or validation split comes first, so that no other counts as unseen.
        """
        words_of_chain = words(chain.res_name.tolist())
        shared = Counter(other for word in words_of_chain for other in self._chains_of_word.get(word, ()))
        candidates = []
        for (file, name), number in shared.most_common():
            if number >= SHARED_WORDS * min(len(words_of_chain), len(self.proteins[file].words[name])):
                candidates.append(file)
        best: tuple[LabeledProtein, Residues, Match] | None = None
        for file in list(dict.fromkeys(sorted(candidates, key=self._is_unseen)))[:ALIGNED]:
            if best is not None and self._is_unseen(file) and not self._is_unseen(best[0].file):
                break
            structure = load(self.folder / file)
            match = best_match(chain, structure)
            if match is not None and (best is None or len(match.first) > len(best[2].first)):
                best = self.proteins[file], structure, match
        return best

    def _is_unseen(self, file: str) -> bool:
        return self.proteins[file].split in UNSEEN


def words(names: Sequence[str]) -> set[str]:
    """Return the words of a sequence of residue names."""
    return {" ".join(names[start : start + WORD]) for start in range(len(names) - WORD + 1)}


# --- chains of LIGYSIS ------------------------------------------------------------------------------------------------


def compare_chains(
    data: Path, proteins: dict[str, LabeledProtein], holo: Path, checkpoint: Checkpoint, limit: int | None
) -> list[Compared]:
    """Compare the chains of LIGYSIS with the structure of the same protein in the dataset."""
    sites = data / "sites" / "ligand_site"
    files_of: dict[str, list[str]] = defaultdict(list)
    for protein in proteins.values():
        files_of[protein.same].append(protein.file)
    chosen = [row for row in read_table(sites / "ligysis_splits.tsv") if row["split"] in ("test", "near_test")]
    arrays = data / "benchmark" / "ligysis_human_chains" / "lbs_heavy.npz"
    chains = read_chains(arrays, [row["chain"] for row in chosen])
    compared, unmatched = [], 0
    for row in chosen[:limit]:
        chain = chains[row["chain"]]
        best: tuple[LabeledProtein, Residues, Match] | None = None
        for file in files_of[row["cluster95"]]:
            structure = load(holo / file)
            match = best_match(chain, structure)
            if match is not None and (best is None or len(match.first) > len(best[2].first)):
                best = proteins[file], structure, match
        if best is None:
            unmatched += 1
            continue
        compared.append(compare(row["chain"], chain, *best, checkpoint))
    print(f"{len(compared)} chains of LIGYSIS; {unmatched} without a structure of ≥ {IDENTITY:.0%} identity\n")
    return compared


def compare(
    name: str, chain: Residues, protein: LabeledProtein, structure: Residues, match: Match, checkpoint: Checkpoint
) -> Compared:
    """Return labels and probabilities of the residues of a chain that the holo structure has, too."""
    holo_keys = keys(structure)
    labels = np.array([protein.labels.get(holo_keys[row], np.nan) for row in match.second])
    partner = structure.chains([str(structure.chain[match.second[0]])])
    row_of = {key: row for row, key in enumerate(keys(partner))}
    alone = np.array([row_of[holo_keys[row]] for row in match.second])
    probability = {
        "other": probabilities(checkpoint, chain)[match.first],
        "holo": probabilities(checkpoint, structure)[match.second],
    }
    probability["holo, chain alone"] = probability["holo"]
    if len(structure.chain_names) > 1:
        probability["holo, chain alone"] = probabilities(checkpoint, partner)[alone]
    is_known = ~np.isnan(labels + sum(probability.values()))
    probability = {kind: values[is_known] for kind, values in probability.items()}
    return Compared(name, protein.split, protein.cluster, labels[is_known], probability)


def read_chains(path: Path, names: Sequence[str]) -> dict[str, Residues]:
    """Return chains of the array file of LIGYSIS, "1a52_A" → residues."""
    table = np.load(path)
    first_atom = np.concatenate([[0], np.cumsum(table["n_atoms"], dtype=np.int64)])
    first_residue = np.concatenate([[0], np.cumsum(table["n_res"], dtype=np.int64)])
    arrays = {name: table[name] for name in ("atom", "xyz", "res_code", "res_id", "ins", "atoms_per_res")}
    chains = {}
    number_of = {name: number for number, name in enumerate(table["ids"].tolist())}
    for name in names:
        number = number_of[name]
        atoms = slice(first_atom[number], first_atom[number + 1])
        rows = slice(first_residue[number], first_residue[number + 1])
        sizes = arrays["atoms_per_res"][rows]
        array = AtomArray(atoms.stop - atoms.start)
        array.coord = arrays["xyz"][atoms].astype(np.float32) / 100
        array.atom_name = table["atom_names"][arrays["atom"][atoms]]
        array.element = np.array([atom[0] for atom in array.atom_name])
        array.res_name = np.repeat(table["res_names"][arrays["res_code"][rows]], sizes)
        array.res_id = np.repeat(arrays["res_id"][rows].astype(np.int64), sizes)
        array.ins_code = np.repeat([chr(code).strip() for code in arrays["ins"][rows]], sizes)
        array.chain_id = np.full(len(array), name.rpartition("_")[2])
        chains[name] = pg.clean(pg.from_atom_array(array, name=name))
    return chains


def print_chains(compared: list[Compared]) -> None:
    """Print the AUPRC on chains of LIGYSIS and on holo structures, pooled and with one vote per cluster."""
    print(HEAD)
    for split in ("test", "near_test"):
        rows = [one for one in compared if one.split == split]
        print_scores(split, rows, "other")


def print_scores(title: str, compared: list[Compared], first: str) -> None:
    """Print a line for each structure; differences are of the first one minus this one, on the same samples."""
    if not compared:
        return
    clusters = np.unique([one.cluster for one in compared], return_inverse=True)[1].tolist()
    size = f"{len(compared)} | {len(set(clusters))} | {sum(len(one.labels) for one in compared)}"
    samples = {}
    for kind in compared[0].probability:
        predictions = split_predictions(compared, kind)
        pooled = [float(AUPRC(predictions)), *bootstrap_scores(predictions, AUPRC, clusters=clusters)]
        votes = cluster_scores(predictions, AUPRC, clusters=clusters)
        assert votes is not None  # contract: the metric takes weights
        samples[kind] = np.array(pooled), votes
    for kind, (pooled, votes) in samples.items():
        cells = [f"{pooled[0]:.3f}", "–", f"{votes[0]:.3f}", "–"]
        if kind != first:
            cells[1], cells[3] = difference(samples[first][0], pooled), difference(samples[first][1], votes)
        print(f"| {title} | {size} | {kind} | {' | '.join(cells)} |")


def split_predictions(compared: list[Compared], kind: str) -> SplitPredictions:
    """Return the predictions of one structure of each protein."""
    probability = np.concatenate([one.probability[kind] for one in compared]).clip(1e-7, 1 - 1e-7)
    labels = np.concatenate([one.labels for one in compared])
    number = np.repeat(np.arange(len(compared)), [len(one.labels) for one in compared])
    return SplitPredictions(
        torch.from_numpy(probability).logit()[:, None],
        torch.from_numpy(labels)[:, None].float(),
        protein=torch.from_numpy(number),
    )


def difference(first: np.ndarray, second: np.ndarray) -> str:
    """Return "−0.012 [−0.030, 0.008]": a difference with its interval over resampled clusters."""
    delta = first - second
    interval = percentile_interval(delta[1:])
    return f"{delta[0]:+.3f} [{interval.low:+.3f}, {interval.high:+.3f}]"


# --- apo/holo pairs ---------------------------------------------------------------------------------------------------


def print_pairs(
    data: Path, proteins: dict[str, LabeledProtein], holo: Path, checkpoint: Checkpoint, limit: int | None
) -> None:
    """Print the agreement of predictions between apo and holo chains, and their AUPRC where labels exist."""
    pairs = [row for row in read_table(data / "quality" / "pairs.tsv.gz") if row["kind"] == "apo_holo"][:limit]
    search = SameProteins(proteins, holo)
    correlation, overlap, moved, compared = [], [], [], []
    with tempfile.TemporaryDirectory() as folder:
        natives = unpack([data / "quality" / "natives.tar.xz"], Path(folder))
        for row in pairs:
            apo, bound = load(natives / row["file_1"]), load(natives / row["file_2"])
            match = match_residues(apo, bound, chains={apo.chain_names[0]: bound.chain_names[0]}, by="sequence")
            p_apo, p_bound = probabilities(checkpoint, apo), probabilities(checkpoint, bound)
            correlation.append(np.corrcoef(p_apo[match.model], p_bound[match.reference])[0, 1])
            overlap.append(pocket_overlap(apo, bound, p_apo, p_bound, match.model, match.reference))
            moved.append(float(row["ca_rmsd"]))
            labeled = search.find(bound)
            if labeled is not None:
                compared.append(compare_pair(row["file_1"], apo, bound, p_apo, p_bound, labeled))
    print(f"\n{len(pairs)} apo/holo pairs, CA RMSD {np.median(moved):.2f} Å (median)\n")
    print("Medians [quartiles]: Pearson r of the probabilities, Jaccard index of the residues of the best pockets\n")
    print("| pairs | number | Pearson r | overlap of the best pocket |\n|---|---:|---|---|")
    far = np.array(moved) > 2.0
    for title, chosen in (("all", far | ~far), ("CA RMSD ≤ 2 Å", ~far), ("CA RMSD > 2 Å", far)):
        cells = [quartiles(np.array(values)[chosen]) for values in (correlation, overlap)]
        print(f"| {title} | {chosen.sum()} | {' | '.join(cells)} |")
    print(f"\n{HEAD}")
    print_scores("near_test and test", [one for one in compared if one.split in UNSEEN], "apo")
    print_scores("train and val", [one for one in compared if one.split not in UNSEEN], "apo")


def pocket_overlap(
    apo: Residues,
    bound: Residues,
    p_apo: np.ndarray,
    p_bound: np.ndarray,
    rows_apo: np.ndarray,
    rows_bound: np.ndarray,
) -> float:
    """Return the Jaccard index of the residues of the best pockets, of those that both chains have; 0 without one."""
    best = []
    for residues, probability, rows in ((apo, p_apo, rows_apo), (bound, p_bound, rows_bound)):
        pockets = pockets_of(residues, np.nan_to_num(probability), model="ligand_site")
        lining = pockets[0].residues if pockets else np.zeros(0, np.int64)
        best.append(np.isin(rows, lining))
    union = (best[0] | best[1]).sum()
    return float((best[0] & best[1]).sum() / union) if union else 0.0


def compare_pair(
    name: str,
    apo: Residues,
    bound: Residues,
    p_apo: np.ndarray,
    p_bound: np.ndarray,
    labeled: tuple[LabeledProtein, Residues, Match],
) -> Compared:
    """Return labels and probabilities of the residues that the pair and a labeled structure have."""
    protein, structure, to_label = labeled
    label_of_bound = np.full(len(bound), np.nan)
    holo_keys = keys(structure)
    label_of_bound[to_label.first] = [protein.labels.get(holo_keys[row], np.nan) for row in to_label.second]
    match = match_residues(apo, bound, chains={apo.chain_names[0]: bound.chain_names[0]}, by="sequence")
    labels = label_of_bound[match.reference]
    probability = {"apo": p_apo[match.model], "holo": p_bound[match.reference]}
    is_known = ~np.isnan(labels + probability["apo"] + probability["holo"])
    probability = {kind: values[is_known] for kind, values in probability.items()}
    return Compared(name, protein.split, protein.cluster, labels[is_known], probability)


def quartiles(values: np.ndarray) -> str:
    """Return "0.95 [0.90, 0.98]": median and quartiles."""
    low, middle, high = np.nanquantile(values, [0.25, 0.5, 0.75])
    return f"{middle:.2f} [{low:.2f}, {high:.2f}]"


# --- AlphaFold2 models ------------------------------------------------------------------------------------------------


def print_models(
    data: Path, proteins: dict[str, LabeledProtein], holo: Path, checkpoint: Checkpoint, limit: int | None
) -> None:
    """Print the AUPRC on AlphaFold2 models of labeled proteins, beside the holo structures."""
    search = SameProteins(proteins, holo)
    compared, splits, with_plddt = list[Compared](), list[str](), 0
    with tempfile.TemporaryDirectory() as folder:
        archive = data / "sites" / "dna_site" / "structures.tar.xz"
        paths = sorted(unpack([archive], Path(folder)).glob("*.bcif"))[:limit]
        for path in paths:
            model = load(path)
            labeled = search.find(model)
            if labeled is None:
                continue
            splits.append(labeled[0].split)
            with_plddt += bool(model.b_factor.any())
            if labeled[0].split in UNSEEN:
                compared.append(compare(path.name, model, *labeled, checkpoint))
    counts = ", ".join(f"{number} {split}" for split, number in sorted(Counter(splits).items()))
    print(f"\n{len(paths)} AlphaFold2 models of dna_site; {len(splits)} of a labeled protein ({counts})")
    print(f"{with_plddt} of these files have pLDDT\n")
    print(HEAD)
    print_scores("near_test and test", compared, "other")


if __name__ == "__main__":
    main()
