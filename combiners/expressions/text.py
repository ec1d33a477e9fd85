"""Column expressions as text that Python reads back."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa

# The precedence of operators in Python; a comparison has the least and does not chain.
BINARY = {"|": 2, "&": 3, "+": 6, "-": 6, "*": 7, "/": 7, "//": 7, "%": 7}
BINARY |= dict.fromkeys(["==", "!=", "<", "<=", ">", ">="], 1)
_UNARY = 8
_ATOM = 10


def text_of(op: str, args: tuple[Any, ...], outer: int = 0) -> str:
    """The text of an operation, in parentheses where `outer` binds more tightly."""
    if op == "col":
        return f"col({args[0]!r})"
    if op == "lit":
        return literal_text(args[0])
    if op in BINARY:
        level = BINARY[op]
        left = _inner(args[0], level + 1 if level == 1 else level)
        return _around(f"{left} {op} {_inner(args[1], level + 1)}", level < outer)
    if op in ("~", "neg"):
        return _around(("~" if op == "~" else "-") + _inner(args[0], _UNARY), outer > _UNARY)
    if op in ("when", "coalesce", "abs"):
        return f"{op}({', '.join(_inner(a) for a in args)})"
    head = _inner(args[0], _ATOM)
    if op == "isin":
        return f"{head}.isin([{', '.join(map(literal_text, args[1]))}])"
    if op == "cast":
        return f"{head}.cast({type_text(args[1])})"
    if op == "cast_time":
        return f"{head}.cast_time({args[1]!r})" if args[1] else f"{head}.cast_time()"
    if op == "field":
        return f"{head}.field({args[1]!r})"
    return f"{head}.{op}({', '.join(_inner(a) for a in args[1:])})"


def _inner(expr: Any, outer: int = 0) -> str:
    return text_of(expr.op, expr.args, outer)


def _around(text: str, wanted: bool) -> str:
    return f"({text})" if wanted else text


def literal_text(value: Any) -> str:
    """A plain value as Python writes it; NaN and the infinities have no literal of their own."""
    if isinstance(value, float) and not math.isfinite(value):
        return f"float('{value}')"
    return repr(value)


def type_text(kind: pa.DataType) -> str:
    """The Python expression that builds an Arrow type.

    >>> type_text(pa.timestamp("us", "UTC")), type_text(pa.list_(pa.float64()))
    ("pa.timestamp('us', 'UTC')", 'pa.list_(pa.float64())')
    """
    is_a = pa.types
    if is_a.is_timestamp(kind):
        return f"pa.timestamp({kind.unit!r})" if kind.tz is None else f"pa.timestamp({kind.unit!r}, {kind.tz!r})"
    if is_a.is_time(kind):
        return f"pa.time{kind.bit_width}({kind.unit!r})"
    if is_a.is_duration(kind):
        return f"pa.duration({kind.unit!r})"
    if is_a.is_decimal(kind):
        return f"pa.decimal{kind.bit_width}({kind.precision}, {kind.scale})"
    if is_a.is_fixed_size_binary(kind):
        return f"pa.binary({kind.byte_width})"
    if is_a.is_list(kind) or is_a.is_large_list(kind):
        return f"pa.{'large_list' if is_a.is_large_list(kind) else 'list_'}({type_text(kind.value_type)})"
    if is_a.is_fixed_size_list(kind):
        return f"pa.list_({type_text(kind.value_type)}, {kind.list_size})"
    if is_a.is_struct(kind):
        return f"pa.struct([{', '.join(f'({f.name!r}, {type_text(f.type)})' for f in kind)}])"
    if is_a.is_map(kind):
        return f"pa.map_({type_text(kind.key_type)}, {type_text(kind.item_type)})"
    if is_a.is_dictionary(kind):
        return f"pa.dictionary({type_text(kind.index_type)}, {type_text(kind.value_type)})"
    names = {"double": "float64", "float": "float32", "halffloat": "float16", "bool": "bool_"}
    plain = str(kind).partition("[")[0]
    return f"pa.{names.get(plain, plain)}()"
