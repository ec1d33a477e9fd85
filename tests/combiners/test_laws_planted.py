"""The law kit finds combiners that are wrong, names a law that says what is wrong, and shows a small case."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import strategies as st
from planted import right, wrong_columns, wrong_scalars

import uncombine as uc
from uncombine.combiners.laws import LAWS, LawViolation, check_laws
from uncombine.combiners.rows.group_sums import sum_int64
from uncombine.combiners.states.vectors import VectorFn
from uncombine.combiners.states.zset import ZSet
from uncombine.combiners.summing import WideSumFn

pytestmark = pytest.mark.full


def mean_count(values: np.ndarray, counts: np.ndarray, groups: Any) -> tuple[pa.Array, pa.Array]:
    total = np.bincount(groups.codes, counts, groups.count)
    with np.errstate(all="ignore"):
        mean = np.bincount(groups.codes, values * counts, groups.count) / total
    return pa.array(np.where(total == 0, 0.0, mean)), pa.array(total.astype(np.int64))


class MeanAndCount(uc.CombineFn):
    """A mean kept as (mean, count): when the count passes zero, the sum is forgotten."""

    capability = uc.Capability.CANCELLATIVE
    fields = (pa.field("mean", pa.float64()), pa.field("count", pa.int64()))

    def add(self, groups, *columns, weights=None):
        weights = np.ones(len(groups)) if weights is None else weights
        return mean_count(columns[0].values, weights, groups)

    def merge(self, groups, accumulators):
        return mean_count(*map(np.asarray, accumulators), groups)

    def negate(self, accumulators):
        return accumulators[0], pc.negate(accumulators[1])

    def extract(self, accumulators):
        return accumulators[0]

    def tolerance(self, magnitudes, count):
        return 1e-9 * sum(magnitudes)


class Greatest(uc.CombineFn):
    """A right maximum without a way back, to be spoilt."""

    capability = uc.Capability.MONOID
    fields = (pa.field("value", pa.int64()),)

    def pick(self, held, value):
        return max(held, value)

    def add(self, groups, *columns, weights=None):
        values = columns[0].array
        if weights is not None:
            values = pc.if_else(pa.array(weights != 0), values, None)
        return self.merge(groups, (values,))

    def merge(self, groups, accumulators):
        held: list[int | None] = [None] * groups.count
        for group, value in zip(groups.codes, accumulators[0].to_pylist(), strict=True):
            if value is not None:
                held[group] = value if held[group] is None else self.pick(held[group], value)
        return (pa.array(held, pa.int64()),)

    def extract(self, accumulators):
        return accumulators[0]


class MaxThatKeeps(Greatest):
    """A Max whose uncombine does nothing."""

    capability = uc.Capability.CANCELLATIVE

    def negate(self, accumulators):
        return (pa.nulls(len(accumulators[0]), pa.int64()),)

    def uncombine(self, accumulators, others):
        return accumulators


class LastSeen(Greatest):
    """The value that came last: its merge depends on the order."""

    def pick(self, held, value):
        return value


class PlainSum(VectorFn):
    """A right sum, to be spoilt."""

    fields = (pa.field("sum", pa.int64()),)

    def add(self, groups, *columns, weights=None):
        weights = 1 if weights is None else weights
        return (pa.array(sum_int64(groups, columns[0].values * weights)),)

    def extract(self, accumulators):
        return accumulators[0]


class SumThatClears(PlainSum):
    """Its extract writes into the accumulators that it reads."""

    def extract(self, accumulators):
        results = pa.array(np.asarray(accumulators[0]).copy())
        memory = accumulators[0].buffers()[1]
        ctypes.memset(memory.address, 0, memory.size)
        return results


class SumWithoutWeights(WideSumFn):
    """Every row counts once, whatever it weighs."""

    def add(self, groups, *columns, weights=None):
        return super().add(groups, *columns)


class NullsLost(ZSet):
    """Asks for nulls, holds them, and forgets them whenever accumulators are merged."""

    def merge(self, groups, accumulators):
        kept = [None if s is None else [i for i in s if i["item"] is not None] for s in accumulators[0].to_pylist()]
        return super().merge(groups, (pa.array(kept, accumulators[0].type),))


class ZerosKept(ZSet):
    """A Z-set that keeps items whose weights have become zero."""

    def add(self, groups, *columns, weights=None):
        whole = super().add(groups, *columns)
        return whole if weights is None else self._weighed(groups, columns, weights)

    def _weighed(self, groups, columns, weights):
        sums: list[dict[Any, int]] = [{} for _ in range(groups.count)]
        for group, item, weight in zip(groups.codes, columns[0].array.to_pylist(), weights, strict=True):
            if weight:
                sums[group][item] = sums[group].get(item, 0) + int(weight)
        return self._packed(sums)

    def merge(self, groups, accumulators):
        sums: list[dict[Any, int]] = [{} for _ in range(groups.count)]
        for group, held in zip(groups.codes, accumulators[0].to_pylist(), strict=True):
            for item in held:
                sums[group][item["item"]] = sums[group].get(item["item"], 0) + item["weight"]
        return self._packed(sums)

    def _packed(self, sums):
        rows = [[{"item": item, "weight": held[item]} for item in sorted(held)] for held in sums]
        return (pa.array(rows, self.fields[0].type),)


class SumThatRemembers(PlainSum):
    """Its results depend on how often they were asked for."""

    asked = 0

    def extract(self, accumulators):
        self.asked += 1
        return pc.add(accumulators[0], self.asked // 100)


PLANTED: dict[str, tuple[Callable[[], uc.CombineFn], Any, set[str]]] = {
    "mean as (mean, count)": (MeanAndCount, st.integers(-3, 3), {"retraction"}),
    "max that keeps": (MaxThatKeeps, pa.int64(), {"uncombine"}),
    "order": (LastSeen, pa.int64(), {"commutativity"}),
    "extract that mutates": (SumThatClears, pa.int64(), {"unchanged accumulators"}),
    "nulls lost": (lambda: NullsLost((pa.int64(),), nullable=(True,)), pa.int64(), {"identity"}),
    "weight ignored": (lambda: SumWithoutWeights(2), pa.int64(), {"weights"}),
    "zeros kept": (lambda: ZerosKept((pa.int64(),)), pa.int64(), {"uncombine", "retraction"}),
    "memory": (SumThatRemembers, pa.int64(), {"determinism", "elsewhere"}),
}
NAMES = {law.name for law in LAWS}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_fault_is_found(name: str) -> None:
    make, values, laws = PLANTED[name]
    with pytest.raises(LawViolation) as caught:
        check_laws(make(), values=values)
    assert laws <= NAMES
    assert caught.value.law in laws
    assert caught.value.law in str(caught.value)


@pytest.mark.parametrize("fn", [PlainSum(), WideSumFn(2), Greatest(), ZSet((pa.int64(),))])
def test_what_was_spoilt_was_right_before(fn: uc.CombineFn) -> None:
    check_laws(fn, values=pa.int64(), max_examples=40)


WRONG = wrong_scalars.WRONG | wrong_columns.WRONG
SEEDS = range(1, 6)


@pytest.mark.parametrize("name", list(WRONG)[::12])
def test_a_wrong_combiner_is_found(name: str) -> None:
    combiner, named = WRONG[name]
    with pytest.raises(LawViolation):
        check_laws(combiner, **named)


@pytest.mark.parametrize("name", list(right.RIGHT)[::3])
def test_a_right_combiner_is_not_flagged(name: str) -> None:
    combiner, named = right.RIGHT[name]
    check_laws(combiner, **named, max_examples=15)


@pytest.mark.soak
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_combiner_is_found_by_any_seed(name: str) -> None:
    combiner, named = WRONG[name]
    for seed in SEEDS:
        with pytest.raises(LawViolation):
            check_laws(combiner, **named, seed=seed)


@pytest.mark.soak
@pytest.mark.parametrize("name", right.RIGHT)
def test_a_right_combiner_is_not_flagged_by_any_seed(name: str) -> None:
    combiner, named = right.RIGHT[name]
    for seed in SEEDS:
        check_laws(combiner, **named, seed=seed)


def test_there_are_enough_of_them() -> None:
    assert len(WRONG) >= 100
    assert len(right.RIGHT) >= 50
    assert len({repr(named) for _, named in WRONG.values()}) > 10


def test_the_example_is_small() -> None:
    with pytest.raises(LawViolation) as caught:
        check_laws(SumWithoutWeights(2), values=pa.int64())
    shown = str(caught.value)
    assert (shown.count("group 0"), shown.count("group 1")) == (1, 0)


def test_a_violation_is_an_assertion_and_one_of_the_family() -> None:
    assert issubclass(LawViolation, AssertionError)
    assert issubclass(LawViolation, uc.UncombineError)
