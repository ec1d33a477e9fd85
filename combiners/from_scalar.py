"""`from_scalar`: combiners from plain Python functions of one value at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from ..errors import InvalidArgument, NotRetractable, OutOfRange, TypeMismatch
from .algebra import Accumulators, Capability, CombineFn, Weights
from .combiner import Combiner
from .compiled import CompiledCombiner
from .floats.tolerances import Tolerance, tolerance_of
from .input_types import Input, expression, input_type
from .parts import Part
from .rows.alike import same_as_first
from .rows.columns import Column
from .rows.groups import Groups

_CONTAINERS = (dict, list, tuple, set, frozenset)

_LOOPED = 8
"""A row of a weight up to this is added that many times; a heavier row is added once, and its state is merged."""

_CHECKED = 1_000
"""The state of more copies than this is converted to the accumulator's type at each doubling."""


class DoesNotFit(TypeMismatch, OutOfRange):
    """A number that a user's function gave is too large for its declared type."""


@dataclass(frozen=True)
class ScalarFn(CombineFn):
    """The user's functions, called row by row; the states are one column of the declared Arrow type."""

    name: str
    create: Callable[[], Any]
    add_value: Callable[..., Any]
    merge_states: Callable[[Any, Any], Any]
    extract_value: Callable[[Any], Any]
    uncombine_states: Callable[[Any, Any], Any] | None
    accumulator: pa.DataType
    output: pa.DataType
    capability: Capability
    bound: Tolerance | None = None
    label = "scalar"
    remedy = "give from_scalar uncombine="

    @property
    def fields(self) -> tuple[pa.Field, ...]:
        return (pa.field("state", self.accumulator),)

    def add(self, groups: Groups, *columns: Column, weights: Weights = None) -> Accumulators:
        states = [self.create() for _ in range(groups.count)]
        rows = list(zip(groups.codes.tolist(), zip(*(c.array.to_pylist() for c in columns), strict=True), strict=True))
        counts = [1] * len(rows) if weights is None else weights.tolist()
        # A loop over rows, because the user's function takes one value at a time.
        for (group, values), weight in zip(rows, counts, strict=True):
            if weight > _LOOPED:
                states[group] = self.merge_states(states[group], self._copies(values, weight))
                continue
            for _ in range(weight):
                states[group] = self.add_value(states[group], *values)
        # Retractions come second, after the rows of the same call that they may retract.
        for (group, values), weight in zip(rows, counts, strict=True):
            if weight < -_LOOPED:
                states[group] = self._take(states[group], self._copies(values, -weight))
                continue
            for _ in range(-weight):
                states[group] = self._take(states[group], self.add_value(self.create(), *values))
        return self._state(states, "add")

    def _copies(self, values: Sequence[Any], weight: int) -> Any:
        """The state of `weight` rows with these values, by doubling."""
        whole, power = self.create(), self.add_value(self.create(), *values)
        copies = 1
        while weight:
            if copies > _CHECKED:
                # A state outside the range of its type, such as a product's, is refused before it grows without end.
                power = next(self._states(self._state([power], "merge")))
            # The user's function may change its arguments, so each call gets states of its own.
            if weight & 1:
                whole = self.merge_states(whole, deepcopy(power))
            weight, copies = weight >> 1, copies * 2
            if weight:
                power = self.merge_states(power, deepcopy(power))
        return whole

    def merge(self, groups: Groups, accumulators: Accumulators) -> Accumulators:
        states: list[Any] = [None] * groups.count
        seen = [False] * groups.count
        # A loop over accumulators, because the user's function takes two states at a time.
        for group, state in zip(groups.codes.tolist(), self._states(accumulators), strict=True):
            states[group] = self.merge_states(states[group], state) if seen[group] else state
            seen[group] = True
        return self._state([s if present else self.create() for s, present in zip(states, seen, strict=True)], "merge")

    def negate(self, accumulators: Accumulators) -> Accumulators:
        return self._state([self._take(self.create(), state) for state in self._states(accumulators)], "uncombine")

    def uncombine(self, accumulators: Accumulators, others: Accumulators) -> Accumulators:
        pairs = zip(self._states(accumulators), self._states(others), strict=True)
        return self._state([self._take(state, other) for state, other in pairs], "uncombine")

    def is_zero(self, accumulators: Accumulators) -> np.ndarray:
        """True for each state that equals that of no rows."""
        return same_as_first(accumulators, self.zero(1))

    def extract(self, accumulators: Accumulators) -> pa.Array:
        return self._column(
            [self.extract_value(s) for s in self._states(accumulators)], self.output, "extract", "output"
        )

    def _take(self, state: Any, other: Any) -> Any:
        if self.uncombine_states is None:
            raise NotRetractable(f"{self.name} is a MONOID combiner and cannot retract rows: {self.remedy}")
        return self.uncombine_states(state, other)

    def _states(self, accumulators: Accumulators) -> Iterator[Any]:
        """States as Python values of their own, which the user's functions may change."""
        return iter(accumulators[0].to_pylist())

    def _state(self, states: list[Any], operation: str) -> Accumulators:
        return (self._column(states, self.accumulator, operation, "accumulator"),)

    def _column(self, values: list[Any], kind: pa.DataType, operation: str, declared: str) -> pa.Array:
        try:
            column = pa.array(values, kind, from_pandas=False)
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError):
            for value in values:
                _require_fit(value, kind, f"{operation} of {self.name}", declared)
            raise
        if any(_fraction(value, kind) for value in values):
            for value in values:
                _require_fit(value, kind, f"{operation} of {self.name}", declared)
        return column


