"""Keeps a table up to date with the batches of a flow, and waits for a database that is away, or a file in use.

Guarded by tests/tables/test_tables.py.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from threading import Event, Lock
from typing import TypeVar
from uuid import uuid4

import pyarrow as pa

from ..errors import TableMismatch, TableUnreachable
from ..flows.flow import Flow
from ..metrics.instruments import TABLE_DURATION, TABLE_ROWS, Point
from ..metrics.receivers import RECEIVERS
from ..panes.state.seed import SeedMaker
from .changes import Changes
from .layout import Layout, table_flow
from .net_changes import changes_of
from .target import Target, Writer
from .targets import target_of

T = TypeVar("T")

LOGGER = logging.getLogger("uncombine")

PATIENCE = 60.0
"""The seconds for which a batch waits for a database that is away."""

LONGEST_WAIT = 2.0

SILENT = 1.0
"""The seconds of waiting without a word in the log: a reader of a file has it open for less."""


class Keeper:
    """Applies batches to a table, each of them once.

    >>> import tempfile, pyarrow as pa
    >>> from uncombine.tables.layout import Layout
    >>> from uncombine.tables.net_changes import changes_of
    >>> from uncombine.tables.targets import target_of
    >>> layout = Layout(pa.schema([("k", pa.int64()), ("n", pa.int64()), ("diff", pa.int64())]), ("k",), "diff")
    >>> keeper = Keeper(target_of(f"duckdb:{tempfile.mkdtemp()}/shop.db#totals").writer(layout, "me"))
    >>> keeper.start()
    -1
    >>> rows = pa.table({"k": [1, 2], "n": [7, 8], "diff": [1, 1]})
    >>> [keeper.take(0, Changes.of(layout, [changes_of(rows, layout)])) for _ in range(2)]
    [True, False]
    >>> keeper.writer.read().to_pydict()
    {'k': [1, 2], 'n': [7, 8]}
    """

    def __init__(
        self,
        writer: Writer,
        patience: float = PATIENCE,
        wait: Callable[[float], object] | None = None,
        query: str | None = None,
    ) -> None:
        self.writer, self.patience = writer, patience
        self.query = query or writer.name
        self._stopped, self._busy = Event(), Lock()
        self._wait = self._stopped.wait if wait is None else wait

    def start(self, patient: bool = False, maker: SeedMaker | None = None) -> int:
        """Make or check the table, or take over that of the maker of a seed; the number of its last batch.

        A patient start waits for a database that is away.
        """

        def work() -> int:
            return self.writer.start(maker)

        if patient or self.writer.waits_at_start:
            return self._patiently(work, "the start")
        with self._busy:
            return self.writer.attempt(work)

    def owner(self, patient: bool = False) -> str | None:
        """The id of the query, or of the run, that the table belongs to; None if there is no table."""

        def work() -> str | None:
            facts = self.writer.facts()
            return None if facts is None else facts.owner

        if patient or self.writer.waits_at_start:
            return self._patiently(work, "the start")
        with self._busy:
            return self.writer.attempt(work)

    def take(self, batch: int, changes: Changes) -> bool:
        """Apply a batch; False if the table has it already."""
        return self._taken(batch, changes.rows, lambda: self.writer.apply(batch, changes))

    def _taken(self, batch: int, count: int, apply: Callable[[], bool]) -> bool:
        began = time.monotonic()
        applied = self._patiently(apply, f"batch {batch}")
        words = f"{count:,} changes" if applied else "which it had already"
        seconds, table = time.monotonic() - began, (self.query, self.writer.name)
        LOGGER.debug("%s: batch %d, %s, %.3f s", self.writer.name, batch, words, seconds)
        rows = count if applied else 0
        RECEIVERS.take([Point(TABLE_ROWS, table, rows), Point(TABLE_DURATION, table, seconds)])
        return applied

    def take_both(self, batch: int, changes: Changes, other: Keeper, more: Changes) -> bool:
        """Apply a batch to two tables of one database, both or none; False if this one has it already.

        >>> import tempfile
        >>> layout = Layout(pa.schema([("k", pa.int64()), ("n", pa.int64()), ("diff", pa.int64())]), ("k",), "diff")
        >>> place = f"duckdb:{tempfile.mkdtemp()}/shop.db"
        >>> one, two = (Keeper(target_of(f"{place}#{name}").writer(layout, "me")) for name in ("one", "two"))
        >>> one.start(), two.start()
        (-1, -1)
        >>> rows = pa.table({"k": [1], "n": [7], "diff": [1]})
        >>> changes = Changes.of(layout, [changes_of(rows, layout)])
        >>> one.take_both(0, changes, two, changes), two.writer.read().to_pydict()
        (True, {'k': [1], 'n': [7]})
        """
        both = changes.rows + more.rows
        return self._taken(batch, both, lambda: self.writer.apply_both(batch, changes, other.writer, more))

    def read(self, limit: int | None = None) -> pa.Table:
        """The rows of the table, which another process writes; it is closed then."""

        def work() -> pa.Table:
            try:
                return self.writer.read(limit)
            finally:
                self.writer.close()

        return self._patiently(work, "a reader")

    def hurry(self) -> None:
        """Make a batch that waits for a database give up."""
        self._stopped.set()

    def close(self) -> None:
        """Close the table when no batch is being applied."""
        self.hurry()
        with self._busy:
            try:
                self.writer.attempt(self.writer.finish)
            except TableUnreachable as error:  # the next start does what is left to do
                LOGGER.warning("%s", error)
            finally:
                self.writer.close()

    def _patiently(self, work: Callable[[], T], who: str) -> T:
        """Do the work; again while the database is away, which changes nothing if the batch was applied before."""
        began, pause, wait_time = time.monotonic(), 0.05, 0.0
        while True:
            with self._busy:
                try:
                    done = self.writer.attempt(work)
                    break
                except TableUnreachable as error:
                    self.writer.close()
                    seconds = time.monotonic() - began
                    if self._stopped.is_set() or seconds >= self.patience:
                        if not wait_time:
                            raise
                        raise TableUnreachable(f"{error} ({who} has waited for {seconds:.0f} s)") from None
                    if wait_time < SILENT <= wait_time + pause:
                        LOGGER.warning("%s waits, for %.0f s at most: %s", who, self.patience, error)
            self._wait(pause)
            wait_time += pause
            pause = min(2 * pause, LONGEST_WAIT)
        if wait_time >= SILENT:
            LOGGER.info("%s: %s goes on after %.0f s", self.writer.name, who, time.monotonic() - began)
        return done


def write_result(
    flow: Flow,
    target: str,
    keys: str | Sequence[str] | None,
    run: Callable[[Flow], pa.Table],
    owner: str | None = None,
) -> None:
    """Write the rows of a bounded flow into a new table; `run` gives the rows of the flow in the mode of a table."""
    place, settled, layout = new_table(flow, target, keys)
    rows = run(settled).select(layout.rows.names)
    write_once(place, Changes.of(layout, [changes_of(rows, layout)]), owner)


def new_table(
    flow: Flow, target: str, keys: str | Sequence[str] | None, drop: bool = False
) -> tuple[Target, Flow, Layout]:
    """The place of the table of a bounded flow, the flow in the mode of a table, and its layout.

    Raises before the flow runs if there is a table of a query or of a run, which `drop` drops.
    """
    place = target_of(target)
    settled, layout = table_flow(flow, keys)
    place.check(layout)
    writer = place.writer(layout, "")
    try:
        if (facts := writer.attempt(writer.facts)) is not None and drop:
            writer.attempt(writer.drop)
        elif facts is not None:
            raise TableMismatch(f"{writer.name} is there already, and a run makes a new one: drop it, or name another")
    finally:
        writer.close()
    return place, settled, layout


def write_once(target: Target, changes: Changes, owner: str | None = None) -> None:
    """Make a table of the changes of a bounded flow, all of it or nothing."""
    target.check(changes.layout)
    writer = target.writer(changes.layout, owner or uuid4().hex)
    if (new := changes.new) != changes.rows:
        raise writer.unfit(new, changes)
    try:
        writer.attempt(lambda: writer.once(changes))
    finally:
        writer.close()


__all__ = ["PATIENCE", "Keeper", "new_table", "write_once", "write_result"]
