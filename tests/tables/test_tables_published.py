"""Tables of DuckDB that others read while a query writes them: between batches, or in a copy that is published."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pytest
from live_tables import batch_of, in_order, row, writer_of
from programs import program

from uncombine.errors import TableUnreachable
from uncombine.tables import Changes, Keeper, publishing, target_of, write_once
from uncombine.tables.publishing import PublishedCopy

KEYS, LAST = 300, 12


def url_of(folder: Path, **options: str) -> str:
    """The URL of a table with a copy for readers."""
    given = {"publish": f"{folder}/seen.db", **options}
    return f"duckdb:{folder}/a.db?{'&'.join(f'{name}={value}' for name, value in given.items())}#t"


def replacing(batch: int) -> Changes:
    """A batch that puts another row in the place of each."""
    keys = [f"a text of some length {key}" for key in range(KEYS)]
    return batch_of(*(row(key, batch - 1, -1) for key in keys if batch), *(row(key, batch) for key in keys))


def seen(path: Path) -> list[tuple[Any, ...]]:
    """The rows of the copy, as somebody else reads them."""
    with duckdb.connect(str(path), read_only=True) as db:
        return sorted(db.sql("SELECT k, n FROM t").fetchall())


@contextmanager
def opened_elsewhere(path: Path, options: str = "") -> Iterator[subprocess.Popen[str]]:
    """Another process has a file open until its input ends."""
    code = f"import duckdb, sys; db = duckdb.connect({str(path)!r}{options}); print('open', flush=True)"
    with subprocess.Popen(
        [sys.executable, "-c", f"{code}; sys.stdin.read()"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield process
        finally:
            process.communicate()


@pytest.mark.weekly
@pytest.mark.parametrize("published", [True, False], ids=["a copy", "between batches"])
def test_a_dashboard_reads_while_a_query_writes(published: bool, tmp_path: Path) -> None:
    """Each read sees all rows of one batch. With a copy no read fails; without one, those during a batch do."""
    path = tmp_path / ("seen.db" if published else "a.db")
    writer = writer_of(url_of(tmp_path) if published else f"duckdb:{path}#t")
    assert writer.start() == -1
    command = [sys.executable, program("dashboard"), path, KEYS, LAST, "hasty" if published else "patient"]
    dashboard = subprocess.Popen([*map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert dashboard.stdout is not None
    lines = [dashboard.stdout.readline()]

    def wait(seconds: float) -> None:
        """Wait until the dashboard has closed the file."""
        assert dashboard.stdout is not None
        lines.append(dashboard.stdout.readline())

    keeper = Keeper(writer, wait=wait)
    for batch in range(LAST + 1):
        assert keeper.take(batch, replacing(batch)) or len(lines) > 1
    keeper.close()
    rest, errors = dashboard.communicate()
    assert dashboard.returncode == 0, errors
    reads = list(map(json.loads, [*lines, *rest.splitlines()]))
    assert reads[-1] == [KEYS, LAST, LAST]
    assert not published or "locked out" not in reads
    assert in_order(writer.read().select(["n"])) == [str({"n": LAST})] * KEYS


def test_a_reader_that_keeps_the_file_open_is_waited_for(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer, pauses = writer_of(f"duckdb:{tmp_path}/a.db#t"), list[float]()
    keeper = Keeper(writer, wait=pauses.append)
    keeper.start()
    with opened_elsewhere(tmp_path / "a.db", ", read_only=True") as reader:
        assert keeper.writer.read().num_rows == 0
        monkeypatch.setattr("uncombine.tables.keeper.SILENT", 0.05)
        with caplog.at_level(logging.INFO, "uncombine"), pytest.raises(TableUnreachable) as failed:
            Keeper(writer, patience=0.4, wait=pauses.append).take(0, batch_of(row("a", 1)))
        monkeypatch.undo()
        assert f"(PID {reader.pid}): close it there, or let readers open a copy, which publish= in the" in str(failed)
        assert "(batch 0 has waited for 0 s)" in str(failed.value)
        assert pauses
        [warning] = caplog.messages
        assert warning.startswith("batch 0 waits, for 0 s at most: table 't' of ")
        caplog.clear()

        def wait(seconds: float) -> None:
            pauses.append(seconds)
            if sum(pauses) > 2:
                reader.communicate()

        pauses.clear()
        with caplog.at_level(logging.INFO, "uncombine"):
            assert Keeper(writer, wait=wait).take(0, batch_of(row("a", 1)))
        assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]
        assert ": batch 0 goes on after " in caplog.messages[1]


@pytest.mark.weekly
def test_a_batch_is_published_at_once_or_when_it_is_due(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    timers = list[Any]()

    class Timer:
        def __init__(self, seconds: float, work: Any) -> None:
            self.seconds, self.work, self.going = seconds, work, False
            timers.append(self)

        def start(self) -> None:
            self.going = True

        def cancel(self) -> None:
            self.going = False

    monkeypatch.setattr(publishing, "Timer", Timer)
    writer = writer_of(url_of(tmp_path, publish_every="1%20hour"))
    copy = tmp_path / "seen.db"
    writer.start()
    assert seen(copy) == []
    writer.apply(0, batch_of(row("a", 1)))
    writer.apply(1, batch_of(row("b", 2)))
    assert seen(copy) == []
    [timer] = timers
    assert timer.going
    assert 3_500 < timer.seconds <= 3_600
    timer.work()
    assert seen(copy) == [("a", 1), ("b", 2)]
    assert not writer.apply(1, batch_of(row("b", 2)))
    assert len(timers) == 1  # nothing is new
    writer.apply(2, batch_of(row("c", 3)))
    assert timers[1].going
    writer.finish()
    assert not timers[1].going
    assert seen(copy) == [("a", 1), ("b", 2), ("c", 3)]
    changed = os.stat(copy).st_ino
    writer.finish()
    assert os.stat(copy).st_ino == changed
    each = writer_of(url_of(tmp_path))
    each.start()
    each.apply(3, batch_of(row("d", 4)))
    assert len(seen(copy)) == 4


def test_a_copy_that_cannot_be_made_yet(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The batch is in the table, so another attempt applies nothing and makes the copy."""
    writer, copy = writer_of(url_of(tmp_path)), tmp_path / "seen.db"
    writer.start()
    copy.unlink()
    copy.mkdir()
    for _ in range(2):
        with pytest.raises(TableUnreachable, match=r"a\.db cannot be published as .*seen\.db: .*directory"):
            writer.apply(0, batch_of(row("a", 1)))
    keeper = Keeper(writer)
    with caplog.at_level(logging.WARNING, "uncombine"):
        keeper.close()
    assert "cannot be published" in caplog.messages[0]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.db", "seen.db"]
    copy.rmdir()
    assert not writer.apply(0, batch_of(row("a", 1)))
    assert seen(copy) == [("a", 1)]


