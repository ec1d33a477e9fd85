"""The view of one key that a function of `process` works with.

Guarded by tests/panes/process/test_process.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import Any, NamedTuple

from ...errors import InvalidArgument, TypeMismatch, nearest
from ...windows.times import FIRST, LAST, MAX_TIME, NEVER, time_text, timestamp
from .outputs import MAIN, no_output
from .shared import Shared


class Timer(NamedTuple):
    """A timer that is set."""

    time: int
    domain: str
    at: int
    """The event time of the results of the timer, if it holds; otherwise the event time at which it was set."""
    holds: bool


class EmittedRow(NamedTuple):
    """A row of output, and the number of its key in the step."""

    key: int
    output: str
    values: Mapping[str, Any]
    time: int
    diff: int


@dataclass(frozen=True)
class BroadcastContext:
    """The time, the weight and the clocks of a broadcast row, for `on_broadcast`.

    It has no key and gives no rows, since each shard makes the call.

    >>> import uncombine as uc
    >>> uc.BroadcastContext(time=5, diff=-1, watermark=0, processing_time=9).diff
    -1
    """

    time: int
    """The event time of the row, in microseconds UTC."""
    diff: int
    """The weight of the row."""
    watermark: int
    """The input watermark from before the bundle."""
    processing_time: int

    def __getattr__(self, name: str) -> Any:
        if name in ("emit", "set_timer", "delete_timer", "clear", "state", "key"):
            raise InvalidArgument(
                f"ctx.{name} is of a key, and on_broadcast() is called once in each shard: write "
                "on_broadcast_key(row, key, state, ctx), or do it in on_row"
            )
        raise AttributeError(f"the context of on_broadcast() has no {name!r}")


@dataclass
class Scene:
    """The parts of a step that are the same for all keys."""

    outputs: Mapping[str | None, frozenset[str]]
    """The columns of each output; that of the function itself has no name."""
    least: int
    """The least event time that a row of output may have."""
    floor: int
    """The output watermark before the step."""
    watermark: int
    processing_time: int
    check_timers: Callable[[str], None]
    """Raises if the function takes no timers of a domain."""
    emitted: list[EmittedRow] = field(default_factory=list)
    shared: Shared | None = None
    """The state that all keys of the shard read; None if the step has no broadcast rows."""


class KeyContext:
    """The key, clocks, state and timers that a function of `process` works with.

    `state` is a dict with the declared fields, None at first. `key` is the value of the key column, or a tuple of
    several. `time` is the event time of the row or timer, and of results by default. `diff` is the weight of the row.
    All times are microseconds UTC.

    >>> import pyarrow as pa, uncombine as uc
    >>> class Waits:
    ...     output = pa.schema({"waited": pa.int64()})
    ...     state = pa.schema({"since": pa.int64()})
    ...     def on_row(self, row, state, ctx):
    ...         state["since"] = ctx.time
    ...         ctx.set_timer("over", ctx.time + 10, "event")
    ...     def on_timer(self, tag, ctx):
    ...         ctx.emit({"waited": ctx.time - ctx.state["since"]})
    ...         ctx.clear()
    >>> rows = uc.flow(pa.table({"ts": [0, 5]}))
    >>> rows.process(function=Waits).run()["waited"].to_pylist()
    [10]
    """

    __slots__ = ("_clock", "_domain", "_due", "_number", "_scene", "diff", "firing", "key", "state", "time", "timers")

    def __init__(self, scene: Scene, number: int, key: Any, state: dict[str, Any], timers: dict[str, Timer]) -> None:
        self._scene, self._number = scene, number
        self.key, self.state, self.timers = key, state, timers
        self.time, self.diff = scene.floor, 1
        self.firing: Timer | None = None
        self._due: list[tuple[int, str]] | None = None
        self._domain, self._clock = "", 0

    @property
    def watermark(self) -> int:
        """The input watermark: for rows and timers of processing time that from before the bundle."""
        return self._scene.watermark

    @property
    def processing_time(self) -> int:
        """The processing time; in a timer of processing time, the time of the timer."""
        return self._scene.processing_time

    @property
    def shared(self) -> Mapping[str, Any]:
        """The state that broadcast rows have made, for all keys; only `on_broadcast` may change it."""
        if self._scene.shared is None:
            raise InvalidArgument("ctx.shared is the state of broadcast rows: give process() their flow by broadcast=")
        return self._scene.shared.view

    @property
    def alive(self) -> bool:
        """True if the key has state, or a timer that is set."""
        return bool(self.timers) or any(value is not None for value in self.state.values())

    @property
    def ended(self) -> bool:
        """True if the watermark is at the end of time, so that nothing comes any more."""
        return self._scene.watermark == MAX_TIME

    def emit(self, values: Mapping[str, Any], time: Any = None, diff: int = 1, *, to: str | None = None) -> None:
        """Give a row of output. A column that is not named is null; the key is added.

        `to` is the name of one of the outputs of `process(outputs=)`.
        """
        scene = self._scene
        columns = scene.outputs.get(to) if to is None or isinstance(to, str) else None
        if columns is None:
            raise no_output("ctx.emit()", to, [name for name in scene.outputs if name])
        if not values.keys() <= columns:
            odd = next(name for name in values if name not in columns)
            own = "" if to is None else f" for the output {to!r}"
            raise InvalidArgument(f"ctx.emit() has no column {odd!r}{own}: {nearest(str(odd), columns)}")
        if isinstance(diff, bool) or not isinstance(diff, int):
            raise TypeMismatch(f"ctx.emit(diff=): diff must be a whole number, but is {diff!r}")
        at = self.time
        if time is not None:
            at = _instant(time, "ctx.emit(time=)", scene)
        if diff:
            scene.emitted.append(
                EmittedRow(key=self._number, output=to or MAIN, values=dict(values), time=at, diff=diff)
            )

    def set_timer(self, tag: str, time: Any, domain: str, hold: Any = None) -> None:
        """Set a timer: `on_timer(tag, ctx)` is called when the clock of the domain reaches `time`.

        It replaces a timer with the same tag. `hold` is the event time of its results: until the timer has fired or is
        deleted, the output watermark is not after it. The domain is "event" or "processing".
        """
        if domain not in ("event", "processing"):
            raise InvalidArgument(f"ctx.set_timer(domain=): domain must be 'event' or 'processing', but is {domain!r}")
        if not isinstance(tag, str):
            raise TypeMismatch(f"ctx.set_timer(tag): tag must be a text, but is {tag!r}")
        due, scene = timestamp(time), self._scene
        scene.check_timers(domain)
        if domain == "processing":
            due = max(due, scene.processing_time + 1)
        elif self.firing is not None and self.firing.domain == "event" and due <= self.firing.time:
            raise InvalidArgument(
                f"ctx.set_timer({tag!r}): {time_text(due)} is not after the timer that sets it, which would never end"
            )
        at = self.time if hold is None else _instant(hold, "ctx.set_timer(hold=)", scene)
        self.timers[tag] = Timer(time=due, domain=domain, at=at, holds=hold is not None)
        if self._due is not None and domain == self._domain and due <= self._clock:
            heappush(self._due, (due, tag))

    def delete_timer(self, tag: str) -> None:
        """Delete a timer, if it is set."""
        self.timers.pop(tag, None)

    def clear(self) -> None:
        """Set all fields of the state to None, and delete all timers: the key then leaves the state."""
        self.state.update(dict.fromkeys(self.state))
        self.timers.clear()

    def advance(self, domain: str, clock: int) -> Iterator[tuple[str, Timer]]:
        """The timers of a domain that are due, by time and tag, each as it begins to fire; also those set meanwhile."""
        self._due = [(t.time, tag) for tag, t in self.timers.items() if t.domain == domain and t.time <= clock]
        self._domain, self._clock = domain, clock
        heapify(self._due)
        while self._due:
            time, tag = heappop(self._due)
            timer = self.timers.get(tag)
            if timer is None or (timer.time, timer.domain) != (time, domain):
                continue
            del self.timers[tag]
            own = time if domain == "event" and time <= LAST else timer.at
            self.time = timer.at if timer.holds else max(own, self._scene.floor)
            self.diff, self.firing = 1, timer
            yield tag, timer
        self._due = self.firing = None

    def wake(self) -> tuple[int, int, int]:
        """The least times of the timers of event and of processing time, and the least hold."""
        event = processing = hold = NEVER
        for timer in self.timers.values():
            if timer.domain == "event":
                event = min(event, timer.time)
            else:
                processing = min(processing, timer.time)
            if timer.holds:
                hold = min(hold, timer.at)
        return event, processing, hold


def _instant(value: Any, who: str, scene: Scene) -> int:
    """The event time of a row of output, which must be one that later stages still take."""
    at = timestamp(value)
    if at < scene.least:
        raise InvalidArgument(
            f"{who}: {time_text(at)} is before {time_text(scene.least)}, where later stages would drop the row: "
            "hold the output watermark earlier with ctx.set_timer(hold=)"
        )
    if not FIRST <= at <= LAST:
        raise InvalidArgument(f"{who}: {time_text(at)} is outside the years 1 to 9999")
    return at


__all__ = ["BroadcastContext", "EmittedRow", "KeyContext", "Scene", "Timer"]
