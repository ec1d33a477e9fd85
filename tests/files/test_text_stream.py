"""The text of a file comes whole, whatever its pieces are, with what a reader has left before each of them."""

from __future__ import annotations

import gzip
import random
from pathlib import Path

import pyarrow.fs as pafs
import pytest
from seeds import seeds

from uncombine.files import csv_text as module
from uncombine.files.csv_text import TextStream


def opened(path: Path, encoding: str = "utf8") -> TextStream:
    return TextStream(pafs.LocalFileSystem(), str(path), encoding)


@pytest.mark.parametrize("seed", seeds(40))
def test_a_reader_that_takes_any_part_sees_all_of_the_text(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    r = random.Random(seed)
    monkeypatch.setattr(module, "SMALL", r.choice([1, 5, 1 << 16]))
    data = bytes(r.randrange(256) for _ in range(r.choice([0, 1, 50, 2000])))
    path = tmp_path / r.choice(["a.csv", "a.csv.gz"])
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    size, seen, windows = r.choice([1, 7, 100, 5000]), b"", 0
    with opened(path) as stream:
        for window in stream.windows(size):
            windows += 1
            count = window.stop - window.start
            take = count if window.is_last else r.choice([0, count, r.randrange(count + 1)])
            seen += bytes(memoryview(window.data)[window.start : window.start + take])
            window.start += take
    assert seen == data
    assert windows <= len(data) + 2


def test_what_a_reader_never_takes_grows_by_doubling(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"x" * 10_000)
    with opened(tmp_path / "a.csv") as stream:
        sizes = [window.stop - window.start for window in stream.windows(10)]
    assert sizes[-1] == 10_000
    assert len(sizes) < 20


def test_memory_is_used_again(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"x" * 10_000)
    memories = set()
    with opened(tmp_path / "a.csv") as stream:
        for window in stream.windows(10):
            memories.add(id(window.data))
            window.start = window.stop
    assert len(memories) <= 3


def test_an_error_of_the_file_comes_after_the_text_before_it(tmp_path: Path) -> None:
    data = gzip.compress(bytes(random.Random(1).randrange(256) for _ in range(100_000)))
    (tmp_path / "a.csv.gz").write_bytes(data[: len(data) // 2])
    seen = 0
    with opened(tmp_path / "a.csv.gz") as stream, pytest.raises(OSError, match=r"[Tt]runcated|CRC|zlib|unexpected"):  # noqa: PT012
        for window in stream.windows(1000):
            seen += window.stop - window.start
            window.start = window.stop
    assert seen > 10_000


def test_a_reader_may_stop_early(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"x" * 10_000)
    with opened(tmp_path / "a.csv") as stream:
        windows = stream.windows(10)
        next(windows)
        next(windows)
        windows.close()


@pytest.mark.parametrize("encoding", ["utf8", "latin-1", "utf-16", "utf-16-le", "shift_jis", "cp1252"])
def test_a_text_is_decoded_and_bytes_that_are_none_stay_marked(encoding: str, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes("a,b\r\nc,d\n".encode(encoding))

    def read(size: int) -> bytes:
        out, memory = b"", bytearray(size)
        with TextStream(pafs.LocalFileSystem(), str(path), encoding) as stream:
            while (count := stream.fill(memoryview(memory))) == size:
                out += memory
        return out + memory[:count]

    assert {read(size) for size in (1, 3, 100)} == {b"a,b\r\nc,d\n"}
    if encoding in ("shift_jis", "cp1252"):
        path.write_bytes(b"a\x81\n")
        marked = read(100)
        assert marked.startswith(b"a")
        with pytest.raises(UnicodeDecodeError):
            marked.decode()
