"""Changelogs there and back, and through a grouping."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

import uncombine as uc
from uncombine.errors import InvalidArgument, TypeMismatch, UnknownColumn


def history(seed: int) -> pa.Table:
    """A changelog in which only what is there is removed."""
    rng, rows, held = random.Random(seed), [], []
    for _ in range(40):
        if held and rng.random() < 0.4:
            row = held.pop(rng.randrange(len(held)))
            rows.append((*row, -1))
            if rng.random() < 0.5:
                held.append((row[0], rng.randint(0, 3)))
                rows.append((*held[-1], 1))
        else:
            held.append((rng.choice("abc"), rng.randint(0, 3)))
            rows.append((*held[-1], 1))
    return pa.table({"k": [r[0] for r in rows], "n": [r[1] for r in rows], "diff": [r[2] for r in rows]})


@pytest.mark.parametrize("seed", range(10))
def test_each_form_reads_back_as_the_same_changes(seed: int) -> None:
    table = history(seed)
    for there, back in (
        (uc.changelog.to_flink, uc.changelog.from_flink),
        (uc.changelog.to_delta, uc.changelog.from_delta),
        (uc.changelog.to_debezium, uc.changelog.from_debezium),
    ):
        again: Any = back(there(table, keys=["k"]))
        assert again.select(table.column_names).to_pylist() == table.to_pylist()


def test_updates_are_a_retraction_and_an_addition_of_one_key_side_by_side() -> None:
    table = pa.table({"k": ["a", "b", "a", "a"], "n": [1, 1, 1, 2], "diff": [1, 1, -1, 1]})
    assert uc.changelog.to_flink(table, keys=["k"])["row_kind"].to_pylist() == ["+I", "+I", "-U", "+U"]
    apart = pa.table({"k": ["a", "a", "b", "a"], "n": [1, 1, 1, 2], "diff": [1, -1, 1, 1]})
    assert uc.changelog.to_delta(apart, keys=["k"])["_change_type"].to_pylist() == [
        "insert",
        "delete",
        "insert",
        "insert",
    ]
    envelope = uc.changelog.to_debezium(table, keys=["k"]).to_pylist()
    assert envelope[2] == {"op": "u", "before": {"k": "a", "n": 1}, "after": {"k": "a", "n": 2}}
    assert [row["op"] for row in envelope] == ["c", "c", "u"]


def test_weights_beyond_one_are_as_many_rows() -> None:
    table = pa.table({"k": ["a", "b"], "diff": [2, 0]})
    assert uc.changelog.to_flink(table, keys=["k"]).to_pylist() == [{"k": "a", "row_kind": "+I"}] * 2


def test_wrong_words_and_columns_are_told() -> None:
    with pytest.raises(InvalidArgument, match=r"'\+X'"):
        uc.changelog.from_flink(pa.table({"x": [1], "row_kind": ["+X"]}))
    with pytest.raises(UnknownColumn, match="_change_type"):
        uc.changelog.from_delta(pa.table({"x": [1]}))
    with pytest.raises(TypeMismatch, match="structs"):
        uc.changelog.from_debezium(pa.table({"op": ["c"], "before": [1], "after": [2]}))


def test_a_database_changelog_through_a_grouping() -> None:
    changes = pa.table(
        {
            "op": ["c", "c", "u", "d"],
            "before": [None, None, {"ts": 0, "x": 5}, {"ts": 1, "x": 7}],
            "after": [{"ts": 0, "x": 5}, {"ts": 1, "x": 7}, {"ts": 0, "x": 6}, None],
        }
    )
    rows = uc.changelog.from_debezium(changes)
    result = uc.local.run(
        [uc.Elements(rows), uc.Watermark(None)],
        window=uc.Fixed("1 minute"),
        diff="diff",
        mode="retracting",
        best=uc.Max("x"),
        n=uc.Count(),
    )
    assert result.select(["best", "n", "diff"]).to_pylist() == [{"best": 6, "n": 1, "diff": 1}]
