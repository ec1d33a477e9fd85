"""Files damaged at random: each is unreadable, or gives rows that are sound; none stops the process that reads it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from programs import program
from programs.damage import FORMATS

import uncombine as uc
from uncombine.errors import UnreadableFile
from uncombine.sparkops.readers import reading
from uncombine.sparkops.readers.reading import describe, read, splits

SCRIPT = program("damage")


def outcomes(form: str, first: int, last: int, folder: Path) -> dict[str, int]:
    """The number of files that were read, and of the others; a crash or another error fails and names the seed."""
    command = [sys.executable, str(SCRIPT), form, str(first), str(last), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True)
    lines = [line.split(maxsplit=3) for line in done.stdout.splitlines()]
    assert done.returncode == 0, f"exit {done.returncode} at {' '.join(lines[-1])} of {form}: {done.stderr[-2000:]}"
    found = [line[3] for line in lines if line[0] == "ok"]
    return {name: found.count(name) for name in ("read", "unreadable", "refused")}


def test_damaged_files_of_every_format(tmp_path: Path) -> None:
    found = outcomes("all", 0, 15, tmp_path)
    assert sum(found.values()) == 15 * len(FORMATS)
    assert found["read"] >= 5
    assert found["unreadable"] >= 60


@pytest.mark.soak
@pytest.mark.parametrize("form", FORMATS)
def test_many_damaged_files(tmp_path: Path, form: str) -> None:
    found = outcomes(form, 0, 1000, tmp_path)
    assert sum(found.values()) == 1000


def failed(path: str, reason: str) -> None:
    raise AssertionError((path, reason))


def write(path: Path, column: pa.Array) -> Path:
    table = pa.table({"k": range(len(column)), "v": column})
    with pa.ipc.new_file(str(path), table.schema) as writer:
        writer.write_table(table)
    return path


def raw(kind: pa.DataType, count: int, *buffers: bytes | None) -> pa.Array:
    given = [None if data is None else pa.py_buffer(data) for data in buffers]
    return pa.Array.from_buffers(kind, count, given)


def int32s(*numbers: int) -> bytes:
    return b"".join(number.to_bytes(4, "little", signed=True) for number in numbers)


WRONG = {
    "offset after the end of the text": raw(pa.string(), 2, None, int32s(0, 90, 3), b"abc"),
    "offsets that go down": raw(pa.string(), 3, None, int32s(0, 3, 1, 3), b"abc"),
    "text that is not UTF-8": raw(pa.string(), 2, None, int32s(0, 1, 3), b"a\xff\xfe"),
    "a letter cut in two": raw(pa.string(), 2, None, int32s(0, 1, 2), "é".encode()),
    "index outside its dictionary": pa.DictionaryArray.from_buffers(
        pa.dictionary(pa.int32(), pa.string()), 2, [None, pa.py_buffer(int32s(0, 7))], pa.array(["a"])
    ),
    "negative index": pa.DictionaryArray.from_buffers(
        pa.dictionary(pa.int32(), pa.string()), 2, [None, pa.py_buffer(int32s(0, -1))], pa.array(["a"])
    ),
    "list beyond its values": pa.Array.from_buffers(
        pa.list_(pa.int64()), 2, [None, pa.py_buffer(int32s(0, 50, 2))], children=[pa.array([1, 2])]
    ),
}


@pytest.mark.parametrize("what", WRONG)
@pytest.mark.parametrize("on_bad_file", ["error", "skip"])
def test_layouts_that_lie_are_unreadable(tmp_path: Path, what: str, on_bad_file: str) -> None:
    path = write(tmp_path / "x.arrow", WRONG[what])
    fmt = describe(str(path), on_bad_file=on_bad_file, filter=uc.col("k") >= 0)
    skipped: list[str] = []
    if on_bad_file == "error":
        with pytest.raises(UnreadableFile, match=r"x\.arrow cannot be read: column 'v'"):
            list(read(fmt, splits(fmt, str(path)), failed))
    else:
        assert list(read(fmt, splits(fmt, str(path)), lambda name, reason: skipped.append(reason))) == []
        assert len(skipped) == 1


HUGE = pa.ArrowMemoryError("malloc of size 9999999999999 failed")


@pytest.mark.parametrize("error", [KeyError("x"), ValueError("x"), OverflowError("x"), EOFError(), HUGE])
@pytest.mark.parametrize("on_bad_file", ["error", "skip"])
def test_any_error_of_a_reader_is_the_files_fault(
    tmp_path: Path, error: Exception, on_bad_file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "x.arrow", pa.array(["a"]))
    fmt = describe(str(path), on_bad_file=on_bad_file)

    def broken(table: pa.Table) -> pa.Table:
        raise error

    monkeypatch.setattr(reading, "validated", broken)
    skipped: list[str] = []
    if on_bad_file == "error":
        with pytest.raises(UnreadableFile, match=r"x\.arrow cannot be read"):
            list(read(fmt, splits(fmt, str(path)), failed))
    else:
        assert list(read(fmt, splits(fmt, str(path)), lambda name, reason: skipped.append(reason))) == []
        assert len(skipped) == 1


@pytest.mark.parametrize("on_bad_file", ["error", "skip"])
def test_lack_of_memory_is_not_the_files_fault(
    tmp_path: Path, on_bad_file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "x.arrow", pa.array(["a"]))
    fmt = describe(str(path), on_bad_file=on_bad_file)

    def short(table: pa.Table) -> pa.Table:
        raise pa.ArrowMemoryError("malloc of size 1000000 failed")

    monkeypatch.setattr(reading, "validated", short)
    with pytest.raises(MemoryError):
        list(read(fmt, splits(fmt, str(path)), failed))


@pytest.mark.parametrize("depth", [3, 1_500, 100_000])
def test_json_nested_without_end(tmp_path: Path, depth: int) -> None:
    """In a process of its own: Arrow cannot let go of a type of so many levels."""
    path = tmp_path / "x.json"
    path.write_text('{"a": 1, "b": ' + "[" * depth + "]" * depth + "}\n")
    code = (
        "import sys; from uncombine.sparkops.readers.reading import describe\n"
        "try: print(describe(sys.argv[1]).schema.names)\n"
        "except OSError as error: print(type(error).__name__)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True)
    assert done.stdout.strip() == ("['a', 'b']" if depth == 3 else "UnreadableFile"), done
    told = describe(str(path), schema=pa.schema({"a": pa.int64()}))
    assert pa.concat_tables(read(told, splits(told, str(path)), failed)).to_pydict() == {"a": [1]}
