"""A small language of column expressions: values that compare, hash, print as they are written, and run on Arrow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..errors import InvalidArgument, OutOfRange, TypeMismatch, require_column

_BINARY: dict[str, tuple[int, Callable[..., Any]]] = {
    "|": (2, pc.or_kleene),
    "&": (3, pc.and_kleene),
    "==": (1, pc.equal),
    "!=": (1, pc.not_equal),
    "<": (1, pc.less),
    "<=": (1, pc.less_equal),
    ">": (1, pc.greater),
    ">=": (1, pc.greater_equal),
    "+": (6, pc.add_checked),
    "-": (6, pc.subtract_checked),
    "*": (7, pc.multiply_checked),
    "/": (7, lambda a, b: _divide(a, b)),
    "//": (7, lambda a, b: _floor_divide(a, b)),
    "%": (7, lambda a, b: _modulo(a, b)),
}
_ATOM = 10


@dataclass(frozen=True, eq=False, repr=False)
class Expr:
    """A column expression; build one with `col`.

    `==` builds an expression too; where Python asks for its truth (as `in` and dict lookups do) the answer is whether
    the two sides are written alike. The truth of any other expression is an error: combine conditions with & | ~.

    >>> from uncombine import col
    >>> (col("price") * 2 > 10) & ~col("done")
    (col('price') * 2 > 10) & ~col('done')
    >>> bool(col("x") == col("x")), bool(col("x") == col("y"))
    (True, False)
    """

    op: str
    args: tuple[Any, ...]

    @property
    def _key(self) -> tuple[Any, ...]:
        """What the expression is, as plain comparable values (1, 1.0 and True told apart)."""
        parts = (a._key if isinstance(a, Expr) else (type(a).__name__, a) for a in self.args)
        return (self.op, *parts)

    def __hash__(self) -> int:
        return hash(self._key)

    def __bool__(self) -> bool:
        if self.op in ("==", "!=") and all(isinstance(a, Expr) for a in self.args):
            left, right = self.args
            same: bool = left._key == right._key
            return same if self.op == "==" else not same
        raise InvalidArgument(f"the truth of {self!r} depends on rows: combine conditions with & | ~, not and/or/not")

    def __eq__(self, other: object) -> Expr:  # type: ignore[override]
        return _binary("==", self, other) if _is_operand(other) else NotImplemented

    def __ne__(self, other: object) -> Expr:  # type: ignore[override]
        return _binary("!=", self, other) if _is_operand(other) else NotImplemented

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

    def __mod__(self, other: Any) -> Expr:
        return _binary("%", self, other)

    def __and__(self, other: Any) -> Expr:
        return _binary("&", self, other)

    def __or__(self, other: Any) -> Expr:
        return _binary("|", self, other)

    def __invert__(self) -> Expr:
        return Expr("~", (self,))

    def __neg__(self) -> Expr:
        return Expr("neg", (self,))

    def __abs__(self) -> Expr:
        return Expr("abs", (self,))

    def is_null(self) -> Expr:
        """Whether the value is missing."""
        return Expr("is_null", (self,))

    def is_nan(self) -> Expr:
        """Whether the value is NaN; null for null."""
        return Expr("is_nan", (self,))

    def isin(self, values: list[Any] | tuple[Any, ...]) -> Expr:
        """Whether the value is one of `values`; false for null."""
        return Expr("isin", (self, tuple(values)))

    def cast(self, to: pa.DataType) -> Expr:
        """The value as another Arrow type; a value that does not fit is an error."""
        return Expr("cast", (self, to))

    def fill_null(self, value: Any) -> Expr:
        """The value, or `value` where it is missing."""
        return Expr("fill_null", (self, _operand(value)))

    def field(self, name: str) -> Expr:
        """A field of a struct."""
        return Expr("field", (self, name))

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
        empty = pa.table([pa.array([], f.type) for f in needed], schema=pa.schema(needed))
        value = self._compute(empty)
        return value.type

    def _compute(self, table: pa.Table | pa.RecordBatch) -> Any:
        if self.op == "col":
            require_column(self.args[0], table.schema.names, f"the expression {self!r}")
            return table.column(self.args[0])
        if self.op == "lit":
            return pa.scalar(self.args[0])
        args = [a._compute(table) if isinstance(a, Expr) else a for a in self.args]
        try:
            return _run(self.op, args)
        except (pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
            types = " and ".join(str(a.type) for a in args if hasattr(a, "type"))
            raise TypeMismatch(f"{self!r} does not work on {types}: {error}") from None
        except pa.ArrowInvalid as error:
            raise OutOfRange(f"{self!r} failed on the data: {error}") from None

    def __repr__(self) -> str:
        return _text(self, 0)


def col(name: str) -> Expr:
    """The column of this name, to compute with.

    >>> import pyarrow as pa
    >>> (col("x") + 1).evaluate(pa.table({"x": [1, 2]})).to_pylist()
    [2, 3]
    """
    if not isinstance(name, str):
        raise InvalidArgument(f"col() takes a column's name, not {name!r}")
    return Expr("col", (name,))


def when(condition: Expr, then: Any, otherwise: Any = None) -> Expr:
    """`then` where the condition is true, `otherwise` where it is false or null.

    >>> import pyarrow as pa
    >>> when(col("x") > 1, "big", "small").evaluate(pa.table({"x": [1, 2]})).to_pylist()
    ['small', 'big']
    """
    return Expr("when", (condition, _operand(then), _operand(otherwise)))


def coalesce(*values: Any) -> Expr:
    """The first of the values that is not null.

    >>> import pyarrow as pa
    >>> coalesce(col("x"), 0).evaluate(pa.table({"x": [None, 2]})).to_pylist()
    [0, 2]
    """
    return Expr("coalesce", tuple(_operand(value) for value in values))


def _is_operand(value: Any) -> bool:
    if isinstance(value, Expr):
        return True
    try:
        pa.scalar(value)
        hash(value)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, TypeError):
        return False
    return True


def _operand(value: Any) -> Expr:
    if isinstance(value, Expr):
        return value
    if not _is_operand(value):
        raise InvalidArgument(f"{value!r} is neither an expression nor a plain value")
    return Expr("lit", (value,))


def _binary(op: str, left: Any, right: Any) -> Expr:
    return Expr(op, (_operand(left), _operand(right)))


def _run(op: str, args: list[Any]) -> Any:
    if op in _BINARY:
        return _BINARY[op][1](*args)
    match op:
        case "~":
            return pc.invert(args[0])
        case "neg":
            return pc.negate_checked(args[0])
        case "abs":
            return pc.abs_checked(args[0])
        case "is_null":
            return pc.is_null(args[0])
        case "is_nan":
            return pc.is_nan(args[0])
        case "isin":
            return pc.is_in(args[0], value_set=pa.array(list(args[1]), args[0].type))
        case "cast":
            return args[0].cast(args[1])
        case "fill_null":
            return pc.coalesce(args[0], args[1])
        case "field":
            return pc.struct_field(args[0], args[1])
        case "when":
            return pc.if_else(pc.fill_null(args[0], False), args[1], args[2])
        case "coalesce":
            return pc.coalesce(*args)
    raise InvalidArgument(f"no such operation {op!r}")


def _divide(a: Any, b: Any) -> Any:
    """True division, null where the divisor is zero, as in SQL."""
    if pa.types.is_decimal(a.type) or pa.types.is_decimal(b.type):
        return pc.divide(a, _no_zero(b))
    return pc.divide(a.cast(pa.float64()), _no_zero(b.cast(pa.float64())))


def _floor_divide(a: Any, b: Any) -> Any:
    b = _no_zero(b)
    if pa.types.is_floating(a.type) or pa.types.is_floating(b.type):
        return pc.floor(pc.divide(a, b))
    quotient = pc.divide(a, b)
    inexact = pc.not_equal(pc.multiply(quotient, b), a)
    opposite = pc.xor(pc.less(a, pa.scalar(0, a.type)), pc.less(b, pa.scalar(0, b.type)))
    return pc.subtract(quotient, pc.and_(inexact, opposite).cast(quotient.type))


def _modulo(a: Any, b: Any) -> Any:
    return pc.subtract(a, pc.multiply(_floor_divide(a, b), b))


def _no_zero(b: Any) -> Any:
    return pc.if_else(pc.equal(b, pa.scalar(0).cast(b.type)), pa.scalar(None, b.type), b)


def _text(value: Any, outer: int) -> str:
    if not isinstance(value, Expr):
        return repr(value)
    op, args = value.op, value.args
    if op == "col":
        return f"col({args[0]!r})"
    if op == "lit":
        return repr(args[0])
    if op in _BINARY:
        level = _BINARY[op][0]
        inner_left = level + 1 if level == 1 else level
        text = f"{_text(args[0], inner_left)} {op} {_text(args[1], level + 1)}"
        return f"({text})" if level < outer else text
    if op in ("~", "neg"):
        text = ("~" if op == "~" else "-") + _text(args[0], 8)
        return f"({text})" if outer > 8 else text
    if op in ("when", "coalesce", "abs"):
        return f"{op}({', '.join(_text(a, 0) for a in args)})"
    if op == "isin":
        return f"{_text(args[0], _ATOM)}.isin({list(args[1])!r})"
    if op == "cast":
        return f"{_text(args[0], _ATOM)}.cast(pa.{_type_text(args[1])})"
    return f"{_text(args[0], _ATOM)}.{op}({', '.join(_text(a, 0) for a in args[1:])})"


def _type_text(kind: pa.DataType) -> str:
    if pa.types.is_timestamp(kind):
        return f"timestamp({kind.unit!r})" if kind.tz is None else f"timestamp({kind.unit!r}, {kind.tz!r})"
    if pa.types.is_decimal128(kind):
        return f"decimal128({kind.precision}, {kind.scale})"
    names = {"double": "float64", "float": "float32", "halffloat": "float16", "date32[day]": "date32", "bool": "bool_"}
    return f"{names.get(str(kind), str(kind))}()"
