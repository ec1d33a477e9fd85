"""Triggers in words."""

from __future__ import annotations

from .composites import AllOf, FirstOf, RepeatCount, Repeatedly, RepeatUntil, SequenceOf
from .language import Trigger, shown
from .leaves import (
    AfterBytes,
    AfterCount,
    AfterDelay,
    AfterWatermark,
    Always,
    AtPeriod,
    Never,
    OnPunctuation,
    OnResult,
    WatermarkPercentile,
)


def explain(trigger: Trigger) -> str:
    """A line for each part of a trigger, indented by depth."""
    return "\n".join(_lines(trigger, 0))


def _lines(trigger: Trigger, depth: int) -> list[str]:
    head, parts = _words(trigger)
    lines = ["  " * depth + head]
    for label, part in parts:
        if label:
            lines.append("  " * (depth + 1) + label)
        lines += _lines(part, depth + (2 if label else 1))
    return lines


def _words(trigger: Trigger) -> tuple[str, list[tuple[str, Trigger]]]:
    match trigger:
        case AfterWatermark(early, late):
            parts = [("before that, again and again:", early), ("after that, again and again:", late)]
            return "once, when the watermark passes the end of the window", [(t, p) for t, p in parts if p is not None]
        case WatermarkPercentile(percent):
            return f"once, when {percent:.15g} % of the sources have passed the end of the window", []
        case AtPeriod(period, origin, domain):
            start = f" counted from {origin}" if origin else ""
            return f"at every {_instants(str(period))} of {_clock(domain)}{start} that follows a row", []
        case AfterDelay(delay, domain):
            return f"{delay!s} of {_clock(domain)} after the first row", []
        case AfterCount(n):
            return f"when {n} row{'s have' if n > 1 else ' has'} come", []
        case AfterBytes(n, of):
            columns = " of " + ", ".join(of) if of else ""
            return f"when {n} byte{columns} has come" if n == 1 else f"when {n} bytes{columns} have come", []
        case OnPunctuation(predicate):
            return f"when a row satisfies {shown(predicate)}", []
        case OnResult(predicate):
            return f"when the result satisfies {shown(predicate)}", []
        case Always():
            return "after every bundle with rows", []
        case Never():
            return "never: what is left comes out when the window expires", []
        case FirstOf():
            return "when any of these fires:", [("", part) for part in trigger.children]
        case AllOf():
            return "when all of these are ready:", [("", part) for part in trigger.children]
        case SequenceOf():
            return "one after the other:", [("", part) for part in trigger.children]
        case Repeatedly(child):
            return "again and again:", [("", child)]
        case RepeatUntil(child, until):
            return "again and again:", [("", child), ("until this fires, which is the last time:", until)]
        case RepeatCount(child, n):
            return f"{n} times in all:" if n > 1 else "once in all:", [("", child)]
    return f"when {trigger!r} says so", []


def _instants(period: str) -> str:
    """The multiples of a period: `full minute` for one of a unit, `multiple of 90 seconds` for others."""
    count, _, unit = period.partition(" ")
    return f"full {unit}" if count == "1" and " " not in unit else f"multiple of {period}"


def _clock(domain: str) -> str:
    return "processing time" if domain == "processing" else "event time"
