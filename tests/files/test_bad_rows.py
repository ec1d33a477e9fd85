"""Rows of CSV and JSON files that cannot be read: Python's own csv and json modules say which, and what the others are.

The files have rows of every kind that is bad, at random places: the good rows are read as if the others were not there,
and each of the others is told with its line and its text.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import random
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from seeds import seeds

import uncombine as uc
from uncombine.errors import UnreadableFile
from uncombine.files import text_files
from uncombine.files.reading import FileFormat, Split, read

KINDS = pa.schema(
    {
        "id": pa.int64(),
        "note": pa.string(),
        "ts": pa.timestamp("us", "UTC"),
        "price": pa.decimal128(9, 2),
        "level": pa.float64(),
        "small": pa.uint8(),
        "ok": pa.bool_(),
        "day": pa.date32(),
    }
)
Row = tuple[Any, ...]


class Bad(Exception):
    """A value is none of its type."""


def whole(text: str, least: int, most: int) -> int:
    if not re.fullmatch(r"[ \t]*-?[0-9]+[ \t]*", text) or not least <= int(text) <= most:
        raise Bad(text)
    return int(text)


def number(text: str) -> float:
    if not re.fullmatch(r"[ \t]*[-+]?[0-9]+(\.[0-9]*)?(e-?[0-9]+)?[ \t]*", text):
        raise Bad(text)
    return float(text)


def money(text: str) -> Decimal:
    try:
        value = Decimal(text.strip(" \t"))
        if value != round(value, 2) or abs(value) >= 10**7:
            raise Bad(text)
    except InvalidOperation:
        raise Bad(text) from None
    return value


def instant(text: str) -> datetime:
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        raise Bad(text) from None
    return when if when.tzinfo else when.replace(tzinfo=UTC)


def words(text: str) -> str:
    if any("\udc80" <= letter <= "\udcff" for letter in text):  # bytes that are no text
        raise Bad(text)
    return text


def day(text: str) -> Any:
    if not re.fullmatch(r"\d{4}-\d\d-\d\d", text):
        raise Bad(text)
    return instant(text).date()


READ: dict[str, Callable[[str], Any]] = {
    "id": lambda text: whole(text, -(2**63), 2**63 - 1),
    "note": words,
    "ts": instant,
    "price": money,
    "level": number,
    "small": lambda text: whole(text, 0, 255),
    "ok": lambda text: {"true": True, "false": False, "1": True, "0": False}[text],
    "day": day,
}

WRONG: dict[str, list[str]] = {
    "id": ["x", "1.5", "9" * 25, "1_000", "--5", "0x", "true", "5 5"],
    "ts": ["later", "2024-13-01T00:00:00Z", "2024-02-30", "12", "2024-01-01T25:00:00"],
    "price": ["1.234", "12345678.00", "1.2.3", "x", "1" * 60],
    "level": ["1,5x", "high", "1e", "--1", "0.5.5"],
    "small": ["-1", "256", "1.0", "a"],
    "ok": ["yes", "2", "tru e"],
    "day": ["2024-1-1", "2024-02-30", "yesterday"],
}

NOTES = [
    "plain",
    "with space",
    "käse",
    "",
    "a'b",
    'say "hi"',
    "semi;colon",
    "com,ma",
    "tab\tbed",
    "pi|pe",
    "two\nlines",
]


def value(r: random.Random, name: str) -> str:
    """A good value as text; an empty one is null."""
    if name == "note":
        return r.choice(NOTES)
    if r.random() < 0.1:
        return ""
    when = datetime(2024, 1, 1) + timedelta(seconds=r.randrange(10**7), microseconds=r.choice([0, 0, 250_000]))
    return {
        "id": lambda: r.choice([str(r.randrange(10**6)), str(-(2**63)), f" {r.randrange(9)} "]),
        "ts": lambda: when.isoformat(r.choice("T ")) + r.choice(["", "Z", "+02:00"]),
        "price": lambda: f"{r.randrange(10**6)}.{r.randrange(100):02}",
        "level": lambda: r.choice([repr(r.random()), "1e5", "-3", " 2.5"]),
        "small": lambda: str(r.randrange(256)),
        "ok": lambda: r.choice(["true", "false", "1", "0"]),
        "day": lambda: when.date().isoformat(),
    }[name]()


def shown(text: str) -> str:
    """The beginning of a text, with a mark for each byte that is none."""
    text = re.sub("[\udc80-\udcff]", "�", text)
    return text if len(text) <= 200 else f"{text[:200]}..."


class CsvCase:
    """A CSV file, and what Python's csv module finds in it."""

    def __init__(self, seed: int) -> None:
        r = self.r = random.Random(seed)
        self.several = r.random() < 0.5  # values have several lines
        self.plain = not self.several and r.random() < 0.3  # nothing is quoted
        self.encoding = r.choice(["utf8", "utf8", "latin-1", "cp1252", "utf-16"])
        self.end, self.quote = r.choice(["\n", "\r\n", "\r"]), r.choice("\"'")
        self.header, self.delimiter = r.random() < 0.7, r.choice(",;\t|")
        self.comments = [r.choice(["# a comment", "", f"an open {self.quote}"]) for _ in range(r.choice([0, 0, 1, 3]))]
        lines = [*self.comments]
        if self.header:
            lines.append(self.delimiter.join(KINDS.names))
        for _ in range(r.choice([0, 1, 30, 300])):
            lines += [""] * (r.random() < 0.05)
            lines.append(self.line())
        if self.several and r.random() < 0.3:
            lines.append(self.open_line())
        self.text = self.end.join([*lines, *([""] if r.random() < 0.8 else [])])

    def line(self) -> str:
        r = self.r
        cells = {name: value(r, name) for name in KINDS.names}
        bad = r.random() < self.share
        if bad and (name := r.choice([*WRONG, "long", "short", "open", "bytes"])) in WRONG:
            cells[name] = r.choice(WRONG[name])
        texts = [self.cell(name, text) for name, text in cells.items()]
        if bad and name == "long":
            texts.append("more")
        elif bad and name == "short":
            texts.pop(r.randrange(len(texts)))
        elif bad and name == "open" and not self.several:
            return self.open_line()
        elif bad and name == "bytes" and self.encoding in ("utf8", "cp1252"):
            texts[1] = "not \udc81 text"  # these two have no letter for this byte
        return self.delimiter.join(texts)

    share = 0.1

    def open_line(self) -> str:
        """A line with a quote that is not closed."""
        name = self.r.choice(["id", "note", "day"])
        cells = [f"{self.quote}{self.r.choice(['', 'x'])}" if n == name else "" for n in KINDS.names]
        return self.delimiter.join(cells)

    def cell(self, name: str, text: str) -> str:
        special = any(mark in text for mark in (self.delimiter, self.quote, "\n", "\r"))
        if self.plain or (not self.several and "\n" in text):
            text = re.sub(f"[{re.escape(self.delimiter)}{self.quote}\n]", "_", text)
            special = False
        if special or (text and not self.plain and self.r.random() < 0.2):
            return self.quote + text.replace(self.quote, 2 * self.quote).replace("\n", self.end) + self.quote
        return text

    @property
    def options(self) -> dict[str, Any]:
        return {
            "delimiter": self.delimiter,
            "quote_char": self.quote,
            "newlines_in_values": self.several,
            "header": self.header,
            "skip_rows": len(self.comments),
            "encoding": self.encoding,
        }

    def bytes(self) -> bytes:
        if self.encoding == "utf-16":
            return self.text.encode("utf-16")
        mark = b"\xef\xbb\xbf" if self.encoding == "utf8" and self.r.random() < 0.3 else b""
        return mark + self.text.encode(self.encoding, "surrogateescape")

    def records(self) -> Iterator[tuple[int, str, list[str] | None]]:
        """The line, the text and the values of each row; None where a quote is not closed."""
        lines = list(io.StringIO(self.text, newline=""))
        first = len(self.comments)
        if not self.several:
            for i, line in enumerate(lines[first + self.header :], first + self.header):
                if text := line.rstrip("\r\n"):
                    try:
                        yield i + 1, text, next(self.reader([text]))
                    except csv.Error:
                        yield i + 1, text, None
            return
        reader, at = self.reader(lines[first:]), first
        skipped = not self.header
        while True:
            try:
                cells = next(reader)
            except StopIteration:
                return
            except csv.Error:
                yield at + 1, lines[at].rstrip("\r\n"), None
                return
            here, at = at, first + reader.line_num
            if cells and skipped:
                yield here + 1, "".join(lines[here:at]).rstrip("\r\n"), cells
            skipped = skipped or bool(cells)

    def reader(self, lines: Sequence[str]) -> Any:
        return csv.reader(lines, delimiter=self.delimiter, quotechar=self.quote, strict=True)

    def expected(self, columns: Sequence[str], needed: Sequence[str]) -> tuple[list[Row], list[tuple[int, str]]]:
        """The good rows, and the others as line and text."""
        good, bad = list[Row](), list[tuple[int, str]]()
        for line, text, cells in self.records():
            try:
                if cells is None or len(cells) != len(KINDS):
                    raise Bad(text)
                row = dict(zip(KINDS.names, cells, strict=True))
                good.append(tuple(converted(row[name], name, name in needed) for name in columns))
            except Bad:
                bad.append((line, shown(text)))
        return good, bad


