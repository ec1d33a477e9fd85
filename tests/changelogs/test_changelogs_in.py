"""Messages of other systems as rows with weights: every convention gives what the weights give."""

from __future__ import annotations

import json
import random
import warnings
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from changes import FORMS, ROW, SECOND, TIME, Event, bundles, debezium, history, left, net, totals, weighted
from random_pipelines import draw
from seeds import seeds

import uncombine as uc
from uncombine.errors import InvalidArgument, TypeMismatch, UnknownColumn

SEEDS = seeds(4, 60)
c = uc.changelog
NOW = datetime(2016, 1, 20, 12, tzinfo=UTC)


def drawn(name: str, seed: int) -> list[Event]:
    r = random.Random(f"{name} {seed}")
    return history(r, r.randrange(1, 40), FORMS[name].deletes, FORMS[name].nulls)


@pytest.mark.weekly
@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("seed", SEEDS)
def test_rule_61_a_table_of_messages_gives_what_its_weights_give(name: str, seed: int) -> None:
    events, form = drawn(name, seed), FORMS[name]
    want = uc.flow(weighted(events), diff="diff")
    got = uc.flow(form.messages(events), changelog=form.changelog)
    assert got.schema.names == [*ROW.names, "diff"]
    assert sorted(row["id"] or "" for row in left(events).values()) == sorted(ids_left(got.run()))
    assert net(got.run().panes) == net(want.run().panes)
    assert net(totals(got).run().panes) == net(totals(want).run().panes)


def ids_left(rows: Any) -> list[str]:
    ids: Counter[str] = Counter()
    for row in rows.to_pylist():
        ids[row["id"] or ""] += row["diff"]
    return list(ids.elements())


@pytest.mark.weekly
@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("seed", SEEDS)
def test_bundles_of_messages_give_what_their_weights_give(name: str, seed: int) -> None:
    """After each bundle the same rows are left, although rows come late and the watermark passes windows."""
    events, form, r = drawn(name, seed), FORMS[name], random.Random(seed)
    some = bundles(r, events)
    schema = form.messages(events).schema
    plain = totals(uc.flow(weighted(events).schema, watermark="20 seconds", diff="diff"))
    read = totals(uc.flow(schema, watermark="20 seconds", changelog=form.changelog))
    want = plain.run([*(uc.Elements(weighted(b)) for b in some), uc.Watermark(None)])
    got = read.run([*(uc.Elements(form.messages(b)) for b in some), uc.Watermark(None)])
    # A window of a version that another one replaces in the same bundle holds the watermark, and is never seen there.
    assert form.keyed or got.output_watermarks == want.output_watermarks
    for step in range(len(some) + 1):
        upto = [
            table.filter(pa.array([at <= step for at in table["step"].to_pylist()], pa.bool_()))
            for table in (got.panes, want.panes)
        ]
        assert net(upto[0]) == net(upto[1]), step
    assert got.counts()["bad"] == 0


@pytest.mark.weekly
@pytest.mark.parametrize("name", ["debezium", "debezium keyed", "flat", "kafka json", "wal2json keyed"])
@pytest.mark.parametrize("seed", seeds(4))
def test_times_that_are_missing_or_far_ahead_count_as_those_of_the_weights(name: str, seed: int) -> None:
    form, r = FORMS[name], random.Random(f"{name} {seed}")
    events = [replace(event, old=odd(event.old), new=odd(event.new)) for event in history(r, 25)]
    some = bundles(r, events)
    at = [NOW + timedelta(minutes=i) for i in range(len(some))]
    schema = form.messages(events).schema
    for strategy, build in ((uc.BoundedLag("20 seconds"), totals), (uc.EachBatch(), by_minute)):
        plain = build(uc.flow(weighted(events).schema, watermark=strategy, diff="diff"))
        read = build(uc.flow(schema, watermark=strategy, changelog=form.changelog))
        want = plain.run([uc.Elements(weighted(b), at=t) for b, t in zip(some, at, strict=True)])
        got = read.run([uc.Elements(form.messages(b), at=t) for b, t in zip(some, at, strict=True)])
        assert net(got.panes) == net(want.panes)


