"""One sentence says why a window has not been shown: its state, the watermark and the source that holds it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import uncombine as uc
from uncombine.errors import InvalidArgument, TypeMismatch
from uncombine.sparkops.checkpoints.row_reasons import _misfits
from uncombine.sparkops.checkpoints.sources_of_step import SourcesOfStep

SCHEMA = pa.schema({"ts": pa.timestamp("us", "UTC"), "user": pa.string(), "x": pa.int64()})
ROWS = [(0, "a", 1), (1, "b", 2), (70, "a", 3), (5, "c", 4), (6, "c", 5), (20, None, 1)]


def put(folder: Path, name: str, rows: list[tuple[int, str | None, int]]) -> None:
    folder.mkdir(exist_ok=True)
    times, users, xs = zip(*rows, strict=True)
    table = pa.table([pa.array([t * 1_000_000 for t in times], SCHEMA.field("ts").type), users, xs], schema=SCHEMA)
    pq.write_table(table, folder / f"{name}.parquet")


def source(spark: SparkSession, folder: Path, **options: object) -> uc.Flow:
    files = uc.Files(str(folder), order="name")
    watermark = options.pop("watermark", "30 seconds")
    return uc.flow(files, spark=spark, streaming=True, watermark=watermark, tuning=uc.Tuning(shards=2), **options)  # type: ignore[call-overload]


def at(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def ran(flow: uc.Flow, checkpoint: Path) -> None:
    flow.write_stream(checkpoint=checkpoint).format("noop").trigger(availableNow=True).start().awaitTermination()


def test_a_window_that_waits_for_the_watermark(spark: SparkSession, tmp_path: Path) -> None:
    put(tmp_path / "in", "a", ROWS)
    minutes = source(spark, tmp_path / "in").window("1 minute", allowed_lateness="1 minute")
    totals = minutes.combine(by="user", total=uc.Sum("x"))
    writer = totals.write_stream(checkpoint=tmp_path / "c").format("noop").trigger(availableNow=True)
    query = writer.start()
    query.awaitTermination()
    said = uc.why(query, window="1970-01-01 00:00:30", user="c")
    head, _, since = said.partition(" since ")
    assert head == (
        "window 1970-01-01 00:00:00 - 00:01:00 of user='c' has 2 rows and has not been shown: it waits until the "
        "watermark, which is 1970-01-01 00:00:40 because its source has had no later time"
    )
    assert since.endswith(", has passed 1970-01-01 00:01:00")
    assert datetime.fromisoformat(f"{since[:19]}+00:00") <= datetime.now(UTC)
    start, end = datetime(1970, 1, 1, 0, 1, tzinfo=UTC), datetime(1970, 1, 1, 0, 2, tzinfo=UTC)
    assert uc.why(tmp_path / "c", window=(start, end), user="a").startswith(
        "window 1970-01-01 00:01:00 - 00:02:00 of user='a' has 1 row and has not been shown"
    )
    assert " of user=None has 1 row and " in uc.why(tmp_path / "c", window=start.replace(minute=0), user=None)
    assert uc.why(tmp_path / "c", window="1970-01-01 00:05", user="a") == (
        "the state has no window at 1970-01-01 00:05:00 of user='a': none of its rows has been taken in, for the "
        "watermark is 1970-01-01 00:00:40 and it expires at 1970-01-01 00:07:00"
    )
    # In the window the watermark is after the start, and a key without rows has no source of its own here.
    said = uc.why(tmp_path / "c", window="1970-01-01 00:00:30", user="d")
    assert said.startswith("the state has no window at 1970-01-01 00:00:30 of user='d': none of its rows has been")
    assert said.endswith(" and it expires at 1970-01-01 00:02:00; no row of this key is in the state")
    put(tmp_path / "in", "b", [(100, "b", 1)])
    ran(totals, tmp_path / "c")
    assert " of user='c' has 2 rows, was shown once and has had none since: nothing happens to it until the" in uc.why(
        tmp_path / "c", window="1970-01-01", user="c"
    )
    put(tmp_path / "in", "c", [(300, "b", 1)])
    ran(totals, tmp_path / "c")
    put(tmp_path / "in", "d", [(0, "b", 1)])
    ran(totals, tmp_path / "c")
    assert uc.why(uc.checkpoint(tmp_path / "c", spark=spark), window="1970-01-01", user="c") == (
        "the state has no window at 1970-01-01 00:00:00 of user='c': it has expired, or none of its rows has been "
        "taken in, and the state does not say which, so look into the table, and into flow.left_out if it is kept; the "
        "watermark, 1970-01-01 00:04:30, has passed it; since its first start the step has left out 1 late"
    )


def test_the_source_that_holds_the_watermark_is_named(spark: SparkSession, tmp_path: Path) -> None:
    """Also of a later step, for which the step before it holds it."""
    put(tmp_path / "in", "a", [(0, "a", 1), (400, "b", 2)])
    rows = source(spark, tmp_path / "in", watermark=uc.PerSource("user", lag="30 seconds", idle_after="1 day"))
    minutes = rows.window("1 minute", "early every 1 row", mode="retracting").combine(total=uc.Sum("x"))
    hours = minutes.window("1 hour").combine(most=uc.Max("total"))
    writer = hours.write_stream(checkpoint=tmp_path / "c").format("noop").trigger(availableNow=True)
    query = writer.start()
    query.awaitTermination()
    progress = uc.progress(query.recentProgress[0])
    assert progress is not None
    first, second = progress.stages
    told = [(one.input, one.name, one.watermark, one.idle) for one in first.sources]
    assert told == [(1, "a", at(-30), False), (1, "b", at(370), False)]
    assert second.sources == ()
    assert first.to_dict()["sources"][0]["watermark"] == "1969-12-31T23:59:30+00:00"
    found = uc.checkpoint(tmp_path / "c", spark=spark).sources().to_pylist()
    assert [(one["source"], one["holds"], one["idle"]) for one in found if one["step"] == 1] == [
        ("a", True, False),
        ("b", False, False),
    ]
    said = uc.why(tmp_path / "c", window="1970-01-01")
    assert "window 1970-01-01 00:00:00 - 00:01:00 has 1 row, was shown once and has had none since" in said
    assert "which is 1969-12-31 23:59:30 because source a has had no later time since" in said
    hour = uc.why(tmp_path / "c", window=("1970-01-01 00:00", "1970-01-01 01:00"))
    assert hour.startswith("window 1970-01-01 00:00:00 - 01:00:00 has 2 rows and has not been shown: it waits until")
    assert "because source a has had no later time since" in hour
    assert hour.endswith(", has passed 1970-01-01 01:00:00; none of its 2 sources has come that far yet")
    assert "come that far" not in said
    absent = uc.why(tmp_path / "c", window=("1970-01-01 00:03", "1970-01-01 00:04"))
    assert absent.startswith(
        "the state has no window at 1970-01-01 00:03:00: none of its rows has been taken in, for the watermark is "
        "1969-12-31 23:59:30 and it expires at 1970-01-01 00:04:00; source a, whose watermark is 1969-12-31 23:59:30, "
        "has reported last at "
    )


def test_idle_sources_are_told_of() -> None:
    idle = {"source": "a", "step": 1, "input": 1, "idle": True, "holds": False, "last_report": at(7), "end": None}
    idle["watermark"] = at(50)
    other = {**idle, "source": "b", "last_report": at(9)}
    assert SourcesOfStep([idle, other], number=2).holder() == (
        " because all its 2 sources are idle, the last one since 1970-01-01 00:00:09, and moves with their next row"
    )
    assert SourcesOfStep([idle, other], number=2).beside(at(20)) == ""
    held = {**other, "idle": False, "holds": True}
    assert SourcesOfStep([idle, held], number=1).holder() == (
        " because source b has had no later time since 1970-01-01 00:00:09"
    )
    last = "with the last time at 1970-01-01 00:00:07"
    assert SourcesOfStep([idle, held], number=1).beside(at(20)) == f"; source a is idle, {last}"
    assert SourcesOfStep([idle, held], number=1).beside(at(51)) == (
        f"; none of its 2 sources has come that far yet; source a is idle, {last}"
    )
    unheard = {**idle, "source": "c", "watermark": None, "last_report": None}
    assert SourcesOfStep([unheard, held], number=1).beside(at(20)) == (
        "; source c is idle and has not reported a time yet"
    )
    assert SourcesOfStep([idle, idle, held], number=1).beside(at(20)) == f"; 2 sources are idle, such as a, {last}"
    assert SourcesOfStep([idle, held], number=1).silent(60_000_000, {"user": "a"}) == (
        "; source a, whose watermark is 1970-01-01 00:00:50, has reported last at 1970-01-01 00:00:07, and is idle"
    )


def test_a_live_table_is_asked_and_an_input_of_a_join_is_named(spark: SparkSession, tmp_path: Path) -> None:
    put(tmp_path / "left", "a", [(0, "a", 1), (400, "b", 2)])
    put(tmp_path / "right", "a", [(0, "a", 1), (30, "b", 2)])
    left, right = source(spark, tmp_path / "left"), source(spark, tmp_path / "right", name="right")
    pairs = left.join(right.select("user", "ts", "x"), on="user", within=("-1 minute", "1 minute"))
    counts = pairs.window("1 minute").combine(by="user", n=uc.Count())
    place = {"checkpoint": tmp_path / "c", "trigger": {"availableNow": True}}
    with counts.to_table(f"duckdb:{tmp_path}/t.db#t", **place) as live:  # type: ignore[arg-type]
        live.awaitTermination()
        said = uc.why(live, window="1970-01-01", user="a")
    sources = uc.checkpoint(tmp_path / "c", spark=spark).sources().to_pylist()
    assert [(one["input"], one["source"]) for one in sources if one["step"] == 1] == [(1, "left"), (2, "right")]
    assert "of user='a' has 1 row and has not been shown: it waits until the watermark, which is " in said
    assert "because its source of input 2 (right) has had no later time since" in said


def test_an_input_that_has_not_reported_is_a_source_that_holds_the_watermark(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Until the strategy that it has later says for how long."""

    def counts(**idle: str) -> uc.Flow:
        lag = uc.BoundedLag("30 seconds", **idle)
        folders = {
            name: uc.Files(str(tmp_path / name), format="parquet", schema=SCHEMA, order="name")
            for name in ("web", "app")
        }
        options: dict[str, Any] = {"spark": spark, "streaming": True, "watermark": lag, "tuning": uc.Tuning(shards=2)}
        flows = [uc.flow(files, name=name, **options) for name, files in folders.items()]
        return uc.union(*flows).window("1 minute").combine(n=uc.Count())

    put(tmp_path / "web", "a", [(0, "a", 1), (400, "b", 2)])
    (tmp_path / "app").mkdir()
    query = counts().write_stream(checkpoint=tmp_path / "c").format("noop").trigger(availableNow=True).start()
    query.awaitTermination()
    progress = uc.progress(query.recentProgress[-1])
    assert progress is not None
    told = [(one.input, one.name, one.watermark, one.idle) for one in progress.stages[0].sources]
    assert told == [(2, "app", None, False), (1, "web", at(370), False)]
    found = uc.checkpoint(tmp_path / "c", spark=spark).sources().to_pylist()
    assert [(one["source"], one["watermark"], one["holds"]) for one in found] == [
        ("web", at(370), False),
        ("app", None, True),
    ]
    said = uc.why(tmp_path / "c", window="1970-01-01")
    assert "because its source of input 2 (app) has not reported a time yet" in said
    for name in "bcd":  # the first batch under the strategy is that from which the input waits
        put(tmp_path / "web", name, [(400, "b", 2)])
        ran(counts(idle_after="1 millisecond"), tmp_path / "c")
    found = uc.checkpoint(tmp_path / "c", spark=spark).sources().to_pylist()
    assert [(one["source"], one["holds"], one["idle"]) for one in found][1] == ("app", False, True)
    assert uc.checkpoint(tmp_path / "c", spark=spark).steps[0].watermark == at(370)


