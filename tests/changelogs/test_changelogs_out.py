"""Rows with weights as messages of other systems: what is written reads back as the same rows."""

from __future__ import annotations

import json
import random
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from changes import history, net, totals, weighted
from seeds import seeds

import uncombine as uc
from uncombine.errors import InvalidArgument, OutOfRange, UnknownColumn
from uncombine.panes.state.pane_type import PANE

c = uc.changelog
SEEDS = seeds(6, 60)

WINDOWED = ["k", "window"]


def results(seed: int) -> pa.Table:
    """The changelog of a grouping: keys with nulls, windows, panes, retractions, and nulls among the results."""
    r = random.Random(seed)
    events = history(r, 40)
    early = uc.AfterWatermark(early=uc.Always())
    rows = uc.flow(weighted(events).schema, watermark="20 seconds", diff="diff")
    flow = rows.window(uc.Fixed("1 minute"), early, "retracting").combine(
        by="k", rows=uc.Count(), x=uc.Sum("x"), mean=uc.Mean("x"), ids=uc.CountDistinct("id")
    )
    bundles = [uc.Elements(weighted(events[i : i + 5])) for i in range(0, 40, 5)]
    return flow.run([*bundles, uc.Watermark(None)]).panes.drop_columns(["step"])


def again(messages: pa.Table, changelog: Any, time: str = "event_time") -> pa.Table:
    return uc.flow(messages, changelog=changelog, time=time).run().panes.drop_columns(["step"])


def without_pane(table: pa.Table) -> pa.Table:
    return table.drop_columns(["pane"])


def schema_of(table: pa.Table, pane: bool) -> pa.Schema:
    return pa.schema([f for f in table.schema if f.name != "diff" and (pane or f.name != "pane")])


def full(pane: bool, table: pa.Table) -> dict[str, Any]:
    schema = schema_of(table, pane)
    return {
        "debezium": c.Debezium(),
        "debezium_json": c.Debezium(schema=schema),
        "delta": c.DeltaFeed(),
        "flink": c.Flink(),
        "postgres": c.Postgres(schema),
    }


def keyed(table: pa.Table) -> dict[str, Any]:
    schema = schema_of(table, False)
    return {
        "debezium_flat": c.Debezium(WINDOWED, flat=True),
        "flink_upsert": c.Flink(keys=WINDOWED),
        "kafka": c.KafkaUpsert(WINDOWED, schema=schema),
    }


@pytest.mark.weekly
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", ["debezium", "debezium_json", "delta", "flink", "postgres"])
def test_rule_65_both_rows_of_updates_read_back_as_the_same_changes(name: str, seed: int) -> None:
    table = results(seed)
    assert {row["k"] for row in table.to_pylist()} >= {None, "u"}
    for pane in (False, True):
        for keys in (None, WINDOWED):
            messages = c.to(name, keys, pane=pane)(table)
            read = again(messages, full(pane, table)[name])
            want = table if pane else without_pane(table)
            assert read.schema.equals(
                want.schema.remove(want.schema.get_field_index("diff")).append(want.schema.field("diff"))
            )
            rows = sorted(map(repr, read.to_pylist()))
            assert rows == sorted(map(repr, want.select(read.column_names).to_pylist()))


@pytest.mark.weekly
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", ["debezium_flat", "flink_upsert", "kafka"])
def test_rule_65_last_rows_of_keys_read_back_as_the_rows_that_are_left(name: str, seed: int) -> None:
    """The changelog is written bundle by bundle, so that keys are updated and deleted."""
    table = results(seed)
    for size in (1, 7, table.num_rows):
        parts = [c.to(name, WINDOWED)(table.slice(i, size)) for i in range(0, table.num_rows, size)]
        read = again(pa.concat_tables(parts), keyed(table)[name])
        assert net(read) == net(table)


def test_weights_beyond_one_are_as_many_messages() -> None:
    table = pa.table({"k": ["a", "b", "c", "a"], "n": [1, 1, 5, 1], "diff": [3, 0, 1, -2]})
    for name in ("debezium", "delta", "flink", "postgres"):
        for keys in (None, "k"):
            messages = c.to(name, keys)(table)
            assert messages.num_rows == 6
            format: Any = c.Postgres(table.schema.remove(2)) if name == "postgres" else c.NAMES[name](())
            assert net(format.reading(messages.schema)(messages)) == net(table)


@pytest.mark.parametrize("weight", [2**31, 2**40, -(2**40), 2**61])
def test_weights_of_too_many_messages_are_refused_before_they_are_made(weight: int) -> None:
    table = pa.table({"k": ["a", "b"], "n": [1, 1], "diff": [weight, 1]})
    for name in ("debezium", "debezium_json", "delta", "flink", "postgres"):
        with pytest.raises(OutOfRange, match=f"{abs(weight) + 1:,} messages here.*: use smaller weights"):
            c.to(name)(table)


def test_a_key_with_several_rows_is_refused_where_a_key_has_one() -> None:
    for table in (
        pa.table({"k": ["a"], "n": [1], "diff": [2]}),
        pa.table({"k": ["a", "a"], "n": [1, 2], "diff": [1, 1]}),
    ):
        for name in ("kafka", "debezium_flat", "flink_upsert", "spark_update"):
            with pytest.raises(InvalidArgument, match=r"key \{'k': 'a'\} has several rows"):
                c.to(name, "k")(table)


