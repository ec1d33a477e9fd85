"""The number beside the dot of a row is one that the shown result is made of."""

from __future__ import annotations

from typing import Any

import pytest

import uncombine as uc
from uncombine.plot.picture import History


@pytest.mark.parametrize(
    ("results", "label"),
    [
        ({"n": uc.Count()}, None),
        ({"total": uc.Sum("second")}, "second"),
        ({"total": uc.Sum(uc.col("second") * 2)}, "second"),
        ({"total": uc.Sum("first"), "n": uc.Count()}, "first"),
        ({"users": uc.CountDistinct("name")}, None),
    ],
)
def test_the_label_of_a_row(results: dict[str, Any], label: str | None) -> None:
    rows = [{"ts": place, "name": "a", "first": 10 + place, "second": 20 + place} for place in range(3)]
    script = [uc.Elements(rows), uc.Watermark(None)]
    minutes = uc.flow(script).window("1 minute")
    history = History.of(minutes.combine(**results).run(), script)
    assert {point.of for point in history.points} == {label}
    assert [point.label for point in history.points] == ["" if label is None else str(row[label]) for row in rows]
    hours = minutes.combine(m=uc.Count()).window("1 hour").combine(total=uc.Sum("m"))
    assert {point.of for point in History.of(hours.run(), script).points} == {"first"}
