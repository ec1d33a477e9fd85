"""Texts and numbers as instants, with null for each that is none.

Texts are ISO or have a format, of which each directive means what it does in Python's `datetime.strptime`. Numbers
count a unit since 1970. Nothing here raises for a value, so that one bad time does not stop the others.

Guarded by tests/combiners/expressions/test_times.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from ...errors import InvalidArgument

_MICROS = pa.timestamp("us", "UTC")
_BOUNDS = (-62_135_596_800_000_000, 253_402_300_799_999_999)
"""The first and the last instant of the years 1 to 9999."""

UNITS = {"s": 1_000_000, "ms": 1_000, "us": 1, "ns": -1_000}
"""The microseconds of each unit; for one that is smaller, how many of it make a microsecond, as a negative number."""

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH_NAMES = (
    "january", "february", "march", "april", "may", "june",
    "july", "august", "september", "october", "november", "december",
)  # fmt: skip
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")

_ZONE = r"[+-](?:[01][0-9]|2[0-3]):?[0-5][0-9]|Z"
_DIRECTIVES = {
    "Y": r"[0-9]{4}",
    "y": r"[0-9]{2}",
    "m": r"1[0-2]|0[1-9]|[1-9]",
    "d": r"3[01]|[12][0-9]|0[1-9]|[1-9]| [1-9]",
    "b": "|".join(_MONTHS),
    "B": "|".join(_MONTH_NAMES),
    "a": "|".join(day[:3] for day in _DAYS),
    "A": "|".join(_DAYS),
    "H": r"2[0-3]|[01][0-9]|[0-9]",
    "I": r"1[0-2]|0[1-9]|[1-9]",
    "p": r"am|pm",
    "M": r"[0-5][0-9]|[0-9]",
    "S": r"[0-5][0-9]|[0-9]",
    "f": r"[0-9]{1,6}",
    "z": _ZONE,
    "Z": r"utc|gmt",
}
"""The texts that each directive of a format takes, in any case of letters."""

_ISO = re.compile(
    r"\s*(?P<Y>[0-9]{4})-(?P<m>[0-9]{2})-(?P<d>[0-9]{2})"
    r"(?:[T ](?P<H>[0-9]{2})(?::(?P<M>[0-9]{2})(?::(?P<S>[0-9]{2})(?:\.(?P<f>[0-9]{1,9}))?)?)?"
    r"(?P<z>Z|[+-][0-9]{2}(?::?[0-9]{2})?)?)?\s*"
)
_PART = 4096
"""The ISO texts that are read one by one if one of them is bad, since Arrow's cast is ten times as fast."""

_WHOLE, _FRACTION = r"^\s*-?[0-9]{1,18}\s*$", r"^\s*-?[0-9]{1,18}\.[0-9]+\s*$"


def check_time_format(form: object) -> None:
    """Raise unless this is a unit, a format of texts, or the empty text, which stands for ISO texts."""
    if not isinstance(form, str):
        raise InvalidArgument(f"cast_time() takes a unit or a format as text, but was given {form!r}")
    if form and form not in UNITS:
        _pattern(form)


def cast_time(values: Any, form: str = "") -> Any:
    """The values as instants in UTC: numbers of a unit, texts of a format, or ISO texts without either.

    >>> cast_time(pa.array(["31.01.2024", "31.02.2024", None]), "%d.%m.%Y").cast("string").to_pylist()
    ['2024-01-31 00:00:00.000000Z', None, None]
    """
    if isinstance(values, pa.Scalar):
        return cast_time(pa.array([values.as_py()], values.type), form)[0]
    if isinstance(values, pa.ChunkedArray):
        return pa.chunked_array([cast_time(chunk, form) for chunk in values.chunks], _MICROS)
    kind = values.type
    if pt.is_dictionary(kind):
        return cast_time(values.dictionary, form).take(values.indices)
    if pt.is_null(kind):
        return pa.nulls(len(values), _MICROS)
    if pt.is_string(kind) or pt.is_large_string(kind) or pt.is_string_view(kind):
        return _each_once(values.cast(pa.string()), _of_texts(form))
    if form in UNITS and (pt.is_integer(kind) or pt.is_floating(kind) or pt.is_decimal(kind)):
        return _of_numbers(values, UNITS[form])
    if not form and (pt.is_timestamp(kind) or pt.is_date(kind)):
        return _of_times(values)
    raise pa.ArrowTypeError(_misfit(kind, form))


def _misfit(kind: pa.DataType, form: str) -> str:
    if pt.is_timestamp(kind) or pt.is_date(kind):
        return f"{kind} is a time already: write cast_time() without {form!r}"
    if pt.is_integer(kind) or pt.is_floating(kind) or pt.is_decimal(kind):
        return "numbers count a unit since 1970: write cast_time('s'), 'ms', 'us' or 'ns'"
    return f"it takes texts and numbers, but was given {kind}"


