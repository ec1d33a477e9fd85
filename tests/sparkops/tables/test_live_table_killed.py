"""Applications with a live table, killed at any moment: the table has the result of its batches after each restart."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from apps import committed, finished, running
from postgres_server import PostgresServer
from programs.killed import RESULTS, SCHEMA, batches, recomputed
from streams import written

import uncombine as uc
from uncombine.tables import table_flow, target_of

MOMENTS = ("offsets", "state", "commits", "later", "any")


def layout() -> Any:
    """The layout of the table of `live`."""
    minutes = uc.flow(SCHEMA).window(uc.Fixed("1 minute")).combine(by="k", n=uc.Count(), total=uc.Sum("v"))
    grouped = minutes.with_columns(large=uc.col("total") > 1).window(uc.Fixed("5 minutes"), mode="retracting")
    return table_flow(grouped.combine(by="large", minutes=uc.Count(), rows=uc.Sum("n"), most=uc.Max("total")))[1]


def found(url: str, out: Path) -> tuple[int, list[tuple[Any, ...]]]:
    """The last batch of a table, and its rows."""
    checkpoint = out / "checkpoint" / "metadata"
    if not checkpoint.exists():
        return -1, []
    writer = target_of(url).writer(layout(), json.loads(checkpoint.read_text())["id"])
    try:
        last = writer.start()
        rows = writer.read().to_pandas().rename(columns={"window_start": "start"})
        return last, sorted(rows[RESULTS].itertuples(index=False, name=None))
    finally:
        writer.close()


def files_until(out: Path, batch: int) -> int:
    """The number of files in the batches until this one.

    A batch has two files if a kill came between Spark's notes of the one and of the batch.
    """
    if batch < 0:
        return 0
    noted = (out / "checkpoint" / "offsets" / str(batch)).read_text().splitlines()[-1]
    return 1 + int(json.loads(noted)["logOffset"])


def agree(folder: Path, url: str, seed: int, kills: int, upset: Callable[[], Any]) -> set[int]:
    """Check the table after each kill, and at the end; the last batches that were found."""
    r, out = random.Random(seed), folder / "out"
    out.mkdir()
    tables = batches(seed, kills + 10)
    files = written(tables, folder / "files")
    arguments = [files, out, folder / "unused", "--live", url]
    want: dict[int, Any] = {0: []}
    seen = set()
    for kill in range(kills):
        with running(out, *arguments) as app:
            moment = r.choice(MOMENTS)
            batch = committed(out) + r.randrange(2)
            alive = app.wait(r.random() * 8) if moment == "any" else app.wait_for(batch, moment)
            if alive and r.random() < 0.3:
                upset()
            alive = alive and app.wait(r.random() * 0.3)
            assert alive or files_until(out, committed(out) - 1) == len(tables), app.said()
        upset()
        for place in (copy_of(url), url):  # the copy as the application has left it
            last, rows = found(place, out)
            count = files_until(out, last)
            want.setdefault(count, recomputed(tables[:count]) if count else [])
            assert rows == want[count], f"kill {kill}: batch {last}, {count} files in {place}"
        assert last + 1 >= committed(out)
        seen.add(last)
    finished(out, *arguments)
    for place in (copy_of(url), url):
        last, rows = found(place, out)
        assert (files_until(out, last), rows) == (len(tables), recomputed(tables))
    return seen


def copy_of(url: str) -> str:
    """The table that readers see: that of the copy, if one is published."""
    copy = url.partition("?publish=")[2]
    return f"duckdb:{copy}" if copy else url


@contextmanager
def place_of(kind: str, folder: Path) -> Iterator[tuple[str, Callable[[], Any]]]:
    """The URL of a table, and a way to upset its server, which has all that it has committed when it starts again."""
    if kind != "postgresql":
        copied = f"duckdb:{folder}/a.db?publish={folder}/seen.db#t"
        places = {"duckdb": f"duckdb:{folder}/a.db#t", "published": copied, "delta": f"delta:{folder}/t"}
        yield places[kind], lambda: None
        return
    server = PostgresServer(folder / "postgres")
    server.start()

    def upset() -> None:
        server.stop("immediate")
        server.start()

    try:
        yield server.url("t"), upset
    finally:
        server.stop("immediate")


@pytest.mark.soak
@pytest.mark.spark
@pytest.mark.parametrize("kind", ["duckdb", "published", "postgresql", "delta"])
def test_forty_kills(kind: str, tmp_path: Path) -> None:
    with place_of(kind, tmp_path) as (url, upset):
        assert len(agree(tmp_path, url, seed=40, kills=40, upset=upset)) > 15
