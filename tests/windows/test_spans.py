"""Lengths of time: what is read, what is refused, and that texts read back."""

from __future__ import annotations

import pickle
from datetime import timedelta
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import uncombine as uc
from uncombine.errors import InvalidArgument, OutOfRange, TypeMismatch

LONGEST = 2**63 - 1


@pytest.mark.parametrize(
    ("text", "micros"),
    [
        ("30 minutes", 1_800_000_000),
        ("1 minute", 60_000_000),
        ("1 day", 86_400_000_000),
        ("2 weeks", 1_209_600_000_000),
        ("1 hour 30 minutes", 5_400_000_000),
        ("1 hour, 30 minutes", 5_400_000_000),
        ("250 milliseconds", 250_000),
        ("7 microseconds", 7),
        ("7us", 7),
        ("1.5 seconds", 1_500_000),
        ("0.1 s", 100_000),
        ("-5 minutes", -300_000_000),
        ("1 day -1 hour", 82_800_000_000),
        ("INTERVAL 5 Minutes", 300_000_000),
        ("  5 min ", 300_000_000),
        ("0 seconds", 0),
    ],
)
def test_texts(text: str, micros: int) -> None:
    assert uc.span(text) == micros


@given(st.integers(-LONGEST, LONGEST))
def test_text_and_repr_read_back(micros: int) -> None:
    length = uc.Span(micros)
    assert uc.span(str(length)) == length
    assert uc.span(eval(repr(length))) == length
    assert uc.span(length) == length


@given(st.timedeltas())
def test_timedelta_is_exact(delta: timedelta) -> None:
    micros = (delta.days * 86_400 + delta.seconds) * 1_000_000 + delta.microseconds
    if abs(micros) > LONGEST:
        with pytest.raises(OutOfRange):
            uc.span(delta)
    else:
        assert uc.span(delta) == micros


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.timedelta64(90, "m"), "1 hour 30 minutes"),
        (np.timedelta64(1_500, "ns"), "1 microsecond"),
        (np.array([3], "timedelta64[2D]")[0], "6 days"),
        (pd.Timedelta("14 days").to_numpy(), "14 days"),
    ],
)
def test_timedeltas_of_numpy(value: np.timedelta64, text: str) -> None:
    assert uc.span(value) == uc.span(text)
    assert uc.Fixed(value) == uc.Fixed(text)


@pytest.mark.parametrize(
    "value", [np.timedelta64(1, "M"), np.timedelta64(1, "Y"), np.timedelta64(1), np.timedelta64("NaT")]
)
def test_timedeltas_of_numpy_that_are_no_length(value: np.timedelta64) -> None:
    with pytest.raises(InvalidArgument, match="is not a length of time: give it a unit from nanoseconds to weeks"):
        uc.span(value)


def test_text_for_people_has_no_quotes() -> None:
    assert f"{uc.span('90 minutes')}" == "1 hour 30 minutes"
    assert f"{uc.span('-90 seconds')}" == "-1 minute -30 seconds"
    assert repr(uc.span("1 week")) == "'7 days'"


def test_a_span_is_an_int_that_survives_pickling() -> None:
    length = pickle.loads(pickle.dumps(uc.span("1 minute")))
    assert type(length) is uc.Span
    assert length == 60_000_000
    assert hash(length) == hash(60_000_000)


@pytest.mark.parametrize("value", [5, 5.0, True, None, b"5 minutes", ["5 minutes"]])
def test_what_names_no_unit_is_refused(value: Any) -> None:
    with pytest.raises(TypeMismatch, match="a length of time must be a text with a unit such as '30 minutes'"):
        uc.span(value)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "write a number and a unit"),
        ("5", "write a number and a unit"),
        ("minutes", "write a number and a unit"),
        ("5 minutes and 3", "write a number and a unit"),
        ("5 6 minutes", "write a number and a unit"),
        ("5 minutos", "did you mean 'minute'"),
        ("5 fortnights", "known are 'week', 'day'"),
        ("1 month", r"use Calendar\('month'\)"),
        ("1 day 2 years", r"use Calendar\('year'\)"),
        ("30m", "write 'min' or 'minutes'"),
        ("9" * 5000 + " seconds", "has at most 2000 characters"),
    ],
)
def test_texts_that_are_no_length(text: str, why: str) -> None:
    with pytest.raises(InvalidArgument, match=why):
        uc.span(text)


@pytest.mark.parametrize("value", ["400000 weeks 99999999999 days", uc.Span(2**63), timedelta.max])
def test_lengths_beyond_64_bits_are_refused(value: Any) -> None:
    with pytest.raises(OutOfRange, match="does not fit into 64 bits"):
        uc.span(value)