def test_without_a_window_it_is_the_one_that_waits_longest(spark: SparkSession, tmp_path: Path) -> None:
    """The first to end of those with rows that were not shown, of any key."""
    put(tmp_path / "in", "a", [(130, "a", 1), (70, "b", 2), (75, "c", 3), (150, "b", 4)])
    named = source(spark, tmp_path / "in", watermark="2 minutes", name="clicks")
    minutes = named.window("1 minute", allowed_lateness="1 hour").combine(by="user", total=uc.Sum("x"))
    writer = minutes.write_stream(checkpoint=tmp_path / "c").format("noop").trigger(availableNow=True)
    query = writer.start()
    query.awaitTermination()
    progress = uc.progress(query)
    assert progress is not None
    assert [(one.input, one.name) for one in progress.stages[0].sources] == [(1, "clicks")]
    said = uc.why(query)
    assert said.startswith("window 1970-01-01 00:01:00 - 00:02:00 of user='b' has 1 row and has not been shown: it ")
    assert said.endswith(", has passed 1970-01-01 00:02:00; 3 more windows of step 1 wait")
    assert uc.why(tmp_path / "c", user="a").startswith("window 1970-01-01 00:02:00 - 00:03:00 of user='a' has 1 row")
    with pytest.raises(InvalidArgument, match=r"no grouping has the key \(name\)"):
        uc.why(tmp_path / "c", name="a")
    put(tmp_path / "in", "b", [(1000, "b", 1)])
    put(tmp_path / "in", "c", [(1001, "b", 1)])
    ran(minutes, tmp_path / "c")
    ran(minutes, tmp_path / "c")
    assert uc.why(tmp_path / "c", user="a") == (
        "no window of user='a' has rows that were not shown; the state holds 5 windows, and "
        "uc.why(query, window='2026-05-01 12:00', user='ada') says of one of them what it waits for"
    )


