"""Rows are cut in halves until what is refused is one row, and each that is refused is told once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import uncombine as uc
from uncombine.files.unreadable_rows import UNREADABLE, BadRow, BadRows, TextBlock, TextRow, read_rows


class Numbers:
    """Reads rows of numbers, and counts how often it is asked. A row of "+" belongs to the one before it."""

    def __init__(self, schema: pa.Schema | None = None) -> None:
        self.schema = schema or pa.schema({"n": pa.int64()})
        self.calls = 0

    def __call__(self, data: bytes) -> pa.Table:
        self.calls += 1
        lines = data.replace(b"\n+", b"").splitlines()
        return pa.table({name: pa.array([int(line) for line in lines], pa.int64()) for name in self.schema.names})

    def only(self, columns: Sequence[str]) -> Numbers:
        return self

    def is_whole(self, block: TextBlock, rows: int) -> bool:
        return True

    def rows(self, data: bytes, line: int) -> tuple[list[TextRow], list[TextRow]]:
        return [TextRow(number, text) for number, text in enumerate(data.splitlines(), line)], []

    def screened(self, rows: Sequence[TextRow]) -> np.ndarray:
        return np.zeros(len(rows), np.bool_)


def found(data: bytes, line: int = 1, reader: Numbers | None = None) -> tuple[list[int], list[tuple[int, str]]]:
    left: list[pa.Table] = []
    tables = list(read_rows(TextBlock(data, line, data.count(b"\n")), reader or Numbers(), BadRows("f", left.append)))
    rows = [n for table in tables for n in table["n"].to_pylist()]
    return rows, [(row["line"], row["text"]) for table in left for row in table.to_pylist()]


def test_good_rows_are_read_at_once() -> None:
    reader = Numbers()
    assert found(b"1\n2\n3\n", reader=reader) == ([1, 2, 3], [])
    assert reader.calls == 1


def test_bad_rows_are_found_by_halves_and_the_others_keep_their_order() -> None:
    reader, lines = Numbers(), [str(i).encode() for i in range(1000)]
    lines[3] = lines[500] = b"x"
    assert found(b"\n".join(lines), 8, reader) == (
        [i for i in range(1000) if i not in (3, 500)],
        [(11, "x"), (508, "x")],
    )
    assert reader.calls < 50
    assert found(b"x\ny") == ([], [(1, "x"), (2, "y")])


def test_rows_that_run_into_each_other_are_read_apart() -> None:
    assert found(b"1\n2\n+\n3\n4\n5\n6\nx") == ([1, 2, 3, 4, 5, 6], [(3, "+"), (8, "x")])


def test_an_error_names_the_first_bad_row() -> None:
    block = TextBlock(b"1\nx\ny", 5, 2)
    with pytest.raises(BadRow, match=r"^line 6: invalid literal for int\(\) with base 10: b'x'$"):
        list(read_rows(block, Numbers(), BadRows("f")))


def test_the_places_that_arrow_counts_are_left_out_of_an_error() -> None:
    for words in ("In CSV column #0: Row #3: bad", "bad in row 0"):
        with pytest.raises(BadRow, match=r"^line 7: (In CSV column #0: )?bad$"):
            BadRows("f")([TextRow(7, b"")], pa.ArrowInvalid(words))


def test_a_value_that_is_none_of_its_type_is_told_without_a_cause_that_arrow_supposes() -> None:
    zoned = pa.array(["2024-02-31T11:00:06Z"])
    for kind in (pa.timestamp("us", "UTC"), pa.timestamp("us")):
        with pytest.raises(pa.ArrowInvalid) as arrow:
            zoned.cast(kind)
        with pytest.raises(BadRow) as told:
            BadRows("f")([TextRow(7, b"")], arrow.value)
        assert str(told.value) == f"line 7: '2024-02-31T11:00:06Z' is no {kind}"


def test_other_errors_are_no_fault_of_a_row() -> None:
    class Broken(Numbers):
        def __call__(self, data: bytes) -> pa.Table:
            raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        found(b"1\nx", reader=Broken())


def test_the_place_of_a_row_is_told_without_the_name_of_the_local_file_system() -> None:
    left: list[pa.Table] = []
    for path, shown in [
        ("/a b.csv", "/a b.csv"),
        ("file:/a.csv", "/a.csv"),
        ("s3a://bucket/a.csv", "s3://bucket/a.csv"),
    ]:
        BadRows(path, left.append)([TextRow(1, b"k" * 99), TextRow(2, b"\xff\n")], "no text", None)
        assert left[-1].schema == UNREADABLE
        assert left[-1].to_pylist() == [
            {"file": shown, "line": 1, "text": "k" * 99, "cause": "no text"},
            {"file": shown, "line": 2, "text": "�\n", "cause": None},
        ]
    BadRows("f", left.append)([], "")
    assert len(left) == 3


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ('{"k": "s2", "ts": "2024-05-01T12:06:', "the line ends within a text"),
        ('{"k": "s2", "x": "a\\', "the line ends within a text"),
        ('{"k": "}]", "x": 5', "the line ends within an object"),
        ('{"k": "s2", "x": [1, [2], 3', "the line ends within a list"),
        ('{"k": "s2", "x": "hot"}', 'JSON parse error: Column(/x) changed from number to string: "hot"'),
        ('{"k": "s2", "x": {"a": 1}}', 'JSON parse error: Column(/x) changed from number to object: {"a": 1}'),
        ('{"k": "s2" "x": 5}', "JSON parse error: Missing a comma or '}' after an object member."),
    ],
)
def test_the_cause_of_a_row_of_json_is_told_by_the_row(text: str, cause: str, tmp_path: Path) -> None:
    """Arrow says of a line that is cut off which rule its last character breaks, and of a value only its type."""
    (tmp_path / "a.json").write_text('{"k": "s1", "ts": "2024-05-01T12:06:00Z", "x": 1}\n' + text + "\n")
    schema = pa.schema({"k": pa.string(), "ts": pa.timestamp("us", "UTC"), "x": pa.float64()})
    rows = uc.flow(uc.Files(str(tmp_path), schema=schema, on_bad_row="leave_out"))
    result = rows.window("global").combine(by="k", x=uc.Sum("x")).run()
    assert [row["cause"] for row in result.left_out.to_pylist() if row["why"] == "unreadable"] == [cause]


def test_a_cause_is_short_whatever_the_value_is() -> None:
    left: list[pa.Table] = []
    BadRows("f", left.append)([TextRow(1, b"x")], ValueError("k" * 10_000))
    assert len(left[0]["cause"][0].as_py()) == 203
