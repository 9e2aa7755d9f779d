"""Read ``atom_site`` and a few other categories of mmCIF text without parsing the rest of the file.

The rows of a loop are a table of characters if every row has the same length and every value begins in the same column
of each row, as in the files of the Protein Data Bank and AlphaFold DB; the columns are then slices. Rows with one value
after another are split at white space. Both conditions are verified for the whole loop; every other file is parsed by
:mod:`protgraph.structure.io.cif_parse`, e.g. one with two blocks, save frames, values with blanks in ``atom_site``, or
categories in several parts.

Not gemmi: it takes 46 ms to parse 1igy and to convert the columns of ``atom_site`` that are read to lists of str, this
12 ms to arrays with all numbers (gemmi 0.7.5, 2026-11-22).
"""

from __future__ import annotations

import re
from functools import cached_property

import numpy as np

from protgraph.structure.io.cif_column import CategoryTable, ColumnValues
from protgraph.structure.io.cif_parse import ParsedBlock, TokenTable, parse_cif, split_tag
from protgraph.structure.io.cif_words import WordPlaces

__all__ = ["AlignedTable", "TextBlock", "find_atom_site"]

_ATOM_SITE = b"_atom_site."
_HEAD = re.compile(rb"(?:[ \t\n]+|#[^\n]*)*data_([^\0- ]*)", re.IGNORECASE)
_FOLLOWS_LOOP = re.compile(rb"\n[ \t]*loop_[ \t\n]*\Z", re.IGNORECASE)
_AFTER_LOOP = re.compile(rb"(?:[ \t\n]+|#[^\n]*)*(?:\Z|_|(?:loop|data|save)_)", re.IGNORECASE)
_END_OF_ROWS = re.compile(rb"\n(?=[ \t]*(?:#|_|loop_|data_|save_))", re.IGNORECASE)
_CONTROL = bytes(c for c in range(32) if c not in b"\t\n") + b"\x7f"
_SECTION = re.compile(rb"^[ \t]*(?:_[^.\s]+\.?|loop_|data_|save_)", re.MULTILINE | re.IGNORECASE)
_RESERVED_WORDS = (b"loop_", b"data_", b"save_", b"stop_", b"global_")
_SPACE, _NEWLINE, _DOT, _QUESTION, _SINGLE, _DOUBLE = (ord(c) for c in " \n.?'\"")
_HASH, _UNDERSCORE, _SEMICOLON = (ord(c) for c in "#_;")
_BLOCK = 2**12  # rows at once, which stay in the cache


class AlignedTable:
    """Rows of equal length in which every value begins in the same column.

    Parameters
    ----------
    names : tuple of str
        Names of the columns.
    table : ndarray
        ``(rows, characters)`` uint8, with the line ends.
    starts : tuple of int
        First character of each column, and the number of characters of a row.
    is_quoted : ndarray
        ``(rows, columns)`` bool; ``(0, 0)`` if no value is quoted.
    """

    def __init__(
        self, names: tuple[str, ...], table: np.ndarray, starts: tuple[int, ...], is_quoted: np.ndarray
    ) -> None:
        self.names, self.size = names, len(table)
        self._table, self._starts, self._is_quoted = table, starts, is_quoted

    def column(self, name: str, rows: slice | np.ndarray = slice(None)) -> ColumnValues:
        """Return the values of a column in some rows, a slice or ``(R,)``, without blanks at their ends or quotes."""
        i = self.names.index(name)
        table = self._table[rows, self._starts[i] : self._starts[i + 1]]  # (rows, width + 1), at least one blank each
        chars = _by_character(table)  # (width + 1, rows)
        mask, first = None, chars[0]
        is_null = (first == _DOT) | (first == _QUESTION)
        if is_null.any():
            mask = (first == _DOT) + np.uint8(2) * (first == _QUESTION)
            mask *= chars[1] <= _SPACE
        if self._is_quoted.size and (quoted := np.flatnonzero(self._is_quoted[rows, i])).size:
            inside = chars[:, quoted]
            inside[(inside > _SPACE).sum(axis=0) - 1, np.arange(len(quoted))] = _SPACE
            chars[:-1, quoted], chars[-1, quoted] = inside[1:], _SPACE
        width = len(chars) - 1
        while width > 1 and chars[width - 1].max(initial=0) <= _SPACE:
            width -= 1
        return ColumnValues(chars[:width], mask if mask is not None and mask.any() else None)

    def characters(self, name: str, rows: slice | np.ndarray = slice(None)) -> np.ndarray:
        """Return the values of a column as they are in the file, with their quotes, ``(R,)`` bytes.

        Parameters
        ----------
        name : str
        rows : slice or ndarray
            ``(R,)`` indices or mask.
        """
        i = self.names.index(name)
        chars = self._table[rows, self._starts[i] : self._starts[i + 1] - 1]
        width = chars.shape[1]
        return np.maximum(chars, np.uint8(_SPACE)).view(f"S{width}")[:, 0]


