"""Types of Arrow by their texts, in casts and in stored state."""

from __future__ import annotations

import pyarrow as pa
import pytest

import uncombine as uc
from uncombine.combiners.rows.type_names import type_named
from uncombine.errors import InvalidArgument

TYPES = [pa.int64(), pa.string(), pa.date32(), pa.timestamp("us", "UTC"), pa.timestamp("ns"), pa.decimal128(9, 2)]


@pytest.mark.parametrize("kind", [*TYPES, pa.decimal256(60, -3)], ids=str)
def test_a_type_is_found_by_its_text(kind: pa.DataType) -> None:
    assert type_named(str(kind)) == kind


def test_a_cast_takes_a_text() -> None:
    rows = pa.table({"x": ["1.50", "2"]})
    for text in ("decimal128(12, 2)", "decimal(12,2)", "decimal(12, 2)"):
        cast = uc.flow(rows.append_column("ts", pa.array([0, 1]))).with_columns(x=uc.col("x").cast(text)).run()
        assert cast["x"].type == pa.decimal128(12, 2)
        assert list(map(str, cast["x"].to_pylist())) == ["1.50", "2.00"]
    for text in ("decimal(99, 2)", "decimal", "numeric"):
        assert type_named(text) is None
        with pytest.raises(InvalidArgument, match=r"such as pa.int64\(\), 'int64' or 'decimal128\(12, 2\)'"):
            uc.col("x").cast(text)