def test_a_window_in_many_and_one_without_a_time_to_wait_for(spark: SparkSession, tmp_path: Path) -> None:
    put(tmp_path / "in", "a", ROWS)
    rows = source(spark, tmp_path / "in")
    ran(rows.window(uc.Sliding("10 minutes", "1 minute")).combine(n=uc.Count()), tmp_path / "many")
    said = uc.why(tmp_path / "many", window="1970-01-01 00:00:30").splitlines()
    assert [line.startswith("window 1969-12-31 23:5") for line in said] == [True, True, True, False]
    assert said[3] == "and 7 more windows"
    [begins_there] = uc.why(tmp_path / "many", window="1970-01-01").splitlines()
    assert begins_there.startswith("window 1970-01-01 00:00:00 - 00:10:00 has 6 rows and has not been shown")
    ran(rows.window("global", "every 100 rows").combine(n=uc.Count()), tmp_path / "all")
    assert uc.why(tmp_path / "all", window="1970-01-01").startswith("the global window has 6 rows and has not been")


def test_a_row_is_judged(spark: SparkSession, tmp_path: Path) -> None:
    put(tmp_path / "in", "a", ROWS)
    minutes = source(spark, tmp_path / "in").window("1 minute", allowed_lateness="1 minute")
    ran(minutes.combine(by="user", total=uc.Sum("x")), tmp_path / "c")
    assert uc.why(tmp_path / "c", row={"ts": "1970-01-01 00:00:10", "user": "c"}) == (
        "the row would be taken in, by its window 1970-01-01 00:00:00 - 1970-01-01 00:01:00, which has 2 rows now"
    )
    late = uc.why(tmp_path / "c", row={"ts": "1969-12-31 23:50:00", "user": "c"})
    assert late.startswith("the row would be left out as late, by 0:08:40: its window 1969-12-31 23:50:00 - ")
    with pytest.raises(InvalidArgument, match="takes a window and its key, or a row, which has both"):
        uc.why(tmp_path / "c", row={"ts": 0, "user": "c"}, user="c")
    with pytest.raises(InvalidArgument, match=r"needs the columns of a key: the checkpoint .* has \(user\) of step 1"):
        uc.why(tmp_path / "c", row={"ts": 0})