class TextBlock:
    """The only block of a file, of which ``atom_site`` has been found.

    Parameters
    ----------
    name : str
        Text after "data_".
    site : AlignedTable or TokenTable
    rest : bytes
        Content without the loop of ``atom_site``.
    where : str
        Name of the file, for errors.
    """

    def __init__(self, name: str, site: CategoryTable, rest: bytes, where: str) -> None:
        self.name, self.rest, self._site, self._where = name, rest, site, where
        self._words = WordPlaces(rest)

    def get(self, category: str) -> CategoryTable | None:
        """Return a category; None if the block does not have it."""
        if category == "atom_site":
            return self._site
        tag = f"_{category.lower()}.".encode()
        tags = self._words.find(tag)
        if len(tags) == 0:
            return None
        found = self._in_one_part(tag, int(tags[0]), category)
        return found if found is not None and len(found.names) == len(tags) else self._parsed.get(category)

    @cached_property
    def _parsed(self) -> ParsedBlock:
        return parse_cif(self.rest, self._where)[0]

    @property
    def is_only(self) -> bool:
        """True if the file has no other block, no save frame, and no other tag of ``atom_site``."""
        return [len(self._words.find(word)) for word in (b"data_", b"save_", _ATOM_SITE)] == [1, 0, 0]

    def _in_one_part(self, tag: bytes, first: int, category: str) -> CategoryTable | None:
        """Parse the statements from the first tag of a category to the next tag of another; None if that is unsafe."""
        text = self.rest
        start = text.rfind(b"\n", 0, first) + 1
        if start == 0 or text[start:first].strip(b" \t") or self._words.in_text_field(start):
            return None
        line_end, line = start, b""
        while line_end > 0 and (not line or line.startswith(b"#")):  # the last line before with other content
            line_start = text.rfind(b"\n", 0, line_end - 1) + 1
            line, line_end = text[line_start:line_end].strip().lower(), line_start
        if line == b"loop_":
            start = line_end
        elif line.endswith(b"loop_"):
            return None
        end = len(text)
        for match in _SECTION.finditer(text, first):
            if match[0].strip().lower() != tag and not self._words.in_text_field(match.start()):
                end = match.start()
                break
        if text[start:end].rstrip().lower().endswith(b"loop_"):
            return None
        return parse_cif(b"data_\n" + text[start:end], self._where)[0].get(category)


def find_atom_site(content: bytes, where: str) -> TextBlock | None:
    """Find the loop of ``atom_site`` in a file with one data block.

    Parameters
    ----------
    content : bytes
        mmCIF, with line feeds as line ends and one at the end.
    where : str
        Name of the file, for errors.

    Returns
    -------
    TextBlock or None
        None unless it is certain that the loop is the whole category and that each value is between white space.
    """
    head, (start, _) = _HEAD.match(content), _find_line(content, _ATOM_SITE)
    if head is None or start < head.end():
        return None
    loop = _FOLLOWS_LOOP.search(content, max(0, start - 80), start)
    if loop is None:
        return None
    names, rows = _tags(content, start)
    if len(set(names)) < len(names):
        return None
    found = _align(content, rows, names) or _split(content, rows, names)
    if found is None:
        return None
    table, end = found
    block = TextBlock(head[1].decode("ascii", "replace"), table, content[: loop.start() + 1] + content[end:], where)
    return block if block.is_only else None


