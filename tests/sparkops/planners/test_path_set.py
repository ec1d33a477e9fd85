"""A set of paths is a short text, and has exactly the paths that were put into it."""

from __future__ import annotations

import random

import numpy as np
import pytest
from seeds import seeds

from uncombine.errors import StateMismatch
from uncombine.sparkops.planners.path_set import EMPTY, PathSet, hashes_of


@pytest.mark.parametrize("seed", seeds(20))
def test_it_is_the_set_of_its_paths(seed: int) -> None:
    r = random.Random(seed)
    names = [f"/in/day={r.randrange(9)}/{i:06}.parquet" for i in range(r.choice([0, 1, 7, 3_000]))]
    inside, other = set(r.sample(names, len(names) // 2)), set(r.sample(names, len(names) // 3))
    paths = PathSet.of_text(PathSet(hashes_of(sorted(inside))).text)
    assert paths.has(hashes_of(names)).tolist() == [name in inside for name in names]
    assert len(paths) == len(inside)
    both = paths.both(PathSet(hashes_of(sorted(other))))
    assert both.has(hashes_of(names)).tolist() == [name in inside | other for name in names]
    left = paths.only(~PathSet(hashes_of(sorted(other))).has(paths.hashes))
    assert left.has(hashes_of(names)).tolist() == [name in inside - other for name in names]


def test_a_text_takes_few_characters_a_path() -> None:
    names = [f"/data/events/part-{i:05}-c000.snappy.parquet" for i in range(10_000)]
    assert len(PathSet(hashes_of(names)).text) < 10 * len(names)
    assert len(EMPTY.text) < 20


def test_hashes_never_change() -> None:
    """Those of a checkpoint are compared with those of a later version."""
    assert [f"{one:016x}" for one in hashes_of(["/in/a.csv", "s3://bucket/b.csv"])] == [
        "37dba74b9d8cef44",
        "886d9f3a120b1b72",
    ]


@pytest.mark.parametrize("text", ["", "no base 64", "AAAA", PathSet(np.arange(9, dtype=np.uint64)).text[:-6]])
def test_a_damaged_text_is_refused(text: str) -> None:
    with pytest.raises(StateMismatch, match="restore the checkpoint from a copy"):
        PathSet.of_text(text)