def _each_once(texts: pa.Array, parse: Callable[[pa.Array], pa.Array]) -> pa.Array:
    """The texts as times, each text read once where many are equal, as those of days are."""
    coded = texts.slice(0, 1000).dictionary_encode() if len(texts) > 1000 else None
    if coded is None or 2 * len(coded.dictionary) > len(coded):
        return parse(texts)
    coded = texts.dictionary_encode()
    return parse(coded.dictionary).take(coded.indices)


def _of_texts(form: str) -> Callable[[pa.Array], pa.Array]:
    if form in UNITS:
        return lambda texts: _of_number_texts(texts, UNITS[form])
    if form:
        return lambda texts: _of_fields(texts, _pattern(form))
    return _of_iso_texts


def _of_iso_texts(texts: pa.Array) -> pa.Array:
    for kind in (pa.timestamp("us"), _MICROS):
        try:
            return _of_times(texts.cast(kind))
        except pa.ArrowInvalid:
            continue
    if len(texts) <= _PART:
        return _of_fields(texts, _ISO)
    return pa.concat_arrays([_of_iso_texts(texts.slice(i, _PART)) for i in range(0, len(texts), _PART)])


def _of_number_texts(texts: pa.Array, factor: int) -> pa.Array:
    """Texts of numbers; those without a fraction are read exactly."""
    none, trimmed = pa.scalar(None, pa.string()), pc.ascii_trim_whitespace(texts)
    parts = [
        _of_numbers(pc.if_else(pc.match_substring_regex(texts, pattern), trimmed, none).cast(kind), factor)
        for pattern, kind in ((_WHOLE, pa.int64()), (_FRACTION, pa.float64()))
    ]
    return pc.coalesce(*parts)


