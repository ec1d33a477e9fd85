"""Targets by URL.

Guarded by tests/tables/test_tables.py.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from urllib.parse import unquote

from ..errors import InvalidArgument, require_options
from ..urls import has_password
from ..windows.spans import ZERO, Span, positive
from .delta import Delta
from .duckdb import DuckDB
from .iceberg import Iceberg
from .parquet import ParquetFolder
from .postgresql import PostgreSQL
from .sql import STAGING_TABLE
from .target import BATCHES, Target

FORMS = (
    "duckdb:path.db#table",
    "postgresql://host/database#table",
    "delta:path",
    "parquet:path",
    "iceberg:catalog#namespace.table",
)
"""The forms of URLs, as messages show them."""


def target_of(url: object) -> Target:
    """The target of a URL. A message never has the URL, because it may have a password.

    >>> target_of("duckdb:/data/shop.db#main.totals")
    table 'main.totals' of /data/shop.db
    """
    if isinstance(url, str):
        kind, colon, rest = url.partition(":")
        if colon and kind in _KINDS:
            return _KINDS[kind](rest)
    start = f"{url.partition(':')[0]!r}: ..." if isinstance(url, str) and ":" in url else "none of them"
    raise InvalidArgument(f"a target is one of {', '.join(FORMS)}, but is {start}")


def _duckdb(rest: str) -> Target:
    place, table, schema = _place_and_table(rest, FORMS[0])
    address, _, query = place.partition("?")
    path = address.removeprefix("///") if address.startswith("////") else address
    if not path or (path.startswith("//") and not path.startswith("///")) or path.lstrip("/") == ":memory:":
        raise InvalidArgument(
            "a target of DuckDB is 'duckdb:' and the path of a file, such as duckdb:/data/shop.db#totals"
        )
    if path.startswith("///"):
        place = rest.removeprefix("///")
        raise InvalidArgument(
            f"'duckdb:///{place}' is a file of the root folder to some, and one of the working folder to others: write "
            f"'duckdb:/{place}' or 'duckdb:{place}'"
        )
    path = unquote(path)
    copy, every = _copy_options(query, path)
    return DuckDB(path=path, table=table, schema=schema, publish=copy, publish_every=every)


def _copy_options(query: str, path: str) -> tuple[str | None, Span]:
    """The file that gets a copy for readers, if a URL of DuckDB names one, and the time from one copy to the next."""
    pairs = (part.partition("=")[::2] for part in query.split("&") if part)
    options = {name: unquote(value) for name, value in pairs}
    require_options(options, ("publish", "publish_every"), "a URL of DuckDB")
    every = ZERO
    if "publish_every" in options:
        every = positive(options["publish_every"], "a URL of DuckDB", "publish_every")
    if (copy := options.get("publish")) is None:
        if options:
            raise InvalidArgument("publish_every= of a URL of DuckDB needs publish=, the file that gets a copy")
        return None, every
    if not copy or os.path.realpath(copy) == os.path.realpath(path):
        raise InvalidArgument(
            f"publish= of a URL of DuckDB names another file, which gets a copy of {path}, but is {copy!r}: write "
            f"'duckdb:{path}?publish=seen.db#table'"
        )
    return copy, every


def _postgresql(rest: str) -> Target:
    place, table, schema = _place_and_table(rest, "postgresql://host/database#table")
    if not place.startswith("//"):
        raise InvalidArgument("a target of PostgreSQL is a URL such as postgresql://host/database#table")
    return PostgreSQL(url=f"postgresql:{place}", table=table, schema=schema)


def _delta(rest: str) -> Target:
    if not rest:
        raise InvalidArgument("a target of Delta is 'delta:' and the path of a folder, such as delta:/data/totals")
    if "://" in rest and has_password(rest):
        raise InvalidArgument("a URL of Delta has no password in it: give the credentials in the environment")
    return Delta(rest)


def _parquet(rest: str) -> Target:
    if "://" in rest:
        raise InvalidArgument(
            "a target of Parquet is a folder on a disk, whose files are renamed in one step: write delta: for a table "
            "in an object store"
        )
    if not rest:
        raise InvalidArgument(
            "a target of Parquet is 'parquet:' and the path of a folder, such as parquet:/data/totals"
        )
    return ParquetFolder(rest)


def _iceberg(rest: str) -> Target:
    place, _, named = rest.rpartition("#")
    identifier = tuple(map(unquote, named.split(".")))
    if not place or len(identifier) < 2 or not all(identifier):
        raise InvalidArgument(
            "a target of Iceberg is 'iceberg:', a catalog and a table, such as "
            "iceberg:sqlite:////data/catalog.db?warehouse=/data/warehouse#shop.totals"
        )
    uri, _, query = place.partition("?")
    parameters = [part for part in query.split("&") if part]
    warehouses = [part.partition("=")[2] for part in parameters if part.startswith("warehouse=")]
    others = [part for part in parameters if not part.startswith("warehouse=")]
    return Iceberg(
        catalog="?".join(filter(None, (uri, "&".join(others)))),
        warehouse=unquote(warehouses[0]) if warehouses else None,
        identifier=identifier,
    )


def _place_and_table(rest: str, form: str) -> tuple[str, str, str | None]:
    """The text before #, the table, and its schema; % and two digits stand for a character that is none of # . %."""
    place, _, named = rest.rpartition("#")
    schema, _, table = named.rpartition(".")
    if not place or not table or "." in schema:
        raise InvalidArgument(f"the target names no table: write it as {form}, or with #schema.table")
    if unquote(table).lower() in (BATCHES, STAGING_TABLE):
        raise InvalidArgument(f"a table {unquote(table)!r} is one of the library's own: choose another name")
    return place, unquote(table), unquote(schema) or None


_KINDS: Mapping[str, Callable[[str], Target]] = {
    "duckdb": _duckdb,
    "postgresql": _postgresql,
    "postgres": _postgresql,
    "delta": _delta,
    "parquet": _parquet,
    "iceberg": _iceberg,
}


def is_target(value: object) -> bool:
    """True for the URL of a live table, also one that is not written rightly.

    >>> is_target("duckdb:/data/shop.db#totals"), is_target("data/totals.parquet")
    (True, False)
    """
    return isinstance(value, str) and value.partition(":")[0] in _KINDS and ":" in value


__all__ = ["is_target", "target_of"]
