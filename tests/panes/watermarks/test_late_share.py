"""A run that leaves out many rows as late says so, unless somebody wrote the order of its rows, or sees the rows."""

from __future__ import annotations

import warnings
from typing import Any

import pyarrow as pa
import pytest

import uncombine as uc
from uncombine.panes.watermarks.late_share import late_words

DAY = 86_400


def weeks(days: list[int]) -> pa.Table:
    """Rows of days that arrive one by one, in this order."""
    seconds = range(1000 * DAY, 1000 * DAY + 10 * len(days), 10)
    columns = {"ts": [day * DAY for day in days], "seen": list(seconds)}
    return pa.table({name: pa.array(v, pa.timestamp("s", "UTC")) for name, v in columns.items()})


def told(table: pa.Table, script: bool = False, **options: Any) -> tuple[int, list[str]]:
    """The number of late rows, and the warnings."""
    source = uc.flow(table, watermark="1 day", processing_time="seen")
    flow = source.window(uc.Fixed("1 day"), **options).combine(n=uc.Count())
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        entries = [uc.Elements(table), uc.Watermark(None)]
        result = flow.run(entries) if script else flow.run()
    return result.dropped, [str(one.message) for one in given]


def test_a_history_in_another_order_is_told() -> None:
    late, [words] = told(weeks([30, *range(20)]))
    assert late == 20
    assert "stage 1 has left out 20 of 21 rows as late: give watermark= a lag" in words
    assert told(weeks(list(range(21)))) == (0, [])


@pytest.mark.weekly
def test_a_few_late_rows_are_not_told() -> None:
    assert told(weeks([*range(199), 0])) == (1, [])
    assert told(weeks([*range(99), 0])) == (1, [])
    assert len(told(weeks([*range(98), 0]))[1]) == 1


def test_rows_of_a_script_and_rows_with_windows_of_their_own_are_not_told() -> None:
    table = weeks([30, *range(20)])
    assert told(table, script=True) == (20, [])
    assert told(table, late="duplicate") == (20, [])
    assert told(table, allowed_lateness="60 days") == (0, [])


@pytest.mark.parametrize("step", ["distinct", "join"])
def test_steps_over_rows_are_told_of(step: str) -> None:
    table = weeks([30, *range(20)])
    source = uc.flow(table, watermark="1 day", processing_time="seen")
    other = uc.flow(table, watermark="1 day", processing_time="seen", name="other")
    flow = (
        source.distinct("ts", within="1 day")
        if step == "distinct"
        else source.join(other, on="seen", within=("-1 hour", "1 hour"))
    )
    with pytest.warns(UserWarning, match=r"stage 1 has left out \d+ of \d+ rows as late"):
        result = flow.run()
    assert result.left_out.num_rows


def test_no_rows_need_no_words() -> None:
    assert late_words(0, 0, 1) is None
