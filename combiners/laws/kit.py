"""The law kit: it checks that a combiner keeps the laws of the capability that it declares.

One call, `check_laws(combiner)`, tries every law on rows drawn by hypothesis (which comes with the extra
`testing`) and shows the smallest rows that break a law.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import is_dataclass, replace
from itertools import product
from types import FunctionType
from typing import Any
from warnings import catch_warnings, simplefilter

import pyarrow as pa

from ...errors import InvalidArgument, LawViolation, UncombineError, UnknownColumn

try:
    from hypothesis.stateful import RuleBasedStateMachine
except ModuleNotFoundError as missing:
    raise ModuleNotFoundError(
        "the law kit needs hypothesis: install uncombine[testing]",
        name="hypothesis",
    ) from missing

from ..algebra import Capability, CombineFn
from ..combiner import Bound, Combiner
from ..expressions.expr import Expr
from ..from_columns import CheckedFn
from ..from_scalar import ScalarFn
from .cases import Subject
from .checks import LAWS
from .machine import machine_of
from .own import Choice, column_count, enough_columns, first_taken, is_mapped, is_users_own, mapped_taken, taken
from .search import unexpected, violation_of
from .strategies import TYPES, TypedValues, as_typed, typed, values_of

__all__ = [
    "LAWS",
    "TYPES",
    "LawViolation",
    "TypedValues",
    "check_laws",
    "first_and_others",
    "machine",
    "subjects",
    "typed",
    "values_of",
]

_MOST_TYPINGS = 5_000

_THOROUGH = 50
"""With at least this many examples one of them is also tried among tens of thousands of groups."""


def check_laws(
    combiner: Any,
    values: Any = None,
    by: Any = None,
    max_examples: int = 200,
    *,
    expected: Callable[..., Any] | None = None,
    seed: int | None = None,
) -> None:
    """Raise `LawViolation`, with the smallest example found, if a combiner breaks a law of its declared
    capability.

    A GROUP must keep every law bit for bit in its accumulators, also with weights below zero. A CANCELLATIVE
    combiner must keep the laws in its results, floats within its own `tolerance`, and retracts only rows that were
    added. A MONOID must keep the laws that need no retraction, in its results. Weights go up to 1,000, and up to
    2**31 if accumulators do not grow with them. Columns hold nulls wherever the combiner allows them. An error in an
    operation is the cause of a `LawViolation`; an operation may only refuse a number too large for its declared type.

    Parameters
    ----------
    combiner
        A combiner, a bare `CombineFn`, or the result of `from_scalar` or `from_columns`.
    values
        The values of its column: a hypothesis strategy, an Arrow type, or both, as `typed(kind, strategy)`; or an
        Arrow array of values. For several columns a tuple of these in the order in which the combiner names them, or
        a dict by column name. None: each type that the combiner takes, in turn; for your own functions the first of
        `TYPES` that their `add` takes.
    by
        The same for the column that the combiner's `by` names, as in `ArgMax("x", by="t")`. Without a `by` it is
        for the second column.
    max_examples
        The number of examples to try; with several choices of types each gets an equal share, and at least 20.
    expected
        A function that gives the right result. It takes one plain list for each column and is called for each
        group with at least one row. A row is repeated in the lists by its weight, and is left out if the combiner
        leaves it out. Results are compared within the tolerance, floats also up to rounding. No comparison is made
        where the function raises a ValueError or an ArithmeticError, or gives another result for the same rows in
        another order.
    seed
        A number that fixes the examples: the same number draws the same ones.

    Examples
    --------
    >>> import pyarrow as pa, uncombine as uc
    >>> from uncombine.combiners.laws import check_laws
    >>> check_laws(uc.Max("x"), values=pa.int64(), max_examples=10, expected=max)
    >>> def joined(a, b):
    ...     return a + b
    >>> backwards = uc.from_scalar(
    ...     "joined", create=str, add=joined, merge=joined, extract=str,
    ...     accumulator=pa.string(), output=pa.string(),
    ... )
    >>> check_laws(backwards("x"), values=pa.string(), max_examples=50)
    Traceback (most recent call last):
    ...
    uncombine.errors.LawViolation: joined('x') ... commutativity: a + b = b + a...
    """
    __tracebackhide__ = True
    if expected is not None and not callable(expected):
        raise InvalidArgument(f"expected= must be a function of plain lists, not {expected!r}")
    violation = None
    with catch_warnings():
        simplefilter("ignore", RuntimeWarning)  # NumPy's, of numbers that are drawn because they overflow
        chosen = [(replace(subject, expected=expected), columns) for subject, columns in subjects(combiner, values, by)]
        _require_each(combiner, chosen[0][0], values, by)
        share = min(max_examples, max(20, max_examples // len(chosen)))
        for place, (subject, columns) in enumerate(chosen):
            thorough = place == 0 and share >= _THOROUGH
            violation = violation or violation_of(subject, columns, share, seed, thorough)
    if violation is not None:
        raise LawViolation(str(violation), violation.law) from violation.__cause__
    silent = [unexpected(subject) for subject, _ in chosen]
    if all(silent) and silent[0] is not None:
        raise silent[0]


def subjects(combiner: Any, values: Any = None, by: Any = None) -> Iterator[tuple[Subject, list[TypedValues]]]:
    """The subjects that `check_laws` checks: the combiner on each choice of column types, with each column's values.

    >>> import uncombine as uc
    >>> [str(next(iter(subject.columns.values()))) for subject, _ in subjects(uc.CountIf("x"))]
    ['bool']
    """
    combiner, choices = _choices(combiner, values, by)
    if values is not None or by is not None:
        yield from choices
    elif _is_users_own(combiner):
        yield first_taken(combiner, choices)
    elif is_mapped(combiner):
        yield from mapped_taken(combiner, choices)
    else:
        yield from choices


def first_and_others(combiner: Any) -> Iterator[Subject]:
    """A combiner of the user's own functions over the first types that it takes, those of `check_laws` without
    `values=`, and then over others; nothing for a combiner that is tried on all of its types.

    >>> import pyarrow as pa, uncombine as uc
    >>> most = uc.from_scalar(
    ...     "most", create=lambda: 0, add=lambda s, x: max(s, int(x)), merge=max, extract=int,
    ...     accumulator=pa.int64(), output=pa.int64(),
    ... )
    >>> [str(one.columns["x"]) for one in first_and_others(most("x"))][:2]
    ['int64', 'double']
    >>> list(first_and_others(uc.Max("x")))
    []
    """
    combiner, choices = _choices(combiner, None, None)
    if _is_users_own(combiner):
        yield from (subject for subject, _ in taken(choices))


def _require_each(combiner: Any, subject: Subject, values: Any, by: Any) -> None:
    """Raise for values of some columns of a user's own functions, which do not say what types the others may have."""
    if not isinstance(combiner, Combiner) or not is_users_own(combiner) or (values is None and by is None):
        return
    given = _named(combiner, values, by)
    if any(name not in given for name in subject.columns):
        such = ", ".join(["pa.int64()"] * len(subject.columns))
        raise InvalidArgument(
            f"{combiner!r} reads the columns {', '.join(subject.columns)}, and values= has those of {', '.join(given)} "
            f"alone: give a tuple with one for each, such as values=({such})"
        )


