"""Numbering of antibody variable domains: conserved positions, other proteins, and Martin numbers of real files."""

from __future__ import annotations

import csv
import gzip
import tarfile
from collections import defaultdict

import numpy as np
import pytest
from biotite.structure.info import one_letter_code
from protgraph_plugins.paragraph.variable_domain import (
    VariableDomain,
    domain_profiles,
    find_domains,
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
# nanobody cAb-Lys3, PDB 1mel, chain A
NANOBODY = (
    "DVQLQASGGGSVQAGGSLRLSCAASGYTIGPYCMGWFRQAPGKEREGVAAINMGGGITYYADSVKGRFTISQDNAKNTVYLLMNSLEPEDTAIYYCAADSTIYASYYECGHGLSTGGYGYDS"
    "WGQGTQVTVSS"
)
# Domains of the same fold that are no antibodies: T cell receptor A6 (PDB 1ao7, chains D and E), the first two domains
# of CD4, β2 microglobulin, and the constant domains CH2 and CH3 of human IgG1.
SAME_FOLD = {
    "TCR alpha": (
        "KEVEQNSGPLSVPEGAIASLNCTYSDRGSQSFFWYRQYSGKSPELIMSIYSNGDKEDGRFTAQLNKASQYVSLLIRDSQPSDSATYLCAVTTDSWGKLQFGAGTQVVVTP"
    ),
    "TCR beta": (
        "NAGVTQTPKFQVLKTGQSMTLQCAQDMNHEYMSWYRQDPGMGLRLIHYSVGAGITDQGEVPNGYNVSRSTTEDFPLRLLSAAPSQTSVYFCASRPGLAGGRPEQYFGPGTRLTVTE"
    ),
    "CD4": (
        "KKVVLGKKGDTVELTCTASQKKSIQFHWKNSNQIKILGNQGSFLTKGPSKLNDRADSRRSLWDQGNFPLIIKNLKIEDSDTYICEVEDQKEEVQLLVFGLTANSDTHLLQGQSLTLTLESP"
        "PGSSPSVQCRSPRGKNIQGGKTLSVSQLELQDSGTWTCTVLQNQKKVEFKIDIVVLA"
    ),
    "B2M": "IQRTPKIQVYSRHPAENGKSNFLNCYVSGFHPSDIEVDLLKNGERIEKVEHSDLSFSKDWSFYLLYYTEFTPTEKDEYACRVNHVTLSQPKIVKWDRDM",
    "Fc": (
        "PSVFLFPPKPKDTLMISRTPEVTCVVVDVSHEDPEVKFNWYVDGVEVHNAKTKPREEQYNSTYRVVSVLTVLHQDWLNGKEYKCKVSNKALPAPIEKTISKAKGQPREPQVYTLPPSRDELT"
        "KNQVSLTCLVKGFYPSDIAVEWESNGQPENNYKTTPPVLDSDGSFFLYSKLTVDKSRWQQGNVFSCSVMHEALHNHYTQKSLSLS"
    ),
}
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


def extents(*chains: str) -> list[tuple[str, str, int, int]]:
    """Return kind, chain, and first and last number of each domain of sequences."""
    residues = protein(*chains)
    return [
        (d.kind, str(residues.chain[d.rows[0]]), int(residues.res_id[d.rows[0]]), int(residues.res_id[d.rows[-1]]))
        for d in find_domains(residues)
    ]


def test_domains_end_where_the_constant_domains_begin():
    """In Kabat numbers H1 to H113, and L1 to L110, as in the training files."""
    constant = HEAVY.index("ASTKGP"), LIGHT.index("RTVAAP")
    assert extents(LIGHT, HEAVY) == [("L", "X", 1, constant[1] + 3), ("H", "Y", 1, constant[0])]


def test_all_domains_of_a_chain_are_found():
    """As in single-chain Fv, tandem nanobodies, and chains of bispecific antibodies; a tag and linkers are outside."""
    linker = "GGGGSGGGGSGGGGS"
    heavy, light = HEAVY[: HEAVY.index("ASTKGP")], LIGHT[: LIGHT.index("RTVAAP")]
    parts = ["MKYLLPTAAAGLLLLAAQPAMA", heavy, linker, light, linker, NANOBODY, linker, NANOBODY, "HHHHHH"]
    begins = np.cumsum([1, *map(len, parts)])
    found = extents("".join(parts))
    assert [kind for kind, *_ in found] == ["H", "L", "H", "H"]
    for (_, _, first, last), number in zip(found, (1, 3, 5, 7), strict=True):
        assert abs(first - begins[number]) <= 1 and abs(last + 1 - begins[number + 1]) <= 3


def test_a_nanobody_is_one_heavy_domain():
    assert extents(NANOBODY) == [("H", "X", 1, len(NANOBODY))]


@pytest.mark.parametrize("name", SAME_FOLD)
def test_other_domains_with_the_immunoglobulin_fold_are_none(name):
    assert extents(SAME_FOLD[name]) == []


def test_domains_with_unresolved_ends_and_loops_are_found():
    heavy = HEAVY[8:27] + HEAVY[33:98] + HEAVY[108:120]
    assert [kind for kind, *_ in extents(heavy, LIGHT[5:27] + LIGHT[33:100])] == ["H", "L"]


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


@pytest.mark.slow
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


@pytest.mark.slow
def test_domains_of_all_chains_of_real_complexes(shared_data, tmp_path):
    """Every antibody chain has one domain of its kind. Of the antigens, three are antibodies themselves."""
    from protgraph.structure.io import read_residues

    folder = shared_data / "sites" / "paratope"
    with tarfile.open(folder / "structures.tar.xz") as archive:
        for member in archive:
            (tmp_path / member.name).write_bytes(archive.extractfile(member).read())
    with (folder / "splits.tsv").open(encoding="utf-8") as lines:
        rows = [row for row in csv.DictReader(lines, delimiter="\t") if row["split"] == "test"]
    antigens = set()
    for row in rows:
        residues = read_residues(tmp_path / row["file"])
        domains = [(str(residues.chain[d.rows[0]]), d.kind) for d in find_domains(residues)]
        for chain in row["chains"]:
            assert [kind for name, kind in domains if name == chain] == [chain]
        antigens |= {row["file"] for name, _ in domains if name not in row["chains"]}
    assert len(rows) > 100
    assert antigens == {"1CIC_2.bcif", "1IAI_2.bcif", "4K7P_2.bcif"}


@pytest.mark.slow
def test_of_the_entries_of_pdb_core_only_antibodies_have_domains(structures_dir):
    from protgraph.structure.io import read_residues

    found = {path.stem for path in structures_dir.iterdir() if find_domains(read_residues(path))}
    assert found == {"1ncw", "1ngx", "2d7t", "4nhc"}