def test_a_row_of_files_of_text_is_judged_as_the_query_judges_it(spark: SparkSession, tmp_path: Path) -> None:
    """Of a bad and of an unreadable row."""
    rows = [{"ts": "1970-01-01T00:00:10Z", "user": "a", "x": 1}]
    asked = [*rows, {**rows[0], "ts": "2200-05-01T12:00:00Z"}, {**rows[0], "x": "hot"}, {**rows[0], "ts": "yesterday"}]
    (tmp_path / "in").mkdir()
    for name, some in (("a", rows), ("b", asked)):
        (tmp_path / "in" / f"{name}.json").write_text("".join(json.dumps(row) + "\n" for row in some))
        minutes = source(spark, tmp_path / "in", watermark="1 hour").window("1 minute")
        totals = minutes.combine(by="user", total=uc.Sum("x"))
        writer = totals.write_stream(checkpoint=tmp_path / "c").format("noop").trigger(availableNow=True)
        query = writer.start()
        query.awaitTermination()
    progress = uc.progress(query)
    assert progress is not None
    assert (progress.stages[0].rows_in, progress.rows_bad, progress.rows_unreadable) == (2, 1, 2)
    said = [uc.why(query, row=row) for row in asked]
    assert said[0].startswith("the row would be taken in, by its window 1970-01-01 00:00:00 - 1970-01-01 00:01:00")
    assert said[1].startswith("the row would be left out as bad: its time 2200-05-01 12:00:00 is ")
    assert said[1].endswith(" after processing time, more than max_future=1 day")
    assert said[2] == "the row would be unreadable: 'hot' is no int64 for 'x'"
    assert said[3] == "the row would be unreadable: 'yesterday' is no timestamp[us, tz=UTC] for 'ts'"


