"""Speed of file to graph for files of the user."""

from __future__ import annotations

import pytest

from benchmarks import speed_featurize
from protgraph.errors import DatasetError

RNA = "ATOM      1  P     A A   1      11.104   6.134  -6.504  1.00  0.00           P"


@pytest.mark.slow
def test_files_without_protein_are_left_out_and_printed(structures_dir, tmp_path, capsys):
    rna, protein = tmp_path / "rna.pdb", structures_dir / "1crn.bcif"
    rna.write_text(f"{RNA}\n")
    (measured,) = speed_featurize.measure(seconds=0.01, files=[rna, protein])
    assert str(rna) in capsys.readouterr().out
    assert measured.title.startswith("1 BinaryCIF files of 46 residues")
    assert measured.error < 1e-4
    times = {row.name: row.ms for row in measured.rows}
    assert min(times, key=times.get) == speed_featurize.LIMIT
    with pytest.raises(DatasetError, match="1 files"):
        speed_featurize.measure(files=[rna])
