"""A screen refuses no row that Arrow takes, and spares Arrow the most common bad rows."""

from __future__ import annotations

import json
import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from seeds import seeds

from uncombine.files.row_screens import screened_json
from uncombine.files.text_files import CsvRows, JsonRows
from uncombine.files.unreadable_rows import CAUSES, REFUSED, BadRows, TextBlock, TextRow, read_rows

TYPES = [
    pa.int8(), pa.uint16(), pa.int64(), pa.uint64(), pa.float32(), pa.float64(), pa.decimal128(9, 2), pa.bool_(),
    pa.string(), pa.date32(), pa.timestamp("us", "UTC"), pa.time32("s"), pa.time64("us"),
]  # fmt: skip
TEXTS = [
    "5", "-5", "+5", "0x1f", "0X", "1e3", "1E-3", "1.5", ".5", "1.", "nan", "NaN", "-inf", "Infinity", "9" * 22, "true",
    "True", "FALSE", "yes", "1_0", "2024-01-01", "2024-01-01T05:06:07Z", "2024-01-01 05:06:07.123+02:00", "05:06",
    "05:06:07", "05:06:07.25", "2024-1-1", "x", "", " ", "käse", "\udcff", "1d3", "１", "12:60:00",
]  # fmt: skip


def is_read(read: Any, text: bytes) -> bool:
    try:
        read(text)
    except REFUSED:
        return False
    return True


@pytest.mark.weekly
@pytest.mark.parametrize("kind", TYPES, ids=str)
@pytest.mark.parametrize("point", [".", ","])
def test_csv_that_arrow_takes_is_not_screened(kind: pa.DataType, point: str) -> None:
    r = random.Random(str(kind))
    texts = [pad + text.replace(".", point) + pad for text in TEXTS for pad in ("", " ", "\t")]
    texts += ["".join(r.choices("0123456789.,eE+-xTZ: \t", k=r.randrange(1, 12))).replace(";", "") for _ in range(300)]
    reader = CsvRows(["v", "w"], pa.schema({"v": kind}), {"delimiter": ";", "decimal_point": point})
    rows = [TextRow(i, f"{text};1".encode("utf8", "surrogatepass")) for i, text in enumerate(texts)]
    rows += [TextRow(0, b"1"), TextRow(0, b"1;2;3")]
    good = np.array([is_read(reader, row.text + b"\n") for row in rows])
    screened = reader.screened(rows)
    assert not (screened & good).any(), [rows[i] for i in np.flatnonzero(screened & good)]
    assert screened[-2:].all()
    if kind not in (pa.string(), pa.bool_()):
        assert screened[texts.index("x")]
        assert screened[texts.index("käse")]
    if pa.types.is_integer(kind):
        assert screened[texts.index(f"1{point}5")]
    if kind == pa.string():
        assert screened[texts.index("\udcff")]


@pytest.mark.parametrize("seed", seeds(20))
def test_json_that_arrow_takes_is_not_screened(seed: int) -> None:
    r = random.Random(seed)
    kinds = pa.schema([*((f"c{i}", kind) for i, kind in enumerate(TYPES) if not pa.types.is_time(kind)),
                       ("s", pa.struct({"a": pa.int64()})), ("l", pa.list_(pa.int64()))])  # fmt: skip
    values: list[Any] = [None, True, 5, -1, 300, 1.5, 2**63, 2**64, 10**30, "x", "1.5", "2024-01-01", [1], ["a"], [],
                         {"a": 1}, {"a": "b"}, {}, float("nan"), float("inf")]  # fmt: skip
    texts = [json.dumps({name: r.choice(values) for name in r.sample(kinds.names, 2)}) for _ in range(200)]
    texts += ['{"c2": Inf}', '{"c4": -Inf}', '{"c2": 1}{"c2": 2}', '{"c2": 1} x', '{"c2": 01}', '{"c2": 1.}', "null"]
    texts += ["\ufeff{}", "5", "[]", "{", "[" * 100_000, "{'a': 1}", '{"c2": 1e2}', '{"c2": -0}', '{"c2": 1, "c2": 2}']
    texts += ['{"c8": "\\ud800"}', '{"c8": "a\x01"}', '{"x": "\udcff"}', '{"c8": "\udcff"}']
    rows = [TextRow(i, text.encode("utf8", "surrogatepass")) for i, text in enumerate(texts)]
    screened = screened_json(rows, kinds)
    # Each with a row before it: the first value of a file may not be null.
    good = np.array(
        [is_read(JsonRows(kinds), b"{}\n" + row.text.removeprefix(b"\xef\xbb\xbf") + b"\n") for row in rows]
    )
    assert not (screened & good).any(), [rows[i] for i in np.flatnonzero(screened & good)]
    for text in ("5", "[]", "{", "{'a': 1}", '{"c8": "\udcff"}'):
        assert screened[texts.index(text)], text


@pytest.mark.parametrize("form", ["csv", "json"])
def test_a_file_of_bad_rows_is_not_read_row_by_row(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    schema = pa.schema({"a": pa.int64(), "b": pa.string()})
    if form == "csv":
        reader: Any = CsvRows(["a", "b"], schema, {})
        lines = [[b"1.5,x", b"x,y", b"1", b"1,2,3", b"1,\xff"][i % 5] for i in range(5_000)]
    else:
        reader = JsonRows(schema)
        lines = [[b'{"a":1.5}', b'{"a":"x"}', b"a,b", b'{"b":"\xff"}', b'{"a":1'][i % 5] for i in range(5_000)]
    lines[777] = b"7,good" if form == "csv" else b'{"a":7,"b":"good"}'
    calls = 0
    call = type(reader).__call__

    def counted(self: Any, data: bytes) -> pa.Table:
        nonlocal calls
        calls += 1
        return call(self, data)

    monkeypatch.setattr(type(reader), "__call__", counted)
    left: list[pa.Table] = []
    data = b"\n".join(lines)
    tables = list(read_rows(TextBlock(data, 1, 4_999, True), reader, BadRows("a", left.append)))
    assert [row for table in tables for row in table.to_pylist()] == [{"a": 7, "b": "good"}]
    assert sum(table.num_rows for table in left) == 4_999
    assert calls < 5 + CAUSES
    causes = [cause for table in left for cause in table["cause"].to_pylist()]
    assert "1.5" in str(causes[0])
    assert causes.count(None) >= 4_999 - CAUSES