def odd(row: Any) -> Any:
    """The row, some with no time or one that is days ahead; the same row always alike."""
    if row is None:
        return None
    chance = random.Random(repr(row)).random()
    return {**row, "ts": None} if chance < 0.1 else {**row, "ts": row["ts"] + (chance < 0.2) * 3 * 86_400 * SECOND}


def by_minute(flow: uc.Flow) -> uc.Flow:
    return flow.window(uc.Fixed("1 minute"), mode="retracting").combine(by="k", rows=uc.Count(), x=uc.Sum("x"))


def test_rows_keep_their_columns_and_lose_those_of_the_message() -> None:
    events = history(random.Random(1), 10)
    messages = debezium(events).append_column(
        "seen", pa.array([0] * debezium(events).num_rows, pa.timestamp("us", "UTC"))
    )
    flow = uc.flow(messages, changelog=c.Debezium(), processing_time="seen")
    assert flow.schema.names == ["ts", "id", "k", "x", "diff"]
    named = uc.flow(messages, changelog=c.Debezium(), diff="weight")
    assert named.schema.names[-1] == "weight"
    own = pa.table({"ts": [0], "diff": [5], "row_kind": ["-D"]})
    assert uc.flow(own, changelog=c.Flink(), diff="w").source.rows.to_pylist()[0]["w"] == -1  # type: ignore[attr-defined]


def test_a_pickled_flow_reads_the_same_messages() -> None:
    import pickle

    for form in FORMS.values():
        events = history(random.Random(3), 20, form.deletes)
        messages = form.messages(events)
        reading: Any = form.changelog.reading(messages.schema)
        again = pickle.loads(pickle.dumps(reading))
        assert again(messages).equals(reading(messages))
        assert again(messages.slice(0, 0)).schema == reading(messages).schema


