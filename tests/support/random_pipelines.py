"""Random pipelines of groupings, joins, unions and steps, and the same pipelines from scratch in plain Python.

Every step takes and gives rows of a time, a key `k` and a number `x`, so that any step can follow any other. From
scratch a step is a function of the rows that are left, as a multiset of (time in microseconds, key, number).
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from by_words import said
from row_steps import START, TIME, draw_trigger

import uncombine as uc
from uncombine.flows.flow_steps import input_of
from uncombine.panes.upserts.upserts import Upserts

SECOND = 1_000_000
SCHEMA = pa.schema({"ts": TIME, "seen": TIME, "k": pa.string(), "x": pa.int64(), "w": pa.int64()})

PLAIN = ["ts", "k", "x"]

Row = tuple[int, Any, int]
Rows = Counter[Row]
Sources = Mapping[str, Rows]


@dataclass(frozen=True)
class Pipeline:
    """A flow, and its result from scratch."""

    flow: uc.Flow
    rows: Callable[[Sources], Rows]
    names: tuple[str, ...]
    """The steps, for people."""


OWN, RENAMED = ("ts", "event_time", "w", "diff"), "{} then"
"""The columns of times and weights, and the names that `rename` gives them."""


def plain(flow: uc.Flow) -> uc.Flow:
    """The flow with a key, a number, its time and its weight, and no other columns."""
    own = ("k", "x", *OWN, *map(RENAMED.format, OWN))
    return flow.select(*(name for name in own if name in flow.schema.names))


def steps_of(flow: uc.Flow) -> list[Any]:
    """The stages of a flow, less the one that reads a changelog without old rows."""
    return [stage for stage in flow.stages if not isinstance(getattr(stage, "options", None), Upserts)]


def source(name: str, flow: uc.Flow) -> Pipeline:
    return Pipeline(plain(flow), lambda given: given[name], (name,))


def draw(r: random.Random, flows: Mapping[str, uc.Flow]) -> Pipeline:
    """A pipeline of one to four steps over one or two of the sources."""
    at_hand = [source(name, flow) for name, flow in flows.items()]
    for _ in range(r.randrange(1, 5)):
        at = r.randrange(len(at_hand))
        one = at_hand.pop(at)
        if at_hand and r.random() < 0.5:
            at_hand = [_both(r, one, at_hand.pop(r.randrange(len(at_hand)))), *at_hand]
        else:
            at_hand.append(_step(r, one))
    made = [one for one in at_hand if len(one.names) > 1 and (steps_of(one.flow) or one.flow.source.stage)]
    return r.choice(made) if made else _grouped(r, at_hand[0])


def _step(r: random.Random, one: Pipeline) -> Pipeline:
    kinds = [
        _grouped,
        _grouped,
        _rolled,
        _ticked,
        _in_order,
        _remembered,
        _repeated,
        _filtered,
        _sampled,
        _counted_up,
        _written_out,
    ]
    if (
        one.flow._changes
    ):  # of an input that is only added to, a row is shown as it comes, whatever comes before it later
        kinds += [_distinct, _distinct]
    kind = r.choice(kinds)
    keeps_names = kind in (_filtered, _sampled, _counted_up, _written_out)
    return kind(r, one if keeps_names else _renamed(r, one))


def _renamed(r: random.Random, one: Pipeline) -> Pipeline:
    """Sometimes the pipeline with other names for its times and weights; the step after it gives them their own."""
    if r.random() < 0.8:
        return one
    has = one.flow.schema.names
    names = {name: RENAMED.format(name) for name in OWN if name in has and RENAMED.format(name) not in has}
    return Pipeline(one.flow.rename(names), one.rows, (*one.names, "rename"))


def _late(r: random.Random, one: Pipeline) -> dict[str, Any]:
    """Options of a step over a source; a later step allows what those before it do."""
    return {} if steps_of(one.flow) or one.flow.source.inputs else {"allowed_lateness": r.choice(LATENESS)}


LATENESS = ["0 seconds", "1 minute", "1 hour"]
WINDOWS: list[tuple[uc.Window, Callable[[int], list[tuple[int, int]]] | None]] = [
    (uc.Fixed("30 seconds"), lambda t: [_fixed(t, 30)]),
    (uc.Fixed("2 minutes"), lambda t: [_fixed(t, 120)]),
    (uc.Sliding("1 minute", "30 seconds"), lambda t: [_fixed(t, 30, 60), _fixed(t - 30 * SECOND, 30, 60)]),
    (uc.Sessions("20 seconds"), None),
]
"""Windows, and those of a time; None for sessions."""


def _fixed(t: int, period: int, size: int | None = None) -> tuple[int, int]:
    start = t - t % (period * SECOND)
    return start, start + (size or period) * SECOND


def _grouped(r: random.Random, one: Pipeline) -> Pipeline:
    window, windows = r.choice(WINDOWS)
    options = {"mode": "retracting", "only_updated": r.random() < 0.3, "eager_retractions": r.random() < 0.3}
    flow = one.flow.window(said(window), said(draw_trigger(r)), **options, **_late(r, one)).combine(
        by="k", x=uc.Sum("x")
    )
    name = f"group by {window!r}"
    return Pipeline(plain(flow), lambda given: summed(one.rows(given), windows), (*one.names, name))


def summed(rows: Rows, windows: Callable[[int], list[tuple[int, int]]] | None) -> Rows:
    """The sum of each key and window, at the last instant of the window."""
    sums: dict[tuple[Any, int], int] = {}
    keys = Counter[tuple[Any, int]]()
    for (t, k, x), weight in rows.items():
        for _, end in _sessions(rows, k, t) if windows is None else windows(t):
            sums[k, end] = sums.get((k, end), 0) + x * weight
            keys[k, end] += weight
    return Counter({(end - 1, k, sums[k, end]): 1 for (k, end), count in keys.items() if count})


def _sessions(rows: Rows, key: Any, t: int) -> list[tuple[int, int]]:
    """The session of a time among the rows of its key: only its end is looked at."""
    end = t + 20 * SECOND
    for other in sorted(time for time, k, _ in rows if k == key and time > t):
        if other >= end:
            break
        end = other + 20 * SECOND
    return [(t, end)]


def _distinct(r: random.Random, one: Pipeline) -> Pipeline:
    seconds = r.choice([20, 300])
    # Rows of one id and time are equal, so it does not matter which of them is the first.
    flow = one.flow.distinct("k", "x", within=f"{seconds} seconds", **_late(r, one))

    def rows(given: Sources) -> Rows:
        free: dict[Any, int] = {}
        out = Rows()
        for t, k, x in sorted(one.rows(given), key=lambda row: row[0]):
            if t >= free.get((k, x), t):
                out[t, k, x] = 1
                free[k, x] = t + seconds * SECOND
        return out

    return Pipeline(plain(flow), rows, (*one.names, f"distinct within {seconds} s"))


def _rolled(r: random.Random, one: Pipeline) -> Pipeline:
    """Each row with the total of those of its key that it sees."""
    seconds, closed, emit = r.choice([10, 90]), r.choice(["right", "left", "both", "neither"]), r.choice(EMITS)
    rolling = one.flow.rolling(f"{seconds} seconds", by="k", closed=closed, emit=emit, **_late(r, one))
    flow = rolling.combine(total=uc.Sum("x")).with_columns(x=uc.col("total").fill_null(3))

    def rows(given: Sources) -> Rows:
        left, out = one.rows(given), Rows()
        for (t, k, _), weight in left.items():
            seen = [row for row in left if row[1] == k and _sees(closed, t - row[0], seconds * SECOND)]
            out[t, k, sum(row[2] * left[row] for row in seen) if seen else 3] += weight
        return out

    return Pipeline(plain(flow), rows, (*one.names, f"rolling {seconds} s, {closed}, {emit}"))


def _ticked(r: random.Random, one: Pipeline) -> Pipeline:
    """The total of each key at each tick while there is something in the period, and at the first without."""
    seconds, closed, emit = r.choice([20, 90]), r.choice(["right", "left", "both", "neither"]), r.choice(EMITS)
    every = r.choice([15, 60]) * SECOND
    options = {"every": f"{every // SECOND} seconds", "closed": closed, "emit": emit, **_late(r, one)}
    totals = one.flow.rolling(f"{seconds} seconds", by="k", **options).combine(x=uc.Sum("x"))
    flow = totals.with_columns(x=uc.col("x").fill_null(3))

    def rows(given: Sources) -> Rows:
        left, out = one.rows(given), Rows()
        for key in {row[1] for row in left}:
            mine = [row for row in left if row[1] == key]
            tick, held = min(row[0] for row in mine) // every * every, False
            while held or tick <= max(row[0] for row in mine) + every:
                seen = [row for row in mine if _sees(closed, tick - row[0], seconds * SECOND)]
                if seen or held:
                    out[tick, key, sum(row[2] * left[row] for row in seen) if seen else 3] += 1
                tick, held = tick + every, bool(seen)
        return out

    return Pipeline(plain(flow), rows, (*one.names, f"ticks of {seconds} s each {every // SECOND} s, {closed}, {emit}"))


EMITS = ["at_once", "at_once", "final"]


def _sees(closed: str, age: int, period: int) -> bool:
    oldest = age <= period if closed in ("left", "both") else age < period
    return oldest and (age >= 0 if closed in ("right", "both") else age > 0)


def _in_order(r: random.Random, one: Pipeline) -> Pipeline:
    flow = one.flow.in_order(by=r.choice(["k", ()]), **_late(r, one))
    return Pipeline(plain(flow), one.rows, (*one.names, "in order"))


def doubled(table: pa.Table) -> pa.Table:
    """A function with one row for each row."""
    numbers = pa.array([x * 2 for x in table["x"].to_pylist()], pa.int64())
    return table.set_column(table.column_names.index("x"), "x", numbers)


def repeated(table: pa.Table) -> pa.Table:
    """A function with as many rows as the rest of a division by 3 says."""
    places = [i for i, x in enumerate(table["x"].to_pylist()) for _ in range(x % 3)]
    return table.take(pa.array(places, pa.int64())).append_column("row", pa.array(places, pa.int64()))


def _remembered(r: random.Random, one: Pipeline) -> Pipeline:
    flow = one.flow.map(doubled, remember=True, deterministic=False)
    return Pipeline(
        plain(flow), lambda given: _each(one.rows(given), lambda x: [2 * x]), (*one.names, "map remembered")
    )


def _repeated(r: random.Random, one: Pipeline) -> Pipeline:
    flow = one.flow.flat_map(repeated, remember=True)
    return Pipeline(
        plain(flow), lambda given: _each(one.rows(given), lambda x: [x] * (x % 3)), (*one.names, "flat_map")
    )


def _counted_up(r: random.Random, one: Pipeline) -> Pipeline:
    flow = one.flow.with_columns(x=uc.col("x") + 1)
    return Pipeline(flow, lambda given: _each(one.rows(given), lambda x: [x + 1]), (*one.names, "with_columns"))


def _written_out(r: random.Random, one: Pipeline) -> Pipeline:
    """A number of the text of the key and of the clock."""
    time = uc.col(input_of(one.flow).time)
    letters = uc.concat(uc.col("k"), "é").str.len_chars().fill_null(0)
    early = uc.when(time - time.dt.truncate("1 minute") < uc.span("20 seconds"), 1, 0)
    flow = one.flow.with_columns(x=uc.col("x") + letters + time.dt.second() % 3 + early)

    def rows(given: Sources) -> Rows:
        out = Rows()
        for (t, k, x), weight in one.rows(given).items():
            second = t // SECOND % 60
            out[t, k, x + (0 if k is None else len(k) + 1) + second % 3 + (second < 20)] += weight
        return out

    return Pipeline(flow, rows, (*one.names, "with_columns of texts and times"))


def _filtered(r: random.Random, one: Pipeline) -> Pipeline:
    flow = one.flow.where(uc.col("x") > 2)
    return Pipeline(flow, lambda given: _each(one.rows(given), lambda x: [x] * (x > 2)), (*one.names, "where"))


def _sampled(r: random.Random, one: Pipeline) -> Pipeline:
    """A sample of the keys with their numbers, whatever comes of rows; from scratch, of the rows that are left."""
    how = {"fraction": r.choice([0.3, 0.7]), "by": r.choice(["x", ("k", "x")]), "seed": r.randrange(9)}

    def rows(given: Sources) -> Rows:
        left = one.rows(given)
        columns = zip(*left, strict=True) if left else ((), (), ())
        table = pa.table([pa.array(c).cast(SCHEMA.field(n).type) for n, c in zip(PLAIN, columns, strict=True)], PLAIN)
        chosen = uc.flow(table).sample(**how).to_arrow().select(PLAIN)
        times = chosen["ts"].cast(pa.int64()).to_pylist()
        some = zip(times, *(chosen[name].to_pylist() for name in PLAIN[1:]), strict=True)
        return Rows({row: left[row] for row in some})

    return Pipeline(one.flow.sample(**how), rows, (*one.names, f"sample of {how}"))


def _each(rows: Rows, made: Callable[[int], list[int]]) -> Rows:
    out = Rows()
    for (t, k, x), weight in rows.items():
        for value in made(x):
            out[t, k, value] += weight
    return out


def _both(r: random.Random, one: Pipeline, other: Pipeline) -> Pipeline:
    """Two pipelines made one."""
    kinds = [_united, _joined, _joined, _joined_asof, _windows_joined, _rolling_joined]
    return r.choice(kinds)(r, _renamed(r, one), other)


def _united(r: random.Random, one: Pipeline, other: Pipeline) -> Pipeline:
    flow = plain(uc.union(one.flow, other.flow))
    return Pipeline(flow, lambda given: one.rows(given) + other.rows(given), ("union", *one.names, *other.names))


HOWS = [
    *((how, "at_once") for how in ("inner", "left", "right", "full", "semi", "anti")),
    *((how, "final") for how in ("left", "right", "full", "anti")),
]
WITHIN = [(-60, 120), (0, 30), (0, 0)]


def _joined(r: random.Random, one: Pipeline, other: Pipeline) -> Pipeline:
    how, unmatched = r.choice(HOWS)
    low, high = r.choice(WITHIN)
    ever = r.random() < 0.25
    bounds: dict[str, Any] = {"keep": None} if ever else {"within": (f"{low} seconds", f"{high} seconds")}
    options = {"on": "k", "how": how, "unmatched": unmatched, **bounds}
    flow = _one_number(how, one.flow.join(other.flow, **options))

    def near(left: Row, right: Row) -> bool:
        return ever or low * SECOND <= right[0] - left[0] <= high * SECOND

    name = f"{how} join for ever" if ever else f"{how} join within {low} to {high} s"
    return Pipeline(
        flow, lambda given: matched(one.rows(given), other.rows(given), how, near), (name, *one.names, *other.names)
    )


def _windows_joined(r: random.Random, one: Pipeline, other: Pipeline) -> Pipeline:
    how, unmatched = r.choice(HOWS)
    sides = [
        side.flow.window(said(uc.Fixed("2 minutes")), said(draw_trigger(r)), mode="retracting").combine(
            by="k", x=uc.Sum("x")
        )
        for side in (one, other)
    ]
    left, right = (side.select("k", "window", "x", "event_time", "diff") for side in sides)
    flow = _one_number(how, left.join(right, on="k", how=how, unmatched=unmatched))

    def rows(given: Sources) -> Rows:
        left, right = (summed(side.rows(given), WINDOWS[1][1]) for side in (one, other))
        return matched(left, right, how, lambda a, b: a[0] == b[0])

    return Pipeline(flow, rows, (f"{how} join of windows", *one.names, *other.names))


def _joined_asof(r: random.Random, one: Pipeline, other: Pipeline) -> Pipeline:
    """Each left row with the nearest right row of its key."""
    direction, emit, how = r.choice(["backward", "forward", "nearest"]), r.choice(EMITS), r.choice(["left", "inner"])
    exact, seconds = r.random() < 0.7, r.choice([None, 20, 200])
    options = {"by": "k", "direction": direction, "allow_exact": exact, "how": how, "emit": emit}
    options["tolerance"] = None if seconds is None else f"{seconds} seconds"
    flow = _one_number(how, one.flow.join_asof(other.flow, **options))

    def rows(given: Sources) -> Rows:
        left, right, out = one.rows(given), other.rows(given), Rows()
        for (t, k, x), weight in left.items():
            near = [row for row in right if k is not None and row[1] == k and (exact or row[0] != t)]
            near = [row for row in near if seconds is None or abs(row[0] - t) <= seconds * SECOND]
            near = [row for row in near if direction != "backward" or row[0] <= t]
            near = [row for row in near if direction != "forward" or row[0] >= t]
            if near:
                best = min(near, key=lambda row: (abs(row[0] - t), -row[0], -row[2]))
                out[t, k, 2 * x + best[2]] += weight
            elif how == "left":
                out[t, k, 2 * x + 5] += weight
        return out

    name = f"{how} as-of join {direction} within {seconds} s, {emit}"
    return Pipeline(flow, rows, (name, *one.names, *other.names))


def _rolling_joined(r: random.Random, one: Pipeline, other: Pipeline) -> Pipeline:
    """Each left row with the total of the right rows that it sees, of which those with odd numbers are known later."""
    seconds, closed, emit = r.choice([20, 200]), r.choice(["right", "left", "both", "neither"]), r.choice(EMITS)
    delay, events = r.choice([None, 30]), other.flow
    options: dict[str, Any] = {"by": "k", "closed": closed, "emit": emit}
    if delay is not None:
        time = uc.col(input_of(events).time)
        later = time + uc.span(f"{delay} seconds")
        events = events.with_columns(known=uc.when(uc.col("x") % 2 == 1, later, time))
        options["available"] = "known"
    rolling = one.flow.join_rolling(events, f"{seconds} seconds", **options).combine(total=uc.Sum("x"))
    flow = rolling.with_columns(x=uc.col("x") * 2 + uc.col("total").fill_null(3))

    def rows(given: Sources) -> Rows:
        left, right, out = one.rows(given), other.rows(given), Rows()
        for (t, k, x), weight in left.items():
            near = [row for row in right if k is not None and row[1] == k]
            near = [row for row in near if _sees(closed, t - row[0], seconds * SECOND)]
            seen = [row for row in near if row[0] + (delay or 0) * SECOND * (row[2] % 2) <= t]
            out[t, k, 2 * x + (sum(row[2] * right[row] for row in seen) if seen else 3)] += weight
        return out

    name = f"rolling join {seconds} s, {closed}, {emit}, known after {delay} s"
    return Pipeline(plain(flow), rows, (name, *one.names, *other.names))


def _one_number(how: str, flow: uc.Flow) -> uc.Flow:
    if how not in ("semi", "anti"):
        flow = flow.with_columns(x=uc.col("x_left").fill_null(7) * 2 + uc.col("x_right").fill_null(5))
    return plain(flow)


def matched(left: Rows, right: Rows, how: str, near: Callable[[Row, Row], bool]) -> Rows:
    """The join of two multisets by key."""
    pairs = [(a, b) for a in left for b in right if a[1] is not None and a[1] == b[1] and near(a, b)]
    out = Rows()
    if how not in ("semi", "anti"):
        for a, b in pairs:
            out[max(a[0], b[0]), a[1], 2 * a[2] + b[2]] += left[a] * right[b]
    with_match = {a for a, _ in pairs}, {b for _, b in pairs}
    for row, weight in left.items():
        if how in ("semi", "anti"):
            out[row] += weight * ((row in with_match[0]) == (how == "semi"))
        elif how in ("left", "full") and row not in with_match[0]:
            out[row[0], row[1], 2 * row[2] + 5] += weight
    for row, weight in right.items():
        if how in ("right", "full") and row not in with_match[1]:
            out[row[0], row[1], 14 + row[2]] += weight
    return +out


def draw_rows(r: random.Random, weighted: bool, place: int) -> pa.Table:
    """Rows with event times of their own, up to 100 seconds late; with weights, some are retracted later."""
    rows: list[dict[str, Any]] = []
    left = Rows()
    seen = START
    for _ in range(r.randrange(1, 30)):
        seen += r.choice([0, 0, 10, 40, 300]) * SECOND
        ts = seen - r.randrange(0, 100, 5) * SECOND
        row = {"ts": ts, "seen": seen + place, "k": r.choice(["p", "q", None]), "x": r.randrange(9), "w": 1}
        known = sorted((old for old in (+left).elements() if old[0] >= seen - 100 * SECOND), key=repr)
        if weighted and known and r.random() < 0.4:
            t, k, x = r.choice(known)
            row |= {"ts": t, "k": k, "x": x, "w": r.choice([-1, -1, 1])}
        if weighted and row["w"] > 0:
            row["w"] = r.choice([1, 1, 2])
        left[row["ts"], row["k"], row["x"]] += row["w"]
        rows.append(row)
    return pa.Table.from_pylist(rows, SCHEMA)


def rows_left(table: pa.Table) -> Rows:
    """The rows of a changelog that are left; of a result, by its event time."""
    names = table.column_names
    time = table["event_time" if "event_time" in names else "ts"].cast(pa.int64()).to_pylist()
    weight = table["diff" if "diff" in names else "w"].to_pylist()
    out = Rows()
    for row, times in zip(
        zip(time, *(table[name].to_pylist() for name in ("k", "x")), strict=True), weight, strict=True
    ):
        out[row] += times
    return Counter({row: times for row, times in out.items() if times})


STRATEGIES = [uc.BoundedLag("2 minutes"), uc.BoundedLag("2 minutes"), uc.BoundedLag("30 seconds"), uc.Monotonic()]


def drawn(seed: int) -> tuple[Pipeline, dict[str, pa.Table], bool]:
    """A pipeline, the rows of its sources, and whether some of them may be late."""
    r = random.Random(seed)
    weighted = r.random() < 0.5
    tables = {name: draw_rows(r, weighted, place) for place, name in enumerate("abc"[: r.choice([1, 2, 2, 3])])}
    on_time = r.random() < 0.5
    flows = {}
    for name in tables:
        strategy = STRATEGIES[0] if on_time else r.choice(STRATEGIES)
        options = {"diff": "w" if weighted else None, "processing_time": "seen"}
        flow = uc.flow(SCHEMA, name=name, watermark=strategy, **options)
        flows[name] = flow if weighted else flow.select("ts", "k", "x")
    return draw(r, flows), tables, not on_time
