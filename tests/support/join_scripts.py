"""Random scripts of two changelogs for a join, and the join of their rows in plain Python."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from random import Random
from typing import Any

import pyarrow as pa

from uncombine.panes.join.join import Join
from uncombine.panes.state.chunk_log import load, save
from uncombine.panes.state.pane_type import PANE
from uncombine.windows.times import MAX_TIME, MIN_TIME

STAMP = pa.timestamp("us", "UTC")
WINDOW = pa.struct([("start", STAMP), ("end", STAMP)])
SIZE = 10
"""The size of a window."""

KEYS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "text": (pa.string(), ["a", "a", "b", None]),
    "float": (pa.float64(), [float("nan"), 0.0, -0.0, None]),
    "integer": (pa.int32(), [1, 1, 2, None]),
}

Row = tuple[Any, Any, int, int]
"""Key, value, time, and the end of the window."""


@dataclass(frozen=True)
class Case:
    """A join, the type of its key, and whether each side is a stage, whose time and weight are consumed."""

    join: Join
    key: str
    left_stage: bool
    right_stage: bool

    @property
    def windowed(self) -> bool:
        return self.join.reach is None

    def schema(self, side: str) -> pa.Schema:
        """Key, value, time, and what the case adds."""
        stage = self.left_stage if side == "left" else self.right_stage
        fields = [("k", KEYS[self.key][0]), ("v", pa.int64()), ("event_time" if stage else "ts", STAMP)]
        fields += [("window", WINDOW)] if self.windowed else []
        fields += [("diff", pa.int64())] if getattr(self.join, f"{side}_diff") else []
        return pa.schema([*fields, ("pane", PANE)] if stage else fields)

    def table(self, side: str, rows: list[tuple[Row, int]]) -> pa.Table:
        """Rows with weights as a bundle."""
        schema = self.schema(side)
        records = []
        for place, ((key, value, time, end), weight) in enumerate(rows):
            window = {"start": end - SIZE, "end": end}
            record = {"k": key, "v": value, "ts": time, "event_time": time, "window": window, "diff": weight}
            records.append({**record, "pane": {"index": place}})
        return pa.Table.from_pylist([{name: r[name] for name in schema.names} for r in records], schema)


def random_case(random: Random, how: str, unmatched: str, windowed: bool, diff: bool) -> Case:
    low, high = sorted(random.randint(-12, 12) for _ in range(2))
    stages = random.random() < 0.5, random.random() < 0.5
    join = Join(
        "k",
        how,
        None if windowed else (timedelta(microseconds=low), timedelta(microseconds=high)),
        unmatched,
        allowed_lateness=timedelta(microseconds=random.choice([0, 0, 3, 9])),
        left_time="event_time" if stages[0] else "ts",
        right_time="event_time" if stages[1] else "ts",
        left_diff="diff" if diff else None,
        right_diff="diff" if diff else None,
    )
    return Case(join, random.choice(sorted(KEYS)), *stages)


@dataclass
class Script:
    """Bundles near a watermark that moves: late rows, repeated rows, and retractions before and after their rows."""

    case: Case
    random: Random
    watermark: int = 0
    given: dict[str, list[Row]] = field(default_factory=lambda: {"left": [], "right": []})

    def steps(self, count: int) -> Iterator[tuple[dict[str, list[tuple[Row, int]]], int]]:
        for _ in range(count):
            bundle = {side: self._rows(side) for side in ("left", "right")}
            if self.random.random() < 0.6:
                self.watermark += self.random.choice([1, 2, 5, 15])
            yield bundle, self.watermark
        yield {"left": [], "right": []}, MAX_TIME

    def _rows(self, side: str) -> list[tuple[Row, int]]:
        random, rows = self.random, []
        for _ in range(random.choice([0, 1, 1, 3, 6])):
            if self.given[side] and random.random() < 0.4:
                row = random.choice(self.given[side])
            else:
                time = self.watermark + random.randint(-14, 14)
                end = time - time % SIZE + SIZE
                time = random.choice([time, end - 1]) if self.case.windowed else time
                row = (random.choice(KEYS[self.case.key][1]), random.choice([1, 2, None]), time, end)
                self.given[side].append(row)
            changes = bool(getattr(self.case.join, f"{side}_diff"))
            if changes and random.random() < 0.15:  # the row moves to another time
                moved = (row[0], row[1], row[2] - 1 if row[2] % SIZE else row[2], row[3])
                self.given[side].append(moved)
                rows += [(row, -1), (moved, 1)]
                continue
            weight = random.choice([1, 1, 2, -1, -1]) if changes else 1
            rows.append((row, weight))
        return rows


def normal(value: Any) -> Any:
    """A value by which equal rows are equal: NaN and null by name, -0.0 as 0.0."""
    if isinstance(value, float):
        return "nan" if value != value else value + 0.0
    return value


@dataclass
class Oracle:
    """The rows that were in time, and the output of the join over them."""

    case: Case
    watermark: int = MIN_TIME
    held: dict[str, Counter[Row]] = field(default_factory=lambda: {"left": Counter(), "right": Counter()})
    late: int = 0

    def take(self, bundle: dict[str, list[tuple[Row, int]]], watermark: int) -> None:
        for side, rows in bundle.items():
            for (key, value, time, end), weight in rows:
                if time + int(self.case.join.allowed_lateness) < self.watermark:
                    self.late += 1
                else:
                    self.held[side][normal(key), value, time, end] += weight
        self.watermark = max(self.watermark, watermark)

    def expected(self) -> Counter[tuple[Any, ...]]:
        """The rows of output with their weights."""
        join, lateness = self.case.join, int(self.case.join.allowed_lateness)
        left, right = ([(row, n) for row, n in self.held[side].items() if n > 0] for side in ("left", "right"))
        out: Counter[tuple[Any, ...]] = Counter()
        matched: dict[str, set[Row]] = {"left": set(), "right": set()}
        for mine, count in left:
            for other, times in right:
                if self._match(mine, other):
                    matched["left"].add(mine)
                    matched["right"].add(other)
                    if join.pairs:
                        out[self._row(mine[0], mine[3], mine[1:3], other[1:3])] += count * times
        alone = {"left": ("left", "full", "anti", "semi"), "right": ("right", "full")}
        low, high = (0, 0) if join.within is None else map(int, join.within)
        for side, rows, reach in (("left", left, high), ("right", right, -low)):
            for row, count in rows if join.how in alone[side] else ():
                last = row[3] - 1 if join.within is None else row[2] + max(reach, 0)
                decided = self.watermark > last + lateness
                if (row in matched[side]) == (join.how == "semi") and (decided or not join.final):
                    mine, none = row[1:3], (None, None)
                    out[self._row(row[0], row[3], *((mine, none) if side == "left" else (none, mine)))] += count
        return out

    def _match(self, left: Row, right: Row) -> bool:
        if left[0] is None or left[0] != right[0]:
            return False
        if self.case.join.within is None:
            return left[3] == right[3]
        low, high = map(int, self.case.join.within)
        return low <= right[2] - left[2] <= high

    def _row(self, key: Any, end: int, left: tuple[Any, Any], right: tuple[Any, Any]) -> tuple[Any, ...]:
        case, out = self.case, [key]
        if case.windowed:
            out.append(end)
        out.append(left[0])
        out += [] if case.left_stage else [left[1]]
        if case.join.pairs:
            out.append(right[0])
            out += [] if case.right_stage else [right[1]]
        return (*out, max(time for time in (left[1], right[1]) if time is not None))


def shown(case: Case, panes: pa.Table) -> list[tuple[tuple[Any, ...], int]]:
    """Rows of output as the oracle writes them, with their weights."""
    columns = []
    for name in panes.column_names[:-1]:
        column = panes[name].combine_chunks()
        if name == "window":
            column = column.field("end")
        if pa.types.is_timestamp(column.type):
            column = column.view(pa.int64())
        columns.append([normal(value) for value in column.to_pylist()])
    return list(zip(zip(*columns, strict=True), panes["diff"].to_pylist(), strict=True))


class Log(dict[int, bytes]):
    put, remove = dict.__setitem__, dict.__delitem__


def compare(oracle: Oracle, operator: Any, random: Random, steps: int, stored: bool, corrects: bool) -> int:
    """Compare each step of an operator with the oracle; gives the number of rows of output."""
    case, log, manifest, state = oracle.case, Log(), None, operator.initial()
    out: Counter[tuple[Any, ...]] = Counter()
    rows = 0
    for bundle, watermark in Script(case, random).steps(steps):
        promised = operator.hold(state)
        loaded = load(manifest, log, operator)
        tables = [case.table(side, bundle[side]) for side in ("left", "right")]
        stepped = operator.step(loaded.state if stored else state, tables, watermark)
        state = stepped.state
        if stored:
            manifest = save(state, loaded, log)
        found = shown(case, stepped.panes)
        oracle.take(bundle, watermark)
        rows += len(found)
        assert stepped.panes.schema == operator.output_schema
        assert all(diff for _, diff in found)
        assert not {row for row, diff in found if diff > 0} & {row for row, diff in found if diff < 0}
        order = [(diff > 0, row[-1]) for row, diff in found]
        assert order == sorted(order)
        assert all(row[-1] >= promised for row, _ in found), (promised, found)
        assert corrects or all(diff > 0 for _, diff in found)
        for row, diff in found:
            out[row] += diff
        assert {row: n for row, n in out.items() if n} == dict(oracle.expected()), (case.join, watermark)
        assert state.counts.dropped == oracle.late
    assert operator.count_entries(state) == 0
    assert operator.hold(state) == MAX_TIME
    return rows
