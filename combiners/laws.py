"""The law kit: does a combiner keep the laws of the capability that it declares?

One call, `check_laws(combiner)`, tries every law on rows drawn by hypothesis (which comes with the extra
`testing`) and shows the smallest rows that break one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import is_dataclass
from itertools import product
from typing import Any

import pyarrow as pa

from ..errors import InvalidArgument, LawViolation, UncombineError, UnknownColumn

try:
    from hypothesis import HealthCheck, Phase, settings
    from hypothesis import given as drawn_from
    from hypothesis.errors import Flaky
    from hypothesis.strategies import SearchStrategy
except ModuleNotFoundError as missing:
    raise ModuleNotFoundError(
        "the law kit needs hypothesis: install uncombine with its extra, uncombine[testing]",
        name="hypothesis",
    ) from missing

from .algebra import Capability, CombineFn
from .combiner import Bound, Combiner
from .expressions import Expr
from .laws_cases import Case, Row, Subject
from .laws_checks import LAWS, Law
from .laws_strategies import TYPES, Typed, as_typed, rows_of, typed, values_of
from .scalar import ScalarCombiner

__all__ = ["LAWS", "TYPES", "LawViolation", "Typed", "check_laws", "subjects", "typed", "values_of"]

_MOST_TYPINGS = 5_000


def check_laws(combiner: Combiner | CombineFn, values: Any = None, by: Any = None, max_examples: int = 200) -> None:
    """Raise `LawViolation`, with the smallest example found, if a combiner breaks a law of its declared
    capability.

    A GROUP is held to every law bit for bit on its accumulators, with weights from -2 to 2. A CANCELLATIVE
    combiner is held to them on its results, within its own `tolerance`, and takes out only what was put in.
    A MONOID is held to the laws without retraction, on its results, with weights from 0 to 2. Nulls are
    mixed in wherever they may come.

    Parameters
    ----------
    combiner
        A combiner, or a bare `CombineFn` (which needs `values`).
    values
        What its column holds: a hypothesis strategy, an Arrow type, or both, as `typed(kind, strategy)`.
        For several columns a tuple of these in the order in which the combiner names them, or a dict by
        column name. None: each type that the combiner takes, in turn.
    by
        The same for the column that the combiner's `by` names, as in `ArgMax("x", by="t")`, or else for its
        second.
    max_examples
        How many examples to try; with several choices of types each gets a fair share, and at least 20.

    Examples
    --------
    >>> import pyarrow as pa, uncombine as uc
    >>> from uncombine.combiners.laws import check_laws
    >>> check_laws(uc.Max("x"), values=pa.int64(), max_examples=10)
    >>> backwards = uc.from_scalar(
    ...     "joined", create=str, add=lambda s, x: s + x, merge=lambda s, t: s + t, extract=lambda s: s,
    ...     accumulator=pa.string(), output=pa.string())
    >>> check_laws(backwards("x"), values=pa.string(), max_examples=50)
    Traceback (most recent call last):
    ...
    uncombine.errors.LawViolation: joined('x') over x: string ... the law of commutativity: a + b = b + a...
    """
    chosen = list(subjects(combiner, values, by))
    share = min(max_examples, max(20, max_examples // len(chosen)))
    for subject, columns in chosen:
        _check(subject, columns, share)


def subjects(
    combiner: Combiner | CombineFn, values: Any = None, by: Any = None
) -> Iterator[tuple[Subject, list[Typed]]]:
    """What `check_laws` checks: the combiner on each choice of column types, with the values of each column.

    >>> import uncombine as uc
    >>> [str(next(iter(subject.columns.values()))) for subject, _ in subjects(uc.CountIf("x"))]
    ['bool']
    """
    if isinstance(combiner, CombineFn) and not isinstance(combiner, Bound):
        if values is None and by is None:
            raise InvalidArgument(f"{combiner!r} does not say what it takes: give values=, a strategy for each input")
        given_values = [
            *(values if isinstance(values, tuple | list) else [values]),
            *([] if by is None else [by]),
        ]
        columns = [as_typed(v, combiner.capability is Capability.GROUP) for v in given_values]
        types = {f"input {i}": column.type for i, column in enumerate(columns)}
        name = repr(combiner) if is_dataclass(combiner) else type(combiner).__name__
        yield Subject(name, combiner, types, getattr(combiner, "tolerance", None)), columns
        return
    if isinstance(combiner, Bound):
        combiner = combiner.combiner
    if not isinstance(combiner, Combiner):
        raise InvalidArgument(f"check_laws takes a combiner such as Sum('x') or a CombineFn, not {combiner!r}")
    if isinstance(combiner, ScalarCombiner) and values is None:
        raise InvalidArgument(f"{combiner!r} is made of functions that take what they take: give values=")
    fixed = {
        name: given if isinstance(given, pa.DataType) else as_typed(given)
        for name, given in _named(combiner, values, by).items()
    }
    for schema in _typings(combiner, {name: as_typed(given).type for name, given in fixed.items()}):
        yield _subject(combiner, schema, fixed)


def _subject(combiner: Combiner, schema: pa.Schema, fixed: dict[str, Any]) -> tuple[Subject, list[Typed]]:
    fn = combiner.bind(schema)
    if fn.capability < combiner.capability:
        declared, found = combiner.capability.name, fn.capability.name
        raise LawViolation(f"{combiner!r} declares {declared}, and over {schema} it is only {found}", "capability")
    for name in fixed:
        if name not in fn.columns:
            raise InvalidArgument(f"values= names {name!r}, and {combiner!r} reads {', '.join(fn.columns)}")
    types = {name: schema.field(name).type for name in fn.columns}
    extreme = fn.capability is Capability.GROUP
    columns = [as_typed(fixed.get(name, kind), extreme) for name, kind in types.items()]
    cheap = combiner.append_only()
    append_only = None if cheap == combiner else cheap.bind(schema)
    return Subject(repr(combiner), fn, types, combiner.tolerance, append_only), columns


def _named(combiner: Combiner, values: Any, by: Any) -> dict[str, Any]:
    """What the user said of the values, by column name."""
    if isinstance(values, dict) and by is None:
        return dict(values)
    if values is None and by is None:
        return {}
    names = _columns(combiner)
    if by is not None:
        if len(names) < 2:
            raise InvalidArgument(f"by= speaks of a second column, and {combiner!r} reads {len(names)}")
        second = getattr(combiner, "by", None)
        name = second if isinstance(second, str) and second in names else names[1]
        first = {} if values is None else _named(combiner, values, None)
        return {**first, name: by}
    listed = list(values) if isinstance(values, tuple | list) else [values]
    if len(listed) > len(names):
        raise InvalidArgument(f"values= has {len(listed)} entries, and {combiner!r} reads {len(names)} columns")
    return dict(zip(names, listed, strict=False))


def _columns(combiner: Combiner) -> tuple[str, ...]:
    """The columns that a combiner reads, in the order in which they are written in it."""
    for schema in _typings(combiner, {}):
        read = combiner.bind(schema).columns
        written = [name for name in _written(combiner) if name in read]
        return tuple(dict.fromkeys([*written, *read]))
    raise InvalidArgument(f"{combiner!r} takes no columns of the types {', '.join(map(str, TYPES))}: give values=")


def _written(value: Any) -> Iterator[str]:
    """Names that may be columns, in the order in which a value holds them."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Expr):
        yield from value.columns
    elif isinstance(value, tuple):
        for part in value:
            yield from _written(part)
    elif isinstance(value, Combiner):
        for held in vars(value).values():
            yield from _written(held)


