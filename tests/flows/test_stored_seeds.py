"""Seeds of every format are read for ever: a run goes on from each that is stored."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
from stored_seeds import BEFORE, seed_file, stored_flow, stored_script

from uncombine.panes.state.seed import FORMAT


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