def _is_users_own(combiner: CombineFn | Combiner) -> bool:
    return isinstance(combiner, CombineFn) or is_users_own(combiner)


def _choices(combiner: Any, values: Any, by: Any) -> tuple[CombineFn | Combiner, Iterator[Choice]]:
    """A combiner, and each choice of the types of its columns."""
    if isinstance(combiner, type) and issubclass(combiner, CombineFn):
        combiner = combiner()
    if isinstance(combiner, CombineFn) and not isinstance(combiner, Bound):
        return combiner, enough_columns(type(combiner).__name__, combiner, _of_fn(combiner, values, by))
    fn = getattr(combiner, "fn", None)
    if isinstance(combiner, FunctionType) and isinstance(fn, ScalarFn | CheckedFn):
        made = combiner(*_made_up_names(fn, values, by))
        return made, enough_columns(fn.name, fn, _of_combiner(made, values, by))
    if isinstance(combiner, Bound):
        combiner = combiner.combiner
    if not isinstance(combiner, Combiner):
        raise InvalidArgument(f"check_laws takes a combiner such as Sum('x') or a CombineFn, not {combiner!r}")
    return combiner, _of_combiner(combiner, values, by)


def _made_up_names(fn: ScalarFn | CheckedFn, values: Any, by: Any) -> list[str]:
    """The columns for a factory of `from_scalar` or `from_columns`: those of the values, or as many as `add` takes."""
    count = (len(values) if isinstance(values, tuple | list | dict) else 1) + (by is not None)
    if isinstance(fn, ScalarFn) or (values is None and by is None):
        count = column_count(fn) or count
    names = list(values) if isinstance(values, dict) else ["x", "y", "z", *(f"x{i}" for i in range(3, count))]
    return names[:count]


