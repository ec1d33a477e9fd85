"""A task that waits for rows acknowledges what it got, so Spark sends them at once."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from uncombine.files.file_format import FileFormat
from uncombine.sparkops.files_input import ReadFiles
from uncombine.sparkops.inputs import DataFrameInput, wire_map
from uncombine.sparkops.tuning import worker
from uncombine.sparkops.wire import WIRE_DDL

pytestmark = pytest.mark.skipif(not hasattr(socket, "TCP_QUICKACK"), reason="only Linux has the call")


@pytest.mark.weekly
@pytest.mark.parametrize("chosen", [None, "mimalloc"])
def test_arrow_takes_memory_from_the_c_library_unless_another_place_is_chosen(chosen: str | None) -> None:
    """Arrow's own allocator returns freed memory to the system, from which the next task has to get it again."""
    shown = "from uncombine.sparkops.tuning.worker import ready; import pyarrow as pa; ready()"
    shown += "; print(pa.default_memory_pool().backend_name)"
    env = {name: value for name, value in os.environ.items() if name != "ARROW_DEFAULT_MEMORY_POOL"}
    env |= {} if chosen is None else {"ARROW_DEFAULT_MEMORY_POOL": chosen}
    ran = subprocess.run([sys.executable, "-c", shown], env=env, capture_output=True, text=True, check=True)
    assert ran.stdout.split() == [chosen or "system"]


Ends = tuple[socket.socket, socket.socket]


def at_once(connection: socket.socket) -> bool:
    """True if the system acknowledges at once what comes over a connection."""
    return bool(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK))


def files_of(connection: socket.socket) -> int:
    """The number of open files of the process that are a connection."""
    inode = os.fstat(connection.fileno()).st_ino
    count = 0
    for name in os.listdir("/proc/self/fd"):
        with suppress(OSError):
            count += os.stat(int(name)).st_ino == inode
    return count


def converse(one: socket.socket, other: socket.socket) -> None:
    """Send questions and answers, after which the system waits for an answer before it acknowledges."""
    for _ in range(3):
        other.sendall(b"question")
        one.recv(8)
        one.sendall(b"answer")
        other.recv(6)
    assert not at_once(one), "otherwise the tests show nothing"


@pytest.fixture
def ends() -> Iterator[Ends]:
    """Both ends of a connection."""
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as mine,
        server.accept()[0] as theirs,
    ):
        yield mine, theirs


def test_connections_acknowledge_at_once_and_other_files_are_left_alone(ends: Ends, tmp_path: Path) -> None:
    converse(*ends)
    near, far = socket.socketpair()
    with near, far, (tmp_path / "file").open("w") as file:
        worker.ready()
        assert at_once(ends[0])
        assert [files_of(connection) for connection in (*ends, near, far)] == [1, 1, 1, 1]
        ends[0].sendall(b"more")
        near.sendall(b"more")
        assert far.recv(4) == b"more"
        file.write("more")


def test_a_system_without_the_call_is_left_as_it_is(ends: Ends, monkeypatch: pytest.MonkeyPatch) -> None:
    converse(*ends)
    monkeypatch.delattr(socket, "TCP_QUICKACK")
    worker.ready()
    monkeypatch.undo()
    assert not at_once(ends[0])


class Sending:
    """A DataFrame of a stage that is not run: `mapInArrow` gives the function that workers would call."""

    def __init__(self, df: DataFrame) -> None:
        self.schema = df.schema

    def select(self, *_: Any) -> Sending:
        return self

    def mapInArrow(self, function: Any, _: Any) -> Any:
        return function


def test_tasks_acknowledge_before_they_read_rows(spark: SparkSession, ends: Ends) -> None:
    def task(_: Any) -> Iterator[bool]:
        yield at_once(ends[0])

    df: Any = Sending(spark.createDataFrame(pa.table({"k": [1]})))
    fmt = FileFormat("parquet", pa.schema({"k": pa.int64()}), "/in")
    stages = (
        lambda: wire_map(df, task, WIRE_DDL),
        lambda: DataFrameInput(df).mapped(task, ["k"], None, WIRE_DDL, str),
        lambda: ReadFiles(fmt, task, ("k",), None),
    )
    for stage in stages:
        converse(*ends)
        assert list(stage()(iter([]))) == [True]
