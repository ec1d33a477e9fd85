"""The text of a CSV file is cut into the rows that Arrow's parser finds in it, whatever pieces it comes in."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pyarrow.csv as pacsv
import pytest
from seeds import seeds

from uncombine.files import csv_text as module
from uncombine.files.csv_text import CsvForm, TextStream, line_ends
from uncombine.files.unreadable_rows import TextBlock


class Pieces(TextStream):
    """A text that is in no file."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def fill(self, memory: memoryview) -> int:
        piece, self.data = self.data[: len(memory)], self.data[len(memory) :]
        memory[: len(piece)] = piece
        return len(piece)


def blocks_of(form: CsvForm, data: bytes, size: int, skip_rows: int, header: bool) -> list[TextBlock]:
    """The blocks of a text, with memory of their own."""
    blocks = form.blocks(Pieces(data), size, skip_rows, header)
    return [block._replace(data=bytes(block.data)) for block in blocks]


LETTERS = ["a", "b", ",", ",", '"', '"', "\n", "\n", "\r\n", "\r", "\\", "'", " "]
LINES = ["a", ",", "\n", "\n", "\r\n", "\r"]


def arrow_rows(data: bytes, options: dict[str, Any]) -> int:
    """The number of rows that Arrow finds, of any length."""
    odd: list[object] = []
    parse = pacsv.ParseOptions(invalid_row_handler=lambda row: odd.append(row) or "skip", **options)
    table = pacsv.read_csv(
        pa.BufferReader(data),
        pacsv.ReadOptions(use_threads=False, column_names=["a"], block_size=len(data) + 1),
        parse,
        pacsv.ConvertOptions(column_types={"a": pa.binary()}),
    )
    return table.num_rows + len(odd)


def options_of(r: random.Random) -> dict[str, Any]:
    return {
        "quote_char": r.choice(['"', '"', "'", False]),
        "double_quote": r.random() < 0.7,
        "escape_char": r.choice([False, False, "\\"]),
        "newlines_in_values": True,
    }


@pytest.mark.parametrize("seed", seeds(40))
def test_rows_are_those_of_arrow(seed: int) -> None:
    """Of a text that ends with whole rows, each row is one of Arrow's, and all of them are as many."""
    r = random.Random(seed)
    for _ in range(40):
        options = options_of(r)
        data = "".join(r.choices(LETTERS, k=r.randrange(1, 40))).encode()
        form = CsvForm.of(options)
        rows, endless = form.rows(data, 1)
        assert form.is_closed(data) == (not endless)
        if endless or (options["escape_char"] and data.endswith(b"\\")):
            continue
        if rows:
            assert arrow_rows(data, options) == len(rows), (options, data)
        for row in rows:
            assert arrow_rows(row.text, options) == 1, (options, data, row)
            assert row.line == 1 + line_ends(data[: data.index(row.text, _start(data, row.line))])


def _start(data: bytes, line: int) -> int:
    """The place of a line."""
    place = 0
    for _ in range(line - 1):
        end = module._END.search(data, place)
        assert end is not None
        place = end.end()
    return place


@pytest.mark.parametrize("seed", seeds(40))
def test_pieces_of_any_size_give_the_same_rows(seed: int) -> None:
    r = random.Random(seed)
    for _ in range(20):
        options = {**options_of(r), "newlines_in_values": r.random() < 0.7}
        form, header, skipped = CsvForm.of(options), r.random() < 0.5, r.choice([0, 0, 1, 2])
        head = b"".join(b'an open " quote' + r.choice([b"\n", b"\r\n"]) for _ in range(skipped))
        head += b"x,y\n" if header else b""
        data = head + "".join(r.choices(LETTERS, k=r.randrange(60))).encode()
        whole, endless = form.rows(data[len(head) :], 1 + line_ends(head))
        if not options["newlines_in_values"] and (
            endless or any(b"\n" in row.text or b"\r" in row.text for row in whole)
        ):
            continue  # a block may end within quotes that no value has
        blocks = blocks_of(form, data, r.choice([1, 2, 3, 7, 100]), skipped, header)
        assert b"".join(block.data for block in blocks) == data[len(head) :]
        assert [block.is_last for block in blocks[:-1]] == [False] * (len(blocks) - 1)
        found = [form.rows(block.data, block.line) for block in blocks]
        assert [row for rows, _ in found for row in rows] == whole
        assert [row for _, rows in found for row in rows] == endless
        assert all(block.lines == line_ends(block.data) for block in blocks)


@pytest.mark.parametrize("seed", seeds(40))
def test_a_block_is_whole_if_each_of_its_lines_is_a_row(seed: int) -> None:
    """A line with an open quote and the next one are a row for Arrow, which takes no value of several lines."""
    r = random.Random(seed)
    for _ in range(60):
        options = {**options_of(r), "newlines_in_values": False, "escape_char": False}
        data = "".join(r.choices(r.choice([LETTERS, LINES]), k=r.randrange(1, 40))).encode()
        form = CsvForm.of(options)
        rows, endless = form.rows(data, 1)
        if not rows and not endless:
            continue
        block = TextBlock(memoryview(data), 1, line_ends(data), is_last=True)
        assert form.is_whole(block, arrow_rows(data, options)) == (not endless), (options, data)


def test_a_block_without_a_bad_row_is_not_looked_through_for_quotes(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []
    is_special = CsvForm._is_special

    def counted(self: CsvForm, data: bytes, start: int, stop: int) -> bool:
        looked.append(stop - start)
        return is_special(self, data, start, stop)

    monkeypatch.setattr(CsvForm, "_is_special", counted)
    form = CsvForm()
    for block in form.blocks(Pieces(b'a,"b"\n' * 100_000), 1 << 20, 0, False):
        assert form.is_whole(block, block.lines)
    assert max(looked) < 100


def test_a_long_row_is_not_searched_with_each_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    end = CsvForm.end

    def counted(self: CsvForm, data: bytes, start: int, stop: int) -> int:
        asked.append(stop)
        return end(self, data, start, stop)

    monkeypatch.setattr(CsvForm, "end", counted)
    blocks = blocks_of(CsvForm(), b"x" * 10_000, 10, 0, False)
    assert [len(block.data) for block in blocks] == [10_000]
    assert len(asked) < 20


def test_a_row_has_a_longest_length(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LONGEST", 50)
    with pytest.raises(pa.ArrowInvalid, match="it has a line of more than 50 bytes"):
        blocks_of(CsvForm(), b"x" * 1000, 10, 0, False)


def test_fewer_lines_than_are_skipped_are_no_rows() -> None:
    for data, skip_rows, header in [(b"one\n", 5, True), (b"one\n", 0, True), (b"one", 0, True), (b"", 0, False)]:
        assert blocks_of(CsvForm(), data, 3, skip_rows, header) == []
    assert [block.data for block in blocks_of(CsvForm(), b"one\n", 3, 0, False)] == [b"one\n"]