def _find_line(text: bytes, tag: bytes) -> tuple[int, int]:
    """Return the first line that begins with a tag, and the tag in it; -1, -1 if there is none outside text fields."""
    place = text.find(tag)
    while place >= 0:
        start = text.rfind(b"\n", 0, place) + 1
        if start and not text[start:place].strip(b" \t"):
            is_inside = (text.count(b"\n;", 0, start) + text.startswith(b";")) % 2
            return (-1, -1) if is_inside else (start, place)
        place = text.find(tag, place + 1)
    return -1, -1


def _tags(content: bytes, start: int) -> tuple[tuple[str, ...], int]:
    """Return the items of the tags of ``atom_site``, one per line, and the position of the first line after them."""
    names = []
    while (end := content.find(b"\n", start)) >= 0:
        line = content[start:end].strip()
        if line[: len(_ATOM_SITE)].lower() != _ATOM_SITE or len(line.split(None, 1)) > 1:
            break
        names.append(split_tag(line)[1])
        start = end + 1
    return tuple(names), start


def _align(content: bytes, start: int, names: tuple[str, ...]) -> tuple[AlignedTable, int] | None:
    """Return the rows from a position on as an aligned table, and its end; None if they are not aligned."""
    for find_rows in (_equal_rows, _padded_rows):
        table, end = find_rows(content, start)
        if len(table) and _AFTER_LOOP.match(content, end):
            bounds = _column_bounds(table)
            if len(bounds) == len(names) + 1:
                is_quoted = _quoted_values(table, bounds, content[start:end])
                return None if is_quoted is None else (AlignedTable(names, table, bounds, is_quoted), end)
    return None


