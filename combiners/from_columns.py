"""`from_columns`: combiners from a `CombineFn` that the user writes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from ..errors import InvalidArgument, TypeMismatch
from .algebra import Accumulators, Capability, CombineFn, Weights
from .combiner import Combiner, Mapped
from .compiled import CompiledCombiner
from .floats.tolerances import Tolerance, tolerance_of
from .from_scalar import ScalarCombiner
from .input_types import Input, expression, input_type
from .parts import Part
from .rows.alike import same_as_first
from .rows.columns import Column
from .rows.groups import Groups


@dataclass(frozen=True)
class CheckedFn(CombineFn):
    """A user's `CombineFn` under its name; the arrays that it gives are checked against its declared types."""

    name: str
    fn: CombineFn
    output: pa.DataType
    bound: Tolerance | None = None
    label = "columns"
    remedy = "give its CombineFn a negate(), and a capability above MONOID"

    @property
    def capability(self) -> Capability:  # type: ignore[override]
        return self.fn.capability

    @property
    def additive(self) -> bool:  # type: ignore[override]
        return self.fn.additive

    @cached_property
    def fields(self) -> tuple[pa.Field, ...]:
        return tuple(self.fn.fields)

    @property
    def nullable(self) -> tuple[bool, ...]:
        return self.fn.nullable

    def add(self, groups: Groups, *columns: Column, weights: Weights = None) -> Accumulators:
        return self._formed("add", self.fn.add(groups, *columns, weights=weights), groups.count)

    def merge(self, groups: Groups, accumulators: Accumulators) -> Accumulators:
        return self._formed("merge", self.fn.merge(groups, accumulators), groups.count)

    def negate(self, accumulators: Accumulators) -> Accumulators:
        return self._formed("negate", self.fn.negate(accumulators), len(accumulators[0]))

    def uncombine(self, accumulators: Accumulators, others: Accumulators) -> Accumulators:
        return self._formed("uncombine", self.fn.uncombine(accumulators, others), len(accumulators[0]))

    def zero(self, count: int) -> Accumulators:
        return self._formed("zero", self.fn.zero(count), count)

    def is_zero(self, accumulators: Accumulators) -> np.ndarray:
        """True for each accumulator that equals that of no rows."""
        return same_as_first(accumulators, self.zero(1))

    def extract(self, accumulators: Accumulators) -> pa.Array:
        return self._array("extract", self.fn.extract(accumulators), self.output, len(accumulators[0]))

    def _formed(self, operation: str, result: object, count: int) -> Accumulators:
        if not isinstance(result, tuple | list) or len(result) != len(self.fields):
            raise TypeMismatch(
                f"{operation} of {self.name} must give a tuple of {len(self.fields)} arrays, one for each field, "
                f"but gave {_described(result)}"
            )
        return tuple(
            self._array(operation, array, field.type, count, f" for its field {field.name!r}")
            for array, field in zip(result, self.fields, strict=True)
        )

    def _array(self, operation: str, array: object, kind: pa.DataType, count: int, where: str = "") -> pa.Array:
        if not isinstance(array, pa.Array) or array.type != kind or len(array) != count:
            raise TypeMismatch(
                f"{operation} of {self.name} must give {count} values of {kind} in an Arrow array{where}, "
                f"but gave {_described(array)}"
            )
        return array


def _described(result: object) -> str:
    if isinstance(result, pa.Array):
        return f"{len(result)} of {result.type}"
    size = f" of {len(result)}" if isinstance(result, tuple | list) else ""
    return f"a {type(result).__name__}{size}"


@dataclass(frozen=True, repr=False)
class ColumnsCombiner(Combiner):
    """A combiner made by `from_columns`, on its input columns."""

    inputs: tuple[Input, ...]
    fn: CheckedFn

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

        part = Part(self.fn, tuple(map(expression, self.inputs)))
        return CompiledCombiner(parts=(part,), finish=finish, output=self.fn.output, additive=self.fn.additive)

    def __repr__(self) -> str:
        return f"{self.fn.name}({', '.join(map(repr, self.inputs))})"


