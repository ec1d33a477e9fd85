"""Random pipelines end equal to the same steps from scratch, over the rows that survive."""

from __future__ import annotations

import pyarrow.compute as pc
import pytest
from random_pipelines import Rows, drawn, rows_left
from row_steps import script_of
from seeds import seeds

from uncombine.testing.survivors import Unclear, run_traced

BUNCH = 50


def fault(seed: int) -> str | None:
    """The fault of a pipeline; None if there is none, "unclear" if it is not known which rows survive."""
    pipeline, tables, may_be_late = drawn(seed)
    names = {leaf for leaf in pipeline.names if leaf in tables}
    script = script_of({name: table for name, table in tables.items() if name in names})
    try:
        run = run_traced(pipeline.flow, script)
    except Unclear:
        if not may_be_late:
            raise
        return "unclear"
    survive = {
        name or next(iter(names)): Rows(
            zip(
                (t.value // 1_000 for t in frame.ts),
                (k if isinstance(k, str) else None for k in frame.k),
                frame.x,
                strict=True,
            )
        )
        for name, frame in run.frames.items()
    }
    if not may_be_late and survive != {name: rows_left(tables[name]) for name in names}:
        return "a row was left out that is not late"
    panes = run.result.panes
    so_far = Rows()
    for step in sorted(set(panes["step"].to_pylist())):
        so_far.update(rows_left(panes.filter(pc.equal(panes["step"], step))))
        if min(so_far.values(), default=0) < 0:
            return f"after entry {step} a row has been retracted more often than given"
    got, want = Rows({row: n for row, n in so_far.items() if n}), pipeline.rows(survive)
    if got != want:
        return f"{pipeline.names}: missing {want - got}, too much {got - want}"
    return None


def check(seeds: range) -> None:
    found = {seed: fault(seed) for seed in seeds}
    unclear = sum(one == "unclear" for one in found.values())
    assert not {seed: one for seed, one in found.items() if one not in (None, "unclear")}
    assert unclear < len(found) / 3


FIRSTS = seeds(200, 10_000, step=BUNCH)


@pytest.mark.parametrize("first", FIRSTS)
def test_a_pipeline_ends_with_the_rows_of_its_steps_from_scratch(first: int) -> None:
    check(range(first, first + BUNCH))
