"""The difference of two changelogs as they go is that of their net rows, however the changes are divided."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from compared_tables import unique_pair
from seeds import seeds

import uncombine as uc
from uncombine.errors import InvalidArgument
from uncombine.tables.comparison.common_types import common_schema
from uncombine.tables.comparison.local_comparison import in_schema
from uncombine.tables.comparison.net_difference import NetDifference
from uncombine.tables.comparison.options import ComparisonOptions

SCHEMA = pa.schema({"k": pa.string(), "x": pa.float64()})


def histories(r: random.Random, rows: pa.Table, other: pa.Table) -> list[tuple[int, int]]:
    """The places of the rows of a changelog that leaves the rows, with rows of the other side on the way."""
    passing = [rows.num_rows + r.randrange(other.num_rows) for _ in range(5)] if other.num_rows else []
    changes = [(place, 1) for place in range(rows.num_rows)] + [(place, 1) for place in passing]
    r.shuffle(changes)
    for place in passing:
        first = next(at for at, one in enumerate(changes) if one == (place, 1))
        changes.insert(r.randint(first + 1, len(changes)), (place, -1))
    return changes


@pytest.mark.parametrize("keyed", [False, True])
@pytest.mark.parametrize("seed", seeds(40, 2_000))
def test_a_difference_as_it_goes_is_that_of_the_net_rows(seed: int, keyed: bool) -> None:
    r, pair = random.Random(seed), unique_pair(seed)
    tolerance = [None, 1e-9][seed % 2] if keyed else None
    schema = common_schema(pair.old.schema, pair.new.schema)
    old, new = (in_schema(side, schema) for side in (pair.old, pair.new))
    keys = pair.keys if keyed else None
    far = NetDifference.of(schema, ComparisonOptions.of(keys, None, tolerance, 10))
    sides = [(pa.concat_tables([one, other]), histories(r, one, other)) for one, other in ((old, new), (new, old))]
    while any(changes for _, changes in sides):
        tables, counts = [], []
        for place, (rows, changes) in enumerate(sides):
            batch = np.array([changes.pop(0) for _ in range(min(len(changes), r.randrange(8)))], np.int64)
            rows_of_batch, weights = batch.reshape(-1, 2).T
            tables.append(rows.take(pa.array(rows_of_batch)))
            counts.append(np.zeros((2, len(weights)), np.int64))
            counts[-1][place] = weights
        far = far.changed(pa.concat_tables(tables), *np.concatenate(counts, axis=1))
    whole: Any = uc.compare(pair.old, pair.new, keys=keys, tolerance=tolerance)
    found = far.comparison()
    names = ("same", "equal", "changed", "only_old", "only_new", "changed_columns")
    assert {name: getattr(found, name) for name in names} == {name: getattr(whole, name) for name in names}

    def rows_of(table: pa.Table) -> Counter[str]:
        return Counter(repr(row).replace("-0.0", "0.0") for row in table.to_pylist())

    assert rows_of(found.to_arrow()) == rows_of(whole.to_arrow())
    kept = whole.only_old + whole.only_new + 2 * whole.changed
    assert far.rows.num_rows == kept or tolerance is not None


def test_keys_that_two_rows_of_a_side_share_are_refused() -> None:
    rows = pa.table({"k": ["a", "a"], "x": [1.0, 2.0]}, SCHEMA)
    none = NetDifference.of(SCHEMA, ComparisonOptions.of("k", None, None, 10))
    one = none.changed(rows, np.array([1, 1]), np.array([0, 0]))
    with pytest.raises(InvalidArgument, match=r"old has 2 rows for .*'a'"):
        one.comparison()
    assert one.changed(rows, np.array([-1, 0]), np.array([0, 1])).comparison().same
