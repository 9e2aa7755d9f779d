"""Files that run code, lead out of a folder, unpack to too much or have a changed byte are refused and named."""

from __future__ import annotations

import resource
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from protgraph.checkpoint import load_checkpoint
from protgraph.data.store import GraphStore
from protgraph.errors import CheckpointError, DatasetError, OptionError, ProtgraphError, StructureFileError
from protgraph.file_io import gunzip, unpack_tar
from protgraph.inference import Embeddings
from protgraph.model import ModelSpec
from protgraph.structure import load_structure
from protgraph.train.run_folder import StateFileIO
from tests.attacks.exploits import EXPLOITS, Payload, write_bomb, write_traversal

FORMATS = Path(__file__).resolve().parents[1] / "formats"


@pytest.fixture
def marker(tmp_path) -> Path:
    return tmp_path / "marker"


# --- pickle ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EXPLOITS)
def test_each_exploit_works_with_the_usual_loader(name, tmp_path, marker):
    load = EXPLOITS[name](tmp_path / name, Payload(marker))
    load()
    assert marker.read_text() == "code of the file has run"


READERS = {
    "checkpoint": load_checkpoint,
    "embeddings": Embeddings.read,
    "structure": load_structure,
    "training state": lambda path: StateFileIO().load_checkpoint(path, weights_only=True),
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("name", EXPLOITS)
def test_each_exploit_is_refused(name, reader, tmp_path, marker):
    EXPLOITS[name](tmp_path / name, Payload(marker))
    with pytest.raises(ProtgraphError):
        READERS[reader](tmp_path / name)
    assert not marker.exists()


@pytest.mark.parametrize("name", EXPLOITS)
def test_an_exploit_in_place_of_a_shard_is_refused(name, tmp_path, marker):
    store = Path(shutil.copytree(FORMATS / "store" / "version_3", tmp_path / "store"))
    (shard,) = (store / "shards").iterdir()
    exploit = tmp_path / name
    EXPLOITS[name](exploit, Payload(marker))
    shutil.copyfile(exploit, shard)
    with pytest.raises(DatasetError, match=shard.name):
        GraphStore(store)
    assert not marker.exists()


@pytest.mark.slow
@pytest.mark.parametrize("command", ["predict {} {}", "embed {} {} -o out.npz", "verify {}", "train gcn --data {}"])
def test_commands_refuse_an_exploit(command, tmp_path, marker, run, structures_dir):
    exploit = tmp_path / "renamed.safetensors"
    EXPLOITS[exploit.name](exploit, Payload(marker))
    result = run(*command.format(exploit, structures_dir / "1crn.bcif").split())
    assert result.code == 2 and "renamed.safetensors" in result.err
    assert not marker.exists()


# --- files that fuzzing found ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [0, 3, 100, 2000, -1])
def test_cut_embeddings_are_an_error_of_the_file(length, tmp_path):
    content = (FORMATS / "embeddings" / "version_1.npz").read_bytes()
    (tmp_path / "cut.npz").write_bytes(content[:length])
    with pytest.raises(DatasetError, match="cut.npz"):
        Embeddings.read(tmp_path / "cut.npz")


def test_deeply_nested_toml_is_an_error_of_the_file(tmp_path):
    (tmp_path / "deep.toml").write_text("name = " + "[" * 5000)
    with pytest.raises(OptionError, match="deep.toml"):
        ModelSpec.from_toml(tmp_path / "deep.toml")


# --- archives --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "link"),
    [("../outside.txt", ""), ("/tmp/outside.txt", ""), ("a/../../outside.txt", ""), ("link", ".."), ("link", "/tmp")],
)
def test_an_archive_writes_nothing_outside_of_its_folder(name, link, tmp_path):
    archive, folder = tmp_path / "a.tar.gz", tmp_path / "deep" / "folder"
    folder.mkdir(parents=True)
    write_traversal(archive, name, link=link)
    with pytest.raises(tarfile.TarError):
        unpack_tar(archive, folder)
    assert sorted(path.name for path in tmp_path.rglob("*.txt")) == []
    assert not Path("/tmp/inside.txt").exists()


