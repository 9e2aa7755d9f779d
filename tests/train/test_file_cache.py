"""A fingerprint is computed once, and again only if the file or the options change."""

from __future__ import annotations

import shutil

from protgraph.data.datasets.fingerprint import fingerprint_file
from protgraph.labels.loading import cached_fingerprint
from protgraph.structure import ReadOptions


def test_a_fingerprint_is_computed_once(structures_dir, tmp_path, opened_files):
    path = tmp_path / "1crn.bcif"

    def cached(**options):
        return cached_fingerprint(path, folder=tmp_path / "cache", read=ReadOptions(**options))

    shutil.copy(structures_dir / "1crn.bcif", path)
    opened_files.clear()
    first = cached()
    assert cached() == first and opened_files.count(str(path)) == 1
    cached(altloc="first")
    assert opened_files.count(str(path)) == 2
    assert first == fingerprint_file(path)
    shutil.copy(structures_dir / "1vii.bcif", path)
    assert cached().digest == fingerprint_file(path).digest != first.digest
    for damaged in (tmp_path / "cache" / "contents").rglob("*.json"):
        damaged.write_text("{")
    assert cached() == fingerprint_file(path)


def test_records_of_fasta_have_names(tmp_path):
    path = tmp_path / "a.fasta"
    path.write_text(">a\nMKT\n\nMK\n>b\nGG\n")
    fingerprint = cached_fingerprint(path, folder=tmp_path / "cache", read=ReadOptions())
    assert fingerprint.records == ("a", "b") and fingerprint.lengths == {"a": 5, "b": 2}
