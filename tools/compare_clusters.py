"""Compare clusters of homologs: python tools/compare_clusters.py CHAINS.tsv.

CHAINS.tsv has the columns name and sequence, and optionally cluster, whose clusters are compared too where they are
given. The built-in exhaustive alignments are compared with MMseqs2: its pairs (easy-search), and its own clusters
(easy-cluster, greedy and connected components).
"""

from __future__ import annotations

import argparse
import csv
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from protgraph.similarity import HomologyRule, cluster_homologs, compare_clusters, find_homologs
from protgraph.similarity.mmseqs_search import find_mmseqs, mmseqs_version

__all__ = ["main"]


def main(arguments: Sequence[str]) -> int:
    """Print the comparisons; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("chains", type=Path)
    parser.add_argument("--identity", type=float, default=0.3)
    parser.add_argument("--coverage", type=float, default=0.8)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--cache", type=Path)
    options = parser.parse_args(arguments)
    with options.chains.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    sequences, rule = [row["sequence"] for row in rows], HomologyRule(options.identity, options.coverage)
    print(f"{len(rows)} chains, {len(set(sequences))} different, {sum(map(len, sequences))} residues; {rule.text}")
    names = [row["name"] for row in rows]
    own = _clusters(names, sequences, rule, None, options)
    others = [("clusters given in the table", [row.get("cluster") or None for row in rows])]
    if program := find_mmseqs():
        print(f"MMseqs2 {mmseqs_version(program)}")
        others.append(("easy-search", _clusters(names, sequences, rule, "mmseqs", options)))
        for mode, text in ((0, "greedy"), (1, "connected components")):
            others.append((f"easy-cluster, {text}", _easy_cluster(program, sequences, rule, mode, options.workers)))
    for text, clusters in others:
        both = [(a, b) for a, b in zip(own, clusters, strict=True) if b is not None]
        if both:
            print(f"built-in (first) and {text} (second):\n{compare_clusters(*zip(*both, strict=True))}")
    return 0


def _clusters(
    names: Sequence[str], sequences: Sequence[str], rule: HomologyRule, engine: str | None, options: argparse.Namespace
) -> list[str]:
    """Return the name of the first chain of each cluster, and print time and memory."""
    start = time.perf_counter()
    engine = engine or "parasail"
    found = find_homologs(sequences, rule, workers=options.workers, engine=engine, cache=options.cache)
    clusters = cluster_homologs(found)
    first = np.unique(clusters, return_index=True)[1]
    memory = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    seconds = time.perf_counter() - start
    print(f"{engine}: {len(found)} homologs of {found.aligned} pairs in {seconds:.0f} s, at most {memory // 1024} MiB")
    return [names[first[cluster]] for cluster in clusters.tolist()]


def _easy_cluster(program: Path, sequences: Sequence[str], rule: HomologyRule, mode: int, threads: int) -> list[str]:
    """Return the representative of each sequence by ``mmseqs easy-cluster``."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        fasta = folder / "chains.fasta"
        fasta.write_text("".join(f">{i}\n{s}\n" for i, s in enumerate(sequences)))
        command = [program, "easy-cluster", fasta, folder / "out", folder / "work", "-s", "7.5", "-v", "1"]
        command += ["--min-seq-id", rule.identity, "-c", rule.coverage, "--cov-mode", "0", "--threads", threads]
        subprocess.run([str(part) for part in [*command, "--cluster-mode", mode]], check=True)
        lines = (folder / "out_cluster.tsv").read_text().splitlines()
    of = {int(member): representative for representative, member in (line.split("\t") for line in lines)}
    return [of[i] for i in range(len(sequences))]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
