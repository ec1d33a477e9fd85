"""Windows are values: equal, hashable, frozen, and their repr reads back."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError, replace
from datetime import timedelta

import numpy as np
import pytest

import uncombine as uc
from uncombine.windows import Window


def seconds(times: np.ndarray) -> tuple[None, np.ndarray, np.ndarray]:
    return None, times, times + 1_000_000


def alone(code: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    return np.arange(len(code))


VALUES = {
    "Global()": lambda: uc.Global(),
    "Fixed('1 minute')": lambda: uc.Fixed(timedelta(minutes=1)),
    "Fixed('1 day', offset='6 hours')": lambda: uc.Fixed("24 hours", "360 minutes"),
    "Fixed('1 minute', per_key_phase=True)": lambda: uc.Fixed("60 seconds", per_key_phase=True),
    "Sliding('1 hour', '10 minutes')": lambda: uc.Sliding("60 minutes", "10 minutes"),
    "Sliding('1 hour', '10 minutes', offset='-5 seconds')": lambda: uc.Sliding("1 hour", "10 min", "-5 s"),
    "Sessions('30 minutes')": lambda: uc.Sessions("0.5 hours"),
    "Calendar('day')": lambda: uc.Calendar("days"),
    "Calendar('week', tz='Europe/Berlin', week_start='sunday')": lambda: uc.Calendar("week", "Europe/Berlin", "sunday"),
    "Inherit()": lambda: uc.Inherit(),
    "Custom(seconds)": lambda: uc.Custom(seconds),
    "Custom(seconds, merge=alone)": lambda: uc.Custom(seconds, alone),
    "Custom(seconds, merge='overlap')": lambda: uc.Custom(seconds, merge="overlap"),
}


@pytest.mark.parametrize("text", VALUES)
def test_repr_reads_back(text: str) -> None:
    value = VALUES[text]()
    assert repr(value) == text
    names = {name: getattr(uc.windows, name) for name in uc.windows.__all__}
    assert eval(text, names | {"seconds": seconds, "alone": alone}) == value


@pytest.mark.parametrize("text", VALUES)
def test_equal_settings_are_equal_values(text: str) -> None:
    value, again = VALUES[text](), VALUES[text]()
    assert value == again
    assert hash(value) == hash(again)
    assert pickle.loads(pickle.dumps(value)) == value


def test_all_kinds_differ() -> None:
    values = [make() for make in VALUES.values()]
    assert len(set(values)) == len(values)
    assert {type(value) for value in values} == set(Window.__subclasses__())


def test_values_are_frozen_and_can_be_varied() -> None:
    window = uc.Fixed("1 minute")
    with pytest.raises(FrozenInstanceError):
        window.size = uc.span("1 hour")  # type: ignore[misc]
    assert replace(window, offset="5 seconds") == uc.Fixed("1 minute", "5 seconds")


def test_whether_an_end_follows_from_its_start() -> None:
    assert all(w.end_follows_start for w in [uc.Global(), uc.Fixed("1 s"), uc.Sliding("1 s", "1 s")])
    assert not any(w.end_follows_start for w in [uc.Sessions("1 s"), uc.Inherit(), uc.Custom(seconds)])
