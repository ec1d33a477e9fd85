"""Column types for the user's own functions, which declare none: they are found by trying."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from ...errors import InvalidArgument, OutOfRange, UncombineError
from ..algebra import CombineFn
from ..combiner import Combiner
from ..from_columns import ColumnsCombiner
from ..from_scalar import ScalarCombiner
from ..rows.groups import Groups
from .cases import Case, Subject
from .examples import Example
from .guard import beyond_range
from .strategies import TypedValues


def is_users_own(combiner: Combiner) -> bool:
    """True if a combiner is made of the user's own functions."""
    if isinstance(combiner, ScalarCombiner | ColumnsCombiner):
        return True
    parts = [value for value in vars(combiner).values() if isinstance(value, Combiner)]
    parts += [inner for _, inner in getattr(combiner, "combiners", ())]
    return any(map(is_users_own, parts))


def first_taken(
    combiner: Combiner | CombineFn, choices: Iterable[tuple[Subject, list[TypedValues]]]
) -> tuple[Subject, list[TypedValues]]:
    """The first choice of columns whose values `add` takes."""
    for subject, columns in choices:
        if _takes(subject, columns):
            return subject, columns
    raise InvalidArgument(
        f"{combiner!r} takes none of the ready-made values: give values=, for example values=pa.int64()"
    )


def _takes(subject: Subject, columns: list[TypedValues]) -> bool:
    values = zip(*(getattr(column.strategy, "elements", ())[:4] for column in columns), strict=False)
    rows = [(0, 1, row) for row in values]
    case = Case(subject, Example(a=rows, b=[], c=[]))
    try:
        state = subject.fn.add(Groups.single(len(rows)), *case.in_order(subject.arrays(rows)))
        if subject.extracts:
            subject.fn.extract(state)
    except (OutOfRange, ZeroDivisionError):
        return True
    except (TypeError, AttributeError, ValueError, pa.ArrowException, UncombineError) as error:
        return beyond_range(error)
    except Exception:
        return True
    return True
