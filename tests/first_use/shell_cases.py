"""Odd and wrong command lines, each with the exit code and the data that the answer must contain.

Most wrong inputs concern many commands alike; :data:`FORMS` has a correct call of each command, and the tables below
state what is wrong with one part of it. :data:`SPECIFIC` in ``shell_cases_specific.py`` has the others.
"""

from __future__ import annotations

from tests.first_use.replay import ShellCase, case
from tests.first_use.shell_cases_features import FEATURES, shared_files
from tests.first_use.shell_cases_specific import SPECIFIC

__all__ = ["FORMS", "GROUPS", "shell_cases"]

#: Command → a correct call; ``{file}`` is the structure, ``{out}`` the output without suffix.
FORMS = {
    "predict": "predict {checkpoint} {file} -o {out}.csv {more}",
    "embed": "embed {checkpoint} {file} -o {out}.npz {more}",
    "featurize": "featurize {file} -o {out} {more}",
    "design": "design {file} --model {inverse} -o {out}.fasta {more}",
    "score": "score {file} --model {inverse} -o {out}.csv {more}",
    "view": "view {file} -o {out}.html {more}",
    "attention": "attention gat {file} -o {out} {more}",
    "train": "train gcn --data {data} --task secondary_structure -o {out}.safetensors --epochs 1 -q --log none {more}",
}
#: Option and value → part of the answer, where it is not the value itself.
SAID = {
    ("--omit", "ACDEFGHIKLMNPQRSTVWY"): "all types omitted",
    ("--tied", "A,Q"): "'Q'",
    ("--weights", "notes.txt"): "--weights",
    ("--sequences", "seqs.fasta"): "'one'",
}
_READERS = ("predict", "embed", "featurize", "design", "score", "view", "attention")
_CHECKPOINTS = ("predict", "embed")
_DEVICES = ("predict", "embed", "design", "score", "train")
_SUFFIX = {"predict": ".csv", "embed": ".npz", "design": ".fasta", "score": ".csv", "view": ".html"}


def _call(
    command: str,
    more: str = "",
    *,
    file: str = "1crn.pdb",
    out: str = "new",
    checkpoint: str = "ss.safetensors",
    inverse: str = "inv.safetensors",
    data: str = "A",
) -> str:
    values = {"more": more, "file": file, "out": out, "checkpoint": checkpoint, "inverse": inverse, "data": data}
    return FORMS[command].format(**values).strip()


def _wrong_files() -> list[ShellCase]:
    """Return cases of structure files that cannot be used, for every command that reads structures."""
    files = {
        "nothere.pdb": "nothere.pdb",
        "''": "",
        "text.pdb": "text.pdb",
        "zero.pdb": "zero.pdb",
        "bytes.pdb": "bytes.pdb",
        "bad.cif": "bad.cif",
        "dna.pdb": "dna.pdb",
        "water.pdb": "water.pdb",
        "notes.txt": "notes.txt",
        "empty": "empty",
        "ss.safetensors": "ss.safetensors",
        "pdb:nonsense": "nonsense",
    }
    return [case(_call(c, file=file), 2, part) for c in _READERS for file, part in files.items()]


def _wrong_read_options() -> list[ShellCase]:
    """Return cases of wrong options for reading, for every command that has them."""
    cases = []
    for command in (*_READERS, "train"):
        cases += [
            case(_call(command, "--altloc zzz"), 2, "zzz", "occupancy"),
            case(_call(command, "--model-number 0"), 2, "0"),
            case(_call(command, "--model-number one"), 2, "one"),
            case(_call(command, "--chian A"), 2, "--chian"),
        ]
    for command in _READERS:
        cases += [
            case(_call(command, "--model-number 99"), 2, "99", "1crn.pdb"),
            case(_call(command, "--assembly 99"), 2, "99", "1crn.pdb"),
        ]
    for command in ("predict", "embed", "featurize", "view", "attention"):
        cases.append(case(_call(command, "--chain Q"), 2, "'Q'", "1crn.pdb"))
    for command in ("design", "score"):
        cases.append(case(_call(command, "--chains Q"), 2, "Q"))
    return cases


