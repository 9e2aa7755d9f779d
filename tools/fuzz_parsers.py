"""Change real files at random, and read them with each parser: only typed errors, no crash, no hang, at most 2 GiB.

    python tools/fuzz_parsers.py --minutes 10        # each parser
    python tools/fuzz_parsers.py --minutes 1 pdb csv

Each parser runs in a process of its own. A file at which it fails is kept in ``build/fuzz``. The changes are drawn and
shrunk by hypothesis, which the tests use anyway.
"""

from __future__ import annotations

import argparse
import faulthandler
import hashlib
import io
import json
import resource
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import warnings
import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

__all__ = ["PARSERS", "Parser", "changed_files", "check_file"]

ROOT = Path(__file__).resolve().parents[1]
STRUCTURES = ROOT / "datasets" / "pdb_core" / "structures"
FORMATS = ROOT / "tests" / "formats"
KEPT = ROOT / "build" / "fuzz"
LONGEST = 30  # seconds of computation for one file
LARGEST = 2 * 2**20  # KiB of memory
EXAMPLES = 200  # between two looks at the clock


class Parser(NamedTuple):
    """A parser: the files that are changed, the suffix of the changed ones, and what reads them.

    ``allowed``: further errors, which the callers of the function turn into typed ones.
    """

    files: Callable[[], list[bytes]]
    suffix: str
    read: Callable[[Path], object]
    allowed: tuple[type[Exception], ...] = ()


# --- files that are changed ------------------------------------------------------------------------------------------


def _bcif_files() -> list[bytes]:
    return [(STRUCTURES / "1crn.bcif").read_bytes()]


def _pdb_files() -> list[bytes]:
    from biotite.structure.io.pdb import PDBFile

    text, file = io.StringIO(), PDBFile()
    file.set_structure(_atoms())
    file.write(text)
    lines = text.getvalue()
    return [("HEADER    PLANT PROTEIN\nMODEL        1\n" + lines + "ENDMDL\nEND\n").encode(), lines.encode()]


def _cif_files() -> list[bytes]:
    from biotite.structure.io.pdbx import CIFFile, set_structure

    text, file = io.StringIO(), CIFFile()
    set_structure(file, _atoms(), data_block="x")
    file.write(text)
    return [text.getvalue().encode()]


def _atoms() -> Any:
    from protgraph.structure import load_structure

    return load_structure(STRUCTURES / "1crn.bcif").atoms[:60]


def _fasta_files() -> list[bytes]:
    return [b">one\nMKTAYIAKQRQ\nISFVK\n>two description\nGGSA-X*\n", b"; comment\n>a\r\nmktay\r\n"]


def _alignment_files() -> list[bytes]:
    a3m = b">q\nMKTAYIAK\n>h1\nMKa-AYIAK\n>h2\n--TAYIcK-\n"
    stockholm = b"# STOCKHOLM 1.0\n#=GF ID x\nq  MKTAYIAK\nh1 MK.AYIAK\n#=GC RF xxxxxxxx\n//\n"
    clustal = b"CLUSTAL W (1.8)\n\nq   MKTAYIAK 8\nh1  MK-AYIAK 7\n    ** *****\n"
    return [a3m, stockholm, clustal]


def _table_files() -> list[bytes]:
    return [b"file,chain,res_id,ins_code,site\n1crn,A,1,,0\n1crn,A,2,,1\n", b"protein\tvalue\n1crn\t0.5\n1ubq\t-1e3\n"]


def _toml_files() -> list[bytes]:
    texts = [(FORMATS / "model" / "version_1.toml").read_bytes()]
    texts.append((ROOT / "plugins" / "trained" / "secondary_structure" / "recipe.toml").read_bytes())
    texts.append((ROOT / "protgraph" / "bench" / "ts50.toml").read_bytes())
    texts.append((ROOT / "datasets" / "pdb_core" / "dataset.toml").read_bytes())
    return texts


def _checkpoint_files() -> list[bytes]:
    return [(FORMATS / "checkpoint" / f"version_{version}.safetensors").read_bytes() for version in (2, 3)]


def _store_files() -> list[bytes]:
    return [(FORMATS / "store" / "version_3" / "store.json").read_bytes()]


def _shard_files() -> list[bytes]:
    return [path.read_bytes() for path in (FORMATS / "store" / "version_3" / "shards").iterdir()]


