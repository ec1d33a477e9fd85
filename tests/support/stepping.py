"""Drives operators over single rows step by step, with state that is stored and loaded, and random scripts for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from uncombine.panes.state.chunk_log import LoadedState, load, save
from uncombine.panes.state.operator_state import StepResult
from uncombine.windows.times import MAX_TIME, MIN_TIME

Row = tuple[Any, ...]


class Log(dict[int, bytes]):
    put, remove = dict.__setitem__, dict.__delitem__


@dataclass
class Driven:
    """An operator between two steps. With `stored`, its state goes through the chunk log after each step."""

    operator: Any
    stored: bool = False
    net: Counter[Row] = field(default_factory=Counter)
    """All output so far: each row, less its weight, and the sum of its weights."""
    late: list[Row] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.state = self.operator.initial()
        self.log, self.manifest = Log(), None
        self.loaded: LoadedState = load(None, self.log, self.operator)

    def step(self, rows: pa.Table, watermark: int, now: int = 0, each_batch: bool = False) -> list[Row]:
        """The rows of output of one step, in their order, each with its weight at the end."""
        held = self.state.output_watermark
        bundle = self.operator.bundle([rows], (), now)
        stepped: StepResult = self.operator.step(self.state, bundle, watermark, now, {}, each_batch)
        assert stepped.panes.schema.equals(self.operator.output_schema)
        self.state = stepped.state
        given = tuples(stepped.panes)
        check_output(given, held - self.operator.output_lateness if held > MIN_TIME else MIN_TIME)
        assert self.operator.hold(self.state) >= held
        for *row, weight in given:
            self.net[tuple(row)] += weight
        self.net = Counter({row: weight for row, weight in self.net.items() if weight})
        assert min(self.net.values(), default=1) > 0
        self.late += tuples(rows.take(pa.array(stepped.left_out["late"])))
        if self.stored:
            self.manifest = save(self.state, self.loaded, self.log)
            self.loaded = load(self.manifest, self.log, self.operator)
            self.state = self.loaded.state
        return given

    def end(self) -> list[Row]:
        """The output as the input ends; nothing is left in the state."""
        given = self.step(self.operator.schema.empty_table(), MAX_TIME)
        assert self.operator.count_entries(self.state) == 0
        assert all(len(store) == 0 for store in self.state.stores.values() if store is not None)
        return given


def check_output(given: Sequence[Row], least: int) -> None:
    """No row has weight 0 or both signs, and none has a time that was ruled out."""
    signs: dict[Row, set[bool]] = {}
    for *row, weight in given:
        assert weight != 0
        assert row[-1] >= least
        signs.setdefault(tuple(row), set()).add(weight > 0)
    assert all(len(found) == 1 for found in signs.values())


def tuples(table: pa.Table) -> list[Row]:
    """The rows of a table; times are microseconds, NaN is a text."""
    columns = [_plain(column) for column in table.columns]
    return list(zip(*columns, strict=True)) if table.num_rows else []


def _plain(column: pa.ChunkedArray) -> list[Any]:
    values = (column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column).to_pylist()
    return ["nan" if value != value else value for value in values]


@dataclass(frozen=True)
class Scripted:
    """One bundle: rows as (time, key, value, weight) in order of arrival, and the watermark after it."""

    rows: list[tuple[int, Any, Any, int]]
    watermark: int


def scripts(
    seed: int, steps: int = 25, keys: Sequence[Any] = ("a", "b", None), changelog: bool = True, late: int = 10
) -> Iterator[Scripted]:
    """Random bundles whose times follow a watermark; some rows are late, repeated, retracted, or retracted at first."""
    rng = np.random.default_rng(seed)
    watermark, past = 0, list[tuple[int, Any, Any, int]]()
    for _ in range(steps):
        rows = list[tuple[int, Any, Any, int]]()
        for _ in range(int(rng.integers(0, 9))):
            fate = rng.random()
            if past and fate < 0.4:
                time, key, value, weight = past[int(rng.integers(max(0, len(past) - 12), len(past)))]
                weight = -weight if changelog and fate < 0.3 else weight
            else:
                time = watermark + int(rng.integers(-late, 30))
                key, value = keys[int(rng.integers(len(keys)))], int(rng.integers(0, 3))
                weight = int(rng.choice([1, 1, 1, 2, -1])) if changelog else 1
            rows.append((time, key, value, weight))
            past.append(rows[-1])
        watermark += int(rng.choice([0, 3, 15, 40]))
        yield Scripted(rows, watermark)


SCHEMA = pa.schema({"ts": pa.timestamp("us", "UTC"), "id": pa.string(), "x": pa.float64(), "w": pa.int64()})


def table_of(rows: Sequence[tuple[int, Any, Any, int]], schema: pa.Schema = SCHEMA) -> pa.Table:
    """Scripted rows as the input of an operator whose weights are in `w`; without this column, of one that has none."""
    columns = dict(zip(("ts", "id", "x", "w"), zip(*rows, strict=True), strict=True)) if rows else {}
    return pa.table({f.name: pa.array(columns.get(f.name, ()), f.type) for f in schema}, schema=schema)