def _of_numbers(values: pa.Array, factor: int) -> pa.Array:
    if pt.is_decimal(values.type):
        exact = [None if value is None else _micros(value, factor) for value in values.to_pylist()]
        return pa.array(exact, pa.int64()).view(_MICROS)
    valid = np.array(values.is_valid())
    if pt.is_floating(values.type):
        numbers = np.asarray(pc.fill_null(values.cast(pa.float64()), 0.0))
        with np.errstate(all="ignore"):  # what is no number, or too large, is null below
            micros = np.rint(numbers * factor if factor > 0 else numbers / -factor)
            valid &= np.isfinite(micros) & (micros >= _BOUNDS[0]) & (micros <= _BOUNDS[1])
        return _instants(np.where(valid, micros, 0).astype(np.int64), valid)
    numbers = np.asarray(pc.fill_null(values, pa.scalar(0, values.type)))
    if factor < 0:
        return _instants((numbers // -factor).astype(np.int64), valid)
    least, most = -(-_BOUNDS[0] // factor), _BOUNDS[1] // factor
    valid &= (numbers >= least) & (numbers <= most)
    return _instants(np.where(valid, numbers, 0).astype(np.int64) * factor, valid)


def _micros(value: Decimal, factor: int) -> int | None:
    exact = value * factor if factor > 0 else value / -factor
    if not exact.is_finite() or not _BOUNDS[0] <= exact <= _BOUNDS[1]:
        return None
    return int(exact.to_integral_value(ROUND_HALF_EVEN))


def _of_times(values: pa.Array) -> pa.Array:
    """Times of any unit; those without a zone are UTC."""
    kind = values.type
    if pt.is_date32(kind):
        return _of_numbers(values.view(pa.int32()), 86_400 * UNITS["s"])
    unit = "ms" if pt.is_date64(kind) else kind.unit
    return _of_numbers(values.view(pa.int64()), UNITS[unit])


def _instants(micros: np.ndarray, valid: np.ndarray) -> pa.Array:
    valid = valid & (micros >= _BOUNDS[0]) & (micros <= _BOUNDS[1])
    return pa.array(micros, pa.int64(), mask=None if valid.all() else ~valid).view(_MICROS)


def _pattern(form: str) -> re.Pattern[str]:
    """The texts of a format, with a group for each directive."""
    if "%" not in form:
        raise InvalidArgument(
            f"a time is read by a unit of numbers ('s', 'ms', 'us' or 'ns') or a format of texts such as '%d.%m.%Y', "
            f"but {form!r} is neither"
        )
    out, names = "", list[str]()
    for part in re.findall(r"%.|%$|\s+|[^%\s]+", form, re.DOTALL):
        name = part[1:]
        if not part.startswith("%"):
            out += r"\s+" if part.isspace() else re.escape(part)
        elif name == "%":
            out += "%"
        elif name in _DIRECTIVES and name not in names:
            names.append(name)
            out += f"(?P<{name}>{_DIRECTIVES[name]})"
        elif name in names:
            raise InvalidArgument(f"the format {form!r} has {part} twice: leave one of them out")
        else:
            known = ", ".join(f"%{name}" for name in _DIRECTIVES)
            raise InvalidArgument(f"the format {form!r} has {part!r}, and the directives are {known} and %%")
    if not {"Y", "y"} & set(names):
        raise InvalidArgument(f"the format {form!r} has no year: add %Y or %y")
    return re.compile(out)


@dataclass(frozen=True)
class _Fields:
    """The parts of texts, by the names of directives; a text that does not fit is null in each of them."""

    parts: dict[str, pa.Array]

    def __contains__(self, name: str) -> bool:
        return name in self.parts

    def numbers(self, name: str, default: int) -> np.ndarray:
        """The part as a number, and a default where a text does not have it."""
        if name not in self.parts:
            return np.full(len(next(iter(self.parts.values()))), default, np.int64)
        part = pc.ascii_trim_whitespace(self.parts[name])
        part = pc.if_else(pc.equal(part, ""), str(default), part)
        return np.asarray(pc.fill_null(part, str(default)).cast(pa.int64()))

    def places(self, name: str, words: Sequence[str]) -> np.ndarray:
        """The place of the part among words."""
        lower = pc.ascii_lower(self.parts[name])
        return np.asarray(pc.fill_null(pc.index_in(lower, value_set=pa.array(words)), 0)).astype(np.int64)


def _of_fields(texts: pa.Array, pattern: re.Pattern[str]) -> pa.Array:
    """The texts that fit a pattern, by its groups."""
    flags = "" if pattern is _ISO else "(?i)"
    structs = pc.extract_regex(texts, f"{flags}^(?:{pattern.pattern})$")
    names = [field.name for field in structs.type]
    fields = _Fields(dict(zip(names, structs.flatten(), strict=True)))
    days, valid = _days(fields)
    seconds, fine = _of_day(fields)
    shift, near = _zones(fields)
    valid &= fine & near & np.array(structs.is_valid())
    return _instants(days * 86_400_000_000 + seconds - shift, valid)


def _days(fields: _Fields) -> tuple[np.ndarray, np.ndarray]:
    """The days since 1970, and a mask of those that the calendar has."""
    if "Y" in fields:
        years = fields.numbers("Y", 1970)
    else:
        short = fields.numbers("y", 70)
        years = short + np.where(short < 69, 2000, 1900)
    months = fields.numbers("m", 1)
    for name, words in (("b", _MONTHS), ("B", _MONTH_NAMES)):
        if name in fields:
            months = fields.places(name, words) + 1
    days = fields.numbers("d", 1)
    valid = (years >= 1) & (months >= 1) & (months <= 12) & (days >= 1)
    months = np.where(valid, months, 1)
    firsts = ((years - 1970) * 12 + months - 1).astype("datetime64[M]")
    first, after = (month.astype("datetime64[D]").astype(np.int64) for month in (firsts, firsts + 1))
    return first + days - 1, valid & (first + days <= after)


def _of_day(fields: _Fields) -> tuple[np.ndarray, np.ndarray]:
    """The microseconds of the day, and a mask of those that a clock has."""
    hours, minutes, seconds = fields.numbers("H", 0), fields.numbers("M", 0), fields.numbers("S", 0)
    if "I" in fields:
        hours = fields.numbers("I", 12) % 12
        if "p" in fields:
            hours += 12 * fields.places("p", ("am", "pm"))
    micros = np.zeros_like(hours)
    if "f" in fields:
        digits = pc.utf8_slice_codeunits(pc.ascii_rpad(fields.parts["f"], 6, "0"), 0, 6)
        micros = np.asarray(pc.fill_null(digits, "0").cast(pa.int64()))
    valid = (hours < 24) & (minutes < 60) & (seconds < 60)
    return ((hours * 60 + minutes) * 60 + seconds) * 1_000_000 + micros, valid


def _zones(fields: _Fields) -> tuple[np.ndarray, np.ndarray]:
    """The microseconds by which local time is after UTC, and a mask of those that can be."""
    if "z" not in fields:
        zeros = fields.numbers("z", 0)
        return zeros, zeros == 0
    texts = pc.fill_null(fields.parts["z"], "Z")
    digits = pc.replace_substring_regex(texts, "[^0-9]", "")
    digits = pc.ascii_rpad(digits, 4, "0")
    numbers = np.asarray(digits.cast(pa.int64()))
    hours, minutes = numbers // 100, numbers % 100
    sign = np.where(np.asarray(pc.starts_with(texts, "-")), -1, 1)
    lower = np.asarray(pc.equal(texts, "z"))
    return sign * (hours * 60 + minutes) * 60_000_000, (hours < 24) & (minutes < 60) & ~lower


__all__ = ["UNITS", "cast_time", "check_time_format"]
