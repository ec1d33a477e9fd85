"""Look-backs: the first instant of each period, and the sentences for options that do not fit."""

from __future__ import annotations

import datetime as dt
import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from by_double_loop import EPOCH, first_instant

import uncombine as uc
from uncombine.errors import InvalidArgument, OutOfRange, TypeMismatch, UnknownColumn
from uncombine.lookbacks.lookback import LookBack


def micros(at: dt.datetime) -> int:
    return (at - EPOCH) // dt.timedelta(microseconds=1)


@pytest.mark.parametrize("closed", ["right", "left", "both", "neither"])
@pytest.mark.parametrize(
    ("period", "plain"), [("1 month", 1), ("quarter", 3), ("2 years", 24), ("36 hours", dt.timedelta(hours=36))]
)
def test_first_instants(period: str, plain: Any, closed: str) -> None:
    draw = random.Random(7)
    times = sorted(
        dt.datetime(draw.randrange(1960, 2030), draw.randrange(1, 13), draw.choice([1, 15, 28]), tzinfo=dt.UTC)
        + dt.timedelta(days=draw.randrange(4), microseconds=draw.choice([0, 1, 43_200_000_000]))
        for _ in range(300)
    )
    for coarse in (None, dt.timedelta(minutes=7)):
        found = LookBack.of(period, closed, coarse).starts(np.array(list(map(micros, times))))
        wanted = [micros(first) for t in times if (first := first_instant(t, plain, closed, coarse)) is not None]
        assert found.tolist() == wanted
        assert (np.diff(found) >= 0).all()


def test_a_month_before_a_date_that_it_does_not_have_begins_with_the_next_month() -> None:
    times = [micros(dt.datetime(2023, 3, day, 12, tzinfo=dt.UTC)) for day in (28, 29, 31)]
    starts = LookBack.of("1 month", "both").starts(np.array(times))
    assert starts.view("datetime64[us]").astype(str).tolist() == [
        "2023-02-28T12:00:00.000000",
        "2023-03-01T00:00:00.000000",
        "2023-03-01T00:00:00.000000",
    ]


TABLE = pa.table({"ts": pa.array([1, 2], pa.timestamp("us")), "x": [1, 2], "s": ["a", "b"]})


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({}, InvalidArgument, "exactly one of period= and rows="),
        ({"period": "1 day", "rows": 3}, InvalidArgument, "exactly one of period= and rows="),
        ({"period": "1 day", "closed": "up"}, InvalidArgument, "closed='up'"),
        ({"period": 7}, TypeMismatch, "takes a length of time"),
        ({"period": "0 days"}, InvalidArgument, "longer than zero"),
        ({"period": {}}, InvalidArgument, "a dict of names and lengths"),
        ({"period": "0 months"}, InvalidArgument, "1 month to 10,000 years"),
        ({"rows": 0}, InvalidArgument, "a number of rows from 1 on"),
        ({"rows": 2, "closed": "left"}, InvalidArgument, "no closed="),
        ({"rows": 2, "coarse": "1 minute"}, InvalidArgument, "no coarse="),
        ({"rows": 2, "every": "1 minute"}, InvalidArgument, "always has"),
        ({"period": {"ever": None}, "every": "1 minute"}, InvalidArgument, "always has"),
        ({"period": "9000 years", "every": "1 microsecond"}, OutOfRange, "too many"),
        ({"period": "1 day", "order": "x"}, InvalidArgument, "leave it out"),
        ({"rows": 2, "order": "z"}, UnknownColumn, "z"),
        ({"period": "1 day", "by": "z"}, UnknownColumn, "z"),
        ({"period": "1 day", "time": "s"}, TypeMismatch, "timestamps or dates"),
        ({"period": "1 day", "min_rows": -1}, InvalidArgument, "from 0 on"),
        ({"period": "1 day", "x": uc.Count()}, InvalidArgument, "rename the result"),
    ],
)
def test_options_that_do_not_fit(options: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        uc.rolling(TABLE, **{"n": uc.Count(), **options})


def test_a_combiner_is_needed() -> None:
    with pytest.raises(InvalidArgument, match="needs a combiner"):
        uc.rolling(TABLE, "1 day")
    with pytest.raises(InvalidArgument, match="combiners by name"):
        uc.rolling(TABLE, "1 day", uc.Count())  # type: ignore[arg-type]
