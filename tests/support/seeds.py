"""The seeds of random suites that a run draws: an eighth of each, others on each day.

`seeds(40)` is for `parametrize`: the seeds of today are to be run. The others have the mark `soak`, and are there only
where a run asks for it.
`share(values)` draws an eighth of a long list of cases in the same way; the others have the mark `full`, so that
`make full` runs them. With `--draw` each item that needs Spark is left to it, too, but for one day of 28, and for
those marked `daily`; and each item that is marked `weekly`, or runs examples of hypothesis, the same on each day, but
for one day of seven. Of the seeds of today that need Spark, and are not marked `daily`, `make full` runs a third.
The environment variable `UNCOMBINE_SEEDS` has a date whose seeds are drawn instead, `all`, or `none`.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Collection, Iterable
from datetime import date
from typing import Any

import pytest

VARIABLE = "UNCOMBINE_SEEDS"
SHARE = 8
"""One seed in so many is drawn."""
SPARK_DAYS = 28
"""An item that needs Spark is drawn on one of so many days."""
FULL_DAYS = 2
"""An item that needs Spark and is not drawn is run by `make full` on one of so many days; on others it is left to soak.
A divisor of `SPARK_DAYS`, so that an item is run by the suite of a day or by neither."""
SUITE_DAYS = 3
"""Of the seeds of a day that need Spark one in so many is run, by `make full`; the others are left to soak."""
DAYS = 7
"""An item that is marked `weekly`, or runs examples of hypothesis, is drawn on one of so many days."""

_long = True
"""False where a run asks for no item with the mark `soak`: to collect thousands of them takes a while."""


class Seeds(list[Any]):
    """The seeds of a random suite, by which a run knows the items that have one."""


def pin() -> str:
    """The draw of this run, put into the environment, so that processes that it starts draw the same."""
    chosen = os.environ.get(VARIABLE) or date.today().isoformat()
    if chosen not in ("all", "none"):
        try:
            chosen = date.fromisoformat(chosen).isoformat()
        except ValueError:
            message = f"{VARIABLE} must be a date such as 2026-11-25, all or none, but is {chosen!r}."
            raise pytest.UsageError(message) from None
    os.environ[VARIABLE] = chosen
    return chosen


def pytest_configure(config: pytest.Config) -> None:
    global _long
    _long = "soak" in config.option.markexpr.replace("not soak", "")
    pin()


def pytest_report_header() -> str:
    return f"seeds of {pin()} ({VARIABLE}={pin()} repeats them)"


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """A failure says how to draw its seed on another day."""
    if terminalreporter.stats.get("failed") or terminalreporter.stats.get("error"):
        terminalreporter.write_line(pytest_report_header())


def drawn(count: int, pool: int, day: date) -> list[int]:
    """The places of a day among those of a pool: an eighth of `count`, going through the pool day by day."""
    share = -(-count // SHARE)
    first = day.toordinal() * share
    return sorted({(first + i) % pool for i in range(share)})


def seeds(count: int, most: int = 0, *, step: int = 1, always: Collection[int] = ()) -> Seeds:
    """The seeds 0, `step`, 2 `step`, ... up to `most`, or `count` if that is greater, as parameters of a test.

    An eighth of as many as are below `count` is drawn, from all up to `most`. `always` has seeds that once showed a
    fault, which every run takes. The others have the mark `soak`. Of a `step`, each seed is the first of a bunch.
    """
    whole = range(0, max(count, most), step)
    chosen = pin()
    if chosen == "all":
        run = {seed for seed in whole if seed < count} | set(always)
    elif chosen == "none":
        run = set()
    else:
        run = {whole[i] for i in drawn(-(-count // step), len(whole), date.fromisoformat(chosen))} | set(always)
    left = [seed for seed in whole if _long or seed in run]
    return Seeds(seed if seed in run else pytest.param(seed, marks=pytest.mark.soak) for seed in left)


def share(values: Iterable[Any]) -> list[Any]:
    """The cases of a long list, as parameters of a test that has one: those that are not drawn are left to `make full`.

    A tuple with marks or an id comes as `pytest.param`.
    """
    cases, chosen = list(values), pin()
    if chosen == "all":
        return cases
    run = () if chosen == "none" else drawn(len(cases), len(cases), date.fromisoformat(chosen))
    return [case if place in run else _left_to_full(case) for place, case in enumerate(cases)]


def has_seed(item: pytest.Item) -> bool:
    """True for an item of a random suite."""
    return any(isinstance(mark.args[-1], Seeds) for mark in item.iter_markers("parametrize") if len(mark.args) == 2)


def is_drawn(name: str, days: int) -> bool:
    """True for one of so many names, others on each day."""
    chosen = pin()
    if chosen in ("all", "none"):
        return chosen == "all"
    return (zlib.crc32(name.encode()) + date.fromisoformat(chosen).toordinal()) % days == 0


def _left_to_full(case: Any) -> Any:
    if isinstance(case, type(pytest.param())):
        return pytest.param(*case.values, marks=[*case.marks, pytest.mark.full], id=case.id)
    return pytest.param(case, marks=pytest.mark.full)


def few(count: int, most: int = 0, *, step: int = 1) -> list[int]:
    """The seeds that are drawn, for a test that looks at all of them together."""
    return [seed for seed in seeds(count, most, step=step) if isinstance(seed, int)]
