"""Stored accumulators: a struct column that names its combiner in its metadata, and by a hash in each row."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import StructField, StructType

from ...combiners import Capability, Combiner
from ...combiners.algebra import Accumulators, Weights
from ...combiners.combiner import Bound
from ...combiners.parts import remedy_of
from ...combiners.rows.columns import Column
from ...combiners.rows.group_sums import sum_weights
from ...combiners.rows.groups import Groups
from ...errors import NotRetractable, StateMismatch, UncombineError
from ..sql_types import AnySchema, bind, conform, ddl, input_fields, spark_struct

FORMAT = 2
"""The format of the layout of accumulators. A change to it increases the number; other formats are refused."""

_LATER = 100
"""The number of later formats whose marks are recognised."""

KEY = "uncombine"
"""The key in the metadata of a column under which its maker is stored."""


_UNREADABLE = (
    pa.ArrowException,
    ValueError,
    TypeError,
    LookupError,
    ArithmeticError,
    AttributeError,
    AssertionError,
    MemoryError,
)
"""The errors that values raise which no combiner stores."""


class Maker:
    """A combiner on known types, and the struct in which its accumulators are stored.

    The struct is `made_by` (a hash of the combiner, its input types and the format), `rows` (the sum of the weights of
    the rows in it) and the combiner's own fields. The accumulator of no rows is null or has `rows` 0.

    >>> import pyarrow as pa, uncombine as uc
    >>> maker = Maker(uc.Sum("x").bind(pa.schema({"x": pa.int64()})))
    >>> maker.spark_type.simpleString()
    'struct<made_by:bigint,rows:bigint,sum_0_lo:bigint,sum_0_hi:bigint,count_1_count:bigint>'
    """

    def __init__(self, bound: Bound) -> None:
        self.bound = bound
        self.inputs = input_fields(bound)
        self.mark = _mark(repr(bound.combiner), self.inputs)
        fields = [pa.field("made_by", pa.int64()), pa.field("rows", pa.int64())]
        for field in bound.fields:
            place, label, name = field.name.split(".", 2)
            fields.append(pa.field(f"{label}_{place}_{name}", field.type))
        self.type = pa.struct(fields)
        self.spark_type: StructType = spark_struct(fields, f"the accumulators of {bound.combiner!r}")

    def __repr__(self) -> str:
        return described(repr(self.bound.combiner), self.inputs)

    @property
    def metadata(self) -> dict[str, Any]:
        """The metadata of an accumulator column of this maker."""
        made_by = {
            "combiner": repr(self.bound.combiner),
            "input": self.inputs.json(),
            "format": FORMAT,
            "made_by": self.mark,
        }
        return {KEY: made_by}

    def require_retractable(self, why: str) -> None:
        """Raise `NotRetractable` unless rows of an accumulator can be retracted."""
        if self.bound.capability is Capability.MONOID:
            remedy = remedy_of(self.bound.plan.parts)
            raise NotRetractable(f"{self.bound.combiner!r} is a MONOID combiner and {why}: {remedy}")

    def require_same(self, other: Maker, name: str) -> None:
        """Raise `StateMismatch` unless both makers have the same accumulators."""
        if self.mark != other.mark:
            raise StateMismatch(f"column {name!r} was made by {self!r} on one side and by {other!r} on the other")

    def add(self, groups: Groups, arrays: list[pa.Array], weights: Weights = None) -> pa.Array:
        """The stored accumulators of the rows of each group."""
        columns = [Column(conform(array, kind)) for array, kind in zip(arrays, self.bound.schema.types, strict=True)]
        rows = sum_weights(groups, weights)
        return self.pack(self.bound.add(groups, *columns, weights=weights), rows)

    def merge(self, groups: Groups, stored: pa.Array) -> pa.Array:
        """The sum of the accumulators of each group; null for a group without any."""
        valid, rows, accumulators = self.unpack(stored)
        groups = groups if valid is None else groups.take(valid)
        with self._reading():
            merged = self.pack(self.bound.merge(groups, accumulators), sum_weights(groups, rows))
        empty = groups.sizes == 0
        return _null_where(merged, empty) if empty.any() else merged

    def negate(self, stored: pa.Array) -> pa.Array:
        """The inverse of each accumulator; null stays null."""
        valid, rows, accumulators = self.unpack(stored)
        with self._reading():
            return _spread(self.pack(self.bound.negate(accumulators), -rows), valid)

    def uncombine(self, stored: pa.Array, others: pa.Array) -> pa.Array:
        """`stored - others`, row by row; null counts as the accumulator of no rows."""
        both = pa.concat_arrays([conform(stored, self.type), self.negate(others)])
        return self.merge(Groups.repeated(len(stored), 2), both)

    def extract(self, stored: pa.Array) -> pa.Array:
        """The results; the result of null is null."""
        valid, _, accumulators = self.unpack(stored)
        with self._reading():
            return _spread(self.bound.extract(accumulators), valid)

    def nothing(self, stored: pa.Array) -> np.ndarray:
        """True for an accumulator that no later merge needs: of no rows, and zero in all GROUP parts."""
        valid, rows, accumulators = self.unpack(stored)
        gone = rows == 0
        if self.bound.capability is Capability.GROUP:
            with self._reading():
                gone &= self.bound.plan.is_zero(accumulators)
        else:
            gone &= False
        if valid is None:
            return gone
        out = np.ones(len(stored), np.bool_)
        out[valid] = gone
        return out

    def pack(self, accumulators: Accumulators, rows: np.ndarray) -> pa.Array:
        """The stored form of accumulators."""
        mark = pa.repeat(pa.scalar(self.mark, pa.int64()), len(rows))
        return pa.StructArray.from_arrays([mark, pa.array(rows, pa.int64()), *accumulators], fields=list(self.type))

    def unpack(self, stored: pa.Array) -> tuple[np.ndarray | None, np.ndarray, Accumulators]:
        """A mask of the rows with an accumulator (None: all), the number of rows in each of these, and their fields.

        Raises `StateMismatch` if another combiner made one of them.
        """
        names = [field.name for field in stored.type] if pa.types.is_struct(stored.type) else []
        if names != [field.name for field in self.type]:
            if "made_by" in names:
                self._require_format(stored.field("made_by"))
            raise StateMismatch(
                f"{self!r} cannot read accumulators that another combiner made, of type {stored.type}: "
                "keep one column for each combiner"
            )
        valid = np.asarray(stored.is_valid()) if stored.null_count else None
        if valid is not None:
            stored = stored.filter(pa.array(valid))
        mark, *rest = stored.flatten()
        strange = pc.not_equal(mark, pa.scalar(self.mark, pa.int64()))
        if len(mark) and (mark.null_count or pc.any(strange).as_py()):
            self._require_format(mark)
            raise StateMismatch(
                f"{self!r} cannot read accumulators that another combiner made: keep one column for each combiner"
            )
        with self._reading():
            rows, *accumulators = (conform(a, f.type) for a, f in zip(rest, list(self.type)[1:], strict=True))
            if rows.null_count:
                raise ValueError("the number of its rows is null")
        return valid, np.asarray(rows), tuple(accumulators)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Errors of values that no combiner stores, as an error of this library."""
        try:
            yield
        except UncombineError:
            raise
        except _UNREADABLE as error:
            raise StateMismatch(
                f"{self!r} cannot read a stored accumulator ({type(error).__name__}: {str(error)[:200]}): it is "
                "damaged, or a function of the combiner fails, so accumulate the rows again"
            ) from error

    def _require_format(self, marks: pa.Array) -> None:
        """Raise `StateMismatch` if one of the marks is of this combiner in another format."""
        present = set(pc.unique(marks).to_pylist())
        for number in range(1, FORMAT + _LATER):
            if number != FORMAT and _mark(repr(self.bound.combiner), self.inputs, number) in present:
                raise StateMismatch(_of_format(f"an accumulator of {self!r}", number))