def test_what_cannot_be_asked_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    put(tmp_path / "in", "a", ROWS)
    ran(source(spark, tmp_path / "in").distinct("user", within="1 hour"), tmp_path / "none")
    with pytest.raises(InvalidArgument, match="has no grouping with rows, so it has no windows"):
        uc.why(tmp_path / "none", window="1970-01-01")
    ran(source(spark, tmp_path / "in").window("1 minute").combine(by="user", n=uc.Count()), tmp_path / "c")
    with pytest.raises(InvalidArgument, match=r"no grouping has the key \(name\): give a value .* \(user\) in step"):
        uc.why(tmp_path / "c", window="1970-01-01", name="a")
    with pytest.raises(TypeMismatch, match="the key 'user' is string, and 7 is none"):
        uc.why(tmp_path / "c", window="1970-01-01", user=7)
    with pytest.raises(InvalidArgument, match="takes a moment in the window, or its start and end, not 1 times"):
        uc.why(tmp_path / "c", window=("1970-01-01",), user="a")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="'soon' is not an ISO time"):
        uc.why(tmp_path / "c", window="soon", user="a")
    with pytest.raises(TypeMismatch, match="takes a query, a live table or the folder of a checkpoint, but was"):
        uc.why(7, window="1970-01-01")  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["timestamp[us, tz=UTC]", "int64", "double", "date32[day]"])
def test_an_empty_text_of_csv_is_no_value_and_readable(kind: str) -> None:
    assert not _misfits("", kind)
    assert _misfits("soon", kind)
