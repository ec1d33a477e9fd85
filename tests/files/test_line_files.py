"""Files of text whose lines are rows, by Python's own lines."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pytest
from seeds import seeds

import uncombine as uc
from uncombine.errors import InvalidArgument, TypeMismatch, UnreadableFile
from uncombine.files import text_files
from uncombine.files.reading import describe, read, splits


def lines_of(path: Path) -> list[str]:
    fmt = describe(str(path), "text")
    tables = read(fmt, splits(fmt, str(path)), bad=print)
    return [line for table in tables for line in table["value"].to_pylist()]


@pytest.mark.parametrize("seed", seeds(20, 500))
def test_a_line_is_a_row(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    r = random.Random(seed)
    monkeypatch.setattr("uncombine.files.text_files.BLOCK", r.choice([1, 3, 8, text_files.BLOCK]))
    lines = ["".join(r.choices('a{"é\u2028 \t', k=r.randrange(6))) for _ in range(r.randrange(1, 9))]
    end = r.choice(["\n", "\r\n"])
    whole = end.join(lines) + (end if r.random() < 0.5 or not lines[-1] else "")
    path = tmp_path / "a.log"
    path.write_bytes(whole.encode())
    assert lines_of(path) == lines


def test_a_folder_and_messages_of_a_changelog(tmp_path: Path) -> None:
    folder = tmp_path / "day=3"
    folder.mkdir()
    (folder / "a.txt").write_text('{"op": "c", "after": {"ts": 1, "id": 7}}\noops\n')
    row = pa.schema({"ts": pa.timestamp("us", "UTC"), "id": pa.int64()})
    flow = uc.flow(uc.Files(tmp_path, format="text"), changelog=uc.changelog.Debezium(schema=row))
    with pytest.raises(InvalidArgument, match="no JSON"):
        flow.run()
    (folder / "a.txt").write_text('{"op": "c", "after": {"ts": 1, "id": 7}}\n')
    assert flow.run()["id"].to_pylist() == [7]


def test_bytes_that_are_no_text_are_a_damaged_file(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"a\n\xff\n")
    with pytest.raises(UnreadableFile):
        lines_of(tmp_path / "a.txt")


def test_files_are_checked_when_they_are_named() -> None:
    with pytest.raises(InvalidArgument, match="there is no file format 'txt'"):
        uc.Files("/in", format="txt")  # type: ignore[arg-type]
    with pytest.raises(TypeMismatch, match="takes an Arrow schema"):
        uc.Files("/in", schema="n int")  # type: ignore[arg-type]