def test_an_update_is_one_message_in_the_place_of_its_retraction() -> None:
    table = pa.table({"k": ["a", "b", "a", "c"], "n": [1, 2, 3, 4], "diff": [-1, -1, 1, 1]})
    messages = c.to("debezium", "k")(table).to_pylist()
    assert [(m["op"], (m["before"] or {}).get("n"), (m["after"] or {}).get("n")) for m in messages] == [
        ("u", 1, 3),
        ("d", 2, None),
        ("c", None, 4),
    ]
    assert c.to("flink", "k")(table)["row_kind"].to_pylist() == ["-U", "+U", "-D", "+I"]
    assert c.to("flink")(table)["row_kind"].to_pylist() == ["-D", "-D", "+I", "+I"]
    assert c.to("delta", "k")(table)["n"].to_pylist() == [1, 3, 2, 4]
    wal = [json.loads(text) for text in c.to("postgres", "k")(table)["data"].to_pylist()]
    assert [(m["action"], "identity" in m, "columns" in m) for m in wal] == [
        ("U", True, True),
        ("D", True, False),
        ("I", False, True),
    ]


def test_texts_for_kafka() -> None:
    table = pa.table({"k": ["a", None], "n": [1.5, 2], "diff": [1, -1]})
    assert c.to("kafka", "k")(table).to_pylist() == [
        {"key": '{"k":"a"}', "value": '{"k":"a","n":1.5}'},
        {"key": '{"k":null}', "value": None},
    ]
    assert c.to("debezium_json", "k")(table).to_pylist() == [
        {"key": '{"k":"a"}', "value": '{"before":null,"after":{"k":"a","n":1.5},"op":"c"}'},
        {"key": '{"k":null}', "value": '{"before":{"k":null,"n":2},"after":null,"op":"d"}'},
    ]
    assert c.to("debezium_json")(table).column_names == ["value"]


def test_a_pane_is_left_out_unless_it_is_asked_for() -> None:
    table = results(1)
    assert "pane" not in c.to("flink")(table).column_names
    assert c.to("flink", pane=True)(table).schema.field("pane").type == PANE
    own = pa.table({"pane": [1], "diff": [1]})  # a column of the user
    assert c.to("flink")(own).column_names == ["pane", "row_kind"]


def test_ops_and_formats_as_values() -> None:
    ops = c.Ops("what", {"ins": 1, "del": -1, "other": 1})
    table = pa.table({"k": ["a", "a"], "w": [1, -1]})
    assert c.to(ops, diff="w")(table)["what"].to_pylist() == ["ins", "del"]
    assert c.to(c.Ops("op", {1: 1, 0: -1}, keys="k"), diff="w")(table).num_rows == 0
    assert c.to(c.Flink(kind="kind"), diff="w")(table).column_names == ["k", "kind"]
    assert c.to(c.KafkaUpsert("k"), diff="w")(table.slice(0, 1))["key"].to_pylist() == ['{"k":"a"}']
    with pytest.raises(InvalidArgument, match="no operation of weight 1"):
        c.to(c.Ops("op", {"D": -1}), diff="w")(table)


def test_results_pandas_and_empty_tables() -> None:
    flow = uc.flow(weighted(history(random.Random(2), 20)), diff="diff")
    run = totals(flow).run()
    assert c.to("flink")(run).equals(c.to("flink")(run.panes.drop_columns(["step"])))
    frame = pd.DataFrame({"k": ["a"], "diff": [1]})
    assert c.to("flink")(frame).to_pylist() == [{"k": "a", "row_kind": "+I"}]
    table = results(3)
    for name in c.NAMES:
        empty, some = (c.to(name, WINDOWED)(t) for t in (table.slice(0, 0), table.slice(0, 1)))
        assert empty.schema == some.schema, name
        assert empty.num_rows == 0


def test_wrong_use_is_refused() -> None:
    table = pa.table({"k": ["a"], "n": [1], "diff": [1]})
    with pytest.raises(InvalidArgument, match="did you mean 'debezium'"):
        c.to("debezum")
    with pytest.raises(InvalidArgument, match="takes the name of a format"):
        c.to(3)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="give keys="):
        c.to("kafka")(table)
    with pytest.raises(UnknownColumn, match="'user'"):
        c.to("flink", "user")(table)
    with pytest.raises(UnknownColumn, match="diff="):
        c.to("flink", diff="w")(table)
    with pytest.raises(InvalidArgument, match="no message for a deleted key"):
        c.to("spark_update", "k")(pa.table({"k": ["a"], "diff": [-1]}))


def test_a_flow_goes_on_from_what_another_flow_wrote() -> None:
    """The counts of a flow, handed on as messages, give the flow after it what the panes themselves give."""
    table = results(5)
    sizes = lambda flow: flow.window(uc.Fixed("1 hour")).combine(by="rows", n=uc.Count(), x=uc.Sum("x"))  # noqa: E731
    direct = sizes(uc.flow(without_pane(table), time="event_time", diff="diff"))
    want = net(direct.run().panes)
    for name, changelog in {**full(False, table), **keyed(table)}.items():
        flow = sizes(uc.flow(c.to(name, WINDOWED)(table), time="event_time", changelog=changelog))
        assert net(flow.run().panes) == want, name
