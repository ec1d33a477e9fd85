"""User triggers: decisions in a user's own Python, row by row, and over the triggers that they are made of.

`tests/panes/grouping/test_user_triggers.py` and `tests/panes/grouping/test_user_composites.py` guard this module.
"""

from __future__ import annotations

from dataclasses import is_dataclass
from typing import TYPE_CHECKING, Any

from ..errors import InvalidArgument
from .context import TriggerContext
from .language import Trigger, shown


class _EmptyChildren:
    """The children of a trigger that names none.

    Only an object has them and not its class, so that a dataclass can have a field `children` without a default.
    """

    def __get__(self, instance: object, owner: type) -> tuple[Trigger, ...]:
        if instance is None:
            raise AttributeError("children")
        return ()


class UserTrigger(Trigger, spoken=False):
    """The base of your own triggers, which run row by row in Python; a subclass is best a frozen dataclass.

    `on_element` gets each row of a window. `on_timer` is called when the clock of a timer's domain reaches its time,
    in the order of time. `on_merge` gets the contexts of the windows that become one, by start, and fills the context
    of the new window; the state and timers of the old windows are gone after it. Each method may call `ctx.fire()`
    and `ctx.finish()`, set timers and store state. `words` may say in one line when the trigger fires, for `explain`.

    A trigger with `children`, a tuple of triggers, is a composite. It defines `on_children`, which sees the children
    that want to fire and decides. `on_start` is called before all other methods, and `on_fire` when the trigger and
    its children have fired.

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
    >>> @dataclass(frozen=True, repr=False)
    ... class Both(uc.UserTrigger):
    ...     '''Fires when all of its triggers want to fire at the same moment.'''
    ...     children: tuple[uc.Trigger, ...]
    ...     def on_children(self, ctx):
    ...         if all(child.wants for child in ctx.children):
    ...             ctx.fire()
    >>> Both((uc.AfterCount(2), uc.Always()))
    Both((AfterCount(2), Always()))
    """

    if TYPE_CHECKING:
        children: tuple[Trigger, ...]
    else:
        children = _EmptyChildren()

    def on_start(self, ctx: TriggerContext) -> None:
        """Prepare a new window, or one in which this trigger starts again; called before all other methods."""

    def on_element(self, row: dict[str, Any], window: tuple[int, int], ctx: TriggerContext) -> None:
        """Handle a new row of the window; the children see it after this."""

    def on_merge(self, sources: list[TriggerContext], ctx: TriggerContext) -> None:
        """Handle windows that became one: `ctx` starts without state and timers, its children have merged.

        `child.merge(sources)` lets a child of `ctx` go on from some of the windows alone, and `ctx.finished` says
        whether the trigger is finished: it is, if it was in one of the windows, unless you set it.
        """

    def on_timer(self, tag: str, time: int, ctx: TriggerContext) -> None:
        """Handle a timer whose time has come, and which is no longer set."""

    def on_children(self, ctx: TriggerContext) -> None:
        """Decide: called when rows came, when a timer of this trigger came, and when a child begins to want to fire.

        `ctx.fire()` fires this trigger, and with it the children that want to fire.
        """

    def on_fire(self, ctx: TriggerContext) -> None:
        """Handle the firing of this trigger, after its children have fired and before the pane is made."""

    def words(self) -> str:
        return f"when {self!r} calls ctx.fire()" + (", over its children:" if self.children else "")

    def check_children(self) -> None:
        """Raise for children that are no triggers, or that the trigger would never ask."""
        name, children = type(self).__name__, self.children
        if not isinstance(children, tuple) or not all(isinstance(child, Trigger) for child in children):
            raise InvalidArgument(
                f"the children of {name} must be a tuple of triggers such as (AfterCount(1),), but are {children!r}"
            )
        if children and type(self).on_children is UserTrigger.on_children:
            raise InvalidArgument(
                f"{name} has children and never asks them: define on_children(self, ctx), which calls ctx.fire()"
            )

    # A dataclass has its own; these are for a subclass that is not a dataclass.
    def __eq__(self, other: object) -> bool:
        return vars(self) == vars(other) if type(other) is type(self) else NotImplemented

    def __hash__(self) -> int:
        return hash((type(self), *sorted(vars(self).items())))

    def __repr__(self) -> str:
        if is_dataclass(self):
            return super().__repr__()
        return f"{type(self).__name__}({', '.join(f'{name}={shown(value)}' for name, value in vars(self).items())})"
