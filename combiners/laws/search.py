"""The search for the smallest example that breaks a law."""

from __future__ import annotations

import math
import time
import tracemalloc
import warnings
from collections.abc import Callable, Sequence
from decimal import Decimal

import numpy as np
import pyarrow as pa
from hypothesis import HealthCheck, Phase, settings
from hypothesis import given as drawn_from
from hypothesis import seed as seeded
from hypothesis import strategies as st
from hypothesis.errors import Flaky
from hypothesis.strategies import SearchStrategy

from ...errors import InvalidArgument, LawViolation
from ..algebra import Capability
from ..rows.groups import Groups
from .cases import Case, Subject
from .checks import LAWS, Law
from .examples import HEAVY, LIGHT, Example, Row, examples, long_examples
from .guard import TooLarge
from .merging import MOST_GROUPS, among
from .strategies import TypedValues

_SHRINKS = 150
"""The number of examples that hypothesis tries to make a violation smaller; then rows are left out one by one."""

_EACH = 40
"""With at least this many examples each kind has its own share; with fewer, chance picks the kinds."""

_LONG = 10
"""One example in this many has many rows."""

_PROBE = 2**20
_MEMORY = 1 << 20


def violation_of(
    subject: Subject, columns: Sequence[TypedValues], max_examples: int, seed: int | None, thorough: bool
) -> LawViolation | None:
    """The law that a subject breaks, with the smallest rows found; None if it was not seen to break one."""
    laws = [law for law in LAWS if subject.capability >= law.needs]
    search = _Search(subject, columns, seed)
    violation = search.run(laws, max_examples)
    if violation is None and max_examples >= _LONG:
        violation = search.run_long(laws, max_examples // _LONG)
    # A fault often breaks several laws. The first of them explains it best, so the laws before this one are tried.
    while violation is not None:
        names = [law.name for law in laws]
        before = laws[: names.index(violation.law)] if violation.law in names else []
        earlier = search.run_few(before, max(max_examples // 10, 10)) if before else None
        if earlier is None:
            return violation
        violation = earlier
    return _vague(subject) or (search.among_most() if thorough else None)


class _Enough(BaseException):
    """Ends a search: hypothesis passes on an error that is no `Exception`."""


class _Search:
    """A search that draws examples of one subject until a law breaks, and finds the smallest example that breaks it."""

    def __init__(self, subject: Subject, columns: Sequence[TypedValues], seed: int | None) -> None:
        self.subject, self.seed = subject, seed
        # The copy is made now, before the subject has seen a row.
        subject.elsewhere  # noqa: B018
        drawn = [(column, subject.nullable(place)) for place, column in enumerate(columns)]
        retracts, heaviest = subject.capability is Capability.GROUP, LIGHT
        if _fixed(subject):
            subject.seen["fixed"] = 1
            heaviest = HEAVY if _bears(subject) else LIGHT
        self.kinds, self.long = examples(drawn, retracts, heaviest), long_examples(drawn, retracts)
        self.passed: Case | None = None

    def run(self, laws: Sequence[Law], max_examples: int) -> LawViolation | None:
        """Try laws on short examples; return the violation with the smallest rows, if one was broken."""
        whole = sum(share for share, _ in self.kinds.values())
        if max_examples < _EACH:
            drawn = [kind for share, kind in self.kinds.values() for _ in range(-(-share // 5))]
            return self._run(laws, max_examples, st.sampled_from(drawn).flatmap(lambda kind: kind))
        for share, kind in self.kinds.values():
            violation = self._run(laws, max(max_examples * share // whole, 1), kind)
            if violation is not None:
                return violation
        return None

    def run_few(self, laws: Sequence[Law], max_examples: int) -> LawViolation | None:
        """Try laws on small examples only."""
        few = [self.kinds[name][1] for name in ("few", "meeting", "meeting", "small")]
        return self._run(laws, max_examples, st.sampled_from(few).flatmap(lambda kind: kind))

    def _run(self, laws: Sequence[Law], max_examples: int, drawn: SearchStrategy[Example]) -> LawViolation | None:
        """Try laws on examples of one kind."""
        tried = 0
        active = list(laws)
        best: tuple[Example, LawViolation] | None = None

        def hold(example: Example) -> None:
            nonlocal active, best, tried
            tried += best is not None
            if tried > _SHRINKS:
                raise _Enough
            try:
                self._try(active, example)
            except LawViolation as violation:
                # While the example is made smaller, only this law is tried.
                active, best = [law for law in laws if law.name == violation.law], (example, violation)
                raise

        try:
            self._drawn(hold, drawn, max_examples, [Phase.generate, Phase.shrink])
        except (LawViolation, _Enough):
            return self._smaller(*best, active) if best is not None else None
        except Flaky:
            return LawViolation(
                f"{self.subject.name} breaks the law of determinism: it broke a law, but not when the same rows "
                "were tried again, so its operations depend on more than their arguments",
                "determinism",
            )
        return None

    def run_long(self, laws: Sequence[Law], max_examples: int) -> LawViolation | None:
        """Try laws on examples of many rows; leave out of a violation the rows that are not needed."""
        broken: list[tuple[Example, LawViolation]] = []

        def hold(example: Example) -> None:
            try:
                self._try(laws, example)
            except LawViolation as violation:
                broken.append((example, violation))
                raise _Enough from None

        try:
            self._drawn(hold, self.long, max_examples, [Phase.generate])
        except _Enough:
            example, violation = broken[-1]
            return self._smaller(example, violation, [law for law in laws if law.name == violation.law])
        return None

    def _smaller(self, example: Example, violation: LawViolation, laws: Sequence[Law]) -> LawViolation:
        """The violation with as few rows, as small weights and as few groups as changes of one at a time can find."""
        for name in ("c", "b", "a"):
            step = len(getattr(example, name))
            while step:
                place = 0
                while place < len(rows := getattr(example, name)):
                    example, simpler = self._instead(example, name, rows[:place] + rows[place + step :], laws)
                    violation = simpler or violation
                    place += 0 if simpler else step
                step //= 2
            for place in range(len(getattr(example, name))):
                for most, first in ((2, False), (1, False), (LIGHT, True)):
                    rows = getattr(example, name)
                    group, weight, values = rows[place]
                    row = (0 if first else group, min(max(weight, -most), most), values)
                    if row != rows[place]:
                        example, simpler = self._instead(example, name, [*rows[:place], row, *rows[place + 1 :]], laws)
                        violation = simpler or violation
        return violation

    def _instead(
        self, example: Example, name: str, rows: list[Row], laws: Sequence[Law]
    ) -> tuple[Example, LawViolation | None]:
        """The example with other rows in a batch, and its violation; the example as it is if that breaks no law."""
        other = Example(**{**vars(example), name: rows})
        try:
            self._try(laws, other)
        except LawViolation as violation:
            return other, violation
        return example, None

    def _drawn(
        self, hold: Callable[[Example], None], drawn: SearchStrategy[Example], max_examples: int, phases: list[Phase]
    ) -> None:
        """Call a function with the drawn examples."""

        @settings(
            max_examples=max_examples, deadline=None, database=None, report_multiple_bugs=False, phases=phases,
            suppress_health_check=list(HealthCheck),
        )  # fmt: skip
        @drawn_from(drawn)
        def test(example: Example) -> None:
            hold(example)

        (test if self.seed is None else seeded(self.seed)(test))()

    def _try(self, laws: Sequence[Law], example: Example) -> None:
        """Try laws on a case: a single law always, several each on its share of examples."""
        case = Case(self.subject, example)
        for place, law in enumerate(laws):
            if len(laws) == 1 or (example.layout.turn + place) % law.every == 0:
                _hold(law, case)
        if example.a:
            self.passed = case

    def among_most(self) -> LawViolation | None:
        """Try one example among more groups than two bytes can count."""
        if self.passed is None:
            return None
        law = next(law for law in LAWS if law.name == "many groups")
        try:
            _hold(Law(name=law.name, equation=law.equation, check=lambda case: among(case, MOST_GROUPS)), self.passed)
        except LawViolation as violation:
            return violation
        return None


def _hold(law: Law, case: Case) -> None:
    try:
        law.hold(case)
    except TooLarge as refused:
        # A combiner may refuse a number, except where numbers are so few and small that any type holds their sums.
        if case.tame and not law.multiplies:
            case.broke(refused.operation, refused.error)


def _fixed(subject: Subject) -> bool:
    """True if accumulators have a fixed size and do not grow with the rows in them."""
    return all(_fixed_size(field.type) for field in subject.fn.fields)


def _fixed_size(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        return all(_fixed_size(field.type) for field in kind)
    return bool(pa.types.is_primitive(kind) or pa.types.is_decimal(kind))


def _bears(subject: Subject) -> bool:
    """True if a row of a heavy weight takes no more memory and time than a row of weight 1."""
    rows = Groups(np.zeros(1, np.int64), 1)
    case = Case(subject, Example(a=[], b=[], c=[]))

    def run(weight: int) -> float:
        columns = [pa.array([_any(kind)], kind) for kind in subject.columns.values()]
        start = time.thread_time()
        state = case.subject.fn.add(rows, *case.in_order(columns), weights=np.array([weight], np.int64))
        if subject.extracts:
            subject.fn.extract(state)
        return time.thread_time() - start

    try:
        light, heavy = min(run(1) for _ in range(2)), min(run(_PROBE) for _ in range(2))
        tracemalloc.start()
        try:
            run(_PROBE)
            memory = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    except Exception:
        # The laws find this fault, and show it better.
        return False
    return memory < _MEMORY and heavy < 0.02 + 10 * light


def _any(kind: pa.DataType) -> object:
    """Some value of a type."""
    if pa.types.is_boolean(kind):
        return True
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return "a"
    if pa.types.is_binary(kind):
        return b"a"
    if pa.types.is_decimal(kind):
        return Decimal(3)
    return pa.scalar(3, pa.int64()).cast(pa.int32() if kind.bit_width == 32 else pa.int64()).cast(kind).as_py()


def _vague(subject: Subject) -> LawViolation | None:
    """The violation of a tolerance that was never less than the numbers that were added, so that no law can break."""
    for view in subject.views:
        if subject.seen.get(f"asked {view.name}", 0) >= 5 and not subject.seen.get(f"tight {view.name}"):
            return LawViolation(
                f"{view.name} breaks the law of tolerance: in all examples tolerance(magnitudes, count) is infinite, "
                "or larger than half of the largest magnitude, so that any result would pass: return a bound for the "
                "rounding, for example count * 2**-52 * sum(magnitudes)",
                "tolerance",
            )
        bound = None if subject.capability is Capability.GROUP or not view.ours else view.tolerance
        if bound is not None and bound([1.0, 2.0, 3.0], 3) == math.inf:
            warnings.warn(
                f"{view.name} has no bound for its rounding, so its results were compared on small whole numbers only",
                stacklevel=4,
            )
    return None


def unexpected(subject: Subject) -> InvalidArgument | None:
    """The error for a function of expected results that never gave one."""
    if subject.expected is None or subject.seen.get("expected"):
        return None
    return InvalidArgument(
        f"expected= gave no usable result for {subject.name}: each time it raised a ValueError or an ArithmeticError, "
        "or gave another result for the same values backwards"
    )
