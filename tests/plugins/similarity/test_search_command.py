"""``protgraph search``: hits, tables, names that are not in the embeddings."""

from __future__ import annotations

from pathlib import Path


def test_search_prints_and_writes_hits(run, trained, structures_dir, tmp_path):
    checkpoint = trained.save(tmp_path / "m.safetensors")
    files = [structures_dir / f"{name}.bcif" for name in ("1ubq", "1crn", "5pti")]
    assert run("embed", checkpoint, *files, "-o", tmp_path / "v.npz").code == 0
    result = run("search", files[0], "--in", tmp_path / "v.npz", "-k", 2, "-o", tmp_path / "hits.csv")
    assert result.code == 0, result.err
    assert "1ubq A" in result.out and "cosine" in result.out
    lines = (tmp_path / "hits.csv").read_text().splitlines()
    assert lines[0] == "query,rank,file,protein,chains,cosine" and len(lines) == 3
    result = run("search", "1ubk", "--in", tmp_path / "v.npz")
    assert result.code == 2 and "Did you mean '1ubq'" in result.err
    result = run("search", "1ubq", "--in", tmp_path / "v.npz", "-o", tmp_path / "v.npz")
    assert result.code == 2 and Path(tmp_path / "v.npz").stat().st_size > 1000
