"""The row-wise escape hatch: a trigger whose decisions are a user's own Python."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import is_dataclass
from typing import Any

from ..errors import InvalidArgument, TypeMismatch
from ..windows.times import timestamp
from .language import Trigger, domain_of, shown


class TriggerContext:
    """What a user's trigger sees of its window, and how it says what it wants.

    `state` is a dict of the trigger's own for this window: plain values (numbers, text, lists, dicts) by tag.

    >>> import uncombine as uc
    >>> ctx = uc.TriggerContext(window=(0, 60), watermark=10, processing_time=70, memo={})
    >>> ctx.set_timer("soon", 80)
    >>> ctx.fire()
    >>> ctx.fired, ctx.memo()["timers"]
    ('default', {'soon': [80, 'processing']})
    """

    def __init__(self, window: tuple[int, int], watermark: int, processing_time: int, memo: Mapping[str, Any]) -> None:
        self.window = window
        """Start and end, microseconds UTC."""
        self.watermark = watermark
        self.processing_time = processing_time
        self.state: dict[str, Any] = dict(memo.get("state", {}))
        self.timers: dict[str, tuple[int, str]] = {tag: (t, d) for tag, (t, d) in memo.get("timers", {}).items()}
        self.fired: str | None = None
        self.finished = False

    def set_timer(self, tag: str, time: Any, domain: str = "processing") -> None:
        """Call `on_timer(tag, ...)` when the domain's clock reaches `time`; a timer of that tag is replaced."""
        domain_of(domain, "set_timer")
        self.timers[tag] = (timestamp(time), domain)

    def delete_timer(self, tag: str) -> None:
        """Forget a timer, if it is set."""
        self.timers.pop(tag, None)

    def fire(self, mode: str = "default") -> None:
        """Emit a pane; "clear" or "accumulate" overrule the mode where it lets triggers decide."""
        if mode not in ("default", "accumulate", "clear"):
            raise InvalidArgument(f"fire(mode={mode!r}) must be 'default', 'accumulate' or 'clear'")
        self.fired = mode

    def finish(self) -> None:
        """This trigger has nothing more to say in this window."""
        self.finished = True

    def memo(self) -> dict[str, Any]:
        """What is kept until the next call; raises for state that would come back as something else."""
        for tag, value in self.state.items():
            if not (isinstance(tag, str) and _is_plain(value)):
                raise TypeMismatch(
                    f"the state {tag!r} of a user trigger is {value!r}, and it must be made of numbers, text, lists "
                    "and dicts with text for keys"
                )
        return {"state": self.state, "timers": {tag: list(timer) for tag, timer in sorted(self.timers.items())}}


def _is_plain(value: Any) -> bool:
    """Whether JSON gives the value back as it was."""
    if isinstance(value, list):
        return all(map(_is_plain, value))
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_plain(inner) for key, inner in value.items())
    return value is None or isinstance(value, bool | int | float | str)


class UserTrigger(Trigger):
    """Subclass it, as a frozen dataclass, for decisions that no other trigger makes; it runs row by row in Python.

    `on_element` sees each row of a window; `on_timer` is called when the clock of a timer's domain reaches it, in
    increasing time; `on_merge` sees the contexts of windows that become one (their state and timers are gone after
    it) and fills that of the new window. Each may call `ctx.fire()`, `ctx.finish()`, set timers and keep state.

    >>> from dataclasses import dataclass
    >>> import uncombine as uc
    >>> @dataclass(frozen=True, repr=False)
    ... class EachDoubling(uc.UserTrigger):
    ...     '''Fires at 1, 2, 4, 8, ... rows.'''
    ...     def on_element(self, row, window, ctx):
    ...         ctx.state["n"] = n = ctx.state.get("n", 0) + 1
    ...         if n & (n - 1) == 0:
    ...             ctx.fire()
    >>> EachDoubling()
    EachDoubling()
    """

    def on_element(self, row: dict[str, Any], window: tuple[int, int], ctx: TriggerContext) -> None:
        """A row came to the window."""

    def on_merge(self, sources: list[TriggerContext], ctx: TriggerContext) -> None:
        """Windows became one; unless something is carried over here, it starts anew."""

    def on_timer(self, tag: str, time: int, ctx: TriggerContext) -> None:
        """A timer's time has come; it is no longer set."""

    def words(self) -> str:
        return f"when {self!r} calls ctx.fire()"

    # A dataclass brings its own; these serve a class that is none.
    def __eq__(self, other: object) -> bool:
        return vars(self) == vars(other) if type(other) is type(self) else NotImplemented

    def __hash__(self) -> int:
        return hash((type(self), *sorted(vars(self).items())))

    def __repr__(self) -> str:
        if is_dataclass(self):
            return super().__repr__()
        return f"{type(self).__name__}({', '.join(f'{name}={shown(value)}' for name, value in vars(self).items())})"