def test_a_file_larger_than_the_disk_is_refused_before_it_is_written(tmp_path, monkeypatch):
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        member = tarfile.TarInfo("big")
        member.size = 1000
        archive.addfile(member, open("/dev/zero", "rb"))  # noqa: SIM115 -- closed with the process
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(10, 10, 999))
    with pytest.raises(tarfile.TarError, match="'big' has 1000 bytes"):
        unpack_tar(tmp_path / "a.tar", tmp_path / "out")


def test_gunzip_stops_at_the_limit(tmp_path):
    write_bomb(tmp_path / "bomb.gz", 2**25)
    content = (tmp_path / "bomb.gz").read_bytes()
    assert len(content) < 2**16
    assert len(gunzip(content, limit=2**25)) == 2**25
    with pytest.raises(OverflowError, match="unpacks to more than"):
        gunzip(content, limit=2**25 - 1)


def test_members_of_a_gzip_file_are_joined():
    import gzip

    assert gunzip(gzip.compress(b"one ") + gzip.compress(b"two")) == b"one two"


@pytest.mark.slow
def test_a_bomb_needs_less_than_two_gigabytes(tmp_path):
    write_bomb(tmp_path / "bomb.pdb.gz", 2**33)
    code = (
        "import resource, sys\n"
        "from protgraph.errors import StructureFileError\n"
        "from protgraph.structure import load_structure\n"
        "try:\n    load_structure(sys.argv[1])\n"
        "except StructureFileError as e:\n    assert 'unpacks to more than' in str(e), e\n"
        "else:\n    sys.exit('not refused')\n"
    )
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "bomb.pdb.gz")], check=True)
    assert max(before, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss) < 2 * 2**20  # KiB


def test_a_bomb_is_an_error_of_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr(gunzip, "__kwdefaults__", {"limit": 2**20})
    write_bomb(tmp_path / "bomb.pdb.gz", 2**21)
    with pytest.raises(StructureFileError, match=r"bomb.pdb.gz: .* more than 1048576 bytes"):
        load_structure(tmp_path / "bomb.pdb.gz")


# --- changed bytes ---------------------------------------------------------------------------------------------------


def flipped(content: bytes, number: int) -> bytes:
    """Return the bytes with one bit of one byte changed."""
    changed = bytearray(content)
    changed[number] ^= 1 << number % 8
    return bytes(changed)


def check_every(content: bytes, step: int, path: Path, read, error) -> None:
    """Change one byte at a time, and check that reading raises an error that names the file."""
    missed = []
    for number in range(0, len(content), step):
        path.write_bytes(flipped(content, number))
        try:
            read()
        except error as e:
            assert path.name in str(e), str(e)
        else:
            missed.append(number)
    assert missed == []


@pytest.mark.parametrize("step", [37, pytest.param(1, marks=pytest.mark.slow)])
def test_a_changed_byte_of_a_checkpoint_is_found(step, tmp_path):
    content = (FORMATS / "checkpoint" / "version_3.safetensors").read_bytes()
    path = tmp_path / "model.safetensors"
    check_every(content, step, path, lambda: load_checkpoint(path, check_code=False), CheckpointError)


@pytest.mark.parametrize("step", [37, pytest.param(1, marks=pytest.mark.slow)])
def test_a_changed_byte_of_a_shard_is_found(step, tmp_path):
    store = Path(shutil.copytree(FORMATS / "store" / "version_3", tmp_path / "store"))
    (shard,) = (store / "shards").iterdir()
    opened = GraphStore(store)
    check_every(shard.read_bytes(), step, shard, opened.verify, DatasetError)


@pytest.mark.parametrize("step", [37, pytest.param(1, marks=pytest.mark.slow)])
def test_a_changed_byte_of_the_description_of_a_store_is_found(step, tmp_path):
    store = Path(shutil.copytree(FORMATS / "store" / "version_3", tmp_path / "store"))
    GraphStore(store).description.write(store)  # that of today has a checksum
    path = store / "store.json"
    check_every(path.read_bytes(), step, path, lambda: GraphStore(store), DatasetError)
