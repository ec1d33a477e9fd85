"""The clocks of zones are those of Python's zoneinfo, in all years and around every change."""

from __future__ import annotations

import datetime as dt
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from uncombine.combiners.expressions.zones import instants_of, is_zone, offset_at

ZONES = [
    "Europe/Berlin",
    "America/Sao_Paulo",
    "Africa/Casablanca",
    "Australia/Lord_Howe",
    "Pacific/Apia",
    "Asia/Tehran",
]
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
FIRST, LAST = -62_135_510_400, 253_402_128_000
SECONDS = st.integers(FIRST, LAST) | st.integers(1_100_000_000, 2_300_000_000)
CHANGES = [1711846800, 1729990800, 1518919200, 1541300400, 1325239200, 1301754600, 2541027600, -2422054408]
"""Instants at which clocks change in one of these zones, one of them after 2037."""


def clock(second: int, zone: str) -> int:
    """The time on the clocks of a zone, as if it were one of UTC."""
    offset = (EPOCH + dt.timedelta(seconds=second)).astimezone(ZoneInfo(zone)).utcoffset()
    assert offset is not None
    return second + offset // dt.timedelta(seconds=1)


@pytest.mark.parametrize("zone", ZONES)
@given(st.lists(SECONDS, max_size=5), st.sampled_from(CHANGES), st.integers(-5, 5))
def test_offsets_are_those_of_zoneinfo(zone: str, seconds: list[int], change: int, away: int) -> None:
    instants = np.array([*seconds, change + away, change - 1, change])
    assert (instants + offset_at(instants, zone)).tolist() == [clock(int(s), zone) for s in instants]


@pytest.mark.parametrize("zone", ZONES)
@given(st.sampled_from(CHANGES), st.integers(-100_000, 100_000))
def test_instants_are_the_first_and_the_last_that_show_a_time(zone: str, change: int, away: int) -> None:
    local = change + away
    first, last = (int(each[0]) for each in instants_of(np.array([local]), zone))
    shown = [s for s in range(local - 60_000, local + 60_000, 900) if clock(s, zone) == local]
    assert set(shown) <= {first, last}
    if clock(first, zone) == local:
        assert clock(last, zone) == local
        assert first <= last
    else:  # the clocks skip it
        assert first == last
        assert clock(first - 1, zone) < local < clock(first, zone)


def test_names() -> None:
    assert all(map(is_zone, ZONES))
    assert not any(map(is_zone, ["Mars", "", "+02:00", "../etc/passwd", "Europe"]))
    assert offset_at(np.array([], np.int64), "Europe/Berlin").tolist() == []
