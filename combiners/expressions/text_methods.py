"""Methods of texts, which an expression has under `x.str`.

A character is a code point, so that é can be one or two of them. Null stays null. Patterns are regular expressions of
RE2, whose size of memory and time are bounded: they have no look-around and no references back.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from ...errors import InvalidArgument
from .methods import E, Methods, require_text, require_whole
from .missing_methods import OF_TEXTS
from .text import Named

_FURTHEST = 2**31 - 2
"""Arrow counts the characters of a text in 32 bits."""


class TextMethods(Methods[E]):
    """Methods of texts, such as `x.str.to_lowercase()`.

    `lower`, `upper`, `strip`, `trim`, `len` and `length` are second names, as pandas and Spark have them.

    >>> import pyarrow as pa, uncombine as uc
    >>> uc.col("x").str.strip_chars().str.to_uppercase().evaluate(pa.table({"x": [" ada ", None]})).to_pylist()
    ['ADA', None]
    """

    _name = "str"
    _advice = OF_TEXTS

    def to_lowercase(self) -> E:
        """The text in small letters, each character for itself."""
        return self._of("to_lowercase")

    def to_uppercase(self) -> E:
        """The text in capital letters, each character for itself."""
        return self._of("to_uppercase")

    def strip_chars(self, characters: str | None = None) -> E:
        """The text without these characters at both ends; None stands for all white space."""
        return self._of("strip_chars", *_characters(characters))

    def strip_chars_start(self, characters: str | None = None) -> E:
        """The text without these characters at its start; None stands for all white space."""
        return self._of("strip_chars_start", *_characters(characters))

    def strip_chars_end(self, characters: str | None = None) -> E:
        """The text without these characters at its end; None stands for all white space."""
        return self._of("strip_chars_end", *_characters(characters))

    def contains(self, pattern: str, *, literal: bool = False) -> E:
        """True if the pattern matches a part of the text, or if the text has it as it is (`literal=True`)."""
        return self._of("contains", _pattern(pattern, literal), *_literal(literal))

    def starts_with(self, prefix: str) -> E:
        """True if the text starts with these characters."""
        return self._of("starts_with", require_text(prefix, "the prefix of starts_with()"))

    def ends_with(self, suffix: str) -> E:
        """True if the text ends with these characters."""
        return self._of("ends_with", require_text(suffix, "the suffix of ends_with()"))

    def replace(self, pattern: str, value: str, *, literal: bool = False) -> E:
        r"""The text with `value` for the first match of the pattern; `\1` stands for its first group."""
        return self._of("replace", *_replacement(pattern, value, literal), *_literal(literal))

    def replace_all(self, pattern: str, value: str, *, literal: bool = False) -> E:
        r"""The text with `value` for each match of the pattern; `\1` stands for its first group."""
        return self._of("replace_all", *_replacement(pattern, value, literal), *_literal(literal))

    def slice(self, offset: int, length: int | None = None) -> E:
        """So many characters from an offset on, as `text[offset:][:length]`; an offset below 0 counts from the end."""
        start = require_whole(offset, "the offset of slice()")
        if abs(start) > _FURTHEST:
            raise InvalidArgument(f"the offset of slice() must be between -{_FURTHEST} and {_FURTHEST}, but is {start}")
        if length is None:
            return self._of("slice", start)
        size = require_whole(length, "the length of slice()")
        if not 0 <= size <= _FURTHEST:
            raise InvalidArgument(f"the length of slice() must be between 0 and {_FURTHEST}, but is {size}")
        return self._of("slice", start, size)

    def split_part(self, by: str, index: int) -> E:
        """A part of the text between separators, as `text.split(by)[index]`, which counts from 0; null if none."""
        place = require_whole(index, "the index of split_part()")
        if abs(place) > _FURTHEST:
            raise InvalidArgument(f"the index of split_part() must be between -{_FURTHEST} and {_FURTHEST}")
        return self._of("split_part", require_text(by, "the separator of split_part()", empty=False), place)

    def len_chars(self) -> E:
        """The number of characters."""
        return self._of("len_chars")

    def len_bytes(self) -> E:
        """The number of bytes in UTF-8."""
        return self._of("len_bytes")

    # The names of pandas and Spark.
    lower, upper, strip, trim, len, length = to_lowercase, to_uppercase, strip_chars, strip_chars, len_chars, len_chars


def _characters(characters: str | None) -> tuple[str, ...]:
    return () if characters is None else (require_text(characters, "characters of strip_chars()"),)


def _literal(literal: bool) -> tuple[Named, ...]:
    if not isinstance(literal, bool):
        raise InvalidArgument(f"literal= must be True or False, but is {literal!r}")
    return (Named("literal", True),) if literal else ()


def _pattern(pattern: str, literal: bool) -> str:
    text = require_text(pattern, "a pattern")
    if not literal:
        try:
            pc.match_substring_regex(pa.array([""]), text)
        except pa.ArrowInvalid as error:
            raise InvalidArgument(
                f"{text!r} is no regular expression of RE2 ({_reason(error)}): mend it, or give literal=True"
            ) from None
    return text


def _replacement(pattern: str, value: str, literal: bool) -> tuple[str, str]:
    text, new = _pattern(pattern, literal), require_text(value, "the value of replace()")
    if literal:
        require_text(text, "a literal pattern of replace()", empty=False)
        return text, new
    try:
        pc.replace_substring_regex(pa.array([""]), text, new)
    except pa.ArrowInvalid as error:
        raise InvalidArgument(
            rf"{new!r} does not replace a match of {text!r} ({_reason(error)}): write \1 for a group, \\ for \ itself"
        ) from None
    return text, new


def _reason(error: pa.ArrowInvalid) -> str:
    return str(error).partition("\n")[0]
