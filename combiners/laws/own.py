"""Column types for the user's own functions, which declare none: they are found by trying."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa

from ...errors import InvalidArgument, OutOfRange, UncombineError
from ..algebra import CombineFn
from ..combiner import Combiner
from ..from_columns import ColumnsCombiner
from ..from_scalar import ScalarCombiner
from ..rows.groups import Groups
from .cases import Case, Subject
from .examples import Example
from .guard import beyond_range, failure_text
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
    refusals: list[_Refusal] = []
    for subject, columns in choices:
        refusal = _refusal(subject, columns)
        if refusal is None:
            return subject, columns
        refusals.append(refusal)
    last = max(refusals, key=lambda refusal: refusal.progress)
    raise InvalidArgument(
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


def _refusal(subject: Subject, columns: list[TypedValues]) -> _Refusal | None:
    """The refusal of some values by `add`, or by `extract` of what it gives; None if they are taken."""
    values = zip(*(getattr(column.strategy, "elements", ())[:4] for column in columns), strict=False)
    rows = [(0, 1, row) for row in values]
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
        reason = failure_text(operation, error)
        return _Refusal(types=", ".join(map(str, subject.columns.values())), reason=reason, progress=_progress(error))
    except Exception:
        return None
    return None


def _progress(error: Exception) -> tuple[bool, list[int]]:
    """The places of a trimmed error in the user's functions; an error without any came after all of them."""
    places, tb = list[int](), error.__traceback__
    while tb is not None:
        places.append(tb.tb_lasti)
        tb = tb.tb_next
    return not places, places
