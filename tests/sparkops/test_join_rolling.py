"""Labels with features on Spark: batches, and streams over restarts, give the rows of a double loop in plain Python."""

from __future__ import annotations

import os
import random
from collections import Counter
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from by_double_loop import check, expected
from engine import Engine
from every import ONE_OF_EACH, frame
from label_rows import PERIODS, SOME, events_of, features, labels_of, results, seen_by, served
from pyspark.sql import SparkSession
from row_steps import SECOND, START, TIME
from seeds import seeds
from streams import read_stream, rows_flow, written

import uncombine as uc
from uncombine.sparkops.sql_types import dataframe_of, spark_schema

pytestmark = pytest.mark.filterwarnings("ignore:.*has no bound for its rounding", "ignore:.*'diff'")

LABELS = pa.schema({"ts": TIME, "user": pa.string(), "id": pa.int64(), "w": pa.int64()})
EVENTS = pa.schema({"at": TIME, "k": pa.string(), "x": pa.int64(), "came": TIME, "w": pa.int64()})
LOOKS = {"s": 20, "m": 60, "ever": 10**9}
PLAIN: dict[str, Any] = {
    "n": uc.Count(),
    "total": uc.Sum("x"),
    "middle": uc.Median("x"),
    "best": uc.Max("x"),
    "kinds": uc.CountDistinct("x"),
}
LATE = 30
NAMES = ["user", "id", *(f"{look}_{name}" for look in LOOKS for name in PLAIN), "event_time"]

Label = tuple[int, Any, int]
"""The time in microseconds, the user and the number."""

Event = tuple[int, Any, int, int]
"""The time, the key, the value, and the time at which it was known."""


def looking_back(labels: uc.Flow, events: uc.Flow, **options: Any) -> uc.Flow:
    periods = {name: None if seconds > 10**6 else f"{seconds} seconds" for name, seconds in LOOKS.items()}
    return labels.join_rolling(events, periods, by={"user": "k"}, **options).combine(**PLAIN)


def whole(labels: Counter[Label], events: Counter[Event], options: dict[str, Any]) -> Counter[Any]:
    """The rows of all labels, from a loop over events in a loop over labels."""
    out: Counter[Any] = Counter()
    closed, least = options["closed"], options["min_rows"]
    for (time, user, number), weight in labels.items():
        found: tuple[Any, ...] = ()
        for seconds in LOOKS.values():
            xs = list[int]()
            for (at, key, x, came), copies in events.items():
                age = time - at
                oldest = age <= seconds * SECOND if closed in ("left", "both") else age < seconds * SECOND
                newest = age >= 0 if closed in ("right", "both") else age > 0
                known = "available" not in options or came <= time
                if user == key is not None and oldest and newest and known:
                    xs += [x] * copies
            numbers = (len(xs), sum(xs), median(xs), max(xs), len(set(xs))) if xs else (0, None, None, None, 0)
            found += (None,) * len(PLAIN) if len(xs) < least > 1 else numbers
        out[user, number, *found, uc.timestamp(time)] += weight
    return +out


def shown(table: pa.Table) -> Counter[Any]:
    """The rows that a changelog leaves."""
    out: Counter[Any] = Counter()
    for row in table.to_pylist():
        values = [uc.timestamp(row[name]) if name == "event_time" else row[name] for name in NAMES]
        out[tuple(values)] += row["diff"]
    assert min(out.values(), default=0) >= 0
    return +out


def drawn(draw: random.Random, batches: int) -> list[dict[str, pa.Table]]:
    """Labels and events by batches, up to half a minute late, some of them retracted or twice there."""
    now, rows = START, list[tuple[int, str, tuple[Any, ...], int]]()
    for _ in range(batches * 5):
        now += draw.choice([0, 1, 5, 20]) * SECOND
        time, side = now - draw.randrange(LATE) * SECOND, draw.choice(["labels", "events", "events"])
        key, weight = draw.choice(["a", "a", "b", None]), draw.choice([1, 1, 1, 2])
        before = [row for at, where, row, w in rows if where == side and w > 0 and row[0] >= now - LATE * SECOND]
        taken = Counter(row for at, where, row, w in rows for _ in range(w) if where == side)
        taken -= Counter(row for at, where, row, w in rows for _ in range(-w) if where == side)
        some = [row for row in before if taken[row] > 0]
        if some and draw.random() < 0.3:
            rows.append((now, side, draw.choice(some), -1))
        elif side == "labels":
            rows.append((now, side, (time, key, draw.randrange(4)), weight))
        else:
            known = time + draw.choice([0, 0, 3, 40, -5]) * SECOND
            rows.append((now, side, (time, key, draw.randrange(6), known), weight))
    out = []
    for at in range(0, len(rows), 5):
        tables = {}
        for name, schema in (("labels", LABELS), ("events", EVENTS)):
            own = [(*row, weight) for _, side, row, weight in rows[at : at + 5] if side == name]
            columns = zip(*own, strict=True) if own else [()] * len(schema)
            arrays = [pa.array(values).cast(f.type) for values, f in zip(columns, schema, strict=True)]
            tables[name] = pa.Table.from_arrays(arrays, schema=schema)
        out.append(tables)
    return out


