"""The options of a picture of a replay: the file, and the key and the times that it shows.

Guarded by tests/cli/test_replay.py.
"""

from __future__ import annotations

import argparse
from datetime import datetime
from typing import Any

import pyarrow as pa

from ..combiners import col
from ..errors import InvalidArgument, require_column
from ..plot import picture_file
from ..windows.texts import quoted
from .conditions import Clock, value_of
from .parser import Parser
from .words import key_name


def add_plot(parser: Parser) -> None:
    """The options, on a command that replays rows."""
    parser.add_argument(
        "--plot",
        metavar="FILE",
        help="draw the panes with the first result: an .html file plays them, .png or .svg is a picture; one that is "
        "there is replaced",
    )
    parser.add_argument(
        "--plot-where", metavar="COLUMN=VALUE", action="append", default=[], help="draw only this key; may be repeated"
    )
    parser.add_argument(
        "--plot-between",
        metavar=("START", "END"),
        nargs=2,
        help="draw only the windows between two times, such as 2024-05-01T12:00 2024-05-01T13:00; times without a zone "
        "are by the clock of --time-zone",
    )


def check_plot(arguments: argparse.Namespace) -> None:
    """Raise for options of a picture that cannot be drawn, before anything is read."""
    if arguments.plot:
        picture_file.check_path(arguments.plot, "--plot")
    elif arguments.plot_where or arguments.plot_between:
        raise InvalidArgument("--plot-where and --plot-between say what a picture shows: give its file too, by --plot")
    for text in arguments.plot_where:
        name = _name(text)
        if not arguments.by:
            raise InvalidArgument(f"--plot-where {quoted(text)} asks for a key, and there is none: give --by {name}")
        require_column(name, [*{key_name(key) for key in arguments.by}], "--plot-where")
    if arguments.plot_between:
        _between(arguments)


def plot_scope(arguments: argparse.Namespace, columns: pa.Schema) -> dict[str, Any]:
    """The key and the times that a picture shows, as its functions take them."""
    where = {_name(text): _value(text, columns) for text in arguments.plot_where}
    return {"where": where, "between": _between(arguments)}


def scope_words(arguments: argparse.Namespace) -> list[str]:
    """The key and the times that a picture shows, for its title."""
    between = _between(arguments)
    times = [] if between is None else [" - ".join(f"{time:%Y-%m-%d %H:%M}" for time in between) + " UTC"]
    return [*arguments.plot_where, *times]


def _between(arguments: argparse.Namespace) -> list[datetime] | None:
    if arguments.plot_between is None:
        return None
    clock = Clock(arguments.time, col(arguments.time), arguments.time_zone)
    try:
        low, high = (clock.value(text) for text in arguments.plot_between)
    except ValueError:
        raise InvalidArgument(
            f"--plot-between takes two times, such as {clock.example.replace(' ', 'T')}, but was given "
            f"{' and '.join(map(quoted, arguments.plot_between))}"
        ) from None
    if high <= low:
        raise InvalidArgument("--plot-between takes the earlier time first: turn the two round")
    return [low, high]


def _name(text: str) -> str:
    name, equals, _ = text.partition("=")
    if not equals:
        raise InvalidArgument(f"--plot-where takes COLUMN=VALUE such as user=ada, but was given {quoted(text)}")
    return name.strip()


def _value(text: str, columns: pa.Schema) -> Any:
    name, value = _name(text), text.partition("=")[2]
    kind = columns.field(name).type
    try:
        return value_of(value, kind) if value else None
    except (ValueError, ArithmeticError, LookupError):
        raise InvalidArgument(f"--plot-where {quoted(text)}: column {name!r} is {kind}, which this is not") from None


__all__ = ["add_plot", "check_plot", "plot_scope", "scope_words"]


def __dir__() -> list[str]:
    return __all__
