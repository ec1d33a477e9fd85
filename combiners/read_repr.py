"""Reads a combiner from its repr, without running code; stored accumulators name their maker by its repr."""

from __future__ import annotations

import ast
import datetime
import operator
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from .. import combiners
from . import Combiner, Expr

_NAMES: dict[str, Any] = {
    **{
        name: value
        for name in combiners.__all__
        if isinstance(value := getattr(combiners, name), type) and issubclass(value, Combiner)
    },
    **{name: getattr(combiners, name) for name in ("col", "coalesce", "when")},
    "Decimal": Decimal,
    "nan": float("nan"),
    "inf": float("inf"),
}
_TIMES = {
    "datetime.datetime": datetime.datetime,
    "datetime.date": datetime.date,
    "datetime.time": datetime.time,
    "datetime.timedelta": datetime.timedelta,
    "datetime.timezone.utc": datetime.UTC,
}
_OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
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


class _Unreadable(Exception):
    """The text has a part that is no combiner, expression or constant."""


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
        value = _value(ast.parse(text, mode="eval").body)
        return value if isinstance(value, Combiner) and repr(value) == text else None
    except (_Unreadable, SyntaxError, TypeError, ValueError, ArithmeticError, LookupError, AttributeError):
        return None
    except (RecursionError, MemoryError):  # Python's parser has its own word for too many levels
        return None


def _value(node: ast.expr) -> Any:
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name) if name in _NAMES:
            return _NAMES[name]
        case ast.Attribute() if (dotted := ast.unparse(node)) in _TIMES:
            return _TIMES[dotted]
        case ast.List(elts=items):
            return [_value(item) for item in items]
        case ast.Tuple(elts=items):
            return tuple(_value(item) for item in items)
        case ast.Set(elts=items):
            return {_value(item) for item in items}
        case ast.UnaryOp(op=op, operand=operand) if type(op) in _OPERATORS:
            return _operated(op, _value(operand))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _operated(op, _value(left), _value(right))
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _OPERATORS:
            return _operated(op, _value(left), _value(right))
        case ast.Call(func=function, args=args, keywords=named) if all(k.arg is not None for k in named):
            given = [_value(arg) for arg in args]
            return _callable(function)(*given, **{str(k.arg): _value(k.value) for k in named})
    raise _Unreadable


def _operated(op: ast.AST, *operands: Any) -> Any:
    """The result of an operator on combiners and expressions, or the negative of a number.

    No combiner prints other operations on plain values, and `'x' * 10**9` is a text of a gigabyte.
    """
    made = any(isinstance(one, Expr | Combiner) for one in operands)
    if not made and (len(operands) > 1 or not isinstance(operands[0], int | float | Decimal)):
        raise _Unreadable
    return _OPERATORS[type(op)](*operands)


def _callable(node: ast.expr) -> Any:
    """A class of combiners, a function that makes expressions, or a method of a combiner or an expression."""
    if isinstance(node, ast.Attribute) and ast.unparse(node) not in _TIMES:
        owner = _value(node.value)
        if not isinstance(owner, Combiner | Expr) or node.attr.startswith("_"):
            raise _Unreadable
        return getattr(owner, node.attr)
    found = _value(node)
    if not callable(found):
        raise _Unreadable
    return found
