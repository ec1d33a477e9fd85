"""Changelogs of other systems on Spark: every convention on every route, in the stand-ins and in a session."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from bounded import Bounded, cut, same
from changes import (
    FORMS,
    ROW,
    SECOND,
    START,
    TIME,
    Event,
    bundles,
    debezium,
    debezium_json,
    history,
    net,
    totals,
    weighted,
)
from engine import Engine
from opened import flow_over, opened
from pyspark.sql import DataFrame, SparkSession
from seeds import seeds
from streams import Rows, panes_by_batch, started, together

import uncombine as uc
from uncombine.changelogs.flows import flow_of
from uncombine.errors import InvalidArgument
from uncombine.flows.settings import Settings
from uncombine.sparkops.source import SparkSource
from uncombine.sparkops.sql_types import spark_schema

SEEDS = seeds(2, 40)
c = uc.changelog


def drawn(name: str, seed: int) -> list[Event]:
    r = random.Random(f"{name} {seed}")
    return history(r, r.randrange(1, 40), FORMS[name].deletes)


def seen(table: pa.Table, at: int) -> pa.Table:
    """The messages or rows of a bundle with their processing time."""
    return table.append_column("seen", pa.array([START + at * SECOND] * table.num_rows, TIME))


def beside(changelog: Any) -> Any:
    """The format, for messages with a processing time."""
    if isinstance(changelog, c.DeltaFeed):
        return replace(changelog, metadata=["_commit_version", "seen"])
    if hasattr(changelog, "metadata"):
        return replace(changelog, metadata=[*changelog.metadata, "seen"])
    return changelog


@pytest.mark.weekly
@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("seed", SEEDS)
def test_final_results_are_those_of_the_weights(name: str, seed: int) -> None:
    """The messages come in any order and in several tasks."""
    events, form = drawn(name, seed), FORMS[name]
    messages, rows = form.messages(events), weighted(events)
    flow = flow_over(Bounded(cut(messages, 3, seed), messages.schema, seed), Settings("ts"), form.changelog)
    plain = flow_of(SparkSource(Bounded([rows], rows.schema)), Settings("ts", diff="diff"))
    assert net(totals(flow).map(same).df.toArrow()) == net(totals(plain).map(same).df.toArrow())
    assert net(flow.df.toArrow()) == net(rows)
    few = flow.select("k", "diff").df.toArrow()
    assert net(few) == net(rows.select(["k", "diff"]))


@pytest.mark.weekly
@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_replay_gives_what_the_weights_give(name: str, seed: int) -> None:
    events, form, r = drawn(name, seed), FORMS[name], random.Random(seed)
    some = [bundle for bundle in bundles(r, events) if bundle]
    messages = pa.concat_tables(seen(form.messages(bundle), i) for i, bundle in enumerate(some))
    rows = pa.concat_tables(seen(weighted(bundle), i) for i, bundle in enumerate(some))
    settings = Settings("ts", "20 seconds", processing_time="seen", replay=True, close_at_end=True, shards=2)
    changelog = beside(form.changelog)
    if getattr(changelog, "flat", False):
        messages = messages.rename_columns([n if n != "seen" else "__seen" for n in messages.column_names])
        settings = replace(settings, processing_time="__seen")
    flow = flow_over(Bounded(cut(messages, 2, seed), messages.schema, seed), settings, changelog)
    plain = flow_of(
        SparkSource(Bounded([rows], rows.schema)), replace(settings, processing_time="seen", diff="diff")
    ).select(*ROW.names, "diff")
    assert net(totals(flow).df.toArrow()) == net(totals(plain).df.toArrow())


@pytest.mark.weekly
@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("seed", SEEDS)
def test_micro_batches_give_what_the_weights_give(name: str, seed: int) -> None:
    """After each batch the same rows are left, with parcels in any order and new workers between batches."""
    events, form, r = drawn(name, seed), FORMS[name], random.Random(seed)
    some = bundles(r, events)
    given, rows = Rows(form.messages(events).schema), Rows(weighted(events).schema)
    flow = flow_over(given, Settings("ts", "20 seconds", shards=2), form.changelog)
    plain = flow_of(SparkSource(rows), Settings("ts", "20 seconds", diff="diff", shards=2))
    reading = flow.source.reading
    assert reading is not None
    got, want = Engine(totals(flow), seed), Engine(totals(plain))
    shown: list[list[pa.Table]] = [[], []]
    for i, bundle in enumerate(some):
        if r.random() < 0.3:
            got.restart()
        for place, (engine, table) in enumerate(((got, reading(form.messages(bundle))), (want, weighted(bundle)))):
            panes, counted = engine.batch(table, START // 1000 + i)
            shown[place].append(panes)
            assert sum(numbers.get("rows_bad", 0) for numbers in counted) == 0
        assert net(pa.concat_tables(shown[0])) == net(pa.concat_tables(shown[1]))


def test_a_bad_message_is_counted_in_a_stream_and_stops_final_results() -> None:
    events = history(random.Random(4), 12)
    messages = debezium_json(events)
    mixed = pa.concat_tables([messages, pa.table({"value": ["?", '{"op": "x"}']})])
    form = c.Debezium(schema=ROW)
    flow = flow_over(Rows(mixed.schema), Settings("ts", "20 seconds", shards=2), form)
    reading: Any = flow.source.reading
    engine = Engine(totals(flow), 1)
    _, counted = engine.batch(reading(mixed), START // 1000)
    assert sum(numbers.get("rows_bad", 0) for numbers in counted) == 2
    bounded = Bounded([mixed], mixed.schema)
    final = totals(flow_over(bounded, Settings("ts"), form)).map(same)
    with pytest.raises(InvalidArgument, match="no JSON"):
        final.df.toArrow()
    played = Settings("ts", "20 seconds", processing_time="ts", replay=True)
    assert "ts" in flow_over(bounded, played, form).schema.names


def test_a_stream_without_a_step_leaves_bad_messages_out() -> None:
    messages = pa.table({"value": ["?", '{"op": "c", "after": {"ts": 5, "id": "a"}}']})
    settings = Settings("ts", "20 seconds", processing_time="ts", replay=True)
    flow = flow_over(Bounded([messages], messages.schema), settings, c.Debezium(schema=ROW))
    assert [row["id"] for row in flow.df.toArrow().to_pylist()] == ["a"]


def test_a_feed_without_old_rows_needs_an_order_on_spark() -> None:
    schema = pa.schema([*ROW, ("row_kind", pa.string())])
    with pytest.raises(InvalidArgument, match="order="):
        flow_over(Rows(schema), Settings("ts", "20 seconds"), c.Flink(keys="id"))


def test_the_explanation_names_the_format() -> None:
    schema = debezium([]).schema
    flow = flow_over(Bounded([debezium([])], schema), Settings("ts"), c.Debezium("id", order="source.lsn"))
    assert "read by uc.changelog.Debezium()" in flow.explain()
    assert "Upserts(by=('id',)" in flow.explain()


def frame(spark: SparkSession, table: pa.Table) -> DataFrame:
    return spark.createDataFrame(table)


def test_changelogs_in_a_session(spark: SparkSession, tmp_path: Path) -> None:
    """Final results over DataFrames and files, with the order of the rows left to Spark."""
    for name in ("debezium keyed", "kafka json", "wal2json"):
        events, form = drawn(name, 7), FORMS[name]
        want = net(totals(uc.flow(weighted(events), diff="diff")).run().panes)
        messages = form.messages(events)
        pq.write_table(messages, tmp_path / f"{name}.parquet")
        path = str(tmp_path / f"{name}.parquet")
        if name == "wal2json":
            flow = uc.flow(path, spark=spark, changelog=form.changelog, tuning=uc.Tuning(shards=2))
        else:
            flow = uc.flow(spark.read.parquet(path), changelog=form.changelog, tuning=uc.Tuning(shards=2))
        assert net(totals(flow).df.toArrow()) == want, name


def test_a_deployed_flow_runs_locally_and_in_a_replay(spark: SparkSession) -> None:
    events = history(random.Random(8), 30)
    messages = debezium(events)
    deployed = totals(
        uc.flow(frame(spark, messages), changelog=c.Debezium("id", order="source.lsn"), tuning=uc.Tuning(shards=2))
    )
    run = deployed.run([uc.Elements(messages), uc.Watermark(None)])
    assert net(run.panes) == net(deployed.df.toArrow())


def test_a_processing_time_may_be_a_column_of_the_rows(spark: SparkSession) -> None:
    events = history(random.Random(5), 20)
    rows = weighted(events)
    options: dict[str, Any] = {"processing_time": "ts", "replay": True, "close_at_end": True, "shards": 2}
    flow = opened(frame(spark, debezium(events)), watermark="20 seconds", changelog=c.Debezium(), **options)
    settings = Settings("ts", "20 seconds", diff="diff", **options)
    plain = flow_of(SparkSource(Bounded([rows], rows.schema)), settings)
    assert net(totals(flow).df.toArrow()) == net(totals(plain).df.toArrow())


def test_final_results_of_a_union_and_a_join_of_changelogs(spark: SparkSession) -> None:
    one, other = (history(random.Random(seed), 20, nulls=False) for seed in (11, 12))
    forms = [FORMS["debezium keyed"], FORMS["delta"]]

    def built(flows: list[uc.Flow]) -> list[uc.Flow]:
        joined = flows[0].join(flows[1].select("id", "ts", "x", "diff"), on="id", within=("-2 minutes", "2 minutes"))
        return [totals(uc.union(*flows)), joined.window(uc.Fixed("1 minute")).combine(by="k", n=uc.Count())]

    pairs = zip(forms, (one, other), strict=True)
    read = built(
        [uc.flow(frame(spark, f.messages(e)), changelog=f.changelog, tuning=uc.Tuning(shards=2)) for f, e in pairs]
    )
    plain = built([uc.flow(weighted(e), name=name, diff="diff") for name, e in (("a", one), ("b", other))])
    for got, want in zip(read, plain, strict=True):
        assert net(got.df.toArrow()) == net(want.run().panes)


def streamed(df: Any, changelog: c.Changelog) -> uc.Flow:
    return totals(uc.flow(df, watermark="20 seconds", changelog=changelog, tuning=uc.Tuning(shards=2)))


STREAMED = ["debezium", "debezium json", "debezium keyed", "debezium json, unsent", "flat", "kafka json"]


@pytest.mark.parametrize("names", [STREAMED[2:4], pytest.param(STREAMED, marks=pytest.mark.soak)], ids=len)
def test_changelogs_in_a_stream(names: list[str], spark: SparkSession, tmp_path: Path) -> None:
    """Each flow leaves, after every batch, the rows that the weights leave."""
    events = history(random.Random(9), 30)
    some = [events[:9], events[9:20], events[20:]]
    flows: dict[str, Any] = {}
    for name in names:
        form = FORMS[name]
        flows[name] = ([form.messages(bundle) for bundle in some], partial(streamed, changelog=form.changelog))
    plain = uc.flow(weighted(events).schema, watermark="20 seconds", diff="diff")
    want = totals(plain).run([uc.Elements(weighted(bundle)) for bundle in some]).panes
    shown = together(spark, flows, tmp_path)
    for name in names:
        for step in range(3):
            upto = [
                t.filter(pa.array([at <= step for at in t["step"].to_pylist()], pa.bool_()))
                for t in (shown[name], want)
            ]
            assert net(upto[0]) == net(upto[1]), (name, step)


def test_a_changelog_is_handed_on(spark: SparkSession, tmp_path: Path) -> None:
    """Spark writes the messages that are written of the same rows as a table, in DataFrames and in a stream."""
    table = weighted(history(random.Random(10), 20))
    df = frame(spark, table).coalesce(1)
    for name in ("debezium", "kafka", "flink"):
        write = c.to(name, "id")
        assert sorted(map(repr, df.transform(write).toArrow().to_pylist())) == sorted(
            map(repr, write(table).to_pylist())
        )
    folder = tmp_path / "rows"
    folder.mkdir()
    pq.write_table(table, folder / "0.parquet")
    stream = spark.readStream.schema(spark_schema(table.schema)).parquet(str(folder))
    flow = totals(uc.flow(stream, watermark="20 seconds", diff="diff", tuning=uc.Tuning(shards=2)))
    query = started(flow.df.transform(c.to("debezium_json", ["k", "window"])), tmp_path)
    query.awaitTermination()
    messages = pa.concat_tables(panes_by_batch(tmp_path))
    local = totals(uc.flow(table, watermark="20 seconds", diff="diff"))
    row = pa.schema([f for f in local.schema if f.name not in ("pane", "diff")])
    read = uc.flow(messages, time="event_time", changelog=c.Debezium(schema=row))
    want = local.run([uc.Elements(table)]).panes
    assert net(read.run().panes) == net(want)


def test_one_warning_for_a_dataframe(spark: SparkSession) -> None:
    df = frame(spark, pa.table({"ts": pa.array([0], TIME), "op": ["c"]}))
    with pytest.warns(UserWarning, match="'op'") as found:
        uc.flow(df)
    assert len(found) == 1
    assert found[0].filename == __file__


@pytest.mark.full
def test_a_stream_whose_first_file_has_new_rows_alone(spark: SparkSession, tmp_path: Path) -> None:
    """`before` has the type of `after`; a column whose type nobody knows is refused before anything starts."""
    folder = tmp_path / "in"
    folder.mkdir()
    one, two = {"user": "ada", "ts": 0, "n": 5, "note": None}, {"user": "ada", "ts": 0, "n": 7, "note": None}
    messages = [("c", None, one), ("u", one, two), ("c", None, one), ("d", one, None)]
    for place, (op, before, after) in enumerate(messages):
        transaction = {"id": "1"} if place else None
        message = {"payload": {"before": before, "after": after, "op": op, "transaction": transaction}}
        (folder / f"{place}.json").write_text(json.dumps(message))
    changelog = uc.changelog.Debezium()
    options = {"changelog": changelog, "time_format": "us", "spark": spark, "streaming": True, "watermark": "1 hour"}

    def sums() -> uc.Flow:
        files = uc.Files(folder, order="name")
        return uc.flow(files, **options).window("1 day", "each row").combine(by="user", n=uc.Sum("n"))

    with pytest.raises(InvalidArgument, match=r"'(payload\.)?(before|after)\.note' is null in all rows"):
        sums().write_stream(checkpoint=tmp_path / "refused")
    text = (folder / "0.json").read_text()
    (folder / "0.json").write_text(text.replace('"note": null', '"note": "new"'))
    (folder / "1.json").write_text((folder / "1.json").read_text().replace('"note": null', '"note": "new"', 1))
    table = f"duckdb:{tmp_path}/sums.db#sums"
    live = sums().to_table(table, checkpoint=tmp_path / "checkpoint", trigger={"availableNow": True})
    live.awaitTermination()
    assert live.arrow().select(["user", "n"]).to_pylist() == [{"user": "ada", "n": 7}]
    assert sum(flow.rows_unreadable for flow in uc.progress(live).flows.values()) == 0
