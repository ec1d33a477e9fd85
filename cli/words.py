"""Windows, triggers and combiners from text, as the command line takes them: in words, or as they print themselves.

No text is run as code: an expression may only call public windows, triggers and combiners with plain values.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from typing import Any

from .. import combiners, triggers, windows
from ..combiners import Combiner
from ..combiners.read_repr import Unreadable, read_value
from ..errors import InvalidArgument, UncombineError, nearest
from ..triggers import AfterCount, AfterWatermark, Always, AtPeriod, Repeatedly, Trigger
from ..windows import Calendar, Fixed, Global, Sessions, Sliding, Window

_WINDOWS: Mapping[str, Any] = {name: getattr(windows, name) for name in windows.__all__}
_TRIGGERS: Mapping[str, Any] = {name: getattr(triggers, name) for name in triggers.__all__}
_COMBINERS: Mapping[str, Any] = {
    name: value
    for name in combiners.__all__
    if isinstance(value := getattr(combiners, name), type) and issubclass(value, Combiner)
} | {"col": combiners.col}

_OF_COLUMNS = [name for name in _COMBINERS if name not in ("Combiner", "PerKey", "Struct", "col")]
"""The combiners that `function:column` can make."""

_SHORT = {"avg": "Mean", "average": "Mean", "std": "StdDev", "stddev": "StdDev", "var": "Variance"}

_REFUSALS = (TypeError, ValueError, ArithmeticError, LookupError, AttributeError)
"""The errors of Python for arguments that make no sense."""

WINDOW_WORDS = "'fixed 1 minute', 'sliding 1 hour every 5 minutes', 'sessions 30 minutes', 'calendar day', 'global'"
LONGEST = 2_000
"""The characters of a text that is read."""

TRIGGER_WORDS = "'watermark', 'early every 1 minute', 'early every 10 rows', 'each row', 'every 10 rows'"


def window_of(text: str) -> Window:
    """A window from words or from an expression.

    >>> window_of("sessions 30 minutes"), window_of("Fixed('1 hour')")
    (Sessions('30 minutes'), Fixed('1 hour'))
    """
    _require_short(text)
    kind, _, rest = text.strip().partition(" ")
    rest = rest.strip()
    match kind.casefold():
        case "global":
            return Global()
        case "fixed" if rest:
            return Fixed(rest)
        case "sessions" | "session" if rest:
            return Sessions(rest)
        case "sliding" if " every " in f" {rest} ":
            size, _, period = rest.partition(" every ")
            return Sliding(size, period)
        case "calendar" if rest:
            unit, _, zone = rest.partition(" ")
            return Calendar(unit, tz=zone.strip()) if zone else Calendar(unit)
    return _value(text, _WINDOWS, Window, f"a window such as {WINDOW_WORDS}, or Fixed('1 minute')")


def trigger_of(text: str) -> Trigger:
    """A trigger from words or from an expression. Late rows give a pane each in those with words.

    >>> trigger_of("early every 1 minute")
    AfterWatermark(early=AtPeriod('1 minute'), late=AfterCount(1))
    >>> trigger_of("Repeatedly(AfterCount(10))")
    Repeatedly(AfterCount(10))
    """
    _require_short(text)
    words = " ".join(text.split()).casefold()
    if words in ("watermark", "at the end", "end"):
        return AfterWatermark(late=AfterCount(1))
    if words in ("each row", "always"):
        return Always()
    if found := re.fullmatch(r"(early )?every (\d{1,18}) rows?", words):
        count = AfterCount(int(found[2]))
        return AfterWatermark(early=count, late=AfterCount(1)) if found[1] else Repeatedly(count)
    if found := re.fullmatch(r"early every (\d.*)", words):
        return AfterWatermark(early=AtPeriod(found[1]), late=AfterCount(1))
    if found := re.fullmatch(r"every (\d.*)", words):
        return Repeatedly(AtPeriod(found[1]))
    return _value(text, _TRIGGERS, Trigger, f"a trigger such as {TRIGGER_WORDS}, or AfterWatermark()")


def combiner_of(text: str) -> tuple[str, Combiner]:
    """The name of a result and its combiner, from `name=function:column:argument` or `name=expression`.

    >>> combiner_of("total=sum:score"), combiner_of("n=count"), combiner_of("p=quantile:x:0.9")
    (('total', Sum('score')), ('n', Count()), ('p', Quantile('x', 0.9)))
    >>> combiner_of("total=Sum('score', exact=True)")
    ('total', Sum('score', exact=True))
    """
    _require_short(text)
    name, equals, made = text.partition("=")
    name, made = name.strip(), made.strip()
    what = "name=function:column such as total=sum:score, or total=Sum('score')"
    if not equals or not name or not made:
        raise InvalidArgument(f"--combine takes {what}, but was given {_shown(text)}")
    if "(" in made:
        return name, _value(made, _COMBINERS, Combiner, what)
    function, *arguments = made.split(":")
    plain = {known.casefold(): known for known in _OF_COLUMNS} | {k: v.casefold() for k, v in _SHORT.items()}
    called = plain.get(function.casefold().replace("_", ""), "")
    called = plain.get(called, called)
    if called not in _COMBINERS:
        near = nearest(function.casefold(), plain)
        raise InvalidArgument(f"--combine {_shown(text)}: there is no {_shown(function)}, {near}")
    if called == "Count" and arguments == ["*"]:
        arguments = []
    try:
        return name, _COMBINERS[called](*(_plain(part, first=i == 0) for i, part in enumerate(arguments)))
    except UncombineError:
        raise
    except _REFUSALS as error:
        raise InvalidArgument(f"--combine {_shown(text)}: {error}") from None


def _plain(text: str, first: bool) -> Any:
    """A column's name, or another argument as a number if it is one."""
    if first:
        return text
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return text


def _value(text: str, known: Mapping[str, Any], kind: type, what: str) -> Any:
    try:
        made = read_value(text, known)
    except Unreadable as unreadable:
        raise InvalidArgument(_refusal(unreadable.part, known)) from None
    except SyntaxError:
        raise InvalidArgument(f"{_shown(text)} is not {what}") from None
    except (RecursionError, MemoryError):  # Python's parser has its own word for too many levels
        raise InvalidArgument(f"{_shown(text)} is nested too deep to be {what}") from None
    except UncombineError:
        raise
    except _REFUSALS as error:
        raise InvalidArgument(f"{_shown(text)} is not {what}: {error}") from None
    if not isinstance(made, kind):
        raise InvalidArgument(f"{_shown(text)} is not {what}")
    return made


def _refusal(part: ast.AST, known: Mapping[str, Any]) -> str:
    """The sentence about a part of an expression that is not read."""
    if isinstance(part, ast.Name):
        return f"there is no {part.id}: {nearest(part.id, known)}"
    return f"{_shown(ast.unparse(part))} is neither a call of a public name nor a plain value"


def _require_short(text: str) -> None:
    if len(text) > LONGEST:
        raise InvalidArgument(
            f"a window, a trigger or a combiner has at most {LONGEST} characters, but {_shown(text)} has {len(text)}: "
            "write it in Python"
        )


def _shown(text: str) -> str:
    """The text for a message, shortened."""
    return repr(text) if len(text) <= 200 else f"{text[:200]!r}..."


__all__ = ["TRIGGER_WORDS", "WINDOW_WORDS", "combiner_of", "trigger_of", "window_of"]


def __dir__() -> list[str]:
    return __all__
