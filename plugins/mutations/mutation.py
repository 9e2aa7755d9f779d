"""Substitutions of residues as records, and their forms in text.

In a text, "," separates variants, and "+" (also ":" and ";") joins the mutations of one variant.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from protgraph.errors import MutationError
from protgraph.structure.residues import ALPHABET, THREE_LETTER, UNKNOWN

__all__ = ["Mutation", "format_variant", "parse_mutations", "parse_variants"]

_LETTERS = frozenset(ALPHABET[:UNKNOWN])
_ONE_LETTER = {name: ALPHABET[code] for code, name in enumerate(THREE_LETTER[:UNKNOWN])}

_NUMBER = r"(?P<number>-?[0-9]+)"
_CODE = r"(?:\[(?P<exact>[A-Za-z0-9])\]|(?P<lower>[a-z]))?"
#: Forms of one substitution without its chain, in the order of trial; the second is HGVS.
_FORMS = (
    re.compile(rf"(?P<old>[A-Z]){_NUMBER}{_CODE}(?P<new>[A-Z=])"),  # G42D, Y100[A]F, Y100aF
    re.compile(rf"p\.(?P<open>\()?(?P<old>[A-Z](?:[a-z]{{2}})?){_NUMBER}(?P<new>[A-Z](?:[a-z]{{2}})?|=)(?(open)\))"),
    re.compile(rf"(?P<old>[A-Z][a-z]{{2}}|[A-Z]{{3}}){_NUMBER}{_CODE}(?P<new>[A-Z][a-z]{{2}}|[A-Z]{{3}}|=)"),
)
_SKEMPI = re.compile(rf"(?P<old>[A-Z])(?P<chain>[A-Za-z]){_NUMBER}(?P<lower>[a-z])?(?P<new>[A-Z])")
#: A text before ":" that is a mutation, and not the id of a chain.
_BEFORE_COLON = re.compile(r"(p\.\(?)?[A-Z][A-Za-z]{0,2}-?[0-9]+(\[[A-Za-z0-9]\])?([A-Za-z]+|[*=-])\)?")
_LOWER_CASE = re.compile(r"[a-z]-?[0-9]+[A-Za-z]")
_WILD_TYPE = "WT"
_SHOWN = 60  # characters of a text in a message
_ALLOWED = "Allowed: substitutions by one of the 20 amino acids, e.g. A:G42D, A:Y100[A]F, GA42D, A:p.Gly42Asp."

#: Pattern of texts that are not substitutions → kind of the error and its explanation. The first that is found applies.
_REFUSED: tuple[tuple[re.Pattern[str], str, str], ...] = (
    (re.compile(r"^[A-Za-z*-]{10,}$"), "sequence", "a whole sequence, e.g. one with insertions or deletions"),
    (re.compile(r"^[cgmnr]\."), "nucleotide", "a change of nucleotides. Give the change of the protein, p.Gly42Asp"),
    (re.compile(r"delins|indel|>", re.I), "deletion", "a deletion with an insertion, which has no fixed backbone"),
    (re.compile(r"del|Δ|∆|-$|^-(?=[A-Z])", re.I), "deletion", "a deletion, for which there is no fixed backbone"),
    (re.compile(r"ins|dup|^\+", re.I), "insertion", "an insertion, for which there is no fixed backbone"),
    (re.compile(r"fs|frame", re.I), "frameshift", "a frameshift, for which there is no fixed backbone"),
    (re.compile(r"\*|Ter|stop", re.I), "stop", "a stop codon, for which there is no fixed backbone"),
    (re.compile(r"ext", re.I), "insertion", "an extension, for which there is no fixed backbone"),
    (re.compile(r"^[A-Z]{1,2}-?\d+[A-Z]{2}$"), "ambiguous", "ambiguous. Write an insertion code in brackets, Y100[A]F"),
    (
        re.compile(r"^[a-z]-?\d+[A-Za-z]$|^[A-Z]-?\d+[a-z]$|^[a-z]{3}-?\d+[a-z]{3}$"),
        "letter",
        "written in lower case. Use upper case, G42D",
    ),
    (
        re.compile(r"^([A-Z]{3}-?\d+\w+|[A-Z]-?\d+[A-Z]{3})$"),
        "letter",
        "not between two of the 20 amino acids. Give the parent of a modified residue, M for MSE",
    ),
    (
        re.compile("[\u2010-\u2015\u2212]"),
        "dash",
        "with a dash or minus sign that is not '-'. Use '-' for negative numbers",
    ),
    (re.compile(r"[\s/_&|]"), "separator", "not one mutation. Join the mutations of one variant by '+'"),
)


@dataclass(frozen=True)
class Mutation:
    """Substitution of one residue.

    Parameters
    ----------
    chain : str
        Author chain id, "" if the file has none.
    res_id : int
        Author residue number.
    ins_code : str
        Insertion code, "" without one.
    wild_type, mutant : str
        One-letter codes of the 20 amino acids. They may be equal (a synonymous mutation).

    Raises
    ------
    MutationError
        A letter is not one of the 20.

    Examples
    --------
    >>> print(Mutation("H", 52, "A", "G", "D"), Mutation("A", -3, "", "G", "D").reverse())
    H:G52[A]D A:D-3G
    """

    chain: str
    res_id: int
    ins_code: str
    wild_type: str
    mutant: str

    def __post_init__(self) -> None:
        for what, letter in (("wild type", self.wild_type), ("mutant", self.mutant)):
            if letter not in _LETTERS:
                raise MutationError(
                    f"invalid {what}: {letter!r} ({self}). Allowed: one-letter codes of the 20 amino acids, "
                    f"{ALPHABET[:UNKNOWN]}.",
                    mutation=str(self),
                    kind="letter",
                )

    def __str__(self) -> str:
        code = f"[{self.ins_code}]" if self.ins_code else ""
        return f"{self.chain}:{self.wild_type}{self.res_id}{code}{self.mutant}"

    @property
    def residue(self) -> str:
        """Id of the residue, e.g. "A:42", or "A:42A" with an insertion code, as :attr:`Residues.ids`."""
        return f"{self.chain}:{self.res_id}{self.ins_code}"

    @property
    def is_synonymous(self) -> bool:
        """True if the mutant is the wild type."""
        return self.wild_type == self.mutant

    def reverse(self) -> Mutation:
        """Return the mutation from the mutant to the wild type."""
        return replace(self, wild_type=self.mutant, mutant=self.wild_type)


def format_variant(variant: Sequence[Mutation]) -> str:
    """Return the text of a variant, with "+" between its mutations; "WT" for the wild type.

    Examples
    --------
    >>> format_variant(parse_mutations("GA42D:LA45P")), format_variant(())
    ('A:G42D+A:L45P', 'WT')
    """
    return "+".join(map(str, variant)) or _WILD_TYPE


def parse_variants(text: str, *, default_chain: str | None = None) -> tuple[tuple[Mutation, ...], ...]:
    """Parse variants separated by commas.

    Parameters
    ----------
    text : str
        Each variant is in one of the forms of :func:`parse_mutations`.
    default_chain : str, optional
        Chain of mutations without one, e.g. the only chain of a structure.

    Raises
    ------
    MutationError
        A variant cannot be parsed.

    Examples
    --------
    >>> [format_variant(variant) for variant in parse_variants("A:G42D, A:L45P, A:G42D+A:L45P, WT")]
    ['A:G42D', 'A:L45P', 'A:G42D+A:L45P', 'WT']
    """
    return tuple(_parse_variant(part, start, text, default_chain) for start, part in _split(text, ","))


def parse_mutations(text: str, *, default_chain: str | None = None, join_commas: bool = False) -> tuple[Mutation, ...]:
    """Parse one variant: substitutions joined by "+", ":" (as in ProteinGym's tables) or ";".

    Parameters
    ----------
    text : str
        Each part is in one of the forms of Notes. "WT" is the wild type, without substitutions.
    default_chain : str, optional
        Chain of parts without one, e.g. the only chain of a structure.
    join_commas : bool
        Read "," as "+", for tables with one variant per row, e.g. those of SKEMPI. Otherwise a comma is an error,
        since it separates variants (:func:`parse_variants`).

    Returns
    -------
    tuple of Mutation
        In the order of the text; empty for the wild type.

    Raises
    ------
    MutationError
        A part is a deletion, insertion, stop codon or frameshift, has another syntax or other letters, has no chain, or
        is for the same residue as another one. The message has its place in the text.

    Notes
    -----
    ==============  ==============================================================================================
    ``A:G42D``      chain, ":", wild type, residue number, mutant. ``A:G-3D`` has the number −3.
    ``A:G52[A]D``   insertion code A, in brackets, exactly as in the structure.
    ``GA42D``       SKEMPI: wild type, chain (one letter), number, mutant; an insertion code follows the number as a
                    lower-case letter, ``YH100aF`` is H:Y100[A]F. A chain that is a digit needs the first form:
                    digits after the wild type are always the residue number.
    ``G42D``        with ``default_chain``.
    ``p.Gly42Asp``  HGVS, also ``p.G42D``, ``p.(Gly42Asp)``, ``Gly42Asp``, with ``A:`` before it or ``default_chain``.
                    The number is the author residue number of the structure, not that of a reference sequence.
    ``A:G42=``      synonymous, as ``A:G42G``.
    ==============  ==============================================================================================

    A chain applies to the mutation that follows it: in ``A:G42D:L45P``, the second mutation has ``default_chain``.

    Examples
    --------
    >>> [str(m) for m in parse_mutations("A:G42D + YH100aF + p.Leu45Pro", default_chain="B")]
    ['A:G42D', 'H:Y100[A]F', 'B:L45P']
    >>> [str(m) for m in parse_mutations("K1A:V2G", default_chain="A")]
    ['A:K1A', 'A:V2G']
    """
    if "," in text and not join_commas:
        raise MutationError(
            f"several variants: {_shortened(text)!r}. ',' separates variants. Join the mutations of one by '+', "
            "or read several with parse_variants.",
            mutation=text,
            kind="separator",
        )
    return _parse_variant(text, 1, text, default_chain)


def _parse_variant(variant: str, begin: int, text: str, default_chain: str | None) -> tuple[Mutation, ...]:
    """Return the mutations of a variant that begins at a character of the text, counted from 1."""
    if variant.strip().upper() == _WILD_TYPE:
        return ()
    mutations: list[Mutation] = []
    for start, mutation_text in _split_mutations(variant, default_chain):
        found_at = begin + start - 1
        parsed = _Part(mutation_text, found_at, text, default_chain).parse()
        same = [m for m in mutations if m.residue == parsed.residue]
        if same:
            raise MutationError(
                f"two mutations of residue {parsed.residue}: {same[0]} and {parsed} (character {found_at} of "
                f"{_shortened(text)!r}). Give one per residue.",
                mutation=mutation_text,
                kind="duplicate",
            )
        mutations.append(parsed)
    return tuple(mutations)


def _split_mutations(variant: str, default_chain: str | None) -> Iterator[tuple[int, str]]:
    """Yield the place, counted from 1, and the text of each mutation, with its chain: "G42D", "A:G42D".

    A text before ":" is a mutation if it has the form of one, and otherwise the chain of the mutation after it. With a
    default chain, a mutation in lower case is one too: the structure has no chain of that name.
    """
    for start, part in _split(variant, "+;,"):
        chain_start, chain = 0, ""
        words = list(_split(part, ":"))
        for number, (offset, word) in enumerate(words, 1):
            if not chain_start and number < len(words) and not _is_mutation(word, default_chain):
                chain_start, chain = offset, f"{word}:"
                continue
            yield start + (chain_start or offset) - 1, chain + word
            chain_start, chain = 0, ""


def _is_mutation(word: str, default_chain: str | None) -> bool:
    if word == default_chain:
        return False
    in_lower_case = default_chain is not None and _LOWER_CASE.fullmatch(word)
    return bool(_BEFORE_COLON.fullmatch(word) or in_lower_case)


def _split(text: str, separators: str) -> Iterator[tuple[int, str]]:
    """Yield the place, counted from 1, and the text of each part."""
    start = 1
    for part in re.split(f"[{separators}]", text):
        yield start + len(part) - len(part.lstrip()), part.strip()
        start += len(part) + 1


def _shortened(text: str) -> str:
    """Return the first characters of a text, e.g. of a whole sequence."""
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


@dataclass(frozen=True)
class _Part:
    """One substitution in a text, and its place."""

    part: str
    start: int
    text: str
    default_chain: str | None

    def parse(self) -> Mutation:
        chain, colon, without_chain = self.part.partition(":")
        if not colon:
            chain, without_chain = "", self.part
            match = _SKEMPI.fullmatch(without_chain)
            if match:
                return self._mutation(match, match["chain"])
        elif not chain.isprintable():
            raise self._error("syntax", f"the chain {chain!r} has a character that is not printable. Remove it")
        match = next((m for form in _FORMS if (m := form.fullmatch(without_chain))), None)
        if match is None:
            raise self._refusal(without_chain)
        if colon:
            return self._mutation(match, chain.strip())
        if self.default_chain is None:
            raise self._error("no_chain", f"it has no chain. Write it before the mutation, 'A:{without_chain}'")
        return self._mutation(match, self.default_chain)

    def _mutation(self, match: re.Match[str], chain: str) -> Mutation:
        groups = match.groupdict()
        code = groups.get("exact") or (groups.get("lower") or "").upper()
        wild_type = self._letter(groups["old"])
        mutant = wild_type if groups["new"] == "=" else self._letter(groups["new"])
        return Mutation(chain, int(groups["number"]), code, wild_type, mutant)

    def _letter(self, name: str) -> str:
        """Return the one-letter code of a letter or a name of three letters."""
        letter = _ONE_LETTER.get(name.upper(), name)
        if letter in _LETTERS:
            return letter
        if name.upper() in ("TER", "DEL", "INS", "DUP"):
            raise self._refusal(self.part.partition(":")[2] or self.part)
        hint = {"U": " (selenocysteine; it is read as C)", "O": " (pyrrolysine; it is read as K)"}.get(name, "")
        raise self._error("letter", f"{name!r}{hint} is not one of the 20 amino acids")

    def _refusal(self, without_chain: str) -> MutationError:
        if not without_chain:
            return self._error("syntax", "it is empty")
        for pattern, kind, reason in _REFUSED:
            if pattern.search(without_chain):
                return self._error(kind, f"it is {reason}")
        return self._error("syntax", "its form is unknown")

    def _error(self, kind: str, reason: str) -> MutationError:
        where = f"character {self.start} of {_shortened(self.text)!r}"
        return MutationError(
            f"invalid mutation: {_shortened(self.part)!r} ({where}): {reason}. {_ALLOWED}",
            mutation=self.part,
            kind=kind,
        )