def test_a_late_copy_that_fails_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    writer = writer_of(url_of(tmp_path, publish_every="1 hour"))
    writer.start()
    waits = list[float]()
    monkeypatch.setattr(PublishedCopy, "_publish_in", lambda self, seconds: waits.append(seconds))
    writer.apply(0, batch_of(row("a", 1)))
    (tmp_path / "seen.db").unlink()
    (tmp_path / "seen.db").mkdir()
    with caplog.at_level(logging.WARNING, "uncombine"):
        writer._copy._publish_late()
    assert caplog.messages[0].startswith(f"{tmp_path}/seen.db is old: {tmp_path}/a.db cannot be published")
    assert waits[1:] == [3_600]


@pytest.mark.full
@pytest.mark.parametrize("moment", ["before", "within"])
def test_a_crash_before_the_copy_heals_at_the_next_start(moment: str, tmp_path: Path) -> None:
    url = url_of(tmp_path)
    first = writer_of(url)
    first.start()
    first.apply(0, batch_of(row("a", 1)))
    name, replacement = {
        "before": ("PublishedCopy.refresh", "lambda self: os.kill(os.getpid(), signal.SIGKILL)"),
        "within": ("shutil.copyfileobj", "lambda one, other, size: half(one, other)"),
    }[moment]
    code = f"""
import os, signal
from live_tables import batch_of, row, writer_of
from uncombine.tables import publishing
def half(one, other):
    other.write(one.read(5000))
    other.flush()
    os.kill(os.getpid(), signal.SIGKILL)
writer = writer_of({url!r})
assert writer.start() == 0
publishing.{name} = {replacement}
writer.apply(1, batch_of(row("b", 2)))
"""
    killed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert seen(tmp_path / "seen.db") == [("a", 1)]
    names = {path.name for path in tmp_path.iterdir()} - {"a.db", "seen.db"}
    assert len(names) == (moment == "within")
    again = writer_of(url)
    assert again.start() == 1
    assert seen(tmp_path / "seen.db") == [("a", 1), ("b", 2)]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.db", "seen.db"]


