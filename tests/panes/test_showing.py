"""Tables as people read them: bounded, in lines that stay lines whatever is in the values."""

from __future__ import annotations

import io
import re
import sys
import time
from html import escape
from typing import Any

import pyarrow as pa
import pytest

import uncombine as uc
from uncombine.panes.grouping.pane_columns import WINDOW
from uncombine.panes.showing import shown_rows
from uncombine.panes.state.pane_type import PANE
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
    for part in ("x" * 37 + "...", "[0, 1, 2, 3, 4, 5, 6, 7, ...]", "{a: 1, b: }", "on time 3"):
        assert part in text
    assert "148108-07-06 14:00:27.387904Z" in text, "a time that Python does not have is no number"
    assert str(2**62) not in text


UTC = pa.timestamp("us", "UTC")


def window_of(start: Any, end: Any, kind: pa.DataType = UTC) -> str:
    ends = [pa.array([text]).cast(kind) for text in (start, end)]
    return shown_rows(pa.table({"window": pa.StructArray.from_arrays(ends, ["start", "end"])})).rows[0][0]


@pytest.mark.parametrize(
    ("start", "end", "kind", "want"),
    [
        ("2016-01-20T12:00:00Z", "2016-01-20T12:01:00Z", UTC, "2016-01-20 12:00:00 - 12:01:00Z"),
        ("2016-01-20T23:59:00Z", "2016-01-21T00:00:00Z", UTC, "2016-01-20 23:59:00 - 2016-01-21 00:00:00Z"),
        ("2016-01-20T12:00:00", "2016-01-20T12:01:00", pa.timestamp("s"), "2016-01-20 12:00:00 - 12:01:00"),
        (None, "2016-01-20T12:01:00Z", UTC, " - 2016-01-20 12:01:00Z"),
        ("2016-01-20T12:01:00Z", None, UTC, "2016-01-20 12:01:00Z - "),
        (
            "2016-01-20T12:00:00.000001Z",
            "2016-02-20T12:00:00.999999Z",
            UTC,
            "2016-01-20 12:00:00.000001 - 2016-02-20 12:00:00.999999Z",
        ),
    ],
)
def test_a_window_shows_both_of_its_ends(start: Any, end: Any, kind: pa.DataType, want: str) -> None:
    assert window_of(start, end, kind) == want


@pytest.mark.parametrize("window", ["1 minute", "1 month", "sessions 1 minute", "sliding 1 day every 1 hour"])
def test_no_window_of_a_result_is_cut(window: str) -> None:
    rows = [{"ts": 1_453_291_226_123_456 + i * 3_600_000_001, "x": i} for i in range(30)]
    found = uc.flow(rows).window(window).combine(n=uc.Count()).run()
    texts = {line[0] for line in shown_rows(found.panes, 1_000).rows}
    want = set()
    for row in found:
        start, end = (str(row["window"][end].replace(tzinfo=None)) for end in ("start", "end"))
        want.add(f"{start} - {end.removeprefix(start[:11]) if start[:10] == end[:10] else end}Z")
    assert texts == want


@pytest.mark.parametrize(
    ("value", "kind", "want"),
    [
        (2**62, pa.timestamp("s"), "146138514283-06-19 07:45:04"),
        (2**62, pa.duration("s"), "4,611,686,018,427,387,904 s"),
        (-(2**62), pa.date64(), "-146136543-09-08"),
        (2**30, pa.date32(), "2941775-04-07"),
    ],
)
def test_a_time_that_python_does_not_have_is_a_time(value: int, kind: pa.DataType, want: str) -> None:
    assert shown_rows(pa.table({"x": pa.array([value], kind)})).rows == [[want]]


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


def waiting(script: list[Any], window: str = "1 minute", **options: Any) -> str:
    found = uc.flow(script).window(window, **options).combine(by="k", n=uc.Count()).run()
    return repr(found).split("\n")[-1]


TWO = uc.Elements([{"ts": 0, "k": "a"}, {"ts": 0, "k": "b"}, {"ts": 61_000_000, "k": "a"}])
END = "end the script with uc.Watermark(None)"


def test_a_result_tells_which_windows_wait() -> None:
    assert waiting([TWO]) == f"0 panes; 3 windows wait for the watermark: {END}"
    assert waiting([TWO], "global") == f"0 panes; 2 windows wait for the watermark: {END}"
    assert waiting([TWO, uc.Watermark(60_000_000)]) == f"1 window waits for the watermark: {END}"
    assert "wait" not in waiting([TWO, uc.Watermark(None)])
    assert "wait" not in waiting([TWO], trigger="each row"), "all rows have been shown"
    more = uc.Elements([{"ts": 0, "k": "a"}])
    assert "wait" not in waiting([TWO, TWO], trigger="every 2 rows")
    assert waiting([TWO, TWO, more], trigger="every 2 rows") == f"1 window waits for the watermark: {END}"
    assert "wait" not in waiting([TWO], trigger="every 2 rows", closing="never"), "no watermark will show them"


def test_rows_in_order_and_steps_before_them_wait_too() -> None:
    rows = uc.flow([TWO])
    assert repr(rows.in_order().run()).endswith(f"0 panes; 3 rows wait for the watermark: {END}")
    both = rows.in_order().window("1 minute", "each row").combine(n=uc.Count()).window("1 hour").combine(n=uc.Sum("n"))
    part = both.run([TWO, uc.Watermark(61_000_000)])
    assert repr(part).endswith(f"0 panes; 1 row waits and 1 window waits for the watermark: {END}")
    seen = uc.flow([{"ts": 0, "seen": 0}], watermark="1 minute", processing_time="seen").replay()
    played = seen.window("1 minute").combine(n=uc.Count()).run()
    assert repr(played).endswith("0 panes; 1 window waits for the watermark: write .replay(close_at_end=True)")


def test_html_of_values_says_what_they_are() -> None:
    for combiner in (
        uc.Sum("<x>"),
        uc.Max("x"),
        uc.ApproxCountDistinct("x").where(uc.col("x") < 3),
        uc.Sum("x", exact=True),
    ):
        html = combiner._repr_html_()
        assert "<x>" not in html
        assert f"<code>{escape(repr(combiner))}</code>" in html
        assert html.endswith(f"Retracts: {combiner.capability.words}</p>")
    assert "The sum of the values." in uc.Sum("x")._repr_html_()
    assert [capability.words for capability in uc.Capability] == [
        "never",
        "rows that were added, within a tolerance",
        "exactly",
    ]


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

    def wait(seconds: float) -> bool:
        time.sleep(seconds)
        return next(left)

    watching.watched(lambda limit: next(tables), wait, "t", every=0.01)
    assert [how for how, _ in shown] == ["display", "update"]
    assert shown[0][1]["text/plain"] == "t\nk\n<a>"
    assert "&lt;a&gt;" in shown[0][1]["text/html"]
