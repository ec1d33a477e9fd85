"""Column expressions: values that compare, hash, print as they are written, and compute on Arrow tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from numbers import Number
from typing import Any

import numpy as np
import pyarrow as pa

from ...advice import OF_EXPRESSIONS, Adviser, no_such_method
from ...errors import InvalidArgument, OutOfRange, TypeMismatch, UnknownColumn, nearest, require_column
from ..rows.plain_types import is_text
from ..rows.type_names import type_named
from .calls import option_pairs, require_function
from .kernels import ARROW_FAULTS, CAST, misfits, run, scalar_of
from .methods import require_text
from .plain_values import of_pandas, plain_value
from .text import Named, literal_text, text_of
from .text_methods import TextMethods
from .time_methods import TimeMethods
from .times import check_time_format


@dataclass(frozen=True, eq=False, repr=False)
class Expr(Adviser):
    """A column expression; build one with `col`.

    `==` builds an expression too. Python asks for the truth of an `==` in `in` and in dict lookups: it is true if both
    sides are written alike. The truth of any other expression is an error: combine conditions with & | ~.

    Null stays null, and & | ~ have three values, as in SQL. `/` divides in float64, `//` and `%` round down as in
    Python, and division by zero gives null. An integer that does not fit its type is an error. Comparisons with NaN
    are false (!= is true), as in Python: use `is_nan()`. Next to a float, integers and decimals count as the nearest
    float64. Next to signed integers (such as whole numbers below 2**63), uint64 is compared by value and computed as
    int64, and a value that does not fit int64 is an error that names the remedy.

    The difference of two times is a duration. Durations are added to times, and multiplied and divided as those of
    Python: a quotient of two is a float, and one that is divided by a number is rounded to its unit.

    >>> from uncombine import col
    >>> (col("price") * 2 > 10) & ~col("done")
    (col('price') * 2 > 10) & ~col('done')
    >>> bool(col("x") == col("x")), bool(col("x") == col("y"))
    (True, False)
    """

    op: str
    args: tuple[Any, ...]

    # So that arrays on the left of an operator leave it to the expression, and do not compare each of their values.
    __array_ufunc__ = None
    __pandas_priority__ = 10_000

    @property
    def _key(self) -> tuple[Any, ...]:
        """The expression as plain comparable values.

        Literals are compared by type and text, so that 1, 1.0 and True differ, 0.0 and -0.0 differ, and NaN equals
        NaN.
        """
        return (self.op, *map(_key_of, self.args))

    def _no_such(self, name: str) -> AttributeError:
        return no_such_method("an expression", self, name, OF_EXPRESSIONS)

    def __hash__(self) -> int:
        return hash(self._key)

    def __bool__(self) -> bool:
        if self.op in ("==", "!=") and all(isinstance(a, Expr) for a in self.args):
            left, right = self.args
            same: bool = left._key == right._key
            return same if self.op == "==" else not same
        raise InvalidArgument(f"the truth of {self!r} depends on rows: combine conditions with & | ~, not and/or/not")

    def __eq__(self, other: object) -> Expr:  # type: ignore[override]
        return _compared("==", self, other)

    def __ne__(self, other: object) -> Expr:  # type: ignore[override]
        return _compared("!=", self, other)

    def __lt__(self, other: Any) -> Expr:
        return _binary("<", self, other)

    def __le__(self, other: Any) -> Expr:
        return _binary("<=", self, other)

    def __gt__(self, other: Any) -> Expr:
        return _binary(">", self, other)

    def __ge__(self, other: Any) -> Expr:
        return _binary(">=", self, other)

    def __add__(self, other: Any) -> Expr:
        return _binary("+", self, other)

    def __radd__(self, other: Any) -> Expr:
        return _binary("+", other, self)

    def __sub__(self, other: Any) -> Expr:
        return _binary("-", self, other)

    def __rsub__(self, other: Any) -> Expr:
        return _binary("-", other, self)

    def __mul__(self, other: Any) -> Expr:
        return _binary("*", self, other)

    def __rmul__(self, other: Any) -> Expr:
        return _binary("*", other, self)

    def __truediv__(self, other: Any) -> Expr:
        return _binary("/", self, other)

    def __rtruediv__(self, other: Any) -> Expr:
        return _binary("/", other, self)

    def __floordiv__(self, other: Any) -> Expr:
        return _binary("//", self, other)

    def __rfloordiv__(self, other: Any) -> Expr:
        return _binary("//", other, self)

    def __mod__(self, other: Any) -> Expr:
        return _binary("%", self, other)

    def __rmod__(self, other: Any) -> Expr:
        return _binary("%", other, self)

    def __and__(self, other: Any) -> Expr:
        return _binary("&", self, other)

    def __rand__(self, other: Any) -> Expr:
        return _binary("&", other, self)

    def __or__(self, other: Any) -> Expr:
        return _binary("|", self, other)

    def __ror__(self, other: Any) -> Expr:
        return _binary("|", other, self)

    def __invert__(self) -> Expr:
        return Expr("~", (self,))

    def __neg__(self) -> Expr:
        return Expr("neg", (self,))

    def __abs__(self) -> Expr:
        return Expr("abs", (self,))

    def is_null(self) -> Expr:
        """True if the value is null."""
        return Expr("is_null", (self,))

    def is_not_null(self) -> Expr:
        """True if there is a value: `~x.is_null()`."""
        return ~self.is_null()

    def is_nan(self) -> Expr:
        """True if the value is NaN; null for null."""
        return Expr("is_nan", (self,))

    def isin(self, values: Iterable[Any]) -> Expr:
        """True if the value is one of `values`; false for null. Here NaN equals NaN, and -0.0 equals 0.0."""
        if isinstance(values, str | bytes) or not isinstance(values, Iterable):
            raise InvalidArgument(f"isin() takes a list of values, but was given {values!r}: write isin([{values!r}])")
        # A set has another order in each process, but the expression must be the same in all.
        members = sorted(values, key=repr) if isinstance(values, set | frozenset) else values
        return Expr("isin", (self, tuple(plain_value(value) for value in members)))

    def cast(self, to: pa.DataType | str, *, strict: bool = True) -> Expr:
        """The value as another Arrow type; a value that does not fit is an error, or with `strict=False` null.

        A fraction is no whole number: write `x.call("round").cast("int64")`. A number is rounded where floats are
        rounded to another width or to the digits of a decimal.

        >>> import pyarrow as pa, uncombine as uc
        >>> texts = pa.table({"x": ["2.5", "many"]})
        >>> uc.col("x").cast("float64", strict=False).evaluate(texts).to_pylist()
        [2.5, None]
        """
        kind = type_named(to) if isinstance(to, str) else to
        if not isinstance(kind, pa.DataType):
            raise InvalidArgument(
                f"cast() takes an Arrow type, such as pa.int64(), 'int64' or 'decimal128(12, 2)', but was given {to!r}"
            )
        if not isinstance(strict, bool):
            raise InvalidArgument(f"cast(strict=) must be True or False, but is {strict!r}")
        return Expr("cast", (self, kind, *([] if strict else [Named("strict", False)])))

    def cast_time(self, format: str = "") -> Expr:
        """The value as an instant in UTC; null for a value that is no time in the years 1 to 9999.

        `format` is the unit of numbers since 1970 ("s", "ms", "us" or "ns"), or the format of texts, whose directives
        mean what they do in Python's `datetime.strptime`, with English names. Without it texts are ISO. A time without
        a zone is UTC.

        >>> import pyarrow as pa, uncombine as uc
        >>> days = pa.table({"day": ["31.01.2024", "31.02.2024"]})
        >>> uc.col("day").cast_time("%d.%m.%Y").evaluate(days).is_null().to_pylist()
        [False, True]
        """
        check_time_format(format)
        return Expr("cast_time", (self, *([format] if format else [])))

    def fill_null(self, value: Any) -> Expr:
        """The value, or `value` where it is null."""
        return Expr("fill_null", (self, _operand(value)))

    def field(self, name: str) -> Expr:
        """A field of a struct."""
        if not isinstance(name, str):
            raise InvalidArgument(f"field() takes a field's name, but was given {name!r}")
        return Expr("field", (self, name))

    def call(self, function: str, *others: Any, options: Mapping[str, Any] | None = None) -> Expr:
        """A scalar function of `pyarrow.compute` by its name, over the value and others, with the function's options.

        >>> import pyarrow as pa, uncombine as uc
        >>> rows = pa.table({"name": ["ada", None], "price": [2.345, 1.0]})
        >>> uc.col("name").call("utf8_reverse").evaluate(rows).to_pylist()
        ['ada', None]
        >>> uc.col("price").call("round", options={"ndigits": 1}).evaluate(rows).to_pylist()
        [2.3, 1.0]
        """
        name = require_function(function, 1 + len(others))
        pairs = option_pairs(name, options)
        return Expr("call", (self, name, *map(_operand, others), *([Named("options", pairs)] if pairs else [])))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the expression reads."""
        if self.op == "col":
            return (self.args[0],)
        return tuple(dict.fromkeys(name for a in self.args if isinstance(a, Expr) for name in a.columns))

    def evaluate(self, table: pa.Table | pa.RecordBatch) -> pa.Array | pa.ChunkedArray:
        """The expression's value for each row of a table."""
        value = self._compute(table)
        return pa.repeat(value, table.num_rows) if isinstance(value, pa.Scalar) else value

    def type(self, schema: pa.Schema) -> pa.DataType:
        """The type of the expression on columns of this schema; raises if it does not fit."""
        for name in self.columns:
            require_column(name, schema.names, f"the expression {self!r}")
        needed = [schema.field(name) for name in self.columns]
        # A row of nulls, because Arrow does not check time zones on an empty table.
        row = pa.table([pa.nulls(1, f.type) for f in needed], names=[f.name for f in needed])
        return self._compute(row, nulls=True).type

    def _compute(self, table: pa.Table | pa.RecordBatch, nulls: bool = False) -> Any:
        """The value over a table; with `nulls`, the result of each operation is replaced by a null of its type."""
        if self.op == "col":
            require_column(self.args[0], table.schema.names, f"the expression {self!r}")
            return table.column(self.args[0])
        if self.op == "lit":
            return scalar_of(self.args[0])
        args = [a._compute(table, nulls) if isinstance(a, Expr) else a for a in self.args]
        if self.op == "field":
            self._require_field(args[0].type)
        try:
            value = run(self.op, args)
        except ARROW_FAULTS as error:
            reason = str(error).partition("\n")[0]
            if isinstance(error, pa.ArrowNotImplementedError | pa.ArrowTypeError) or misfits(self.op, args):
                kinds = [a.type for a in args if hasattr(a, "type")]
                types = " and ".join(map(str, kinds))
                if "no kernel" in reason and any(map(is_text, kinds)) and any(map(pa.types.is_primitive, kinds)):
                    reason = CAST
                raise TypeMismatch(f"{self!r} does not work on {types}: {reason}") from None
            raise OutOfRange(f"{self!r} failed on the data: {reason}{self._remedy(args)}") from None
        return pa.nulls(1, value.type) if nulls else value

    def _remedy(self, args: list[Any]) -> str:
        """Advice for a value that does not fit."""
        if self.op != "cast":
            return ""
        some = pa.types.is_floating(args[0].type) and pa.types.is_integer(args[1])
        first = "x.call('round').cast(...), or " if some else ""
        return f": write {first}x.cast(..., strict=False), which gives null"

    def _require_field(self, kind: pa.DataType) -> None:
        name = self.args[1]
        if not pa.types.is_struct(kind):
            raise TypeMismatch(f"{self!r} does not work on {kind}: name a column of structs")
        fields = [field.name for field in kind]
        if name not in fields:
            raise UnknownColumn(f"{self!r} needs field {name!r}, which is not in {kind}: {nearest(name, fields)}", name)

    def __repr__(self) -> str:
        return text_of(self.op, self.args)

    # In the body of a class the name of a property hides that of a type: `str` comes last.

    @property
    def dt(self) -> TimeMethods[Expr]:
        """Methods of times, dates and durations, such as `x.dt.hour()`."""
        return TimeMethods(self, _step)

    @property
    def str(self) -> TextMethods[Expr]:
        """Methods of texts, such as `x.str.to_lowercase()`."""
        return TextMethods(self, _step)


