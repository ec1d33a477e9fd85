"""Rows and fingerprints that were stored when panes had fewer fields are those of now."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from uncombine.panes.state.codec import pack, unpack
from uncombine.panes.state.pane_type import FORMER_PANE, PANE, with_pane_types_of_now
from uncombine.panes.state.store import Chunk


def test_stored_panes_have_the_fields_of_now() -> None:
    panes = pa.array([{"index": 3, "timing": "LATE"}, None, {"trigger": "rows"}], FORMER_PANE)
    table = pa.table({"x": [1, 2, 3], "pane": panes})
    chunk = Chunk.of(np.arange(3, dtype=np.uint64), table, {})
    _, read, _ = unpack(pack(chunk), lambda rows: np.arange(rows.num_rows, dtype=np.uint64)).living()
    assert read.schema.field("pane").type == PANE
    assert read["x"].to_pylist() == [1, 2, 3]
    assert read["pane"].to_pylist() == [None if one is None else {**one, "since": None} for one in panes.to_pylist()]


def test_a_fingerprint_has_the_pane_of_now() -> None:
    stored = {"shows": [["k", "string"], ["pane", str(FORMER_PANE)]], "shards": 2}
    assert with_pane_types_of_now(stored) == {"shows": [["k", "string"], ["pane", str(PANE)]], "shards": 2}