def converted(text: str, name: str, is_needed: bool) -> Any:
    """A value of CSV in its type; None for an empty one, and for a bad one that is not needed."""
    if text == "":
        return None
    try:
        return READ[name](text)
    except (Bad, KeyError):
        if is_needed:
            raise Bad(text) from None
        return None


def found(fmt: FileFormat, path: Path) -> tuple[list[Row], list[tuple[int, str]]]:
    """The rows that are read, and those that are left out as line and text."""
    left: list[pa.Table] = []
    rows: list[Row] = []
    for table in read(fmt, [Split(str(path))], lambda path, reason: pytest.fail(reason), leave_out=left.append):
        rows += zip(*(column.to_pylist() for column in table.columns), strict=True)
    told = [row for table in left for row in table.to_pylist()]
    assert {row["file"] for row in told} <= {str(path)}
    return rows, sorted((row["line"], row["text"]) for row in told)


def columns_of(r: random.Random) -> tuple[list[str], list[str]]:
    """Some columns to read, and those of them that are needed."""
    columns = r.sample(KINDS.names, r.randrange(1, len(KINDS) + 1)) if r.random() < 0.6 else KINDS.names
    return columns, (r.sample(columns, r.randrange(len(columns) + 1)) if r.random() < 0.5 else columns)


