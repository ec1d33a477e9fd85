"""The leaf triggers: each waits for one thing, fires, and is then finished, except `Always` and `Never`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from ..combiners.expressions.expr import Expr
from ..errors import InvalidArgument
from ..windows.spans import Length, positive, span
from ..windows.times import time_text, timestamp
from ..windows.window import settle
from .language import Predicate, Trigger, as_trigger, at_least_one, domain_of, require_percent, shown


@dataclass(frozen=True, init=False, repr=False)
class AfterWatermark(Trigger):
    """Fires once when the watermark passes the end of the window, and with `early` before and `late` after that.

    Without `late` it is finished when the watermark has passed the end.

    Parameters
    ----------
    early
        A trigger that is repeated until the watermark passes the end, or its words.
    late
        A trigger that is repeated from then on, or its words.

    Examples
    --------
    >>> import uncombine as uc
    >>> uc.AfterWatermark(early=uc.AtPeriod("1 minute"), late=uc.AfterCount(1))
    AfterWatermark(early=AtPeriod('1 minute'), late=AfterCount(1))
    """

    early: Trigger | None = None
    late: Trigger | None = None

    def __init__(self, early: Trigger | str | None = None, late: Trigger | str | None = None) -> None:
        parts = {"early": early, "late": late}
        settle(
            self, **{name: part if part is None else as_trigger(part, "AfterWatermark") for name, part in parts.items()}
        )

    @property
    def children(self) -> tuple[Trigger, ...]:
        return tuple(child for child in (self.early, self.late) if child is not None)

    def words(self) -> str:
        return "once, when the watermark passes the end of the window"

    def labels(self) -> tuple[str, ...]:
        labelled = (("before that, again and again:", self.early), ("after that, again and again:", self.late))
        return tuple(label for label, child in labelled if child is not None)


@dataclass(frozen=True, repr=False)
class WatermarkPercentile(Trigger):
    """Fires once, when this percentage of the sources has passed the end of the window.

    Parameters
    ----------
    percent
        The percentage, from 1 to 100.

    Examples
    --------
    >>> import uncombine as uc
    >>> uc.WatermarkPercentile(90)
    WatermarkPercentile(90)
    """

    percent: float

    def __post_init__(self) -> None:
        require_percent(self.percent, "WatermarkPercentile")

    def words(self) -> str:
        return f"once, when {self.percent:.15g} % of the sources have passed the end of the window"


@dataclass(frozen=True, repr=False)
class AtPeriod(Trigger):
    """Fires at the next aligned instant (every `period` from `origin`) after the first row since the last firing.

    Parameters
    ----------
    period
        The time from one aligned instant to the next, such as "1 minute".
    origin
        One of the aligned instants; 1970-01-01T00:00:00Z if not given.
    domain
        The clock: "processing", or "event" for the watermark.

    Examples
    --------
    >>> import uncombine as uc
    >>> uc.AtPeriod("60 seconds", domain="event")
    AtPeriod('1 minute', domain='event')
    """

    period: Length
    origin: int | str | datetime | None = None
    domain: str = "processing"

    def __post_init__(self) -> None:
        object.__setattr__(self, "period", positive(self.period, "AtPeriod", "period"))
        domain_of(self.domain, "AtPeriod(domain=)")
        if self.origin is not None:
            object.__setattr__(self, "origin", time_text(timestamp(self.origin)).replace("Z", "+00:00"))

    def words(self) -> str:
        start = f" counted from {self.origin}" if self.origin else ""
        return f"at every {_instants(str(self.period))} of {self.domain} time{start} that follows a row"


def _instants(period: str) -> str:
    """The multiples of a period: `full minute` for one of a unit, `multiple of 90 seconds` for others."""
    count, _, unit = period.partition(" ")
    return f"full {unit}" if count == "1" and " " not in unit else f"multiple of {period}"


@dataclass(frozen=True, repr=False)
class AfterDelay(Trigger):
    """Fires a fixed time after the first row since the last firing.

    Parameters
    ----------
    delay
        The time to wait, such as "5 seconds"; it may be zero.
    domain
        The clock: "processing", or "event" for the watermark.

    Examples
    --------
    >>> import uncombine as uc
    >>> uc.AfterDelay("5 seconds")
    AfterDelay('5 seconds')
    """

    delay: Length
    domain: str = "processing"

    def __post_init__(self) -> None:
        object.__setattr__(self, "delay", span(self.delay))
        if self.delay < 0:  # type: ignore[operator]
            raise InvalidArgument(f"AfterDelay(delay): delay must be at least zero, but is {self.delay!r}")
        domain_of(self.domain, "AfterDelay(domain=)")

    def words(self) -> str:
        return f"{self.delay!s} of {self.domain} time after the first row"


@dataclass(frozen=True, repr=False)
class AfterCount(Trigger):
    """Fires when at least n rows of a key have come to a window since the last firing, whatever their `diff`.

    Each window of each key counts its own rows. For a pane after each batch of all keys write `Always()`.

    Parameters
    ----------
    n
        The number of rows, at least 1.

    Examples
    --------
    >>> import uncombine as uc
    >>> uc.AfterCount(100)
    AfterCount(100)
    """

    n: int

    def __post_init__(self) -> None:
        at_least_one(self.n, "AfterCount(n)")

    def words(self) -> str:
        return f"when {self.n} row{'s' * (self.n > 1)} of a key {'have' if self.n > 1 else 'has'} come to a window"


@dataclass(frozen=True, repr=False)
class AfterBytes(Trigger):
    """Fires when rows of a key of at least n bytes have come to a window since the last firing.

    A number or a time counts the bytes of its type, a text its UTF-8 bytes, a null none.

    Parameters
    ----------
    n
        The number of bytes, at least 1.
    of
        The names of the columns whose bytes count; all columns if not given.

    Examples
    --------
    >>> import uncombine as uc
    >>> uc.AfterBytes(1_000_000, of=["body"])
    AfterBytes(1000000, of=('body',))
    """

    n: int
    of: Sequence[str] | None = None

    def __post_init__(self) -> None:
        at_least_one(self.n, "AfterBytes(n)")
        if self.of is not None:
            names = (self.of,) if isinstance(self.of, str) else tuple(self.of) if isinstance(self.of, Sequence) else ()
            if not names or not all(isinstance(name, str) for name in names):
                raise InvalidArgument(
                    f"AfterBytes(of=): of must be a list of column names such as ['body'], but is {self.of!r}"
                )
            object.__setattr__(self, "of", names)

    def words(self) -> str:
        columns = " of " + ", ".join(self.of) if self.of else ""
        several = self.n > 1
        return f"when {self.n} byte{'s' * several}{columns} of a key {'have' if several else 'has'} come to a window"


def _predicate(value: Predicate, who: str, name: str = "predicate") -> None:
    if not isinstance(value, Expr) and not callable(value):
        raise InvalidArgument(
            f"{who}({name}): {name.rstrip('=')} must be an expression such as col('x') > 2 or a function, but is "
            f"{value!r}"
        )


@dataclass(frozen=True, repr=False)
class OnPunctuation(Trigger):
    """Fires when a row satisfies a predicate.

    Parameters
    ----------
    predicate
        An expression over the columns of the rows, or a function of an Arrow table of rows.

    Examples
    --------
    >>> import uncombine as uc
    >>> uc.OnPunctuation(uc.col("kind") == "end")
    OnPunctuation(col('kind') == 'end')
    """

    predicate: Predicate

    def __post_init__(self) -> None:
        _predicate(self.predicate, "OnPunctuation")

    def words(self) -> str:
        return f"when a row satisfies {shown(self.predicate)}"


@dataclass(frozen=True, init=False, repr=False, eq=False)
class OnSignal(Trigger, spoken=False):
    """Fires the windows of all keys when a row of another flow arrives.

    A window takes the rows of a bundle first, and then fires by its signals. A row whose weight is not above zero, such
    as a retraction, is no signal: what has fired stays as it is. Over bounded rows on Spark, without a replay, windows
    have final panes alone.

    Parameters
    ----------
    flow
        The flow of signals. It may begin with the same source as the rows.
    when
        An expression over the columns of the signals, or a function of an Arrow table of them: only rows for which it
        holds are signals. Without it all are.

    Examples
    --------
    >>> import uncombine as uc
    >>> orders = uc.flow([{"ts": 0, "shop": "a"}], name="orders")
    >>> commands = uc.flow([{"ts": 0, "kind": "flush"}], name="commands")
    >>> flushed = uc.OnSignal(commands, when=uc.col("kind") == "flush")
    >>> flushed
    OnSignal(commands, when=col('kind') == 'flush')
    >>> days = orders.window("1 day", uc.AfterWatermark(early=flushed))
    >>> counts = days.combine(by="shop", n=uc.Count())
    >>> rows = [{"ts": 0, "shop": shop} for shop in "aba"]
    >>> script = [
    ...     uc.Elements(rows, input="orders"),
    ...     uc.Elements([{"ts": 1, "kind": "test"}], input="commands"),
    ...     uc.Elements([{"ts": 2, "kind": "flush"}], input="commands"),
    ... ]
    >>> counts.run(script).panes.select(["shop", "n", "step"]).to_pylist()
    [{'shop': 'a', 'n': 2, 'step': 2}, {'shop': 'b', 'n': 1, 'step': 2}]
    """

    when: Predicate | None
    if TYPE_CHECKING:
        flow: Any
        name: str

    def __init__(self, flow: Any, when: Predicate | None = None) -> None:
        if not hasattr(flow, "schema") or not hasattr(flow, "source"):
            raise InvalidArgument(
                f"OnSignal(flow) takes the flow of signals, such as uc.flow(commands), but was given a "
                f"{type(flow).__name__}: rows in windows need .combine(...) first"
            )
        if when is not None:
            _predicate(when, "OnSignal", "when=")
        # No field, because a flow has rows: what is compared, stored and sent to tasks has its name alone.
        object.__setattr__(self, "flow", flow)
        settle(self, when=when, name=flow.settings.name or "a flow")

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "flow": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        settle(self, **state)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OnSignal) and self.flow is other.flow and repr(self.when) == repr(other.when)

    def __hash__(self) -> int:
        return hash((id(self.flow), repr(self.when)))

    def __repr__(self) -> str:
        return f"OnSignal({self.name}{'' if self.when is None else f', when={shown(self.when)}'})"

    def words(self) -> str:
        which = "arrives" if self.when is None else f"that satisfies {shown(self.when)} arrives"
        return f"when a row of {self.name} {which}"


@dataclass(frozen=True, repr=False)
class OnResult(Trigger):
    """Fires when the aggregate of a window that got rows satisfies a predicate.

    Parameters
    ----------
    predicate
        An expression over the keys and results, or a function of an Arrow table of them.

    Examples
    --------
    >>> import uncombine as uc
    >>> uc.OnResult(uc.col("total") > 100)
    OnResult(col('total') > 100)
    """

    predicate: Predicate

    def __post_init__(self) -> None:
        _predicate(self.predicate, "OnResult")

    def words(self) -> str:
        return f"when the result satisfies {shown(self.predicate)}"


@dataclass(frozen=True, repr=False)
class Always(Trigger):
    """Fires after every bundle that brings rows to the window; never finished.

    >>> import uncombine as uc
    >>> uc.Always()
    Always()
    """

    def words(self) -> str:
        return "after every bundle with rows"


@dataclass(frozen=True, repr=False)
class Never(Trigger):
    """Fires at no time: the contents come out when the window expires.

    >>> import uncombine as uc
    >>> uc.Never()
    Never()
    """

    def words(self) -> str:
        return "never: what is left comes out when the window expires"
