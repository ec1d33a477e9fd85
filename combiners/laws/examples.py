"""Examples as hypothesis draws them: rows, and a layout that cuts, places and merges their accumulators."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from .strategies import TypedValues

KEYS = 3
"""The number of groups of an example."""

LIGHT, HEAVY = 1_000, 2**31
"""The largest weight for every combiner, and the one for combiners whose accumulators do not grow with it."""

Row: TypeAlias = tuple[int, int, tuple[Any, ...]]
"""A row of an example: its group, its weight, its values."""


@dataclass(frozen=True)
class Layout:
    """The ways to cut, place and merge the accumulators of an example where a law leaves that open."""

    picks: Sequence[tuple[int, int]] = ()
    """Places among the accumulators of a, b and c, one after the other, each with the group that it is merged into."""
    into: int = 1
    """The number of groups to merge into."""
    leaves: Sequence[int] = (0,)
    """The batch of each row; after the last of these batches the first comes again."""
    merges: Sequence[int] = (0,)
    """The places of the two batches that are merged next."""
    before: int = 0
    after: int = 0
    """`before` and `after`: the number of other entries before and after a slice."""
    many: int = 0
    """The number of groups among which the groups of the example are placed; 0: not tried."""
    turn: int = 0
    """A number that selects the laws for this example among those that are not tried on every one."""


@dataclass(frozen=True)
class Example:
    """Three batches of rows, and a layout."""

    a: list[Row]
    b: list[Row]
    c: list[Row]
    layout: Layout = Layout()


layouts: SearchStrategy[Layout] = st.builds(
    Layout,
    picks=st.lists(st.tuples(st.integers(0, 3 * KEYS - 1), st.integers(0, 4)), max_size=9),
    into=st.integers(1, 5),
    leaves=st.lists(st.integers(0, 3), min_size=1, max_size=5),
    merges=st.lists(st.integers(0, 11), min_size=1, max_size=3),
    before=st.integers(0, 9),
    after=st.integers(0, 9),
    many=st.sampled_from([0, 0, 0, 300]),
    turn=st.integers(0, 7),
)


def examples(
    columns: Sequence[tuple[TypedValues, bool]], retracts: bool, heaviest: int
) -> dict[str, tuple[int, SearchStrategy[Example]]]:
    """Kinds of examples over columns, each with a flag for nulls, and the share of each kind in a hundred examples.

    Most examples are a few rows of light weights and small values; others have numbers above 2**53, or heavy weights.
    """
    light = _light(retracts)
    mid = st.one_of(light, st.integers(-LIGHT if retracts else 0, LIGHT))
    ends = [HEAVY, HEAVY - 1, HEAVY + 1] + ([-HEAVY, -HEAVY - 1] if retracts else [])
    heavy = st.one_of(light, st.sampled_from(ends))
    once = st.sampled_from([1, -1] if retracts else [1])
    tame, wide = _values(columns, False), _values(columns, True)
    kinds = {
        "few": (5, _example(_rows(tame, once, 2), _rows(tame, once, 1))),
        "meeting": (35, _meeting(columns, light)),
        "small": (20, _example(_rows(tame, light, 8), _rows(tame, light, 8))),
        "weighed": (12, _example(_rows(tame, mid, 6), _rows(tame, mid, 6))),
    }
    if any(column.wide is not None for column, _ in columns):
        kinds["wide"] = (20, _example(_rows(wide, light, 8), _rows(wide, light, 8)))
    if heaviest >= HEAVY:
        kinds["heavy"] = (8, _example(_rows(wide, heavy, 4), _rows(tame, heavy, 4)))
    return kinds


def long_examples(columns: Sequence[tuple[TypedValues, bool]], retracts: bool) -> SearchStrategy[Example]:
    """Examples of up to 64 rows in a batch."""
    values, light = _values(columns, False), _light(retracts)
    return _example(_rows(values, light, 64, 20), _rows(values, light, 8))


def _light(retracts: bool) -> SearchStrategy[int]:
    return st.sampled_from([w for w in (1, 2, -1, 0, -2) if retracts or w >= 0])


def _example(first: SearchStrategy[list[Row]], rest: SearchStrategy[list[Row]]) -> SearchStrategy[Example]:
    return st.builds(Example, a=first, b=rest, c=rest, layout=layouts)


def _meeting(columns: Sequence[tuple[TypedValues, bool]], weights: SearchStrategy[int]) -> SearchStrategy[Example]:
    """Examples in which each column has few values, most often two, even if its strategy draws many."""
    places = [st.sampled_from([0, 1, 0, 1, 0, 1, 2, None] if nullable else [0, 1, 0, 1, 2]) for _, nullable in columns]
    rows = _rows(st.tuples(*places), weights, 8)
    pools = st.tuples(*(st.tuples(*[column.strategy] * 3) for column, _ in columns))

    def example(pool: Any, a: list[Row], b: list[Row], c: list[Row], layout: Layout) -> Example:
        def filled(batch: list[Row]) -> list[Row]:
            return [
                (group, weight, tuple(None if i is None else few[i] for few, i in zip(pool, places, strict=True)))
                for group, weight, places in batch
            ]

        return Example(a=filled(a), b=filled(b), c=filled(c), layout=layout)

    return st.builds(example, pools, rows, rows, rows, layouts)


def _values(columns: Sequence[tuple[TypedValues, bool]], wide: bool) -> SearchStrategy[tuple[Any, ...]]:
    drawn = []
    for column, nullable in columns:
        strategy = column.wide if wide and column.wide is not None else column.strategy
        drawn.append(st.one_of(*[strategy] * 5, st.none()) if nullable else strategy)
    return st.tuples(*drawn)


def _rows(
    values: SearchStrategy[tuple[Any, ...]], weights: SearchStrategy[int], most: int, least: int = 0
) -> SearchStrategy[list[Row]]:
    """Lists of rows. Most rows are in one group, because laws break where values meet."""
    groups = st.sampled_from([0, 0, 0, *range(1, KEYS)])
    return st.lists(st.tuples(groups, weights, values), min_size=least, max_size=most)
