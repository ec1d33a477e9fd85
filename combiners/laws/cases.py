"""One example of the law kit: a combiner, some rows, and the test for two accumulators being the same."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from ...errors import InvalidArgument, LawViolation, OutOfRange
from ..algebra import Accumulators, Capability, CombineFn
from ..combiner import Bound
from ..rows.columns import Column
from ..rows.groups import Groups
from .compare import bits, near, numbers_in, plain
from .examples import KEYS, Example, Row
from .guard import GuardedFn, TooLarge, failure_text
from .hints import hint
from .views import View, views_of

Results: TypeAlias = list[Any]
"""A list of plain values per view, or "out of range"; with several views the combiner's own results come last."""

_MANY = 1_000


@dataclass(frozen=True)
class Subject:
    """The `CombineFn` that is checked, over columns of known types."""

    name: str
    fn: CombineFn
    columns: dict[str, pa.DataType]
    append_only: CombineFn | None = None
    expected: Callable[..., Any] | None = None
    seen: dict[str, int] = field(default_factory=dict)
    """A count of each event over all examples; see `Case.count`."""

    @property
    def capability(self) -> Capability:
        return self.fn.capability

    @property
    def extracts(self) -> bool:
        """True if the subject has results; a part of other combiners may have none."""
        return type(self.fn).extract is not CombineFn.extract

    @cached_property
    def views(self) -> tuple[View, ...]:
        """The results that are compared where the bits of accumulators are not."""
        return views_of(self.name, self.fn)

    @cached_property
    def elsewhere(self) -> CombineFn | None:
        """A copy that has seen no row, as another process has it; None if the subject cannot be copied."""
        fn = self.fn
        try:
            # The combiner is bound again, because the functions inside a bound one are not copied.
            return Bound(deepcopy(fn.combiner), fn.plan.schema) if isinstance(fn, Bound) else deepcopy(fn)
        except Exception:
            return None

    def nullable(self, place: int) -> bool:
        """True if a column may hold nulls: a combiner leaves nulls out, a bare part must ask for them."""
        if isinstance(self.fn, Bound):
            return True
        return place < len(self.fn.nullable) and self.fn.nullable[place]

    def arrays(self, rows: Sequence[Row]) -> list[pa.Array]:
        """The value columns of some rows."""
        out = []
        for place, (name, kind) in enumerate(self.columns.items()):
            values = [row[2][place] for row in rows]
            try:
                out.append(pa.array(values, kind, from_pandas=False))
            except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
                raise InvalidArgument(
                    f"values= draws values that column {name!r} of type {kind} cannot hold: {error}"
                ) from None
        return out


