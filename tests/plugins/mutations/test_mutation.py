"""Parsing of mutations: every form, what is refused, and the table of SKEMPI as an independent parser."""

from __future__ import annotations

import csv
import gzip

import pytest
from protgraph_plugins.mutations import Mutation, format_variant, parse_mutations, parse_variants

from protgraph.errors import MutationError

G42D = Mutation("A", 42, "", "G", "D")


@pytest.mark.parametrize(
    "text", ["A:G42D", "GA42D", "A:p.Gly42Asp", "A:p.(Gly42Asp)", "A:Gly42Asp", "A:GLY42ASP", " A:G42D ", "A: G42D"]
)
def test_every_form_of_one_substitution(text):
    assert parse_mutations(text.replace(": ", ":")) == (G42D,)


@pytest.mark.parametrize(
    "text", ["G42D", "p.Gly42Asp", "p.(Gly42Asp)", "p.G42D", "p.(G42D)", "GLY42ASP", "GA42D", "A:G42D"]
)
def test_the_default_chain_is_for_parts_without_one(text):
    assert parse_mutations(text, default_chain="A") == (G42D,)


def test_a_chain_in_the_text_has_priority():
    assert [m.chain for m in parse_mutations("GA42D+B:G43D+G44D", default_chain="C")] == ["A", "B", "C"]


@pytest.mark.parametrize(
    ("text", "number", "code"),
    [
        ("H:Y100[A]F", 100, "A"),
        ("YH100aF", 100, "A"),
        ("H:Y100aF", 100, "A"),
        ("H:Y100[a]F", 100, "a"),
        ("H:Y-3F", -3, ""),
        ("H:Y-3[B]F", -3, "B"),
        ("YH-3F", -3, ""),
        ("H:Y0F", 0, ""),
        ("H:Tyr100[A]Phe", 100, "A"),
    ],
)
def test_insertion_codes_and_negative_numbers(text, number, code):
    assert parse_mutations(text) == (Mutation("H", number, code, "Y", "F"),)


@pytest.mark.parametrize("chain", ["AA", "A-2", "1", "a", "", "B_1"])
def test_chain_ids_of_any_length(chain):
    assert parse_mutations(f"{chain}:G42D") == (Mutation(chain, 42, "", "G", "D"),)


def test_digits_after_the_wild_type_are_the_number():
    """A SKEMPI form with the chain "1" would read the same: the first form is required for it."""
    assert parse_mutations("G142D", default_chain="A") == (Mutation("A", 142, "", "G", "D"),)
    with pytest.raises(MutationError) as caught:
        parse_mutations("G142D")
    assert caught.value.kind == "no_chain"


L45P = Mutation("A", 45, "", "L", "P")


@pytest.mark.parametrize(
    "text",
    [
        "A:G42D+A:L45P",
        "A:G42D;A:L45P",
        "GA42D+ LA45P",
        "A:G42D + A:p.Leu45Pro",
        "A:G42D:A:L45P",
        "GA42D:LA45P",
        "A:p.Gly42Asp:A:Leu45Pro",
    ],
)
def test_several_substitutions_of_one_variant(text):
    assert parse_mutations(text) == (G42D, L45P)
    assert parse_mutations(format_variant((G42D, L45P))) == (G42D, L45P)


@pytest.mark.parametrize("text", ["G42D:L45P", "A:G42D:L45P", "p.(Gly42Asp):L45P", "G42D : L45P"])
def test_lists_of_proteingym_have_the_default_chain(text):
    assert parse_mutations(text, default_chain="A") == (G42D, L45P)


def test_lists_of_proteingym_with_insertion_codes_negative_numbers_and_many_mutations():
    found = parse_mutations("Y100[A]F:G-3D:Y101aF:K1=", default_chain="H")
    assert [str(m) for m in found] == ["H:Y100[A]F", "H:G-3D", "H:Y101[A]F", "H:K1K"]
    letters = "ACDEFGHIKLMNPQRSTVWY"
    expected = [Mutation("A", k, "", letters[k % 20], letters[(k + 3) % 20]) for k in range(1, 40)]
    text = ":".join(f"{m.wild_type}{m.res_id}{m.mutant}" for m in expected)
    assert list(parse_mutations(text, default_chain="A")) == expected


