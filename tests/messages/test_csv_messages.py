"""Messages of CSV against a plain split of their texts."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest
from seeds import seeds

import uncombine as uc
from uncombine.errors import InvalidArgument, TypeMismatch

KINDS = pa.schema({"n": pa.int64(), "who": pa.string(), "x": pa.float64(), "price": pa.decimal128(9, 2)})
BAD = [b"", b"  ", b"1,a", b"1,a,2,3,4", b"one,a,2,3", b"1,a,b,3", b'1,"a,2,3', b"1,a\nb,2,3", b"\xff\xfe,a,1,2", b"\n"]
BAD += [b"1,\xff,2,3", b"1,a,2,3\n1,a,2,3"]


@pytest.mark.parametrize("seed", seeds(30))
def test_lines_and_bad_ones_among_them(seed: int) -> None:
    r = random.Random(seed)
    sign = r.choice([",", ";", "\t"])
    messages, rows, good = [], [], []
    for i in range(r.choice([1, 20, 500])):
        good.append(r.random() < 0.9)
        row = {"n": i, "who": r.choice(["a", "é", None]), "x": i / 8, "price": None}
        text = f"{i},{row['who'] or ''},{i / 8},".replace(",", sign) + r.choice(["", "\n", "\r\n"])
        messages.append(text.encode() if good[-1] else r.choice(BAD).replace(b",", sign.encode()))
        rows += [row] if good[-1] else []
    decoded = uc.messages.Csv(KINDS, delimiter=sign).decode(pa.array(messages, pa.binary()))
    assert decoded.table.to_pylist() == rows
    assert decoded.good.to_pylist() == good
    assert len(decoded.reasons) == good.count(False)
    assert decoded.reasons.null_count == 0


def test_quoted_values() -> None:
    format = uc.messages.Csv(pa.schema({"a": pa.string(), "b": pa.string()}), null_values=["", "NULL"])
    table = format.decode(pa.array([b'"x,y","say ""hi"""', b'NULL,""'])).table
    assert table.to_pylist() == [{"a": "x,y", "b": 'say "hi"'}, {"a": None, "b": ""}]


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        (({"n": "long"},), TypeMismatch, "takes an Arrow schema"),
        ((pa.schema([]),), InvalidArgument, "at least one"),
        ((pa.schema({"n": pa.list_(pa.int64())}),), InvalidArgument, "which no value of CSV is"),
        ((KINDS, ";;"), InvalidArgument, "has a value that is not allowed"),
        ((KINDS, ",", "NULL"), TypeMismatch, "takes several texts"),
    ],
)
def test_options_that_are_refused(arguments: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        uc.messages.Csv(*arguments)
