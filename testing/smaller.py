"""Smaller scripts that show the same fault: entries and rows are left out, reports dropped, values made equal.

Guarded by tests/testing/test_testing.py.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from ..local.script import Clock, Elements, Entry, Watermark
from .check import Problem
from .script_inputs import Input

MOST_RUNS = 400
"""The number of scripts that are tried."""

Script = list[Entry]


class Smaller:
    """A search for a smaller script with a fault of the same kind."""

    def __init__(self, fault: Callable[[Script], Problem | None], inputs: Sequence[Input], runs: int) -> None:
        self.fault, self.inputs, self.left = fault, inputs, runs

    def run(self, script: Script, problem: Problem) -> tuple[Script, Problem]:
        """The smallest script that was found, and its fault."""
        while self.left > 0:
            for smaller in self._smaller(script):
                if self.left <= 0:
                    break
                if _size(smaller) >= _size(script) or not _sound(smaller, self.inputs):
                    continue
                self.left -= 1
                fault = self.fault(smaller)
                if fault is not None and fault.kind == problem.kind:
                    script, problem = smaller, fault
                    break
            else:
                break
        return script, problem

    def _smaller(self, script: Script) -> Iterator[Script]:
        """Scripts that are smaller in one respect, those that save most first. The end of the input stays."""
        *entries, end = script
        size = len(entries)
        while size >= 1:
            for at in range(0, len(entries), size):
                yield [*entries[:at], *entries[at + size :], end]
            size //= 2
        for at, entry in enumerate(entries):
            for other in _simpler(entry):
                yield [*entries[:at], *other, *entries[at + 1 :], end]
        for at, (one, two) in enumerate(itertools.pairwise(entries)):
            if isinstance(one, Elements) and isinstance(two, Elements) and one.input == two.input:
                both = replace(one, rows=[*one.rows, *two.rows], watermarks=[*one.watermarks, *two.watermarks])
                yield [*entries[:at], both, *entries[at + 2 :], end]
        if any(isinstance(entry, Elements | Watermark) and entry.at is not None for entry in entries):
            yield [*(_without_clock(entry) for entry in entries if not isinstance(entry, Clock)), end]
        yield from ([*made, end] for made in self._equal_values(entries))

    def _equal_values(self, entries: Script) -> Iterator[Script]:
        """Scripts in which one value of a column became a simpler one that the column has too."""
        for one in self.inputs:
            names = [one.time, *one.user]
            for name in names:
                rows = [row for entry in _of(entries, one) for row in entry.rows]
                values = sorted({_key(row.get(name)): row.get(name) for row in rows}.items())
                for place, (_, value) in enumerate(values):
                    rounded = [value[:19] + "Z"] if name == one.time and value is not None and len(value) > 20 else []
                    for simpler in [*(simpler for _, simpler in values[:place]), *rounded]:
                        yield [_changed(entry, one, name, value, simpler) for entry in entries]


def _size(script: Script) -> tuple[int, int, int, int, str]:
    """The size of a script: rows, entries, reports and clocks, values that differ."""
    rows = [row for entry in script if isinstance(entry, Elements) for row in entry.rows]
    reports = sum(len(entry.watermarks) for entry in script if isinstance(entry, Elements))
    clocks = sum(getattr(entry, "at", None) is not None for entry in script)
    values = [_key(value) for row in rows for value in row.values()]
    return len(rows), len(script) + reports, clocks, len(set(values)), "".join(text for _, text in values)


def _key(value: Any) -> tuple[int, str]:
    """Sorts values, the simplest first; null is the least simple, because it is the rarest."""
    text = repr(value)
    return (len(text) + 100 * (value is None), text)


def _simpler(entry: Entry) -> Iterator[list[Entry]]:
    """Entries that say less, instead of one."""
    if not isinstance(entry, Elements):
        return
    rows = list(entry.rows)
    size = len(rows) // 2
    while size >= 1:
        for at in range(0, len(rows), size):
            if fewer := [*rows[:at], *rows[at + size :]]:
                yield [replace(entry, rows=fewer)]
        size //= 2
    if entry.watermarks:
        yield [replace(entry, watermarks=())]


def _without_clock(entry: Entry) -> Entry:
    return replace(entry, at=None) if isinstance(entry, Elements | Watermark) else entry


def _of(entries: Sequence[Entry], one: Input) -> list[Elements]:
    return [entry for entry in entries if isinstance(entry, Elements) and entry.input == one.name]


def _changed(entry: Entry, one: Input, name: str, value: Any, simpler: Any) -> Entry:
    if not isinstance(entry, Elements) or entry.input != one.name:
        return entry
    return replace(entry, rows=[{**row, name: simpler} if row.get(name) == value else row for row in entry.rows])


def _sound(script: Script, inputs: Sequence[Input]) -> bool:
    """True if no row is retracted more often than it came, and rows that need a processing time have one."""
    for one in inputs:
        entries = _of(script, one)
        if one.timed and any(entry.at is None for entry in entries):
            return False
        if one.diff is None:
            continue
        net: Counter[str] = Counter()
        for entry in entries:
            for row in entry.rows:
                net[repr([value for n, value in row.items() if n not in (one.diff, one.processing_time)])] += row[
                    one.diff
                ]
            if min(net.values(), default=0) < 0:
                return False
    return True


__all__ = ["MOST_RUNS", "Smaller"]