def _wrong_outputs() -> list[ShellCase]:
    """Return cases of outputs that are inputs, folders, below a file, of another suffix, or exist already."""
    cases = []
    # Without an output, a page has the name of the structure, and designs are printed.
    without_output = {"view": (0, "1crn.html"), "design": (0, "rank"), "predict": (2, "-o FILE")}
    for command, suffix in _SUFFIX.items():
        plain = _call(command).partition(" -o ")[0]
        code, part = without_output.get(command, (2, "--out"))
        cases += [
            case(plain, code, part),
            case(f"{plain} -o A", 2, "A"),
            case(f"{plain} -o notes.txt/new{suffix}", 2, "notes.txt"),
            case(f"{plain} -o 1crn.pdb", 2, "1crn.pdb"),
            case(f"{plain} -o ./1crn.pdb --overwrite", 2, "1crn.pdb"),
            case(f"{plain} -o ''", 2, "--out"),
            case(f"{plain} -o earlier{suffix}", 2, f"earlier{suffix}", "--overwrite"),
            case(f"{plain} -o new.xlsx", 2, "new.xlsx", suffix),
        ]
    cases += [
        case("predict ss.safetensors 1crn.pdb -o ss.safetensors", 2, "ss.safetensors"),
        case("predict ss.safetensors 1crn.pdb -o ss.safetensors --overwrite", 2, "ss.safetensors"),
        case("embed ss.safetensors 1crn.pdb -o ss.safetensors", 2, "ss.safetensors"),
        case("train gcn --data A --labels size.csv -o size.csv", 2, "size.csv"),
        case("train gcn --data A --labels size.csv -o size.csv --overwrite", 2, "size.csv"),
        case("train gcn --data A --task secondary_structure -o earlier.safetensors", 2, "earlier.safetensors"),
        case("train gcn --data A --task secondary_structure -o A", 2, "A"),
        case("train gcn --data A --task secondary_structure -o notes.txt/x.safetensors", 2, "notes.txt"),
        case("featurize 1crn.pdb -o store", 2, "store", "--overwrite"),
        case("featurize 1crn.pdb -o A", 2, "A"),
        case("featurize 1crn.pdb -o A --overwrite", 2, "A"),
        case("featurize 1crn.pdb -o 1crn.pdb", 2, "1crn.pdb"),
        case("featurize 1crn.pdb -o new --manifest 1crn.pdb", 2, "1crn.pdb"),
        case("featurize 1crn.pdb -o new --manifest m.xlsx", 2, "m.xlsx", ".tsv"),
        case("design 1crn.pdb --model inv.safetensors -o new.fasta --save new.txt", 2, "new.txt", ".npz"),
        case("design 1crn.pdb --model inv.safetensors -o new.fasta --save earlier.npz", 2, "earlier.npz"),
        case("view 1crn.pdb --format molviewspec -o v.html", 2, "v.html", ".mvsj"),
        case("view 1crn.pdb -o v.mvsj", 2, "v.mvsj", ".html"),
        case("view 1crn.pdb --format html -o v.pdb", 2, "v.pdb", ".html"),
        case("generate gpt.safetensors -o gpt.safetensors", 2, "gpt.safetensors"),
        case("generate gpt.safetensors -o earlier.fasta", 2, "earlier.fasta", "--overwrite"),
        case("check residual --table earlier.csv", 2, "earlier.csv"),
    ]
    return cases


