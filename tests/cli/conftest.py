"""A file of events, and modules of users, for the tests of the command."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from shell_events import EVENTS


@pytest.fixture
def events(tmp_path: Path) -> str:
    pq.write_table(EVENTS, tmp_path / "events.parquet")
    return str(tmp_path / "events.parquet")


@pytest.fixture
def user_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Writes a module of a user into the working folder, from which the command imports it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))

    def write(name: str, source: str) -> None:
        (tmp_path / f"{name}.py").write_text(source)
        monkeypatch.delitem(sys.modules, name, raising=False)

    return write
