"""The context in which a user trigger works: one window, its clocks, and the state and timers of the trigger there.

`tests/panes/grouping/test_user_triggers.py` and `tests/panes/grouping/test_user_composites.py` guard this module.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..errors import InvalidArgument, TypeMismatch
from ..windows.times import timestamp
from .language import Trigger, domain_of


class ChildTrigger:
    """A child of a user trigger in one window; `ctx.children` has one for each child, in their order.

    Parameters
    ----------
    trigger
        The child as it was written.
    finished
        True if the child is finished in this window.
    active
        False if the child sees no rows and no clocks.
    wants
        True if the child wants to fire; None where that is not known.

    Examples
    --------
    >>> import uncombine as uc
    >>> child = uc.ChildTrigger(uc.AfterCount(2), wants=True)
    >>> child.trigger, child.wants, child.finished
    (AfterCount(2), True, False)
    """

    def __init__(
        self, trigger: Trigger, finished: bool = False, active: bool = True, wants: bool | None = None
    ) -> None:
        self.trigger = trigger
        """The child as it was written."""
        self.finished = finished
        """True if the child is finished."""
        self.active = active
        """Set it to False, and the child sees no rows and no clocks until it is set to True."""
        self.fires = False
        """True after `fire()`."""
        self.starts_again = False
        """True after `reset()`."""
        self._wants = wants
        self._merge: Callable[[Sequence[TriggerContext]], bool] | None = None

    @property
    def wants(self) -> bool:
        """True if the child wants to fire now; known in `on_children`."""
        if self._wants is None:
            raise InvalidArgument(f"whether {self.trigger!r} wants to fire is known in on_children alone: ask there")
        return self._wants

    def fire(self) -> None:
        """Let the child fire with this trigger, even if it does not want to at this moment."""
        if self._wants is None:
            raise InvalidArgument(f"{self.trigger!r} can be told to fire in on_children alone: call child.fire() there")
        self.fires = True

    def reset(self) -> None:
        """Put the child back to its start, as if the window were new."""
        self.finished, self.fires, self.starts_again = False, False, True
        if self._wants:
            self._wants = False

    def merge(self, sources: Sequence[TriggerContext]) -> None:
        """In `on_merge`: let the child go on from its state in these windows alone, and not in all that became one.

        `sources` are some of those of `on_merge`. Of none of them the child is at its start.
        """
        if self._merge is None:
            raise InvalidArgument(f"{self.trigger!r} merges in on_merge alone: call child.merge() there")
        self.finished, self.starts_again = self._merge(sources), False


class TriggerContext:
    """The window, clocks, results, state, timers and children that a user trigger works with.

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
    children
        The triggers that the trigger is made of.
    values
        A function that gives the result of a combiner by its name; None where there are no results.
    finished
        True if the trigger is finished in this window.

    Examples
    --------
    >>> import uncombine as uc
    >>> ctx = uc.TriggerContext(
    ...     window=(0, 60), watermark=10, processing_time=70, memo={}, values={"n": 3}.get
    ... )
    >>> ctx.set_timer("soon", 80)
    >>> if ctx.value("n") > 2:
    ...     ctx.fire(tag="many")
    >>> ctx.fired, ctx.tag, ctx.memo()["timers"]
    ('default', 'many', {'soon': [80, 'processing']})
    """

    def __init__(
        self,
        window: tuple[int, int],
        watermark: int,
        processing_time: int,
        memo: Mapping[str, Any],
        children: tuple[ChildTrigger, ...] = (),
        values: Callable[[str], Any] | None = None,
        finished: bool = False,
    ) -> None:
        self.window = window
        """Start and end, microseconds UTC."""
        self.watermark = watermark
        self.processing_time = processing_time
        self.state: dict[str, Any] = dict(memo.get("state", {}))
        self.timers: dict[str, tuple[int, str]] = {tag: (t, d) for tag, (t, d) in memo.get("timers", {}).items()}
        self.children = children
        """The children of the trigger, in their order."""
        self.fired: str | None = None
        self.tag: str | None = None
        self.finished = finished
        """True if the trigger is finished; in `on_merge` if it is in one of the windows, unless you set it."""
        self.finishes = False
        """True after `finish()`."""
        self._values = values

    def value(self, name: str) -> Any:
        """The result of the combiner `name` of the grouping, as a pane would show it now; None if there is no value.

        It is computed when it is asked for. In `on_element` all rows of the bundle are in it, and with
        granularity="record" the rows up to this one. In `on_merge` it is that of the windows that became one, without
        the rows that join them.
        """
        if self._values is None:
            raise InvalidArgument(f"ctx.value({name!r}) is not known: give TriggerContext() the results as values=")
        return self._values(name)

    def set_timer(self, tag: str, time: Any, domain: str = "processing") -> None:
        """Set a timer: `on_timer(tag, ...)` is called when the domain's clock reaches `time`.

        It replaces a timer with the same tag.
        """
        domain_of(domain, "ctx.set_timer(domain=)")
        self.timers[tag] = (timestamp(time), domain)

    def delete_timer(self, tag: str) -> None:
        """Delete a timer, if it is set."""
        self.timers.pop(tag, None)

    def fire(self, *, clear: bool | None = None, tag: str | None = None) -> None:
        """Emit a pane; `clear=` says if the window is emptied after it, in a mode that ends in `_by_default`.

        A `tag` is shown in the pane's `trigger`. Of several calls in one evaluation the last one counts.
        """
        if clear not in (None, True, False):
            raise InvalidArgument(f"ctx.fire(clear=): clear must be True, False or None, but is {clear!r}")
        if tag is not None and (not isinstance(tag, str) or not tag or "," in tag):
            raise InvalidArgument(
                f"ctx.fire(tag=): tag must be a text without a comma, such as 'spike', but is {tag!r}"
            )
        self.fired, self.tag = "default" if clear is None else "clear" if clear else "accumulate", tag

    def finish(self) -> None:
        """Finish this trigger in this window, once it has fired if it does."""
        self.finished = self.finishes = True

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
