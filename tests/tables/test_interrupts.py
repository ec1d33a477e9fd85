"""Ctrl-C while a call waits."""

from __future__ import annotations

import signal

import pytest

from uncombine.cli.interrupts import interrupts


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