def test_a_chain_that_looks_like_a_mutation():
    """It is a chain if the structure has this chain only; else the text would have two meanings, and is refused."""
    assert parse_mutations("A1A:G42D", default_chain="A1A") == (Mutation("A1A", 42, "", "G", "D"),)
    assert parse_mutations("a1a:G42D") == (Mutation("a1a", 42, "", "G", "D"),)
    with pytest.raises(MutationError) as caught:
        parse_mutations("A1A:G42D")
    assert caught.value.kind == "no_chain"


def test_commas_separate_variants():
    text = "A:G42D, A:L45P,A:G42D+A:L45P,G42D:L45P, WT"
    assert parse_variants(text, default_chain="A") == ((G42D,), (L45P,), (G42D, L45P), (G42D, L45P), ())
    assert parse_variants("A:G42D") == ((G42D,),)


def test_a_comma_in_one_variant_is_an_error_unless_a_row_of_a_table_is_read():
    with pytest.raises(MutationError) as caught:
        parse_mutations("A:G42D,A:L45P")
    assert caught.value.kind == "separator" and "parse_variants" in str(caught.value)
    assert parse_mutations("A:G42D,A:L45P", join_commas=True) == (G42D, L45P)


@pytest.mark.parametrize(("text", "place"), [("A:G42D,A:L45*", 8), ("A:G42D,A:G42D+A:L4*", 15), ("A:G42D,", 8)])
def test_an_error_of_a_list_of_variants_has_the_place_in_the_list(text, place):
    with pytest.raises(MutationError) as caught:
        parse_variants(text)
    assert f"character {place} of" in str(caught.value)


def test_a_message_has_the_first_characters_of_a_sequence_only():
    """ProteinGym's tables of insertions and deletions have whole sequences."""
    with pytest.raises(MutationError) as caught:
        parse_mutations("MKTAYIAKQRQISFVKSHFSRQ" * 40, default_chain="A")
    assert caught.value.kind == "sequence" and len(str(caught.value)) < 400


@pytest.mark.parametrize("text", ["WT", "wt", " wt "])
def test_wild_type(text):
    assert parse_mutations(text) == ()


@pytest.mark.parametrize("text", ["A:G42G", "A:G42=", "A:p.Gly42=", "A:p.Gly42Gly"])
def test_synonymous(text):
    (mutation,) = parse_mutations(text)
    assert mutation.is_synonymous and mutation == Mutation("A", 42, "", "G", "G")


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("A:G42del", "deletion"),
        ("A:G42-", "deletion"),
        ("A:p.Gly42_Leu45del", "deletion"),
        ("A:delG42", "deletion"),
        ("A:p.Gly42delinsAsp", "deletion"),
        ("A:G42DEL", "deletion"),
        ("A:Gly42Del", "deletion"),
        ("A:p.Gly42_Leu43insAla", "insertion"),
        ("A:p.Gly42dup", "insertion"),
        ("A:p.Gly42Ter", "stop"),
        ("A:p.Gly42*", "stop"),
        ("A:G42*", "stop"),
        ("A:p.Gly42fs", "frameshift"),
        ("A:p.Gly42AspfsTer5", "frameshift"),
        ("c.76A>T", "nucleotide"),
        ("A:G42X", "letter"),
        ("A:X42G", "letter"),
        ("A:U42G", "letter"),
        ("A:g42D", "letter"),
        ("A:G42d", "letter"),
        ("A:p.Gly42Xaa", "letter"),
        ("A:Mse42Ala", "letter"),
        ("A:MSE42A", "letter"),
        ("A:M42MSE", "letter"),
        ("A:gly42asp", "letter"),
        ("A:G\u22123D", "dash"),
        ("A:G\u20133D", "dash"),
        ("\ufeffA:G42D", "syntax"),
        ("A:Y100AF", "ambiguous"),
        ("YH100AF", "ambiguous"),
        ("G42D", "no_chain"),
        ("A:G42D:L45P", "no_chain"),
        ("G42D:L45P", "no_chain"),
        ("A1G:B2D", "no_chain"),
        ("A:B:G42D", "syntax"),
        ("A:G42D:A:L45*", "stop"),
        ("A:G42*:A:L45P", "stop"),
        ("A:G42del:A:L45P", "deletion"),
        ("A:g42d:A:L45P", "letter"),
        ("A:G42D::", "syntax"),
        ("A:G42D A:L45P", "separator"),
        ("A:G42D/L45P", "separator"),
        ("A:G42D_L45P", "separator"),
        ("A:G42D+L45P", "no_chain"),
        ("A:G42D|A:L45P", "separator"),
        ("A:G42D&A:L45P", "separator"),
        ("A:MKTAYIAKQRQISFVKSHFSRQ", "sequence"),
        ("", "syntax"),
        ("A:", "syntax"),
        ("A:G42D+", "syntax"),
        ("A:G42D++A:L45P", "syntax"),
        ("+A:G42D", "syntax"),
        ("A:G42D+WT", "syntax"),
        ("A:42", "syntax"),
        ("A:G4.2D", "syntax"),
        ("A:G٤٢D", "syntax"),
        ("A:G42[AB]D", "syntax"),
        ("A:G42D+A:G42E", "duplicate"),
        ("A:G42D:GA42D", "duplicate"),
    ],
)
def test_other_changes_are_refused(text, kind):
    with pytest.raises(MutationError) as caught:
        parse_mutations(text)
    assert caught.value.kind == kind
    assert len(str(caught.value).splitlines()) <= 3


