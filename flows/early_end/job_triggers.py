"""Triggers asked about a whole job: by the files and rows that were read, and by the clock of the run.

A job has no keys and no windows, so each of these triggers fires once, and no more rows are read. They never stop being
ready: `FirstOf` and `AllOf` are what "or" and "and" say.

Guarded by tests/local/test_early_end.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ...errors import InvalidArgument
from ...triggers import AfterCount, AfterDelay, AllOf, FilesPercentile, FirstOf, Trigger, as_trigger, walk
from ...windows.texts import require_short

_OR = re.compile(r"\s+or\s+", re.IGNORECASE)
_NUMBER = re.compile(r"\s*\d")


@dataclass(frozen=True)
class Progress:
    """The part of a job that has been done."""

    rows: int
    """The rows that were read."""
    files: int
    """The files that were read to their end."""
    all_files: int
    micros: int
    """The time since the job began, in microseconds."""


def job_trigger(until: Trigger | str) -> Trigger:
    """The trigger of `until=`, of which a text may leave out "after" and have "or"; raises for one of windows alone.

    >>> job_trigger("90% of files or 10 minutes")
    FirstOf(FilesPercentile(90), AfterDelay('10 minutes'))
    """
    trigger = as_trigger(_spoken(until) if isinstance(until, str) else until, "until=")
    for part in walk(trigger):
        known = isinstance(part, FilesPercentile | AfterCount | AfterDelay | FirstOf | AllOf)
        if not known or (isinstance(part, AfterDelay) and part.domain != "processing"):
            raise InvalidArgument(
                f"until= ends a whole job, which has no windows and no watermark, so {part!r} says nothing about it: "
                "give FilesPercentile(90), AfterCount(1000), AfterDelay('10 minutes') of processing time, or FirstOf "
                "or AllOf of these"
            )
    return trigger


def _spoken(text: str) -> Trigger | str:
    """A text as triggers are written in words, or the trigger of several."""
    require_short(text, "a trigger")
    if "(" in text:
        return text
    parts = [f"after {part.strip()}" if _NUMBER.match(part) else part for part in _OR.split(text)]
    return parts[0] if len(parts) == 1 else FirstOf(*parts)


def fired(trigger: Trigger, progress: Progress) -> Trigger | None:
    """The part of a trigger that ends a job; None if the job goes on.

    >>> fired(FirstOf("after 9 rows", "after 50 % of the files"), Progress(rows=5, files=1, all_files=2, micros=0))
    FilesPercentile(50)
    """
    match trigger:
        case AfterCount(n=n):
            return trigger if progress.rows >= n else None
        case FilesPercentile(percent=percent):
            return trigger if 100 * progress.files >= percent * progress.all_files else None
        case AfterDelay(delay=delay):
            return trigger if progress.micros >= int(delay) else None  # type: ignore[arg-type]
        case FirstOf():
            return next(filter(None, (fired(child, progress) for child in trigger.children)), None)
        case _:
            return trigger if all(fired(child, progress) for child in trigger.children) else None


def counts_of(trigger: Trigger) -> list[int]:
    """The numbers of rows at which a trigger is to be asked, in their order."""
    return sorted({part.n for part in walk(trigger) if isinstance(part, AfterCount)})


def words_of(trigger: Trigger) -> Iterator[str]:
    """The trigger of a job in words: a line for each part, indented by its depth."""
    match trigger:
        case AfterCount(n=n):
            yield f"when {n:,} row{'s' * (n > 1)} {'have' if n > 1 else 'has'} been read"
        case FilesPercentile(percent=percent):
            yield f"when {percent:.15g} % of the files have been read"
        case AfterDelay(delay=delay):
            yield f"when a clock is asked {delay!s} or more after the run began"
        case _:
            yield f"when {'any' if isinstance(trigger, FirstOf) else 'each'} of these has fired:"
            for child in trigger.children:
                yield from (f"  {line}" for line in words_of(child))


__all__ = ["Progress", "counts_of", "fired", "job_trigger", "words_of"]
