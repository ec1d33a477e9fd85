"""Reads values from their repr, without running code: an expression may call only the names that it is given.

Stored accumulators name their combiner by its repr; the text of a trigger is read so, and on the command line that of a
combiner.

Guarded by tests/sparkops/stored/test_accumulators.py, tests/triggers/test_words.py and tests/cli/test_words.py.
"""

from __future__ import annotations

import ast
import datetime
import operator
import zoneinfo
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

import pyarrow as pa

from .. import combiners
from . import Combiner, Expr
from .expressions.methods import Methods

EXPRESSIONS: Mapping[str, Any] = {
    **{name: getattr(combiners, name) for name in ("col", "coalesce", "concat", "when")},
    "abs": abs,
    "float": float,
}
"""The functions in the text of an expression; `float('nan')` stands for NaN."""

_NAMES: dict[str, Any] = {
    **{
        name: value
        for name in combiners.__all__
        if isinstance(value := getattr(combiners, name), type) and issubclass(value, Combiner)
    },
    **EXPRESSIONS,
    "Decimal": Decimal,
    "nan": float("nan"),
    "inf": float("inf"),
}
_TYPES = (
    "null bool_ int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 string large_string "
    "string_view binary large_binary binary_view date32 date64 time32 time64 timestamp duration "
    "month_day_nano_interval decimal32 decimal64 decimal128 decimal256 list_ large_list struct map_ dictionary"
)
_DOTTED = {
    "datetime.datetime": datetime.datetime,
    "datetime.date": datetime.date,
    "datetime.time": datetime.time,
    "datetime.timedelta": datetime.timedelta,
    "datetime.timezone": datetime.timezone,
    "datetime.timezone.utc": datetime.UTC,
    "zoneinfo.ZoneInfo": zoneinfo.ZoneInfo,
    **{f"pa.{name}": getattr(pa, name) for name in _TYPES.split() if hasattr(pa, name)},
}
"""Values of other modules that expressions print: times, zones and types of Arrow."""
_OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Invert: operator.invert,
    ast.USub: operator.neg,
}


LONGEST = 100_000
"""The characters of a text that is read. The text of a combiner has some hundred."""


class Unreadable(Exception):
    """A part of a text is none that may be read; `part` is it."""

    def __init__(self, part: ast.AST) -> None:
        super().__init__(ast.unparse(part))
        self.part = part


def read_value(text: str, names: Mapping[str, Any]) -> Any:
    """The value of an expression of these names and of constants; raises `Unreadable` for anything else in it.

    What the names raise passes through, and so do the errors of Python's parser.

    >>> read_value("['a', spread(-1)]", {"spread": abs})
    ['a', 1]
    """
    return _value(ast.parse(text.strip(), mode="eval").body, names)


def read_combiner(text: str) -> Combiner | None:
    """The combiner with this repr; None for one that uses functions of the user.

    >>> import uncombine as uc
    >>> bool(read_combiner("Sum('x').where(col('y') > 2)") == uc.Sum("x").where(uc.col("y") > 2))
    True
    >>> read_combiner("__import__('os')") is None
    True
    """
    if not isinstance(text, str) or len(text) > LONGEST:
        return None
    try:
        value = read_value(text, _NAMES)
        return value if isinstance(value, Combiner) and repr(value) == text else None
    except (Unreadable, SyntaxError, TypeError, ValueError, ArithmeticError, LookupError, AttributeError):
        return None
    except (RecursionError, MemoryError):  # Python's parser has its own word for too many levels
        return None


def _value(node: ast.expr, names: Mapping[str, Any]) -> Any:
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name) if name in names:
            return names[name]
        case ast.Attribute() if (dotted := ast.unparse(node)) in _DOTTED:
            return _DOTTED[dotted]
        case ast.List(elts=items):
            return [_value(item, names) for item in items]
        case ast.Tuple(elts=items):
            return tuple(_value(item, names) for item in items)
        case ast.Set(elts=items):
            return {_value(item, names) for item in items}
        case ast.Dict(keys=keys, values=values) if all(key is not None for key in keys):
            return {_value(key, names): _value(value, names) for key, value in zip(keys, values, strict=True) if key}
        case ast.UnaryOp(op=op, operand=operand) if type(op) in _OPERATORS:
            return _operated(node, op, _value(operand, names))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _operated(node, op, _value(left, names), _value(right, names))
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _OPERATORS:
            return _operated(node, op, _value(left, names), _value(right, names))
        case ast.Call(func=function, args=args, keywords=named) if all(k.arg is not None for k in named):
            positional = [_value(arg, names) for arg in args]
            return _callable(function, names)(*positional, **{str(k.arg): _value(k.value, names) for k in named})
    raise Unreadable(node)


def _operated(node: ast.expr, op: ast.AST, *operands: Any) -> Any:
    """The result of an operator on combiners and expressions, or the negative of a number.

    No combiner prints other operations on plain values, and `'x' * 10**9` is a text of a gigabyte.
    """
    made = any(isinstance(one, Expr | Combiner) for one in operands)
    if not made and (len(operands) > 1 or not isinstance(operands[0], int | float | Decimal)):
        raise Unreadable(node)
    return _OPERATORS[type(op)](*operands)


def _callable(node: ast.expr, names: Mapping[str, Any]) -> Any:
    """A class of combiners, a function that makes expressions, or a method of a combiner or an expression."""
    if isinstance(node, ast.Attribute) and ast.unparse(node) not in _DOTTED:
        owner = _methods(node.value, names)
        if not isinstance(owner, Combiner | Expr | Methods) or node.attr.startswith("_"):
            raise Unreadable(node)
        return getattr(owner, node.attr)
    called = _value(node, names)
    if not callable(called):
        raise Unreadable(node)
    return called


def _methods(node: ast.expr, names: Mapping[str, Any]) -> Any:
    """The owner of a method: a combiner, an expression, or what an expression has under `str` and `dt`."""
    if isinstance(node, ast.Attribute) and node.attr in ("dt", "str"):
        owner = _value(node.value, names)
        return getattr(owner, node.attr) if isinstance(owner, Expr) else owner
    return _value(node, names)