def _equal_rows(content: bytes, start: int) -> tuple[np.ndarray, int]:
    """Return lines as long as the first one, ``(rows, characters)`` uint8, up to the end of a loop, and its end."""
    width = content.find(b"\n", start) + 1 - start
    table = np.frombuffer(content, np.uint8, (len(content) - start) // width * width, start).reshape(-1, width)
    is_row = (table[:, -1] == _NEWLINE) & (table[:, 0] != _HASH) & (table[:, 0] != _UNDERSCORE)
    table = table if is_row.all() else table[: is_row.argmin()]
    return table, start + table.size


def _padded_rows(content: bytes, start: int) -> tuple[np.ndarray, int]:
    """Return lines of any length, filled up with line ends; see :func:`_equal_rows`."""
    end = _end_of_rows(content, start)
    chars = np.frombuffer(content, np.uint8, end - start, start)
    last = np.flatnonzero(chars == _NEWLINE)
    if len(last) == 0:
        return np.zeros((0, 1), np.uint8), end
    first = np.concatenate([[0], last[:-1] + 1])
    size = last - first
    width = int(size.max()) + 1
    filled = np.concatenate([chars, np.full(width, _NEWLINE, np.uint8)])
    table = np.lib.stride_tricks.sliding_window_view(filled, width)[first]
    np.putmask(table, np.arange(width) > size[:, None], np.uint8(_NEWLINE))
    return table, end


def _end_of_rows(content: bytes, start: int) -> int:
    match = _END_OF_ROWS.search(content, start - 1)
    return len(content) if match is None else match.start() + 1


def _by_character(table: np.ndarray) -> np.ndarray:
    """Return ``(characters, rows)``, contiguous, of ``(rows, characters)``.

    NumPy copies one character of all rows after another; of a long table, each of them would be read from memory again.
    """
    chars = np.empty(table.shape[::-1], table.dtype)
    for start in range(0, len(table), _BLOCK):
        rows = slice(start, start + _BLOCK)
        chars[:, rows] = table[rows].T
    return chars


def _column_bounds(table: np.ndarray) -> tuple[int, ...]:
    """Return the first characters of the columns and the width of the table; () unless all rows agree."""
    bounds = None
    for start in range(0, len(table), _BLOCK):
        block = table[start : start + _BLOCK]
        flat = block.ravel()
        if (block[0] > _SPACE)[-1] or np.count_nonzero(flat < _SPACE) != np.count_nonzero(flat == _NEWLINE):
            return ()
        is_char = flat > _SPACE
        is_start = is_char.copy()
        np.greater(is_char[1:], is_char[:-1], out=is_start[1:])
        first = is_start[: table.shape[1]].tobytes()
        bounds = first if bounds is None else bounds
        if first != bounds or is_start.tobytes() != bounds * len(block):  # a third of the time of comparing arrays
            return ()
    return (*np.flatnonzero(np.frombuffer(bounds, bool)).tolist(), table.shape[1])


def _quoted_values(table: np.ndarray, bounds: tuple[int, ...], region: bytes) -> np.ndarray | None:
    """Return True for quoted values, ``(rows, columns)`` bool, or ``(0, 0)`` if none is; None if one is no value."""
    if not region.isascii() or _has_reserved_word(region):
        return None
    if not any(c in region for c in (b"'", b'"', b"#", b"_", b";")):
        return np.zeros((0, 0), bool)
    heads = table[:, bounds[:-1]]
    if np.isin(heads, (_HASH, _UNDERSCORE)).any() or (table[:, 0] == _SEMICOLON).any():
        return None
    is_quoted = (heads == _SINGLE) | (heads == _DOUBLE)
    return is_quoted if _are_closed(table, bounds, is_quoted) else None


def _are_closed(table: np.ndarray, bounds: tuple[int, ...], is_quoted: np.ndarray) -> bool:
    """Return True if each value that begins with a quote ends with it."""
    for i in np.flatnonzero(is_quoted.any(axis=0)).tolist():
        chars = table[is_quoted[:, i], bounds[i] : bounds[i + 1]]
        length = (chars > _SPACE).sum(axis=1)
        if (length < 2).any() or (chars[np.arange(len(chars)), length - 1] != chars[:, 0]).any():
            return False
    return True


def _split(content: bytes, start: int, names: tuple[str, ...]) -> tuple[TokenTable, int] | None:
    """Return the rows from a position on, split at white space, and their end; None if a value may contain blanks."""
    end = _end_of_rows(content, start)
    region = content[start:end]
    if not names or not _AFTER_LOOP.match(content, end) or not _is_simple(region):
        return None
    values = region.split()
    if not values or len(values) % len(names):
        return None
    if any(c in region for c in (b"#", b"_")) and any(value[:1] in (b"#", b"_") for value in values):
        return None
    quoted = set()
    if b"'" in region or b'"' in region:
        quoted = {i for i, value in enumerate(values) if value[0] in (_SINGLE, _DOUBLE)}
        if any(len(values[i]) < 2 or values[i][0] != values[i][-1] for i in quoted):
            return None
        for i in quoted:
            values[i] = values[i][1:-1]
    places = {name: range(i, len(values), len(names)) for i, name in enumerate(names)}
    return TokenTable(values, places, quoted), end


def _is_simple(region: bytes) -> bool:
    """Return True for ASCII without control characters, text fields and reserved words."""
    if not region.isascii() or region.startswith(b";") or b"\n;" in region or _has_reserved_word(region):
        return False
    return len(region.translate(None, _CONTROL)) == len(region)


def _has_reserved_word(region: bytes) -> bool:
    return b"_" in region and any(word in region.lower() for word in _RESERVED_WORDS)
