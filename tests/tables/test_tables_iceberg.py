"""Live tables in Iceberg, in a catalog of SQLite."""

from __future__ import annotations

import pickle
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import pyarrow as pa
import pytest
from live_tables import (
    NESTED,
    VALUES,
    adapted,
    batch_of,
    follows,
    holds,
    lacks_column,
    refuses,
    row,
    still_written,
    taken_over,
    writer_of,
)
from pyiceberg.catalog import load_catalog

import uncombine as uc
from uncombine.errors import InvalidArgument, TableMismatch, TableUnreachable
from uncombine.tables import Changes, Layout, made_once, target_of
from uncombine.tables.iceberg import IcebergWriter
from uncombine.tables.keeper import Keeper
from uncombine.tables.target import NONE_YET


def url(folder: Path, table: str = "t") -> str:
    return f"iceberg:sqlite:///{folder}/catalog.db?warehouse={folder}/warehouse#shop.{table}"


def catalog(folder: Path) -> object:
    return load_catalog("default", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"{folder}/warehouse")


@pytest.mark.soak
def test_a_table_follows_the_batches(tmp_path: Path) -> None:
    assert follows(url(tmp_path), 0) > 50


@pytest.mark.weekly
def test_a_table_refuses_what_does_not_fit(tmp_path: Path) -> None:
    refuses(url(tmp_path))


def test_a_table_becomes_that_of_a_changed_flow(tmp_path: Path) -> None:
    adapted(url(tmp_path))


@pytest.mark.weekly
def test_a_table_is_taken_over_from_the_maker_of_a_seed(tmp_path: Path) -> None:
    taken_over(url(tmp_path))


def test_hard_names_and_values(tmp_path: Path) -> None:
    holds(url(tmp_path, "a t 😀"), {name: found for name, found in VALUES.items() if "." not in name} | NESTED)


def test_a_batch_is_one_snapshot(tmp_path: Path) -> None:
    writer = writer_of(url(tmp_path))
    writer.start()
    given = [batch_of(row("a", 1), row("b", 1)), batch_of(), batch_of(row("b", 1, -1), row("a", 1, -1), row("a", 2))]
    for batch, changes in enumerate(given):
        writer.apply(batch, changes)
    snapshots = catalog(tmp_path).load_table("shop.t").snapshots()  # type: ignore[attr-defined]
    assert [snapshot.summary["uncombine.batch"] for snapshot in snapshots] == ["0", "1", "2"]
    assert writer.read()["n"].to_pylist() == [2]


def test_two_writers_of_one_checkpoint(tmp_path: Path) -> None:
    """The other writer commits while this one writes its files."""
    one, other = writer_of(url(tmp_path)), writer_of(url(tmp_path))
    one.start(), other.start()
    given = batch_of(row("a", 2))
    calls = iter(range(9))

    def late() -> object:
        if next(calls) == 1:
            assert other.apply(0, batch_of(row("a", 3)))
        return given.batches()

    with pytest.raises(TableUnreachable, match="by another process at the same time"):
        one.apply(0, Changes(given.layout, given.rows, late))  # type: ignore[arg-type]
    assert not one.apply(0, given)
    assert one.read()["n"].to_pylist() == [3]


def test_a_table_that_its_former_query_still_writes_is_refused(tmp_path: Path) -> None:
    still_written(url(tmp_path))


def test_a_column_that_somebody_drops(tmp_path: Path) -> None:
    writer = writer_of(url(tmp_path))
    writer.start()
    writer.apply(0, batch_of(row("a", 1)))
    catalog(tmp_path).load_table("shop.t").update_schema().delete_column("n").commit()  # type: ignore[attr-defined]
    lacks_column(url(tmp_path), "n")


@pytest.mark.weekly
def test_writers_that_start_at_once_on_a_new_catalog(tmp_path: Path) -> None:
    """Each makes the catalog, its namespace and its table; two of them make the same table."""
    for trial in range(8):
        (folder := tmp_path / f"{trial}").mkdir()
        writers, ready = [writer_of(url(folder, f"t{i % 2}")) for i in range(4)], Barrier(4)

        def start(writer: Any, ready: Barrier = ready) -> int:
            ready.wait()
            return int(writer.start())

        with ThreadPoolExecutor(4) as pool:
            assert list(pool.map(start, writers)) == [NONE_YET] * 4


def test_the_errors_after_which_a_catalog_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(made_once, "PAUSE", 0.0)
    ours = ["UNIQUE constraint failed: iceberg_tables", "table iceberg_tables already exists", "database is locked"]
    left = [RuntimeError(words) for words in ours]

    def make() -> str:
        if left:
            raise left.pop()
        return "made"

    assert made_once.made_once(make) == "made"
    left += [RuntimeError("no such table"), RuntimeError(ours[0])]
    with pytest.raises(RuntimeError, match="no such table"):
        made_once.made_once(make)
    left += [RuntimeError(ours[0])] * 100
    with pytest.raises(RuntimeError, match="UNIQUE"):
        made_once.made_once(make)


