"""Triggers as values: equality, hash, text that reads back, words, and what is refused."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import pytest

import uncombine as uc
from uncombine.errors import InvalidArgument, UncombineError
from uncombine.triggers import can_fire_on_global, may_finish, percentiles, uses_processing_time, walk

LEAVES: list[uc.Trigger] = [
    uc.AfterWatermark(),
    uc.WatermarkPercentile(99.5),
    uc.AtPeriod("1 minute"),
    uc.AtPeriod("90 seconds", origin="2024-01-01T00:00:30Z", domain="event"),
    uc.AfterDelay("0 seconds"),
    uc.AfterDelay("1 hour 30 minutes", domain="event"),
    uc.AfterCount(3),
    uc.AfterBytes(10),
    uc.AfterBytes(10, of=["a", "b"]),
    uc.OnPunctuation(uc.col("x") == 1),
    uc.OnResult((uc.col("total") > 3) & ~uc.col("done")),
    uc.Always(),
    uc.Never(),
]


def tree(rng: random.Random, depth: int) -> uc.Trigger:
    """A random trigger."""
    if depth == 0:
        return rng.choice(LEAVES)
    parts = [tree(rng, depth - 1) for _ in range(rng.randint(1, 3))]
    one, two = parts[0], parts[-1]
    return rng.choice(
        [
            uc.FirstOf(*parts),
            uc.AllOf(*parts),
            uc.SequenceOf(*parts),
            uc.Repeatedly(one),
            uc.RepeatCount(one, 4),
            uc.RepeatUntil(one, two),
            uc.AfterWatermark(early=one, late=two),
            uc.AfterWatermark(late=one),
        ]
    )


@pytest.mark.parametrize("seed", range(60))
def test_the_text_reads_back_to_an_equal_trigger(seed: int) -> None:
    trigger = tree(random.Random(seed), seed % 4)
    again = eval(repr(trigger), vars(uc))
    assert again == trigger
    assert hash(again) == hash(trigger)
    assert repr(again) == repr(trigger)
    assert trigger.explain()
    assert len(trigger.explain().splitlines()) >= len(list(walk(trigger)))


def test_triggers_of_other_settings_are_not_equal() -> None:
    assert uc.AfterCount(1) != uc.AfterCount(2)
    assert uc.AtPeriod("60 seconds") == uc.AtPeriod("1 minute")
    assert uc.FirstOf(uc.Always(), uc.Never()) != uc.AllOf(uc.Always(), uc.Never())
    assert uc.OnResult(uc.col("x") > 1) != uc.OnResult(uc.col("x") > 2)
    assert len({uc.AfterCount(1), uc.AfterCount(1), uc.Always()}) == 2


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: uc.AfterCount(0), "from 1 on"),
        (lambda: uc.AfterCount(True), "from 1 on"),
        (lambda: uc.RepeatCount(uc.Always(), -1), "from 1 on"),
        (lambda: uc.WatermarkPercentile(0), "above 0"),
        (lambda: uc.WatermarkPercentile(101), "up to 100"),
        (lambda: uc.AtPeriod("0 seconds"), "period"),
        (lambda: uc.AfterDelay("-1 seconds"), "delay"),
        (lambda: uc.AfterDelay(5), "5"),  # type: ignore[arg-type]
        (lambda: uc.AtPeriod("1 minute", domain="wall"), "'processing' or 'event'"),
        (lambda: uc.FirstOf(), "at least one"),
        (lambda: uc.AllOf(uc.Always(), "x"), "AllOf is made of triggers"),  # type: ignore[arg-type]
        (lambda: uc.Repeatedly(3), "Repeatedly is made of triggers"),  # type: ignore[arg-type]
        (lambda: uc.AfterWatermark(early=1), "AfterWatermark"),  # type: ignore[arg-type]
        (lambda: uc.OnResult("x > 1"), "OnResult takes an expression"),  # type: ignore[arg-type]
    ],
)
def test_what_makes_no_sense_is_refused_when_it_is_built(build: Any, words: str) -> None:
    with pytest.raises((InvalidArgument, TypeError), match=words) as caught:
        build()
    assert isinstance(caught.value, UncombineError)


def test_what_can_be_known_before_any_data_flows() -> None:
    assert may_finish(uc.AfterCount(1))
    assert not may_finish(uc.Repeatedly(uc.AfterCount(1)))
    assert not may_finish(uc.AfterWatermark(late=uc.AfterCount(1)))
    assert may_finish(uc.FirstOf(uc.Always(), uc.AfterCount(1)))
    assert not may_finish(uc.AllOf(uc.Always(), uc.AfterCount(1)))
    assert may_finish(uc.RepeatUntil(uc.Always(), uc.AfterCount(1)))
    assert not may_finish(uc.RepeatUntil(uc.Always(), uc.Never()))
    assert can_fire_on_global(uc.AfterWatermark(early=uc.AfterCount(1)))
    assert not can_fire_on_global(uc.AllOf(uc.AfterCount(1), uc.AfterWatermark()))
    assert uses_processing_time(uc.FirstOf(uc.AfterCount(1), uc.AfterDelay("1 second")))
    assert not uses_processing_time(uc.AtPeriod("1 second", domain="event"))
    assert percentiles(uc.AllOf(uc.WatermarkPercentile(50), uc.WatermarkPercentile(99))) == (50.0, 99.0)


@dataclass(frozen=True, repr=False)
class Mine(uc.UserTrigger):
    """A trigger with a setting."""

    n: int = 3


def test_user_triggers_are_values_too() -> None:
    assert Mine(3) == Mine()
    assert Mine(4) != Mine()
    assert repr(uc.Repeatedly(Mine(4))) == "Repeatedly(Mine(n=4))"
    with pytest.raises(InvalidArgument, match="fire"):
        uc.TriggerContext((0, 1), 0, 0, {}).fire("sometimes")
