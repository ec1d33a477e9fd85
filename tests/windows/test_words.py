"""Windows from words: each kind, what is refused and how, and that a flow does not know how its window was written."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import Any

import numpy as np
import pandas as pd
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
from uncombine.windows import WINDOW_WORDS, Window, as_window

SCHEMA = pa.schema({"ts": pa.timestamp("us", "UTC"), "x": pa.int64()})

WORDS: dict[str, Window] = {
    "fixed 1 minute": uc.Fixed("1 minute"),
    "Fixed 1 hour 30 minutes": uc.Fixed("90 minutes"),
    "5 minutes": uc.Fixed("5 minutes"),
    " 1.5 h ": uc.Fixed("90 minutes"),
    "interval 5 minutes": uc.Fixed("5 minutes"),
    "1 day": uc.Fixed("1 day"),
    "sliding 1 hour every 5 minutes": uc.Sliding("1 hour", "5 minutes"),
    "sessions 30 minutes": uc.Sessions("30 minutes"),
    "session  30 min": uc.Sessions("30 minutes"),
    "calendar day": uc.Calendar("day"),
    "calendar month Europe/Berlin": uc.Calendar("month", "Europe/Berlin"),
    "1 month": uc.Calendar("month"),
    "1 Quarter": uc.Calendar("quarter"),
    "1 year": uc.Calendar("year"),
    "global": uc.Global(),
    "inherit": uc.Inherit(),
}

NO_WORDS = {
    "Custom": "its functions have no text",
}
"""The kinds that have no words, and the reason."""

ALSO = [
    uc.Fixed("1 day", offset="6 hours"),
    uc.Fixed("1 minute", per_key_phase=True),
    uc.Sliding("1 hour", "10 minutes", "-5 seconds"),
    uc.Calendar("week", "Europe/Berlin", "sunday"),
]
"""Windows with settings that words do not say; an expression does."""


@pytest.mark.parametrize("text", WORDS)
def test_words_stand_for_a_window(text: str) -> None:
    assert as_window(text) == WORDS[text]


def test_every_kind_has_words_or_a_reason() -> None:
    kinds = {kind.__name__ for kind in Window.__subclasses__() if kind.__module__.startswith("uncombine.")}
    assert {type(window).__name__ for window in WORDS.values()} | NO_WORDS.keys() == kinds
    assert not {type(window).__name__ for window in WORDS.values()} & NO_WORDS.keys()


@pytest.mark.parametrize("window", [*WORDS.values(), *ALSO], ids=repr)
def test_a_window_is_written_and_read_back(window: Window) -> None:
    assert as_window(repr(window)) == window
    assert as_window(said(window)) == window
    assert window in ALSO or as_window(words_of(window) or "") == window


@given(st.integers(1, 2**62), st.integers(1, 2**62))
def test_lengths_are_read_back(size: int, period: int) -> None:
    lengths = uc.Span(size), uc.Span(period)
    for window in (uc.Fixed(lengths[0]), uc.Sliding(*lengths), uc.Sessions(lengths[0])):
        assert as_window(words_of(window) or "") == as_window(repr(window)) == window


@pytest.mark.parametrize("value", [timedelta(minutes=5), uc.span("5 minutes"), np.timedelta64(5, "m")])
def test_a_length_is_a_fixed_window(value: Any) -> None:
    assert as_window(value) == as_window("5 minutes") == uc.Fixed("5 minutes")
    assert as_window(pd.Timedelta("5 min")) == uc.Fixed("5 minutes")


def test_a_window_is_itself() -> None:
    window = uc.Custom(lambda times: (None, times, times + 1))
    assert as_window(window) is window


def test_the_forms_of_the_errors_are_read() -> None:
    for text in WINDOW_WORDS.split(", "):
        assert isinstance(as_window(text.strip("'")), Window)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("sesions 30 minutes", "'sesions 30 minutes' is not a window such as .*: did you mean 'sessions'"),
        ("tumbling 1 minute", "did you mean 'fixed'"),
        ("hopping 1 hour", "did you mean 'sliding'"),
        ("sliding 1 hour", "write 'sliding 1 hour every 5 minutes'"),
        ("global time", "write 'global'"),
        ("month", "did you mean 'calendar month'"),
        ("3 months", "months differ in length: write '1 month', '1 quarter' or '1 year'"),
        ("5 minutos", "did you mean 'minute'"),
        ("fixed soon", "'soon' is not a length of time"),
        ("-5 minutes", "must be longer than zero"),
        ("calendar dya", "did you mean 'day'"),
        ("calendar day Europe/Berlim", "must be a time zone"),
        ("sessions 99999999999999 weeks", "does not fit into 64 bits"),
        ("Fixd('1 minute')", "there is no window Fixd: did you mean 'Fixed'"),
        ("TumblingWindow('1 minute')", "did you mean 'Fixed'"),
        ("Fixed()", "needs 'size'"),
        ("Fixed(**{})", "is not a window such as"),
        ("Fixed(open('x'))", "is not a plain value"),
        ("Fixed(1 + 1)", "is not a plain value"),
        ("__import__('os').getcwd()", "is not a window such as"),
        ("Fixed(", "is not a window such as"),
        ("Custom('x')", "must be a function"),
        ("5", "write a number and a unit"),
        ("early every 1 minute", "is not a window such as"),
        ("x" * 2001, "has at most 2000 characters"),
    ],
)
def test_a_text_that_is_no_window_is_refused_with_the_word_to_write(text: str, says: str) -> None:
    with pytest.raises(InvalidArgument, match=says) as refused:
        as_window(text)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("value", [5, None, 1.5, b"5 minutes", uc.Fixed, uc.AfterCount(1)])
def test_other_values_are_refused(value: Any) -> None:
    with pytest.raises(InvalidArgument, match="there= takes a window such as"):
        as_window(value, "there=")


PIECES = st.sampled_from([*" ".join(WORDS).split(), *map(repr, ALSO), "(", ")", "'", "9", "-", "1e999", "\0"])


@given(st.text(max_size=60) | st.lists(PIECES, max_size=6).map(" ".join) | st.lists(PIECES, max_size=4).map("".join))
def test_any_text_is_a_window_or_an_invalid_argument(text: str) -> None:
    try:
        window = as_window(text)
    except InvalidArgument:
        return
    assert as_window(repr(window)) == window


@pytest.mark.parametrize("text", COSTLY, ids=lambda text: text[:20])
def test_texts_that_cost_too_much_are_refused_in_a_sentence(text: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        as_window(text)
    assert len(str(refused.value)) < 6000


@pytest.mark.parametrize("seed", seeds(1, 40))
def test_texts_with_damage_are_read_or_refused(seed: int) -> None:
    refused = 0
    for text in damaged(random.Random(seed), [*WORDS, *map(repr, [*WORDS.values(), *ALSO])], 250):
        try:
            assert isinstance(as_window(text), Window)
        except InvalidArgument:
            refused += 1
    assert refused > 0


def test_a_flow_by_words_is_the_flow_by_classes() -> None:
    rows = uc.flow(SCHEMA)
    for text, window in WORDS.items():
        if window == uc.Inherit():
            continue
        options = {"trigger": "repeatedly after 2 rows", "timestamp": "latest"}
        by_words = rows.window(text, **options).combine(n=uc.Count())  # type: ignore[arg-type]
        by_class = rows.window(window, uc.Repeatedly(uc.AfterCount(2)), timestamp="latest").combine(n=uc.Count())
        assert by_words.stages == by_class.stages
        assert repr(by_words.stages) == repr(by_class.stages)
        assert by_words.explain() == by_class.explain()
        grouping = Grouping({"n": uc.Count()}, text)  # type: ignore[arg-type]
        assert grouping == Grouping({"n": uc.Count()}, window)
        assert type(grouping.window) is type(window)