def _of_fn(fn: CombineFn, values: Any, by: Any) -> Iterator[Choice]:
    """A bare `CombineFn` over the columns of the values, or over those of each type."""
    choices: Iterable[list[TypedValues]]
    if values is None and by is None:
        choices = ([values_of(kind)] * (column_count(fn) or 1) for kind in TYPES)
    else:
        given = [*(values if isinstance(values, tuple | list) else [values]), *([] if by is None else [by])]
        choices = [[as_typed(one, fn.capability is Capability.GROUP) for one in given]]
    name = repr(fn) if is_dataclass(fn) else type(fn).__name__
    for columns in choices:
        types = {f"input {i}": column.type for i, column in enumerate(columns)}
        yield Subject(name=name, fn=fn, columns=types), columns


def _of_combiner(combiner: Combiner, values: Any, by: Any) -> Iterator[Choice]:
    fixed = {
        name: choice if isinstance(choice, pa.DataType) else as_typed(choice)
        for name, choice in _named(combiner, values, by).items()
    }
    for schema in _typings(combiner, {name: as_typed(choice).type for name, choice in fixed.items()}):
        yield _subject(combiner, schema, fixed)


def machine(
    combiner: Any, values: Any = None, by: Any = None, *, expected: Callable[..., Any] | None = None
) -> type[RuleBasedStateMachine]:
    """A `RuleBasedStateMachine` of hypothesis that adds, merges, retracts and extracts in any order.

    The machine keeps for each accumulator the multiset of the rows that should be in it. After each step the
    accumulator must be the same as the accumulator of these rows added at once, as in `check_laws`. A CANCELLATIVE
    combiner retracts only rows that are in; a MONOID retracts none. With `expected` results are compared too.

    The parameters are those of `check_laws`; of several choices of types the machine takes the first.

    >>> import pyarrow as pa, uncombine as uc
    >>> from hypothesis import settings
    >>> from uncombine.combiners import laws
    >>> TestMax = laws.machine(uc.Max("x"), values=pa.int64()).TestCase
    >>> TestMax.settings = settings(max_examples=5, stateful_step_count=10)
    >>> TestMax("runTest").runTest()
    """
    subject, columns = next(iter(subjects(combiner, values, by)))
    _require_each(combiner, subject, values, by)
    return machine_of(replace(subject, expected=expected), columns)


