"""Windows from words: `5 minutes`, `sessions 30 minutes`, `calendar day Europe/Berlin`; or as they print themselves.

A window is a value, and its words are one way to write it: the text is read when the window is given, so a flow, its
fingerprint and a checkpoint have the window alone. No text is run as code: it may call a window with plain values.

Guarded by tests/windows/test_words.py.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import numpy as np

from ..advice import our_name
from ..errors import InvalidArgument, nearest
from .calendar import UNITS, Calendar
from .custom import Custom
from .fixed import Fixed
from .global_window import Global
from .inherit import Inherit
from .sessions import Sessions
from .sliding import Sliding
from .spans import Length, Span
from .texts import quoted, reading, require_short
from .window import Window

_KINDS: Mapping[str, type[Window]] = {
    kind.__name__: kind for kind in (Calendar, Custom, Fixed, Global, Inherit, Sessions, Sliding)
}

_FORMS: Mapping[str, str] = {
    "fixed": "fixed 1 minute",
    "sliding": "sliding 1 hour every 5 minutes",
    "sessions": "sessions 30 minutes",
    "calendar": "calendar day Europe/Berlin",
    "global": "global",
    "inherit": "inherit",
}
"""An example of each kind of window that has words, by its first word."""

WINDOW_WORDS = ", ".join(map(repr, ["5 minutes", "1 month", *_FORMS.values()]))
"""Examples of all the words."""

_FORM = f"a window such as {WINDOW_WORDS}, or Fixed('1 minute')"
_LENGTH = re.compile(r"[+-]?\d|interval ", re.IGNORECASE)
_UNEQUAL = re.compile(r"(\d+)\s*(month|quarter|year)s?", re.IGNORECASE)


def as_window(value: Window | Length, who: str = "window=") -> Window:
    """The window that a value stands for: a window, its words, or a length of time.

    A length is the size of fixed windows. One month, one quarter and one year are those of the calendar in UTC.

    Parameters
    ----------
    value
        The window, a text, a `timedelta` or a Span.
    who
        The argument that takes the window, for the error.

    Returns
    -------
    Window
        The window.

    Examples
    --------
    >>> from uncombine.windows.words import as_window
    >>> as_window("sessions 30 minutes"), as_window("5 minutes"), as_window("1 month")
    (Sessions('30 minutes'), Fixed('5 minutes'), Calendar('month'))
    >>> as_window("Fixed('1 day', offset='6 hours')")
    Fixed('1 day', offset='6 hours')
    """
    if isinstance(value, Window):
        return value
    if isinstance(value, str):
        return _read(str(value))
    if isinstance(value, Span | timedelta | np.timedelta64):
        return Fixed(value)
    raise InvalidArgument(
        f"{who} takes a window such as Fixed('1 minute') or 'sessions 30 minutes', but was given {value!r}"
    )


def _read(text: str) -> Window:
    require_short(text, "a window")
    with reading(text, _FORM):
        window = _called(text) if "(" in text else _said(text)
    if window is None:
        raise InvalidArgument(f"{quoted(text)} is not {_FORM}{_hint(text)}")
    return window


def _said(text: str) -> Window | None:
    """The window of some words; None if they are of no known form."""
    words = " ".join(text.split())
    if calendar := _UNEQUAL.fullmatch(words):
        return _of_calendar(text, calendar[1], calendar[2].lower())
    if _LENGTH.match(words):
        return Fixed(words)
    kind, _, rest = words.partition(" ")
    match kind.casefold():
        case "global" if not rest:
            return Global()
        case "inherit" if not rest:
            return Inherit()
        case "fixed" if rest:
            return Fixed(rest)
        case "sessions" | "session" if rest:
            return Sessions(rest)
        case "sliding" if len(parts := re.split(" every ", rest, maxsplit=1, flags=re.IGNORECASE)) == 2:
            return Sliding(*parts)
        case "calendar" if rest:
            unit, _, zone = rest.partition(" ")
            return Calendar(unit, tz=zone) if zone else Calendar(unit)
    return None


def _of_calendar(text: str, count: str, unit: str) -> Window:
    if count != "1":
        raise InvalidArgument(
            f"{quoted(text)} is not the length of a window, because {unit}s differ in length: write '1 month', "
            "'1 quarter' or '1 year', or uc.Custom(function) for others"
        )
    return Calendar(unit)


def _called(text: str) -> Window | None:
    """The window of an expression; None for an expression that is no call of a name with plain values."""
    match ast.parse(text.strip(), mode="eval").body:
        case ast.Call(func=ast.Name(id=name), args=values, keywords=named) if all(k.arg is not None for k in named):
            if name not in _KINDS:
                raise InvalidArgument(f"there is no window {name}: {nearest(our_name(name, _KINDS) or name, _KINDS)}")
            kind: type[Any] = _KINDS[name]
            window: Window = kind(*map(_plain, values), **{str(k.arg): _plain(k.value) for k in named})
            return window
    return None


def _plain(part: ast.expr) -> Any:
    try:
        return ast.literal_eval(part)
    except ValueError:
        raise InvalidArgument(
            f"{quoted(ast.unparse(part))} is not a plain value, as the text of a window has"
        ) from None


def _hint(text: str) -> str:
    """The end of the sentence about words that are not read: the word to write, if one is near."""
    first, *_ = [*text.split(), ""]
    word = first.casefold()
    if word in _FORMS:
        return f": write {_FORMS[word]!r}"
    if word.removesuffix("s") in UNITS:
        return f": did you mean {'calendar ' + word.removesuffix('s')!r}?"
    near = (our_name(first, _KINDS) or "").casefold()
    return f": did you mean {near!r}?" if near in _FORMS else ""


__all__ = ["WINDOW_WORDS", "as_window"]


def __dir__() -> list[str]:
    return __all__
