"""Odd command lines of search, cross-validation, single files with components, and real files of every kind."""

from __future__ import annotations

import os
from pathlib import Path

from tests.first_use.replay import ANY_CODE, ShellCase, case

__all__ = ["FEATURES", "shared_files"]

_FIT = "--epochs 1 -q --log none --device cpu"

_SEARCH = [
    case("search", 2, "query"),
    case("search 1crn.pdb", 2, "--in"),
    case("search 1crn.pdb --in nothere.npz", 2, "nothere.npz"),
    case("search 1crn.pdb --in ''", 2, "--in"),
    case("search 1crn.pdb --in earlier.npz", 2, "earlier.npz"),
    case("search 1crn.pdb --in 1crn.pdb", 2, "1crn.pdb"),
    case("search nothere.pdb --in vectors.npz", 2, "nothere.pdb"),
    case("search '' --in vectors.npz", 2, "query"),
    case("search text.pdb --in vectors.npz", 2, "text.pdb"),
    case("search 1crn.pdb --in vectors.npz --model inv.safetensors", 2, "inverse_folding"),
    case("search 1crn.pdb --in vectors.npz --model nothere.safetensors", 2, "nothere.safetensors"),
    case("search 1crn.pdb --in vectors.npz --level proteins", 2, "'protein'"),
    case("search 1crn.pdb --in vectors.npz -k 0", 2, "0"),
    case("search 1crn.pdb --in vectors.npz -k -2", 2, "-2"),
    case("search 1crn.pdb --in vectors.npz -k many", 2, "'many'"),
    case("search 1crn.pdb --in vectors.npz --level residue --residue A:999", 2, "A:999"),
    case("search 1crn.pdb --in vectors.npz -o new.xlsx", 2, "new.xlsx", ".csv"),
    case("search 1crn.pdb --in vectors.npz -o vectors.npz", 2, "vectors.npz"),
    case("search 1crn.pdb --in vectors.npz -o earlier.csv", 2, "earlier.csv", "--overwrite"),
    case("search 1crn.pdb --in vectors.npz --device mps", 2, "mps"),
    case("search 1crn.pdb --in vectors.npz -k 3", 0, "1crn"),
    case("search 1crn.pdb --in vectors.npz -k 3 -o new.csv", 0, "new.csv"),
]

_CROSS_VALIDATION = [
    case(f"train gcn --data A --labels yes.csv --cv 0 -o new.csv {_FIT}", 2, "0"),
    case(f"train gcn --data A --labels yes.csv --cv 1 -o new.csv {_FIT}", 2, "1"),
    case(f"train gcn --data A --labels yes.csv --cv -3 -o new.csv {_FIT}", 2, "-3"),
    case(f"train gcn --data A --labels yes.csv --cv 99 -o new.csv {_FIT}", 2, "99"),
    case(f"train gcn --data A --labels yes.csv --cv five -o new.csv {_FIT}", 2, "'five'"),
    case(f"train gcn --data A --labels yes.csv --cv leave-one-group -o new.csv {_FIT}", 2, "leave-one-group-out"),
    case(f"train gcn --data A --labels yes.csv --cv 3 -o yes.csv {_FIT}", 2, "yes.csv"),
    case(f"train gcn --data A --labels yes.csv --cv 3 -o earlier.csv {_FIT}", 2, "earlier.csv", "--overwrite"),
    case(f"train gcn --data A --labels yes.csv --cv 3 -o new.safetensors {_FIT}", 2, "new.safetensors", ".csv"),
]

_IMPORT = [
    case("list layers --import nothere.py", 2, "nothere.py"),
    case("list layers --import ''", 2, "--import"),
    case("list layers --import notes.txt", 2, "notes.txt"),
    case("list layers --import A", 2, "A"),
    case("list layers --import no_such_module_anywhere", 2, "no_such_module_anywhere"),
    case("list layers --import raises.py", 2, "raises.py:2", "own bug"),
    case("list layers --import syntax.py", 2, "syntax.py"),
    case("list layers --import exits.py", 2, "exits.py"),
    case("list layers --import my_layer.py", 0, "my_layer"),
    case("info my_layr --import my_layer.py", 2, "'my_layer'"),
]

#: Group → its cases.
FEATURES = {"search": _SEARCH, "train --cv": _CROSS_VALIDATION, "--import": _IMPORT}


def shared_files(folder: Path | None = None) -> list[ShellCase]:
    """Return commands on the larger real files, where they are; any exit code is right, a fault is not.

    Parameters
    ----------
    folder : Path, optional
        Default: the environment variable ``PROTGRAPH_SHARED_DATA``, or ``shared/data`` beside the repository.
    """
    beside = Path(__file__).resolve().parents[3] / "shared" / "data"
    folder = folder or Path(os.environ.get("PROTGRAPH_SHARED_DATA", beside))
    files = sorted((folder / "robustness").iterdir()) if (folder / "robustness").is_dir() else []
    cases = []
    for file in files:
        if file.name != "MANIFEST.tsv" and file.stat().st_size < 2**20:
            cases.append(case(f"predict ss.safetensors '{file}' -o new.csv --structure new.cif", ANY_CODE))
            cases.append(case(f"view '{file}' --color b_factor -o new.html", ANY_CODE))
    return cases