def described(combiner: str, inputs: StructType) -> str:
    """The text of a maker."""
    return f"{combiner} over ({ddl(inputs)})"


def maker_of(name: str, field: StructField, combiner: Combiner, schema: AnySchema | None = None) -> Maker:
    """The maker of a column of accumulators of this combiner, over the types that its metadata has.

    `schema` has the types for a column whose metadata was lost; each row still says by its mark who made it.
    """
    made_by = _made_by(name, field)
    if made_by is None:
        if schema is not None and isinstance(field.dataType, StructType):
            return Maker(bind(name, combiner, schema))
        raise _lost(name)
    inputs, text = _inputs_of(name, made_by), str(made_by.get("combiner"))
    if text != repr(combiner):
        raise StateMismatch(f"column {name!r} was made by {described(text[:1000], inputs)}, not by {combiner!r}")
    maker = Maker(bind(name, combiner, inputs))
    if maker.mark != made_by.get("made_by"):
        raise StateMismatch(f"the metadata of column {name!r} names {maker!r}, but another combiner made its values")
    if schema is not None and (expected := Maker(bind(name, combiner, schema))).mark != maker.mark:
        raise StateMismatch(f"column {name!r} was made by {maker!r}, but schema= says {expected!r}: leave schema= out")
    return maker


