"""The queries of NEXMark give what pandas computes from the rows that are left, and their events are as described."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from nexmark_runs import fault, script, site

import uncombine as uc

# The folder of benchmarks is found when the runs are known.
from nexmark.events import Events  # isort: skip
from nexmark.queries import QUERIES  # isort: skip

COUNT = 3_000
CLEAN, CORRECTED = Events(seed=1, rate=100), Events(seed=2, rate=100, twice=0.05, corrected=0.1)


@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize("made", [CLEAN, CORRECTED], ids=["clean", "corrected"])
def test_queries(name: str, made: Events) -> None:
    if made.changes and name == "q12":
        with pytest.raises(uc.UncombineError, match="q12 counts arrivals"):
            QUERIES[name](site(made))
        return
    flow = QUERIES[name](site(made))
    result = flow.run(script(made, COUNT, flow, 3))
    assert fault(name, result, made.tables(0, COUNT)) is None
    assert result.num_rows > 0


def test_a_wrong_row_is_seen() -> None:
    flow = QUERIES["q4"](site(CLEAN))
    result = flow.run(script(CLEAN, COUNT, flow, 3))
    assert fault("q4", result.slice(1), CLEAN.tables(0, COUNT)) is not None


def test_events_do_not_depend_on_the_parts_in_which_they_are_made() -> None:
    def known(tables: list[pa.Table]) -> list[str]:
        return sorted(map(str, pa.concat_tables(tables).to_pylist()))

    whole, parts = CORRECTED.tables(0, 2_000), [CORRECTED.tables(first, 500) for first in range(0, 2_000, 500)]
    for name, table in whole.items():
        assert known([table]) == known([part[name] for part in parts])


def test_shares_of_events() -> None:
    tables = Events(seed=3, twice=0.05, corrected=0.1).tables(0, 50_000)
    assert [tables[name].num_rows for name in ("persons", "auctions")] == [1_000, 3_000]
    bids = tables["bids"]
    assert pc.sum(bids["diff"]).as_py() == pytest.approx(46_000 * 1.05, rel=0.005)
    assert pc.sum(pc.less(bids["diff"], 0)).as_py() == pytest.approx(46_000 * 0.1 * 0.95, rel=0.05)
    late = pc.greater(pc.subtract(bids["seen"], bids["ts"]).cast(pa.int64()), 1_000_000)
    assert 0.1 < np.mean(late) < 0.35
    hundreds = [(number - 1000) % 100 == 0 for number in bids["auction"].to_pylist()]
    assert np.mean(hundreds) == pytest.approx(0.5, abs=0.02)
    sizes = {name: table.nbytes / table.num_rows for name, table in tables.items()}
    assert 180 < sizes["persons"] < 230
    assert 450 < sizes["auctions"] < 550
