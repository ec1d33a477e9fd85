"""Ctrl-C while a call waits."""

from __future__ import annotations

import signal
import threading

import pytest

from uncombine.tables.interrupts import ended_within, interrupts, unbroken, waited


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


def test_a_wait_is_interrupted_between_two_calls() -> None:
    """The call that waits is never broken, and one interrupt ends the wait as Python's own would."""
    calls = list[str]()

    def ended(_: float) -> bool:
        calls.append("begins")
        signal.raise_signal(signal.SIGINT)
        calls.append("ends")
        return False

    for seconds in (None, 60):
        with pytest.raises(KeyboardInterrupt):
            waited(ended, seconds)
    assert calls == ["begins", "ends"] * 2


def test_an_interrupt_comes_after_work_that_is_not_to_be_broken() -> None:
    done = list[str]()

    def work() -> None:
        signal.raise_signal(signal.SIGINT)
        done.append("whole")

    with pytest.raises(KeyboardInterrupt):
        unbroken(work)
    assert done == ["whole"]


def test_a_handler_of_the_program_keeps_the_signal() -> None:
    heard = list[int]()
    before = signal.signal(signal.SIGINT, lambda number, _: heard.append(number))
    try:
        with interrupts() as come:
            signal.raise_signal(signal.SIGINT)
            assert not come()
        waits = iter([False, True])
        assert waited(lambda _: (signal.raise_signal(signal.SIGINT), next(waits))[1], None) is None
    finally:
        signal.signal(signal.SIGINT, before)
    assert heard == [signal.SIGINT] * 3


def test_a_block_around_another_one_hears_of_the_interrupt() -> None:
    with interrupts() as come:
        assert waited(lambda _: signal.raise_signal(signal.SIGINT) is None, 60)
        assert come()


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
