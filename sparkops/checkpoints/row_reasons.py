"""The fate of a row that would come to a grouping now, from its fingerprint and the windows that it holds.

A checkpoint does not know which rows came, but it knows all by which a row is judged: the filters, the windows, the
lateness and the watermark. Not promised: anything about functions of the user before the grouping.

Guarded by tests/sparkops/test_reasons.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from typing import Any

import numpy as np
import pyarrow as pa

from ... import windows
from ...combiners.expressions.expr import Expr
from ...combiners.read_repr import EXPRESSIONS, Unreadable, read_value
from ...errors import InvalidArgument, UncombineError
from ...windows import Span, Window, timestamp
from ...windows.grid import later
from ...windows.times import FIRST, LAST
from .contents import StoredStep
from .instants import timestamps_of

_WINDOWS = {name: getattr(windows, name) for name in ("Calendar", "Fixed", "Global", "Sessions", "Sliding")}

Held = Callable[[int, int], list[dict[str, Any]]]
"""The windows of the key that a state holds and that overlap a start and an end."""


def row_reason(step: StoredStep, row: Mapping[str, Any], held: Held) -> str:
    """The sentence about a row of a grouping."""
    made_by = step.made_by
    (column, *_) = made_by["time"]
    if column is None or column not in row:
        raise InvalidArgument(
            f"row= needs the event time of step {step.number}, in a column {column or 'event_time'!r}: it has "
            f"{', '.join(map(repr, row)) or 'no column'}"
        )
    if (text := _filtered(made_by, row)) is not None:
        return f"the row would be left out: it does not pass the filter {text}"
    try:
        time = None if row[column] is None else timestamp(row[column])
    except (UncombineError, ValueError, TypeError, OverflowError):
        time = None
    if time is None:
        return f"the row would be left out as bad: {row[column]!r} in {column!r} is no time"
    bounds = _assigned(made_by, time)
    if bounds is None:
        return f"what becomes of the row is not known here: its windows are {made_by['window']}, which reads more of it"
    if not bounds:
        return "the row would be left out as unassigned: no window has its time"
    return "; ".join(_judged(step, bounds, held))


def _filtered(made_by: Mapping[str, Any], row: Mapping[str, Any]) -> str | None:
    """The text of the first filter that a row does not pass; None if it passes all that its columns can tell."""
    for one in (some for steps in made_by.get("filters", ()) for some in steps):
        text = one["what"].get("predicate")
        try:
            predicate = None if not isinstance(text, str) else read_value(text, EXPRESSIONS)
        except (Unreadable, SyntaxError, UncombineError):
            continue
        if isinstance(predicate, Expr) and set(predicate.columns) <= set(row):
            passed = predicate.evaluate(pa.Table.from_pylist([{name: row[name] for name in predicate.columns}]))
            if not passed[0].as_py():
                return str(text)
    return None


def _assigned(made_by: Mapping[str, Any], time: int) -> list[tuple[int, int]] | None:
    """The windows of a time; None where its step does not tell them by the time alone."""
    try:
        window = read_value(str(made_by["window"]), _WINDOWS)
    except (Unreadable, SyntaxError, UncombineError):
        return None
    if not isinstance(window, Window) or window.columns:
        return None
    of = window.assign(np.array([time]), np.zeros(1, np.uint64) if window.needs_key_hash else None)
    return list(zip(of.start.tolist(), of.end.tolist(), strict=True))


def _judged(step: StoredStep, bounds: list[tuple[int, int]], held: Held) -> Iterator[str]:
    """The fate of the row in each of its windows."""
    watermark = None if step.watermark is None else timestamp(step.watermark)
    lateness = int(step.made_by.get("lateness", 0))  # earlier versions did not note it
    for start, end in bounds:
        low, high = max(start, FIRST), min(end, LAST)
        name = "global window" if (low, high) == (FIRST, LAST) else f"window {_moment(low)} - {_moment(high)}"
        found = held(low, high)
        expiry = int(later(np.array([end]), lateness)[0])
        if any(one.get("finished") for one in found):
            yield f"the row would be left out: the trigger of its {name} has finished"
        elif not found and watermark is not None and expiry <= watermark:
            more = f" with allowed_lateness={Span(lateness)}" if lateness else ""
            yield (
                f"the row would be left out as late, by {timedelta(microseconds=watermark - expiry)}: its {name} "
                f"has expired{more}, for the watermark is {_moment(watermark)}"
            )
        else:
            late = watermark is not None and end <= watermark
            count = sum(one["rows"] for one in found)
            state = f"which has {count:,} row{'' if count == 1 else 's'} now" if found else "which it would open"
            yield f"the row would be taken in{', late' if late else ''}, by its {name}, {state}"


def _moment(micros: int) -> str:
    return f"{timestamps_of([micros])[0].as_py():%Y-%m-%d %H:%M:%S}"


__all__ = ["row_reason"]