def from_columns(
    name: str, fn: CombineFn, *, output: pa.DataType, tolerance: Tolerance | float | None = None
) -> Callable[..., ColumnsCombiner]:
    """A factory of combiners from a `CombineFn` of your own, which works on whole columns.

    Law: the operations decide it; `uncombine.combiners.laws.check_laws` checks it. Rows in which an input is null are
    left out, unless `fn.nullable` names that input. An operation raises `TypeMismatch` if it gives arrays of other
    types than `fields` and `output` declare.

    Parameters
    ----------
    name
        The name of the combiner in reprs, errors and checkpoints.
    fn
        The operations and their capability. Spark pickles it for its workers.
    output
        The Arrow type of the results.
    tolerance
        The greatest error of a result: a part of the numbers, such as 1e-9, or a function `tolerance(magnitudes,
        count)`, as `Combiner.tolerance` is one. None means `fn.tolerance` if there is one, else that results do not
        depend on the order of the rows.

    Returns
    -------
    Callable
        `factory("x")`, or `factory("x", "y")` for an `add` of two columns, is a combiner.

    Examples
    --------
    >>> import numpy as np, pyarrow as pa, uncombine as uc
    >>> class XorFn(uc.CombineFn):
    ...     capability = uc.Capability.MONOID
    ...     fields = (pa.field("bits", pa.int64()),)
    ...
    ...     def add(self, groups, *columns, weights=None):
    ...         odd = 1 if weights is None else weights & 1
    ...         return self.merge(groups, (pa.array(columns[0].values * odd),))
    ...
    ...     def merge(self, groups, accumulators):
    ...         bits = np.zeros(groups.count, np.int64)
    ...         np.bitwise_xor.at(bits, groups.codes, np.asarray(accumulators[0]))
    ...         return (pa.array(bits),)
    ...
    ...     def extract(self, accumulators):
    ...         return accumulators[0]
    >>> Xor = uc.from_columns("Xor", XorFn(), output=pa.int64())
    >>> t = pa.table({"k": ["a", "b", "a"], "x": [5, 7, 1]})
    >>> uc.aggregate(t, by="k", bits=Xor("x")).to_pylist()
    [{'k': 'a', 'bits': 4}, {'k': 'b', 'bits': 7}]
    """
    if not isinstance(fn, CombineFn):
        what = f"an instance, {fn.__name__}()" if isinstance(fn, type) else "a CombineFn"
        raise InvalidArgument(f"from_columns takes {what}, but was given {fn!r}")
    if not isinstance(output, pa.DataType):
        raise InvalidArgument(
            f"output= of from_columns takes an Arrow type such as pa.int64(), but was given {output!r}"
        )
    bound = tolerance_of(getattr(fn, "tolerance", None) if tolerance is None else tolerance, "from_columns")
    if not fn.fields or not all(isinstance(field, pa.Field) for field in fn.fields):
        raise InvalidArgument(f"{name} needs a tuple of Arrow fields in fields, but fields is {fn.fields!r}")
    checked = CheckedFn(name=name, fn=fn, output=output, bound=bound)

    def factory(*inputs: Input) -> ColumnsCombiner:
        for input in inputs:
            expression(input)
        return ColumnsCombiner(inputs, checked)

    factory.__name__ = factory.__qualname__ = name
    factory.fn = checked  # type: ignore[attr-defined]
    return factory


def calls_functions(value: object) -> bool:
    """True for a combiner that calls functions of a user, which need not be safe in several threads, or has one inside.

    >>> import uncombine as uc
    >>> calls_functions(uc.Sum("x")), calls_functions(uc.Sum("x").map(abs))
    (False, True)
    """
    if isinstance(value, Mapping):
        return any(map(calls_functions, value.values()))
    if isinstance(value, tuple | list):
        return any(map(calls_functions, value))
    if not isinstance(value, Combiner):
        return False
    own = type(value).__module__.startswith(__name__.partition(".")[0] + ".")
    return not own or isinstance(value, _WITH_FUNCTIONS) or any(map(calls_functions, vars(value).values()))


_WITH_FUNCTIONS = (Mapped, ScalarCombiner, ColumnsCombiner)
