"""Pictures as files, by the end of their names."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import matplotlib
import pytest

import uncombine as uc
from uncombine.errors import InvalidArgument, LibraryMissing
from uncombine.plot.picture_file import STEPS, save

matplotlib.use("agg")

STARTS = {"html": b"<!doctype html>", "png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}


def users(count: int) -> tuple[uc.Result, list[Any]]:
    script: list[Any] = [uc.Elements([{"ts": i, "user": f"u{i}", "x": i} for i in range(count)], at=0)]
    script += [uc.Watermark(None, at=60_000_000)]
    return uc.flow(script).window("1 minute").combine(by="user", n=uc.Sum("x")).run(), script


@pytest.mark.weekly
@pytest.mark.parametrize("ending", STARTS)
@pytest.mark.parametrize("count", [1, 2, 13])
def test_any_number_of_keys_is_drawn_into_a_file(ending: str, count: int, tmp_path: Path) -> None:
    steps: list[int] = []
    path = tmp_path / f"panes.{ending.upper() if count == 2 else ending}"
    save(path, *users(count), title="users", done=lambda: steps.append(1))
    assert path.read_bytes().startswith(STARTS[ending])
    assert len(steps) == STEPS


def test_another_ending_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match=r"is written as \.html, \.pdf, \.png, \.svg, but was given .*panes\.gif"):
        save(tmp_path / "panes.gif", *users(1))
    assert list(tmp_path.iterdir()) == []


def test_a_page_needs_no_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("matplotlib", "matplotlib.figure", "matplotlib.pyplot"):
        monkeypatch.setitem(sys.modules, name, None)
    save(tmp_path / "panes.html", *users(2))
    with pytest.raises(LibraryMissing, match=r"pip install 'uncombine\[plot\]', or draw with uc\.plot\.animation"):
        save(tmp_path / "panes.png", *users(2))
