"""Triggers from words: `early every 1 minute`, `every 10 rows`; or as they print themselves.

Words are a short way to write an expression: `early every 1 minute` is `AfterWatermark(early=AtPeriod('1 minute'),
late=AfterCount(1))`. They have no parentheses, so a trigger of several triggers is written as an expression, and each
of its parts may be a text again: `FirstOf('after 10 rows', 'after 1 minute')`.

A text is read when the trigger is given, so a flow, its fingerprint and a checkpoint have the trigger alone. No text is
run as code: it may call triggers, and expressions of columns, with plain values.

Guarded by tests/triggers/test_words.py.
"""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Iterable, Mapping
from typing import Any

from ..advice import our_name
from ..combiners.read_repr import EXPRESSIONS, Unreadable, read_value
from ..errors import InvalidArgument, nearest
from ..windows.texts import quoted, reading, require_short

TRIGGER_WORDS = (
    "'watermark', 'early every 1 minute', 'early every 10 rows, late every 5 rows', 'each row', 'every 10 rows', "
    "'every 1 minute of event time', 'repeatedly after 5 seconds', 'every 10 rows and clear', 'never'"
)
"""Examples of all the words."""

_OF_A_FLOW = re.compile(r"\bOnSignal\(")
"""The trigger that no text can have, because it is made of a flow."""

_FORM = f"a trigger such as {TRIGGER_WORDS}, or AfterWatermark()"
_WHOLE: Mapping[str, str] = {
    **dict.fromkeys(("watermark", "at the end", "end"), "AfterWatermark(late=AfterCount(1))"),
    **dict.fromkeys(("each row", "always"), "Always()"),
    "never": "Never()",
}
_WORDS = (
    *("watermark", "early", "late", "every", "after", "each", "row", "rows", "always", "never", "repeatedly"),
    *("bytes", "event", "time", "percent", "of", "the", "sources", "files", "at", "end", "and", "clear"),
)
_AMOUNT = re.compile(r"(\d{1,18}) ?(rows?|bytes?)")
_OF_ROWS = re.compile(r"\d+ ?(row|byte)s?\b")
_PERCENT = re.compile(r"after (\d{1,3}(?:\.\d{1,9})?) ?(?:%|percent) of (?:the )?(sources|files)")
_EVENT_TIME = " of event time"
_CLEAR = " and clear"


def read_trigger(text: str, kinds: Mapping[str, type]) -> Any:
    """The trigger of a text in words or as an expression; `kinds` are the triggers that it may name.

    >>> from uncombine.triggers.words import read_trigger
    >>> import uncombine as uc
    >>> read_trigger("every 10 rows", {"Repeatedly": uc.Repeatedly, "AfterCount": uc.AfterCount})
    Repeatedly(AfterCount(10))
    >>> read_trigger("OnResult(col('total') > 100)", {"OnResult": uc.OnResult})
    OnResult(col('total') > 100)
    """
    require_short(text, "a trigger")
    if _OF_A_FLOW.search(text):
        raise InvalidArgument("OnSignal(flow) takes a flow, for which a text has no words: give the trigger as a value")
    with reading(text, _FORM):
        expression = text if "(" in text else expression_of(text)
        if expression is None:
            raise InvalidArgument(f"{quoted(text)} is not {_FORM}{_hint(text, kinds)}")
        try:
            made = read_value(expression, {**EXPRESSIONS, **kinds})
        except Unreadable as unreadable:
            raise InvalidArgument(_refusal(unreadable.part, kinds)) from None
    if not isinstance(made, tuple(kinds.values())):
        raise InvalidArgument(f"{quoted(text)} is not {_FORM}")
    return made


def expression_of(text: str) -> str | None:
    """The expression that words stand for; None if they are of no known form.

    >>> from uncombine.triggers.words import expression_of
    >>> expression_of("early every 1 minute")
    "AfterWatermark(early=AtPeriod('1 minute'), late=AfterCount(1))"
    >>> expression_of("after 10 rows")
    'AfterCount(10)'
    """
    words = " ".join(text.split()).casefold()
    if words.startswith(("early ", "late ")):
        return _around_the_end(words)
    if words.endswith(_CLEAR) and (whole := _WHOLE.get(words.removesuffix(_CLEAR))):
        return f"Clearing({whole})"
    if (again := words.removeprefix("repeatedly ")) != words or words.startswith("every "):
        part = _part(again)
        return part and f"Repeatedly({part})"
    return _WHOLE.get(words) or _part(words)


def _around_the_end(words: str) -> str | None:
    """`early ...`, `late ...` or both; late rows give a pane each if `late` is not said."""
    before, said, after = f" {words}".partition(" late ")
    late = _part(after) if said else "AfterCount(1)"
    if not before:
        return late and f"AfterWatermark(late={late})"
    early = _part(before.removeprefix(" early ").removesuffix(","))
    return early and late and f"AfterWatermark(early={early}, late={late})"


def _part(words: str) -> str | None:
    """The trigger of `every ...` or `after ...`, which fires once; `each row` needs no other word."""
    if words.endswith(_CLEAR):
        part = _part(words.removesuffix(_CLEAR))
        return part and f"Clearing({part})"
    if match := _PERCENT.fullmatch(words):
        kind = "FilesPercentile" if match[2] == "files" else "WatermarkPercentile"
        return f"{kind}({match[1].lstrip('0') or '0'})"
    kind, _, amount = words.partition(" ")
    if kind not in ("every", "after") or not amount:
        return _WHOLE.get(words) if words in ("each row", "always", "never") else None
    if match := _AMOUNT.fullmatch("1 row" if amount == "row" else amount):
        return f"{'AfterBytes' if match[2].startswith('byte') else 'AfterCount'}({int(match[1])})"
    if _OF_ROWS.match(amount):
        return None
    _require_unit(amount)
    length = amount.removesuffix(_EVENT_TIME)
    domain = ", domain='event'" if length != amount else ""
    return f"{'AtPeriod' if kind == 'every' else 'AfterDelay'}({length!r}{domain})"


def _require_unit(amount: str) -> None:
    """Raise for a number of something that is written nearly like rows or bytes."""
    unit = re.fullmatch(r"\d{1,18} ?([a-z]+)", amount)
    near = difflib.get_close_matches(unit[1], ("rows", "bytes"), n=1) if unit else []
    if near:
        raise InvalidArgument(f"{quoted(amount)} has the unknown unit {unit and unit[1]!r}: did you mean {near[0]!r}?")


def _refusal(part: ast.AST, kinds: Iterable[str]) -> str:
    """The sentence about a part of an expression that is not read."""
    if isinstance(part, ast.Name):
        return f"there is no {part.id}: {nearest(our_name(part.id, kinds) or part.id, kinds)}"
    return f"{quoted(ast.unparse(part))} is neither a call of a public name nor a plain value"


def _hint(text: str, kinds: Iterable[str]) -> str:
    """The end of the sentence about words that are not read: the word to write, if one is near."""
    for word in re.findall("[a-z]+", text.casefold()):
        if word not in _WORDS and (near := difflib.get_close_matches(word, _WORDS, n=1)):
            return f": did you mean {near[0]!r}?"
    first, *_ = [*text.split(), ""]
    ours = our_name(first, kinds)
    return f": did you mean {ours}()?" if ours else ""


__all__ = ["TRIGGER_WORDS", "expression_of", "read_trigger"]


def __dir__() -> list[str]:
    return __all__
