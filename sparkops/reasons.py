"""The reason why a window of a query has not been shown, in one sentence, from the state that its checkpoint holds.

Guarded by tests/sparkops/test_reasons.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from os import PathLike
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from ..errors import InvalidArgument, TypeMismatch
from ..flows.fingerprint.differences import kind_of
from ..windows import timestamp
from ..windows.times import FIRST, LAST
from .checkpoints.contents import Checkpoint, StoredStep, checkpoint
from .checkpoints.instants import text_of, timestamps_of
from .checkpoints.row_reasons import first_expiry, row_reason
from .checkpoints.sources_of_step import SourcesOfStep
from .checkpoints.unended import NoBatchYet
from .query_log import last_commit
from .spark_private import checkpoint_of
from .sql_types import arrow_type
from .tables.live_table import LiveTable

if TYPE_CHECKING:
    from pyspark.sql.streaming import StreamingQuery

_MOST = 3
"""The most windows that are told of; a moment is in many sliding ones."""

_THE_WATERMARK = "the watermark"
_CLOCKS = {
    "waits_for_watermark": _THE_WATERMARK,
    "waits_for_clock": "the clock of the query",
    "waits_for_percentile": "the percentile of the event times",
}
_LEFT_OUT = {"dropped": "late", "finished": "of finished windows", "unassigned": "without a window", "bad": "bad"}


def why(
    query: StreamingQuery | LiveTable | Checkpoint | str | PathLike[str],
    *,
    window: datetime | str | tuple[datetime | str, datetime | str] | None = None,
    row: Mapping[str, Any] | None = None,
    **key: Any,
) -> str:
    """Say in a sentence why a window has not been shown, or what it waits for next; or what would become of a row now.

    It is asked of the state after the last batch that is done, so the query may be running, and nothing is changed.
    Spark reads the state, which takes seconds or, on a busy machine, minutes.

    Parameters
    ----------
    query
        The query, the live table, the folder of the checkpoint, or `uc.checkpoint(...)`, which may be of an earlier
        batch.
    window
        Its start, any moment in it, or its start and end; in UTC if no zone is given. Without it, it is the window that
        waits longest: of those with rows that were not shown the one that ends first, of the first grouping that has
        any.
    row
        In place of a window and a key, a row: its event time and its key, and the columns that filters read. It would
        be taken in, or left out as late, bad, unassigned, or of a finished window, or be unreadable in files of text.
    **key
        The key, a value for each column of `by=`; without `window=` it may be left out. Of several groupings with these
        columns the first one that has such a window is asked: a start and an end tell a later one.

    Examples
    --------
    >>> import tempfile, uncombine as uc
    >>> spark, folder = uc.session(), tempfile.mkdtemp()
    >>> rates = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()
    >>> hours = uc.flow(rates, time="timestamp", watermark="1 minute").window("1 hour")
    >>> counts = hours.combine(n=uc.Count())
    >>> query = counts.write_stream(checkpoint=folder).format("noop").trigger(once=True).start()
    >>> query.awaitTermination()
    >>> why = uc.why(folder, window="1970-01-01 00:30")
    >>> print(why.partition(" because")[0])  # doctest: +NORMALIZE_WHITESPACE
    window 1970-01-01 00:00:00 - 01:00:00 has 10 rows and has not been shown:
    it waits until the watermark, which is 1969-12-31 23:59:00
    """
    if row is not None and (window is not None or key):
        raise InvalidArgument("why() takes a window and its key, or a row, which has both: leave the others out")
    bounds = None if window is None else _bounds(window)
    try:
        state = _opened(query)
    except NoBatchYet as error:
        return str(error)
    if row is not None:
        told = _of_row(state, row)
    else:
        told = _longest(state, key) if bounds is None else _of_window(state, bounds, key)
    last = state.batch if isinstance(query, Checkpoint) else last_commit(state.spark, state.path)
    return told if last == state.batch else f"{told} (after batch {state.batch}; batch {last} has ended meanwhile)"


def _of_window(state: Checkpoint, bounds: tuple[int, int | None], key: Mapping[str, Any]) -> str:
    """The times for which windows of a key wait that have these bounds, or a moment in them."""
    (start, end), steps = bounds, _steps_of(state, key)
    for step in steps:
        windows = _windows(state.df(step.number, "windows"), start, end, key) if step.rows.get("windows") else []
        if windows:
            sources = SourcesOfStep.of(state, step)
            lines = [_waiting(step, row, sources, key) for row in windows[:_MOST]]
            more = len(windows) - len(lines)
            return "\n".join([*lines, *([f"and {more} more windows"] if more else [])])
    return _absent(state, steps[0], start, end, key)


def _longest(state: Checkpoint, key: Mapping[str, Any]) -> str:
    """The window that waits longest: the first to end of those that have rows which were not shown."""
    groupings = [step for step in state.steps if kind_of(step.made_by) == "grouping"]
    steps = _steps_of(state, key) if key else groupings
    for step in steps:
        if not step.rows.get("windows"):
            continue
        df = _of_key(state.df(step.number, "windows"), key)
        # A window that was shown without an end, and has had no rows since, waits for nothing.
        waiting = df.where(df["has_new_rows"] | (df["panes"] == 0) if "panes" in df.columns else F.lit(True))
        names = _names(step)
        columns = [F.col("window.end"), F.col("window.start"), *(df[name] for name in names)]
        rows: list[dict[str, Any]] = waiting.orderBy(*columns).limit(1).toArrow().to_pylist()
        if rows:
            more = waiting.count() - 1
            told = _waiting(step, rows[0], SourcesOfStep.of(state, step), {name: rows[0][name] for name in names})
            return (
                f"{told}; {more:,} more window{'s' * (more != 1)} of step {step.number} wait{'s' * (more == 1)}"
                if more
                else told
            )
    of = _of(key)
    held = sum(step.rows.get("windows", 0) for step in groupings)
    return (
        f"no window{of} has rows that were not shown; the state holds {held:,} windows, and "
        "uc.why(query, window='2026-05-01 12:00', user='ada') says of one of them what it waits for"
    )


def _of_row(state: Checkpoint, row: Mapping[str, Any]) -> str:
    """The fate of a row in the first grouping whose key it has."""
    if not isinstance(row, Mapping):
        raise TypeMismatch(f"row= takes a row such as {{'ts': '2026-05-01 12:00', 'user': 'ada'}}, not {row!r}")
    groupings = [step for step in state.steps if kind_of(step.made_by) == "grouping"]
    step = next((step for step in groupings if set(_names(step)) <= set(row)), None)
    if step is None:
        keys = " or ".join(f"{_listed(_names(step))} of step {step.number}" for step in groupings) or "no grouping"
        raise InvalidArgument(f"row= needs the columns of a key: the checkpoint {state.path!r} has {keys}")
    key, number = {name: row[name] for name in _names(step)}, step.number

    def held(start: int, end: int) -> list[dict[str, Any]]:
        if not step.rows.get("windows"):
            return []
        df = _of_key(state.df(number, "windows"), key)
        apart = (F.col("window.end") <= _lit(start)) | (F.col("window.start") >= _lit(end))
        rows: list[dict[str, Any]] = df.where(~apart).toArrow().to_pylist()  # few: of one key
        merges = str(step.made_by["window"]).startswith("Sessions")
        return rows if merges else [row for row in rows if timestamp(row["window"]["start"]) == start]

    return row_reason(step, row, held, timestamp(datetime.now(UTC)))


def _bounds(window: datetime | str | tuple[datetime | str, datetime | str]) -> tuple[int, int | None]:
    if not isinstance(window, tuple):
        return timestamp(window), None
    if len(window) != 2:
        raise InvalidArgument(f"window= takes a moment in the window, or its start and end, not {len(window)} times")
    return timestamp(window[0]), timestamp(window[1])


def _opened(query: StreamingQuery | LiveTable | Checkpoint | str | PathLike[str]) -> Checkpoint:
    if isinstance(query, Checkpoint):
        return query
    if isinstance(query, str | PathLike):
        return checkpoint(query)
    if isinstance(query, LiveTable):
        return checkpoint(query.checkpoint)
    if not hasattr(query, "lastProgress"):
        raise TypeMismatch(
            f"why() takes a query, a live table or the folder of a checkpoint, but was given a {type(query).__name__}"
        )
    place = checkpoint_of(query)
    if place is None:
        raise InvalidArgument(
            "a query of Spark Connect does not say where its checkpoint is: give its folder, uc.why(folder, window=...)"
        )
    return checkpoint(place)


def _steps_of(state: Checkpoint, key: Mapping[str, Any]) -> list[StoredStep]:
    """The groupings that have the columns of a key."""
    groupings = [step for step in state.steps if kind_of(step.made_by) == "grouping"]
    if steps := [step for step in groupings if set(_names(step)) == set(key)]:
        return steps
    if not groupings:
        raise InvalidArgument(f"the checkpoint {state.path!r} has no grouping with rows, so it has no windows")
    keys = ", ".join(f"{_listed(_names(step))} in step {step.number}" for step in groupings)
    raise InvalidArgument(f"no grouping has the key {_listed(key)}: give a value for each column of {keys}")


def _names(step: StoredStep) -> list[str]:
    return [name for name, _ in step.made_by["by"]]


def _listed(names: Sequence[str] | Mapping[str, Any]) -> str:
    return "(" + ", ".join(names) + ")"


def _windows(df: DataFrame, start: int, end: int | None, key: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The windows of a key that begin at a moment; those that have it in them if none begins there."""
    df = _of_key(df, key)
    low, high = F.col("window.start"), F.col("window.end")
    within: Column = (low == _lit(start)) & (high == _lit(end)) if end is not None else _has(low, high, start)
    rows: list[dict[str, Any]] = df.where(within).orderBy(low).toArrow().to_pylist()
    exact = [row for row in rows if timestamp(row["window"]["start"]) == start]
    return exact or rows


