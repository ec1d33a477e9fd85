"""Columns for the user's own functions, which declare none: their types, and their number, are found by trying.

Guarded by tests/combiners/test_laws_own.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from inspect import Parameter, signature
from typing import Any, TypeAlias

import pyarrow as pa

from ...errors import InvalidArgument, OutOfRange, UncombineError
from ..algebra import CombineFn
from ..combiner import Bound, Combiner, Mapped
from ..from_columns import CheckedFn, ColumnsCombiner
from ..from_scalar import ScalarCombiner, ScalarFn
from ..rows.columns import Column
from ..rows.groups import Groups
from .cases import Case, Subject
from .examples import Example
from .guard import beyond_range, failure_text
from .strategies import TypedValues

Choice: TypeAlias = tuple[Subject, list[TypedValues]]
"""A combiner over columns of some types, and the values of each."""

_TOO_FEW = re.compile(
    r"missing \d+ required positional argument|^tuple index out of range|^not enough values to unpack"
)
"""The errors of a function that reads a column which it is not given."""

_MOST_COLUMNS = 5

_NAMES = {pa.float64(): "float64", pa.float32(): "float32", pa.int64(): "int64", pa.string(): "string"}
"""The names of types to suggest, the first of them first: Arrow prints other ones."""


def is_users_own(combiner: Combiner) -> bool:
    """True if a combiner is made of the user's own functions."""
    return isinstance(combiner, ScalarCombiner | ColumnsCombiner) or any(map(is_users_own, _parts(combiner)))


def is_mapped(combiner: Combiner) -> bool:
    """True if a function of the user's changes results by `.map`."""
    return isinstance(combiner, Mapped) or any(map(is_mapped, _parts(combiner)))


def _parts(combiner: Combiner) -> list[Combiner]:
    parts = [value for value in vars(combiner).values() if isinstance(value, Combiner)]
    return [*parts, *(inner for _, inner in getattr(combiner, "combiners", ()))]


def column_count(fn: CombineFn) -> int | None:
    """The number of columns that the user's `add` names; None if it takes any.

    >>> import pyarrow as pa, uncombine as uc
    >>> dots = uc.from_scalar(
    ...     "dots", create=int, add=lambda s, x, y: s + x * y, merge=lambda s, t: s + t, extract=int,
    ...     accumulator=pa.int64(), output=pa.int64(),
    ... )
    >>> column_count(dots.fn), column_count(uc.Sum("x").bind(pa.schema({"x": pa.int64()})))
    (2, None)
    """
    if isinstance(fn, CheckedFn):
        return column_count(fn.fn)
    function: Callable[..., Any] = fn.add_value if isinstance(fn, ScalarFn) else fn.add
    try:
        parameters = list(signature(function).parameters.values())[1:]
    except ValueError:  # a function of C need not say what it takes
        return None
    if isinstance(fn, ScalarFn):
        return len(parameters) or None
    by_place = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    needed = [one for one in parameters if one.kind in by_place and one.default is Parameter.empty]
    return sum(one.name != "weights" for one in needed) or None


def enough_columns(name: str, fn: CombineFn, choices: Iterable[Choice]) -> Iterator[Choice]:
    """The choices of columns for a factory or a `CombineFn`; raises if its `add` needs more than it is given.

    Nobody has named the columns: their number is a guess, or that of the values. So the error breaks no law.
    """
    for subject, columns in choices:
        arrays = subject.arrays(_few_rows(columns))
        error = _too_few(fn, arrays)
        needed = range(len(arrays) + 1, _MOST_COLUMNS + 1) if error is not None else ()
        for count in needed:
            if _too_few(fn, [*arrays, *arrays[-1:] * (count - len(arrays))]) is None:
                raise InvalidArgument(
                    f"{name} names no columns: it was tried {_tried(subject, columns)}, and its add needs {count} "
                    f"({failure_text('add', error)}): {_remedy(fn, name, count)}"
                )
        yield subject, columns


def _tried(subject: Subject, columns: list[TypedValues]) -> str:
    count = "one column" if len(columns) == 1 else f"{len(columns)} columns"
    return f"as {subject.name}, with {count}" if isinstance(subject.fn, Bound) else f"with {count}"


def _remedy(fn: CombineFn, name: str, count: int) -> str:
    values = "give values= for each column, which is --values once for each on the command line"
    if not isinstance(fn, CheckedFn | ScalarFn):
        return values
    return (
        f"check a combiner that names them, such as made = {name}({', '.join(map(repr, 'xyzuv'[:count]))}), or {values}"
    )


def _too_few(fn: CombineFn, arrays: list[pa.Array]) -> Any:
    """The error of `add` that says that it needs more columns than these; None if there is none."""
    try:
        fn.add(Groups.single(len(arrays[0])), *map(Column, arrays))
    except (IndexError, TypeError, ValueError) as error:
        return error if _TOO_FEW.search(str(error)) else None
    except Exception:
        return None
    return None


