"""Tables as people read them: bounded, in lines that stay lines whatever is in the values."""

from __future__ import annotations

import io
import re
import sys
from typing import Any

import pyarrow as pa
import pytest

import uncombine as uc
from uncombine.panes.grouping.pane_columns import PANE, WINDOW
from uncombine.panes.showing import shown_rows
from uncombine.tables import watching

HARD = pa.table(
    {
        "<b>&'\"": ["<script>alert(1)</script>", "[red]a[/red] \x1b[2J\x9b1A\r\n\t\u202e", "鸭🦆", None],
        "n": pa.array([1, -20, None, 3], pa.int64()),
        "long": ["x" * 1_000_000, "", "a", "b"],
        "list": pa.array([list(range(1_000)), None, [], [None]], pa.list_(pa.int64())),
        "struct": pa.array([{"a": 1, "b": None}, None, {"a": None, "b": "x"}, {"a": 2, "b": "y"}]),
        "time": pa.array([0, 1, 2**62, -(2**62)], pa.timestamp("us", "UTC")),
        "window": pa.array([{"start": 0, "end": 60_000_000}, None, None, None], WINDOW),
        "pane": pa.array([{"index": 3, "timing": "ON_TIME"}, None, None, None], PANE),
    }
)


def test_hard_values_stay_in_their_lines() -> None:
    text = shown_rows(HARD, 3, "t\n").text()
    lines = text.split("\n")
    assert len(lines) == 1 + 1 + 3 + 1
    assert all(letter.isprintable() or letter == "\n" for letter in text)
    assert max(map(len, lines)) < 300
    assert lines[-1] == "... 1 more row"
    for part in ("x" * 37 + "...", "[0, 1, 2, 3, 4, 5, 6, 7, ...]", "{a: 1, b: }", "on time 3", str(2**62)):
        assert part in text
    assert "1970-01-01 00:00:00Z to 1970-01-01 00:01:00Z" not in text, "a value has at most 40 characters"
    assert "1970-01-01 00:00:00Z to 1970-01-01 00..." in text


def test_columns_stand_below_each_other() -> None:
    lines = shown_rows(pa.table({"k": ["鸭", "ab", "e\u0301"], "n": [1, 20, 300]})).text().split("\n")
    assert lines == ["k     n", "鸭    1", "ab   20", "e\u0301   300"]
    assert shown_rows(pa.table({"k": ["鸭鸭鸭"]})).text(width=5) == "k\n鸭鸭"
    assert shown_rows(pa.table({"k": pa.array([], pa.int64())})).text() == "k\n(no rows)"
    assert shown_rows(pa.table({})).text() == "(no rows)"
    assert shown_rows(pa.table({"x" * 99: [1]}), title="t" * 99).text().split("\n")[:2] == ["t" * 99, "x" * 37 + "..."]


def test_html_has_only_its_own_tags() -> None:
    html = shown_rows(HARD, 2, "<i>").html()
    assert "<script" not in html
    assert "<b>" not in html
    assert "<i>" not in html
    assert html.count("<tr>") == 3
    assert "... 2 more rows" in html


def test_rich_takes_values_as_they_are() -> None:
    console = pytest.importorskip("rich.console").Console(file=io.StringIO(), width=400)
    console.print(shown_rows(HARD, 2).rich())
    text = console.file.getvalue()
    assert "[red]a[/red]" in text
    assert "\x1b" not in text
    assert len(text.splitlines()) == 2 + 4 + 1


def result() -> Any:
    script = [uc.Elements([{"ts": i * 60_000_000, "x": i} for i in range(30)]), uc.Watermark(None)]
    return uc.flow(script).window(uc.Fixed("1 minute")).combine(total=uc.Sum("x")).run()


def test_a_result_shows_its_first_rows() -> None:
    found = result()
    assert repr(found).split("\n")[0].split() == ["window", "total", "event_time", "diff", "pane", "step"]
    assert repr(found).split("\n")[-1] == "... 10 more rows"
    assert found._repr_html_().count("<tr>") == 21
    assert found.__rich__().row_count == 20


def test_a_result_tells_how_many_rows_were_left_out() -> None:
    script = [uc.Elements([{"ts": 0, "x": 1}, {"ts": None, "x": 1}]), uc.Watermark("1970-01-02")]
    script += [uc.Elements([{"ts": ts, "x": 1} for ts in (0, 1)])]
    found = uc.flow(script).window(uc.Fixed("1 minute")).combine(n=uc.Count()).run()
    assert repr(found).split("\n")[-1] == "3 rows left out (1 bad, 2 late): see left_out"
    none = uc.flow(script[2:]).window(uc.Fixed("1 minute")).combine(n=uc.Count()).run()
    assert "left out" not in repr(none)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown_on(out: Any, tables: list[pa.Table], rows: int = 20) -> str:
    given = iter(tables)
    left = iter([False] * (len(tables) - 1) + [True])
    watching.watched(lambda limit: next(given), lambda every: next(left), "t", rows, out=out)
    return str(out.getvalue())


def screen(said: str, height: int = 24, width: int = 80) -> list[str]:
    """The lines of a terminal after it has got a text, those too that have left it at the top."""
    lines, row = [""], 0
    for up, clear, newline, letter in re.findall(r"\x1b\[(\d+)A|\x1b\[(J)|\x1b\[[\d;]*m|(\n)|([^\x1b])", said):
        if up:
            row = max(row - int(up), len(lines) - height, 0)
        elif clear:
            lines[row:] = [""]
        elif newline or (letter and len(lines[row]) == width):
            row += 1
            lines += [""] * (row == len(lines))
        lines[row] += letter
    return lines


@pytest.mark.parametrize("by_rich", [False, True])
def test_a_terminal_shows_one_table_that_fits(by_rich: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if by_rich:
        pytest.importorskip("rich")
    else:
        monkeypatch.setitem(sys.modules, "rich", None)
    tall = pa.table({f"k{i}": ["x" * 200] * 30 for i in range(4)})
    lines = screen(shown_on(Terminal(), [tall, tall.slice(1), HARD, tall.slice(2)], rows=30))
    assert [line.strip() for line in lines].count("t") == 1
    assert len(lines) <= 24
    assert any("xxx" in line for line in lines)
    assert not any("red" in line for line in lines)
    assert any("... more rows" in line for line in lines)


def test_a_notebook_shows_one_table(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = list[tuple[str, dict[str, str]]]()

    class Handle:
        def update(self, data: dict[str, str], raw: bool) -> None:
            shown.append(("update", data))

    class Display:
        @staticmethod
        def display(data: dict[str, str], raw: bool, display_id: bool) -> Handle:
            shown.append(("display", data))
            return Handle()

    class IPython:
        display = Display

        @staticmethod
        def get_ipython() -> Any:
            return type("Shell", (), {"kernel": 1})()

    monkeypatch.setitem(sys.modules, "IPython", IPython)
    tables = iter([pa.table({"k": ["<a>"]}), pa.table({"k": ["b"]})])
    left = iter([False, True])
    watching.watched(lambda limit: next(tables), lambda every: next(left), "t")
    assert [how for how, _ in shown] == ["display", "update"]
    assert shown[0][1]["text/plain"] == "t\nk\n<a>"
    assert "&lt;a&gt;" in shown[0][1]["text/html"]
