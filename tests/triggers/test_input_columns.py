"""The columns that triggers read are checked when the plan is built; AfterBytes counts the bytes of each type."""

from __future__ import annotations

import datetime
from typing import Any

import pyarrow as pa
import pytest

import uncombine as uc
from uncombine.errors import TypeMismatch, UncombineError, UnknownColumn
from uncombine.panes import Grouping, Operator

COL = uc.col
SCHEMA = pa.schema(
    {
        "ts": pa.timestamp("us", "UTC"),
        "kind": pa.dictionary(pa.int8(), pa.string()),
        "size": pa.int32(),
        "tags": pa.list_(pa.string()),
    }
)


def plan(trigger: uc.Trigger) -> None:
    repeated = uc.Repeatedly(uc.AfterWatermark(early=trigger))
    grouping = Grouping({"n": uc.Count(), "total": uc.Sum("size")}, uc.Fixed("1 minute"), repeated, by="kind")
    grouping.plan(SCHEMA)


@pytest.mark.parametrize(
    ("trigger", "error", "text"),
    [
        (
            uc.AfterBytes(9, of=["knd"]),
            UnknownColumn,
            r"AfterBytes\(9, of=\('knd',\)\) needs column 'knd'.*mean 'kind'",
        ),
        (uc.AfterBytes(9, of=["zzz"]), UnknownColumn, "'zzz'.*known are 'ts', 'kind', 'size', 'tags'"),
        (uc.AfterBytes(9, of=["tags"]), TypeMismatch, "'tags' is list<.*of="),
        (uc.AfterBytes(9), TypeMismatch, "'tags' is list<.*of="),
        (uc.OnPunctuation(COL("sise") > 1), UnknownColumn, r"OnPunctuation\(col\('sise'\) > 1\).*mean 'size'"),
        (uc.OnPunctuation(COL("size") + 1), TypeMismatch, r"OnPunctuation\(col\('size'\) \+ 1\).*booleans.*int64"),
        (uc.OnPunctuation(COL("size") > "x"), TypeMismatch, "does not work on int32 and string"),
        (uc.OnResult(COL("totl") > 1), UnknownColumn, r"OnResult\(col\('totl'\) > 1\).*result.*mean 'total'"),
        (
            uc.OnResult(COL("size") > 1),
            UnknownColumn,
            "known are 'kind', 'n', 'total'; use OnPunctuation for a column of the rows",
        ),
        (uc.OnResult(COL("total")), TypeMismatch, "booleans.*int64"),
    ],
)
def test_what_a_trigger_reads_must_be_there(trigger: uc.Trigger, error: type[UncombineError], text: str) -> None:
    with pytest.raises(error, match=text):
        plan(trigger)


@pytest.mark.parametrize(
    "trigger",
    [
        uc.AfterBytes(9, of=["kind", "size", "ts"]),
        uc.OnPunctuation(COL("kind") == "end"),
        uc.OnPunctuation(lambda table: table["anything"]),
        uc.OnResult((COL("total") > 1) & (COL("kind") == "end")),
        uc.OnResult(lambda table: table["anything"]),
    ],
)
def test_what_is_there_may_be_read(trigger: uc.Trigger) -> None:
    plan(trigger)


@pytest.mark.parametrize(
    ("kind", "value", "size"),
    [
        (pa.int64(), 7, 8),
        (pa.int32(), 7, 4),
        (pa.int8(), 7, 1),
        (pa.float32(), 0.5, 4),
        (pa.bool_(), True, 1),
        (pa.decimal128(5, 2), 1, 16),
        (pa.timestamp("ms"), datetime.datetime(2020, 1, 1), 8),
        (pa.date32(), datetime.date(2020, 1, 1), 4),
        (pa.string(), "naïve", 6),
        (pa.large_string(), "naïve", 6),
        (pa.string_view(), "naïve", 6),
        (pa.dictionary(pa.int8(), pa.string()), "naïve", 6),
        (pa.dictionary(pa.int8(), pa.int64()), 7, 8),
        (pa.binary(), b"abc", 3),
        (pa.large_binary(), b"abc", 3),
        (pa.binary_view(), b"abc", 3),
        (pa.binary(3), b"abc", 3),
    ],
)
def test_after_bytes_counts_values_by_their_type(kind: pa.DataType, value: Any, size: int) -> None:
    schema = pa.schema({"ts": pa.timestamp("us", "UTC"), "x": kind})
    times = pa.array([0, 0, 0], schema.field("ts").type)
    bundle = pa.table([times, pa.array([value, None, value], kind)], schema=schema)
    for least, panes in [(2 * size, 1), (2 * size + 1, 0)]:
        trigger = uc.Repeatedly(uc.AfterBytes(least, of="x"))
        operator = Operator(Grouping({"n": uc.Count()}, uc.Fixed("1 minute"), trigger), schema)
        assert operator.step(operator.initial(), bundle, watermark=0).panes.num_rows == panes


def test_a_column_of_nulls_alone_has_no_bytes() -> None:
    script = [uc.Elements([{"ts": 0, "x": None}])]
    panes = uc.flow(script).window(uc.Fixed("1 minute"), uc.Repeatedly(uc.AfterBytes(8))).combine(n=uc.Count()).run()
    assert panes.num_rows == 1
