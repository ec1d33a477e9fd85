"""A run goes on from a seed as if it had not ended, and a seed says what is wrong with it."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from opened import run_script
from random_pipelines import drawn
from reference.byrule.agree import combiners_of
from reference.byrule.transcripts import SCHEMA
from row_steps import script_of
from scripts import scripted
from seeds import seeds

from uncombine.flows.result import Result
from uncombine.panes.state.seed import Seed, read_seed


def check_resumed(run: Callable[..., Result], script: list[Any], r: random.Random, folder: Path) -> None:
    """Runs that end at some entries, and go on from seeds, give the panes and the counts of one run."""
    whole = run(script)
    cuts = sorted(r.sample(range(len(script) + 1), r.choice([1, 1, 2]) if len(script) else 1))
    panes, start, seed = [], 0, None
    for number, stop in enumerate([*cuts, len(script)]):
        part = run(script[start:stop], start=seed)
        steps = pa.array([step + start for step in part.panes["step"].to_pylist()], pa.int64())
        place = part.panes.schema.get_field_index("step")
        panes.append(part.panes.set_column(place, "step", steps))
        seed, start = read_seed(part.seed(f"{folder}/{number}").folder), stop
    assert pa.concat_tables(panes).equals(whole.panes)
    counts = {name: count for name, count in part.counts().items() if name != "unreadable"}
    assert counts.items() <= whole.counts().items()


@pytest.mark.parametrize("seed", seeds(40, 4_000))
def test_pipelines_go_on_from_seeds(seed: int, tmp_path: Path) -> None:
    pipeline, tables, _ = drawn(seed)
    names = {leaf for leaf in pipeline.names if leaf in tables}
    script = script_of({name: table for name, table in tables.items() if name in names})
    check_resumed(pipeline.flow.run, script, random.Random(seed), tmp_path)


@pytest.mark.parametrize("seed", seeds(40, 4_000))
def test_groupings_go_on_from_seeds(seed: int, tmp_path: Path) -> None:
    script, options = scripted(seed)

    def run(entries: list[Any], start: Seed | None = None) -> Result:
        return run_script(entries, from_seed=start, **options, **combiners_of(options), schema=SCHEMA)

    check_resumed(run, script, random.Random(seed), tmp_path)
