"""`Combiner`: what a user writes (`Sum("x").where(col("y") > 0)`), a value that knows no types yet.

A combiner is *lowered* against the schema of its input into parts, each a `CombineFn` over some input expressions,
and a `finish` that makes the result from the parts' accumulators. Parts are values: two combiners that lower to an
equal part share it, so that `Mean("x")`, `Sum("x")` and `Count("x")` together hold one sum and one count.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

from ..errors import InvalidArgument, TypeMismatch, require_column
from .algebra import Accumulators, Capability, CombineFn, weakest
from .expressions import Expr, col

if TYPE_CHECKING:
    from .plan import Bound

Input: TypeAlias = "str | Expr"
"""A column's name or an expression over columns."""

Finish: TypeAlias = Callable[[Sequence[Accumulators]], pa.Array]
"""Makes the results from the accumulators of the parts, in the order of the parts."""

Tolerance: TypeAlias = Callable[[Sequence[float], int], float]
"""How far a result may lie from the exact one, from the magnitudes that came in and their count."""


@dataclass(frozen=True)
class Part:
    """One `CombineFn` with what flows into it; equal parts are computed once."""

    fn: CombineFn
    inputs: tuple[Expr, ...] = ()
    where: Expr | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The input columns that the part reads."""
        names = [name for expr in self.inputs for name in expr.columns]
        names += self.where.columns if self.where is not None else ()
        return tuple(dict.fromkeys(names))


@dataclass(frozen=True)
class Lowered:
    """A combiner on a known schema: its parts, and its result from them."""

    parts: tuple[Part, ...]
    finish: Finish
    output: pa.DataType

    @property
    def capability(self) -> Capability:
        """What is promised on this schema; never less than the combiner's own capability."""
        return weakest([part.fn.capability for part in self.parts])


class Combiner(ABC):
    """An aggregation as a value: immutable, comparable, with a repr that evaluates back.

    Subclasses are frozen dataclasses whose first field is the input column (or columns); they give `lower` and a
    `capability`. Everything else here builds new combiners out of old ones.

    >>> import uncombine as uc
    >>> (uc.Sum("price") / uc.Count()).where(uc.col("price") > 0)
    (Sum('price') / Count()).where(col('price') > 0)
    """

    @property
    @abstractmethod
    def capability(self) -> Capability:
        """What the combiner promises on every input type that it accepts."""

    @abstractmethod
    def lower(self, schema: pa.Schema) -> Lowered:
        """The parts and the finish on this schema; raises `TypeMismatch` or `UnknownColumn` if it does not fit."""

    def tolerance(self, magnitudes: Sequence[float], count: int) -> float:
        """How far a result may lie from the exact one, as an absolute difference.

        `magnitudes` are the absolute values of all the finite numbers that ever came in, those that were taken back
        too, and `count` is how many rows that was, each as often as it weighed. Zero, the default, promises that
        results do not depend on how the rows came; `math.inf` promises nothing for these inputs. Only fast float
        forms (CANCELLATIVE) need to say more than zero; the law kit holds them to it.

        >>> import uncombine as uc
        >>> uc.Max("x").tolerance([1e9, 1.0], 2)
        0.0
        """
        return 0.0

    def append_only(self) -> Combiner:
        """A combiner with the same results on rows that are never taken back, with the smallest state."""
        return self

    def bind(self, schema: pa.Schema) -> Bound:
        """The `CombineFn` of this combiner over a schema's columns."""
        from .plan import Bound

        return Bound(self, schema)

    def of(self, *inputs: Input) -> Combiner:
        """The same aggregation over another column or expression.

        >>> import uncombine as uc
        >>> uc.Sum("x").of(uc.col("price") * uc.col("amount"))
        Sum(col('price') * col('amount'))
        """
        if not is_dataclass(self) or not fields(self) or not inputs:
            raise InvalidArgument(f"{self!r} has no input to replace")
        names = [f.name for f in fields(self) if f.name in ("input", "by", "weight", "x", "y")]
        if not names or len(inputs) > len(names):
            raise InvalidArgument(f"{self!r} takes {len(names)} inputs, and .of() was given {len(inputs)}")
        changes: dict[str, Any] = dict(zip(names, inputs, strict=False))
        return replace(self, **changes)

    def where(self, predicate: Expr) -> Combiner:
        """The same aggregation over the rows for which `predicate` is true.

        >>> import uncombine as uc
        >>> uc.Count().where(uc.col("x") > 2)
        Count().where(col('x') > 2)
        """
        from .compose import Where

        return Where(self, predicate)

    def map(self, function: Callable[[pa.Array], pa.Array], output: pa.DataType | None = None) -> Combiner:
        """The results put through a function of Arrow arrays; `output` is its type (asked of it if not given)."""
        from .compose import Mapped

        return Mapped(self, function, output)

    def __add__(self, other: Combiner | float) -> Combiner:
        return self._arithmetic("+", self, other)

    def __radd__(self, other: float) -> Combiner:
        return self._arithmetic("+", other, self)

    def __sub__(self, other: Combiner | float) -> Combiner:
        return self._arithmetic("-", self, other)

    def __rsub__(self, other: float) -> Combiner:
        return self._arithmetic("-", other, self)

    def __mul__(self, other: Combiner | float) -> Combiner:
        return self._arithmetic("*", self, other)

    def __rmul__(self, other: float) -> Combiner:
        return self._arithmetic("*", other, self)

    def __truediv__(self, other: Combiner | float) -> Combiner:
        return self._arithmetic("/", self, other)

    def __rtruediv__(self, other: float) -> Combiner:
        return self._arithmetic("/", other, self)

    @staticmethod
    def _arithmetic(op: str, left: Combiner | float, right: Combiner | float) -> Combiner:
        from .compose import Arithmetic

        return Arithmetic(op, left, right)

    def __repr__(self) -> str:
        return spelled(self)


def spelled(value: Any) -> str:
    """The repr of a dataclass without its name for the first field and without fields at their defaults."""
    parts: list[str] = []
    spec = fields(value)
    for f in spec:
        given = getattr(value, f.name)
        if f.default is not MISSING and type(given) is type(f.default) and given == f.default:
            continue
        bare = not f.kw_only and not isinstance(given, bool) and len(parts) == spec.index(f)
        parts.append(repr(given) if bare else f"{f.name}={given!r}")
    return f"{type(value).__name__}({', '.join(parts)})"


def expression(given: Input) -> Expr:
    """A column name as an expression."""
    if isinstance(given, Expr):
        return given
    if isinstance(given, str):
        return col(given)
    raise InvalidArgument(f"an input is a column's name or an expression, not {given!r}")


def input_type(given: Input, schema: pa.Schema, who: object) -> pa.DataType:
    """The type of an input on this schema; dictionaries count as their values."""
    expr = expression(given)
    for name in expr.columns:
        require_column(name, schema.names, f"{who!r}")
    kind = expr.type(schema)
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def refuse(who: object, given: Input, kind: pa.DataType, wants: str) -> TypeMismatch:
    """The error for a combiner on a column type that it does not take."""
    named = repr(given) if isinstance(given, str) else str(given)
    return TypeMismatch(f"{who!r} takes {wants}, and {named} is {kind}")
