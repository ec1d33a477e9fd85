"""Triggers as values: equality, hash, text that reads back, words, and what is refused."""

from __future__ import annotations

import dataclasses
import json
import pickle
import random
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from public_names import PUBLIC
from seeds import seeds

import uncombine as uc
from uncombine.errors import InvalidArgument, TypeMismatch, UncombineError
from uncombine.triggers import as_trigger, can_fire_on_global, may_finish, percentiles, uses_processing_time, walk

LEAVES: list[uc.Trigger] = [
    uc.AfterWatermark(),
    uc.WatermarkPercentile(99.5),
    uc.FilesPercentile(99.5),
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
            uc.Clearing(one),
            uc.RepeatUntil(one, two),
            uc.AfterWatermark(early=one, late=two),
            uc.AfterWatermark(late=one),
        ]
    )


@pytest.mark.parametrize("seed", seeds(60))
def test_the_text_reads_back_to_an_equal_trigger(seed: int) -> None:
    trigger = tree(random.Random(seed), seed % 4)
    again = eval(repr(trigger), PUBLIC)
    assert as_trigger(repr(trigger)) == again == trigger
    assert hash(again) == hash(trigger)
    assert repr(again) == repr(trigger)
    assert pickle.loads(pickle.dumps(trigger)) == trigger
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
        (lambda: uc.AfterCount(0), r"AfterCount\(n\): n must be a whole number of at least 1, but is 0"),
        (lambda: uc.AfterCount(True), "n must be a whole number of at least 1, but is True"),
        (lambda: uc.RepeatCount(uc.Always(), -1), r"RepeatCount\(child, n\): n must be .* but is -1"),
        (lambda: uc.WatermarkPercentile(0), "from 1 to 100"),
        (lambda: uc.WatermarkPercentile(101), "from 1 to 100"),
        (lambda: uc.WatermarkPercentile(0.9), "but is 0.9: write 90 for 90 %"),
        (lambda: uc.FilesPercentile(0.9), r"FilesPercentile\(percent\): .* but is 0.9: write 90 for 90 %"),
        (lambda: uc.FilesPercentile("90"), "from 1 to 100, but is '90'"),  # type: ignore[arg-type]
        (lambda: uc.AtPeriod("0 seconds"), r"AtPeriod\(period\): period must be longer than zero"),
        (lambda: uc.AfterDelay("-1 seconds"), "delay must be at least zero, but is '-1 second'"),
        (lambda: uc.AfterDelay(5), "5"),  # type: ignore[arg-type]
        (lambda: uc.AtPeriod("1 minute", domain="wall"), "'processing' or 'event'"),
        (lambda: uc.FirstOf(), "at least one"),
        (lambda: uc.AllOf(uc.Always(), 5), "AllOf takes a trigger such as"),  # type: ignore[arg-type]
        (lambda: uc.Repeatedly(3), "Repeatedly takes a trigger such as"),  # type: ignore[arg-type]
        (lambda: uc.AfterWatermark(early=1), "AfterWatermark"),  # type: ignore[arg-type]
        (lambda: uc.OnResult("x > 1"), "predicate must be an expression"),  # type: ignore[arg-type]
        (lambda: uc.AfterBytes(1, of=[]), "list of column names"),
        (lambda: uc.AfterBytes(1, of=[3]), "list of column names"),  # type: ignore[list-item]
        (lambda: uc.AfterBytes(1, of=3), "list of column names"),  # type: ignore[arg-type]
        (lambda: uc.AfterCount(1).or_finally(5), "RepeatUntil takes a trigger such as"),  # type: ignore[arg-type]
        (lambda: uc.AfterCount(1).or_finally("x"), "'x' is not a trigger such as"),
    ],
)
def test_what_makes_no_sense_is_refused_when_it_is_built(build: Any, words: str) -> None:
    with pytest.raises((InvalidArgument, TypeError), match=words) as caught:
        build()
    assert isinstance(caught.value, UncombineError)


def test_the_children_of_each_composite_are_walked_from_the_top() -> None:
    one, two = uc.AfterCount(1), uc.AfterCount(2)
    for trigger in (uc.FirstOf(one, two), uc.AllOf([one, two]), uc.SequenceOf(one, two), one.or_finally(two)):
        assert trigger.children == (one, two)
        assert list(walk(trigger)) == [trigger, one, two]
    assert uc.AfterWatermark(early=one, late=two).children == (one, two)
    assert uc.Repeatedly(one).children == uc.RepeatCount(one, 2).children == uc.Clearing(one).children == (one,)
    assert one.children == ()


def test_settings_cannot_be_changed() -> None:
    for trigger, name in [
        (uc.AfterCount(1), "n"),
        (uc.FirstOf(uc.Always()), "parts"),
        (uc.Repeatedly(uc.Never()), "child"),
    ]:
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(trigger, name, None)


def big(table: pa.Table) -> pa.Array:
    return pc.greater(table["total"], 100)


def test_functions_are_shown_by_name() -> None:
    """An address would differ from run to run."""
    assert repr(uc.OnResult(big)) == "OnResult(big)"
    assert eval("OnResult(big)", {**PUBLIC, "big": big}) == uc.OnResult(big)
    assert uc.OnResult(big).explain() == "when the result satisfies big"
    assert repr(uc.OnPunctuation(lambda table: table)) == "OnPunctuation(<lambda>)"