BAD: dict[str, tuple[Any, pa.Table, str]] = {
    "op": (
        c.Debezium(),
        pa.table({"op": ["x"], "before": [None], "after": [{"ts": NOW, "x": 1}]}),
        "one of c, r, u, d",
    ),
    "no before": (
        c.Debezium(),
        pa.table({"op": ["u"], "before": pa.nulls(1), "after": [{"ts": NOW, "x": 1}]}),
        "REPLICA IDENTITY FULL",
    ),
    "kind": (c.Flink(), pa.table({"ts": [NOW], "x": [1], "row_kind": ["+X"]}), "'+X'"),
    "null kind": (c.Flink(), pa.table({"ts": [NOW], "x": [1], "row_kind": pa.array([None], pa.string())}), "None"),
    "delta": (c.DeltaFeed(), pa.table({"ts": [NOW], "x": [1], "_change_type": ["upsert"]}), "'upsert'"),
    "ops": (c.Ops("o", {1: 1, 2: -1}), pa.table({"ts": [NOW], "x": [1], "o": [3]}), "one of 1, 2, but is 3"),
    "flat": (c.Debezium("x", flat=True), pa.table({"ts": [NOW], "x": [1], "__op": ["z"]}), "'z'"),
    "no order": (
        c.Flink(keys="x", order="n", metadata=["n"]),
        pa.table({"ts": [NOW], "x": [1], "row_kind": ["+I"], "n": pa.array([None], pa.int64())}),
        "column 'n' is null",
    ),
    "json": (c.Debezium(schema=pa.schema({"ts": TIME, "x": pa.int64()})), pa.table({"value": ["{"]}), "no JSON"),
    "kafka": (
        c.KafkaUpsert("x", schema=pa.schema({"ts": TIME, "x": pa.int64()})),
        pa.table({"key": ["1"], "value": ["[]"]}),
        "'value' of a topic",
    ),
    "wal2json": (
        c.Postgres(pa.schema({"ts": TIME, "x": pa.int64()})),
        pa.table({"data": ['{"action":"Z"}']}),
        "'Z'",
    ),
    "wal2json, type": (
        c.Postgres(pa.schema({"ts": TIME, "x": pa.int64()})),
        pa.table({"data": ['{"action":"I","columns":[{"name":"ts","value":null},{"name":"x","value":"many"}]}']}),
        "column 'x'",
    ),
    "wal2json, part of an old row": (
        c.Postgres(pa.schema({"ts": TIME, "x": pa.int64()})),
        pa.table({"data": ['{"action":"D","identity":[{"name":"x","value":1}]}']}),
        "no whole old row",
    ),
    "wal2json, part of a new row": (
        c.Postgres(pa.schema({"ts": TIME, "x": pa.int64()}), keys="x"),
        pa.table({"data": ['{"action":"U","columns":[{"name":"x","value":1}]}']}),
        "no value of column 'ts'",
    ),
    "a value that was not sent": (
        c.Debezium("x"),
        pa.table({"op": ["u"], "before": pa.nulls(1), "after": [{"ts": NOW, "x": "__debezium_unavailable_value"}]}),
        "REPLICA IDENTITY FULL",
    ),
    "a flat value that was not sent": (
        c.Debezium("x", flat=True),
        pa.table({"ts": [NOW], "x": ["__debezium_unavailable_value"], "__op": ["u"]}),
        "REPLICA IDENTITY FULL",
    ),
    "neither key nor value": (
        c.KafkaUpsert("x", schema=pa.schema({"ts": TIME, "x": pa.int64()})),
        pa.table({"key": pa.array([None], pa.string()), "value": pa.array([None], pa.string())}),
        "neither a key nor a value",
    ),
    "bytes": (
        c.KafkaUpsert("x", schema=pa.schema({"ts": TIME, "x": pa.string()})),
        pa.table({"key": [b"\xff"], "value": [b'{"ts": 1}']}),
        "'key' of a topic",
    ),
    "truncated": (
        c.Debezium(truncate="bad"),
        pa.table({"op": ["t"], "before": [None], "after": [{"ts": NOW, "x": 1}]}),
        "'t'",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_rule_64_a_bad_message_is_an_error_in_a_table_and_a_bad_row_in_a_script(name: str) -> None:
    changelog, messages, words = BAD[name]
    with pytest.raises(InvalidArgument, match=words.replace("+", r"\+")):
        uc.flow(messages, changelog=changelog)
    flow = uc.flow(messages.schema, changelog=changelog)
    counted = flow.window(uc.Global()).combine(n=uc.Count())
    run = counted.run([uc.Elements(messages), uc.Watermark(None)])
    assert (run.num_rows, run.counts()["bad"]) == (0, 1)
    assert flow.run([uc.Elements(messages), uc.Watermark(None)]).num_rows == 0


def test_a_deleted_row_gives_its_key_alone_and_does_not_move_the_watermark() -> None:
    """Debezium sends any values for the other columns."""
    row = {"id": "a", "x": 1, "__op": "c"}
    later = NOW + timedelta(hours=3)
    rows = [{**row, "ts": NOW}, {**row, "ts": later, "__op": "d"}, {**row, "id": "b", "ts": NOW}]
    bundles = [uc.Elements(pa.Table.from_pylist([one])) for one in rows]
    feed = uc.flow(bundles[0].rows.schema, watermark="1 minute", changelog=c.Debezium("id", flat=True))  # type: ignore[union-attr]
    run = feed.window(uc.Fixed("1 hour")).combine(by="id", n=uc.Count()).run([*bundles, uc.Watermark(None)])
    assert (run["id"].to_pylist(), run.counts()["dropped"]) == (["b"], 0)


@pytest.mark.weekly
def test_a_bad_message_does_not_touch_the_others() -> None:
    for name, form in FORMS.items():
        events = history(random.Random(name), 12, form.deletes)
        messages = form.messages(events)
        wrong = {f.name: pa.array([None], f.type) for f in messages.schema}
        for column, value in (
            ("op", "?"),
            ("row_kind", "?"),
            ("_change_type", "?"),
            ("value", "?"),
            ("data", "?"),
            ("__op", "?"),
        ):
            if column in wrong and not pa.types.is_struct(messages.schema.field(column).type):
                wrong[column] = pa.array([value]).cast(messages.schema.field(column).type)
        if name in ("kafka", "spark update", "flat, deleted only"):
            continue  # no value of theirs is wrong
        mixed = pa.concat_tables([messages.slice(0, 5), pa.table(wrong), messages.slice(5)])
        flow = totals(uc.flow(messages.schema, changelog=form.changelog))
        whole, other = (flow.run([uc.Elements(t), uc.Watermark(None)]) for t in (messages, mixed))
        assert net(whole.panes) == net(other.panes), name
        assert (whole.counts()["bad"], other.counts()["bad"]) == (0, 1), name


def test_a_truncated_table_stops_the_flow() -> None:
    envelope = pa.table({"op": ["t"], "before": [None], "after": [{"ts": NOW, "x": 1}]})
    flow = uc.flow(envelope.schema, changelog=c.Debezium())
    with pytest.raises(InvalidArgument, match="truncated"):
        flow.run([uc.Elements(envelope)])
    row = pa.schema({"ts": pa.int64()})
    with pytest.raises(InvalidArgument, match="truncated"):
        uc.flow(pa.table({"data": ['{"action":"T"}']}), changelog=c.Postgres(row))
    with pytest.raises(InvalidArgument, match="truncated"):
        uc.flow(pa.table({"ts": [NOW], "__op": ["t"]}), changelog=c.Debezium("ts", flat=True))


def test_rule_63_an_update_of_a_primary_key_deletes_the_old_one() -> None:
    images = [{"ts": 0, "id": "a", "x": 1}, {"ts": 0, "id": "b", "x": 1}]
    envelope = pa.table({"op": ["c", "u"], "before": [None, images[0]], "after": images})
    run = uc.flow(envelope, changelog=c.Debezium("id")).run()
    assert [(row["id"], row["diff"]) for row in run.to_pylist()] == [("b", 1)]
    data = [
        '{"action":"I","columns":[{"name":"ts","value":0},{"name":"id","value":"a"}]}',
        '{"action":"U","columns":[{"name":"ts","value":0},{"name":"id","value":"b"}],"identity":[{"name":"id","value":"a"}]}',
    ]
    row = pa.schema({"ts": pa.int64(), "id": pa.string()})
    flow = uc.flow(pa.table({"data": data}), changelog=c.Postgres(row, keys="id"))
    assert [(row["id"], row["diff"]) for row in flow.run().to_pylist()] == [("b", 1)]


@pytest.mark.parametrize(
    ("table", "column"),
    [
        ({"ts": [0], "diff": [1]}, "'diff'"),
        ({"ts": [0], "op": ["c"], "_change_type": ["insert"]}, "'_change_type'"),
        ({"ts": [0], "op": ["c"]}, "'op'"),
        ({"ts": [0], "row_kind": ["+I"]}, "'row_kind'"),
        ({"ts": [0], "__op": ["c"]}, "'__op'"),
    ],
)
def test_a_column_of_changes_that_nobody_named_gives_one_warning(table: dict[str, Any], column: str) -> None:
    for given in (pa.table(table), pa.table(table).schema):
        with pytest.warns(UserWarning, match=column) as found:
            uc.flow(given)
        assert len(found) == 1
        assert found[0].filename == __file__


def test_a_column_of_changes_that_is_named_gives_no_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        uc.flow(pa.table({"ts": [0], "diff": [1]}), diff="diff")
        uc.flow(pa.table({"ts": [0], "op": ["c"], "w": [1]}), diff="w")
        uc.flow(pa.table({"ts": [0], "row_kind": ["+I"]}), changelog=c.Flink())
        uc.flow(pa.table({"ts": [0], "difference": [1]}))


ENVELOPE = pa.schema([("op", pa.string()), ("before", pa.struct(list(ROW))), ("after", pa.struct(list(ROW)))])
BESIDE_A_KEY = pa.schema([("key", pa.struct([("id", pa.int64())])), ("value", pa.struct(list(ENVELOPE)))])
FLAT = pa.schema([*ROW, ("__op", pa.string())])

REFUSED: dict[str, tuple[Any, pa.Schema, type[Exception], str]] = {
    "no format": ("debezium", ENVELOPE, InvalidArgument, "takes a format"),
    "a class": (c.Debezium, ENVELOPE, InvalidArgument, "takes a format"),
    "flattened": (c.Debezium(), FLAT, InvalidArgument, "flat=True"),
    "no keys": (c.Debezium(flat=True), FLAT, InvalidArgument, "needs keys="),
    "no op": (c.Debezium("id", flat=True), ROW, InvalidArgument, "add.fields=op"),
    "no struct": (
        c.Debezium(),
        pa.schema([(n, pa.string()) for n in ("op", "before", "after")]),
        TypeMismatch,
        "must be structs",
    ),
    "json": (c.Debezium(), pa.schema([("value", pa.string())]), InvalidArgument, "give schema="),
    "no json": (c.Debezium(schema=ROW), ENVELOPE, InvalidArgument, "leave schema= out"),
    "no json beside a key": (c.Debezium(schema=ROW), BESIDE_A_KEY, InvalidArgument, "leave schema= out"),
    "no json in a payload": (
        c.Debezium(schema=ROW),
        pa.schema([("payload", pa.struct(list(ENVELOPE)))]),
        InvalidArgument,
        "leave schema= out",
    ),
    "no column": (c.Flink(), ROW, UnknownColumn, "row_kind"),
    "keys": (c.Flink(keys="who"), ROW.append(pa.field("row_kind", pa.string())), UnknownColumn, "'who'"),
    "order": (c.Debezium("id", order="source.lsn"), ENVELOPE, UnknownColumn, "'source'"),
    "order of texts": (
        c.Flink(keys="id", order="k"),
        ROW.append(pa.field("row_kind", pa.string())),
        TypeMismatch,
        "order=",
    ),
    "order without keys": (
        c.Flink(order="x"),
        ROW.append(pa.field("row_kind", pa.string())),
        InvalidArgument,
        "give keys=",
    ),
    "a diff": (
        c.Flink(),
        pa.schema([*ROW, ("diff", pa.int64()), ("row_kind", pa.string())]),
        InvalidArgument,
        "with diff=",
    ),
    "a wrong kind": (c.Ops("x", {"I": 1}), ROW, TypeMismatch, "its column is int64"),
    "no schema": (c.Postgres(), pa.schema([("data", pa.string())]), InvalidArgument, "give schema="),
    "a key of two": (
        c.KafkaUpsert(["id", "k"]),
        pa.schema([("key", pa.int64()), ("value", pa.struct(list(ROW)))]),
        TypeMismatch,
        "struct or JSON",
    ),
    "no time": (c.Flink(), pa.schema([("x", pa.int64()), ("row_kind", pa.string())]), UnknownColumn, "time="),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_fit_is_refused_when_it_is_built(name: str) -> None:
    changelog, schema, error, words = REFUSED[name]
    with pytest.raises(error, match=words):
        uc.flow(schema, changelog=changelog)


def test_options_that_make_no_sense_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="truncate="):
        c.Debezium(truncate="skip")
    with pytest.raises(InvalidArgument, match="flat=True"):
        c.Debezium("id", schema=ROW, flat=True)
    with pytest.raises(InvalidArgument, match="whole number"):
        c.Ops("op", {"I": "1"})  # type: ignore[dict-item]
    with pytest.raises(InvalidArgument, match="keep_deletes="):
        uc.flow(ROW.append(pa.field("row_kind", pa.string())), changelog=c.Flink(keys="id", keep_deletes="-1 s"))
    with pytest.raises(InvalidArgument, match="IngressTime"):
        uc.flow(ENVELOPE, watermark=uc.IngressTime(), changelog=c.Debezium())


def pipelines(seed: int) -> tuple[tuple[uc.Flow, list[Any]], tuple[uc.Flow, list[Any]], tuple[str, ...]]:
    """A random pipeline over messages, and the same over weights, each with its script."""
    r = random.Random(seed)
    names = "ab"[: r.choice([1, 2, 2])]
    forms = {name: FORMS[r.choice(list(FORMS))] for name in names}
    feeds = {
        name: [replace(event, old=known(event.old), new=known(event.new)) for event in history(r, 25, form.deletes)]
        for name, form in forms.items()
    }
    lags = {name: r.choice(["2 minutes", "2 minutes", "30 seconds"]) for name in names}
    parts = [(i, name, part) for name in names for i, part in enumerate(bundles(r, feeds[name]))]
    made = []
    for read in (True, False):
        flows, script = {}, list[Any]()
        for name, form in forms.items():
            schema = form.messages(feeds[name]).schema if read else weighted([]).schema
            options: dict[str, Any] = {"changelog": form.changelog} if read else {"diff": "diff"}
            flows[name] = uc.flow(schema, name=name, watermark=lags[name], **options)
        pipeline = draw(random.Random(seed), flows)
        for _, name, part in sorted(parts, key=lambda some: some[:2]):
            if name in pipeline.names:
                script.append(uc.Elements(forms[name].messages(part) if read else weighted(part), input=name))
        made.append((pipeline.flow, [*script, uc.Watermark(None)]))
    return made[0], made[1], pipeline.names


def known(row: Any) -> Any:
    """The row with a number, which the steps of random pipelines need."""
    return None if row is None else {**row, "x": 3 if row["x"] is None else row["x"]}


@pytest.mark.weekly
@pytest.mark.parametrize("seed", seeds(40, 600))
def test_pipelines_over_messages_end_as_those_over_weights(seed: int) -> None:
    (read, messages), (plain, rows), names = pipelines(seed)
    got, want = read.run(messages).panes, plain.run(rows).panes
    assert net(got) == net(want), names


def test_debezium_in_a_payload(tmp_path: Path) -> None:
    one, two = {"ts": 0, "id": 1, "x": 5}, {"ts": 0, "id": 1, "x": 7}
    envelopes = [
        {"op": "c", "before": None, "after": one, "source": {"lsn": 1}},
        {"op": "u", "before": one, "after": two, "source": {"lsn": 2}},
        {"op": "d", "before": two, "after": None, "source": {"lsn": 3}},
    ]
    (tmp_path / "a.json").write_text("\n".join(json.dumps({"schema": {"type": "s"}, "payload": e}) for e in envelopes))
    path = tmp_path / "a.json"
    got = uc.flow(path, changelog=c.Debezium()).run().select(["x", "diff"]).to_pylist()
    plain = uc.flow(envelopes, changelog=c.Debezium()).run().select(["x", "diff"]).to_pylist()
    assert got == plain == [{"x": x, "diff": d} for x, d in ((5, 1), (5, -1), (7, 1), (7, -1))]
    keyed = uc.flow(path, changelog=c.Debezium(keys="id", order="source.lsn")).run()
    assert sum(row["diff"] for row in keyed.to_pylist()) == 0


@pytest.mark.parametrize("replayed", [False, True])
def test_rule_61_a_retraction_may_arrive_later_than_its_row(replayed: bool) -> None:
    seen = "2024-05-01T12:0{}:00Z"
    rows = [
        {"ts": "2024-05-01T12:00:00Z", "id": "a", "seen": seen.format(minute), "weight": weight}
        for minute, weight in ((1, 1), (9, -1))
    ]
    flow = uc.flow(rows, diff="weight", processing_time="seen", watermark="1 minute")
    assert flow.schema.names == ["ts", "id", "weight"]
    played = flow.replay(close_at_end=True) if replayed else flow
    once = played.distinct("id", within="1 hour", allowed_lateness="1 day")
    assert once.window("1 day").combine(n=uc.Count()).run().table().num_rows == 0
    assert uc.flow(rows, processing_time="seen").schema.names == ["ts", "id", "seen", "weight"]
