"""Tables as people read them: the first rows, as text or HTML, with short values.

Guarded by tests/panes/test_showing.py.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from html import escape
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from .state.pane_type import PANE

ROWS = 20
"""The rows that are shown if no number is asked for."""

WIDEST = 40
"""The characters of a value that are shown. A window is longer if its ends are."""

_PARTS = 8
"""The elements of a list that are shown."""


@dataclass(frozen=True)
class TablePreview:
    """The first rows of a table as texts.

    >>> import pyarrow as pa
    >>> shown = shown_rows(pa.table({"user": ["ada", "bob"], "n": [12, 3]}), 1, "totals")
    >>> print(shown.text())
    totals
    user   n
    ada   12
    ... 1 more row
    """

    rows: Sequence[Sequence[str]]
    numbers: Sequence[bool]
    """True for a column of numbers, which stand to the right."""
    names: Sequence[str] = ()
    """The names over the columns; none over rows that need no names."""
    title: str = ""
    more: str = ""
    """The words for the rows that are not shown; empty if all are."""

    def text(self, width: int | None = None) -> str:
        """The rows in columns, in lines of at most so many characters."""
        lines = [line for line in (self.names, *self.rows) if line]
        widths = [max(map(_width, column)) for column in zip(*lines, strict=True)]
        texts = ["  ".join(map(_padded, line, widths, self.numbers)).rstrip() for line in lines]
        every = [*filter(None, [self.title]), *texts, *filter(None, [self.more])]
        return "\n".join(every if width is None else [_cut(line, width) for line in every])

    def html(self) -> str:
        """The rows as a table of HTML."""

        def line(values: Sequence[str], tag: str) -> str:
            styles = ("right" if number else "left" for number in self.numbers)
            cells = (
                f'<{tag} style="text-align: {style}">{escape(value)}</{tag}>'
                for style, value in zip(styles, values, strict=True)
            )
            return f"<tr>{''.join(cells)}</tr>"

        title = f"<caption>{escape(self.title)}</caption>" if self.title else ""
        body = "".join(line(row, "td") for row in self.rows)
        table = f"<table>{title}<thead>{line(self.names, 'th')}</thead><tbody>{body}</tbody></table>"
        return f"{table}<p>{escape(self.more)}</p>" if self.more else table

    def rich(self) -> Any:
        """The rows as a table of the library rich, which must be installed."""
        from rich.table import Table
        from rich.text import Text

        table = Table(title=Text(self.title) if self.title else None, caption=Text(self.more) if self.more else None)
        for name, number in zip(self.names, self.numbers, strict=True):
            table.add_column(Text(name), justify="right" if number else "left", no_wrap=True)
        for row in self.rows:
            table.add_row(*map(Text, row))
        return table


def shown_rows(table: pa.Table, rows: int = ROWS, title: str = "", whole: bool = True) -> TablePreview:
    """The first rows of a table as texts. With `whole=False` the table has some of the rows, and more may follow."""
    left = table.num_rows - rows
    count = f"{left} more row{'s' * (left > 1)}" if whole else "more rows"
    first = table.slice(0, rows)
    columns = [[_text(value) for value in column] for column in first.columns]
    lines = [list(line) for line in zip(*columns, strict=True)]
    numbers = [pt.is_integer(kind) or pt.is_floating(kind) or pt.is_decimal(kind) for kind in table.schema.types]
    more = f"... {count}" if left > 0 else "" if table.num_rows else "(no rows)"
    names = [_short(name) for name in table.column_names]
    return TablePreview(rows=lines, numbers=numbers, names=names, title=_clean(title), more=more)


def _text(value: pa.Scalar) -> str:
    """A value in one short line."""
    text = "".join(_pieces(value))
    return text if _is_window(value.type) else _short(text)


def _short(text: str) -> str:
    start = _clean(text[: WIDEST + 1])
    return start if len(start) <= WIDEST else start[: WIDEST - 3] + "..."


def _pieces(value: pa.Scalar) -> Iterator[str]:
    kind = value.type
    if not value.is_valid:
        yield ""
    elif kind == PANE:
        yield f"{str(value['timing'].as_py()).lower().replace('_', ' ')} {value['index'].as_py()}"
    elif _is_window(kind):
        yield _between(*("".join(_pieces(value[end])) for end in ("start", "end")))
    elif pt.is_struct(kind):
        parts = [(kind.field(i).name, "".join(_pieces(value[i]))) for i in range(kind.num_fields)]
        yield _listed("{}", [f"{name}: {text}" for name, text in parts])
    elif pt.is_list(kind) or pt.is_large_list(kind) or pt.is_fixed_size_list(kind):
        parts_of = ["".join(_pieces(part)) for part in value.values.slice(0, _PARTS)]
        yield _listed("[]", parts_of + ["..."] * (len(value.values) > _PARTS))
    else:
        yield _plain(value)


def _is_window(kind: pa.DataType) -> bool:
    """True for a start and an end that are times."""
    return pt.is_struct(kind) and [(f.name, pt.is_timestamp(f.type)) for f in kind] == [("start", True), ("end", True)]


def _between(start: str, end: str) -> str:
    """Both ends of a window; the day and the zone are said once, if they are those of both."""
    day, _, _ = start.partition(" ")
    return f"{start.removesuffix('Z') if end.endswith('Z') else start} - {end.removeprefix(f'{day} ')}"


def _listed(brackets: str, parts: Sequence[str]) -> str:
    return f"{brackets[0]}{', '.join(parts)}{brackets[1]}"


def _plain(value: pa.Scalar) -> str:
    try:
        plain = value.as_py()
    except (ValueError, OverflowError):  # a time or a length of time that Python does not have
        return _far(value)
    if isinstance(plain, datetime):
        return plain.isoformat(" ").replace("+00:00", "Z")
    return plain if isinstance(plain, str) else str(plain)


def _far(value: pa.Scalar) -> str:
    """A time outside the years of Python, or a length of time of more days than it has."""
    kind, number = value.type, value.value
    if pt.is_duration(kind):
        return f"{number:,} {kind.unit}"
    if pt.is_timestamp(kind):
        return str(np.datetime64(number, kind.unit)).replace("T", " ") + "Z" * (kind.tz is not None)
    return str(np.datetime64(number, "D" if pt.is_date32(kind) else "ms")).partition("T")[0]


def _clean(text: str) -> str:
    """A text in one line, without characters that move a cursor or turn a line around."""
    return "".join(letter if letter.isprintable() else " " for letter in text)


def _width(text: str) -> int:
    """The columns of a terminal that a text takes."""
    return sum(map(_columns, text))


def _columns(letter: str) -> int:
    if unicodedata.combining(letter):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1


def _padded(text: str, width: int, right: bool) -> str:
    room = " " * (width - _width(text))
    return room + text if right else text + room


def _cut(line: str, width: int) -> str:
    """The beginning of a line that fits into so many columns of a terminal."""
    used = 0
    for place, letter in enumerate(line):
        used += _columns(letter)
        if used > width:
            return line[:place]
    return line


__all__ = ["ROWS", "TablePreview", "shown_rows"]