def _embedding_files() -> list[bytes]:
    return [(FORMATS / "embeddings" / "version_1.npz").read_bytes()]


def _archive_files() -> list[bytes]:
    files = []
    for mode in ("w", "w:gz"):
        content = io.BytesIO()
        with tarfile.open(fileobj=content, mode=mode) as archive:
            for name, text in (("a/one.txt", b"1" * 600), ("two.txt", b"2")):
                member = tarfile.TarInfo(name)
                member.size = len(text)
                archive.addfile(member, io.BytesIO(text))
        files.append(content.getvalue())
    return files


# --- readers ---------------------------------------------------------------------------------------------------------


def _read_structure(path: Path) -> None:
    from protgraph.structure import clean, load_structure

    clean(load_structure(path))


def _read_fasta(path: Path) -> None:
    from protgraph.structure.io.fasta import load_fasta

    load_fasta(path)


def _read_alignment(path: Path) -> None:
    from protgraph_plugins.alignment.formats import read_alignment

    read_alignment(str(path))


def _read_table(path: Path) -> None:
    from protgraph.data.datasets.label_table import read_label_table

    read_label_table(path)


def _read_toml(path: Path) -> None:
    from protgraph_plugins.recipes.recipe import Recipe

    from protgraph.bench.spec import BenchSpec
    from protgraph.data.datasets.card import load_card
    from protgraph.errors import ProtgraphError
    from protgraph.model import ModelSpec

    for read in (ModelSpec.from_toml, Recipe.from_toml, BenchSpec.from_toml, load_card):
        try:
            read(path)
        except ProtgraphError:
            continue


def _read_checkpoint(path: Path) -> None:
    from protgraph.checkpoint import load_checkpoint

    load_checkpoint(path, check_code=False)


def _read_store(path: Path) -> None:
    from protgraph.data.store import GraphStore

    folder = path.with_suffix(".store")
    shutil.copytree(FORMATS / "store" / "version_3", folder, dirs_exist_ok=True)
    shutil.copyfile(path, folder / "store.json")
    store = GraphStore(folder)
    store.verify()
    _ = store[0], store.residues(0)


def _read_shard(path: Path) -> None:
    from protgraph.data.store import GraphStore

    folder = path.with_suffix(".store")
    shutil.copytree(FORMATS / "store" / "version_3", folder, dirs_exist_ok=True)
    (shard,) = (folder / "shards").iterdir()
    shutil.copyfile(path, shard)
    store = GraphStore(folder)
    store.verify()
    _ = store[0]


def _read_embeddings(path: Path) -> None:
    from protgraph.inference import Embeddings

    Embeddings.read(path)


