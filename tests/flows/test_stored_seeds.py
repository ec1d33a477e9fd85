"""Seeds of every format are read for ever: a run goes on from each that is stored."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
from stored_seeds import BEFORE, SHOWN, history_file, history_flow, seed_file, stored_flow, stored_script

import uncombine as uc
from uncombine.panes.state.seed import FORMAT


@pytest.mark.weekly
@pytest.mark.parametrize("format", range(1, FORMAT + 1))
def test_a_run_goes_on_from_a_stored_seed(format: int, tmp_path: Path) -> None:
    flow, script = stored_flow(), stored_script()
    whole = flow.run(script).panes.to_pylist()
    expected = [{**row, "step": row["step"] - BEFORE} for row in whole if row["step"] >= BEFORE]
    with zipfile.ZipFile(seed_file(format)) as archive:
        archive.extractall(tmp_path)
    found = flow.run(script[BEFORE:], start=str(tmp_path))
    assert found.panes.to_pylist() == expected
    assert {row["diff"] for row in expected} == {1, -1}
    assert len(expected) > 10


@pytest.mark.parametrize("format", range(2, FORMAT + 1))
def test_a_stored_history_shows_its_panes(format: int, tmp_path: Path) -> None:
    with zipfile.ZipFile(history_file(format)) as archive:
        archive.extractall(tmp_path)
    shown = [(row["k"], row["total"]) for row in history_flow().run([], start=str(tmp_path)).panes.to_pylist()]
    assert sorted(shown) == sorted(SHOWN)
    late = [uc.Elements([{"ts": 65_000_000, "k": "a", "x": 1.0, "d": 1}])]
    panes = history_flow().run(late, start=str(tmp_path)).panes.to_pylist()[len(SHOWN) :]
    assert [(row["k"], row["total"], row["diff"]) for row in panes] == [("a", 33.5, -1), ("a", 34.5, 1)]
