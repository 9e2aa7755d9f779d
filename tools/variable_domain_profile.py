"""Write the profile of antibody variable domains: residue types at each Martin position of training antibodies.

    python tools/variable_domain_profile.py LABELS.tsv.gz

The table of labels is that of the dataset ``paratope``; only rows with split "train" are counted.
"""

from __future__ import annotations

import csv
import gzip
import sys
from collections import Counter, defaultdict
from pathlib import Path

from biotite.structure.info import one_letter_code

__all__ = ["write_profile"]

OUT = Path(__file__).parents[1] / "plugins" / "paragraph" / "variable_domains.csv"
TYPES = "ACDEFGHIKLMNPQRSTVWY"
RAREST = 0.04  # fraction of domains that have the position


def write_profile(labels: str) -> None:
    """Count the residue types at each position, and write the table."""
    counts, files, order = defaultdict(Counter), defaultdict(set), {}
    with gzip.open(labels, "rt", encoding="utf-8") as lines:
        for row in csv.DictReader(lines, delimiter="\t"):
            if row["split"] != "train":
                continue
            key = row["chain"], int(row["res_id"]), row["ins_code"]
            counts[key][one_letter_code(row["res_name"]) or "X"] += 1
            files[row["chain"]].add(row["file"])
            order.setdefault(key, None)
    with OUT.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["domain", "position", "domains", *TYPES])
        for key in sorted(order):
            chain, number, code = key
            total = len(files[chain])
            if sum(counts[key].values()) >= RAREST * total:
                table.writerow([chain, f"{number}{code}", total, *(counts[key][t] for t in TYPES)])


if __name__ == "__main__":
    write_profile(sys.argv[1])
