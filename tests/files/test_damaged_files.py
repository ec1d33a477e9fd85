"""Files damaged at random: each is unreadable, or gives rows that are sound; none stops the process that reads it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from programs import program
from programs.damage import FORMATS
from programs.footers import footer, value, with_footer

import uncombine as uc
from uncombine.errors import UnreadableFile
from uncombine.files import reading
from uncombine.files.reading import describe, read, splits

pytestmark = pytest.mark.full

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


def test_footers_whose_parts_contradict_each_other(tmp_path: Path) -> None:
    found = outcomes("parquet footer", 0, 120, tmp_path)
    assert found["read"] >= 60
    assert found["unreadable"] >= 15


def more_levels(tree: list[Any]) -> None:
    value(tree, 4, 0, 1, 1, 3, 16, 3)[1].append(0)


def short_smallest(tree: list[Any]) -> None:
    next(field for field in value(tree, 4, 0, 1, 0, 3, 12) if field[0] == 6)[2] = b""


def short_fixed(tree: list[Any]) -> None:
    for field in value(tree, 4, 0, 1, 2, 3, 12):
        if field[1] == 8:
            field[2] = field[2][:1]


def another_type(tree: list[Any]) -> None:
    value(tree, 4, 0, 1, 0, 3)[0][2] = 1


def too_few_chunks(tree: list[Any]) -> None:
    value(tree, 4, 0, 1)[1].pop()


def too_many_chunks(tree: list[Any]) -> None:
    chunks = value(tree, 4, 0, 1)[1]
    chunks.append(chunks[0])


def no_description(tree: list[Any]) -> None:
    fields = value(tree, 4, 0, 1, 0)
    fields[:] = [field for field in fields if field[0] != 3]


def encrypted(tree: list[Any]) -> None:
    value(tree, 4, 0, 1, 0).append([8, 12, [[2, 12, [[1, 9, (8, [b"k"])]]]]])


READ = "import sys, pyarrow as pa, uncombine as uc; from uncombine.files.reading import *\n" + (
    "fmt = FileFormat('parquet', pa.schema({'k': 'int64', 's': 'string', 'f': pa.binary(2)}), '/', "
    "filter=uc.col('k') == 1, on_bad_file='skip')\n"
    "for path in sys.argv[1:]:\n"
    "    print(path, flush=True)\n"
    "    print(sum(t.num_rows for t in read(fmt, splits(fmt, path), lambda path, why: print(why))), flush=True)"
)


def test_each_part_of_a_footer_that_ends_the_process_in_pyarrow(tmp_path: Path) -> None:
    """In a process of its own, which pyarrow would end."""
    good = tmp_path / "good.parquet"
    columns = {"k": pa.array([1, 2]), "s": pa.array(["a", None]), "f": pa.array([b"ab", b"cd"], pa.binary(2))}
    pq.write_table(pa.table(columns), good)
    wrong: dict[Callable[[list[Any]], None], str] = {
        more_levels: "column 's' has levels from 0 to 1, but a row group counts others",
        short_smallest: "Unexpected end of stream",
        another_type: "column 'k' is INT64, but a row group has another type",
        too_few_chunks: "a row group has 2 columns, but the schema has 3",
        too_many_chunks: "a row group has 4 columns, but the schema has 3",
        no_description: "a row group does not describe column 'k'",
        encrypted: "column 'k' is encrypted",
    }
    if int(pa.__version__.split(".")[0]) < 20:  # it writes no levels, and reads short statistics
        del wrong[more_levels], wrong[short_smallest]
    paths, expected = [str(good)], [str(good), "1"]
    for wound, reason in [*wrong.items(), (short_fixed, "")]:
        tree = footer(good.read_bytes())
        assert with_footer(good.read_bytes(), tree) == good.read_bytes()
        wound(tree)
        path = tmp_path / f"{wound.__name__}.parquet"
        path.write_bytes(with_footer(good.read_bytes(), tree))
        paths.append(str(path))
        told = "write it again"
        expected += [str(path), f"{path} cannot be read: {reason}: {told}", "0"] if reason else [str(path), "1"]
    done = subprocess.run([sys.executable, "-c", READ, *paths], capture_output=True, text=True)
    assert done.stdout.splitlines() == expected, done.stderr[-2000:]
    assert done.returncode == 0


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
        "import sys; from uncombine.files.reading import describe\n"
        "try: print(describe(sys.argv[1]).schema.names)\n"
        "except OSError as error: print(type(error).__name__)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True)
    assert done.stdout.strip() == ("['a', 'b']" if depth == 3 else "UnreadableFile"), done
    told = describe(str(path), schema=pa.schema({"a": pa.int64()}))
    assert pa.concat_tables(read(told, splits(told, str(path)), failed)).to_pydict() == {"a": [1]}
