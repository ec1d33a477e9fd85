"""The words of windows and triggers, from the values: the other way than the library reads them."""

from __future__ import annotations

import zlib
from typing import Any

import uncombine as uc
from uncombine.triggers import UserTrigger, walk
from uncombine.windows import Window
from uncombine.windows.texts import LONGEST

Value = Window | uc.Trigger


def said(value: Any) -> Any:
    """A window or a trigger, or its text for three values of four: in words if it has some, or as it prints itself.

    The choice follows from the value, so that a random flow is the same with and without it.
    """
    if value is None:
        return None
    choice = zlib.crc32(repr(value).encode()) % 4
    if choice == 0 or not _reads_back(value) or len(repr(value)) > LONGEST:
        return value
    return repr(value) if choice == 1 else words_of(value) or repr(value)


def words_of(value: Value) -> str | None:
    """The words of a window or a trigger; None if it has none."""
    return _window_words(value) if isinstance(value, Window) else _trigger_words(value)


def _window_words(window: Window) -> str | None:
    match window:
        case uc.Global() | uc.Inherit():
            return repr(window).lower().removesuffix("()")
        case uc.Fixed(size=size) if window == uc.Fixed(size):
            return str(size) if size % 2_000_000 else f"fixed {size}"
        case uc.Sliding(size=size, period=period) if window == uc.Sliding(size, period):
            return f"sliding {size} every {period}"
        case uc.Sessions(gap=uc.Span() as gap):
            return f"sessions {gap}"
        case uc.Calendar(unit=unit, tz=tz) if window == uc.Calendar(unit, tz):
            return f"1 {unit}" if tz == "UTC" and unit in ("month", "quarter", "year") else f"calendar {unit} {tz}"
    return None


def _trigger_words(trigger: uc.Trigger) -> str | None:
    match trigger:
        case uc.AfterWatermark(early=None, late=uc.AfterCount(n=1)):
            return "watermark"
        case uc.AfterWatermark(early=early, late=late) if late is not None:
            parts = [("early", early)] * (early is not None)
            parts += [("late", late)] * (early is None or late != uc.AfterCount(1))  # `early ...` alone has this one
            texts = [(name, _once(part)) for name, part in parts]
            return ", ".join(f"{name} {text}" for name, text in texts) if all(text for _, text in texts) else None
        case uc.Repeatedly(child=child) if (text := _once(child)) is not None:
            return text if text.startswith("every") else f"repeatedly {text}"
        case uc.AfterWatermark() | uc.Repeatedly():
            return None
        case uc.Clearing(child=uc.AfterWatermark(early=None, late=uc.AfterCount(n=1))):
            return "watermark and clear"
        case uc.Clearing(child=uc.AtPeriod() | uc.Clearing()):
            return None
        case uc.AtPeriod():
            return None  # `every 1 minute` goes on
    text = _once(trigger)
    return text.replace("every", "after") if text else None


def _once(trigger: uc.Trigger) -> str | None:
    """The words of a trigger that stands where it is repeated."""
    match trigger:
        case uc.AfterCount(n=n):
            return f"every {n} row{'s' * (n > 1)}"
        case uc.AfterBytes(n=n, of=None):
            return f"every {n} byte{'s' * (n > 1)}"
        case uc.AtPeriod(period=length, domain=domain, origin=None):
            return f"every {length}{' of event time' if domain == 'event' else ''}"
        case uc.AfterDelay(delay=length, domain=domain):
            return f"after {length}{' of event time' if domain == 'event' else ''}"
        case uc.WatermarkPercentile(percent=percent):
            return f"after {percent} % of the sources"
        case uc.FilesPercentile(percent=percent):
            return f"after {percent} % of the files"
        case uc.Clearing(child=child) if not isinstance(child, uc.Clearing) and (text := _once(child)):
            return f"{text} and clear"
        case uc.Always():
            return "each row"
        case uc.Never():
            return "never"
    return None


def _reads_back(value: Value) -> bool:
    """True if nothing in a value is a function, a class of the user or, in a window, an expression."""
    if isinstance(value, Window):
        return (not isinstance(value, uc.Custom) and not value.columns) or isinstance(value, uc.Inherit)
    return not any(isinstance(part, UserTrigger) or _has_function(part) for part in walk(value))


def _has_function(part: uc.Trigger) -> bool:
    return isinstance(part, uc.OnPunctuation | uc.OnResult) and not isinstance(part.predicate, uc.Expr)