def counted(table: pa.Table) -> Counter[Any]:
    """Rows with their weights, times in microseconds."""
    columns = [c.cast(pa.int64()) if pa.types.is_timestamp(c.type) else c for c in table.columns]
    out: Counter[Any] = Counter()
    for *row, weight in zip(*(column.to_pylist() for column in columns), strict=True):
        out[tuple(row)] += weight
    return out


@pytest.mark.parametrize("emit", ["at_once", "final"])
@pytest.mark.parametrize("seed", seeds(3, 300))
def test_rule_96_shards_that_restart_give_the_rows_of_a_double_loop(seed: int, emit: Any) -> None:
    """After each batch, stored and loaded by new workers or run twice, what is shown is what the rows so far say."""
    draw = random.Random(seed)
    options: dict[str, Any] = {"closed": draw.choice(["right", "left", "both", "neither"])}
    options |= {"min_rows": draw.choice([0, 1, 2])} | ({"available": "came"} if draw.random() < 0.6 else {})
    source: dict[str, Any] = {"watermark": f"{LATE + 10} s", "shards": draw.choice([1, 2, 3]), "diff": "w"}
    flow = looking_back(
        rows_flow(LABELS, name="labels", **source), rows_flow(EVENTS, "at", name="events", **source),
        emit=emit, **options,
    )  # fmt: skip
    engine, at, given = Engine(flow, seed), START, Counter[Any]()
    labels, events = Counter[Label](), Counter[Event]()
    far = START + 10**6 * SECOND
    ends = [pa.table([[far], ["z"], [9], [1]], LABELS.names).cast(LABELS)]
    ends.append(pa.table([[far], ["z"], [9], [far], [1]], EVENTS.names).cast(EVENTS))
    for batch in [*drawn(draw, 12), dict(zip(("labels", "events"), ends, strict=True)), {}, {}]:
        at += 1
        if draw.random() < 0.3:
            engine.restart()
        if draw.random() < 0.2:
            kept = engine.snapshot()
            engine.batch(batch, now=at)
            engine = Engine(flow, seed, kept)
        rows = engine.batch(batch or {"labels": LABELS.empty_table(), "events": EVENTS.empty_table()}, now=at)[0]
        for name, taken in (("labels", labels), ("events", events)):
            taken.update(counted(batch[name]) if batch else {})
        for row in rows.to_pylist():
            values = tuple(uc.timestamp(row[name]) if name == "event_time" else row[name] for name in NAMES)
            given[values] += row["diff"]
            assert emit == "at_once" or row["diff"] > 0
        assert min(given.values(), default=0) >= 0
        wanted = whole(labels, events, options)
        assert +given == wanted if emit == "at_once" else not +given - wanted
    far_label = Counter({row: n for row, n in wanted.items() if row[0] == "z"})
    assert +given == (wanted if emit == "at_once" else wanted - far_label)
    assert wanted.total() > 8


@pytest.mark.weekly
@pytest.mark.parametrize("combiners", [SOME, pytest.param(ONE_OF_EACH, marks=pytest.mark.full)])
@pytest.mark.parametrize("seed", seeds(1))
@pytest.mark.parametrize("available", [None, "came"])
def test_rule_96_what_a_stream_serves_is_what_a_batch_trains_on(
    seed: int, available: str | None, combiners: dict[str, uc.Combiner]
) -> None:
    """The first row of each label, whatever comes later, in batches cut anywhere if events say when they were known."""
    labels, events = labels_of(8, seed), events_of(16, seed)
    sources = [
        rows_flow(table.schema, name=name, watermark="1 hour", shards=2)
        for name, table in (("labels", labels), ("events", events))
    ]
    flow = features(*sources, ["s3", "ever"], available=available).combine(**combiners)
    engine, draw, given = Engine(flow, seed), random.Random(seed), [flow.schema.empty_table()]
    entries = served(labels, events)
    schemas = {"labels": labels.schema, "events": events.schema}
    while entries:
        count = draw.randrange(1, 4) if available else 1
        some, entries = entries[:count], entries[count:]
        batch = {name: pa.Table.from_pylist([r for e in some if e.input == name for r in e.rows], schemas[name])
                 for name in schemas}  # fmt: skip
        given.append(engine.batch(batch, now=START + len(given))[0])
        engine.restart()
    every = pa.concat_tables(given)
    first: dict[int, int] = {}
    for place, label in enumerate(every["id"].to_pylist()):
        first.setdefault(label, place)
    found = every.take(pa.array([first[label] for label in range(len(labels))]))
    assert set(found["diff"].to_pylist()) == {1}
    for name in ("s3", "ever"):
        seen = seen_by(labels, events, PERIODS[name][1], "right")
        check(combiners, results(found, name, combiners), expected(combiners, events, list(seen)), events)
    # What is known later is seen by no label that was given.
    assert (len(every) == len(labels)) == (available is not None)


