"""`Combiner`: an aggregation as the user writes it (`Sum("x").where(col("y") > 0)`), a value without types.

`compile` makes of a combiner and the schema of its input a `CompiledCombiner`. `bind` makes of it a `Bound`: the
`CombineFn` over the input columns. The operators and methods of a combiner make combiners of combiners: filtered
rows, mapped results, arithmetic on results.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from html import escape
from typing import Any

import numpy as np
import pyarrow as pa

from ..advice import OF_COMBINERS, Adviser, no_such_method
from ..errors import InvalidArgument, NamedOptions, OutOfRange, TypeMismatch
from .algebra import Accumulators, Capability, CombineFn, Weights, weakest
from .compiled import CompiledCombiner, CompiledPlan
from .expressions.conditions import condition_of
from .expressions.expr import Expr, col
from .input_types import Input, input_type
from .rows.columns import Column
from .rows.groups import Groups
from .rows.plain_types import plain_schema
from .whole.group import WholeGroup


class Combiner(Adviser, NamedOptions, ABC):
    """An aggregation as a value: immutable, comparable, with a repr that evaluates back.

    Subclasses are frozen dataclasses whose first field is the input column (or columns); they define `compile`
    and `capability`. The other methods make new combiners.

    >>> import uncombine as uc
    >>> (uc.Sum("price") / uc.Count()).where(uc.col("price") > 0)
    (Sum('price') / Count()).where(col('price') > 0)
    """

    def _no_such(self, name: str) -> AttributeError:
        return no_such_method("a combiner", self, name, OF_COMBINERS)

    @property
    @abstractmethod
    def capability(self) -> Capability:
        """The promise of the combiner on every input type that it accepts."""

    @abstractmethod
    def compile(self, schema: pa.Schema) -> CompiledCombiner:
        """The combiner compiled on this schema; raises `TypeMismatch` or `UnknownColumn` if it does not fit."""

    def tolerance(self, magnitudes: Sequence[float], count: int) -> float:
        """The greatest absolute difference of a result from the exact result.

        `magnitudes` are the absolute values of all finite numbers of the input, also of retracted rows. `count` is
        the number of these rows, each counted as often as its weight says. Zero, the default, promises that results
        do not depend on the order of the rows. `math.inf` promises nothing for these inputs. Only fast float forms
        (CANCELLATIVE) need a tolerance above zero, and the law kit checks it.

        >>> import uncombine as uc
        >>> uc.Max("x").tolerance([1e9, 1.0], 2)
        0.0
        """
        return 0.0

    def append_only(self) -> Combiner:
        """The combiner with the smallest state that gives the same results on rows that are never retracted."""
        return self

    def bind(self, schema: pa.Schema) -> Bound:
        """This combiner as a `CombineFn` over the columns of a schema."""
        return Bound(self, schema)

    def of(self, *inputs: Input) -> Combiner:
        """The same aggregation over another column or expression.

        >>> import uncombine as uc
        >>> uc.Sum("x").of(uc.col("price") * uc.col("amount"))
        Sum(col('price') * col('amount'))
        """
        if not is_dataclass(self) or not fields(self) or not inputs:
            raise InvalidArgument(f"{self!r} has no input that .of() could replace")
        names = [f.name for f in fields(self) if f.name in ("input", "by", "weight", "x", "y")]
        if not names or len(inputs) > len(names):
            raise InvalidArgument(f"{self!r} takes {len(names)} inputs, but .of() was given {len(inputs)}")
        changes: dict[str, Any] = dict(zip(names, inputs, strict=False))
        return replace(self, **changes)

    def where(self, predicate: Expr) -> Combiner:
        """The same aggregation over the rows for which `predicate` is true.

        >>> import uncombine as uc
        >>> uc.Count().where(uc.col("x") > 2)
        Count().where(col('x') > 2)
        """
        return Filtered(self, predicate)

    def map(self, function: Callable[[pa.Array], pa.Array], output: pa.DataType | None = None) -> Combiner:
        """The same aggregation with its results put through a function of Arrow arrays.

        `output` is the type of the function's result. Without it the function is called on no results to find out.
        """
        return Mapped(combiner=self, function=function, output=output)

    def __add__(self, other: Combiner | float) -> Combiner:
        return self._arithmetic("+", self, other)

    def __radd__(self, other: float) -> Combiner:
        return self._arithmetic("+", other, self)

    def __sub__(self, other: Combiner | float) -> Combiner:
        return self._arithmetic("-", self, other)

    def __rsub__(self, other: float) -> Combiner:
        return self._arithmetic("-", other, self)

    def __mul__(self, other: Combiner | float) -> Combiner:
        return self._arithmetic("*", self, other)

    def __rmul__(self, other: float) -> Combiner:
        return self._arithmetic("*", other, self)

    def __truediv__(self, other: Combiner | float) -> Combiner:
        return self._arithmetic("/", self, other)

    def __rtruediv__(self, other: float) -> Combiner:
        return self._arithmetic("/", other, self)

    @staticmethod
    def _arithmetic(op: str, left: Combiner | float, right: Combiner | float) -> Combiner:
        return Arithmetic(op=op, left=left, right=right)

    def __repr__(self) -> str:
        return short_repr(self)

    def _repr_html_(self) -> str:
        said = escape(" ".join((type(self).__doc__ or "").partition("\n\n")[0].split()))
        said = re.sub("`([^`]+)`", r"<code>\1</code>", said)
        return f"<code>{escape(repr(self))}</code><p>{said}<br>Retracts: {self.capability.words}</p>"


def short_repr(value: Any) -> str:
    """The repr of a combiner: fields in their order, without the names of the first ones and without defaults."""
    parts: list[str] = []
    spec = fields(value)
    for f in spec:
        option = getattr(value, f.name)
        if f.default is not MISSING and type(option) is type(f.default) and option == f.default:
            continue
        bare = not f.kw_only and not isinstance(option, bool) and len(parts) == spec.index(f)
        parts.append(repr(option) if bare else f"{f.name}={option!r}")
    return f"{type(value).__name__}({', '.join(parts)})"


class Bound(CombineFn):
    """One combiner on known input types, as a `CombineFn` over its input columns.

    `accumulate` and `result` work on one group, with Python values.

    >>> import pyarrow as pa, uncombine as uc
    >>> fn = uc.Max("x").bind(pa.schema({"x": pa.int64()}))
    >>> state = fn.accumulate({"x": [3, 9, 9]})
    >>> fn.result(state), fn.result(fn.uncombine(state, fn.accumulate({"x": [9, 9]})))
    (9, 3)
    """

    def __init__(self, combiner: Combiner, schema: pa.Schema) -> None:
        self.combiner = combiner
        self.plan = CompiledPlan({"result": combiner.compile(plain_schema(schema))}, schema)
        self._whole = WholeGroup(self.plan)
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
        """The accumulators of the rows of each group; `columns` are in the order of `self.columns`."""
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

    def whole(self, columns: Sequence[pa.Array | pa.ChunkedArray]) -> pa.Scalar:
        """The result of the rows of one group, the same as `extract(add(...))` to the last bit, and mostly sooner.

        `columns` are in the order of `self.columns`; for a combiner that reads none, any one column, whose rows count.
        """
        return self._whole.result(columns)

    def accumulate(
        self, rows: pa.Table | Mapping[str, Sequence[object]], weights: Sequence[int] | None = None
    ) -> Accumulators:
        """The one accumulator (columns of one row) of all these rows."""
        if not isinstance(rows, pa.Table):
            rows = pa.table({name: pa.array(rows[name], self.schema.field(name).type) for name in self.columns})
        count = rows.num_rows if self.columns else len(weights or ())
        arrays = [rows[name] for name in self.columns]
        weighed = None if weights is None else np.asarray(weights, np.int64)
        return self.add(Groups.single(count), *arrays, weights=weighed)

    def combined(self, *parts: Accumulators) -> Accumulators:
        """The accumulator of the rows of all parts, each of which is an accumulator of one group.

        >>> import pyarrow as pa, uncombine as uc
        >>> days = [pa.table({"x": [1, 2, 9]}), pa.table({"x": [4, 5]})]
        >>> median = uc.Median("x").bind(days[0].schema)
        >>> median.result(median.combined(*map(median.accumulate, days)))
        4.0
        """
        if not parts:
            return self.zero(1)
        joined = tuple(pa.concat_arrays(columns) for columns in zip(*parts, strict=True))
        return self.merge(Groups.single(len(joined[0])), joined)

    def result(self, accumulators: Accumulators) -> object:
        """The result of the first accumulator as a Python value."""
        return self.extract(accumulators)[0].as_py()


@dataclass(frozen=True, repr=False)
class Filtered(Combiner):
    """A combiner over the rows for which a condition is true; null counts as false."""

    combiner: Combiner
    predicate: Expr

    def __post_init__(self) -> None:
        condition_of(self.predicate, ".where()")

    @property
    def capability(self) -> Capability:
        return self.combiner.capability

    def tolerance(self, magnitudes: Sequence[float], count: int) -> float:
        return self.combiner.tolerance(magnitudes, count)

    def append_only(self) -> Combiner:
        return Filtered(self.combiner.append_only(), self.predicate)

    def of(self, *inputs: Any) -> Combiner:
        return Filtered(self.combiner.of(*inputs), self.predicate)

    def compile(self, schema: pa.Schema) -> CompiledCombiner:
        if not pa.types.is_boolean(input_type(self.predicate, schema, self)):
            raise TypeMismatch(
                f".where() takes a boolean expression, but {self.predicate!r} is not one: compare it with a value"
            )
        compiled = self.combiner.compile(schema)
        parts = tuple(
            replace(p, where=self.predicate if p.where is None else p.where & self.predicate) for p in compiled.parts
        )
        return replace(compiled, parts=parts)

    def __repr__(self) -> str:
        return f"{self.combiner!r}.where({self.predicate!r})"


@dataclass(frozen=True, repr=False)
class Mapped(Combiner):
    """The results of `combiner` put through `function`, from an Arrow array to an Arrow array of the same length.

    >>> import pyarrow as pa, pyarrow.compute as pc, uncombine as uc
    >>> uc.aggregate(pa.table({"x": [1, 2]}), s=uc.Sum("x").map(pc.negate)).to_pylist()
    [{'s': -3}]
    """

    combiner: Combiner
    function: Callable[[pa.Array], pa.Array]
    output: pa.DataType | None = None

    @property
    def capability(self) -> Capability:
        return self.combiner.capability

    def tolerance(self, magnitudes: Sequence[float], count: int) -> float:
        # The effect of the function on a small difference is unknown.
        return math.inf if self.combiner.tolerance(magnitudes, count) else 0.0

    def append_only(self) -> Combiner:
        return replace(self, combiner=self.combiner.append_only())

    def of(self, *inputs: Any) -> Combiner:
        return replace(self, combiner=self.combiner.of(*inputs))

    def compile(self, schema: pa.Schema) -> CompiledCombiner:
        compiled = self.combiner.compile(schema)
        output = self.output if self.output is not None else self._apply(pa.array([], compiled.output), None).type

        def finish(parts: Sequence[Accumulators]) -> pa.Array:
            return self._apply(compiled.finish(parts), output)

        return CompiledCombiner(parts=compiled.parts, finish=finish, output=output)

    def _apply(self, results: pa.Array, output: pa.DataType | None) -> pa.Array:
        mapped = self.function(results)
        if isinstance(mapped, pa.ChunkedArray):
            mapped = mapped.combine_chunks()
        if not isinstance(mapped, pa.Array) or len(mapped) != len(results):
            raise TypeMismatch(
                f".map() needs a function that gives an Arrow array of the same length, but it gave {mapped!r}"
            )
        return mapped if output is None or mapped.type == output else mapped.cast(output)

    def __repr__(self) -> str:
        output = "" if self.output is None else f", {self.output!r}"
        return f"{self.combiner!r}.map({getattr(self.function, '__qualname__', self.function)}{output})"


@dataclass(frozen=True, repr=False)
class Arithmetic(Combiner):
    """Arithmetic of the results of two combiners; null if either is null or a divisor is zero."""

    op: str
    left: Combiner | float
    right: Combiner | float

    def __post_init__(self) -> None:
        for side in (self.left, self.right):
            if not isinstance(side, Combiner) and (isinstance(side, bool) or not isinstance(side, int | float)):
                raise InvalidArgument(f"arithmetic on results takes combiners and numbers, but was given {side!r}")

    @property
    def capability(self) -> Capability:
        return weakest([side.capability for side in (self.left, self.right) if isinstance(side, Combiner)])

    def tolerance(self, magnitudes: Sequence[float], count: int) -> float:
        sides = [side for side in (self.left, self.right) if isinstance(side, Combiner)]
        bounds = [side.tolerance(magnitudes, count) for side in sides]
        if self.op in "+-":
            return sum(bounds)
        # A product or quotient can make a small difference as large as the other side.
        return math.inf if any(bounds) else 0.0

    def append_only(self) -> Combiner:
        left, right = (s.append_only() if isinstance(s, Combiner) else s for s in (self.left, self.right))
        return Arithmetic(op=self.op, left=left, right=right)

    def compile(self, schema: pa.Schema) -> CompiledCombiner:
        sides = [side.compile(schema) if isinstance(side, Combiner) else None for side in (self.left, self.right)]
        cut = len(sides[0].parts) if sides[0] else 0
        a, b = col("a"), col("b")
        expr = {"+": a + b, "-": a - b, "*": a * b, "/": a / b}[self.op]

        def table(parts: Sequence[Accumulators], count: int) -> pa.Table:
            columns = []
            for side, operand, mine in zip(sides, (self.left, self.right), (parts[:cut], parts[cut:]), strict=True):
                columns.append(pa.repeat(pa.scalar(operand), count) if side is None else side.finish(mine))
            return pa.table(columns, names=["a", "b"])

        def finish(parts: Sequence[Accumulators]) -> pa.Array:
            try:
                result = expr.evaluate(table(parts, len(parts[0][0])))
            except OutOfRange as error:
                # The sides are columns only here.
                raise OutOfRange(str(error).replace(repr(expr), repr(self), 1)) from None
            return result.combine_chunks() if isinstance(result, pa.ChunkedArray) else result

        operands = zip(sides, (self.left, self.right), strict=True)
        types = [pa.scalar(operand).type if side is None else side.output for side, operand in operands]
        both_times = self.op == "-" and all(map(pa.types.is_timestamp, types))
        for kind in types:
            if not (both_times or pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
                remedy = "subtract a time from a time" if pa.types.is_temporal(kind) else "cast it with .map()"
                raise TypeMismatch(f"{self!r} needs numbers on both sides, but one side gives {kind}: {remedy}")
        output = expr.type(pa.schema([("a", types[0]), ("b", types[1])]))
        both = tuple(part for side in sides if side for part in side.parts)
        return CompiledCombiner(parts=both, finish=finish, output=output)

    def __repr__(self) -> str:
        return f"({self.left!r} {self.op} {self.right!r})"
