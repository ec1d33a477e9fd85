"""Comparisons in this process of random tables, against the same comparison in plain Python."""

from __future__ import annotations

import pandas as pd
import pyarrow as pa
import pytest
from compared_tables import (
    as_changelog,
    keyed_difference,
    keyed_rows,
    repeated_pair,
    unique_pair,
    whole_difference,
    whole_rows,
)
from seeds import seeds

import uncombine as uc
from uncombine.combiners.rows.plain_types import plain_table
from uncombine.tables.comparison.comparison import Comparison


def counts_of(comparison: Comparison) -> dict[str, int]:
    counts = {"changed": comparison.changed, "only in old": comparison.only_old, "only in new": comparison.only_new}
    return {words: count for words, count in counts.items() if count}


@pytest.mark.parametrize("seed", seeds(200, 2_000))
@pytest.mark.parametrize("tolerance", [None, 1e-9])
def test_keyed_rows_differ_as_in_plain_python(seed: int, tolerance: float | None) -> None:
    pair = unique_pair(seed)
    comparison = uc.compare(pair.old, pair.new, keys=pair.keys, tolerance=tolerance)
    equal, differences = keyed_difference(pair, tolerance or 0.0)
    assert comparison.equal == equal
    assert keyed_rows(comparison.to_arrow(), pair) == differences
    assert sum(counts_of(comparison).values()) == differences.total()
    assert counts_of(comparison) == {
        words: count
        for words in ("changed", "only in old", "only in new")
        if (count := sum(n for found, n in differences.items() if found[0] == words))
    }
    assert comparison.same is not differences


@pytest.mark.parametrize("seed", seeds(100, 1_000))
def test_changelogs_are_netted_first(seed: int) -> None:
    pair = unique_pair(seed)
    changes = as_changelog(seed, pair.old), as_changelog(seed + 1, pair.new)
    for old, new in ((changes[0], pair.new), (pair.old, changes[1]), changes):
        comparison = uc.compare(old, new, keys=pair.keys, diff="w")
        assert (comparison.equal, keyed_rows(comparison.to_arrow(), pair)) == keyed_difference(pair)


@pytest.mark.parametrize("seed", seeds(200, 2_000))
def test_whole_rows_differ_as_in_plain_python(seed: int) -> None:
    pair = repeated_pair(seed)
    comparison = uc.compare(pair.old, pair.new)
    equal, more = whole_difference(pair)
    assert comparison.equal == equal
    assert whole_rows(comparison.to_arrow(), pair) == more
    assert comparison.only_new == sum(count for count in more.values() if count > 0)
    assert comparison.only_old == -sum(count for count in more.values() if count < 0)
    assert comparison.same == (not more)
    assert comparison.changed == 0


@pytest.mark.parametrize("seed", seeds(40, 400))
def test_a_table_is_the_same_as_itself_in_another_order(seed: int) -> None:
    pair = unique_pair(seed)
    shuffled = plain_table(pair.old).take(pa.array(range(pair.old.num_rows - 1, -1, -1), pa.int64()))
    shuffled = shuffled.select(list(reversed(pair.old.column_names)))
    for keys in (None, pair.keys):
        comparison = uc.compare(pair.old, shuffled, keys=keys)
        assert comparison.same
        assert comparison.equal == pair.old.num_rows
        assert comparison.to_arrow().num_rows == comparison.examples.num_rows == 0


def test_both_directions_say_the_same() -> None:
    pair = unique_pair(7)
    there, back = (uc.compare(*sides, keys=pair.keys) for sides in ((pair.old, pair.new), (pair.new, pair.old)))
    assert (there.equal, there.changed, there.only_old) == (back.equal, back.changed, back.only_new)
    assert there.changed_columns == back.changed_columns


def test_the_columns_that_changed_are_counted_as_by_pandas() -> None:
    old = pd.DataFrame({"k": range(100), "a": [n % 7 for n in range(100)], "b": 1.0, "c": "x"})
    new = old.assign(a=[n % 5 for n in range(100)])
    new.loc[new.k < 10, "b"] = 2.0
    comparison = uc.compare(old, new, keys="k")
    expected = (old != new).sum()
    assert comparison.changed_columns == {name: int(expected[name]) for name in ("a", "b")}
    assert comparison.changed == int((old != new).any(axis=1).sum())


@pytest.mark.parametrize("examples", [0, 1, 3, 4, 100])
def test_examples_show_each_kind(examples: int) -> None:
    old = pa.table({"k": list(range(20)), "x": [1] * 20})
    new = pa.table({"k": list(range(5, 26)), "x": [1] * 7 + [2] * 14})
    comparison = uc.compare(old, new, keys="k", examples=examples)
    words = comparison.examples["difference"].to_pylist()
    assert len(words) == min(examples, comparison.to_arrow().num_rows)
    if examples >= 3:
        assert set(words) == {"changed", "only in old", "only in new"}
    assert words == sorted(words, key=["changed", "only in old", "only in new"].index)
    assert {tuple(row.items()) for row in comparison.examples.to_pylist()} <= {
        tuple(row.items()) for row in comparison.to_arrow().to_pylist()
    }


def test_sides_without_rows() -> None:
    some = pa.table({"k": [1, 2], "x": [None, 1.0]})
    none = some.slice(0, 0)
    for keys in (None, "k"):
        assert uc.compare(none, none, keys=keys).same
        assert uc.compare(some, none, keys=keys).only_old == 2
        assert uc.compare(none, some, keys=keys).only_new == 2


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ({"k": [1, 1], "x": [1, 2]}, {"k": [1], "x": [1]}, "old has 2 rows for {'k': 1}"),
        ({"k": [1], "x": [1]}, {"k": [None, None, 1], "x": [1, 2, 3]}, "new has 2 rows for {'k': None}"),
        ({"k": [1], "x": [1], "diff": [2]}, {"k": [1], "x": [1]}, "old has 2 rows for {'k': 1}"),
        ({"k": [1], "x": [1]}, {"k": [1], "x": [1], "diff": [-1]}, "new retracts {'k': 1}, which it does not have"),
    ],
)
def test_keys_that_identify_no_row_are_refused(old: dict, new: dict, words: str) -> None:  # type: ignore[type-arg]
    with pytest.raises(uc.errors.InvalidArgument, match="(?s)" + words.replace("{", r"\{").replace("}", r"\}")):
        uc.compare(old, new, keys="k")


def test_a_value_that_does_not_fit_the_finer_unit_is_refused() -> None:
    far = pa.table({"t": pa.array([2**60], pa.timestamp("us"))})
    fine = pa.table({"t": pa.array([1], pa.timestamp("ns"))})
    with pytest.raises(uc.errors.OutOfRange, match=r"a value of column 't' does not fit timestamp\[ns\]"):
        uc.compare(far, fine)
