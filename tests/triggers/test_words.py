"""Triggers from words: each class, what is refused and how, and that a flow by words is the flow by classes."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest
from by_words import said, words_of
from hostile_texts import COSTLY, damaged
from hypothesis import given
from hypothesis import strategies as st
from seeds import seeds

import uncombine as uc
from uncombine.errors import InvalidArgument
from uncombine.panes.grouping.grouping import Grouping
from uncombine.triggers import TRIGGER_WORDS, as_trigger

LATE = uc.AfterCount(1)

WORDS: dict[str, uc.Trigger] = {
    "watermark": uc.AfterWatermark(late=LATE),
    "at the end": uc.AfterWatermark(late=LATE),
    "end": uc.AfterWatermark(late=LATE),
    "early every 1 minute": uc.AfterWatermark(early=uc.AtPeriod("1 minute"), late=LATE),
    "Early every  10 rows": uc.AfterWatermark(early=uc.AfterCount(10), late=LATE),
    "early after 5 s, late every 5 rows": uc.AfterWatermark(early=uc.AfterDelay("5 s"), late=uc.AfterCount(5)),
    "early each row late after 1 hour": uc.AfterWatermark(early=uc.Always(), late=uc.AfterDelay("1 hour")),
    "late never": uc.AfterWatermark(late=uc.Never()),
    "every 10 rows": uc.Repeatedly(uc.AfterCount(10)),
    "every 1 row": uc.Repeatedly(uc.AfterCount(1)),
    "every row": uc.Repeatedly(uc.AfterCount(1)),
    "early every row": uc.AfterWatermark(early=uc.AfterCount(1), late=LATE),
    "repeatedly after 1 minute and clear": uc.Repeatedly(uc.Clearing(uc.AfterDelay("1 minute"))),
    "after 10 rows and clear": uc.Clearing(uc.AfterCount(10)),
    "early every 10 rows and clear": uc.AfterWatermark(early=uc.Clearing(uc.AfterCount(10)), late=LATE),
    "watermark and clear": uc.Clearing(uc.AfterWatermark(late=LATE)),
    "every 1000 bytes": uc.Repeatedly(uc.AfterBytes(1000)),
    "every 1 minute 30 seconds": uc.Repeatedly(uc.AtPeriod("90 seconds")),
    "every 1 minute of event time": uc.Repeatedly(uc.AtPeriod("1 minute", domain="event")),
    "repeatedly after 5 seconds": uc.Repeatedly(uc.AfterDelay("5 seconds")),
    "repeatedly after 5 seconds of event time": uc.Repeatedly(uc.AfterDelay("5 seconds", domain="event")),
    "after 3 rows": uc.AfterCount(3),
    "after 5 seconds": uc.AfterDelay("5 seconds"),
    "after 20 bytes": uc.AfterBytes(20),
    "after 90 % of the sources": uc.WatermarkPercentile(90),
    "after 99.5 percent of the sources": uc.WatermarkPercentile(99.5),
    "after 90 % of the files": uc.FilesPercentile(90),
    "after 5.5% of files": uc.FilesPercentile(5.5),
    "each row": uc.Always(),
    "always": uc.Always(),
    "never": uc.Never(),
}

PARTS = "words have no parentheses that say which parts belong together; an expression of texts does"
NO_WORDS = {
    **dict.fromkeys(("FirstOf", "AllOf", "SequenceOf", "RepeatCount", "RepeatUntil"), PARTS),
    **dict.fromkeys(("OnPunctuation", "OnResult"), "its predicate is an expression, and so is its text"),
    "OnSignal": "a text cannot name a flow",
    "UserTrigger": "a text does not say whose class it names",
    "Trigger": "it is the base of all",
    "AtPeriod": "alone it fires once, which the words `every 1 minute` do not say: it stands in those that repeat it",
}
"""The classes that have no words of their own, and the reason."""

NO_TRIGGERS = {"ChildTrigger", "TriggerContext"}
"""Public names of the room that are no triggers."""

EXPRESSIONS: dict[str, uc.Trigger] = {
    "FirstOf('every 10 rows and clear', Clearing('watermark'))": uc.FirstOf(
        uc.Repeatedly(uc.Clearing(uc.AfterCount(10))), uc.Clearing(uc.AfterWatermark(late=LATE))
    ),
    "Repeatedly(FirstOf('after 10 rows', AfterDelay('1 minute')))": uc.Repeatedly(
        uc.FirstOf(uc.AfterCount(10), uc.AfterDelay("1 minute"))
    ),
    "AllOf(['after 10 rows', AtPeriod('1 minute')])": uc.AllOf(uc.AfterCount(10), uc.AtPeriod("1 minute")),
    "SequenceOf('after 1 row', 'watermark')": uc.SequenceOf(uc.AfterCount(1), uc.AfterWatermark(late=LATE)),
    "RepeatCount('after 10 rows', 3)": uc.RepeatCount(uc.AfterCount(10), 3),
    "RepeatUntil('after 10 rows', AfterWatermark())": uc.RepeatUntil(uc.AfterCount(10), uc.AfterWatermark()),
    "OnPunctuation(col('kind') == 'end')": uc.OnPunctuation(uc.col("kind") == "end"),
    "OnPunctuation(col('kind').str.starts_with('end'))": uc.OnPunctuation(uc.col("kind").str.starts_with("end")),
    "OnResult((col('a') > 1) & ~col('b'))": uc.OnResult((uc.col("a") > 1) & ~uc.col("b")),
    "AtPeriod('1 minute', origin='2024-01-01T00:00:30+00:00')": uc.AtPeriod("1 minute", "2024-01-01T00:00:30Z"),
    "AfterBytes(10, of=('a', 'b'))": uc.AfterBytes(10, of=["a", "b"]),
}


@pytest.mark.parametrize("text", [*WORDS, *EXPRESSIONS])
def test_a_text_stands_for_a_trigger(text: str) -> None:
    assert as_trigger(text) == {**WORDS, **EXPRESSIONS}[text]


def test_every_class_has_words_or_a_reason() -> None:
    spoken = {type(trigger).__name__ for trigger in WORDS.values()}
    assert spoken | NO_WORDS.keys() | NO_TRIGGERS == set(uc.triggers.__all__)
    assert not spoken & NO_WORDS.keys()


@pytest.mark.parametrize("trigger", [*WORDS.values(), *EXPRESSIONS.values()], ids=repr)
def test_a_trigger_is_written_and_read_back(trigger: uc.Trigger) -> None:
    assert as_trigger(repr(trigger)) == trigger
    assert as_trigger(said(trigger)) == trigger
    assert trigger in EXPRESSIONS.values() or as_trigger(words_of(trigger) or "") == trigger


@given(st.integers(1, 10**17), st.integers(1, 2**62))
def test_numbers_are_read_back(count: int, micros: int) -> None:
    leaves = [uc.AfterCount(count), uc.AfterBytes(count), uc.AtPeriod(uc.Span(micros)), uc.AfterDelay(uc.Span(micros))]
    for leaf in leaves:
        for trigger in (uc.Repeatedly(leaf), uc.AfterWatermark(early=leaf, late=leaf)):
            assert as_trigger(words_of(trigger) or "") == trigger


def test_a_text_stands_where_a_trigger_stands() -> None:
    ten = uc.AfterCount(10)
    assert uc.Repeatedly("after 10 rows") == uc.Repeatedly(ten)
    assert uc.RepeatCount("after 10 rows", 2) == uc.RepeatCount(ten, 2)
    assert uc.RepeatUntil("after 10 rows", "never") == uc.RepeatUntil(ten, uc.Never())
    assert ten.or_finally("never") == ten.or_finally(uc.Never())
    for kind in (uc.FirstOf, uc.AllOf, uc.SequenceOf):
        assert kind("after 10 rows", ten) == kind(["after 10 rows", "after 10 rows"]) == kind(ten, ten)  # type: ignore[arg-type]
    early = uc.AfterWatermark(early="after 10 rows", late="each row")
    assert early == uc.AfterWatermark(early=ten, late=uc.Always())
    assert repr(early) == "AfterWatermark(early=AfterCount(10), late=Always())"


def test_the_forms_of_the_errors_are_read() -> None:
    for text in TRIGGER_WORDS.strip("'").split("', '"):
        assert isinstance(as_trigger(text), uc.Trigger)


@dataclass(frozen=True, repr=False)
class Mine(uc.UserTrigger):
    """A class of the user, with the name of no other."""


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("erly every 1 minute", "'erly every 1 minute' is not a trigger such as .*: did you mean 'early'"),
        ("evry 10 rows", "did you mean 'every'"),
        ("watermak", "did you mean 'watermark'"),
        ("early evry 1 minute", "did you mean 'every'"),
        ("early every 10 rows, lat every 5 rows", "did you mean 'late'"),
        ("continuous", r"did you mean Always\(\)"),
        ("every 10 rwos", "'10 rwos' has the unknown unit 'rwos': did you mean 'rows'"),
        ("early every 10 byte s", "is not a trigger such as"),
        ("every 5 minutos", "did you mean 'minute'"),
        ("early every soon", "'soon' is not a length of time"),
        ("every 10 rows of event time", "is not a trigger such as"),
        ("every 10 parsecs", "unknown unit 'parsecs'"),
        ("every 1 month", "months differ in length"),
        ("every 0 rows", "at least 1"),
        ("every 0 seconds", "longer than zero"),
        ("after 0 % of the sources", "from 1 to 100"),
        ("after 0 % of the files", "from 1 to 100"),
        ("every " + "9" * 1900 + " rows", "is not a trigger such as"),
        ("early", "is not a trigger such as"),
        ("early late every 5 rows", "is not a trigger such as"),
        ("early every 5 rows, late", "is not a trigger such as"),
        ("repeatedly watermark", "is not a trigger such as"),
        ("AfterCont(3)", "there is no AfterCont: did you mean 'AfterCount'"),
        ("AfterProcessingTime('1 minute')", "there is no AfterProcessingTime: did you mean 'AfterDelay'"),
        ("Repeatedly(AfterCount)", "Repeatedly takes a trigger such as"),
        ("Repeatedly('evry 10 rows')", "did you mean 'every'"),
        ("Mine()", "there is no Mine"),
        ("UserTrigger()", "there is no UserTrigger"),
        ("Group(AfterCount(1))", "there is no Group"),
        ("col('x')", "is not a trigger such as"),
        ("AfterCount(open('x'))", "there is no open"),
        ("AfterCount(1 + 1)", "neither a call of a public name nor a plain value"),
        ("__import__('os').getcwd()", "neither a call of a public name nor a plain value|there is no"),
        ("AfterCount(", "is not a trigger such as"),
        ("sessions 30 minutes", "is not a trigger such as"),
        ("", "is not a trigger such as"),
        ("x" * 2001, "has at most 2000 characters"),
    ],
)
def test_a_text_that_is_no_trigger_is_refused_with_the_word_to_write(text: str, says: str) -> None:
    with pytest.raises(InvalidArgument, match=says) as refused:
        as_trigger(text)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("value", [5, None, b"never", uc.AfterCount, uc.Global()])
def test_other_values_are_refused(value: Any) -> None:
    with pytest.raises(InvalidArgument, match="there= takes a trigger such as"):
        as_trigger(value, "there=")


PIECES = st.sampled_from([*" ".join(WORDS).split(), *EXPRESSIONS, *uc.triggers.__all__, *"()',9-.", "1e999", "\0"])


@given(st.text(max_size=60) | st.lists(PIECES, max_size=6).map(" ".join) | st.lists(PIECES, max_size=5).map("".join))
def test_any_text_is_a_trigger_or_an_invalid_argument(text: str) -> None:
    try:
        trigger = as_trigger(text)
    except InvalidArgument:
        return
    assert as_trigger(repr(trigger)) == trigger


@pytest.mark.parametrize("text", [text for text in COSTLY if "Repeatedly" not in text], ids=lambda text: text[:20])
def test_texts_that_cost_too_much_are_refused_in_a_sentence(text: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        as_trigger(text)
    assert len(str(refused.value)) < 6000


def test_the_deepest_text_is_read_or_refused() -> None:
    for depth in range(1, 200, 7):
        text = "Repeatedly(" * depth + "'never'" + ")" * depth
        try:
            assert repr(as_trigger(text)) == text.replace("'never'", "Never()")
        except InvalidArgument:
            assert depth > 20


@pytest.mark.parametrize("seed", seeds(1, 40))
def test_texts_with_damage_are_read_or_refused(seed: int) -> None:
    refused = 0
    for text in damaged(random.Random(seed), [*WORDS, *EXPRESSIONS], 250):
        try:
            assert isinstance(as_trigger(text), uc.Trigger)
        except InvalidArgument:
            refused += 1
    assert refused > 0


def test_a_flow_by_words_is_the_flow_by_classes() -> None:
    rows = uc.flow(pa.schema({"ts": pa.timestamp("us", "UTC"), "x": pa.int64()}))
    window = uc.Fixed("1 minute")
    for text, trigger in WORDS.items():
        if isinstance(trigger, uc.FilesPercentile):  # which fires no window
            continue
        mode: Any = "retracting_by_default" if "clear" in text else "accumulating"
        windowed = [rows.window(window, one, mode, allow_finish=True) for one in (text, trigger)]
        by_words, by_class = (one.combine(n=uc.Count()) for one in windowed)
        assert by_words.stages == by_class.stages
        assert repr(by_words.stages) == repr(by_class.stages)
        assert by_words.explain() == by_class.explain()
        groupings = [Grouping({"n": uc.Count()}, window, one, mode, allow_finish=True) for one in (text, trigger)]  # type: ignore[arg-type]
        assert groupings[0] == groupings[1]
        assert groupings[0].trigger == trigger
