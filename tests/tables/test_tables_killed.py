"""Tables whose writer is killed at random moments: after each the table has the rows of its batches, all of each."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from live_tables import batch_of, row, writer_of
from postgres_server import SETTINGS, PostgresServer
from programs import program

from uncombine.errors import TableUnreachable
from uncombine.tables import Keeper


def agree(places: list[tuple[str, str]], kills: int, seed: int, count: int) -> None:
    """Check tables whose writer is killed so often; each place is a URL and the library of its target."""
    command = [sys.executable, program("keeping"), json.dumps(places), str(seed), str(count), str(kills)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr[-4000:]
    said = list(map(json.loads, ran.stdout.splitlines()))
    for url, _ in places:
        batches = [each["batch"] for each in said if each["url"] == url and "batch" in each]
        assert [each["killed"] for each in said if each["url"] == url and "killed" in each] == [kills]
        assert batches == sorted(batches)
        assert batches[-1] == count - 1
        assert len(set(batches)) > kills // 4, "lives got somewhere"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[PostgresServer]:
    server = PostgresServer(tmp_path / "postgres")
    server.start()
    yield server
    server.stop("immediate")


def places_in(folder: Path, server: PostgresServer) -> list[tuple[str, str]]:
    return [
        (f"duckdb:///{folder}/a.db#t", "duckdb"),
        (f"duckdb:{folder}/b.db?publish={folder}/seen.db#t", "duckdb"),
        (server.url("t"), "adbc_driver_postgresql.dbapi"),
        (f"delta:{folder}/delta", "deltalake"),
        (f"parquet:{folder}/parquet", "pyarrow.parquet"),
    ]


@pytest.mark.full
def test_writers_that_are_killed(tmp_path: Path, server: PostgresServer) -> None:
    agree(places_in(tmp_path, server), kills=5, seed=1, count=20)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(10, 15))
def test_writers_that_are_killed_40_times(seed: int, tmp_path: Path, server: PostgresServer) -> None:
    agree(places_in(tmp_path, server), kills=40, seed=seed, count=300)


FULL = """
import random, sys
from live_tables import batch_of, in_order, row, writer_of
url, kept = sys.argv[1], []
writer = writer_of(url)
writer.start()
for batch in range(10_000):
    rows = [row(f"{batch} {i} " + random.Random(f"{batch} {i}").randbytes(10_000).hex(), i) for i in range(40)]
    try:
        writer.apply(batch, batch_of(*rows))
    except Exception as error:
        print(batch, type(error).__name__, str(error)[:300].replace("\\n", " "))
        break
    kept += rows
writer.close()
again = writer_of(url)
assert again.start() == batch - 1
assert sorted(again.read()["k"].to_pylist()) == sorted(each["k"] for each in kept)
again.close()
"""


LOGGED = "-c max_wal_size=1GB -c checkpoint_timeout=1h -c autovacuum=off"


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path]:
    """A disk of this size."""
    disk = folder / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(disk)], check=False)
    if mounted.returncode:
        pytest.skip("a small disk can only be made by root")
    try:
        yield disk
    finally:
        subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.soak
@pytest.mark.parametrize("kind", ["duckdb", "delta", "parquet", "iceberg"])
def test_a_full_disk(kind: str, tmp_path: Path) -> None:
    """A batch that finds no room is an error, and the table has the batches before it."""
    with small_disk(tmp_path, "12m") as disk:
        url = {
            "duckdb": f"duckdb:///{disk}/a.db#t",
            "delta": f"delta:{disk}/t",
            "parquet": f"parquet:{disk}/t",
            "iceberg": f"iceberg:sqlite:///{disk}/catalog.db?warehouse={disk}/warehouse#shop.t",
        }[kind]
        ran = subprocess.run([sys.executable, "-c", FULL, url], capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stdout + ran.stderr[-3000:]
        batch, _, error = ran.stdout.partition(" ")
        assert int(batch) > 2
        assert "space" in error.lower() or "full" in error.lower(), error


@pytest.mark.soak
@pytest.mark.parametrize("part", ["all", "log"])
def test_a_full_disk_of_a_server(part: str, tmp_path: Path) -> None:
    """A batch that finds no room is an error, and goes on when there is room, after a crash of the server too."""
    with small_disk(tmp_path, "80m" if part == "all" else "24m") as disk:
        log = disk / "log"
        log.mkdir()
        shutil.chown(log, "nobody")
        options = ["--wal-segsize=1", f"--waldir={log}"]
        server = PostgresServer((disk if part == "all" else tmp_path) / "server", f"{SETTINGS} {LOGGED}", options)
        server.start()
        try:
            ballast = disk / "ballast"
            ballast.write_bytes(b"x" * (12 << 20))
            writer, kept = writer_of(server.url("t")), []
            writer.start()
            for batch in range(1_000):
                some = random.Random(batch)
                rows = [row(f"{batch} {i} {some.randbytes(900).hex()}", i) for i in range(99)]
                try:
                    writer.apply(batch, batch_of(*rows))
                except TableUnreachable as error:
                    told = str(error)
                    break
                kept += rows
            assert ("has no room" in told) == (part == "all")
            ballast.unlink()
            with suppress(subprocess.CalledProcessError):
                server.stop("immediate")  # it may have ended by itself
            server.start()
            keeper = Keeper(writer_of(server.url("t")))
            assert keeper.start() == batch - 1
            assert sorted(keeper.writer.read()["k"].to_pylist()) == sorted(each["k"] for each in kept)
            assert keeper.take(batch, batch_of(*rows))
            assert keeper.writer.read().num_rows == len(kept) + len(rows)
            keeper.close()
        finally:
            server.stop("immediate")