def test_a_file_whose_changes_are_in_its_log_is_not_copied(tmp_path: Path) -> None:
    writer = writer_of(url_of(tmp_path))
    writer.start()
    code = f"import duckdb, os; db = duckdb.connect({str(tmp_path / 'a.db')!r}); db.sql('CREATE TABLE u (i int)')"
    subprocess.run([sys.executable, "-c", f"{code}; os.kill(os.getpid(), 9)"], check=False)
    assert (tmp_path / "a.db.wal").exists()
    writer._copy.note_change()
    with pytest.raises(TableUnreachable, match=r"has changes that are not in its file yet, but in .*a\.db\.wal"):
        writer.finish()
    writer.apply(0, batch_of(row("a", 1)))  # opens it for writing, which takes them in
    assert seen(tmp_path / "seen.db") == [("a", 1)]


def test_other_connections_of_the_process(tmp_path: Path) -> None:
    """Without a copy they share the file with the query; the copy of a file that they may write would not be whole."""
    plain, copied = writer_of(f"duckdb:{tmp_path}/a.db#t"), writer_of(url_of(tmp_path))
    plain.start()
    with duckdb.connect(str(tmp_path / "a.db")) as db:
        assert plain.apply(0, batch_of(row("a", 1)))
        assert db.sql("SELECT k FROM t").fetchall() == [("a",)]
        assert plain.read()["k"].to_pylist() == ["a"]
        with pytest.raises(TableUnreachable, match="has another connection in this process, which must be closed"):
            copied.start()
    assert copied.start() == 0
    with duckdb.connect(str(tmp_path / "a.db"), read_only=True):
        assert plain.read()["k"].to_pylist() == ["a"]
        with pytest.raises(TableUnreachable, match="has another connection in this process"):
            plain.apply(1, batch_of(row("b", 2)))
    assert seen(tmp_path / "seen.db") == [("a", 1)]


def test_a_batch_waits_for_a_reader_of_its_own_process(tmp_path: Path) -> None:
    writer = writer_of(url_of(tmp_path))
    writer.start()
    with ThreadPoolExecutor() as pool:
        with writer._connection(read_only=True):
            batch = pool.submit(writer.apply, 0, batch_of(row("a", 1)))
            with pytest.raises(TimeoutError):
                batch.result(0.3)
        assert batch.result()
    assert writer.read().num_rows == 1


def test_two_tables_of_one_file(tmp_path: Path) -> None:
    one, other = writer_of(url_of(tmp_path)), writer_of(url_of(tmp_path).replace("#t", "#u"), owner="you")
    one.start()
    other.start()
    one.apply(0, batch_of(row("a", 1)))
    other.apply(0, batch_of(row("b", 2)))
    with duckdb.connect(str(tmp_path / "seen.db"), read_only=True) as db:
        assert db.sql("SELECT k FROM t UNION ALL SELECT k FROM u ORDER BY k").fetchall() == [("a",), ("b",)]


def test_a_result_is_published_once(tmp_path: Path) -> None:
    write_once(target_of(url_of(tmp_path)), batch_of(row("a", 1)))
    assert seen(tmp_path / "seen.db") == [("a", 1)]


def test_a_reader_keeps_the_copy_that_it_has_open(tmp_path: Path) -> None:
    writer = writer_of(url_of(tmp_path))
    writer.start()
    writer.apply(0, batch_of(row("a", 1)))
    with opened_elsewhere(tmp_path / "seen.db", ", read_only=True"):
        writer.apply(1, batch_of(row("b", 2)))
        assert seen(tmp_path / "seen.db") == [("a", 1), ("b", 2)]
