"""Tables whose writer is killed at random moments: after each the table has the rows of its batches, all of each."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from postgres_server import PostgresServer
from programs import program


def lives(url: str, seed: int, count: int, kills: int, library: str) -> list[int]:
    """The last batch of a table after each life of its writer."""
    command = [sys.executable, program("keeping"), url, str(seed), str(count), str(kills), library]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr[-4000:]
    *found, last = map(json.loads, ran.stdout.splitlines())
    assert last["killed"] > kills // 2
    return [each["batch"] for each in found]


def agree(url: str, library: str, kills: int, seed: int, count: int) -> None:
    batches = lives(url, seed, count, kills, library)
    assert batches == sorted(batches)
    assert batches[-1] == count - 1
    assert len(set(batches)) > kills // 4, "lives got somewhere"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[PostgresServer]:
    server = PostgresServer(tmp_path / "postgres")
    server.start()
    yield server
    server.stop("immediate")


FILES = [("duckdb:///{}/a.db#t", "duckdb"), ("delta:{}/t", "deltalake"), ("parquet:{}/t", "pyarrow.parquet")]


@pytest.mark.parametrize(("url", "library"), FILES, ids=[library for _, library in FILES])
def test_a_writer_that_is_killed(url: str, library: str, tmp_path: Path) -> None:
    agree(url.format(tmp_path), library, kills=8, seed=1, count=40)


def test_a_writer_of_postgresql_that_is_killed(server: PostgresServer) -> None:
    agree(server.url("t"), "adbc_driver_postgresql.dbapi", kills=8, seed=1, count=40)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(10, 15))
@pytest.mark.parametrize(("url", "library"), FILES, ids=[library for _, library in FILES])
def test_a_writer_that_is_killed_40_times(url: str, library: str, seed: int, tmp_path: Path) -> None:
    agree(url.format(tmp_path), library, kills=40, seed=seed, count=300)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(10, 15))
def test_a_writer_of_postgresql_that_is_killed_40_times(seed: int, server: PostgresServer) -> None:
    agree(server.url("t"), "adbc_driver_postgresql.dbapi", kills=40, seed=seed, count=300)
