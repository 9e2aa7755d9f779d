"""A real alignment: chains of committed structures, aligned to lysozyme, and its text as a3m."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from biotite.sequence import ProteinSequence
from biotite.sequence.align import SubstitutionMatrix, align_optimal
from protgraph_plugins.alignment.search import a3m_rows

import protgraph as pg
from protgraph.structure import Residues

CHAINS = 40


@pytest.fixture(scope="session")
def protein(structures_dir) -> Residues:
    """Return ubiquitin, 76 residues."""
    return pg.clean(pg.load_structure(structures_dir / "1ubq.bcif"))


@pytest.fixture(scope="session")
def a3m_text(structures_dir, protein) -> str:
    """Return chains of other entries as local alignments to ubiquitin, with insertions, and varied copies of it."""
    matrix, query = SubstitutionMatrix.std_protein_matrix(), ProteinSequence(protein.sequence)
    hits = []
    for path in sorted(structures_dir.glob("*.bcif"))[::6][:CHAINS]:
        sequence = pg.clean(pg.load_structure(path)).sequence[:300]
        aligned = align_optimal(query, ProteinSequence(sequence), matrix, (-11, -1), local=True, max_number=1)[0]
        ours, theirs = aligned.get_gapped_sequences()
        first = int(aligned.trace[0, 0]) + 1
        hits.append(["query", path.stem, str(first), ours, theirs])
    rng = np.random.default_rng(0)
    letters = np.array(list(protein.sequence))
    for number in range(20):  # relatives at 85 to 95 %, so that weights differ from 1
        varied = np.where(rng.random(len(letters)) < 0.1, rng.permutation(letters), letters)
        hits.append(["query", f"copy{number}", "1", protein.sequence, "".join(varied)])
    return a3m_rows(protein.sequence, hits)


@pytest.fixture(scope="session")
def a3m_file(a3m_text, tmp_path_factory) -> Path:
    """Return the alignment as a file."""
    path = tmp_path_factory.mktemp("alignment") / "1ubq.a3m"
    path.write_text(a3m_text)
    return path