def type_words(subject: Subject) -> str | None:
    """The types of columns as `--values` takes them; None if it cannot name one of them.

    >>> import pyarrow as pa, uncombine as uc
    >>> fn = uc.Max("x").bind(pa.schema({"x": pa.float64()}))
    >>> type_words(Subject(name="ratio", fn=fn, columns={"x": pa.float64(), "y": pa.bool_()}))
    'float64,bool'
    """
    words = [_NAMES.get(kind, str(kind)) for kind in subject.columns.values()]
    return None if any("," in word for word in words) else ",".join(words)


def taken(choices: Iterable[Choice]) -> Iterator[Choice]:
    """The choices of columns whose values `add` takes."""
    return ((subject, columns) for subject, columns in choices if _refusal(subject, columns) is None)


def first_taken(combiner: Combiner | CombineFn, choices: Iterable[Choice]) -> Choice:
    """The first choice of columns whose values `add` takes."""
    refusals: list[_Refusal] = []
    for subject, columns in choices:
        refusal = _refusal(subject, columns)
        if refusal is None:
            return subject, columns
        refusals.append(refusal)
    raise _none_taken(combiner, refusals)


def mapped_taken(combiner: Combiner, choices: Iterable[Choice]) -> Iterator[Choice]:
    """The choices of columns for a combiner with `.map`; raises at one whose results its function does not take.

    A function is written for some types, which it does not declare, so a type that it refuses breaks no law.
    """
    before: list[Subject] = []
    rest = iter(choices)
    for subject, columns in rest:
        refusal = _refusal(subject, columns)
        if refusal is not None and refusal.mapped:
            fitting = [*before, *(one for one, _ in taken(rest))]
            if not fitting:
                raise _none_taken(combiner, [refusal])
            over = ", ".join(f"{name}: {kind}" for name, kind in subject.columns.items())
            raise InvalidArgument(
                f"{combiner!r}: over {over} {refusal.reason}. That breaks no law: name the types that the "
                f"function is for, such as {_suggested(fitting)}"
            )
        before.append(subject)
        yield subject, columns


def _suggested(fitting: list[Subject]) -> str:
    """The words that name types which a function takes: floats before whole numbers, and these before others."""
    order = list(_NAMES)
    kinds = [tuple(subject.columns.values()) for subject in fitting]
    best = min(kinds, key=lambda each: [order.index(kind) if kind in order else len(order) for kind in each])
    if not all(kind in _NAMES for kind in best):
        return f"values={best[0]!r}" if len(best) == 1 else f"values={best!r}"
    names = [_NAMES[kind] for kind in best]
    each = ", ".join(f"pa.{name}()" for name in names)
    return f"values={each if len(names) == 1 else f'({each})'} (on the command line --values {','.join(names)})"


def _none_taken(combiner: Combiner | CombineFn, refusals: list[_Refusal]) -> InvalidArgument:
    last = max(refusals, key=lambda refusal: refusal.progress)
    return InvalidArgument(
        f"{combiner!r} takes none of the ready-made values, since over {last.types} {last.reason}: correct that, or "
        "give values=, for example values=st.integers(1, 9) of hypothesis"
    )


@dataclass(frozen=True)
class _Refusal:
    """The error of an operation on values of some types, which it does not take."""

    types: str
    reason: str
    progress: tuple[bool, list[int]]
    """A measure of how far the user's code came: the values that it is meant for come furthest."""
    mapped: bool
    """True if a function of `.map` raised it."""


def _few_rows(columns: list[TypedValues]) -> list[tuple[int, int, tuple[Any, ...]]]:
    """A few rows of ready-made values, in one group."""
    values = zip(*(getattr(column.strategy, "elements", ())[:4] for column in columns), strict=False)
    return [(0, 1, row) for row in values]


def _refusal(subject: Subject, columns: list[TypedValues]) -> _Refusal | None:
    """The refusal of some values by `add`, or by `extract` of what it gives; None if they are taken."""
    rows = _few_rows(columns)
    case = Case(subject, Example(a=rows, b=[], c=[]))
    operation = "add"
    try:
        state = subject.fn.add(Groups.single(len(rows)), *case.in_order(subject.arrays(rows)))
        operation = "extract"
        if subject.extracts:
            subject.fn.extract(state)
    except (OutOfRange, ZeroDivisionError):
        return None
    except (TypeError, AttributeError, ValueError, pa.ArrowException, UncombineError) as error:
        if beyond_range(error):
            return None
        mapped = _mapped(error)
        if mapped is not None:
            operation = getattr(mapped.function, "__name__", repr(mapped.function))
        reason = failure_text(operation, error)
        return _Refusal(
            types=", ".join(map(str, subject.columns.values())),
            reason=reason,
            progress=_progress(error),
            mapped=mapped is not None,
        )
    except Exception:
        return None
    return None


def _mapped(error: Exception) -> Mapped | None:
    """The `.map` whose function raised an error; None if none did."""
    tb = error.__traceback__
    while tb is not None:
        if tb.tb_frame.f_code is Mapped._apply.__code__:
            mapped: Mapped = tb.tb_frame.f_locals["self"]
            return mapped
        tb = tb.tb_next
    return None


def _progress(error: Exception) -> tuple[bool, list[int]]:
    """The places of a trimmed error in the user's functions; an error without any came after all of them."""
    places, tb = list[int](), error.__traceback__
    while tb is not None:
        places.append(tb.tb_lasti)
        tb = tb.tb_next
    return not places, places