@dataclass(frozen=True, repr=False)
class ScalarCombiner(Combiner):
    """A combiner made by `from_scalar`, on its input columns."""

    inputs: tuple[Input, ...]
    fn: ScalarFn

    @property
    def capability(self) -> Capability:
        return self.fn.capability

    def tolerance(self, magnitudes: Sequence[float], count: int) -> float:
        return 0.0 if self.fn.bound is None else self.fn.bound(magnitudes, count)

    def of(self, *inputs: Input) -> Combiner:
        if len(inputs) != len(self.inputs):
            raise InvalidArgument(f"{self!r} takes {len(self.inputs)} inputs, but .of() was given {len(inputs)}")
        return replace(self, inputs=inputs)

    def compile(self, schema: pa.Schema) -> CompiledCombiner:
        for input in self.inputs:
            input_type(input, schema, self)

        def finish(parts: Sequence[Accumulators]) -> pa.Array:
            return self.fn.extract(parts[0])

        return CompiledCombiner(
            parts=(Part(self.fn, tuple(map(expression, self.inputs))),), finish=finish, output=self.fn.output
        )

    def __repr__(self) -> str:
        return f"{self.fn.name}({', '.join(map(repr, self.inputs))})"


def from_scalar(
    name: str,
    *,
    create: Callable[[], Any],
    add: Callable[..., Any],
    merge: Callable[[Any, Any], Any],
    extract: Callable[[Any], Any],
    uncombine: Callable[[Any, Any], Any] | None = None,
    accumulator: pa.DataType,
    output: pa.DataType,
    capability: Capability | None = None,
    tolerance: Tolerance | float | None = None,
) -> Callable[..., ScalarCombiner]:
    """A factory of combiners from functions of one value at a time, which are easier to write than columnar ones.

    They are slower than functions of whole columns, for which there is `from_columns`.

    Law: the functions decide it; `uncombine.combiners.laws.check_laws` checks it. Rows in which an input is null are
    left out. The result of no values is `extract(create())`.

    Parameters
    ----------
    name
        The name of the combiner in reprs and errors.
    create
        A function `create()` that gives the state of no rows.
    add
        A function `add(state, value)` (or more values, one for each column) that gives the state with the value
        added. It may change and return the state that it was given.
    merge
        A function `merge(state, other)` that gives the state of the rows of both states.
    extract
        A function `extract(state)` that gives the result of a state.
    uncombine
        A function `uncombine(state, other)` that gives the state without the rows of the other state. Without it
        nothing can be retracted.
    accumulator, output
        The Arrow types of states and results. A state is the Python value that Arrow gives for the type: a dict for
        a struct, a list for a list, None for null.
    capability
        The promised capability. None means CANCELLATIVE with an `uncombine`, else MONOID. Pass GROUP if a retraction
        may come before its row and states never depend on the order of the rows.
    tolerance
        The greatest error of a result: a part of the numbers, such as 1e-9, or a function `tolerance(magnitudes,
        count)`, as `Combiner.tolerance` is one. States in floating point need it, because their sums depend on the
        order of the rows. None promises that results do not depend on it.

    Returns
    -------
    Callable
        `factory("x")`, or `factory("x", "y")` for an `add` of two values, is a combiner.

    Examples
    --------
    >>> import pyarrow as pa, uncombine as uc
    >>> Parity = uc.from_scalar(
    ...     "Parity", create=lambda: 0, add=lambda s, x: s ^ (x & 1), merge=lambda s, t: s ^ t,
    ...     uncombine=lambda s, t: s ^ t, extract=lambda s: "odd" if s else "even",
    ...     accumulator=pa.int8(), output=pa.string(), capability=uc.Capability.GROUP)
    >>> t = pa.table({"x": [3, 4, 5, 5], "w": [1, 1, 1, -1]})
    >>> uc.aggregate(t, diff="w", sum=Parity("x")).to_pylist()
    [{'sum': 'odd'}]
    """
    functions = {"create": create, "add": add, "merge": merge, "extract": extract, "uncombine": uncombine}
    for role, function in functions.items():
        if not callable(function) and not (role == "uncombine" and function is None):
            raise InvalidArgument(f"{role}= of from_scalar takes a function, but was given {function!r}")
    bound = tolerance_of(tolerance, "from_scalar")
    for role, kind in {"accumulator": accumulator, "output": output}.items():
        if not isinstance(kind, pa.DataType):
            raise InvalidArgument(
                f"{role}= of from_scalar takes an Arrow type such as pa.int64(), but was given {kind!r}"
            )
    if capability is None:
        capability = Capability.MONOID if uncombine is None else Capability.CANCELLATIVE
    elif not isinstance(capability, Capability):
        raise InvalidArgument(f"capability= of from_scalar takes a uc.Capability, but was given {capability!r}")
    elif capability > Capability.MONOID and uncombine is None:
        raise InvalidArgument(
            f"{name} declares {capability.name} but has no uncombine: pass uncombine=, or declare MONOID"
        )
    empty = create()
    back = _require_fit(empty, accumulator, f"create of {name}", "accumulator")
    if isinstance(empty, _CONTAINERS) and type(back) is not type(empty):
        raise TypeMismatch(
            f"create of {name} gave {empty!r}, which {accumulator} gives back as {back!r}: make create give that form"
        )
    fn = ScalarFn(
        name=name,
        create=create,
        add_value=add,
        merge_states=merge,
        extract_value=extract,
        uncombine_states=uncombine,
        accumulator=accumulator,
        output=output,
        capability=capability,
        bound=bound,
    )

    def factory(*inputs: Input) -> ScalarCombiner:
        if not inputs:
            raise InvalidArgument(f"{name} needs at least one input column, as in {name}('x')")
        for input in inputs:
            expression(input)
        return ScalarCombiner(inputs, fn)

    factory.__name__ = factory.__qualname__ = name
    factory.fn = fn  # type: ignore[attr-defined]
    return factory


