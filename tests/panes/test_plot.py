"""Pictures of the golden cases: what they show, not how it looks."""

from __future__ import annotations

from typing import Any

import matplotlib
import pytest
from golden.cases import Case, cases

import uncombine as uc
from uncombine.errors import InvalidArgument

matplotlib.use("agg")


@pytest.mark.parametrize("case", cases(), ids=lambda c: c.name)
def test_every_golden_case_has_a_picture_with_its_values(case: Case) -> None:
    from matplotlib import pyplot

    result = case.run()
    figure = uc.plot.panes(result, case.script, time="event_time", value="sum", title=case.name)
    written = [text.get_text() for text in figure.axes[0].texts]
    for row in result.to_pylist():
        text = str(row["sum"]) if row["diff"] > 0 else f"−{row['sum']}"
        assert text in written
    assert figure.axes[0].get_title() == case.name
    legend = {text.get_text() for text in figure.axes[0].get_legend().get_texts()}
    assert ("taken back" in legend) == any(row["diff"] < 0 for row in result.to_pylist())
    assert ("dropped datum" in legend) == bool(uc.local.dropped(result))
    pyplot.close(figure)


def test_one_key_of_several_can_be_drawn() -> None:
    script: list[Any] = [
        uc.Elements([{"ts": 0, "k": "a", "x": 5}, {"ts": 1, "k": "b", "x": 7}], at=60_000_000),
        uc.Watermark(120_000_000),
    ]
    result = uc.local.run(script, window=uc.Fixed("1 minute"), by="k", total=uc.Sum("x"))
    texts = [t.get_text() for t in uc.plot.panes(result, script, where={"k": "b"}).axes[0].texts]
    assert sorted(texts) == ["7", "7"]
    with pytest.raises(InvalidArgument, match="results are"):
        uc.plot.panes(result, script, value="totals")
