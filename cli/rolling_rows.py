"""`uncombine rolling`: the rows of a file with aggregates over the period before each.

Guarded by tests/cli/test_rolling_rows.py.
"""

from __future__ import annotations

import argparse

from .. import rolling
from ..errors import InvalidArgument
from ..windows import span
from .file_rows import add_reading, read_rows
from .named_files import reading_files
from .parser import Parser, count_of
from .progress_bar import progress_bar
from .results import in_zone
from .row_output import add_output, check_output, give
from .words import add_by, add_combine, combiners_of


def add_rolling(parser: Parser) -> None:
    """The command, with its options."""
    part = parser.command("rolling", _rolling, "give each row of a file with aggregates over the period before it")
    add_reading(part)
    add_by(part)
    part.add_argument(
        "--period",
        action="append",
        default=[],
        metavar="LENGTH",
        help="the look-back, such as '7 days' or '1 month'; several have names: h1='1 hour', ever= for all before",
    )
    part.add_argument("--rows", type=count_of, metavar="N", help="instead of a period: the last so many rows")
    add_combine(part)
    ends = ["right", "left", "both", "neither"]
    part.add_argument("--closed", choices=ends, default="right", help="the ends of the period in it (default: right)")
    part.add_argument("--every", metavar="LENGTH", help="give ticks at multiples of this length, and not rows")
    part.add_argument("--order", metavar="COLUMN", help="what sorts rows of one time, for --rows")
    part.add_argument("--coarse", metavar="LENGTH", help="begin the period at a multiple of this length")
    part.add_argument("--min-rows", type=count_of, default=1, metavar="N", help="results of fewer rows are empty")
    add_output(part)
    part.remedies["--diff"] = (
        "for rows that are retracted write a flow in Python, uc.flow('events.csv', diff='diff').rolling('7 days')"
        ".combine(total=uc.Sum('x')), and run it by uncombine run"
    )


def _rolling(arguments: argparse.Namespace) -> int:
    with reading_files(arguments):
        return _rolled(arguments)


def _rolled(arguments: argparse.Namespace) -> int:
    results, periods = combiners_of(arguments.combine), _periods(arguments.period)
    check_output(arguments)
    for option in ("every", "coarse"):
        if (length := getattr(arguments, option)) is not None:
            span(length)
    with progress_bar(f"reading {arguments.file}"):
        rows = read_rows(arguments, results, arguments.order)
    table = rolling(
        rows.table,
        periods,
        rows=arguments.rows,
        by=rows.by,
        time=arguments.time,
        closed=arguments.closed,
        every=arguments.every,
        order=arguments.order,
        coarse=arguments.coarse,
        min_rows=arguments.min_rows,
        **results,
    )
    give(
        in_zone(table, arguments.time_zone),
        arguments,
        [*rows.notes, *_without_time(rows.table[arguments.time].null_count)],
    )
    return 0


def _without_time(count: int) -> list[str]:
    """The sentence about rows that have no time.

    >>> _without_time(1)
    ['1 row has no time, so its results are empty']
    """
    if not count:
        return []
    return [f"{count:,} {'row has no time, so its' if count == 1 else 'rows have no time, so their'} results are empty"]


def _periods(texts: list[str]) -> str | dict[str, str | None] | None:
    """The look-backs; one without a name, or several with names.

    >>> _periods(["7 days"]), _periods(["h1=1 hour", "ever="])
    ('7 days', {'h1': '1 hour', 'ever': None})
    """
    if not texts or (len(texts) == 1 and "=" not in texts[0]):
        return texts[0] if texts else None
    periods: dict[str, str | None] = {}
    for text in texts:
        name, sign, length = text.partition("=")
        if not sign or not name or name in periods:
            raise InvalidArgument(f"--period {text!r}: several periods have names of their own, such as h1='1 hour'")
        periods[name] = length or None
    return periods


__all__ = ["add_rolling"]


def __dir__() -> list[str]:
    return __all__