def _of_key(df: DataFrame, key: Mapping[str, Any]) -> DataFrame:
    for name, value in key.items():
        _check_key(name, value, arrow_type(df.schema[name].dataType, name))
        df = df.where(df[name].eqNullSafe(F.lit(value)))
    return df


def _check_key(name: str, value: object, kind: pa.DataType) -> None:
    """Raise for a value that is none of the key's column, which Spark would cast."""
    try:
        pa.scalar(value, kind)
    except (pa.ArrowException, ValueError, TypeError, OverflowError):
        raise TypeMismatch(f"the key {name!r} is {kind}, and {value!r} is none") from None


def _has(low: Column, high: Column, moment: int) -> Column:
    return (low <= _lit(moment)) & ((high > _lit(moment)) | (low == _lit(moment)))


def _lit(moment: int) -> Column:
    return F.timestamp_micros(F.lit(moment))


def _waiting(step: StoredStep, row: Mapping[str, Any], sources: SourcesOfStep, key: Mapping[str, Any]) -> str:
    """A window that the state holds, and what it waits for."""
    name = _named(row["window"], key)
    holder, until_when = sources.holder(), {words: row[clock] for clock, words in _CLOCKS.items() if row.get(clock)}
    waits = [_wait(step, words, time, holder) for words, time in until_when.items()]
    until = " or ".join(waits) or "more rows come, since its trigger waits for no time"
    if (time := until_when.get(_THE_WATERMARK)) is not None and (step.watermark is None or step.watermark < time):
        until += sources.beside(time)
    rows = f"{row['rows']:,} row{'' if row['rows'] == 1 else 's'}"
    panes = row.get("panes") or 0
    if not panes:
        return f"{name} has {rows} and has not been shown: it waits until {until}"
    times = "once" if panes == 1 else f"{panes} times"
    if row["has_new_rows"]:
        return f"{name} has {rows}, was shown {times}, and some came since: it waits until {until}"
    return f"{name} has {rows}, was shown {times} and has had none since: nothing happens to it until {until}"


