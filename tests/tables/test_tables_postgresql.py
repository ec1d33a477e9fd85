"""Live tables in PostgreSQL, on a server that the tests start and stop."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest
from live_tables import (
    KEYS,
    LENGTH_KEYS,
    LENGTHS,
    NESTED,
    VALUES,
    adapted,
    batch_of,
    finds,
    follows,
    holds,
    in_order,
    refuses,
    row,
    taken_over,
    writer_of,
)
from postgres_server import PostgresServer

from uncombine.errors import InvalidArgument, TableMismatch, TableUnreachable, TypeMismatch
from uncombine.tables import Keeper, Layout, target_of


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresServer]:
    server = PostgresServer(tmp_path_factory.mktemp("postgres") / "server")
    server.start()
    yield server
    server.stop("immediate")


def test_a_table_follows_the_batches(server: PostgresServer) -> None:
    assert follows(server.url("follows"), 0) > 50


@pytest.mark.weekly
def test_a_table_refuses_what_does_not_fit(server: PostgresServer) -> None:
    refuses(server.url("refuses"))


def test_a_table_becomes_that_of_a_changed_flow(server: PostgresServer) -> None:
    adapted(server.url("adapted"))


@pytest.mark.weekly
def test_a_table_is_taken_over_from_the_maker_of_a_seed(server: PostgresServer) -> None:
    taken_over(server.url("taken"))


@pytest.mark.weekly
def test_hard_names_and_values(server: PostgresServer) -> None:
    holds(server.url('a "t" %2E%2523 😀'), VALUES | {"list": NESTED["list"]} | LENGTHS)
    finds(server.url("keys"), KEYS | LENGTH_KEYS)


@pytest.mark.parametrize(
    "kind",
    [
        NESTED["struct"][0],
        pa.list_(pa.list_(pa.int64())),
        pa.timestamp("ns"),
        pa.duration("ns"),
        pa.list_(pa.duration("us")),
    ],
    ids=str,
)
def test_types_that_postgresql_does_not_have(kind: pa.DataType) -> None:
    with pytest.raises(TypeMismatch, match=r"column 'v' is .*, a type that PostgreSQL does not have"):
        writer_of("postgresql://host/db#t", Layout(pa.schema({"k": pa.int64(), "v": kind}), ("k",)))


def test_a_name_that_postgresql_would_cut() -> None:
    with pytest.raises(InvalidArgument, match="63 bytes of a name"):
        writer_of("postgresql://host/db#t", Layout(pa.schema({"k": pa.int64(), "é" * 32: pa.int64()}), ("k",)))


@pytest.mark.parametrize("name", ["cmax", "cmin", "ctid", "tableoid", "xmax", "xmin"])
def test_a_column_that_every_table_of_postgresql_has(name: str, server: PostgresServer) -> None:
    with pytest.raises(InvalidArgument, match=f"has a column '{name}' of its own in every table: give that of the"):
        writer_of("postgresql://host/db#t", Layout(pa.schema({"k": pa.int64(), name: pa.int64()}), ("k",)))
    writer = writer_of(server.url(f"of {name}"), Layout(pa.schema({"k": pa.int64(), name.upper(): pa.int64()}), ("k",)))
    assert writer.start() == -1
    writer.close()


def test_a_value_that_the_server_refuses(server: PostgresServer) -> None:
    writer = writer_of(server.url("zero"))
    writer.start()
    with pytest.raises(TableMismatch, match=r"refuses the rows: .*0x00"):
        writer.apply(0, batch_of(row("a\0", 1)))
    assert writer.apply(0, batch_of(row("a", 1)))
    writer.close()


@pytest.mark.weekly
def test_a_server_that_goes_away_and_comes_back(server: PostgresServer) -> None:
    pauses = list[float]()

    def wait(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 2:
            server.start()

    keeper = Keeper(writer_of(server.url("away")), wait=wait)
    keeper.start()
    keeper.take(0, batch_of(row("a", 1)))
    server.stop("immediate")
    assert keeper.take(1, batch_of(row("b", 2)))
    assert len(pauses) == 2
    server.stop("fast")
    with pytest.raises(TableUnreachable, match="table 'away' of PostgreSQL at /postgres cannot be reached"):
        Keeper(keeper.writer, patience=0).take(2, batch_of())
    server.start()
    assert not keeper.take(1, batch_of(row("b", 2)))
    assert in_order(keeper.writer.read().select(["k"])) == ["{'k': 'a'}", "{'k': 'b'}"]
    keeper.close()


def test_two_writers_of_one_checkpoint(server: PostgresServer) -> None:
    one, other = writer_of(server.url("two")), writer_of(server.url("two"))
    one.start(), other.start()
    assert one.apply(0, batch_of(row("a", 1)))
    assert not other.apply(0, batch_of(row("a", 2)))
    assert other.apply(1, batch_of(row("a", 1, -1), row("a", 3)))
    assert not one.apply(1, batch_of(row("a", 1, -1), row("a", 4)))
    assert one.read()["n"].to_pylist() == [3]
    one.close(), other.close()


@pytest.mark.weekly
def test_a_schema_of_its_own(server: PostgresServer) -> None:
    place = writer_of(server.url("plain"))
    with place.transaction() as db:
        db.run('CREATE SCHEMA "my shop"')
    place.close()
    refuses(server.url("my shop.t"))


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:top%20hush@localhost:1x/db#t",
        "postgresql://me:top hush@localhost/db#t",
        "postgresql://me:top@hush@127.0.0.1:1/db?connect_timeout=1#t",
        "postgresql://127.0.0.1:1/db?sslpassword=top%20hush#t",
        "postgresql://127.0.0.1:1/db?sslmode=hush&password=hush#t",
    ],
)
def test_no_message_has_a_password(url: str) -> None:
    place = target_of(url)
    writer = writer_of(url)
    with pytest.raises(TableUnreachable) as told:
        writer.start()
    for text in (repr(place), str(place), place.name, str(told.value), repr(vars(told.value)), repr(writer)):
        assert "top" not in text
        assert "hush" not in text
    assert told.value.__suppress_context__