@pytest.mark.parametrize(("text", "place"), [("A:G42D+A:L45*", 8), ("A:L4*", 1), ("A:G42D+ A:L45P; A:K5del", 17)])
def test_an_error_has_the_part_and_its_place(text, place):
    with pytest.raises(MutationError) as caught:
        parse_mutations(text)
    assert f"character {place} of" in str(caught.value)
    assert caught.value.mutation == text[place - 1 :].strip()


@pytest.mark.parametrize("mutation", [G42D, Mutation("H", 100, "A", "Y", "F"), Mutation("A-2", -3, "b", "G", "D")])
def test_text_of_a_mutation_is_parsed_to_the_same(mutation):
    assert parse_mutations(str(mutation)) == (mutation,)
    assert parse_mutations(str(mutation.reverse())) == (mutation.reverse(),)
    assert mutation.reverse().reverse() == mutation


@pytest.mark.parametrize(("wild_type", "mutant"), [("X", "A"), ("A", "X"), ("A", ""), ("A", "GD"), ("a", "G")])
def test_letters_are_checked(wild_type, mutant):
    with pytest.raises(MutationError):
        Mutation("A", 1, "", wild_type, mutant)


@pytest.mark.slow
def test_forms_of_skempi_agree_with_its_parsed_columns(shared_data):
    """7,085 rows; the columns were parsed by others. Two rows name one mutation twice, a defect of the table."""
    with gzip.open(shared_data / "mutations/skempi_v2/mutations.tsv.gz", "rt") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    twice = []
    for row in rows:
        columns = (row[name].split(";") for name in ("chain", "res_id", "ins_code", "wild_type", "mutant"))
        chain, number, code, old, new = columns
        codes = code if len(code) == len(chain) else [""] * len(chain)
        expected = [Mutation(c, int(n), i, a, b) for c, n, i, a, b in zip(chain, number, codes, old, new, strict=True)]
        if len(set(expected)) < len(expected):
            twice.append(row)
            with pytest.raises(MutationError):
                parse_mutations(row["Mutation(s)_cleaned"], join_commas=True)
            continue
        assert list(parse_mutations(row["Mutation(s)_cleaned"], join_commas=True)) == expected
    once = [parse_mutations(r["Mutation(s)_PDB"], join_commas=True) for r in rows if r not in twice]
    inserted = [m for variant in once for m in variant if m.ins_code]
    assert len(rows) == 7085 and len(twice) == 2 and len(inserted) > 50
