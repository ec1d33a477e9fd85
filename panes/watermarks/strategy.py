"""The base of watermark strategies, and the check of what a strategy gives.

Guarded by tests/panes/watermarks/test_watermark_strategies.py.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from ...combiners.rows.columns import flat
from ...errors import NamedOptions, TypeMismatch, require_column
from ...windows import Span, span, time_column
from ...windows.times import MIN_TIME
from ..parcels import MARKS


class WatermarkStrategy(NamedOptions, ABC):
    """Makes watermark reports from rows: the base of the library's strategies, and of your own.

    A subclass is best a frozen dataclass. It defines `reports`, and `columns` if that reads other columns than the
    event time. It may be called on any part of the rows, in any task, so a report must follow from its row alone. The
    watermark of a source is the greatest time that it has reported, and that of the flow is the least over its sources.
    A checkpoint names the strategy by its `repr`: the sources start again under a strategy of another `repr`.

    >>> from dataclasses import dataclass
    >>> import numpy as np, pyarrow as pa, uncombine as uc
    >>> @dataclass(frozen=True)
    ... class Heartbeats(uc.WatermarkStrategy):
    ...     '''A row of this kind reports that no row before it follows.'''
    ...     kind: str
    ...     @property
    ...     def columns(self):
    ...         return ("kind",)
    ...     def reports(self, rows, times):
    ...         beats = np.array([kind == self.kind for kind in rows["kind"].to_pylist()], bool)
    ...         return None, np.where(beats, times, self.NONE)
    >>> schema = pa.schema({"ts": pa.timestamp("us", "UTC"), "kind": pa.string()})
    >>> flow = uc.flow(schema, watermark=Heartbeats("beat"))
    >>> counts = flow.window(uc.Fixed("1 minute")).combine(n=uc.Count())
    >>> kinds = [{"ts": 5_000_000, "kind": "row"}, {"ts": 70_000_000, "kind": "row"}]
    >>> script = [uc.Elements(kinds)]
    >>> script += [uc.Elements([{"ts": 60_000_000, "kind": "beat"}])]
    >>> counts.run(script).select(["n", "step"]).to_pylist()
    [{'n': 1, 'step': 1}]
    """

    _unsaid: ClassVar[Sequence[str]] = ("sources", "for_all")
    """The options that the repr says only where they are given."""

    NONE = MIN_TIME
    """The report of a row that reports no time, and the time of a row without a usable event time."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the strategy reads besides the time column."""
        return ()

    @property
    def idle(self) -> Span | None:
        """The processing time without a row after which a source is idle: `idle_after`; None if it never is."""
        after = getattr(self, "idle_after", None)
        return None if after is None else span(after)

    @property
    def sources(self) -> Sequence[str] | None:
        """The names of sources that hold the watermark before they report."""
        return None

    @property
    def for_all(self) -> str | None:
        """The name of a source whose reports count for all sources, also for those still to come."""
        return None

    @property
    def clock_lag(self) -> Span | None:
        """The length of time by which the watermark follows processing time; None if only reports move it."""
        return None

    def check(self, schema: pa.Schema) -> None:
        """Raise unless the schema has the columns, in types that fit."""
        for name in self.columns:
            require_column(name, schema.names, f"watermark={self!r}")

    @abstractmethod
    def reports(self, rows: pa.Table, times: np.ndarray) -> tuple[Any, Any]:
        """The source of each row, and the watermark that each row reports.

        Parameters
        ----------
        rows
            Some rows of the source, with all its columns.
        times
            The event time of each row in microseconds UTC; `NONE` where a row has no usable time.

        Returns
        -------
        tuple
            The sources as an array of texts or numbers, or None if there is only one source. Then the reports: numbers
            of microseconds UTC with `NONE` for a row that reports nothing, or an Arrow array of timestamps with nulls.
        """

    def marks(self, rows: pa.Table, times: np.ndarray, at: int | np.ndarray) -> pa.Table:
        """The watermark reports of rows: for each source every time that is after all before it, and when it came."""
        sources, marks = checked(self, self.reports(rows, times), rows.num_rows)
        ats = np.full(len(marks), at) if isinstance(at, int) else at
        if sources is None:
            codes, names = np.zeros(len(marks), np.int64), pa.nulls(1, pa.string())
        else:
            encoded = sources.dictionary_encode(null_encoding="encode")
            codes, names = np.asarray(encoded.indices).astype(np.int64), encoded.dictionary
        order = np.lexsort((ats, codes))
        codes, marks, ats = codes[order], marks[order], ats[order]
        best = _running_max(codes, marks)
        last = np.ones(len(order), np.bool_)  # row of a source at a processing time
        last[:-1] = (codes[1:] != codes[:-1]) | (ats[1:] != ats[:-1])
        codes, best, ats = codes[last], best[last], ats[last]
        advances = np.ones(len(codes), np.bool_)
        if self.idle is None and self.clock_lag is None:
            advances[1:] = (codes[1:] != codes[:-1]) | (best[1:] > best[:-1])
        reached = pa.array(best[advances], mask=best[advances] == MIN_TIME)
        reports = [names.take(pa.array(codes[advances])), reached, pa.array(ats[advances], pa.int64())]
        clock = [pa.nulls(1, pa.string()), pa.nulls(1, pa.int64()), pa.array(ats.max(initial=MIN_TIME, keepdims=True))]
        return pa.concat_tables([pa.table(reports, schema=MARKS), pa.table(clock, schema=MARKS)])

    def __repr__(self) -> str:
        options = {f.name: getattr(self, f.name) for f in fields(self)} if is_dataclass(self) else vars(self)
        shown = {name: value for name, value in options.items() if not (name in self._unsaid and value is None)}
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in shown.items())})"


