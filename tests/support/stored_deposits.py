"""A stored state whose windows have deposits: the grouping, its rows, and the log that an operator writes of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

import uncombine as uc
from uncombine.panes.grouping.grouping import Grouping
from uncombine.panes.grouping.operator import Operator
from uncombine.panes.state.chunk_log import load, save

DEPOSITS = Path(__file__).parents[1] / "data" / "stored" / "deposits_3.zip"
SCHEMA = pa.schema({"ts": pa.timestamp("us"), "k": pa.string(), "x": pa.int64(), "d": pa.int64()})


class Chunks(dict[int, bytes]):
    """A key-value store."""

    put, remove = dict.__setitem__, dict.__delitem__


def deposits_grouping() -> Grouping:
    """A grouping of one window."""
    return Grouping({"m": uc.Median("x"), "n": uc.Count()}, uc.Sessions("1 hour"), by="k", mode="accumulating")


def deposits_rows(number: int) -> pa.Table:
    """The rows of a bundle."""
    x = np.arange(6_000) * (number + 1)
    columns = [np.full(len(x), number), ["k"] * len(x), x, np.ones(len(x), np.int64)]
    return pa.table([pa.array(c).cast(f.type) for c, f in zip(columns, SCHEMA, strict=True)], schema=SCHEMA)


def stored_log() -> tuple[Chunks, bytes]:
    """The log and the manifest after three bundles."""
    operator, log, manifest = Operator(deposits_grouping(), SCHEMA), Chunks(), None
    for number in range(3):
        loaded = load(manifest, log, operator)
        manifest = save(operator.step(loaded.state, deposits_rows(number), watermark=0).state, loaded, log)
    assert manifest is not None
    return log, manifest
