"""The law kit on the user's own functions: the columns that they are tried on, and hints at why a law breaks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import strategies as st

import uncombine as uc
from uncombine.combiners.laws import LawViolation, check_laws, subjects
from uncombine.combiners.laws.kit import first_and_others
from uncombine.errors import InvalidArgument


class VwapFn(uc.CombineFn):
    """The mean of prices, weighted by their quantities; it takes its columns as they come."""

    capability = uc.Capability.CANCELLATIVE
    fields = (pa.field("value", pa.float64()), pa.field("quantity", pa.float64()))
    kind: Any = np.float64

    def add(self, groups, *columns, weights=None):
        return self.weighed(groups, columns[0], columns[1], weights)

    def weighed(self, groups, price, quantity, weights):
        p, q = (np.asarray(one.array).astype(self.kind) for one in (price, quantity))
        q = q if weights is None else q * weights
        return self.summed(groups, (p * q).astype(np.float64), q.astype(np.float64))

    def merge(self, groups, accumulators):
        return self.summed(groups, *map(np.asarray, accumulators))

    def negate(self, accumulators):
        return tuple(pa.array(-np.asarray(one)) for one in accumulators)

    def zero(self, count):
        return (pa.array(np.zeros(count)),) * 2

    def extract(self, accumulators):
        value, quantity = accumulators
        return pc.divide(value, pc.if_else(pc.equal(quantity, 0.0), None, quantity))

    def summed(self, groups, *arrays):
        return tuple(pa.array(np.bincount(groups.codes, one, groups.count).astype(float)) for one in arrays)


class UnpackingFn(VwapFn):
    def add(self, groups, *columns, weights=None):
        price, quantity = columns
        return self.weighed(groups, price, quantity, weights)


class PassingFn(VwapFn):
    def add(self, groups, *columns, weights=None):
        return self.weighed(groups, *columns, weights=weights)


class NamingFn(VwapFn):
    def add(self, groups, price, quantity, weights=None):  # type: ignore[override]
        return self.weighed(groups, price, quantity, weights)


class FaultyFn(VwapFn):
    def add(self, groups, *columns, weights=None):
        return self.weighed(groups)


class WholeFn(VwapFn):
    kind = np.int64


def from_columns(fn: uc.CombineFn) -> Any:
    return uc.from_columns("Vwap", fn, output=pa.float64(), tolerance=1e-9)


def types(*given: Any) -> list[list[str]]:
    return [list(map(str, subject.columns.values())) for subject, _ in subjects(*given)]


def test_types_of_functions_of_ones_own_are_the_first_and_the_others() -> None:
    named = from_columns(VwapFn())("price", "quantity")
    tried = [list(map(str, subject.columns.values())) for subject in first_and_others(named)]
    assert tried[:1] == types(named) == [["int64", "int64"]]
    assert ["double", "double"] in tried[1:]
    assert ["string", "string"] not in tried
    assert list(first_and_others(uc.Sum("x"))) == []


@pytest.mark.parametrize("fn", [VwapFn(), UnpackingFn(), PassingFn()])
@pytest.mark.parametrize("values", [None, pa.int64(), pa.array([1.5, 2.0])])
def test_a_factory_that_needs_more_columns_is_told_so(fn: uc.CombineFn, values: Any) -> None:
    """No law is broken by a number of columns that was guessed."""
    told = (
        r"Vwap names no columns: it was tried as Vwap\('x'\), with one column, and its add needs 2 \(add raised \w+ at "
        r"test_laws_own.py:\d+ .*: check a combiner that names them, such as made = Vwap\('x', 'y'\), or give values= "
        "for each column, which is --values once for each on the command line$"
    )
    with pytest.raises(uc.errors.InvalidArgument, match=told):
        check_laws(from_columns(fn), values, max_examples=5)
    with pytest.raises(uc.errors.InvalidArgument, match=r"was tried with one column, and its add needs 2 .*: give val"):
        check_laws(fn, values, max_examples=5)
    assert types(from_columns(fn), (pa.int64(), pa.float64())) == [["int64", "double"]]


def test_columns_that_add_names_are_counted() -> None:
    assert types(from_columns(NamingFn())) == types(NamingFn()) == [["int64", "int64"]]
    any_number = uc.from_scalar(
        "any_number", create=lambda: 0, add=lambda state, *values: state + values[0] * values[1],
        merge=lambda a, b: a + b, extract=lambda state: state, accumulator=pa.int64(), output=pa.int64(),
    )  # fmt: skip
    with pytest.raises(uc.errors.InvalidArgument, match=r"tried as any_number\('x'\), with one column, .* needs 2 "):
        check_laws(any_number)


def test_another_error_of_missing_arguments_is_a_fault_of_the_function() -> None:
    with pytest.raises(uc.errors.InvalidArgument, match=r"takes none of the ready-made values, .* missing 3 required"):
        check_laws(from_columns(FaultyFn()))


def spread(lists: pa.Array) -> pa.Array:
    """The median distance from the median, of numbers."""
    return pa.array([None if not one else float(np.ptp(np.array(one))) for one in lists.to_pylist()], pa.float64())


def test_a_function_of_map_that_fails_on_a_type_breaks_no_law() -> None:
    mapped = uc.CollectList("price").map(spread, pa.float64())
    for combiner in (mapped, uc.Struct(n=uc.Count(), spread=mapped), mapped.where(uc.col("price").is_not_null())):
        with pytest.raises(uc.errors.InvalidArgument) as refused:
            check_laws(combiner, max_examples=5)
        told = str(refused.value)
        assert ": over price: string spread raised " in told
        assert "at test_laws_own.py:" in told
        assert "That breaks no law: name the types that the function is for, such as values=pa.float64() " in told
        assert told.endswith("(on the command line --values float64)")
        check_laws(combiner, values=pa.float64(), max_examples=5)


def test_a_function_of_map_that_takes_no_type_has_to_be_corrected() -> None:
    with pytest.raises(uc.errors.InvalidArgument, match=r"takes none of the ready-made .* <lambda> raised Attr"):
        check_laws(uc.CollectList("price").map(lambda lists: lists.nothing, pa.float64()))


def test_a_function_of_map_that_takes_all_types_is_tried_on_all() -> None:
    plain = types(uc.CollectList("price"))
    assert types(uc.CollectList("price").map(pc.list_value_length, pa.int32())) == plain
    assert len(plain) > 5


def test_a_function_of_map_that_fails_on_no_rows_breaks_a_law() -> None:
    first = uc.CollectList("price").map(lambda lists: pa.array([one[0] for one in lists.to_pylist()]), pa.float64())
    with pytest.raises(LawViolation, match=r"declared types: .*\n.*extract raised IndexError"):
        check_laws(first, values=pa.float64(), max_examples=20)


def broken(combiner: Any, values: Any, **options: Any) -> str:
    with pytest.raises(LawViolation) as violation:
        check_laws(combiner, values, max_examples=60, seed=1, **options)
    return str(violation.value)


def test_an_overflow_is_not_told_as_rounding() -> None:
    """The product of a price and a heavy weight is beyond int64."""
    for tolerance, price, quantity in ((None, 2**53, 1), (1e-9, 2**62, 2)):
        whole = uc.from_columns("Vwap", WholeFn(), output=pa.float64(), tolerance=tolerance)("price", "quantity")
        told = broken(whole, (st.just(price), st.just(quantity)))
        assert "rounding" not in told
        assert "(an int64 may have overflowed, " in told
        assert "pc.multiply_checked" in told
    told = broken(whole, (st.just(2**40), st.just(2**40)), expected=lambda prices, _: float(max(prices)))
    assert "law of expected results" in told
    assert "an int64 may have overflowed" in told


def test_rounding_is_told_also_of_numbers_that_cancel() -> None:
    floats = uc.from_columns("Vwap", VwapFn(), output=pa.float64())("price", "quantity")
    told = broken(floats, (st.sampled_from([1e16, -1e16, 1.0, 0.1]), st.just(1.0)))
    assert "rounding may cause this" in told
    assert "overflowed" not in told


def test_another_difference_has_no_hint() -> None:
    class LastFn(WholeFn):
        def merge(self, groups, accumulators):
            last = np.zeros(groups.count, np.int64)
            last[groups.codes] = np.arange(len(groups.codes)) + 1
            return tuple(pa.array(np.append(0.0, np.asarray(one))[last]) for one in accumulators)

    last = uc.from_columns("Last", LastFn(), output=pa.float64())("price", "quantity")
    told = broken(last, (st.sampled_from([1, 2, 3]), st.just(1)))
    assert "rounding" not in told
    assert "overflowed" not in told


@pytest.mark.parametrize("values", [pa.float64(), st.integers(1, 9), pa.array([1, 2]), {"price": pa.int64()}])
def test_values_of_some_columns_are_not_enough(values: Any) -> None:
    """The types of the others would be guessed, and a function that does not take them breaks no law."""
    vwap = from_columns(VwapFn())("price", "quantity")
    with pytest.raises(InvalidArgument, match=r"reads the columns price, quantity, and values= has .* price alone"):
        check_laws(vwap, values=values)
    check_laws(vwap, values={"quantity": pa.int64(), "price": pa.int64()}, max_examples=20)
    check_laws(uc.ArgMax("x", by="t"), values=pa.int64(), max_examples=20)