def checked(strategy: WatermarkStrategy, result: Any, count: int) -> tuple[pa.Array | None, np.ndarray]:
    """The sources and reports that a strategy gave for a number of rows; raise if they cannot be that."""
    what = f"{strategy!r}.reports()"
    if not isinstance(result, tuple) or len(result) != 2:
        raise TypeMismatch(f"{what} must give a pair of sources and reports, but gave {type(result).__name__}")
    sources, marks = result
    if isinstance(marks, pa.Array | pa.ChunkedArray):
        if not (pa.types.is_timestamp(marks.type) or pa.types.is_date(marks.type)):
            raise TypeMismatch(
                f"the reports of {what} must be timestamps or numbers of microseconds, but are {marks.type}"
            )
        times, valid = time_column(_array(marks))
        marks = np.where(valid, times, MIN_TIME)
    marks = np.asarray(marks, np.int64) if count == 0 else np.asarray(marks)
    if marks.dtype != np.int64:
        raise TypeMismatch(f"the reports of {what} must be int64 microseconds, but are {marks.dtype}")
    if sources is not None:
        sources = _array(sources)
        if pa.types.is_nested(sources.type):
            raise TypeMismatch(f"the sources of {what} must be texts or numbers, but are {sources.type}")
        sources = sources.cast(pa.string())
    for name, values in (("sources", sources), ("reports", marks)):
        if values is not None and len(values) != count:
            raise TypeMismatch(f"{what} must give one of the {name} for each of {count} rows, but gave {len(values)}")
    return sources, marks


def _array(values: Any) -> pa.Array:
    if isinstance(values, pa.ChunkedArray):
        return flat(values)
    return values if isinstance(values, pa.Array) else pa.array(values)


def _running_max(codes: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The running maximum within each run of equal codes."""
    if len(codes) == 0:
        return values
    out = values.copy()
    first = np.flatnonzero(np.concatenate([[True], codes[1:] != codes[:-1]]))
    for a, b in zip(first, [*first[1:], len(codes)], strict=True):  # one run a source, and sources are few
        np.maximum.accumulate(out[a:b], out=out[a:b])
    return out


__all__ = ["WatermarkStrategy", "checked"]
