"""Fingerprints: equal exactly where the multisets of the raw rows are."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from multisets import GROUPS, ORDERED, VALUES, accumulate, check, few, rows, weighed

import uncombine as uc
from uncombine.combiners.rows.columns import Column
from uncombine.combiners.rows.hashing import hash_rows_128
from uncombine.errors import TypeMismatch


@pytest.mark.parametrize("name", ORDERED)
@few
@given(data=st.data())
def test_equal_exactly_where_the_multisets_are(name: str, data: st.DataObject) -> None:
    given_rows = data.draw(rows(name, "bool"))
    kinds = [VALUES[name][0], pa.bool_()]
    fn = uc.Fingerprint(["x", "y"]).bind(pa.schema(list(zip("xy", kinds, strict=True))))
    prints = fn.extract(accumulate(fn, given_rows, kinds)).to_pylist()
    sets = [{item: n for item, n in weighed(given_rows, group).items() if n} for group in range(GROUPS)]
    for a in range(GROUPS):
        assert re.fullmatch("[0-9a-f]{32}", prints[a])
        assert (prints[a] == "0" * 32) == (not sets[a])
        for b in range(GROUPS):
            assert (prints[a] == prints[b]) == (sets[a] == sets[b])


@given(data=st.data())
def test_it_is_the_sum_of_the_hashes_of_the_rows(data: st.DataObject) -> None:
    def total(counts: dict) -> str:
        sums = [0, 0]
        for (x,), n in counts.items():
            lanes = hash_rows_128([Column(pa.array([x], pa.string()))])
            sums = [(s + n * int(lane[0])) % 2**64 for s, lane in zip(sums, lanes, strict=True)]
        return f"{sums[1]:016x}{sums[0]:016x}"

    check(uc.Fingerprint("x"), ["string"], data.draw(rows("string", least=0)), total, data)


def test_order_and_cut_play_no_part_and_one_row_less_does() -> None:
    rng = np.random.default_rng(1)
    table = pa.table({"x": rng.normal(size=1_000), "s": rng.integers(0, 50, 1_000).astype(str)})
    whole = uc.aggregate(table, f=uc.Fingerprint(["x", "s"]))["f"][0]
    assert uc.aggregate(table.take(rng.permutation(1_000)), f=uc.Fingerprint(["x", "s"]))["f"][0] == whole
    assert uc.aggregate(table.slice(1), f=uc.Fingerprint(["x", "s"]))["f"][0] != whole
    assert uc.aggregate(table, f=uc.Fingerprint(["s", "x"]))["f"][0] != whole


def test_what_cannot_be_hashed_is_refused() -> None:
    with pytest.raises(TypeMismatch, match=r"Fingerprint\('x'\) hashes its input, but 'x' cannot be"):
        uc.Fingerprint("x").bind(pa.schema({"x": pa.month_day_nano_interval()}))
    lists = pa.table({"x": [[1, 2], None, []]})
    assert len(uc.aggregate(lists, f=uc.Fingerprint("x"))["f"][0].as_py()) == 32


def test_another_seed_is_another_function() -> None:
    table = pa.table({"x": ["a", "b", None], "y": [1, 2, 3]})
    seeds = (0, 1, 2, 2**62)
    found = {seed: uc.aggregate(table, f=uc.Fingerprint(["x", "y"], seed=seed))["f"][0].as_py() for seed in seeds}
    assert len(set(found.values())) == len(seeds)
    turned = table.take([2, 0, 1])
    assert all(
        uc.aggregate(turned, f=uc.Fingerprint(["x", "y"], seed=s))["f"][0].as_py() == f for s, f in found.items()
    )
    assert uc.Fingerprint("x", seed=0) == uc.Fingerprint("x")
    assert repr(uc.Fingerprint("x", seed=7).of("y")) == "Fingerprint('y', seed=7)"
    with pytest.raises(uc.errors.InvalidArgument, match="seed must be a whole number"):
        uc.Fingerprint("x", seed=1.5)
