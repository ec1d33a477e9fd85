"""The leaf triggers: each waits for one thing, fires, and (all but Always and Never) is then finished."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from ..combiners.expressions import Expr
from ..errors import InvalidArgument
from ..windows.spans import Span, positive, span
from ..windows.times import time_text, timestamp
from .language import Predicate, Trigger, at_least_one, domain_of, trigger


@dataclass(frozen=True, repr=False)
class AfterWatermark(Trigger):
    """When the watermark passes the end of the window; `early` again and again before that, `late` after it.

    Without `late` it is finished once the window has passed.

    >>> import uncombine as uc
    >>> uc.AfterWatermark(early=uc.AtPeriod("1 minute"), late=uc.AfterCount(1))
    AfterWatermark(early=AtPeriod('1 minute'), late=AfterCount(1))
    """

    early: Trigger | None = None
    late: Trigger | None = None

    def __post_init__(self) -> None:
        for child in (self.early, self.late):
            if child is not None:
                trigger(child, "AfterWatermark")

    @property
    def children(self) -> tuple[Trigger, ...]:
        return tuple(child for child in (self.early, self.late) if child is not None)


@dataclass(frozen=True, repr=False)
class WatermarkPercentile(Trigger):
    """Once, when this percentage of the sources has passed the end of the window.

    >>> import uncombine as uc
    >>> uc.WatermarkPercentile(90)
    WatermarkPercentile(90)
    """

    percent: float

    def __post_init__(self) -> None:
        if isinstance(self.percent, float) and 0 < self.percent < 1:
            raise InvalidArgument(
                f"WatermarkPercentile takes a percentage: say {self.percent * 100:g} and not {self.percent!r}"
            )
        if isinstance(self.percent, bool) or not isinstance(self.percent, int | float) or not 1 <= self.percent <= 100:
            raise InvalidArgument(f"WatermarkPercentile takes a percentage from 1 to 100, not {self.percent!r}")


@dataclass(frozen=True, repr=False)
class AtPeriod(Trigger):
    """At the next aligned instant (every `period` from `origin`) after the first row since the last time.

    >>> import uncombine as uc
    >>> uc.AtPeriod("60 seconds", domain="event")
    AtPeriod('1 minute', domain='event')
    """

    period: Span | str | timedelta
    origin: int | str | datetime | None = None
    domain: str = "processing"

    def __post_init__(self) -> None:
        object.__setattr__(self, "period", positive(self.period, "the period of AtPeriod"))
        domain_of(self.domain, "AtPeriod")
        if self.origin is not None:
            object.__setattr__(self, "origin", time_text(timestamp(self.origin)).replace("Z", "+00:00"))


@dataclass(frozen=True, repr=False)
class AfterDelay(Trigger):
    """So long after the first row since the last time.

    >>> import uncombine as uc
    >>> uc.AfterDelay("5 seconds")
    AfterDelay('5 seconds')
    """

    delay: Span | str | timedelta
    domain: str = "processing"

    def __post_init__(self) -> None:
        object.__setattr__(self, "delay", span(self.delay))
        if self.delay < 0:  # type: ignore[operator]
            raise InvalidArgument(f"the delay of AfterDelay is {self.delay!r}, and it cannot be negative")
        domain_of(self.domain, "AfterDelay")


@dataclass(frozen=True, repr=False)
class AfterCount(Trigger):
    """When at least n rows have come since the last time, whatever their `diff`.

    >>> import uncombine as uc
    >>> uc.AfterCount(100)
    AfterCount(100)
    """

    n: int

    def __post_init__(self) -> None:
        at_least_one(self.n, "AfterCount")


@dataclass(frozen=True, repr=False)
class AfterBytes(Trigger):
    """When rows of at least n bytes have come since the last time, counted in the named columns (or all).

    A number or a time counts the bytes of its type, text its UTF-8 bytes, null none.

    >>> import uncombine as uc
    >>> uc.AfterBytes(1_000_000, of=["body"])
    AfterBytes(1000000, of=('body',))
    """

    n: int
    of: Sequence[str] | None = None

    def __post_init__(self) -> None:
        at_least_one(self.n, "AfterBytes")
        if self.of is not None:
            names = (self.of,) if isinstance(self.of, str) else tuple(self.of) if isinstance(self.of, Sequence) else ()
            if not names or not all(isinstance(name, str) for name in names):
                raise InvalidArgument(f"of= of AfterBytes takes the names of columns such as ['body'], not {self.of!r}")
            object.__setattr__(self, "of", names)


def _predicate(value: Predicate, who: str) -> None:
    if not isinstance(value, Expr) and not callable(value):
        raise InvalidArgument(f"{who} takes an expression such as col('x') > 2 or a function, not {value!r}")


@dataclass(frozen=True, repr=False)
class OnPunctuation(Trigger):
    """When a row satisfies a predicate.

    >>> import uncombine as uc
    >>> uc.OnPunctuation(uc.col("kind") == "end")
    OnPunctuation(col('kind') == 'end')
    """

    predicate: Predicate

    def __post_init__(self) -> None:
        _predicate(self.predicate, "OnPunctuation")


@dataclass(frozen=True, repr=False)
class OnResult(Trigger):
    """When the aggregate of a window that got rows satisfies a predicate over the result columns.

    >>> import uncombine as uc
    >>> uc.OnResult(uc.col("total") > 100)
    OnResult(col('total') > 100)
    """

    predicate: Predicate

    def __post_init__(self) -> None:
        _predicate(self.predicate, "OnResult")


@dataclass(frozen=True, repr=False)
class Always(Trigger):
    """After every bundle that brought the window rows; never finished.

    >>> import uncombine as uc
    >>> uc.Always()
    Always()
    """


@dataclass(frozen=True, repr=False)
class Never(Trigger):
    """Not at all: contents come out when the window expires.

    >>> import uncombine as uc
    >>> uc.Never()
    Never()
    """
