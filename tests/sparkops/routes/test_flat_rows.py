"""Rows that leave a stateful operator as columns without structs."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType
from seeds import seeds
from streams import together

import uncombine as uc
from uncombine.errors import TypeMismatch
from uncombine.flows.flow import Flow
from uncombine.sparkops.routes.flat_rows import FlatRows
from uncombine.sparkops.sql_types import spark_schema

LIST = pa.list_(pa.int8())
AT = datetime(2024, 2, 29, 12, 30, 0, 7, tzinfo=UTC)

VALUES: dict[pa.DataType, list[Any]] = {
    pa.bool_(): [True, False],
    pa.int8(): [-128, 127],
    pa.int16(): [-(2**15), 5],
    pa.int32(): [2**31 - 1, 0],
    pa.int64(): [-(2**63), 2**63 - 1],
    pa.float32(): [1.5, float("-inf")],
    pa.float64(): [0.1, float("nan"), 1e300],
    pa.string(): ["", "é𝄞", "a\0b"],
    pa.large_string(): ["long", ""],
    pa.binary(): [b"", b"\xff\x00"],
    pa.large_binary(): [b"x"],
    pa.date32(): [date(1, 1, 1), date(9999, 12, 31)],
    pa.decimal128(38, 10): [Decimal("-12345.0000000001"), Decimal(0)],
    pa.timestamp("us", "UTC"): [AT, datetime(1583, 1, 1, tzinfo=UTC)],
    pa.timestamp("us"): [AT.replace(tzinfo=None), datetime(9999, 12, 31, 23, 59, 59, 999999)],
    pa.duration("us"): [timedelta(days=-3, microseconds=1), timedelta(0)],
}
NAMES = ["k", "a b", "c.d", "`e`", "é", "counted", "c0", "shard", "payload"]


def kind(rng: random.Random, depth: int = 0) -> pa.DataType:
    """A type that is flat: a plain one, or a struct."""
    if depth < 3 and rng.random() < 0.3:
        fields = [pa.field(f"{rng.choice(NAMES)}{i}", kind(rng, depth + 1)) for i in range(rng.randint(1, 3))]
        return pa.struct(fields)
    return rng.choice(list(VALUES))


def value(rng: random.Random, of: pa.DataType) -> Any:
    if rng.random() < 0.25:
        return None
    if pa.types.is_struct(of):
        return {field.name: value(rng, field.type) for field in of}
    return rng.choice(VALUES[of])


def few_of(rng: random.Random, rows: pa.Table) -> dict[tuple[str, ...], list[Any]]:
    """Some of the columns and fields of whole numbers and texts, with the values that they may have."""
    few, parts = {}, [((name,), rows[name].combine_chunks()) for name in rows.column_names]
    while parts:
        path, array = parts.pop()
        if pa.types.is_struct(array.type):
            parts += [((*path, f.name), part) for f, part in zip(array.type, array.flatten(), strict=True)]
        elif array.type in (pa.int64(), pa.int8(), pa.string(), pa.large_string()) and rng.random() < 0.6:
            few[path] = array.unique().drop_null().to_pylist() if rng.random() < 0.5 else VALUES[array.type]
    return few


@pytest.mark.parametrize("seed", seeds(12))
def test_spark_puts_rows_together_again(seed: int, spark: SparkSession) -> None:
    rng = random.Random(seed)
    schema = pa.schema([(name, kind(rng)) for name in rng.sample(NAMES, rng.randint(1, len(NAMES)))])
    rows = pa.table([pa.array([value(rng, t) for _ in range(9)], t) for t in schema.types], schema)
    form = FlatRows.of(schema, few_of(rng, rows))
    assert form is not None
    cut = rng.randint(0, 9)
    parts = [form.frame(part) for part in (rows.slice(0, cut), rows.slice(cut))]
    travelled = pa.concat_tables(pa.Table.from_pandas(part, preserve_index=False) for part in parts)
    assert not any(pa.types.is_nested(kind) for kind in travelled.schema.types)
    df = spark.createDataFrame(travelled, StructType(list(form.fields))).select(*form.columns())
    assert df.schema == spark_schema(form.schema)
    assert sorted(map(repr, df.toArrow().cast(form.schema).to_pylist())) == sorted(map(repr, rows.to_pylist()))


@pytest.mark.parametrize(
    "kind", [pa.list_(pa.int64()), pa.map_(pa.string(), pa.int64()), pa.struct([("a", pa.list_(pa.int8()))]), pa.null()]
)
def test_other_types_are_not_flat(kind: pa.DataType) -> None:
    assert FlatRows.of(pa.schema([("n", pa.int64()), ("x", kind)])) is None


@pytest.mark.parametrize("kind", [pa.decimal256(50, 2), pa.list_(pa.uint8(), 2), pa.uint64()])
def test_a_type_that_spark_does_not_have_is_named(kind: pa.DataType, spark: SparkSession) -> None:
    df = spark.readStream.format("rate").load()
    flow = uc.flow(df, time="timestamp", watermark=uc.Monotonic()).window(uc.Fixed("1 second")).combine(n=uc.Count())
    with pytest.raises(TypeMismatch, match=r"column 'x' is .* in Arrow, but Spark has no such type: cast it"):
        flow.with_columns(x=lambda panes: pa.nulls(len(panes), kind)).df


def test_many_small_numbers_take_more_than_one_column(spark: SparkSession) -> None:
    names = [f"b{i}" for i in range(70)]
    rng = random.Random(1)
    rows = pa.table({name: [rng.choice([None, True, False]) for _ in range(20)] for name in names})
    form = FlatRows.of(rows.schema)
    assert form is not None
    assert [field.name for field in form.fields] == ["b0", "b1", "b2"]
    travelled = pa.Table.from_pandas(form.frame(rows), preserve_index=False)
    df = spark.createDataFrame(travelled, StructType(list(form.fields))).select(*form.columns())
    assert sorted(map(repr, df.toArrow().to_pylist())) == sorted(map(repr, rows.to_pylist()))


def test_a_value_that_is_none_of_the_few_is_not_lost() -> None:
    rows = pa.table({"p": pa.array([{"a": "x"}, None, {"a": None}, {"a": "z"}], pa.struct([("a", pa.string())]))})
    form = FlatRows.of(rows.schema, {("p", "a"): ["x", "y"]})
    assert form is not None
    assert len(form.frame(rows.slice(0, 3))) == 3
    with pytest.raises(ValueError, match=r"\{'z'\} are none of \['x', 'y'\]"):
        form.frame(rows)
    nothing = FlatRows.of(rows.schema, {("p", "a"): []})
    assert nothing is not None
    with pytest.raises(ValueError, match="are none of"):
        nothing.frame(rows)


@dataclass(frozen=True, repr=False)
class Tagged(uc.UserTrigger):
    """Fires for each row, with a text of its own."""

    def on_element(self, row: dict[str, Any], window: tuple[int, int], ctx: uc.TriggerContext) -> None:
        ctx.fire(tag=f"row {row['x']}")


def test_panes_of_a_stream_keep_what_users_set(spark: SparkSession, tmp_path: Path) -> None:
    """Diffs and texts of panes that a step of the flow or a trigger sets are others than those of the library."""
    times = pa.array([AT + timedelta(seconds=i) for i in range(4)], pa.timestamp("us", "UTC"))
    rows = pa.table({"ts": times, "x": [1, 2, 3, 4], "now": times})

    def grouped(trigger: uc.Trigger, df: DataFrame, **options: Any) -> Flow:
        flow = uc.flow(df, time="ts", watermark=uc.Monotonic(), processing_time="now", tuning=uc.Tuning(shards=1))
        return flow.window(uc.Fixed("2 seconds"), trigger, **options).combine(n=uc.Count())

    def renamed(panes: pa.Table) -> pa.StructArray:
        pane = panes["pane"].combine_chunks()
        parts = dict(zip((field.name for field in pane.type), pane.flatten(), strict=True))
        texts, percents = pa.array(["soon"] * len(pane), pa.string()), pa.array([7.0] * len(pane), pa.float64())
        parts |= {"timing": texts, "watermark_percentile": percents}
        return pa.StructArray.from_arrays(list(parts.values()), fields=list(pane.type))

    tagged = partial(grouped, uc.Repeatedly(Tagged()), granularity="record", mode="accumulating")
    flows = {
        "as it is": partial(grouped, uc.Always(), mode="retracting"),
        "tagged": tagged,
        "weights": lambda df: grouped(uc.Always(), df, mode="retracting").with_columns(diff=uc.col("diff") * 5),
        "texts": lambda df: grouped(uc.Always(), df, mode="accumulating").with_columns(pane=renamed),
        "percentile": partial(grouped, uc.Repeatedly(uc.WatermarkPercentile(50)), mode="accumulating"),
    }
    batches = [rows.slice(0, 1), rows.slice(1)]
    found = together(spark, {name: (batches, flow) for name, flow in flows.items()}, tmp_path)
    panes = {name: sorted(table.to_pylist(), key=repr) for name, table in found.items()}
    assert {p["diff"] for p in panes["as it is"]} == {-1, 1}
    assert {p["pane"]["trigger"] for p in panes["as it is"]} == {"rows"}
    assert {p["pane"]["trigger"] for p in panes["tagged"]} >= {"row 1", "row 4"}
    assert {p["diff"] for p in panes["weights"]} == {-5, 5}
    assert {(p["pane"]["timing"], p["pane"]["watermark_percentile"]) for p in panes["texts"]} == {("soon", 7.0)}
    assert 50.0 in {p["pane"]["watermark_percentile"] for p in panes["percentile"]}


def test_panes_of_a_stream_have_values_of_every_type(spark: SparkSession, tmp_path: Path) -> None:
    """Panes with a list beside the other columns travel as parcels, those without one as columns."""
    rng = random.Random(5)
    kinds = {f"v {i}": t for i, t in enumerate(VALUES) if not pa.types.is_large_string(t) and t != pa.large_binary()}
    columns = {name: pa.array([value(rng, t) for _ in range(40)], t) for name, t in kinds.items()}
    times = pa.array([AT + timedelta(seconds=i) for i in range(40)], pa.timestamp("us", "UTC"))
    rows = pa.table({"k": pa.array(range(40)), "ts": times, **columns})

    def grouped(df: DataFrame) -> Flow:
        flow = uc.flow(df, time="ts", watermark=uc.Monotonic()).window(uc.Fixed("1 second"), uc.Always())
        return flow.combine(by="k", **{name: uc.First(name, by="ts") for name in kinds})

    def nested(df: DataFrame) -> Flow:
        return grouped(df).map(lambda panes: panes.append_column("list", pa.array([[1]] * len(panes), LIST)))

    batches = [rows.slice(0, 20), rows.slice(20)]
    found = together(spark, {"flat": (batches, grouped), "nested": (batches, nested)}, tmp_path)
    wanted = sorted(map(repr, rows.select(["k", *kinds]).to_pylist()))
    for name, panes in found.items():
        assert sorted(map(repr, panes.select(["k", *kinds]).to_pylist())) == wanted, name
    assert found["nested"]["list"].to_pylist() == [[1]] * 40
