"""Decimals from the bytes of whole numbers against Python's."""

from __future__ import annotations

import random
from decimal import Context, Decimal

import numpy as np
import pyarrow as pa
import pytest
from seeds import seeds

from uncombine.messages.spans.decimals import decimals_of_spans


@pytest.mark.parametrize("seed", seeds(20))
def test_numbers_of_all_lengths(seed: int) -> None:
    """Also numbers with more bytes than they need, with none, and with too many digits."""
    r = random.Random(seed)
    precision = r.choice([1, 5, 18, 19, 20, 37, 38])
    scale = r.randrange(precision + 1)
    most = 10**precision
    numbers = [r.randrange(10 ** r.randrange(1, 45)) * r.choice([1, -1]) for _ in range(60)]
    numbers += [0, -1, most, -most, most - 1, 1 - most, 2**127, -(2**127), 2**128, 2**127 - 1, 2**130]
    sizes = [(n.bit_length() // 8) + 1 + r.choice([0, 0, 1, 20]) for n in numbers]
    raw = [n.to_bytes(size, "big", signed=True) for n, size in zip(numbers, sizes, strict=True)] + [b""]
    ends = np.cumsum([len(one) for one in raw])
    starts = ends - [len(one) for one in raw]
    data = np.frombuffer(b"".join(raw) + bytes(16), np.uint8)
    values, bad = decimals_of_spans(data, starts, ends, pa.decimal128(precision, scale))
    values.validate(full=True)
    wide = Context(prec=60)
    want = [Decimal(n).scaleb(-scale, wide) if abs(n) < most else None for n in [*numbers, 0]]
    assert bad.tolist() == [one is None for one in want]
    assert [one for one, is_bad in zip(values.to_pylist(), bad, strict=True) if not is_bad] == [
        one for one in want if one is not None
    ]
