"""Rows that leave a stateful operator as columns without structs."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType
from streams import together

import uncombine as uc
from uncombine.errors import TypeMismatch
from uncombine.panes.flow import Flow
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


@pytest.mark.parametrize("seed", range(12))
def test_spark_puts_rows_together_again(seed: int, spark: SparkSession) -> None:
    rng = random.Random(seed)
    schema = pa.schema([(name, kind(rng)) for name in rng.sample(NAMES, rng.randint(1, len(NAMES)))])
    rows = pa.table([pa.array([value(rng, t) for _ in range(9)], t) for t in schema.types], schema)
    form = FlatRows.of(schema)
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
    flow = uc.flow(df, "timestamp", uc.Monotonic()).window(uc.Fixed("1 second")).combine(n=uc.Count())
    with pytest.raises(TypeMismatch, match=r"column 'x' is .* in Arrow, but Spark has no such type: cast it"):
        flow.with_columns(x=lambda panes: pa.nulls(len(panes), kind)).df


def test_panes_of_a_stream_have_values_of_every_type(spark: SparkSession, tmp_path: Path) -> None:
    """Panes with a list beside the other columns travel as parcels, those without one as columns."""
    rng = random.Random(5)
    kinds = {f"v {i}": t for i, t in enumerate(VALUES) if not pa.types.is_large_string(t) and t != pa.large_binary()}
    columns = {name: pa.array([value(rng, t) for _ in range(40)], t) for name, t in kinds.items()}
    times = pa.array([AT + timedelta(seconds=i) for i in range(40)], pa.timestamp("us", "UTC"))
    rows = pa.table({"k": pa.array(range(40)), "ts": times, **columns})

    def grouped(df: DataFrame) -> Flow:
        flow = uc.flow(df, "ts", uc.Monotonic()).window(uc.Fixed("1 second"), uc.Always())
        return flow.combine(by="k", **{name: uc.First(name, by="ts") for name in kinds})

    def nested(df: DataFrame) -> Flow:
        return grouped(df).map(lambda panes: panes.append_column("list", pa.array([[1]] * len(panes), LIST)))

    batches = [rows.slice(0, 20), rows.slice(20)]
    found = together(spark, {"flat": (batches, grouped), "nested": (batches, nested)}, tmp_path)
    wanted = sorted(map(repr, rows.select(["k", *kinds]).to_pylist()))
    for name, panes in found.items():
        assert sorted(map(repr, panes.select(["k", *kinds]).to_pylist())) == wanted, name
    assert found["nested"]["list"].to_pylist() == [[1]] * 40