def _wrong_numbers() -> list[ShellCase]:
    """Return cases of numbers out of range or of another type, and of devices that do not exist."""
    cases = []
    for command in _DEVICES:
        cases += [
            case(_call(command, "--device mps"), 2, "mps", "cpu"),
            case(_call(command, "--device cuda:99"), 2, "cuda:99"),
            case(_call(command, "--device gpu"), 2, "gpu", "cpu"),
        ]
    for command in ("train", "design", "score", "attention"):
        cases += [
            case(_call(command, "--seed -1"), 2, "-1"),
            case(_call(command, "--seed 1.5"), 2, "1.5"),
            case(_call(command, "--seed abc"), 2, "abc"),
        ]
    for command in ("train", "attention"):
        cases.append(case(_call(command, "--seed 99999999999999999999"), 2, "99999999999999999999"))
    for option, value in (
        ("--epochs", "0"), ("--epochs", "-3"), ("--epochs", "2.5"), ("--lr", "0"), ("--lr", "nan"), ("--lr", "-1"),
        ("--lr", "inf"), ("--patience", "0"), ("--batch-residues", "0"), ("--noise", "-1"), ("--noise", "nan"),
        ("--max-time", "0"), ("--max-time", "-5"), ("--devices", "0"), ("--devices", "-2"), ("--workers", "-1"),
        ("--strategy", "zero3"), ("--precision", "float16"), ("--pos-weight", "heavy"), ("--pos-weight", "-1"),
        ("--log", "tensorbord"), ("--callback", "nothere"), ("--callback", "nothere:Nothing"),
        ("--callback", "json:dumps"),
    ):  # fmt: skip
        cases.append(case(_call("train", f"{option} {value}"), 2, value))
    for command, option, value in (
        ("design", "--n", "0"), ("design", "--n", "-1"), ("design", "--temperature", "-1"),
        ("design", "--temperature", "hot"), ("design", "--temperature", "nan"), ("design", "--omit", "Z9"),
        ("design", "--omit", "ACDEFGHIKLMNPQRSTVWY"), ("design", "--bias", "A"), ("design", "--bias", "A=much"),
        ("design", "--fixed", "A:900"), ("design", "--fixed", "Q"), ("design", "--fixed", "A:9-3"),
        ("design", "--tied", "A,Q"), ("design", "--pssm", "nothere.csv"), ("design", "--pssm", "notes.txt"),
        ("design", "--pssm-weight", "2"), ("design", "--noise", "-1"), ("design", "--weights", "notes.txt"),
        ("score", "--orders", "0"), ("score", "--orders", "-1"),
        ("score", "--sequences", "nothere.fasta"), ("score", "--sequences", "notes.txt"),
        ("score", "--sequences", "seqs.fasta"), ("attention", "--separation", "-1"),
    ):  # fmt: skip
        cases.append(case(_call(command, f"{option} {value}"), 2, SAID.get((option, value), value)))
    return cases


def _wrong_checkpoints() -> list[ShellCase]:
    """Return cases of files that are no checkpoint, for every command that reads one."""
    cases = []
    for name in ("nothere", "cut", "short", "foreign", "text", "earlier"):
        file = f"{name}.safetensors"
        cases += [case(_call(c, checkpoint=file), 2, file) for c in _CHECKPOINTS]
        cases += [
            case(_call("design", inverse=file), 2, file),
            case(f"describe {file}", 2, file),
            case(f"generate {file} -o new.fasta", 2, file),
            case(f"view 1crn.pdb -o new.html --prediction {file}", 2, file),
            case(f"attention {file} 1crn.pdb -o new", 2, file),
        ]
    cases += [case(_call(c, checkpoint=x), 2, x) for c in _CHECKPOINTS for x in ("1crn.pdb", "A", "gcn")]
    return cases


#: Group → its cases.
GROUPS = {
    "structure files": _wrong_files(),
    "read options": _wrong_read_options(),
    "outputs": _wrong_outputs(),
    "numbers and devices": _wrong_numbers(),
    "checkpoints": _wrong_checkpoints(),
    **SPECIFIC,
    **FEATURES,
    "real files": shared_files(),
}


def shell_cases() -> list[ShellCase]:
    """Return the cases of all groups."""
    return [c for cases in GROUPS.values() for c in cases]
