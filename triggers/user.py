"""User triggers: decisions in a user's own Python, row by row.

`tests/panes/test_user_triggers.py` guards this module.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import is_dataclass
from typing import Any

from ..errors import InvalidArgument, TypeMismatch
from ..windows.times import timestamp
from .language import Trigger, domain_of, shown


class TriggerContext:
    """The window, clocks, state and timers that a user trigger works with.

    `state` is a dict for the trigger's own use in this window. It holds plain values (numbers, text, lists, dicts)
    by tag.

    Parameters
    ----------
    window
        Start and end of the window, microseconds UTC.
    watermark, processing_time
        The two clocks, microseconds UTC.
    memo
        State and timers, as `memo()` gave them after the last call.

    Examples
    --------
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
        """Set a timer: `on_timer(tag, ...)` is called when the domain's clock reaches `time`.

        It replaces a timer with the same tag.
        """
        domain_of(domain, "ctx.set_timer(domain=)")
        self.timers[tag] = (timestamp(time), domain)

    def delete_timer(self, tag: str) -> None:
        """Delete a timer, if it is set."""
        self.timers.pop(tag, None)

    def fire(self, mode: str = "default") -> None:
        """Emit a pane; "clear" and "accumulate" overrule a mode that ends in `_by_default`."""
        if mode not in ("default", "accumulate", "clear"):
            raise InvalidArgument(f"ctx.fire(mode): mode must be 'default', 'accumulate' or 'clear', but is {mode!r}")
        self.fired = mode

    def finish(self) -> None:
        """Finish this trigger in this window."""
        self.finished = True

    def memo(self) -> dict[str, Any]:
        """State and timers as they are stored until the next call; raises for state that JSON would change."""
        for tag, value in self.state.items():
            if not (isinstance(tag, str) and _is_plain(value)):
                raise TypeMismatch(
                    f"the state {tag!r} of a user trigger must be made of numbers, text, lists and dicts with text for "
                    f"keys, but is {value!r}"
                )
        return {"state": self.state, "timers": {tag: list(timer) for tag, timer in sorted(self.timers.items())}}


def _is_plain(value: Any) -> bool:
    """True if JSON gives the value back unchanged."""
    if isinstance(value, list):
        return all(map(_is_plain, value))
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_plain(inner) for key, inner in value.items())
    return value is None or isinstance(value, bool | int | float | str)


class UserTrigger(Trigger):
    """The base of your own triggers, which run row by row in Python; a subclass is best a frozen dataclass.

    `on_element` gets each row of a window. `on_timer` is called when the clock of a timer's domain reaches its time,
    in the order of time. `on_merge` gets the contexts of the windows that become one, and fills the context of the
    new window; the state and timers of the old windows are gone after it. Each method may call `ctx.fire()` and
    `ctx.finish()`, set timers and store state. `words` may say in one line when the trigger fires, for `explain`.

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
        """Handle a new row of the window."""

    def on_merge(self, sources: list[TriggerContext], ctx: TriggerContext) -> None:
        """Handle windows that became one: `ctx` starts without state and timers."""

    def on_timer(self, tag: str, time: int, ctx: TriggerContext) -> None:
        """Handle a timer whose time has come, and which is no longer set."""

    def words(self) -> str:
        return f"when {self!r} calls ctx.fire()"

    # A dataclass has its own; these are for a subclass that is not a dataclass.
    def __eq__(self, other: object) -> bool:
        return vars(self) == vars(other) if type(other) is type(self) else NotImplemented

    def __hash__(self) -> int:
        return hash((type(self), *sorted(vars(self).items())))

    def __repr__(self) -> str:
        if is_dataclass(self):
            return super().__repr__()
        return f"{type(self).__name__}({', '.join(f'{name}={shown(value)}' for name, value in vars(self).items())})"
