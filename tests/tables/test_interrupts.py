"""Ctrl-C while a call waits."""

from __future__ import annotations

import signal
import threading

import pytest

from uncombine.tables.interrupts import ended_within, interrupts


def test_the_first_interrupt_is_noted_and_the_second_one_raised() -> None:
    before = signal.getsignal(signal.SIGINT)
    with interrupts() as come:
        signal.raise_signal(signal.SIGINT)
        assert come()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before
    with interrupts() as come:
        assert not come()


def test_a_wait_ends_with_the_end_or_an_interrupt_or_in_time() -> None:
    waits = list[float]()

    def ended(seconds: float) -> bool:
        waits.append(seconds)
        if len(waits) == 3:
            signal.raise_signal(signal.SIGINT)
        return len(waits) == 5

    with interrupts() as come:
        assert not ended_within(ended, 60, come)
    assert waits == [0.5] * 3
    with interrupts() as come:
        assert ended_within(ended, 60, come)
        assert not ended_within(lambda _: False, 0.01, come)


def test_no_wait_is_shorter_than_a_millisecond() -> None:
    """PySpark makes whole milliseconds of it, and Spark refuses to wait for none."""
    waits = list[float]()

    def ended(seconds: float) -> bool:
        waits.append(seconds)
        return False

    assert not ended_within(ended, 0.0004, lambda: False)
    assert {int(seconds * 1000) for seconds in waits} == {1}


def test_another_thread_hears_of_none() -> None:
    told = list[bool]()

    def block() -> None:
        with interrupts() as come:
            told.append(come())

    thread = threading.Thread(target=block)
    thread.start()
    thread.join()
    assert told == [False]
