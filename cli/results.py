"""The result of a run as plain rows, and the sentences that go with it.

Guarded by tests/cli/test_run.py and tests/cli/test_replay.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from ..files.unreadable_rows import shortened
from ..flows.result import Result, flat_panes
from .parser import Parser

INTERRUPTED = 130
"""The exit code of a command that the user ended with Ctrl-C."""


def add_final(parser: Parser) -> None:
    """The option that says which rows of a result are given."""
    parser.add_argument("--final", action="store_true", help="give what is left at the end, and not each pane")


def rows_of(result: Result, final: bool, zone: str | None = None) -> pa.Table:
    """The panes of a result as plain rows; or the rows that are left at the end, with their weights unless all are 1.

    Their times are those of the clock of a zone, or of UTC.

    >>> import uncombine as uc
    >>> script = [uc.Elements([{"ts": 0, "x": 5}]), uc.Elements([{"ts": 1, "x": 2}]), uc.Watermark(None)]
    >>> minutes = uc.flow(script).window("1 minute", "every 1 row", "retracting")
    >>> result = minutes.combine(total=uc.Sum("x")).run()
    >>> rows_of(result, False)["total"].to_pylist(), rows_of(result, True)["total"].to_pylist()
    ([5, 5, 7], [7])
    """
    if not final:
        panes = result.panes.drop_columns([name for name in ("step",) if name in result.column_names])
        return in_zone(flat_panes(panes), zone)
    rows, weight = result.table(flat=True), result.weight
    plain = weight in rows.column_names and pc.all(pc.equal(rows[weight], 1)).as_py() is not False
    return in_zone(rows.drop_columns([weight]) if plain else rows, zone)


def in_zone(rows: pa.Table, zone: str | None) -> pa.Table:
    """The rows with all times of one clock, that of a zone or of UTC, also those that a combiner has taken from a row.

    >>> rows = pa.table({"at": pa.array([0], pa.timestamp("us", "UTC"))})
    >>> in_zone(rows, "Europe/Paris")["at"].to_pylist()[0].isoformat()
    '1970-01-01T01:00:00+01:00'
    """
    kinds = [f.with_type(pa.timestamp("us", zone or "UTC")) if getattr(f.type, "tz", None) else f for f in rows.schema]
    return rows.cast(pa.schema(kinds))


def notes_of(result: Result, more: bool = False) -> list[str]:
    """The sentences about the files that were read, windows that wait, and rows, or `more` rows, that were left out."""
    left_out = ""
    if count := result.left_out.num_rows:
        reasons = sorted(Counter(result.left_out["why"].to_pylist()).items())
        why = ", ".join(f"{some:,} {reason}" for reason, some in reasons)
        left_out = f"{count:,} {'more ' * more}row{'s' * (count > 1)} left out ({why})"
    seen = "" if result.seen is None else result.seen.words
    return [*filter(None, [seen, result.note, left_out])]


def unreadable_notes(unreadable: Sequence[pa.Table]) -> tuple[str, ...]:
    """A sentence about the rows that cannot be read."""
    tables = [rows for rows in unreadable if rows.num_rows]
    if not tables:
        return ()
    rows = pa.concat_tables(tables).sort_by([("file", "ascending"), ("line", "ascending")])
    count, first = rows.num_rows, rows.slice(0, 1).to_pylist()[0]
    some = "1 row cannot be read and is" if count == 1 else f"{count:,} rows cannot be read and are"
    text = "" if first["text"] is None else f": {shortened(first['text'])!r}"
    return (f"{some} left out, the first in line {first['line']} of {_short(first['file'])}{text}",)


def shown_twice(times: pa.ChunkedArray, zone: str | None) -> tuple[str, ...]:
    """A sentence about times in an hour that a clock shows twice, if all are in the first of both.

    A file whose times say no zone has them there, and cannot tell which they were.

    >>> times = pa.chunked_array([pa.array([1792888200_000_000], pa.timestamp("us", "UTC"))])
    >>> shown_twice(times, "Europe/Berlin")[0]
    '1 row has a time that the clock of Europe/Berlin shows twice, such as 2026-10-25 02:30: it is taken as the first'
    """
    if zone is None or not pa.types.is_timestamp(times.type):
        return ()
    local = pc.local_timestamp(times.cast(pa.timestamp("us", zone)))
    first, second = (pc.assume_timezone(local, zone, ambiguous=one) for one in ("earliest", "latest"))
    twice = pc.not_equal(first, second)
    if not (count := pc.sum(twice).as_py()) or pc.any(pc.and_(twice, pc.equal(second, times))).as_py():
        return ()
    some = "1 row has a time" if count == 1 else f"{count:,} rows have times"
    one = pc.min(local.filter(twice)).as_py()
    taken = "it is" if count == 1 else "they are"
    return (f"{some} that the clock of {zone} shows twice, such as {one:%Y-%m-%d %H:%M}: {taken} taken as the first",)


def _short(path: str) -> str:
    """The path from the working folder, if it is below it."""
    here = Path.cwd()
    return str(Path(path).relative_to(here)) if Path(path).is_relative_to(here) else path


def result_so_far(interrupt: KeyboardInterrupt) -> Result:
    """The result that an interrupt of `flow.run()` has; raises the interrupt if it has none."""
    result = getattr(interrupt, "result", None)
    if not isinstance(result, Result):
        raise interrupt
    return result


__all__ = [
    "INTERRUPTED",
    "add_final",
    "in_zone",
    "notes_of",
    "result_so_far",
    "rows_of",
    "shown_twice",
    "unreadable_notes",
]


def __dir__() -> list[str]:
    return __all__