def _require_fit(value: Any, kind: pa.DataType, what: str, declared: str) -> Any:
    """The value as Arrow gives it back from a column of this type; raises if the type cannot hold it."""
    try:
        if _fraction(value, kind):
            raise pa.ArrowInvalid("a fraction is not an integer")
        return pa.array([value], kind, from_pandas=False)[0].as_py()
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError) as error:
        refused = DoesNotFit if _too_large(value, kind) else TypeMismatch
        raise refused(
            f"{what} gave {value!r}, which does not fit its declared {declared} type {kind}: {error}"
        ) from None


def _fraction(value: Any, kind: pa.DataType) -> bool:
    """True if a value, or one within it, is a float that Arrow would cut to an integer without an error."""
    if isinstance(value, float):
        return pa.types.is_integer(kind) and not value.is_integer()
    if isinstance(value, dict) and pa.types.is_struct(kind):
        return any(_fraction(value.get(field.name), field.type) for field in kind)
    if isinstance(value, list | tuple) and (pa.types.is_list(kind) or pa.types.is_large_list(kind)):
        return any(_fraction(item, kind.value_type) for item in value)
    return False


def _too_large(value: Any, kind: pa.DataType) -> bool:
    """True if a value, or one within it, is a number of the right sort but outside the range of its type."""
    if pa.types.is_struct(kind) and isinstance(value, dict):
        return any(_too_large(value.get(field.name), field.type) for field in kind)
    if (pa.types.is_list(kind) or pa.types.is_large_list(kind)) and isinstance(value, list | tuple):
        return any(_too_large(item, kind.value_type) for item in value)
    if pa.types.is_integer(kind) and isinstance(value, int):
        signed = pa.types.is_signed_integer(kind)
        return not -(2 ** (kind.bit_width - 1)) * signed <= value < 2 ** (kind.bit_width - signed)
    if pa.types.is_decimal(kind) and isinstance(value, Decimal) and value.is_finite():
        return abs(value) >= Decimal(10) ** (kind.precision - kind.scale)
    return False