def col(name: str) -> Expr:
    """The column of this name, as an expression.

    >>> import pyarrow as pa, uncombine as uc
    >>> (uc.col("x") + 1).evaluate(pa.table({"x": [1, 2]})).to_pylist()
    [2, 3]
    """
    if not isinstance(name, str):
        raise InvalidArgument(f"col() takes a column's name, but was given {name!r}")
    return Expr("col", (name,))


def when(condition: Expr | bool, then: Any, otherwise: Any = None) -> Expr:
    """`then` where the condition is true, `otherwise` where it is false or null.

    >>> import pyarrow as pa, uncombine as uc
    >>> uc.when(uc.col("x") > 1, "b", "a").evaluate(pa.table({"x": [1, 2]})).to_pylist()
    ['a', 'b']
    """
    if not isinstance(condition, Expr | bool):
        raise InvalidArgument(f"when() takes a condition such as col('x') > 1 first, but was given {condition!r}")
    return Expr("when", (_operand(condition), _operand(then), _operand(otherwise)))


def coalesce(*values: Any) -> Expr:
    """The first of the values that is not null.

    >>> import pyarrow as pa, uncombine as uc
    >>> uc.coalesce(uc.col("x"), 0).evaluate(pa.table({"x": [None, 2]})).to_pylist()
    [0, 2]
    """
    if not values:
        raise InvalidArgument("coalesce() needs at least one expression or value: write coalesce(col('x'), 0)")
    return Expr("coalesce", tuple(_operand(value) for value in values))


