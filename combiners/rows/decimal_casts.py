"""Casts to decimals that are right or raise, where Arrow's own wrap around or read past the end of a table.

Arrow 26 multiplies by a power of ten without looking at the result: `395.5` is 0.77 as a decimal of 38 digits after
the point. The difference between the digits after the point is an index there, unchecked: `1.` with 200 zeros is 0.00
as a text, and `1e-999999999` ends the process. What may be such a number is computed or compared here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from decimal import Decimal, InvalidOperation
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

_DIGITS = {32: 9, 64: 18, 128: 38, 256: 76}
"""The digits of a decimal with so many bits."""

_NUMBER = re.compile(r"[-+.0-9eE]+")  # Python takes more, such as 1_000
_FRACTION, _EXPONENT = 19, r"[eE][-+]?0*(?:[1-9][0-9])"


def cast_exactly(values: Any, kind: pa.DataType) -> Any:
    """Arrow's cast to a type, which raises ArrowInvalid for a decimal that the type does not hold.

    >>> cast_exactly(pa.array(["1.5", "1." + 200 * "0"]), pa.decimal128(5, 1)).to_pylist()
    [Decimal('1.5'), Decimal('1.0')]
    >>> cast_exactly(pa.array([Decimal("395.5")]), pa.decimal128(38, 38))
    Traceback (most recent call last):
    ...
    pyarrow.lib.ArrowInvalid: 395.5 does not fit into decimal128(38, 38)
    """
    if isinstance(values, pa.ChunkedArray):
        return pa.chunked_array([cast_exactly(chunk, kind) for chunk in values.chunks], kind)
    if pt.is_decimal(kind) and (pt.is_string(values.type) or pt.is_large_string(values.type)):
        values = _near_texts(values, kind)
    _require_room(values, kind)
    return values.cast(kind)


def _require_room(values: Any, kind: pa.DataType) -> None:
    """Raise for a decimal with more digits before the point than the type, if Arrow's product may wrap around."""
    if pt.is_struct(kind) and pt.is_struct(values.type):
        for field in kind:
            if values.type.get_field_index(field.name) >= 0:
                _require_room(pc.struct_field(values, field.name), field.type)
    if pt.is_nested(kind) and pt.is_nested(values.type) and hasattr(values.type, "value_type"):
        _require_room(pc.list_flatten(values), kind.field(0).type)
    if not (pt.is_decimal(kind) and pt.is_decimal(values.type)):
        return
    shift = kind.scale - values.type.scale
    if shift > 0 and values.type.precision + shift > _DIGITS[values.type.bit_width]:
        if values.type.bit_width < 128:  # Arrow has no least value of these, and more digits are no danger
            values = values.cast(pa.decimal128(values.type.precision, values.type.scale))
        some = [values] if isinstance(values, pa.Scalar) else pc.min_max(values).values()
        for number in (value.as_py() for value in some if value.is_valid):
            near(number, kind)


def _near_texts(texts: Any, kind: pa.DataType) -> Any:
    far = pc.match_substring_regex(texts, far_pattern(kind))
    if isinstance(texts, pa.Scalar):
        return pa.scalar(_near_text(texts.as_py(), kind), texts.type) if far.as_py() else texts
    if not pc.any(far).as_py():
        return texts
    written = pa.array([_near_text(text, kind) for text in texts.filter(far).to_pylist()], texts.type)
    return pc.replace_with_mask(texts, far, written)


def far_in(kinds: Iterable[pa.DataType]) -> re.Pattern[bytes] | None:
    """A pattern of the bytes that such a text of a decimal of these types has, or None without decimals."""
    patterns = sorted({far_pattern(kind) for outer in kinds for kind in _decimals(outer)})
    return re.compile("|".join(patterns).encode()) if patterns else None


def _decimals(kind: pa.DataType) -> Iterator[pa.DataType]:
    """The types of decimals in a type."""
    if pt.is_nested(kind):
        for i in range(kind.num_fields):
            yield from _decimals(kind.field(i).type)
    elif pt.is_decimal(kind):
        yield kind


def far_pattern(kind: pa.DataType) -> str:
    r"""A pattern of the texts whose number Arrow may get wrong: of many digits, or with an exponent of two digits.

    >>> far_pattern(pa.decimal128(12, 3))
    '[0-9]{26}|\\.[0-9]{19}|[eE][-+]?0*(?:[1-9][0-9])'
    """
    most = max(1, _DIGITS[kind.bit_width] - max(kind.scale, 0) - 9)  # an exponent of one digit adds 9
    return rf"[0-9]{{{most}}}|\.[0-9]{{{_FRACTION}}}|{_EXPONENT}"


def _near_text(text: str, kind: pa.DataType) -> str:
    try:
        number = Decimal(text if _NUMBER.fullmatch(text) else "")
    except InvalidOperation:
        raise pa.ArrowInvalid(f"{text[:40]!r} is no decimal") from None
    return f"{near(number, kind):f}"


def near(number: Decimal, kind: pa.DataType) -> Decimal:
    """The same number with no more digits after the point than the type has; raises if the type does not hold it.

    >>> near(Decimal("2.500"), pa.decimal128(5, 1))
    Decimal('2.5')
    """
    sign, digits, exponent = number.as_tuple()
    if not isinstance(exponent, int):
        raise pa.ArrowInvalid(f"{number} is no number")
    zeros = len(digits) - len("".join(map(str, digits)).rstrip("0"))
    if zeros == len(digits):
        return Decimal(0)
    cut = min(zeros, max(0, -kind.scale - exponent))
    if exponent + cut < -kind.scale or number.adjusted() >= kind.precision - kind.scale:
        raise pa.ArrowInvalid(f"{str(number)[:40]} does not fit into {kind}")
    return Decimal((sign, digits[: len(digits) - cut], exponent + cut))


__all__ = ["cast_exactly", "far_in", "far_pattern", "near"]
