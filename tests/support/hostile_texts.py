"""Texts that are damaged, or that would cost much if they were run or read without care."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

COSTLY = [
    "Sum('x' * 1500000000)",
    "-" * 1500 + "x",
    "-" * 1500 + "1",
    "(" * 900 + "1" + ")" * 900,
    "'%1400000000d' % 1",
    "Sum(" * 400 + "'x'" + ")" * 400,
    "Repeatedly(" * 180 + "'never'" + ")" * 181,
    "9" * 6000,
    "[" * 1900,
    "Sum('x')" + ".where(1)" * 200,
    "-" * 5000 + "x",
    "\0",
    "Fixed(" + "9" * 1900 + ")",
    "TopK('x', 1e400)",
    "Sum(-'x')",
    "quantile:x:" + "(" * 1900,
    "every " + "9" * 1900 + " rows",
    "sessions " + "9" * 1900 + " seconds",
    "2**10**9",
    "",
    "Fixed(1, 2, 3, 4, 5)",
]

_PIECES = ["'", "(", ")", "*", "%", "-", "=", ":", ",", "10**9", "1e999", "[", "\\", "é", "\0", "every"]
_PIECES += ["-" * 300, "9" * 400]


def damaged(r: random.Random, good: Sequence[str], count: int) -> Iterator[str]:
    """Good texts with pieces put in, and characters left out."""
    for _ in range(count):
        text = r.choice(good)
        for _ in range(r.randrange(1, 4)):
            at = r.randrange(len(text) + 1)
            text = text[:at] + r.choice(_PIECES) + text[at + r.choice([0, 0, 1, 5]) :]
        yield text