def concat(*values: Any, separator: str = "") -> Expr:
    """The texts of a row one after the other, with a separator between them; null if one of them is.

    >>> import pyarrow as pa, uncombine as uc
    >>> uc.concat(uc.col("x"), "!").evaluate(pa.table({"x": ["a", None]})).to_pylist()
    ['a!', None]
    """
    if not values:
        raise InvalidArgument("concat() needs at least one expression or text: write concat(col('x'), '!')")
    for value in values:
        if not isinstance(value, Expr | str | None):
            raise InvalidArgument(
                f"concat() joins texts, but was given {type(value).__name__}: write a column as "
                "col('name').cast('string'), and uc.union(a, b) for the rows of two flows"
            )
    between = require_text(separator, "the separator of concat()")
    return Expr("concat", (*map(_operand, values), *([Named("separator", between)] if between else [])))


def _step(op: str, *args: Any) -> Expr:
    return Expr(op, args)


def _key_of(value: Any) -> Any:
    """An argument as a plain comparable value."""
    if isinstance(value, Expr):
        return value._key
    if isinstance(value, tuple):
        return tuple(map(_key_of, value))
    return value if isinstance(value, pa.DataType) else (type(value).__name__, literal_text(value))


def _operand(value: Any) -> Expr:
    return value if isinstance(value, Expr) else Expr("lit", (plain_value(value),))


def _binary(op: str, left: Any, right: Any) -> Expr:
    return Expr(op, (_operand(left), _operand(right)))


def _compared(op: str, left: Expr, right: object) -> Expr:
    """The comparison as an expression; NotImplemented for what is no data, such as a class or a combiner.

    Python's answer to such a comparison is False, which values of the library that hold expressions need, and which
    for data would be a condition without a row.
    """
    try:
        return _binary(op, left, right)
    except InvalidArgument:
        if isinstance(right, Number | Iterable | np.generic) or of_pandas(right):
            raise
        return NotImplemented
