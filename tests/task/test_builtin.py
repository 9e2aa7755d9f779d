"""Labels that follow from a structure are those that another program gives."""

from __future__ import annotations

import numpy as np
import pytest
from protgraph_datasets.pdb_core import PdbCore

from protgraph.structure import clean, load_fasta, load_structure
from protgraph.task import builtin


@pytest.mark.parametrize("split", ["val", "ts50"])
def test_derived_secondary_structure_is_that_of_mkdssp(split):
    """Whole entries, as mkdssp saw them, without modified residues that it did not see."""
    data, same, both = PdbCore(), 0, 0
    for example in data.examples("secondary_structure", split)[::3]:
        whole = clean(load_structure(example.path))
        given = data.labels("secondary_structure", example).align(whole)
        seen = (given >= 0) | ~np.isin(whole.chain, example.chains)
        whole, given = whole.select(seen), given[seen]
        ours = builtin.SECONDARY_STRUCTURE.labels(whole)
        known = (ours >= 0) & (given >= 0)
        same, both = same + int((ours == given)[known].sum()), both + int(known.sum())
    assert both > 1000
    assert same >= 0.999 * both


def test_a_sequence_has_no_secondary_structure(tmp_path):
    (tmp_path / "made.fasta").write_text(">one\nMKTAYIAK\n")
    (residues,) = load_fasta(tmp_path / "made.fasta")
    assert builtin.SECONDARY_STRUCTURE.labels(residues).tolist() == [-1] * 8


def test_derives_labels_is_false_for_tasks_that_need_a_dataset():
    needs = {task.name: not task.derives_labels for task in vars(builtin).values() if isinstance(task, builtin.Task)}
    assert needs == {
        "secondary_structure": False,
        "ligand_binding": True,
        "interface": True,
        "inverse_folding": False,
        "b_factor": False,
        "structure_denoising": False,
    }
