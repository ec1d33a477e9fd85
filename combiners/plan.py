"""Many combiners over one input in one pass: equal parts once, inputs evaluated once, nulls left out once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import InvalidArgument, NotRetractable, TypeMismatch, UncombineError, require_column
from .algebra import Accumulators, Capability, CombineFn, Weights
from .columns import Column
from .combiner import Combiner, Lowered, Part
from .expressions import Expr
from .groups import Groups
from .plain_types import plain_schema, text_room

Rows: TypeAlias = tuple[Groups, tuple[Column, ...], Weights]


class Plan:
    """Named combiners on a schema, as one thing to add, merge, take back and extract.

    `fields` are the accumulator columns of all the distinct parts, one behind the other.

    >>> import pyarrow as pa, uncombine as uc
    >>> schema = pa.schema({"x": pa.int64()})
    >>> plan = Plan({"total": uc.Sum("x"), "n": uc.Count("x"), "mean": uc.Mean("x")}, schema)
    >>> [field.name for field in plan.fields]
    ['0.sum.lo', '0.sum.hi', '1.count.count']
    """

    def __init__(self, combiners: Mapping[str, Combiner], schema: pa.Schema, append_only: bool = False) -> None:
        self.schema = plain_schema(schema)
        # Those that come as a large type or as a view.
        same = self.schema is schema
        self._strange = [] if same else [f.name for f in schema if f.type != self.schema.field(f.name).type]
        schema = self.schema
        self.lowered: dict[str, Lowered] = {}
        for name, combiner in combiners.items():
            if not isinstance(combiner, Combiner):
                raise InvalidArgument(f"{name}= takes a combiner such as Sum('x'), not {combiner!r}")
            self.lowered[name] = _append_only(combiner, schema) if append_only else combiner.lower(schema)
        self.parts: tuple[Part, ...] = tuple(
            dict.fromkeys(part for lowered in self.lowered.values() for part in lowered.parts)
        )
        self.columns: tuple[str, ...] = tuple(dict.fromkeys(name for part in self.parts for name in part.columns))
        for name in self.columns:
            require_column(name, schema.names, "the aggregation")
        self._slices: dict[Part, slice] = {}
        fields: list[pa.Field] = []
        for i, part in enumerate(self.parts):
            label = getattr(part.fn, "label", type(part.fn).__name__.lower())
            self._slices[part] = slice(len(fields), len(fields) + len(part.fn.fields))
            fields += [field.with_name(f"{i}.{label}.{field.name}") for field in part.fn.fields]
        self.fields: tuple[pa.Field, ...] = tuple(fields)

    @property
    def capability(self) -> Capability:
        """What all the combiners together promise."""
        return min((lowered.capability for lowered in self.lowered.values()), default=Capability.GROUP)

    @property
    def outputs(self) -> list[pa.Field]:
        """The result columns."""
        return [pa.field(name, lowered.output) for name, lowered in self.lowered.items()]

    def require_retractable(self, why: str) -> None:
        """Raise `NotRetractable`, naming the combiner, unless all of them can take rows back."""
        for name, lowered in self.lowered.items():
            if lowered.capability is Capability.MONOID:
                raise NotRetractable(f"{name}= is a MONOID combiner and {why}: {remedy_of(lowered.parts)}")

    def add(self, groups: Groups, table: pa.Table | pa.RecordBatch, weights: Weights = None) -> Accumulators:
        """The accumulators of a table's rows."""
        if weights is not None and len(weights) and int(weights.min()) < 0:
            self.require_retractable("the input has negative weights")
        for name in self._strange:
            if name in self.columns:
                place = table.schema.get_field_index(name)
                table = table.set_column(place, name, table.column(name).cast(self.schema.field(name).type))
        source = _Source(groups, table, weights)
        out: list[pa.Array] = []
        with text_room:
            for part in self.parts:
                part_groups, columns, part_weights = source.rows(part)
                out += part.fn.add(part_groups, *columns, weights=part_weights)
        return tuple(out)

    def merge(self, groups: Groups, accumulators: Accumulators) -> Accumulators:
        """The sums of the accumulators in each group."""
        with text_room:
            return tuple(a for part in self.parts for a in part.fn.merge(groups, accumulators[self._slices[part]]))

    def zero(self, count: int) -> Accumulators:
        """`count` accumulators that have seen nothing."""
        return tuple(a for part in self.parts for a in part.fn.zero(count))

    def is_zero(self, accumulators: Accumulators) -> np.ndarray:
        """Which accumulators are as if they had seen nothing, rounding in parts that are no group overlooked."""
        zero = np.ones(len(accumulators[0]) if accumulators else 0, np.bool_)
        for part in self.parts:
            if part.fn.capability is Capability.GROUP:
                zero &= part.fn.is_zero(accumulators[self._slices[part]])
        return zero

    def negate(self, accumulators: Accumulators) -> Accumulators:
        """The inverse of each accumulator."""
        return tuple(a for part in self.parts for a in part.fn.negate(accumulators[self._slices[part]]))

    def uncombine(self, accumulators: Accumulators, others: Accumulators) -> Accumulators:
        """`accumulators - others`, row by row."""
        out: list[pa.Array] = []
        for part in self.parts:
            place = self._slices[part]
            out += part.fn.uncombine(accumulators[place], others[place])
        return tuple(out)

    def extract(self, accumulators: Accumulators) -> list[pa.Array]:
        """The results, one column a combiner."""
        with text_room:
            return [
                lowered.finish([accumulators[self._slices[part]] for part in lowered.parts])
                for lowered in self.lowered.values()
            ]


