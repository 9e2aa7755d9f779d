"""Parse CIF text completely: data blocks of categories, with quoted values and text fields.

Not gemmi: few files need this parser (see :mod:`protgraph.structure.io.cif_rows`), and gemmi rejects characters beyond
ASCII outside quotes (gemmi 0.7.5, 2026-11-22). Not biotite: it rejects nameless blocks, ``LOOP_``,
comments after values and tags beside text fields (biotite 1.6.0, 2026-11-22).

References
----------
CIF 1.1 syntax, Hall & McMahon (eds.) 2005, International Tables for Crystallography G, chapter 2.2.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NoReturn

import numpy as np

from protgraph.errors import StructureFileError
from protgraph.structure.io.cif_column import ColumnValues, canonical_name
from protgraph.structure.io.cif_text import quote
from protgraph.structure.io.sniff import decode_text

__all__ = ["ParsedBlock", "TokenTable", "parse_cif", "split_tag", "unify_lines"]

# A quote ends a value only before white space; a text field begins with ";" in column 1 and ends with the next one.
_SPECIAL = re.compile(rb"""(?<!\S)['"#]|(?<![^\n]);""")
_QUOTED = {
    b"'": re.compile(rb"'([^'\n]*(?:'(?!\s|\Z)[^'\n]*)*)'(?=\s|\Z)"),
    b'"': re.compile(rb'"([^"\n]*(?:"(?!\s|\Z)[^"\n]*)*)"(?=\s|\Z)'),
    b";": re.compile(rb";(.*?)\n;", re.DOTALL),
}
_RESERVED = re.compile(rb"(?:data_|save_).*|(?:loop_|stop_|global_)\Z", re.IGNORECASE | re.DOTALL)
_FIRST = frozenset(b"_dDsSlLgG")  # first characters of tags and reserved words


class TokenTable:
    """A category of values in a list of words.

    Parameters
    ----------
    words : list of bytes
        Values without their quotes; also those of other categories.
    places : dict of str to range
        Name of a column → its places in ``words``.
    quoted : set of int
        Places of quoted values, where "." and "?" are text.
    """

    def __init__(self, words: list[bytes], places: dict[str, range], quoted: AbstractSet[int]) -> None:
        self.names, self.size = tuple(places), len(next(iter(places.values())))
        self._words, self._places, self._quoted = words, places, quoted

    def column(self, name: str, rows: slice | np.ndarray = slice(None)) -> ColumnValues:
        """Return some rows of a column: a slice, or ``(R,)`` indices or mask.

        Raises
        ------
        ValueError
            The columns have different lengths.
        """
        place = self._place(name)
        words = self._words[place.start : place.stop : place.step]
        values = np.array(words, dtype=None if words else "S1")
        mask = (values == b".") + np.uint8(2) * (values == b"?")
        if mask.any() and self._quoted:
            mask[[place.index(i) for i in self._quoted if i in place]] = 0
        if not all(map(bytes.isascii, words)):
            values = np.array([decode_text(word) for word in words])
        return ColumnValues(values, mask if mask.any() else None).select(rows)

    def characters(self, name: str, rows: slice | np.ndarray = slice(None)) -> np.ndarray:
        """Return the values of a column as they are written, with quotes, ``(R,)`` bytes.

        Parameters
        ----------
        name : str
        rows : slice or ndarray
            ``(R,)`` indices or mask.

        Raises
        ------
        ValueError
            The columns have different lengths.
        """
        place = self._place(name)
        words = self._words[place.start : place.stop : place.step]
        is_text = [i in self._quoted or not word.isascii() for i, word in zip(place, words, strict=True)]
        if any(is_text):
            words = [
                quote(decode_text(word)).encode() if needs_quote else word
                for word, needs_quote in zip(words, is_text, strict=True)
            ]
        return np.array(words, dtype=None if words else "S1")[rows]

    def _place(self, name: str) -> range:
        """Return the places of the words of a column; an error if it is shorter or longer than the first."""
        place = self._places[name]
        if len(place) != self.size:
            raise ValueError(f"{len(place)} values of {name}, but {self.size} of {self.names[0]}")
        return place


@dataclass
class ParsedBlock:
    """A data block.

    Parameters
    ----------
    name : str
        Text after "data_"; may be empty.
    tables : dict of str to TokenTable
        Categories by name.
    """

    name: str
    tables: dict[str, TokenTable] = field(default_factory=dict)

    def get(self, category: str) -> TokenTable | None:
        """Return a category; None if the block does not have it."""
        return self.tables.get(category)


def unify_lines(content: bytes) -> bytes:
    """Return content with line feeds as line ends, also the last one, and without a byte order mark."""
    content = content.removeprefix(b"\xef\xbb\xbf")
    if b"\r" in content:
        content = content.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return content if content.endswith(b"\n") else content + b"\n"


@lru_cache(4096)
def split_tag(tag: bytes) -> tuple[str, str]:
    """Split "_atom_site.id" into category and item; without a dot, the item is empty."""
    category, _, item = decode_text(tag)[1:].partition(".")
    return canonical_name(category), canonical_name(item)


def parse_cif(content: bytes, where: str) -> list[ParsedBlock]:
    r"""Parse the data blocks of a CIF file; save frames are left out.

    Parameters
    ----------
    content : bytes
        Output of :func:`unify_lines`.
    where : str
        Name of the file, for errors.

    Raises
    ------
    StructureFileError
        The text is not CIF: a tag without a value, a value without a tag, an unfinished row, a repeated tag, a quote or
        text field without an end, or content before the first block.

    Examples
    --------
    >>> block, = parse_cif(b"data_\nLOOP_\n_cell.Length_a #\n'12.3 (5)' ?\n", "text")
    >>> block.get("cell").column("length_a").texts().tolist()
    ['12.3 (5)', '?']
    """
    return _Parser(content, where).blocks()


class _Parser:
    """Words of a file: values without quotes, tags and reserved words, without white space and comments."""

    def __init__(self, content: bytes, where: str) -> None:
        self.content, self.where = content, where
        self.words: list[bytes] = []
        self.quoted: set[int] = set()
        self.marks: list[int] = []  # words that are tags or reserved
        self.runs: list[tuple[int, int]] = []  # first word and first character of each run of bare words
        self._read_words()

    def _read_words(self) -> None:
        content, position = self.content, 0
        while True:
            match = _SPECIAL.search(content, position)
            self._add_bare(position, len(content) if match is None else match.start())
            if match is None:
                return
            if match[0] == b"#":
                position = content.find(b"\n", match.start())
                position = len(content) if position < 0 else position
                continue
            quoted = _QUOTED[match[0]].match(content, match.start())
            self.runs.append((len(self.words), match.start()))
            if quoted is None:
                self._raise(len(self.words), f"{match[0].decode()} without an end")
            self.quoted.add(len(self.words))
            self.words.append(quoted[1])
            position = quoted.end()

    def _add_bare(self, start: int, end: int) -> None:
        """Add the words between two positions, which have neither quotes nor comments."""
        run, first = self.content[start:end].split(), len(self.words)
        self.runs.append((first, start))
        self.marks += [
            first + i
            for i, word in enumerate(run)
            if word[0] in _FIRST and (word[0] == ord("_") or _RESERVED.match(word))
        ]
        self.words += run

    def blocks(self) -> list[ParsedBlock]:
        blocks: list[ParsedBlock] = []
        places: dict[str, dict[str, range]] = {}
        in_frame, k, ends = False, 0, [*self.marks[1:], len(self.words)]
        if self.marks[:1] != [0] or not self.words[0].lower().startswith(b"data_"):
            self._raise(0, "content before the first data block")
        while k < len(self.marks):
            i, word = self.marks[k], self.words[self.marks[k]].lower()
            if word == b"loop_":
                k = self._loop(k, ends, {} if in_frame else places)
                continue
            if word.startswith(b"_"):
                self._add([i], range(i + 1, ends[k]), {} if in_frame else places)
            elif ends[k] > i + 1:
                self._raise(i + 1, "value without a tag")
            elif word.startswith(b"data_"):
                self._close(blocks, places)
                blocks.append(ParsedBlock(decode_text(self.words[i][5:])))
                places, in_frame = {}, False
            elif word.startswith(b"save_"):
                in_frame = word != b"save_"
            k += 1
        self._close(blocks, places)
        return blocks

    def _close(self, blocks: list[ParsedBlock], places: dict[str, dict[str, range]]) -> None:
        """Set the categories of the last block."""
        if blocks:
            blocks[-1].tables = {name: TokenTable(self.words, items, self.quoted) for name, items in places.items()}

    def _loop(self, k: int, ends: list[int], places: dict[str, dict[str, range]]) -> int:
        """Add a loop; return the mark after it."""
        first = k + 1
        k = first
        while k < len(self.marks) and self.marks[k] == self.marks[first - 1] + 1 + k - first:
            if not self.words[self.marks[k]].startswith(b"_"):
                break
            k += 1
        tags = self.marks[first:k]
        if not tags:
            self._raise(self.marks[first - 1], "loop_ without tags")
        self._add(tags, range(tags[-1] + 1, ends[k - 1]), places, is_loop=True)
        return k

    def _add(
        self, tags: list[int], values: range, places: dict[str, dict[str, range]], *, is_loop: bool = False
    ) -> None:
        """Add the values after tags to the columns."""
        if len(values) % len(tags) if is_loop else len(values) != 1:
            self._raise(
                tags[0], f"{len(values)} values for {len(tags)} tags from {decode_text(self.words[tags[0]])} on"
            )
        for k, tag in enumerate(tags):
            category, item = split_tag(self.words[tag])
            items = places.setdefault(category, {})
            if item in items:
                self._raise(tag, f"tag {decode_text(self.words[tag])} is repeated")
            items[item] = values[k :: len(tags)]

    def _raise(self, word: int, problem: str) -> NoReturn:
        """Raise an error with the line of a word."""
        first, start = self.runs[bisect_right(self.runs, (word, len(self.content))) - 1]
        words = re.compile(rb"\S+").finditer(self.content, start)
        position = next((m.start() for i, m in enumerate(words, first) if i == word), len(self.content))
        line = self.content.count(b"\n", 0, position) + 1
        raise StructureFileError(f"{self.where}: {problem} (line {line}). Is the file complete CIF?")