def test_tables_of_others(tmp_path: Path) -> None:
    other = catalog(tmp_path)
    other.create_namespace("shop")  # type: ignore[attr-defined]
    other.create_table("shop.t", pa.schema({"k": pa.int64()}))  # type: ignore[attr-defined]
    with pytest.raises(TableMismatch, match="has rows that were not written here"):
        writer_of(url(tmp_path)).start()
    with pytest.raises(TableMismatch, match="is gone"):
        writer_of(url(tmp_path, "other")).read()


def test_a_name_that_iceberg_does_not_have(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match=r"takes column 'a\.b' for a field"):
        writer_of(url(tmp_path), Layout(pa.schema({"k": pa.int64(), "a.b": pa.int64()}), ("k",)))


def test_a_flow_is_written_once(tmp_path: Path) -> None:
    scores = pa.table({"ts": [0, 1, 2], "user": ["ada", "bob", "ada"], "score": [3, 5, 4]})
    totals = uc.flow(scores).window(uc.Global()).combine(by="user", total=uc.Sum("score"))
    totals.to_table(url(tmp_path))
    table = catalog(tmp_path).load_table("shop.t")  # type: ignore[attr-defined]
    assert len(table.snapshots()) == 1
    assert sorted(table.scan().to_arrow()["total"].to_pylist()) == [5, 7]
    with pytest.raises(TableMismatch):
        totals.to_table(url(tmp_path))


def test_a_catalog_without_its_password() -> None:
    place = target_of("iceberg:postgresql+psycopg2://me:secret@host/db?warehouse=s3://bucket#a.b.t")
    assert repr(place) == "the Iceberg table 'a.b.t' of postgresql+psycopg2://host/db"
    with pytest.raises(InvalidArgument, match="a target of Iceberg is"):
        target_of("iceberg:sqlite:///secret.db#t")


SECRET = "iceberg:http://127.0.0.1:9/?token=sEcReT1&warehouse=s3://k:sEcReT2@b#a.t"
"""A catalog at a port that nothing listens on."""


def shown(error: BaseException) -> str:
    """Everything that an error shows, also to programs that follow its chain."""
    chain, todo = list[BaseException](), [error]
    while todo:
        one = todo.pop()
        chain.append(one)
        todo += [other for other in (one.__cause__, one.__context__) if other is not None]
    texts = [text for one in chain for text in (str(one), repr(one), repr(one.args), *traceback.format_exception(one))]
    return "".join(texts) + repr(pickle.dumps(error))


def test_errors_of_a_server_that_is_away_show_no_secret() -> None:
    keeper = Keeper(writer_of(SECRET), patience=0)
    for work in (keeper.start, lambda: keeper.take(0, batch_of(row("a", 1))), keeper.read):
        with pytest.raises(TableUnreachable, match="cannot be reached") as refused:
            work()
        assert "sEcReT" not in shown(refused.value)


@pytest.mark.parametrize("raw", [RuntimeError, ValueError, TableMismatch, TableUnreachable])
def test_any_error_of_the_library_shows_no_secret(raw: type[Exception], monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one of our own with words of the library in it, and one that comes from another."""

    def fail(*given: object, **named: object) -> None:
        try:
            raise KeyError("s3://k:sEcReT2@b")
        except KeyError as error:
            raise raw(f"no table at token=sEcReT1 for {named}") from error

    monkeypatch.setattr("pyiceberg.catalog.load_catalog", fail)
    with pytest.raises((TableMismatch, TableUnreachable), match=r"\*\*\*") as refused:
        Keeper(writer_of(SECRET), patience=0).start()
    assert "sEcReT" not in shown(refused.value)


def test_an_error_without_a_secret_stays_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*given: object, **named: object) -> None:
        raise RuntimeError("no such thing")

    monkeypatch.setattr("pyiceberg.catalog.load_catalog", fail)
    with pytest.raises(RuntimeError, match="no such thing"):
        Keeper(writer_of(url(tmp_path))).start()


def test_a_batch_waits_for_a_catalog_that_is_away(tmp_path: Path) -> None:
    """As for a database: it begins again from the start, with a new connection."""
    away, waits = tmp_path / "later", list[float]()

    def wait(pause: float) -> None:
        waits.append(pause)
        if len(waits) == 3:
            away.mkdir()

    keeper = Keeper(writer_of(url(away)), wait=wait)
    assert keeper.start(patient=True) == -1
    assert len(waits) == 3
    failing = iter([True, True, False])

    class Away(IcebergWriter):
        def _table(self) -> object:
            if next(failing, False):
                raise ConnectionResetError("connection reset")
            return super()._table()

    keeper.writer.__class__ = Away
    assert keeper.take(0, batch_of(row("a", 1)))
    assert (len(waits), keeper.read()["n"].to_pylist()) == (5, [1])
    with pytest.raises(TableUnreachable, match="cannot be reached"):
        Keeper(writer_of(url(tmp_path / "never")), patience=0).start()
