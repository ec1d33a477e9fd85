"""The types in which two columns are compared, and those that are refused."""

from __future__ import annotations

import pyarrow as pa
import pytest

from uncombine.errors import InvalidArgument, TypeMismatch, UnknownColumn
from uncombine.tables.comparison.common_types import common_schema


def common(one: pa.DataType, other: pa.DataType, most: int = 76) -> pa.DataType:
    schemas = [pa.schema({"x": kind}) for kind in (one, other)]
    kinds = {common_schema(*pair, most).field("x").type for pair in (schemas, schemas[::-1])}
    [kind] = kinds
    return kind


@pytest.mark.parametrize(
    ("one", "other", "kind"),
    [
        (pa.int8(), pa.int64(), pa.int64()),
        (pa.uint8(), pa.int8(), pa.int16()),
        (pa.uint32(), pa.int8(), pa.int64()),
        (pa.uint32(), pa.uint64(), pa.uint64()),
        (pa.uint64(), pa.int8(), pa.decimal128(20, 0)),
        (pa.int32(), pa.float64(), pa.float64()),
        (pa.int8(), pa.float32(), pa.float64()),
        (pa.float16(), pa.float16(), pa.float32()),
        (pa.float32(), pa.float64(), pa.float64()),
        (pa.decimal128(5, 2), pa.decimal128(9, 1), pa.decimal128(10, 2)),
        (pa.decimal128(38, 0), pa.decimal128(38, 2), pa.decimal256(40, 2)),
        (pa.decimal128(5, 2), pa.int64(), pa.decimal128(22, 2)),
        (pa.timestamp("s"), pa.timestamp("ns"), pa.timestamp("ns")),
        (pa.timestamp("s", "Europe/Paris"), pa.timestamp("us", "UTC"), pa.timestamp("us", "UTC")),
        (pa.date64(), pa.date32(), pa.date32()),
        (pa.time32("ms"), pa.time64("us"), pa.time64("us")),
        (pa.time32("s"), pa.time32("ms"), pa.time32("ms")),
        (pa.duration("s"), pa.duration("ms"), pa.duration("ms")),
        (pa.dictionary(pa.int8(), pa.string()), pa.large_string(), pa.string()),
        (pa.binary(3), pa.large_binary(), pa.binary()),
        (pa.list_(pa.int8(), 3), pa.large_list(pa.int16()), pa.list_(pa.int16())),
        (pa.struct([("a", pa.int8())]), pa.struct([("a", pa.int32())]), pa.struct([("a", pa.int32())])),
        (pa.null(), pa.list_(pa.int8()), pa.list_(pa.int8())),
        (pa.null(), pa.null(), pa.null()),
    ],
    ids=str,
)
def test_types_that_are_compared(one: pa.DataType, other: pa.DataType, kind: pa.DataType) -> None:
    assert common(one, other) == kind


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (pa.int64(), pa.float64()),
        (pa.decimal128(5, 2), pa.float64()),
        (pa.int64(), pa.string()),
        (pa.bool_(), pa.int8()),
        (pa.timestamp("us"), pa.timestamp("us", "UTC")),
        (pa.date32(), pa.timestamp("us")),
        (pa.string(), pa.binary()),
        (pa.list_(pa.int64()), pa.list_(pa.string())),
        (pa.struct([("a", pa.int8())]), pa.struct([("b", pa.int8())])),
        (pa.decimal256(76, 0), pa.decimal256(76, 2)),
    ],
    ids=str,
)
def test_types_that_are_refused(one: pa.DataType, other: pa.DataType) -> None:
    with pytest.raises(TypeMismatch, match=r"column 'x' is .* in old and .* in new, and no type holds both: cast one"):
        common(one, other)


def test_decimals_are_not_wider_than_spark_has_them() -> None:
    with pytest.raises(TypeMismatch, match="no type holds both"):
        common(pa.decimal128(38, 0), pa.decimal128(38, 2), 38)


@pytest.mark.parametrize("kind", [pa.map_(pa.string(), pa.int8()), pa.month_day_nano_interval()], ids=str)
def test_values_that_are_not_compared(kind: pa.DataType) -> None:
    with pytest.raises(TypeMismatch, match=r"column 'x' is .*, whose values are not compared"):
        common(kind, kind)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (
            ["a", "b"],
            ["a"],
            r"old and new have different columns: only old has 'b': leave them out, as by "
            r"old.select\('a'\) of a flow, or select those to compare",
        ),
        (["a"], ["a", "b", "c"], r"only new has 'b', 'c': leave them out, as by new.select\('a'\)"),
        (["a"], ["b"], "only old has 'a' and only new has 'b'"),
    ],
)
def test_other_columns_are_named(old: list[str], new: list[str], words: str) -> None:
    schemas = (pa.schema([(name, pa.int64()) for name in names]) for names in (old, new))
    with pytest.raises(UnknownColumn, match=words):
        common_schema(*schemas)


def test_two_columns_of_one_name_are_refused() -> None:
    twice = pa.schema([("a", pa.int64()), ("a", pa.int64())])
    with pytest.raises(InvalidArgument, match="new has two columns 'a': rename one"):
        common_schema(pa.schema({"a": pa.int64()}), twice)