@pytest.mark.full
@pytest.mark.parametrize("combiners", [SOME, ONE_OF_EACH], ids=["some", "each"])
def test_rule_96_a_batch_gives_every_combiner_as_known_at_the_label(
    combiners: dict[str, uc.Combiner], spark: SparkSession, tmp_path: Path
) -> None:
    """Labels of files, events of a DataFrame."""
    labels, events = labels_of(15, 5), events_of(30, 5)
    written([labels.slice(0, 7), labels.slice(7)], tmp_path / "labels")
    sources = [
        uc.flow(f"{tmp_path}/labels", spark=spark, tuning=uc.Tuning(shards=2)),
        uc.flow(frame(spark, events), tuning=uc.Tuning(shards=2)),
    ]
    flow = features(*sources, ["m1", "s20"], available="came").combine(**combiners)
    assert "each with all its rows in one task" in flow.explain()
    found = flow.df.toArrow().sort_by("id")
    assert found.select(labels.column_names).to_pylist() == labels.to_pylist()
    for name in ("m1", "s20"):
        seen = seen_by(labels, events, PERIODS[name][1], "right")
        wanted = expected(combiners, events, list(seen))
        check(combiners, results(found, name, combiners).cast(wanted.schema), wanted, events)


@pytest.mark.full
def test_a_batch_of_changelogs_leaves_out_what_has_no_time(spark: SparkSession) -> None:
    batches = drawn(random.Random(3), 8)
    tables = {name: pa.concat_tables([batch[name] for batch in batches]) for name in ("labels", "events")}
    labels, events = (counted(table) for table in tables.values())
    never = pa.table([[START], ["a"], [1], [None], [1]], EVENTS.names).cast(EVENTS)
    tables["events"] = pa.concat_tables([tables["events"], never])
    options = {"closed": "both", "min_rows": 1, "available": "came"}
    left, right = (dataframe_of(spark, table, spark_schema(table.schema)) for table in tables.values())
    flow = looking_back(uc.flow(left, diff="w"), uc.flow(right, time="at", diff="w"), **options)
    rows = flow.df.toArrow()
    assert set(rows["diff"].to_pylist()) == {1}
    assert shown(rows) == whole(+labels, +events, options)
    assert flow.left_out.toArrow()["why"].to_pylist() == ["bad"]


@pytest.mark.full
def test_a_live_table_of_labels_over_a_restart(spark: SparkSession, tmp_path: Path) -> None:
    """Late events after the restart correct labels that were shown before it."""
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    draw, options = random.Random(11), {"closed": "right", "min_rows": 1, "available": "came"}
    batches = drawn(draw, 12)
    numbered = 0
    for batch in batches:  # a live table has one row for each label
        rows = batch["labels"].num_rows
        ids = pa.array(range(numbered, numbered + rows), pa.int64())
        batch["labels"] = batch["labels"].set_column(2, "id", ids).set_column(3, "w", pa.array([1] * rows, pa.int64()))
        numbered += rows
    labels, events = Counter[Label](), Counter[Event]()
    for run, some in enumerate((batches[:6], batches[6:])):
        for name, taken in (("labels", labels), ("events", events)):
            for place, batch in enumerate(some):
                taken.update(counted(batch[name]))
                if run or place:
                    path, age = tmp_path / name / f"{run}{place}.parquet", 1_000_000_000 + 100 * run + place
                    pq.write_table(batch[name], path)
                    os.utime(path, (age, age))  # by which Spark takes files in their order
                else:
                    written([batch[name]], tmp_path / name)
        sources = [
            uc.flow(
                read_stream(spark, tmp_path / name, schema), time=time, name=name, diff="w",
                watermark=f"{LATE + 10} s", tuning=uc.Tuning(shards=2),
            )
            for name, schema, time in (("labels", LABELS, "ts"), ("events", EVENTS, "at"))
        ]  # fmt: skip
        live = looking_back(*sources, **options).to_table(
            f"parquet:{tmp_path}/features",
            "id",
            checkpoint=str(tmp_path / "checkpoint"),
            trigger={"availableNow": True},
        )
        live.awaitTermination()
        table = live.arrow()
        table = table.append_column("diff", pa.array([1] * len(table), pa.int64()))
        assert shown(table) == whole(+labels, +events, options)
    [step] = uc.checkpoint(tmp_path / "checkpoint", spark=spark).steps
    assert step.words == "join_rolling()"