def _append_only(combiner: Combiner, schema: pa.Schema) -> Lowered:
    """Lowered in its smallest form; refused, where it does not fit, in the words of the form that was written."""
    try:
        return combiner.append_only().lower(schema)
    except UncombineError as error:
        refused = error
    combiner.lower(schema)
    raise refused


def remedy_of(parts: Sequence[Part]) -> str:
    """What to do about the first part without a retraction."""
    return next(part.fn.remedy for part in parts if part.fn.capability is Capability.MONOID)


class _Source:
    """A table's rows as the parts want them; what two parts want alike is worked out once."""

    def __init__(self, groups: Groups, table: pa.Table | pa.RecordBatch, weights: Weights) -> None:
        self.groups, self.table = groups, table
        self.weights = weights
        self._columns: dict[Expr, Column] = {}
        self._rows: dict[tuple[tuple[Expr, ...], Expr | None, tuple[bool, ...]], Rows] = {}
        self._filtered: dict[tuple[Expr, ...], dict[Expr, Column]] = {}

    def rows(self, part: Part) -> Rows:
        nullable = tuple(part.fn.nullable) + (False,) * (len(part.inputs) - len(part.fn.nullable))
        key = (part.inputs, part.where, nullable)
        if key not in self._rows:
            self._rows[key] = self._compute(part, nullable)
        return self._rows[key]

    def _compute(self, part: Part, nullable: tuple[bool, ...]) -> Rows:
        columns = tuple(self._column(expr) for expr in part.inputs)
        keep: np.ndarray | None = None
        if part.where is not None:
            chosen = self._column(part.where).array
            if not pa.types.is_boolean(chosen.type):
                raise TypeMismatch(f".where() takes a boolean expression, and {part.where!r} is {chosen.type}")
            keep = np.asarray(pc.fill_null(chosen, False))
        for column, may_be_null in zip(columns, nullable, strict=True):
            if column.array.null_count and not may_be_null:
                valid = np.asarray(column.array.is_valid())
                keep = valid if keep is None else keep & valid
        if keep is None:
            return self.groups, columns, self.weights
        weights = None if self.weights is None else self.weights[keep]
        return self.groups.take(keep), tuple(column.take(keep) for column in columns), weights

    def _column(self, expr: Expr) -> Column:
        if expr not in self._columns:
            value = expr.evaluate(self.table)
            if isinstance(value, pa.Scalar):
                value = pa.repeat(value, self.table.num_rows)
            self._columns[expr] = Column(value)
        return self._columns[expr]


class Bound(CombineFn):
    """One combiner on known input types, as a `CombineFn` over its input columns, with scalar views for people.

    >>> import pyarrow as pa, uncombine as uc
    >>> fn = uc.Max("x").bind(pa.schema({"x": pa.int64()}))
    >>> state = fn.accumulate({"x": [3, 9, 9]})
    >>> fn.result(state), fn.result(fn.uncombine(state, fn.accumulate({"x": [9, 9]})))
    (9, 3)
    """

    def __init__(self, combiner: Combiner, schema: pa.Schema) -> None:
        self.combiner = combiner
        self.plan = Plan({"result": combiner}, schema)
        self.capability = self.plan.capability
        self.columns = self.plan.columns
        self.schema = pa.schema([schema.field(name) for name in self.columns])

    @property
    def fields(self) -> tuple[pa.Field, ...]:
        return self.plan.fields

    @property
    def output(self) -> pa.DataType:
        """The type of the results."""
        return self.plan.outputs[0].type

    def add(self, groups: Groups, *columns: Column | pa.Array, weights: Weights = None) -> Accumulators:
        """The accumulators of the rows of each group; `columns` in the order of `self.columns`."""
        arrays = [column.array if isinstance(column, Column) else column for column in columns]
        if not arrays:
            return self.plan.add(groups, pa.table({"rows": pa.nulls(len(groups))}), weights)
        return self.plan.add(groups, pa.table(dict(zip(self.columns, arrays, strict=True))), weights)

    def merge(self, groups: Groups, accumulators: Accumulators) -> Accumulators:
        return self.plan.merge(groups, accumulators)

    def negate(self, accumulators: Accumulators) -> Accumulators:
        return self.plan.negate(accumulators)

    def uncombine(self, accumulators: Accumulators, others: Accumulators) -> Accumulators:
        return self.plan.uncombine(accumulators, others)

    def extract(self, accumulators: Accumulators) -> pa.Array:
        return self.plan.extract(accumulators)[0]

    def accumulate(
        self, rows: pa.Table | Mapping[str, Sequence[object]], weights: Sequence[int] | None = None
    ) -> Accumulators:
        """One accumulator (columns of one row) of all these rows."""
        if not isinstance(rows, pa.Table):
            rows = pa.table({name: pa.array(rows[name], self.schema.field(name).type) for name in self.columns})
        count = rows.num_rows if self.columns else len(weights or ())
        arrays = [rows[name] for name in self.columns]
        weighed = None if weights is None else np.asarray(weights, np.int64)
        return self.add(Groups.single(count), *arrays, weights=weighed)

    def result(self, accumulators: Accumulators) -> object:
        """The result of the first accumulator as a Python value."""
        return self.extract(accumulators)[0].as_py()
