"""A function with broadcast rows, random bundles for it, and its calls in plain Python, from rules 58 to 60 and 97."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pyarrow as pa

from uncombine.windows.times import MAX_TIME, MIN_TIME

TIME = pa.timestamp("us", "UTC")
KEYED = pa.schema({"ts": TIME, "k": pa.string(), "x": pa.int64(), "w": pa.int64()})
BROADCAST = pa.schema({"ts": TIME, "rule": pa.int64(), "bound": pa.int64(), "w": pa.int64()})

Row = tuple[Any, ...]


class Judge:
    """Keeps rules, counts rows that are above one, and emits what depends on the order of all calls."""

    output = pa.schema({"what": pa.string(), "n": pa.int64()})
    state = pa.schema({"sum": pa.int64(), "rows": pa.int64()})
    shared = pa.schema({"rules": pa.map_(pa.int64(), pa.int64()), "sign": pa.int64()})

    def on_broadcast(self, row: dict[str, Any], shared: dict[str, Any], ctx: Any) -> None:
        rules = dict(shared["rules"] or ())
        if ctx.diff > 0:
            rules[row["rule"]] = row["bound"]
        elif rules.get(row["rule"]) == row["bound"]:
            del rules[row["rule"]]
        shared["rules"] = list(rules.items()) or None
        # Two orders of the same calls give two signs.
        shared["sign"] = ((shared["sign"] or 0) * 7 + row["bound"] * ctx.diff + ctx.time) % 1009

    def on_broadcast_key(self, row: dict[str, Any], key: Any, state: dict[str, Any], ctx: Any) -> None:
        assert (ctx.key, ctx.state) == (key, state)
        if row["bound"] % 5 == 0:
            ctx.clear()
        elif row["bound"] % 5 == 1:
            ctx.set_timer("soon", ctx.time + 9, "event")
        elif row["bound"] % 5 == 2:
            state["rows"] = (state["rows"] or 0) + 100 * ctx.diff
        ctx.emit({"what": f"told {row['rule']}", "n": ctx.shared["sign"]}, diff=ctx.diff)

    def on_row(self, row: dict[str, Any], state: dict[str, Any], ctx: Any) -> None:
        bounds = [bound for _, bound in ctx.shared["rules"] or ()]
        state["sum"] = (state["sum"] or 0) + row["x"] * ctx.diff
        state["rows"] = (state["rows"] or 0) + sum(row["x"] > bound for bound in bounds)
        ctx.emit({"what": "row", "n": state["rows"] * 10_000 + (ctx.shared["sign"] or 0)})
        if row["x"] % 4 == 0:
            ctx.set_timer("soon", ctx.time + 7, "event", hold=ctx.time)
        elif row["x"] % 7 == 0:
            ctx.clear()

    def on_timer(self, tag: str, ctx: Any) -> None:
        ctx.emit({"what": tag, "n": len(ctx.shared["rules"] or ()) * 10_000 + (ctx.state["sum"] or 0)})


class Quiet(Judge):
    """The same without calls for keys."""

    on_broadcast_key = None  # type: ignore[assignment]


@dataclass
class PlainKey:
    """A key of the plain loop, and the context of its calls."""

    world: PlainLoop
    key: Any
    state: dict[str, Any] = field(default_factory=lambda: dict.fromkeys(Judge.state.names))
    timers: dict[str, tuple[int, int | None]] = field(default_factory=dict)
    time = diff = 0

    @property
    def shared(self) -> dict[str, Any]:
        return self.world.shared

    @property
    def alive(self) -> bool:
        return bool(self.timers) or any(value is not None for value in self.state.values())

    def emit(self, values: Any, diff: int = 1) -> None:
        self.world.out[self.key, values["what"], values["n"], self.time] += diff

    def set_timer(self, tag: str, time: int, domain: str, hold: int | None = None) -> None:
        assert domain == "event"
        self.timers[tag] = (time, hold)

    def clear(self) -> None:
        self.state.update(dict.fromkeys(self.state))
        self.timers.clear()


@dataclass
class Told:
    """The context of a call for a broadcast row."""

    time: int
    diff: int


@dataclass
class PlainLoop:
    """The calls, one bundle after the other. Rows are tuples of the columns, with the weight at the end."""

    function: Any
    lateness: int = 0
    keys: dict[Any, PlainKey] = field(default_factory=dict)
    shared: dict[str, Any] = field(default_factory=lambda: dict.fromkeys(Judge.shared.names))
    watermark: int = MIN_TIME
    output_watermark: int = MIN_TIME
    late: int = 0

    def step(self, keyed: list[Row], broadcast: list[Row], watermark: int) -> Counter[Row]:
        """The rows of output of one bundle, with the sums of their weights."""
        self.out: Counter[Row] = Counter()
        in_time = [row for row in keyed if row[0] + self.lateness >= self.watermark]
        self.late += len(keyed) - len(in_time)
        calls = [(time, 0, diff > 0, values, diff) for (time, *values), diff in netted(broadcast)]
        calls += [(time, 1, diff > 0, values, diff) for (time, *values), diff in netted(in_time)]
        for time, kind, _, values, diff in sorted(calls, key=lambda call: call[:3]):
            if kind == 0:
                self._told(time, dict(zip(("rule", "bound"), values, strict=True)), diff)
                continue
            ctx = self.keys.setdefault(values[0], PlainKey(self, values[0]))
            ctx.time, ctx.diff = time, diff
            self.function.on_row({"x": values[1]}, ctx.state, ctx)
        self.watermark = max(self.watermark, watermark)
        self._timers()
        holds = [hold for ctx in self.keys.values() for _, hold in ctx.timers.values() if hold is not None]
        self.output_watermark = max(self.output_watermark, min([self.watermark, *holds]))
        if self.watermark == MAX_TIME:
            self.keys, self.shared = {}, dict.fromkeys(self.shared)
        return Counter({row: weight for row, weight in self.out.items() if weight})

    def _told(self, time: int, row: dict[str, Any], diff: int) -> None:
        self.function.on_broadcast(row, self.shared, Told(time, diff))
        if self.function.on_broadcast_key is None:
            return
        for ctx in self.keys.values():
            if ctx.alive:
                ctx.time, ctx.diff = max(time, self.output_watermark), diff
                self.function.on_broadcast_key(row, ctx.key, ctx.state, ctx)

    def _timers(self) -> None:
        for ctx in self.keys.values():
            while due := [(time, tag) for tag, (time, _) in ctx.timers.items() if time <= self.watermark]:
                time, tag = min(due)
                _, hold = ctx.timers.pop(tag)
                ctx.time = max(time, self.output_watermark) if hold is None else hold
                self.function.on_timer(tag, ctx)


def netted(rows: list[Row]) -> list[tuple[Row, int]]:
    """Each row once, in the order of the first ones, with the sum of its weights."""
    sums: Counter[Row] = Counter()
    for *row, weight in rows:
        sums[tuple(row)] += weight
    return [(row, weight) for row, weight in sums.items() if weight]


def bundles(r: Random, count: int, late: int = 25) -> Iterator[tuple[list[Row], list[Row], int]]:
    """Random bundles: rows with keys, broadcast rows, and the watermark after them.

    Rows are late, repeated and retracted. Rules are corrected, retracted, and come long before the watermark. No two
    rows of a kind have one time, but for those that are repeated and the two halves of a correction.
    """
    watermark, serial = 0, 0
    past, rules = list[Row](), dict[int, Row]()
    for _ in range(count):
        keyed, broadcast = list[Row](), list[Row]()
        for _ in range(r.choice([0, 1, 3, 6])):
            if past and r.random() < 0.35:
                *row, weight = r.choice(past[-12:])
                keyed.append((*row, -weight if r.random() < 0.7 else weight))
                continue
            serial += 1
            time = (watermark + r.randint(-late, 30)) * 1000 + serial
            keyed.append((time, r.choice(["a", "b", "c", "d", None]), r.randrange(30), r.choice([1, 1, 2])))
            past.append(keyed[-1])
        for rule in r.sample(range(4), r.choice([0, 0, 1, 2])):
            old = rules.pop(rule, None)
            if old is not None:
                broadcast.append((*old[:-1], -1))
            if old is None or r.random() < 0.8:
                serial += 1
                time = (watermark + r.randint(-200, 30)) * 1000 + serial if old is None else old[0]
                rules[rule] = (time, rule, r.randrange(25), 1)
                broadcast.append(rules[rule])
        r.shuffle(broadcast)
        watermark += r.choice([0, 3, 15, 40])
        yield keyed, broadcast, watermark * 1000


def table_of(rows: list[Row], schema: pa.Schema, weighted: bool = True) -> pa.Table:
    """Rows as the input of a step; without weights, of one that has none."""
    schema = schema if weighted else schema.remove(len(schema) - 1)
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(schema)
    return pa.table([pa.array(values, f.type) for values, f in zip(columns, schema, strict=False)], schema=schema)


def added(panes: pa.Table) -> Counter[Row]:
    """The rows of output as the plain loop has them."""
    sums: Counter[Row] = Counter()
    columns = [panes["k"], panes["what"], panes["n"], panes["event_time"].cast(TIME).cast(pa.int64()), panes["diff"]]
    for *row, weight in zip(*(column.to_pylist() for column in columns), strict=True):
        sums[tuple(row)] += weight
    return Counter({row: weight for row, weight in sums.items() if weight})
