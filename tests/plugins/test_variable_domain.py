"""Numbering of antibody variable domains: conserved positions, other proteins, and Martin numbers of real files."""

from __future__ import annotations

import csv
import gzip
from collections import defaultdict

import numpy as np
import pytest
from biotite.structure.info import one_letter_code
from protgraph_plugins.paragraph.variable_domain import (
    VariableDomain,
    domain_profiles,
    number_domains,
)

import protgraph as pg
from protgraph.data.graph.fields import field
from protgraph.errors import SelectionError
from protgraph.structure import ALPHABET, LossReport, Residues

# trastuzumab, PDB 1n8z, chains B and A, with the first residues of the constant domains
HEAVY = (
    "EVQLVESGGGLVQPGGSLRLSCAASGFNIKDTYIHWVRQAPGKGLEWVARIYPTNGYTRYADSVKGRFTISADTSKNTAYLQMNSLRAEDTAVYYCSRWGGDGFYAMDYWGQGTLVTVSS"
    "ASTKGPSVFPLAPSSKSTSGGTAALGCLVKDYFPEPVTVSWNSGALTSGVHTFPAVLQSSGLYSLSSVVTVPSS"
)
LIGHT = (
    "DIQMTQSPSSLSASVGDRVTITCRASQDVNTAVAWYQQKPGKAPKLLIYSASFLYSGVPSRFSGSRSGTDFTLTISSLQPEDFATYYCQQHYTTPPTFGQGTKVEIK"
    "RTVAAPSVFIFPPSDEQLKSGTASVVCLLNNFYPREAKVQWKVDNALQ"
)
UBIQUITIN = "MQIFVKTLTGKTITLEVEPSDTIENVKAKIQDKEGIPPDQQRLIFAGKQLEDGRTLSDYNIQKESTLHLVLRLRGG"
CONSERVED = {"H": {"22": "C", "36": "W", "92": "C", "103": "W", "104": "G"}, "L": {"23": "C", "35": "W", "88": "C"}}


def protein(*chains: str) -> Residues:
    """Return a protein of sequences alone; chains X, Y, Z, each numbered from 1."""
    letters = [letter for chain in chains for letter in chain]
    number, n = np.concatenate([np.arange(len(chain)) for chain in chains]), len(letters)
    return Residues(
        name="made",
        chain=np.repeat(list("XYZ"[: len(chains)]), [len(chain) for chain in chains]),
        res_id=number + 1,
        ins_code=np.full(n, ""),
        res_name=np.full(n, "UNK"),
        aatype=np.array([ALPHABET.index(letter) for letter in letters]),
        pos=np.full((n, 3), np.nan, np.float32),
        backbone=np.full((n, 4, 3), np.nan, np.float32),
        b_factor=np.zeros(n, np.float32),
        seq_pos=number,
        atom_pos=np.zeros((0, 3), np.float32),
        atom_name=np.zeros(0, "U4"),
        atom_element=np.zeros(0, "U2"),
        atom_residue=np.zeros(0, np.int64),
        report=LossReport(),
    )


def names_of(number: np.ndarray) -> list[str]:
    """Return names such as "H100A", "" outside domains."""
    names = ["", *(f"{p.kind}{position}" for p in domain_profiles() for position in p.positions)]
    return [names[k] for k in number]


@pytest.mark.parametrize(("sequence", "kind"), [(HEAVY, "H"), (LIGHT, "L")])
def test_conserved_residues_have_their_martin_numbers(sequence, kind):
    names = names_of(number_domains(protein(sequence)))
    for position, letter in CONSERVED[kind].items():
        assert sequence[names.index(kind + position)] == letter
    assert names[0] == f"{kind}1"
    assert {name[:1] for name in names[:105]} <= {kind, ""}
    assert not any(names[125:])  # the constant domain


def test_a_single_chain_fv_has_both_domains():
    joined = HEAVY[:120] + "GGGGSGGGGSGGGGS" + LIGHT[:107]
    names = names_of(number_domains(protein(joined)))
    assert joined[names.index("H92")] == joined[names.index("L88")] == "C"
    assert names[:120] == names_of(number_domains(protein(HEAVY)))[:120]
    assert names[135:] == names_of(number_domains(protein(LIGHT)))[:107]


def test_other_proteins_and_chains_have_no_position():
    number = number_domains(protein(UBIQUITIN, LIGHT))
    assert not number[: len(UBIQUITIN)].any()
    assert number[len(UBIQUITIN) :].astype(bool).sum() == 110  # the profile ends at L110


def test_the_field_has_a_class_for_every_position():
    assert field("variable_domain").classes == 1 + sum(len(p.positions) for p in domain_profiles())
    number = VariableDomain()(protein(HEAVY, LIGHT))["variable_domain"]
    assert number.dtype == np.int64
    assert number.min() >= 0
    assert number.max() < field("variable_domain").classes


def test_the_antibody_model_refuses_other_proteins():
    with pytest.raises(SelectionError, match="made"):
        VariableDomain(required=True)(protein(UBIQUITIN))
    model = pg.build_model("site_mpnn.antibody", pg.Target("site", "node", "multilabel", 1))
    numbering = next(featurizer for node, featurizer in model.plan.structure if node.name == "variable_domain")
    assert numbering.required
    assert numbering(protein(HEAVY))["variable_domain"].any()


def test_numbers_equal_those_of_files_with_martin_numbering(shared_data):
    """Validation antibodies of PECAN, which are not in the profile."""
    rows = defaultdict(list)
    with gzip.open(shared_data / "sites" / "paratope" / "labels.tsv.gz", "rt", encoding="utf-8") as lines:
        for row in csv.DictReader(lines, delimiter="\t"):
            if row["split"] == "val":
                rows[row["file"], row["chain"]].append(row)
    same = total = 0
    for (_, chain), residues in rows.items():
        sequence = "".join(one_letter_code(row["res_name"]) or "X" for row in residues)
        names = names_of(number_domains(protein(sequence)))
        expected = [f"{chain}{row['res_id']}{row['ins_code']}" for row in residues]
        same += sum(a == b for a, b in zip(names, expected, strict=True))
        total += len(names)
    assert total > 18_000
    assert same / total > 0.97
