"""Places of words in mmCIF text."""

from __future__ import annotations

from functools import cached_property

import numpy as np

__all__ = ["WordPlaces"]

_TAB, _NEWLINE, _SPACE, _SEMICOLON, _UNDERSCORE = (ord(c) for c in "\t\n ;_")
_LOWER = 0x20  # the bit that a capital letter lacks


class WordPlaces:
    r"""Places of tags and reserved words in a text, all found in one pass.

    Case is ignored, by one bit of a character, which makes a few characters beyond letters equal too: a count may be
    too large, never too small.

    Parameters
    ----------
    text : bytes
        mmCIF, with line feeds as line ends.

    Examples
    --------
    >>> places = WordPlaces(b"data_x\n_Cell.a 1 _cell.b 2\n")
    >>> places.find(b"_cell.").tolist(), places.find(b"data_").tolist()
    ([7, 17], [0])
    """

    def __init__(self, text: bytes) -> None:
        self._chars = np.frombuffer(text, np.uint8)
        self._underscores = np.flatnonzero(self._chars == _UNDERSCORE)

    @cached_property
    def _tags(self) -> np.ndarray:
        """Places of underscores that begin a word."""
        return self._underscores[self._begins_word(self._underscores)]

    def _begins_word(self, place: np.ndarray) -> np.ndarray:
        before = self._chars[place - 1]  # of place 0, the last character; the text may begin with a word
        return (before == _SPACE) | (before == _NEWLINE) | (before == _TAB) | (place == 0)

    def find(self, word: bytes) -> np.ndarray:
        """Return the places ``(P,)``, ascending, at which a word begins after white space, or at the start of the text.

        Parameters
        ----------
        word : bytes
            Lower case, with an underscore at the beginning or, only there, at the end.
        """
        place = self._tags if word.startswith(b"_") else self._underscores + 1 - len(word)
        place = place[(place >= 0) & (place + len(word) <= len(self._chars))]
        for i, char in enumerate(word):
            place = place[self._chars[place + i] | _LOWER == char | _LOWER]
        return place[self._begins_word(place)]

    @cached_property
    def _text_fields(self) -> np.ndarray:
        """Places of semicolons in the first column, which begin and end text fields."""
        places = np.flatnonzero(self._chars == _SEMICOLON)
        return places[(self._chars[places - 1] == _NEWLINE) | (places == 0)]

    def in_text_field(self, place: int) -> bool:
        """Return True if a place is between the semicolons of a text field, in a text that begins outside one."""
        return bool(np.searchsorted(self._text_fields, place) % 2)
