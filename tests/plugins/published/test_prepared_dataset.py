"""Prepared datasets: same bytes twice and after a kill, nothing of the answer in the input, counts of the card."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from biotite.structure import AtomArray
from protgraph_plugins.published.preparation import check_counts, damaged_files, prepare_dataset
from protgraph_plugins.published.source_download import download_source
from protgraph_plugins.published.source_folder import hold_out_clusters

import protgraph as pg
from protgraph.errors import DatasetError, FetchError, OfflineError
from protgraph.structure import load_structure
from tests.plugins.published.tiny_site import ENTRIES, tiny_dataset, write_card, write_source

HERE = Path(__file__).resolve()


@pytest.fixture(scope="module")
def structures() -> Path:
    return Path(__file__).resolve().parents[3] / "datasets" / "pdb_core" / "structures"


@pytest.fixture(scope="module")
def tiny(structures, tmp_path_factory) -> tuple[Path, Path, dict]:
    """Return the source folder, the card and the counts."""
    root = tmp_path_factory.mktemp("tiny")
    counts = write_source(root / "source", structures)
    return root / "source", write_card(root / "card.toml", counts), counts


def content(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def atoms_of(path: Path) -> AtomArray:
    return load_structure(path).atoms


def test_prepared_twice_is_the_same_bytes_and_the_third_call_changes_nothing(tiny, tmp_path):
    source, card, _ = tiny
    first = prepare_dataset(tiny_dataset(card, tmp_path / "a"), source)
    second = prepare_dataset(tiny_dataset(card, tmp_path / "b"), source)
    assert (first.proteins, first.reused, second.reused) == (3, 0, 0)
    assert content(tmp_path / "a") == content(tmp_path / "b")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a", "b"]
    before = {p: p.stat().st_mtime_ns for p in (tmp_path / "a").rglob("*")}
    assert prepare_dataset(tiny_dataset(card, tmp_path / "a"), source).reused == 3
    assert {p: p.stat().st_mtime_ns for p in (tmp_path / "a").rglob("*")} == before


@pytest.mark.slow
def test_a_killed_run_resumes_to_the_same_bytes(tiny, tmp_path):
    source, card, _ = tiny
    code = (
        f"import sys; sys.path.insert(0, {str(HERE.parents[3])!r})\n"
        "from pathlib import Path\n"
        "from tests.plugins.published.tiny_site import tiny_dataset\n"
        "from protgraph_plugins.published.preparation import prepare_dataset\n"
        f"prepare_dataset(tiny_dataset(Path({str(card)!r}), Path({str(tmp_path / 'a')!r}), kill_after=2), "
        f"{str(source)!r})"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=120).returncode == -9
    dataset = tiny_dataset(card, tmp_path / "a")
    assert not dataset.is_prepared and (tmp_path / ".a.part" / "structures" / "1ppe.bcif").is_file()
    (tmp_path / ".a.part" / "structures" / "1crn.bcif").write_bytes(b"cut")  # of a write that was not complete
    assert prepare_dataset(dataset, source).reused == 1
    prepare_dataset(tiny_dataset(card, tmp_path / "b"), source)
    assert content(tmp_path / "a") == content(tmp_path / "b")


def test_deleting_all_but_the_predicted_chains_from_the_source_changes_no_prepared_structure(
    tiny, structures, tmp_path
):
    source, card, _ = tiny
    write_source(tmp_path / "bare", structures, only_protein=True)
    prepare_dataset(tiny_dataset(card, tmp_path / "a"), source)
    prepare_dataset(tiny_dataset(card, tmp_path / "b"), tmp_path / "bare")
    whole, bare = (content(tmp_path / name / "structures") for name in "ab")
    assert whole == bare and len(whole) == 3
    removed = 0
    for name, (_, chains) in ENTRIES.items():
        atoms, kept = (
            load_structure(structures / f"{name}.bcif").atoms,
            atoms_of(tmp_path / f"a/structures/{name}.bcif"),
        )
        assert set(kept.chain_id.tolist()) == set(chains) and not kept.hetero.any()
        removed += len(atoms) - len(kept)
    assert removed > 1000  # two chains and four heme groups of 2dn2, the inhibitor of 1ppe


def test_labels_splits_and_unknown_labels_are_those_of_the_tables(tiny, tmp_path):
    source, card, counts = tiny
    dataset = tiny_dataset(card, tmp_path / "a")
    prepare_dataset(dataset, source)
    assert dataset.splits("site") == ["train", "val", "test"]
    (example,) = dataset.examples("site", "test")
    y = pg.data.align(dataset.labels("site", example), dataset.read(example))[:, 0]
    expected = [np.nan if i % 7 == 3 else float(i % 5 == 0) for i in range(len(y))]
    np.testing.assert_array_equal(y, expected)
    assert dataset.links(example) == {"cluster 2dn2"} and len(y) == counts["test"][0]
    loaded = pg.load_dataset(
        tmp_path / "a" / "structures", labels=tmp_path / "a" / "residue_labels.parquet", task="site"
    )
    assert {e.id.split(".")[0]: e.split for e in loaded.examples("site")} == {k: v[0] for k, v in ENTRIES.items()}


def test_other_counts_than_on_the_card_stop_with_the_difference(tiny, tmp_path):
    source, _, counts = tiny
    residues, known, positive = counts["val"]
    card = write_card(tmp_path / "card.toml", counts | {"val": (residues, known, positive + 1)})
    with pytest.raises(DatasetError) as error:
        prepare_dataset(tiny_dataset(card, tmp_path / "a"), source)
    assert f"({positive},)" in str(error.value) and f"({positive + 1},)" in str(error.value)
    assert not tiny_dataset(card, tmp_path / "a").is_prepared


def test_a_changed_file_is_found(tiny, tmp_path):
    source, card, _ = tiny
    dataset = tiny_dataset(card, tmp_path / "a")
    prepare_dataset(dataset, source)
    assert damaged_files(dataset) == []
    (tmp_path / "a" / "structures" / "1crn.bcif").write_bytes(b"")
    assert damaged_files(dataset) == ["structures/1crn.bcif"]
    with pytest.raises(DatasetError, match=r"structures/1crn.bcif"):
        prepare_dataset(dataset, source)


def test_a_dataset_that_is_not_prepared_names_the_command(tmp_path, monkeypatch):
    monkeypatch.setenv("PROTGRAPH_CACHE", str(tmp_path))
    with pytest.raises(DatasetError, match="protgraph data prepare dna_site"):
        pg.load_dataset("dna_site").examples("dna_site")


def test_a_source_with_another_checksum_is_refused(tiny, tmp_path):
    source, _, counts = tiny
    card = write_card(tmp_path / "card.toml", counts, f'[checksums]\n"labels.tsv" = "{"0" * 64}"\n')
    with pytest.raises(DatasetError, match=r"labels\.tsv"):
        prepare_dataset(tiny_dataset(card, tmp_path / "a"), source)


@pytest.mark.parametrize("fraction", [0.0, 0.15, 0.5])
def test_clusters_are_held_out_whole_and_without_regard_to_the_order(fraction):
    clusters = np.array([f"c{i % 20}" for i in range(100)])
    held = hold_out_clusters(clusters, fraction)
    assert fraction * 100 <= held.sum() <= fraction * 100 + 5
    assert not set(clusters[held]) & set(clusters[~held])
    order = np.random.default_rng(0).permutation(100)
    np.testing.assert_array_equal(hold_out_clusters(clusters[order], fraction), held[order])


class Handler(SimpleHTTPRequestHandler):
    """Serve a folder; the requests are in ``asked``, and those in ``cut`` get half of the file once."""

    asked: list[tuple[str, str | None]]
    cut: list[str]

    def log_message(self, *args) -> None: ...

    def do_GET(self) -> None:
        ranged = self.headers.get("Range")
        self.asked.append((self.path, ranged))
        path = Path(self.translate_path(self.path))
        if not path.is_file():
            return self.send_error(404)
        data, begin = path.read_bytes(), int(ranged[6:-1]) if ranged else 0
        self.send_response(206 if begin else 200)
        if begin:
            self.send_header("Content-Range", f"bytes {begin}-{len(data) - 1}/{len(data)}")
        self.send_header("ETag", '"1"')
        self.send_header("Content-Length", str(len(data) - begin))
        self.end_headers()
        is_cut = self.path in self.cut and not begin
        self.wfile.write(data[begin : len(data) // 2] if is_cut else data[begin:])
        return None


@pytest.fixture
def served(tiny, tmp_path, monkeypatch):
    """Return address, handler, package with a card, and the dataset's source under owner/name/COMMIT."""
    source, _, counts = tiny
    root, package = tmp_path / "www" / "o" / "r" / ("0" * 40), tmp_path / "package"
    shutil.copytree(source, root)
    keys = 'repository = "o/r"\ncommit = "' + "0" * 40 + '"\nfiles = "files.tsv"\n'
    write_card(package / "dataset.toml", counts, f"[[sources]]\n{keys}")
    rows = [f"{p.name}\t{hashlib.sha256(p.read_bytes()).hexdigest()}\n" for p in sorted(source.iterdir())]
    (package / "files.tsv").write_text("path\tsha256\n" + "".join(rows))
    monkeypatch.setenv("PROTGRAPH_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("PROTGRAPH_OFFLINE", raising=False)
    handler = type("Served", (Handler,), {"asked": [], "cut": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), lambda *a: handler(*a, directory=str(tmp_path / "www")))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    address = f"http://127.0.0.1:{server.server_port}/{{repository}}/{{commit}}/{{path}}"
    yield address, handler, package, root
    server.shutdown()
    server.server_close()
    thread.join()


def get(package: Path, address: str, **options) -> Path:
    card = tiny_dataset(package / "dataset.toml", package / "unused").card
    return download_source(
        card, package, mirrors=(address,), **{"retries": 0, "backoff": 0.001, "timeout": 5, **options}
    )


def test_a_download_resumes_and_is_used_again_offline(served, tiny, tmp_path):
    address, handler, package, root = served
    handler.cut = [f"/o/r/{'0' * 40}/2dn2.bcif"]
    size = (root / "2dn2.bcif").stat().st_size
    folder = get(package, address, retries=1)
    assert content(folder) == content(tiny[0])
    assert (handler.cut[0], f"bytes={size // 2}-") in handler.asked and len(handler.asked) == 5
    assert get(package, address, offline=True) == folder and len(handler.asked) == 5
    dataset = tiny_dataset(package / "dataset.toml", tmp_path / "a")
    assert prepare_dataset(dataset, folder).proteins == 3
    check_counts(dataset)


def test_a_missing_file_offline_or_with_another_checksum_is_an_error(served, monkeypatch):
    address, handler, package, root = served
    with pytest.raises(OfflineError):
        get(package, address, offline=True)
    assert handler.asked == []
    (root / "labels.tsv").write_text("changed")
    monkeypatch.setattr(
        "protgraph_plugins.published.source_download.GITHUB", address.replace("/{path}", "/other/{path}")
    )
    with pytest.raises(FetchError) as error:
        get(package, address)
    assert hashlib.sha256(b"changed").hexdigest() in str(error.value) and "not found" in str(error.value)