def _typings(combiner: Combiner, fixed: dict[str, pa.DataType]) -> Iterator[pa.Schema]:
    """Column types that the combiner takes: enough to have each type of each column once."""
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
    # Columns of like types first, so that few choices show each type of each column.
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


def _check(subject: Subject, columns: list[Typed], max_examples: int) -> None:
    laws = [law for law in LAWS if subject.capability >= law.needs]
    lightest = -2 if subject.capability is Capability.GROUP else 0
    batches = rows_of([(c.strategy, subject.nullable(place)) for place, c in enumerate(columns)], lightest)
    found = _search(subject, laws, batches, max_examples)
    if found is None:
        return
    # A fault mostly breaks several laws. The first of them says most, so those before this one are tried.
    for law in laws:
        if law.name == found.law:
            break
        first = _search(subject, [law], batches, max(max_examples // 8, 20))
        if first is not None:
            raise first
    raise found


def _search(
    subject: Subject, laws: list[Law], batches: SearchStrategy[list[Row]], max_examples: int
) -> LawViolation | None:
    """Try laws on examples; the violation with the smallest rows, if one was broken."""

    @settings(
        max_examples=max_examples, deadline=None, database=None, report_multiple_bugs=False,
        phases=[Phase.generate, Phase.shrink], suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @drawn_from(batches, batches, batches)
    def hold(a: list[Row], b: list[Row], c: list[Row]) -> None:
        case = Case(subject, a, b, c)
        for law in laws:
            law.hold(case)

    try:
        hold()
    except LawViolation as violation:
        return LawViolation(str(violation), violation.law)
    except Flaky:
        return LawViolation(
            f"{subject.name} breaks the law of determinism: it broke a law, and kept it when the same rows "
            "were tried again, so its operations depend on more than their arguments",
            "determinism",
        )
    return None
