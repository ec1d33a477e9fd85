"""A combiner as a state machine of hypothesis: random steps on accumulators, compared with a multiset of rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, rule
from hypothesis.strategies import SearchStrategy

from ..algebra import Accumulators, Capability
from .cases import Case, Subject
from .examples import Example, Row
from .expected import as_expected
from .guard import TooLarge
from .strategies import TypedValues

_MOST = 1_000
"""A state of more rows than this, with all their copies, is not added to, so that sums stay within their types."""


@dataclass(frozen=True)
class State:
    """An accumulator of one group, the rows it should hold, and the number of times each row was added or retracted."""

    accumulators: Accumulators
    rows: Counter[tuple[Any, ...]]
    moved: Counter[tuple[Any, ...]]

    def __repr__(self) -> str:
        return f"<{dict(self.rows)}>"


def machine_of(subject: Subject, columns: Sequence[TypedValues]) -> type[RuleBasedStateMachine]:
    """The machine for a combiner on columns of known types."""
    retracts = subject.capability > Capability.MONOID
    group = subject.capability is Capability.GROUP
    values: list[SearchStrategy[Any]] = [
        st.one_of(*[column.strategy] * 5, st.none()) if subject.nullable(place) else column.strategy
        for place, column in enumerate(columns)
    ]
    weights = st.sampled_from([1, 2, 3, 0, -1, -2] if group else [1, 2, 3, 0])
    rows = st.lists(st.tuples(weights, st.tuples(*values)), max_size=4)

    class Machine(RuleBasedStateMachine):
        states = Bundle("states")

        @rule(target=states, rows=rows)
        def add(self, rows: list[tuple[int, tuple[Any, ...]]]) -> State:
            """The accumulator of some rows."""
            return self._made(rows)

        @rule(target=states, one=states, other=states)
        def merge(self, one: State, other: State) -> State:
            """The sum of two states."""
            if _size(one) + _size(other) > _MOST:
                return one
            return self._checked("merge", one, other, 1)

        @rule(state=states)
        def extract(self, state: State) -> None:
            """Check the result of the rows of a state."""
            self._check(state)

        if retracts:

            @rule(target=states, one=states, other=states)
            def uncombine(self, one: State, other: State) -> State:
                """One state minus the other: any other for a GROUP, else only one whose rows are all in the first."""
                if _size(one) + _size(other) > _MOST or not (group or other.rows <= one.rows):
                    return one
                return self._checked("uncombine", one, other, -1)

            @rule(target=states, state=states, place=st.integers(0, 99))
            def retract(self, state: State, place: int) -> State:
                """A state minus one of its rows."""
                present = sorted((row for row in state.rows if state.rows[row] > 0), key=repr)
                if not present:
                    return state
                return self._checked("uncombine", state, self._made([(1, present[place % len(present)])]), -1)

        def _made(self, rows: list[tuple[int, tuple[Any, ...]]]) -> State:
            case = _case(subject, [(0, weight, row) for weight, row in rows])
            counts: Counter[tuple[Any, ...]] = Counter()
            for weight, row in rows:
                counts[row] += weight
            moved = Counter({row: abs(weight) for row, weight in counts.items()})
            return State(accumulators=case.add(case.a, count=1), rows=counts, moved=moved)

        def _checked(self, operation: str, one: State, other: State, sign: int) -> State:
            case = _case(subject, _rows(one.moved + other.moved))
            try:
                if operation == "merge":
                    accumulators = case.merge(one.accumulators, other.accumulators)
                else:
                    accumulators = case.fn.uncombine(one.accumulators, other.accumulators)
            except TooLarge:
                return one
            counts = Counter(one.rows)
            for row, weight in other.rows.items():
                counts[row] += sign * weight
            state = State(accumulators=accumulators, rows=counts, moved=one.moved + other.moved)
            self._check(state)
            return state

        def _check(self, state: State) -> None:
            case = _case(subject, _rows(state.moved))
            model = [row for row in _rows(state.rows) if row[1]]
            try:
                fresh = case.add(model, count=1)
                case.results(state.accumulators)
                case.same(state.accumulators, fresh, "the steps", "add(the rows that are left)")
                if not any(weight < 0 for _, weight, _ in model):
                    as_expected(_case(subject, model))
            except TooLarge:
                return

    Machine.__name__ = Machine.__qualname__ = f"Machine of {subject.name}"
    return Machine


def _case(subject: Subject, rows: list[Row]) -> Case:
    case = Case(subject, Example(a=rows, b=[], c=[]))
    case.law, case.equation = "steps", "any steps = the rows that are left, added at once"
    return case


def _rows(counts: Counter[tuple[Any, ...]]) -> list[Row]:
    return [(0, weight, row) for row, weight in counts.items()]


def _size(state: State) -> int:
    return state.moved.total()
