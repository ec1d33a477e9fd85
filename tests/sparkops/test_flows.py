"""Random flows: runs here, replays, streams and the model of the rules give the same panes, counts and late rows."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from by_words import said
from pyspark.sql import SparkSession
from reference.flows.agree import _rows, difference, listing, shrunk
from reference.flows.draw import draw, settled
from reference.flows.scanned import SPARK, flows, scanned, written
from reference.flows.ways import local_flow, locally
from seeds import seeds

import uncombine as uc
from uncombine.panes.grouping.grouping import MODES
from uncombine.triggers import walk


def agree(first: int, last: int) -> None:
    for seed in range(first, last):
        case = draw(seed)
        if difference(case) is not None:
            case = shrunk(case)
            pytest.fail(f"{listing(case)}\n{difference(case)}", pytrace=False)


@pytest.mark.daily
@pytest.mark.parametrize("first", seeds(40, 400, step=10))
def test_all_ways_to_run_a_flow_agree(first: int) -> None:
    agree(first, first + 10)


@pytest.mark.weekly
@pytest.mark.parametrize("seed", [332, 368])
def test_panes_of_a_timer_are_a_batch_of_the_next_grouping(seed: int) -> None:
    assert draw(seed).strategy == uc.EachBatch()
    agree(seed, seed + 1)


def test_a_time_counts_while_anything_is_left_of_the_window_that_its_row_opened() -> None:
    """Of windows of the user's that merge over a changelog, two rows of which lie in one window (rule 36)."""
    agree(9_945, 9_946)


@pytest.mark.soak
@pytest.mark.parametrize("first", range(1_000, 21_000, 200))
def test_all_ways_to_run_many_flows_agree(first: int) -> None:
    agree(first, first + 200)


@pytest.mark.spark
@pytest.mark.parametrize("seed", seeds(2, 62))
def test_a_data_frame_of_files_gives_the_same_rows(seed: int, spark: SparkSession, tmp_path: Path) -> None:
    """Spark reads the rows or the tasks read the files, in a replay and at once."""
    case, kind = draw(seed), ("replay", "replay", "batch")[seed % 3]
    made = flows(case, kind, spark, written(case, tmp_path / "in"))
    for name, flow in made.items():
        assert ("read by the tasks that combine their rows" in flow.source.route_input.describe()) == (name != SPARK)
    found = scanned(made, spark)
    wanted = locally(case, local_flow(case)) if kind == "replay" else found[SPARK]
    for name, got in found.items():
        assert not list(_rows(f"{kind} of {name}, seed {seed}", got.rows, wanted.rows, ordered=False))


@pytest.mark.weekly
def test_the_cases_have_all_that_a_flow_may_have() -> None:
    """Without this, a change of the library or of the draws could leave all cases alike, and every test would pass."""
    seen: Counter[object] = Counter()
    for seed in range(100):
        case = draw(seed)
        groupings = [stage.grouping for stage in settled(case).stages]
        seen.update([type(case.strategy), len(groupings)])
        seen.update(["several shards"] * (case.shards > 1) + ["idle"] * (case.strategy.idle is not None))
        for grouping in groupings:
            seen.update([type(grouping.window), grouping.mode, grouping.policy, grouping.granularity, grouping.late])
            seen.update({type(part) for part in walk(grouping.effective_trigger)})
            seen.update([("window", _form(grouping.window)), ("trigger", _form(grouping.effective_trigger))])
            seen.update(["changelog"] * grouping.changelog + ["differences"] * (grouping.diff == "diff"))
    windows = {uc.Global, uc.Fixed, uc.Sliding, uc.Sessions, uc.Calendar, uc.Custom, uc.Inherit}
    triggers = {uc.AfterWatermark, uc.AfterCount, uc.AfterBytes, uc.AfterDelay, uc.AtPeriod, uc.WatermarkPercentile}
    triggers |= {uc.OnPunctuation, uc.OnResult, uc.Always, uc.Never, uc.FirstOf, uc.AllOf, uc.SequenceOf}
    triggers |= {uc.Repeatedly, uc.RepeatCount, uc.RepeatUntil}
    strategies = {uc.Punctuated, uc.PerSource, uc.BoundedLag, uc.Monotonic, uc.IngressTime}
    strategies |= {uc.ProcessingTime, uc.EachBatch}
    policies = {"end_of_window", "start_of_window", "earliest", "latest", "watermark"}
    others = {1, 2, 3, "record", "bundle", "drop", "duplicate", "changelog", "differences", "idle"}
    assert windows | triggers | strategies | policies | others | set(MODES) <= set(seen)
    assert seen["several shards"] > 25
    assert min(seen[what, form] for what in ("window", "trigger") for form in ("words", "text", "value")) > 5


def _form(value: Any) -> str:
    """The way in which a window or a trigger is written in the flow of a case."""
    text = said(value)
    return "value" if not isinstance(text, str) else "text" if "(" in text else "words"
