"""Numbers that begin with a zero are names, and stay texts where no schema says otherwise."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import uncombine as uc

TEXTS = {
    "01234": pa.string(),
    "+01": pa.string(),
    "-007": pa.string(),
    "00": pa.string(),
    "0": pa.int64(),
    "-0": pa.int64(),
    "10": pa.int64(),
    "0.5": pa.float64(),
    "00.5": pa.float64(),
}


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("place", [0, 2])
def test_a_zero_makes_a_name(text: str, place: int, tmp_path: Path) -> None:
    values = ["5", "", "7"]
    values[place] = text
    lines = [f"2024-01-01T00:00:0{i}Z,{value},{i}" for i, value in enumerate(values)]
    (tmp_path / "a.csv").write_text("\n".join(["ts,zip,n", *lines, ""]))
    schema = uc.flow(uc.Files(tmp_path)).schema
    assert schema.field("zip").type == TEXTS[text]
    assert schema.field("n").type == pa.int64()


def test_two_keys_stay_two(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("ts,zip,x\n2024-01-01T00:00:00Z,01234,5\n2024-01-01T00:00:01Z,1234,1\n")
    totals = uc.flow(uc.Files(tmp_path)).combine(by="zip", x=uc.Sum("x")).run()
    assert {row["zip"]: row["x"] for row in totals.to_pylist()} == {"01234": 5, "1234": 1}
    schema = pa.schema({"ts": pa.timestamp("us", "UTC"), "zip": pa.int64(), "x": pa.int64()})
    totals = uc.flow(uc.Files(tmp_path, schema=schema)).combine(by="zip", x=uc.Sum("x")).run()
    assert [(row["zip"], row["x"]) for row in totals.to_pylist()] == [(1234, 6)]
