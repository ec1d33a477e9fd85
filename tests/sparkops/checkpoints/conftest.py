"""Targets of live tables for tests of queries that are changed: files, and a server of PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from evolved_queries import URLS
from postgres_server import PostgresServer


@pytest.fixture(params=[*URLS, "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of a table that is not there yet."""
    if request.param != "postgresql":
        yield request.param.format(tmp_path)
        return
    server = PostgresServer(tmp_path / "postgresql")
    server.start()
    try:
        yield server.url("totals")
    finally:
        server.stop("immediate")