@pytest.mark.weekly
@pytest.mark.parametrize("seed", seeds(200, most=2_000))
def test_rule_68_rows_of_csv(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = CsvCase(seed)
    path = tmp_path / f"a.csv{'.gz' if case.r.random() < 0.3 else ''}"
    path.write_bytes(gzip.compress(case.bytes()) if path.suffix == ".gz" else case.bytes())
    monkeypatch.setattr(text_files, "BLOCK", case.r.choice([3, 7, 100, 1000, 8 << 20]))
    columns, needed = columns_of(case.r)
    fmt = FileFormat(
        "csv",
        KINDS,
        str(tmp_path),
        columns=tuple(columns),
        on_bad_row="leave_out",
        options=case.options,
        needed=frozenset(needed),
    )
    good, bad = case.expected(columns, needed)
    if not good and not bad:
        return  # Arrow takes a file of blank lines for an empty one
    assert found(fmt, path) == (good, bad)


class JsonCase:
    """A file of JSON lines, and what Python's json module finds in it."""

    SCHEMA = pa.schema([*(f for f in KINDS if f.name != "price"), ("inner", pa.struct({"a": pa.int32()})),
                        ("tags", pa.list_(pa.string()))])  # fmt: skip

    def __init__(self, seed: int) -> None:
        r = self.r = random.Random(seed)
        self.lines: list[bytes] = []
        for _ in range(r.choice([1, 30, 300])):
            self.lines += [b" "] * (r.random() < 0.05)
            self.lines.append(self.line())

    def line(self) -> bytes:
        r = self.r
        row: dict[str, Any] = {name: self.value(name) for name in self.SCHEMA.names if r.random() < 0.9}
        if r.random() < 0.3:
            row["more"] = {"deep": [1, {"x": None}], "id": "y"}
        if r.random() >= 0.1:
            return self.written(row)
        kind = r.choice(["type", "type", "type", "cut", "words", "list", "number", "bytes", "twice", "null", "time"])
        if kind == "type":
            name = r.choice(self.SCHEMA.names)
            row[name] = r.choice([v for v in ("x", 5, 1.5, True, [1], {"a": "b"}, 10**30, -7) if self.fault(name, v)])
        if kind == "time":
            name = r.choice(["ts", "day"])
            row[name] = r.choice(WRONG[name])
        text = self.written(row)
        return {
            "cut": text[: r.randrange(1, len(text))],
            "words": b"this is no json",
            "list": b"[" + text + b"]",
            "number": b"5",
            "bytes": text.replace(b"plain", b"\xff\xfe"),
            "twice": text.replace(b"{", b'{"id": 1, "id": 2, ', 1) if "id" not in row else text,
            "null": b"null",
        }.get(kind, text)

    def value(self, name: str) -> Any:
        r = self.r
        if r.random() < 0.1:
            return None
        when = datetime(2024, 1, 1) + timedelta(seconds=r.randrange(10**7))
        return {
            "id": lambda: r.choice([r.randrange(10**6), -(2**63), 2**63 - 1]),
            "note": lambda: r.choice(NOTES),
            "ts": lambda: when.isoformat() + r.choice(["", "Z", "+02:00"]),
            "level": lambda: r.choice([r.random(), 5, -2.5e10]),
            "small": lambda: r.randrange(256),
            "ok": lambda: r.random() < 0.5,
            "day": lambda: when.date().isoformat(),
            "inner": lambda: {"a": r.choice([None, r.randrange(9)]), "b": r.choice(NOTES)},
            "tags": lambda: r.choices(NOTES, k=r.randrange(3)),
        }[name]()

    def written(self, row: dict[str, Any]) -> bytes:
        separators = self.r.choice([(", ", ": "), (",", ":"), (" ,\t", " : ")])
        return json.dumps(row, ensure_ascii=self.r.random() < 0.5, separators=separators).encode()

    def bytes(self) -> bytes:
        end = self.r.choice([b"\n", b"\r\n"])
        mark = b"\xef\xbb\xbf" if self.r.random() < 0.2 else b""
        return mark + end.join([*self.lines, *([b""] if self.r.random() < 0.8 else [])])

    def fault(self, name: str, value: Any) -> bool:
        """True if the value is none of the type of a column."""
        try:
            self.converted(name, value)
        except (Bad, ValueError, TypeError):
            return True
        return False

    def converted(self, name: str, value: Any) -> Any:
        """A value of JSON in its type."""
        if value is None:
            return None
        if name in ("note", "ts", "day"):
            if not isinstance(value, str):
                raise Bad(value)
            return READ[name](value)
        if name in ("id", "small"):
            if not isinstance(value, int) or isinstance(value, bool):
                raise Bad(value)
            return READ[name](str(value))
        if name == "level":
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise Bad(value)
            return float(value)
        if name == "inner":
            if not isinstance(value, dict):
                raise Bad(value)
            a = value.get("a")
            if a is not None and (not isinstance(a, int) or isinstance(a, bool)):
                raise Bad(value)
            return {"a": None if a is None else whole(str(a), -(2**31), 2**31 - 1)}
        if name == "tags":
            if not isinstance(value, list):
                raise Bad(value)
            for tag in value:
                if tag is not None and not isinstance(tag, str):
                    raise Bad(value)
            return [None if tag is None else words(tag) for tag in value]
        if not isinstance(value, bool):
            raise Bad(value)
        return value

    def expected(self, columns: Sequence[str], needed: Sequence[str]) -> tuple[list[Row], list[tuple[int, str]]]:
        good, bad = list[Row](), list[tuple[int, str]]()
        for number, line in enumerate(self.lines, 1):
            if not line.strip():
                continue
            text = line.decode("utf8", "surrogateescape")
            try:
                row = json.loads(text, object_pairs_hook=once)
                if not isinstance(row, dict) and row is not None:
                    raise Bad(text)
                row = row or {}
                good.append(tuple(self.lenient(name, row.get(name), name in needed) for name in columns))
            except (Bad, ValueError):
                bad.append((number, shown(text)))
        return good, bad

    def lenient(self, name: str, value: Any, is_needed: bool) -> Any:
        if is_needed or not self.fault(name, value):
            return self.converted(name, value)
        return None


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object; a name that it has twice has no value that any type takes."""
    names = [name for name, _ in pairs]
    return {name: value if names.count(name) == 1 else object() for name, value in pairs}


@pytest.mark.weekly
@pytest.mark.parametrize("seed", seeds(200, most=2_000))
def test_rule_68_rows_of_json(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = JsonCase(seed)
    path = tmp_path / f"a.json{'.gz' if case.r.random() < 0.3 else ''}"
    path.write_bytes(gzip.compress(case.bytes()) if path.suffix == ".gz" else case.bytes())
    monkeypatch.setattr(text_files, "BLOCK", case.r.choice([1, 100, 1000, 8 << 20]))
    names = case.SCHEMA.names
    columns = case.r.sample(names, case.r.randrange(1, len(names) + 1)) if case.r.random() < 0.6 else names
    needed = case.r.sample(columns, case.r.randrange(len(columns) + 1)) if case.r.random() < 0.5 else columns
    fmt = FileFormat(
        "json",
        case.SCHEMA,
        str(tmp_path),
        columns=tuple(columns),
        on_bad_row="leave_out",
        needed=frozenset(needed),
    )
    assert found(fmt, path) == case.expected(columns, needed)


@pytest.mark.parametrize("seed", seeds(20))
@pytest.mark.parametrize("make", [CsvCase, JsonCase])
def test_rule_68_the_first_bad_row_is_an_error_that_names_its_line(
    seed: int, make: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = make(seed)
    form, schema = ("csv", KINDS) if make is CsvCase else ("json", case.SCHEMA)
    path = tmp_path / f"a.{form}"
    path.write_bytes(case.bytes())
    monkeypatch.setattr(text_files, "BLOCK", case.r.choice([100, 8 << 20]))
    good, bad = case.expected(schema.names, schema.names)
    fmt = FileFormat(form, schema, str(tmp_path), options=case.options if form == "csv" else {})
    if bad:
        with pytest.raises(UnreadableFile, match=rf"cannot be read: line {bad[0][0]}: .*on_bad_row='leave_out'"):
            found(fmt, path)
    elif good:
        assert found(fmt, path) == (good, [])


def test_a_bounded_flow_over_unreadable_json_names_the_line_and_the_remedy(tmp_path: Path) -> None:
    """With a schema and without one: lines are counted from 1."""
    path = tmp_path / "a.json"
    path.write_text('{"ts": 1}\noops\n')
    for schema in (None, pa.schema({"ts": pa.int64()})):
        with pytest.raises(UnreadableFile, match=r"line 2: .*on_bad_row='leave_out'"):
            uc.flow(uc.Files(path, schema=schema), time_format="s").run()


def test_a_row_is_judged_by_the_columns_that_a_flow_reads(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("ts,n\n2024-05-01T12:00:05Z,5\n2024-05-01T12:00:06Z,many\n")
    schema = pa.schema({"ts": pa.timestamp("us", "UTC"), "n": pa.int64()})
    flow = uc.flow(uc.Files(tmp_path, schema=schema, on_bad_row="leave_out"))
    for rows, counted in ((flow, 2), (flow.with_columns(n=uc.col("n")), 1)):
        run = rows.window("1 minute").combine(rows=uc.Count()).run()
        assert run["rows"].to_pylist() == [counted]
        assert run.counts()["unreadable"] == 2 - counted


def test_a_decimal_comma_is_no_comma(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("ts;x\n2024-05-01T12:00:05Z;1,5\n")
    with pytest.raises(uc.UncombineError, match="is one column: give delimiter=';'"):
        uc.flow(uc.Files(tmp_path))