def _wait(step: StoredStep, clock: str, time: datetime, holder: str) -> str:
    if clock != _THE_WATERMARK:
        return f"{clock} has passed {text_of(time)}"
    if step.watermark is None:
        return f"{clock}, of which there is none yet{holder}, has passed {text_of(time)}"
    if step.watermark >= time:
        return f"the next batch, for {clock} has passed {text_of(time)}"
    return f"{clock}, which is {text_of(step.watermark)}{holder}, has passed {text_of(time)}"


def _absent(state: Checkpoint, step: StoredStep, start: int, end: int | None, key: Mapping[str, Any]) -> str:
    """A window that the state does not hold."""
    lost = ", ".join(f"{step.counts[name]:,} {word}" for name, word in _LEFT_OUT.items() if step.counts[name])
    left_out = f"; since its first start the step has left out {lost}" if lost else ""
    head = f"the state has no window at {text_of(_moment(start))}{_of(key)}"
    expiry = first_expiry(step, start, end)
    if step.watermark is not None and expiry <= timestamp(step.watermark):
        return (
            f"{head}: it has expired, or none of its rows has been taken in, and the state does not say which, so look "
            f"into the table, and into flow.left_out if it is kept; the watermark, {text_of(step.watermark)}, has "
            f"passed it{left_out}"
        )
    clock = "there is no watermark yet" if step.watermark is None else f"the watermark is {text_of(step.watermark)}"
    until = "" if expiry >= LAST else f" and it expires at {text_of(_moment(expiry))}"
    known = not key or (step.rows.get("windows") and _of_key(state.df(step.number, "windows"), key).limit(1).count())
    none = "" if known else "; no row of this key is in the state"
    silent = SourcesOfStep.of(state, step).silent(start, key)
    return f"{head}: none of its rows has been taken in, for {clock}{until}{none}{silent}{left_out}"


def _named(window: Mapping[str, datetime], key: Mapping[str, Any]) -> str:
    start, end = window["start"], window["end"]
    if timestamp(start) == FIRST and timestamp(end) == LAST:
        return f"the global window{_of(key)}"
    until = f"{end:%H:%M:%S}" if start.date() == end.date() else text_of(end)
    return f"window {text_of(start)} - {until}{_of(key)}"


def _of(key: Mapping[str, Any]) -> str:
    return f" of {', '.join(f'{name}={value!r}' for name, value in key.items())}" if key else ""


def _moment(micros: int) -> datetime:
    moment: datetime = timestamps_of([micros])[0].as_py()
    return moment


__all__ = ["why"]
