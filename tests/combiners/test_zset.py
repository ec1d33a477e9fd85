"""The Z-set kernel against counters."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from multisets import VALUES, canonical, few, order

from uncombine.combiners.laws.compare import bits
from uncombine.combiners.rows.columns import Column
from uncombine.combiners.rows.groups import Groups
from uncombine.combiners.states.zset import Items, ZSet, consolidate

NAMES = ("item", "by", "tie")


def counted(codes: np.ndarray, columns: list[pa.Array], weights: np.ndarray | None, count: int) -> list[list[dict]]:
    """Each group's items in order with their weights, zeros left out."""
    counters: list[Counter] = [Counter() for _ in range(count)]
    rows = zip(*(c.to_pylist() for c in columns), strict=True)
    for i, row in enumerate(rows):
        counters[codes[i]][tuple(map(canonical, row))] += 1 if weights is None else int(weights[i])
    return [
        [
            dict(zip((*NAMES[: len(columns)], "weight"), (*item, n), strict=True))
            for item, n in sorted(c.items(), key=lambda pair: tuple(map(order, pair[0])))
            if n
        ]
        for c in counters
    ]


@pytest.mark.parametrize(
    "names",
    [("int64",), ("float64",), ("string",), ("float64", "int64"), ("float64", "wide decimal", "int64")],
)
@few
@given(data=st.data())
def test_rows_and_sums_are_those_of_counters(names: tuple[str, ...], data: st.DataObject) -> None:
    row = st.tuples(st.integers(0, 2), st.integers(-3, 3), *(st.sampled_from([*VALUES[n][1], None]) for n in names))
    rows = data.draw(st.lists(row, max_size=12))
    codes, weights = (np.array([r[i] for r in rows], np.int64) for i in (0, 1))
    kinds = tuple(VALUES[n][0] for n in names)
    columns = [pa.array([r[i + 2] for r in rows], k, from_pandas=False) for i, k in enumerate(kinds)]
    z = ZSet(kinds, NAMES[: len(kinds)], nullable=(True,) * len(kinds))
    for weighed in (weights, None):
        (held,) = z.add(Groups(codes, 3), *map(Column, columns), weights=weighed)
        held.validate(full=True)
        assert held.type == z.fields[0].type
        assert repr(held.to_pylist()) == repr(counted(codes, columns, weighed, 3))
        (merged,) = z.merge(Groups(np.array([0, 1, 0]), 2), (held,))
        assert repr(merged.to_pylist()) == repr(counted(np.where(codes == 1, 1, 0), columns, weighed, 2))
        assert bits(z.negate(z.negate((held,)))) == bits((held,))


SIZES = {"table": (4, 5), "narrow": (500, 1_000), "wide": (500, 2**62)}


@pytest.mark.parametrize("weights", ["none", "ones", "small", "huge"])
@pytest.mark.parametrize("name", SIZES)
def test_many_rows_by_every_way(name: str, weights: str) -> None:
    """Tables, sorted keys, keys with their weights, and argsort give the same Z-sets."""
    groups, span = SIZES[name]
    rng = np.random.default_rng(3)
    codes, values = rng.integers(0, groups, 4_000), rng.integers(0, 60, 4_000) * (span // 60 + 1)
    choices = {"none": None, "ones": [1], "small": [-1, 0, 1, 2], "huge": [2**49, -(2**49), 1]}[weights]
    weighed = None if choices is None else rng.choice(choices, 4_000)
    column = pa.array(values - span // 2)
    (held,) = ZSet((pa.int64(),)).add(Groups(codes, groups), Column(column), weights=weighed)
    assert held.to_pylist() == counted(codes, [column], weighed, groups)


def test_merging_single_states_only_moves_them() -> None:
    z = ZSet((pa.string(),))
    states = z.add(Groups(np.array([0, 1, 2, 2]), 3), Column(pa.array(["a", "b", "c", "d"])))
    (moved,) = z.merge(Groups(np.array([3, 0]), 4), tuple(s.slice(1, 2) for s in states))
    assert [[i["item"] for i in items] for items in moved.to_pylist()] == [["c", "d"], [], [], ["b"]]
    assert bits(z.merge(Groups(np.arange(3), 3), states)) == bits(states)
    assert z.zero(2)[0].to_pylist() == [[], []]


def test_items_present_first_and_last() -> None:
    items = consolidate(Groups(np.array([0, 0, 0, 2]), 3), [Column(pa.array([5, 1, 9, 4]))], np.array([1, -1, 2, -1]))
    assert (items.offsets.tolist(), items.weights.tolist()) == ([0, 3, 3, 4], [-1, 1, 2, -1])
    assert items.groups.codes.tolist() == [0, 0, 0, 2]
    held = items.present()
    assert isinstance(held, Items)
    assert held.sublist().to_pylist() == [[5, 9], [], []]
    assert held.take(held.firsts()).to_pylist() == [5, None, None]
    assert held.take(held.lasts()).to_pylist() == [9, None, None]