def _read_archive(path: Path) -> None:
    from protgraph.file_io import unpack_tar

    folder = Path(tempfile.mkdtemp(dir=path.parent))
    try:
        unpack_tar(path, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


_OF_ARCHIVES = (tarfile.TarError, EOFError, OSError, zlib.error)  # see plugins/published/source_folder.py

PARSERS: dict[str, Parser] = {
    "pdb": Parser(_pdb_files, ".pdb", _read_structure),
    "mmcif": Parser(_cif_files, ".cif", _read_structure),
    "bcif": Parser(_bcif_files, ".bcif", _read_structure),
    "fasta": Parser(_fasta_files, ".fasta", _read_fasta),
    "alignment": Parser(_alignment_files, ".a3m", _read_alignment),
    "csv": Parser(_table_files, ".csv", _read_table),
    "toml": Parser(_toml_files, ".toml", _read_toml),
    "checkpoint": Parser(_checkpoint_files, ".safetensors", _read_checkpoint),
    "store": Parser(_store_files, ".json", _read_store),
    "shard": Parser(_shard_files, ".safetensors", _read_shard),
    "embeddings": Parser(_embedding_files, ".npz", _read_embeddings),
    "archive": Parser(_archive_files, ".tar", _read_archive, _OF_ARCHIVES),
}


# --- changes ---------------------------------------------------------------------------------------------------------

#: Values that parsers often handle wrongly: limits of integers, huge lengths, NaN, empty and non-ASCII text.
_TOKENS = (
    b"",
    b"\0",
    b"-1",
    b"nan",
    b"1e999",
    b"99999999999999999999",
    b"\xff\xff\xff\xff",
    b"\x7f\xff\xff\xff\xff\xff\xff\xff",
    b"\xdd\xff\xff\xff\xff",
    "é".encode(),
    b'"',
    b"\n",
    b"\r",
    b"[" * 2000,
)


@st.composite
def changed_files(draw: st.DrawFn, files: tuple[bytes, ...]) -> bytes:
    """Draw a file with one to five changes: a byte, a token, a part that is removed, repeated or moved, or a cut."""
    content = draw(st.sampled_from(files))
    for _ in range(draw(st.integers(1, 5))):
        start = draw(st.integers(0, max(len(content) - 1, 0)))
        stop = min(len(content), start + draw(st.sampled_from((1, 2, 8, 60, 600))))
        span = content[start:stop]
        change = draw(st.sampled_from(("byte", "token", "remove", "repeat", "move", "cut")))
        if change == "byte":
            content = content[:start] + bytes([draw(st.integers(0, 255))]) + content[start + 1 :]
        elif change == "token":
            content = content[:start] + draw(st.sampled_from(_TOKENS)) + content[stop:]
        elif change == "remove":
            content = content[:start] + content[stop:]
        elif change == "repeat":
            content = content[:start] + span * draw(st.integers(2, 40)) + content[stop:]
        elif change == "move":
            target = draw(st.integers(0, len(content)))
            content = content[:target] + span + content[target:]
        else:
            content = content[:start]
    return content


def check_file(parser: Parser, path: Path) -> None:
    """Read a file; raise any error that is not typed, and :class:`TimeoutError` if it takes too long."""
    from protgraph.errors import ProtgraphError

    def stop(number: int, frame: object) -> None:
        raise TimeoutError(f"not read after {LONGEST} s")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, LONGEST)  # time of this process, whatever else the machine does
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            parser.read(path)
    except TimeoutError:
        raise
    except (ProtgraphError, *parser.allowed):
        return
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


@cache
def _files_of(name: str) -> tuple[bytes, ...]:
    return tuple(PARSERS[name].files())


def fuzz(name: str, seconds: float) -> int:
    """Change and read files for some seconds; return their number. A file with a fault is kept and its error raised."""
    parser, number = PARSERS[name], 0
    KEPT.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="fuzz_") as folder:
        path = Path(folder) / f"input{parser.suffix}"
        path.write_bytes(_files_of(name)[0])
        check_file(parser, path)  # imports what the parser needs

        @settings(max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=list(HealthCheck))
        @given(changed_files(_files_of(name)))
        def check(content: bytes) -> None:
            nonlocal number
            number += 1
            path.write_bytes(content)
            shutil.copyfile(path, KEPT / f"{name}.last{parser.suffix}")  # a crash leaves it
            try:
                check_file(parser, path)
            except Exception:
                (KEPT / f"{name}.{hashlib.sha256(content).hexdigest()[:12]}{parser.suffix}").write_bytes(content)
                raise
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            if memory > LARGEST:
                raise MemoryError(f"{memory // 1024} MiB")

        end = time.monotonic() + seconds
        check()
        while time.monotonic() < end:
            check()
    return number


def main(arguments: list[str] | None = None) -> int:
    """Fuzz the named parsers, each in a process of its own; return 1 if one has a fault."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", help=f"of {', '.join(PARSERS)}; default: all")
    parser.add_argument("--minutes", type=float, default=10.0, help="for each parser")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    names = options.names or list(PARSERS)
    if options.child:
        faulthandler.enable()
        count = fuzz(names[0], options.minutes * 60)
        print(json.dumps({"files": count, "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}))
        return 0
    is_sound = True
    for name in names:
        command = [sys.executable, __file__, "--child", "--minutes", str(options.minutes), name]
        finished = subprocess.run(command, capture_output=True, text=True, check=False)
        if finished.returncode:
            is_sound = False
            print(f"{name:12} fault ({finished.returncode}), input in {KEPT}\n{finished.stderr[-3000:]}", flush=True)
            continue
        result = json.loads(finished.stdout.splitlines()[-1])
        print(f"{name:12} {result['files']:8} files, {result['memory'] // 1024} MiB, typed errors only", flush=True)
    return 0 if is_sound else 1


if __name__ == "__main__":
    sys.exit(main())
