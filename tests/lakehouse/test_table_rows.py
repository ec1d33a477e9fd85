"""Rows of parts with their weights: equal rows cancel, in the columns that are read, and others do not."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from seeds import seeds

from uncombine.errors import InvalidArgument
from uncombine.lakehouse.changed_files import ChangedFile, Part
from uncombine.lakehouse.table_rows import TableRows

SCHEMA = pa.schema([("a", pa.int64()), ("x", pa.float64()), ("tags", pa.list_(pa.string()))])


class Versions:
    """Files that are tables of a test."""

    name, schema = "the table", SCHEMA

    def __init__(self, tables: dict[str, pa.Table]) -> None:
        self.tables = tables

    def rows(self, part: Part, file: ChangedFile, columns: Sequence[str]) -> Iterator[tuple[pa.Table, Any]]:
        table = self.tables[file.path]
        for rows in (table.slice(0, 2), table.slice(2)):
            weights = None if file.weight else np.where(np.arange(rows.num_rows) % 2, -1, 1)
            yield rows.select(list(columns)), weights


def table(r: random.Random) -> pa.Table:
    rows = [
        {"a": r.choice([None, 1, 2]), "x": r.choice([None, 0.5]), "tags": r.choice([None, [], ["y", None]])}
        for _ in range(r.randrange(6))
    ]
    return pa.Table.from_pylist(rows, SCHEMA)


def part(weights: dict[str, int]) -> Part:
    files = (ChangedFile(path=path, weight=weight, size=1, partition={}) for path, weight in weights.items())
    return Part(version=4, at=1_000_000, files=tuple(files))


@pytest.mark.parametrize("seed", seeds(40))
def test_rule_88_weights_of_equal_rows_add_up(seed: int) -> None:
    r = random.Random(seed)
    tables = {name: table(r) for name in "bcd"}
    weights = {"b": -1, "c": 1, "d": r.choice([0, 1])}
    columns = r.choice([["a"], ["a", "tags"], ["tags", "x", "a"]])
    expected: Counter[str] = Counter()
    for name, one in tables.items():
        for place, row in enumerate(one.select(columns).to_pylist()):
            place -= 2 * (place >= 2)
            expected[repr(row)] += weights[name] or (-1 if place % 2 else 1)
    found: Counter[str] = Counter()
    for rows in TableRows(Versions(tables), "w")(part(weights), [*columns, "w"]):  # type: ignore[arg-type]
        for row in rows.to_pylist():
            weight = row.pop("w")
            assert weight != 0
            assert repr(row) not in found
            found[repr(row)] = weight
    assert found == {row: weight for row, weight in expected.items() if weight}


def test_rows_have_their_commit_on_request() -> None:
    tables = {"b": pa.Table.from_pylist([{"a": 1}], SCHEMA)}
    rows = TableRows(Versions(tables), "diff", ("_commit_version", "_commit_timestamp"))  # type: ignore[arg-type]
    (one,) = (table for table in rows(part({"b": 1}), rows.schema.names) if table.num_rows)
    assert one.schema == rows.schema
    assert one.select(["_commit_version", "diff"]).to_pylist() == [{"_commit_version": 4, "diff": 1}]
    assert one["_commit_timestamp"].cast(pa.int64()).to_pylist() == [1_000_000]


def test_a_name_that_the_table_has_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="the table has a column 'a' of its own: give diff='another name'"):
        TableRows(Versions({}), "a")  # type: ignore[arg-type]