def _subject(combiner: Combiner, schema: pa.Schema, fixed: dict[str, Any]) -> tuple[Subject, list[TypedValues]]:
    fn = combiner.bind(schema)
    if fn.capability < combiner.capability:
        declared, actual = combiner.capability.name, fn.capability.name
        raise LawViolation(f"{combiner!r} declares {declared}, but over {schema} it is only {actual}", "capability")
    for name in fixed:
        if name not in fn.columns:
            raise InvalidArgument(f"values= names column {name!r}, but {combiner!r} reads {', '.join(fn.columns)}")
    written = [name for name in _written(combiner) if name in fn.columns]
    types = {name: schema.field(name).type for name in dict.fromkeys([*written, *fn.columns])}
    extreme = fn.capability is Capability.GROUP
    columns = [as_typed(fixed.get(name, kind), extreme) for name, kind in types.items()]
    cheap = combiner.append_only()
    append_only = None if cheap == combiner else cheap.bind(schema)
    return Subject(name=repr(combiner), fn=fn, columns=types, append_only=append_only), columns


def _named(combiner: Combiner, values: Any, by: Any) -> dict[str, Any]:
    """The values that the user gave, by column name."""
    if isinstance(values, dict) and by is None:
        return dict(values)
    if values is None and by is None:
        return {}
    names = _columns(combiner)
    if by is not None:
        if len(names) < 2:
            raise InvalidArgument(f"by= is for a second column, but {combiner!r} reads {len(names)}")
        second = getattr(combiner, "by", None)
        name = second if isinstance(second, str) and second in names else names[1]
        first = {} if values is None else _named(combiner, values, None)
        return {**first, name: by}
    listed = list(values) if isinstance(values, tuple | list) else [values]
    if len(listed) > len(names):
        raise InvalidArgument(f"values= has {len(listed)} entries, but {combiner!r} reads {len(names)} columns")
    return dict(zip(names, listed, strict=False))


def _columns(combiner: Combiner) -> tuple[str, ...]:
    """The columns that a combiner reads, in the order in which it names them."""
    for schema in _typings(combiner, {}):
        read = combiner.bind(schema).columns
        written = [name for name in _written(combiner) if name in read]
        return tuple(dict.fromkeys([*written, *read]))
    raise InvalidArgument(f"{combiner!r} takes no column of the types {', '.join(map(str, TYPES))}: give values=")


def _written(value: Any) -> Iterator[str]:
    """The strings in a value that may be names of columns, in their order."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Expr):
        yield from value.columns
    elif isinstance(value, tuple):
        for part in value:
            yield from _written(part)
    elif isinstance(value, Combiner):
        for option in vars(value).values():
            yield from _written(option)


def _typings(combiner: Combiner, fixed: dict[str, pa.DataType]) -> Iterator[pa.Schema]:
    """Choices of column types that the combiner takes: enough of them for each type of each column to come once."""
    names = list(fixed)
    while True:
        try:
            accepted = list(_accepted(combiner, names, fixed))
            break
        except UnknownColumn as unknown:
            if unknown.column is None or unknown.column in names:
                raise
            names.append(unknown.column)
    if not accepted:
        schema = pa.schema([(name, fixed.get(name, TYPES[0])) for name in names])
        combiner.compile(schema)
    seen: set[tuple[str, pa.DataType]] = set()
    for schema in accepted:
        pairs = {(field.name, field.type) for field in schema}
        if not pairs <= seen or not pairs:
            seen |= pairs
            yield schema


def _accepted(combiner: Combiner, names: Sequence[str], fixed: dict[str, pa.DataType]) -> Iterator[pa.Schema]:
    choices = [[fixed[name]] if name in fixed else list(TYPES) for name in names]
    # Choices with equal types come first, so that a few of them have each type of each column.
    typings = sorted(product(*choices), key=lambda kinds: len(set(kinds)))[:_MOST_TYPINGS]
    for kinds in typings:
        schema = pa.schema(list(zip(names, kinds, strict=True)))
        try:
            combiner.compile(schema)
        except UnknownColumn:
            raise
        except (UncombineError, pa.ArrowException):
            continue
        yield schema
