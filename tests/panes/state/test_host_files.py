"""Files that several processes share, and what may happen to them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

from uncombine.panes.state import host_files
from uncombine.panes.state.host_files import Body, FileCache

BYTES = b"some bytes" * 100


@pytest.fixture(params=[1 << 20, 500], ids=["heap", "file"])
def large(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """True if chunks that are read go to a file without a name; also reads a block at a time."""
    monkeypatch.setattr(host_files, "LARGE", request.param)
    monkeypatch.setattr(host_files, "_BLOCK", 300)
    return bool(request.param < len(BYTES))


def read(files: FileCache, name: str) -> bytes | None:
    found = files.get(name)
    return None if found is None else found.buffer.to_pybytes()


@pytest.mark.parametrize(
    "damage", ["cut", "longer", "empty", "a bit", "the end", "gone", "renamed", "of another user", "of another format"]
)
def test_a_file_that_is_not_whole_is_no_file(damage: str, large: bool, tmp_path: Path) -> None:
    files = FileCache(tmp_path / "cache")
    assert files.put("name", BYTES)
    path = tmp_path / "cache" / "name"
    whole = path.read_bytes()
    found = files.get("name")
    assert isinstance(found, Body)
    assert found.on_file == large
    if damage == "of another user":
        (tmp_path / "cache").chmod(0o777)
        files = FileCache(tmp_path / "cache")
    elif damage == "gone":
        path.unlink()
    elif damage == "renamed":
        files.put("other", BYTES[::-1])
        os.replace(path.with_name("other"), path)
    else:
        broken = bytearray(whole)
        broken[100 if damage == "a bit" else -1] ^= 1
        damaged = {
            "cut": whole[:-50],
            "longer": whole + b"x",
            "empty": b"",
            "a bit": bytes(broken),
            "the end": bytes(broken),
        }
        damaged["of another format"] = whole.replace(host_files._MAGIC, b"uncombine chunk1")
        path.write_bytes(damaged[damage])
    assert read(files, "name") is None
    assert found.buffer.to_pybytes() == BYTES, "what was read before is as it was"
    assert files.put("name", b"more") == (damage != "of another user")
    assert read(files, "name") == (b"more" if damage != "of another user" else None)


@pytest.mark.parametrize("to", [0, 400, 1_010])
def test_a_file_that_is_cut_while_it_is_read_is_no_file(
    to: int, large: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = FileCache(tmp_path / "cache")
    files.put("name", BYTES)

    def crc32(data: bytes, value: int = 0) -> int:
        os.truncate(tmp_path / "cache" / "name", to)
        return zlib.crc32(data, value)

    monkeypatch.setattr(host_files, "zlib", type("Zlib", (), {"crc32": staticmethod(crc32)}))
    assert files.get("name") is None


def test_bytes_are_written_where_nobody_else_can_change_them(large: bool, tmp_path: Path) -> None:
    files = FileCache(tmp_path / "cache")
    for about in (len(BYTES), 10):
        body = files.written(lambda file: file.write(BYTES), about)
        assert body.on_file == (large and about > 10)
        assert body.buffer.to_pybytes() == BYTES
    assert not list((tmp_path / "cache").glob("*"))
    shutil.rmtree(tmp_path / "cache", ignore_errors=True)
    assert files.written(lambda file: file.write(BYTES), len(BYTES)) == Body(body.buffer)


def test_files_are_private_and_the_oldest_go(tmp_path: Path) -> None:
    files = FileCache(tmp_path / "deep" / "cache", limit=10_000)
    for i in range(30):
        files.put(f"n{i:02}", b"x" * 1_000)
        path = files.directory / f"n{i:02}"
        # Their times may be the same on a coarse clock, which is not what is asked here.
        os.utime(path, (1_000 + i, 1_000 + i))
        if i == 3:
            assert files.get("n00") is not None
    left = sorted(path.name for path in files.directory.iterdir())
    assert sum(path.stat().st_size for path in files.directory.iterdir()) <= 10_000
    assert {"n00", "n28", "n29"} <= set(left)
    assert files.directory.stat().st_mode & 0o777 == 0o700
    files.forget("n29")
    assert files.get("n29") is None


_WORKER = """
import sys
from uncombine.panes.state.host_files import FileCache
files, found = FileCache(sys.argv[1], limit=40_000), 0
for i in range(300):
    name, body = f"n{i % 7}", bytes([i % 7]) * 4000
    read = files.get(name)
    assert read is None or read.buffer.to_pybytes() == body, name
    found += read is not None
    if read is None or i % 3 == 0:
        files.put(name, body)
    if i % 11 == 0:
        files.forget(name)
print(found)
"""


@pytest.mark.weekly
def test_several_processes_share_the_files(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _WORKER, str(tmp_path / "cache")]
    workers = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(2)]
    for worker in workers:
        out, err = worker.communicate(timeout=120)
        assert worker.returncode == 0, err.decode()
        assert int(out) > 100
    assert {path.name for path in (tmp_path / "cache").iterdir()} <= {f"n{i}" for i in range(7)}


def test_a_file_that_could_not_be_written_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise OSError("no space")

    files = FileCache(tmp_path / "cache")
    assert files.put("name", BYTES)
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", refused)
        assert not files.put("other", BYTES)
    assert [path.name for path in (tmp_path / "cache").iterdir() if path.suffix == ".new"] == []