@dataclass
class Case:
    """A subject with three batches of rows, and short forms of the operations on them."""

    subject: Subject
    example: Example
    law: str = ""
    equation: str = ""
    _memo: dict[Any, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.a, self.b, self.c = self.example.a, self.example.b, self.example.c
        self.fn = GuardedFn(self.subject.fn, self.broke)

    def count(self, what: str) -> None:
        """Count one more of an event."""
        self.subject.seen[what] = self.subject.seen.get(what, 0) + 1

    def add(self, rows: Sequence[Row], weighed: bool = True, count: int = KEYS) -> Accumulators:
        """The accumulators of some rows; `weighed=False` leaves the weights out."""
        return self.add_columns(rows, self.subject.arrays(rows), weighed, count)

    def add_columns(
        self, rows: Sequence[Row], arrays: Sequence[Any], weighed: bool = True, count: int = KEYS
    ) -> Accumulators:
        """The accumulators of rows whose values are in these arrays."""
        groups = Groups(np.array([row[0] for row in rows], np.int64), count)
        weights = np.array([row[1] for row in rows], np.int64) if weighed else None
        return self.add_groups(groups, arrays, weights)

    def add_groups(self, groups: Groups, arrays: Sequence[Any], weights: np.ndarray | None) -> Accumulators:
        """The accumulators of rows in these groups."""
        return self.fn.add(groups, *self.in_order(arrays), weights=weights)

    def in_order(self, arrays: Sequence[Any]) -> list[Any]:
        """The columns in the form and the order that the subject takes."""
        fn = self.subject.fn
        if not isinstance(fn, Bound):
            return [Column(array) for array in arrays]
        columns = dict(zip(self.subject.columns, arrays, strict=True))
        return [columns[name] for name in fn.columns]

    def batch(self, name: str) -> Accumulators:
        """The accumulators of batch "a", "b" or "c"."""
        return self._keep(name, lambda: self.add(getattr(self, name)))

    @property
    def both(self) -> Accumulators:
        """The sum of the first two batches."""
        return self._keep("a + b", lambda: self.merge(self.batch("a"), self.batch("b")))

    @property
    def zero(self) -> Accumulators:
        """The accumulators of no rows."""
        return self._keep("zero", lambda: self.fn.zero(KEYS))

    def probe(self, count: int) -> Accumulators:
        """Further rows to be added to two accumulators that should be the same."""
        rows = [(group % count, *rest) for group, *rest in self.c]
        return self._keep(("c", count), lambda: self.add(rows, count=count))  # type: ignore[arg-type]

    def _keep(self, name: Any, make: Callable[[], Any]) -> Any:
        if name not in self._memo:
            self._memo[name] = make()
        return self._memo[name]

    def merge(self, *parts: Accumulators) -> Accumulators:
        """The sum, group by group."""
        return self.fn.merge(Groups.repeated(len(parts[0][0]), len(parts)), stacked(*parts))

    def results(self, accumulators: Accumulators) -> Results:
        """The results as plain values; a sum that is out of range is a result too."""
        if not self.subject.extracts:
            return [[array.to_pylist() for array in accumulators]]
        views = self.subject.views
        readings = [self._read(view.extract, accumulators) for view in views]
        return readings if len(views) == 1 else [*readings, self._read(self.subject.fn.extract, accumulators)]

    def _read(self, extract: Callable[[Accumulators], pa.Array], accumulators: Accumulators) -> Any:
        results = self.extract(accumulators, extract)
        return "out of range" if results is None else results.to_pylist()

    def extract(
        self, accumulators: Accumulators, extract: Callable[[Accumulators], pa.Array] | None = None
    ) -> pa.Array | None:
        """The results, or None if one of them is out of the range of its type."""
        try:
            results = self.fn.run("extract", extract or self.subject.fn.extract, accumulators)
        except (TooLarge, OutOfRange):
            return None
        count = len(accumulators[0])
        if not isinstance(results, pa.Array) or len(results) != count:
            summary = f"{len(results)} {results.type}" if isinstance(results, pa.Array) else type(results).__name__
            self.fail("extract(a)", summary, "an Arrow array", f"{count} results, one for each group")
        return results

    def tolerance(self, view: View) -> float:
        """The distance allowed between a result and the exact one on the rows of this example, each taken twice."""
        if view.tolerance is None:
            return 0.0
        magnitudes, count = self.magnitudes
        try:
            bound = view.tolerance(magnitudes, count)
            valid = isinstance(bound, int | float | np.number) and bound >= 0
        except Exception as error:
            self.broke("tolerance", error)
            raise
        if not valid:
            self.say(f"  tolerance({magnitudes}, {count})  gives  {bound!r}, which is not a number of at least 0")
        return float(bound)

    @cached_property
    def magnitudes(self) -> tuple[list[float], int]:
        """The finite numbers in all rows, each repeated twice its weight, and the number of rows that makes."""
        magnitudes: list[float] = []
        rows = [*self.a, *self.b, *self.c]
        for _, weight, values in rows:
            times = 2 * max(abs(weight), 1)
            for number in numbers_in(values):
                if math.isfinite(number):
                    # So many rows are given as one row of their sum: the bound of that is no smaller.
                    magnitudes += [number] * times if times <= _MANY else [number * times]
        return magnitudes, sum(2 * max(abs(weight), 1) for _, weight, _ in rows)

    def slack(self, view: View, times: int = 1) -> float:
        """The distance allowed between two results that are each within the tolerance of the exact one."""
        bound = self._keep(view, lambda: self.tolerance(view))
        if bound == math.inf and self.whole:
            # There is no bound, but sums of whole numbers this small do not round.
            return 1e-6
        return 2 * times * times * bound

    @cached_property
    def whole(self) -> bool:
        """True if there are few numbers, all of them whole and small."""
        rows = [*self.a, *self.b, *self.c]
        numbers = [number for *_, values in rows for number in numbers_in(values)]
        small = all(number <= 128 and number.is_integer() for number in numbers)
        return small and sum(abs(weight) for _, weight, _ in rows) <= 64

    @cached_property
    def tame(self) -> bool:
        """True if there are so few rows of such small numbers that no combiner should refuse one as too large."""
        return self.whole and sum(abs(weight) for _, weight, _ in [*self.a, *self.b, *self.c]) <= 4

    def same(self, left: Accumulators, right: Accumulators, left_text: str, right_text: str, times: int = 1) -> None:
        """Raise unless two accumulators are the same: bit for bit for a GROUP, and in their results for the others.

        No row of the example is in them more than `times` times.
        """
        if bits(left) == bits(right):
            return
        if self.subject.capability is Capability.GROUP:
            self.fail(left_text, plain(left), right_text, plain(right))
        self.close(self.results(left), self.results(right), left_text, right_text, times)
        probe = self.probe(len(left[0]))
        more = (self.results(self.merge(left, probe)), self.results(self.merge(right, probe)))
        self.close(*more, f"({left_text}) + c", f"({right_text}) + c", times)

    def close(self, left: Results, right: Results, left_text: str, right_text: str, times: int = 1) -> None:
        """Raise unless two results are equal up to the stated tolerance."""
        views = self.subject.views
        for mine, theirs, view in zip(left, right, views, strict=False):
            if not near(mine, theirs, 0.0) and not near(mine, theirs, self.slack(view, times), view.part):
                of = f" (as {view.name})" if len(views) > 1 else ""
                stated = view.tolerance is not None and self.tolerance(view) > 0.0
                cause = self.cause(mine, theirs, [*self.a, *self.b, *self.c], rounds=not stated)
                self.fail(f"{left_text}{of}", mine, f"{right_text}{of}", theirs, cause)
        if len(left) > len(views) and left[:-1] == right[:-1] and not near(left[-1], right[-1], 0.0):
            self.fail(left_text, left[-1], right_text, right[-1])

    def cause(self, left: Any, right: Any, rows: Sequence[Row], rounds: bool) -> str:
        """The line with a hint at the cause of a difference of two results of these rows; empty if there is none."""
        told = hint(left, right, self.magnitudes[0], rows, self.subject.columns.values(), rounds)
        return f"\n  ({told})" if told else ""

    def broke(self, operation: str, error: Exception) -> None:
        """Raise the violation for an error in the user's code."""
        what = failure_text(operation, error)
        raise LawViolation("\n".join([self._head(), f"  {what}", *self._rows()]), self.law) from error

    def fail(self, left_text: str, left: Any, right_text: str, right: Any, cause: str = "") -> None:
        """Raise the violation of the current law, with the example and two results that should be equal."""
        self.say(f"  {left_text}  gives  {left}\n  {right_text}  gives  {right}{cause}")

    def say(self, finding: str) -> None:
        """Raise the violation of the current law, with the example and the finding."""
        raise LawViolation("\n".join([self._head(), *self._rows(), finding]), self.law)

    def _head(self) -> str:
        types = ", ".join(f"{name}: {kind}" for name, kind in self.subject.columns.items())
        return (
            f"{self.subject.name}{f' over {types}' if types else ''} declares {self.subject.capability.name} "
            f"and breaks the law of {self.law}: {self.equation}"
        )

    def _rows(self) -> list[str]:
        named = [("a", self.a), *((name, rows) for name, rows in (("b", self.b), ("c", self.c)) if rows)]
        return [f"  {name}: {self._shown(rows)}" for name, rows in named]

    def _shown(self, rows: Sequence[Row]) -> str:
        shown = []
        for group, weight, values in rows:
            named = ", ".join(f"{n}={v!r}" for n, v in zip(self.subject.columns, values, strict=True))
            shown.append(f"({named}{'; ' if named else ''}group {group}, weight {weight})")
        return " ".join(shown) or "no rows"


def stacked(*parts: Accumulators) -> Accumulators:
    """Accumulators one after the other."""
    return tuple(pa.concat_arrays(columns) for columns in zip(*parts, strict=True))