@pytest.mark.parametrize(
    ("trigger", "words"),
    [
        (uc.AfterWatermark(), "once, when the watermark passes the end of the window"),
        (uc.WatermarkPercentile(99.99999), "once, when 99.99999 % of the sources have passed the end of the window"),
        (uc.AtPeriod("1 minute"), "at every full minute of processing time that follows a row"),
        (
            uc.AtPeriod("90 s", domain="event"),
            "at every multiple of 1 minute 30 seconds of event time that follows a row",
        ),
        (uc.AfterDelay("1 minute"), "1 minute of processing time after the first row"),
        (uc.AfterDelay("90 minutes", domain="event"), "1 hour 30 minutes of event time after the first row"),
        (uc.AfterCount(1), "when 1 row of a key has come to a window"),
        (uc.AfterBytes(1, of="a"), "when 1 byte of a of a key has come to a window"),
        (uc.AfterBytes(9), "when 9 bytes of a key have come to a window"),
        (uc.OnPunctuation(uc.col("x") == 1), "when a row satisfies col('x') == 1"),
        (uc.Always(), "after every bundle with rows"),
        (uc.Never(), "never: what is left comes out when the window expires"),
        (uc.RepeatCount(uc.AfterCount(2), 1), "once in all:\n  when 2 rows of a key have come to a window"),
        (uc.RepeatCount(uc.AfterCount(2), 5), "5 times in all:\n  when 2 rows of a key have come to a window"),
        (
            uc.SequenceOf(uc.AfterCount(1), uc.AllOf(uc.AfterCount(2), uc.Always())),
            "one after the other:\n  when 1 row of a key has come to a window\n"
            "  when all of these are ready:\n    when 2 rows of a key have come to a window\n"
            "    after every bundle with rows",
        ),
        (
            uc.AfterCount(1).or_finally(uc.FirstOf(uc.AfterCount(5))),
            "again and again:\n  when 1 row of a key has come to a window\n"
            "  until this fires, which is the last time:\n"
            "    when any of these fires:\n      when 5 rows of a key have come to a window",
        ),
        (
            uc.AfterWatermark(early=uc.AfterCount(1), late=uc.AfterCount(2)),
            "once, when the watermark passes the end of the window\n  before that, again and again:\n"
            "    when 1 row of a key has come to a window\n"
            "  after that, again and again:\n    when 2 rows of a key have come to a window",
        ),
    ],
    ids=repr,
)
def test_triggers_in_words(trigger: uc.Trigger, words: str) -> None:
    assert trigger.explain() == words


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


class Bare(uc.UserTrigger):
    """One that is no dataclass."""

    def __init__(self, n: int = 3, words: tuple[str, ...] = ()) -> None:
        self.words = words
        self.n = n


class Other(Bare):
    """Another class with the same settings."""


def test_user_triggers_are_values_too() -> None:
    assert repr(uc.Repeatedly(Mine(4))) == "Repeatedly(Mine(n=4))"
    for kind in (Mine, Bare):
        assert kind(3) == kind()
        assert kind(4) != kind()
        assert len({kind(3), kind(), kind(4)}) == 2
        assert eval(repr(kind(4)), {"Mine": Mine, "Bare": Bare}) == kind(4)
        assert pickle.loads(pickle.dumps(kind(4))) == kind(4)
        assert kind(4).explain() == f"when {kind(4)!r} calls ctx.fire()"
    assert Bare() != Other()
    assert Bare() != Mine()
    assert uc.Repeatedly(Bare()) == uc.Repeatedly(Bare())


def test_a_user_trigger_may_have_words_of_its_own() -> None:
    class Doubling(uc.UserTrigger):
        def words(self) -> str:
            return "at 1, 2, 4, 8, ... rows"

    assert uc.AfterWatermark(late=Doubling()).explain().splitlines()[1:] == [
        "  after that, again and again:",
        "    at 1, 2, 4, 8, ... rows",
    ]


def test_a_context_refuses_what_it_does_not_know() -> None:
    ctx = uc.TriggerContext((0, 1), 0, 0, {})
    with pytest.raises(InvalidArgument, match="clear must be True, False or None"):
        ctx.fire(clear="sometimes")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="'processing' or 'event'"):
        ctx.set_timer("t", 1, "wall")
    ctx.delete_timer("never set")
    assert ctx.memo() == {"state": {}, "timers": {}}


@pytest.mark.parametrize("value", [None, True, 3, 0.5, "a", [1, [2]], {"a": {"b": [None]}}], ids=repr)
def test_rule_28_plain_state_is_kept_as_it_is(value: Any) -> None:
    ctx = uc.TriggerContext((0, 1), 0, 0, {})
    ctx.state["tag"] = value
    ctx.set_timer("t", 5, "event")
    again = uc.TriggerContext((0, 1), 0, 0, json.loads(json.dumps(ctx.memo())))
    assert again.state == {"tag": value}
    assert again.timers == {"t": (5, "event")}


@pytest.mark.parametrize("value", [(1, 2), {1: 2}, {1}, [{2: 3}], {"a": (1,)}, b"x", object], ids=repr)
def test_rule_28_state_that_would_come_back_as_something_else_is_refused(value: Any) -> None:
    ctx = uc.TriggerContext((0, 1), 0, 0, {})
    ctx.state["tag"] = value
    with pytest.raises(TypeMismatch, match=r"^the state 'tag' of a user trigger must be made of "):
        ctx.memo()
