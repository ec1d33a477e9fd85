"""Properties of a trigger that are known before any data flows, and the errors that follow from them.

`tests/triggers/test_language_check.py` guards this module.
"""

from __future__ import annotations

from ..errors import InvalidArgument
from ..windows import Global, Span, Window
from .composites import AllOf, Clearing, FirstOf, RepeatCount, Repeatedly, SequenceOf
from .files_percentile import FilesPercentile
from .language import RepeatUntil, Trigger, walk
from .leaves import AfterDelay, AfterWatermark, Always, AtPeriod, Never, OnSignal, WatermarkPercentile
from .user import UserTrigger


def check_children(root: Trigger) -> None:
    """Raise for a user trigger in the tree whose children cannot be asked."""
    if isinstance(root, UserTrigger):
        root.check_children()
    for child in root.children:
        check_children(child)


def may_finish(trigger: Trigger) -> bool:
    """True if the trigger can finish while its window still takes rows."""
    match trigger:
        case Always() | Never() | Repeatedly():
            return False
        case AfterWatermark(late=late):
            return late is None
        case FirstOf():
            return any(may_finish(child) for child in trigger.children)
        case AllOf() | SequenceOf():
            return all(may_finish(child) for child in trigger.children)
        case RepeatUntil(until=until):
            return fires_ever(until)
        case RepeatCount(child=child):
            return fires_ever(child)
        case Clearing(child=child):
            return may_finish(child)
    return True


def fires_ever(trigger: Trigger) -> bool:
    """True if the trigger can fire at all."""
    match trigger:
        case Never():
            return False
        case AllOf():
            return all(fires_ever(child) for child in trigger.children)
        case SequenceOf():
            return fires_ever(trigger.children[0])
        case Repeatedly(child=child) | RepeatCount(child=child) | Clearing(child=child):
            return fires_ever(child)
        case FirstOf() | RepeatUntil():
            return any(fires_ever(child) for child in trigger.children)
    return True


def fires_once(trigger: Trigger) -> bool:
    """True if the trigger is always finished after its first firing, in a window that does not merge."""
    match trigger:
        case Always() | UserTrigger():
            return False
        case AfterWatermark(early=early, late=late):
            return late is None and (early is None or not fires_ever(early))
        case FirstOf() | AllOf():
            return all(fires_once(child) for child in trigger.children)
        case SequenceOf():
            return len(trigger.children) == 1 and fires_once(trigger.children[0])
        case Repeatedly(child=child) | RepeatUntil(child=child):
            return not fires_ever(child)
        case RepeatCount(n=n):
            return n == 1
        case Clearing(child=child):
            return fires_once(child)
    return True


def fires_only_at_the_end(trigger: Trigger) -> bool:
    """True if the trigger cannot fire before the watermark passes the end of the window."""
    match trigger:
        case AfterWatermark(early=early):
            return early is None or fires_only_at_the_end(early)
        case Never() | WatermarkPercentile(percent=100):
            return True
        case FirstOf() | RepeatUntil():
            return all(fires_only_at_the_end(child) for child in trigger.children)
        case AllOf():
            return any(fires_only_at_the_end(child) for child in trigger.children)
        case SequenceOf():
            return fires_only_at_the_end(trigger.children[0])
        case Repeatedly(child=child) | RepeatCount(child=child) | Clearing(child=child):
            return fires_only_at_the_end(child)
    return False


def finishes_only_at_the_end(trigger: Trigger) -> bool:
    """True if the trigger cannot finish before the watermark passes the end of the window."""
    match trigger:
        case AfterWatermark() | Always() | Never() | Repeatedly():
            return True
        case WatermarkPercentile(percent=percent):
            return percent == 100
        case FirstOf():
            return all(finishes_only_at_the_end(child) for child in trigger.children)
        case AllOf() | SequenceOf():
            return any(finishes_only_at_the_end(child) for child in trigger.children)
        # These two finish when a trigger fires, and AfterWatermark(early=...) fires long before it finishes.
        case RepeatUntil(until=until):
            return fires_only_at_the_end(until)
        case RepeatCount(child=child):
            return fires_only_at_the_end(child)
        case Clearing(child=child):
            return finishes_only_at_the_end(child)
    return False


def can_fire_on_global(trigger: Trigger) -> bool:
    """True if the trigger can fire in a window whose end the watermark never reaches."""
    match trigger:
        case AfterWatermark(early=early):
            return early is not None and can_fire_on_global(early)
        case WatermarkPercentile() | Never():
            return False
        case AllOf():
            return all(can_fire_on_global(child) for child in trigger.children)
        case SequenceOf():
            return can_fire_on_global(trigger.children[0])
        case FirstOf() | RepeatUntil():
            return any(can_fire_on_global(child) for child in trigger.children)
        case Repeatedly(child=child) | RepeatCount(child=child) | Clearing(child=child):
            return can_fire_on_global(child)
    return True


def uses_processing_time(trigger: Trigger) -> bool:
    """True if the trigger has timers in processing time, so that it can fire without new rows."""
    return any(
        isinstance(part, UserTrigger) or (isinstance(part, AtPeriod | AfterDelay) and part.domain == "processing")
        for part in walk(trigger)
    )


def percentiles(trigger: Trigger) -> tuple[float, ...]:
    """The percentages of all `WatermarkPercentile` in the trigger, in order."""
    return tuple(sorted({float(part.percent) for part in walk(trigger) if isinstance(part, WatermarkPercentile)}))


def signals_of(trigger: Trigger) -> tuple[OnSignal, ...]:
    """All `OnSignal` in the trigger, in order."""
    return tuple(part for part in walk(trigger) if isinstance(part, OnSignal))


def check_trigger(
    trigger: Trigger,
    window: Window,
    allowed_lateness: Span,
    bounded: bool,
    allow_finish: bool,
    each_batch: bool = False,
) -> None:
    """Raise for a trigger that would lose rows or never fire; with `each_batch` windows do not expire."""
    if any(isinstance(part, FilesPercentile) for part in walk(trigger)):
        raise InvalidArgument(
            f"{trigger!r} waits for the files of a whole job, of which a window knows nothing: give it to "
            "flow.run(until=), or wait for a percentage of the sources with WatermarkPercentile(90)"
        )
    if isinstance(window, Global) and not bounded and not can_fire_on_global(trigger):
        raise InvalidArgument(
            f"{trigger!r} can never fire on Global() over an input without end, because the watermark never reaches "
            "the end of time: use a count or a period, such as Repeatedly(AfterCount(100))"
        )
    harmless = finishes_only_at_the_end(trigger) and allowed_lateness == 0 and not each_batch
    if may_finish(trigger) and not allow_finish and not harmless:
        why = " (windows do not expire with watermark='each_batch')" if each_batch else ""
        raise InvalidArgument(
            f"{trigger!r} can finish, and its window then loses all later rows{why}: use Repeatedly({trigger!r}), "
            "or pass allow_finish=True to accept the loss"
        )
