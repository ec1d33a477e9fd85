"""The fate of a row that would come to a grouping now, from its fingerprint and the windows that it holds.

A checkpoint does not know which rows came, but it knows all by which a row is judged: the filters, the windows, the
lateness and the watermark. Not promised: anything about functions of the user before the grouping.

Guarded by tests/sparkops/test_reasons.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any

import numpy as np
import pyarrow as pa

from ... import windows
from ...combiners.expressions.expr import Expr
from ...combiners.read_repr import EXPRESSIONS, Unreadable, read_value
from ...combiners.rows.type_names import type_named
from ...errors import InvalidArgument, UncombineError
from ...windows import Span, Window, timestamp
from ...windows.grid import later
from ...windows.times import FIRST, LAST
from .contents import StoredStep
from .instants import timestamps_of

_WINDOWS = {name: getattr(windows, name) for name in ("Calendar", "Fixed", "Global", "Sessions", "Sliding")}

_NULL = ""
"""The text that a CSV file has in place of a value, where its options say nothing else."""

Held = Callable[[int, int], list[dict[str, Any]]]
"""The windows of the key that a state holds and that overlap a start and an end."""


def row_reason(step: StoredStep, row: Mapping[str, Any], held: Held, clock: int) -> str:
    """The sentence about a row of a grouping that would come at this processing time, if it has none of its own."""
    made_by = step.made_by
    if (words := _unreadable(made_by, row)) is not None:
        return f"the row would be unreadable: {words}"
    (column, *texts) = made_by["time"]
    row = _with_time(row, column, texts)
    if column is None or column not in row:
        computed = "".join(f", or what {text} is computed of" for text in _computed(texts))
        raise InvalidArgument(
            f"row= needs the event time of step {step.number}, in a column {column or 'event_time'!r}{computed}: "
            f"it has {', '.join(map(repr, row)) or 'no column'}"
        )
    if (text := _filtered(made_by, row)) is not None:
        return f"the row would be left out: it does not pass the filter {text}"
    try:
        time = None if row[column] is None else timestamp(row[column])
    except (UncombineError, ValueError, TypeError, OverflowError):
        time = None
    if time is None:
        return f"the row would be left out as bad: {row[column]!r} in {column!r} is no time"
    if (words := _too_far(step, row, time, clock)) is not None:
        return words
    bounds = _assigned(made_by, time)
    if bounds is None:
        return f"what becomes of the row is not known here: its windows are {made_by['window']}, which reads more of it"
    if not bounds:
        return "the row would be left out as unassigned: no window has its time"
    return "; ".join(_judged(step, bounds, held))


def _computed(texts: Sequence[str | None]) -> dict[str, Expr]:
    """The expressions that give the event times of sources, by their texts."""
    found = {}
    for text in filter(None, texts):
        try:
            value = read_value(text, EXPRESSIONS)
        except (Unreadable, SyntaxError, UncombineError):  # a column, or a text that was cut
            continue
        if isinstance(value, Expr):
            found[text] = value
    return found


def _with_time(row: Mapping[str, Any], column: str | None, texts: Sequence[str | None]) -> Mapping[str, Any]:
    """The row with the event time that the one source of a step computes, where it lacks it."""
    if column is None or column in row or len(texts) != 1:
        return row
    for value in _computed(texts).values():
        if set(value.columns) <= set(row):
            try:
                time = value.evaluate(pa.Table.from_pylist([{name: row[name] for name in value.columns}]))
            except (UncombineError, pa.ArrowException):
                return row
            return {**row, column: time[0].as_py()}
    return row


def _unreadable(made_by: Mapping[str, Any], row: Mapping[str, Any]) -> str | None:
    """The first value that no file of text can have in its column; None if each input can have all of them."""
    misfits = [
        next(
            (f"{row[name]!r} is no {kind} for {name!r}" for name, kind in typed if _misfits(row.get(name), kind)), None
        )
        for typed in made_by.get("typed", [None])
        if typed is not None
    ]
    return misfits[0] if misfits and all(misfits) and len(misfits) == len(made_by["typed"]) else None


def _misfits(value: object, kind: str) -> bool:
    """True if a value is none of a type, in whatever form a file has it."""
    to = type_named(kind)
    if value is None or to is None or pa.types.is_string(to) or pa.types.is_large_string(to):
        return False
    try:
        if value == _NULL:
            return False
        if pa.types.is_timestamp(to):
            timestamp(value)  # type: ignore[arg-type]
        elif isinstance(value, str):
            return not _is_read(value, to)
        else:
            pa.scalar(value, to)  # which cuts what a whole number cannot have
            return isinstance(value, float) and pa.types.is_integer(to) and not value.is_integer()
    except (UncombineError, pa.ArrowException, ValueError, TypeError, OverflowError):
        return True
    return False


def _is_read(text: str, to: pa.DataType) -> bool:
    try:
        pa.array([text]).cast(to)
    except pa.ArrowException:
        return False
    return True


def _too_far(step: StoredStep, row: Mapping[str, Any], time: int, clock: int) -> str | None:
    """The sentence about a row that lies too far in the future; None if it does not."""
    if (futures := step.made_by.get("future")) is None:
        unknown = "an earlier version did not note max_future= of its source"
        return f"what becomes of the row is not known here: {unknown}" if time > clock else None
    limits = [
        None if future is None else (int(future[0]), _clock_of(step, row, future[1], clock)) for future in futures
    ]
    ahead = [(time - now, limit) for limit, now in filter(None, limits) if time > now + limit]
    if not ahead:
        return None
    if len(ahead) < len(limits):
        return "what becomes of the row is not known here: the max_future= of its inputs differ"
    by, limit = max(ahead, key=lambda one: one[1])
    return (
        f"the row would be left out as bad: its time {_moment(time)} is {timedelta(microseconds=by)} after processing "
        f"time, more than max_future={Span(limit)}"
    )


def _clock_of(step: StoredStep, row: Mapping[str, Any], column: str | None, clock: int) -> int:
    if column is None:
        return clock
    if row.get(column) is None:
        raise InvalidArgument(f"row= needs the processing time of step {step.number}, in a column {column!r}")
    return timestamp(row[column])


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


def first_expiry(step: StoredStep, start: int, end: int | None) -> int:
    """The watermark before which no window at a moment, or with this start and end, has expired."""
    bounds = [(start, end)] if end is not None else _assigned(step.made_by, start)
    if bounds is None or (end is None and str(step.made_by["window"]).startswith("Sessions")):
        bounds = [(start, start)]  # where it ends its rows decide, so it ends after the moment, and that is all
    bounds = [one for one in bounds if one[0] == start] or bounds
    lateness = int(step.made_by.get("lateness", 0))  # earlier versions did not note it
    ends = np.array([min(last, LAST) for _, last in bounds] or [start])
    return int(later(ends, lateness).min())


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


__all__ = ["first_expiry", "row_reason"]
