"""The law of changed flows finds a change that goes wrong, and prints a script that shows it."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import uncombine as uc
from uncombine.errors import FlowViolation, InvalidArgument
from uncombine.flows.evolution import changed_seed

SCHEMA = pa.schema({"ts": pa.timestamp("us", "UTC"), "user": pa.string(), "x": pa.int64()})


def hours(**combiners: uc.Combiner) -> uc.Flow:
    rows = uc.flow(SCHEMA).window("1 hour", "each row", mode="retracting", allowed_lateness="10 days")
    return rows.combine(by="user", **combiners)


def expected(rows: pd.DataFrame) -> pd.DataFrame:
    start = rows.ts.dt.floor("1h").rename("window.start")
    groups = rows.groupby(["user", start], dropna=False).x
    return groups.agg(n="size", total=lambda x: x.sum(min_count=1)).reset_index()


@pytest.mark.weekly
@pytest.mark.parametrize("before", [{"n": uc.Count()}, {"total": uc.Sum("x"), "n": uc.Count()}, {"most": uc.Max("x")}])
def test_a_changed_flow_is_right(before: dict[str, uc.Combiner]) -> None:
    uc.testing.check_evolution(hours(**before), hours(n=uc.Count(), total=uc.Sum("x")), expected, examples=10)


def test_a_change_that_goes_wrong_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(former: Any, before: Any, plan: Any, steps: Any, folder: Any, work: Any) -> list[Any]:
        return list(steps)

    monkeypatch.setattr(changed_seed, "_corrected", nothing)
    before, after = hours(n=uc.Count()), hours(n=uc.Count(), total=uc.Sum("x"))
    with pytest.raises(FlowViolation, match=r"changed before entry \d+ of the script") as caught:
        uc.testing.check_evolution(before, after, expected)
    assert "uc.testing.check_evolution(before, after, expected, script=script)" in str(caught.value)
    script = caught.value.script
    with pytest.raises(FlowViolation):
        uc.testing.check_evolution(before, after, expected, script=script)
    monkeypatch.undo()
    uc.testing.check_evolution(before, after, expected, script=script)


def test_no_flow_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="takes the flow as it was"):
        uc.testing.check_evolution(None, hours(n=uc.Count()), expected)  # type: ignore[arg-type]