def combiner_of(name: str, field: StructField) -> Combiner:
    """The combiner that the metadata of a column of accumulators names."""
    from ...combiners.read_repr import read_combiner

    made_by = _made_by(name, field)
    if made_by is None:
        raise _lost(name)
    text = str(made_by.get("combiner"))
    combiner = read_combiner(text)
    if combiner is None:
        raise StateMismatch(
            f"column {name!r} was made by {text[:1000]}, which cannot be made from its name: write "
            f"Accumulator(combiner, {name!r}) with the combiner itself"
        )
    return combiner


def _made_by(name: str, field: StructField) -> Mapping[str, Any] | None:
    """The part of the metadata of a column that names its maker, in this format; None if it has none."""
    made_by = field.metadata.get(KEY) if isinstance(field.metadata, Mapping) else None
    if made_by is None or (isinstance(made_by, Mapping) and made_by.get("format") == FORMAT):
        return made_by
    number = made_by.get("format") if isinstance(made_by, Mapping) else None
    raise StateMismatch(_of_format(f"column {name!r}", number))


def _lost(name: str) -> StateMismatch:
    return StateMismatch(
        f"the metadata of column {name!r} names no combiner, so it is no accumulator, or its metadata was lost: "
        "Accumulator(combiner, ..., schema=) with the types of its rows reads it all the same, and checks each row"
    )


def _inputs_of(name: str, made_by: Mapping[str, Any]) -> StructType:
    """The input types that metadata has."""
    try:
        inputs = StructType.fromJson(json.loads(made_by["input"]))
        if all(isinstance(field, StructField) and isinstance(field.name, str) for field in inputs.fields):
            return inputs
    except Exception:  # Spark's reader of types has errors of many kinds
        pass
    raise StateMismatch(
        f"the metadata of column {name!r} has no types of the inputs of its combiner, so it was not written by this "
        "library: accumulate the rows again"
    )


def _of_format(what: str, number: object) -> str:
    return (
        f"{what} is stored in format {str(number)[:40]}, but this version of uncombine reads format {FORMAT}: "
        "accumulate the rows again, or use the version of uncombine that wrote it"
    )


def _mark(combiner: str, inputs: StructType, number: int = FORMAT) -> int:
    text = json.dumps([number, combiner, [[field.name, field.dataType.simpleString()] for field in inputs]])
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little", signed=True)


def _spread(values: pa.Array, valid: np.ndarray | None) -> pa.Array:
    """The values in the places of the valid rows, with null in the other places."""
    if valid is None:
        return values
    places = np.cumsum(valid) - 1
    return values.take(pa.array(places, mask=~valid))


def _null_where(values: pa.Array, missing: np.ndarray) -> pa.Array:
    return values.take(pa.array(np.arange(len(values)), mask=missing))
