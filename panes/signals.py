"""The signals of a trigger: rows of other flows that reach every shard and fire the windows of all keys.

Where they are read, a transform keeps the rows that are signals and says in a column which parts of the trigger wait
for them. They come to a grouping by ports of their own, and every shard gets all of them.

Guarded by tests/panes/test_signals.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ..combiners.aggregate import weights_of
from ..combiners.expressions.expr import Expr
from ..combiners.rows.columns import flat, int64_column
from ..triggers import OnSignal, truth
from ..windows import time_column
from .parcels import Parcel
from .row_lift import EveryShardLift
from .transforms import Transform, takes_arrow

BITS = "uncombine_signals"
"""The column with the bits of the parts of a trigger that wait for a signal."""

MOST = 62
"""The most parts of a trigger that wait for signals."""

COUNTED = 1 << MOST
"""The bit of a signal that another shard counts if it is bad: all shards judge it, since each has the same clock."""

SIDES = ("keyed", *("signals" if n == 1 else f"signals {n}" for n in range(1, MOST + 1)))
"""The names of the ports of a grouping with signals."""


@dataclass(frozen=True)
class Signals(Transform):
    """The rows that are signals, each with the bits of the parts of a trigger that wait for it.

    >>> import pyarrow as pa, uncombine as uc
    >>> rows = pa.table({"kind": ["a", "flush", "flush"], "w": [1, 1, -1]})
    >>> flush = uc.OnSignal(uc.flow([{"ts": 0, "kind": "a"}]), when=uc.col("kind") == "flush")
    >>> Signals(((1, flush),), "w").apply(rows).to_pylist()
    [{'kind': 'flush', 'w': 1, 'uncombine_signals': 1}]
    """

    parts: tuple[tuple[int, OnSignal], ...]
    """The parts of the trigger that wait for rows of this flow, each with its bit."""
    weight: str | None
    """The column with the weights of the rows, of which signals have more than zero."""

    word = "OnSignal"

    def meaning(self, columns: frozenset[str] | None) -> Mapping[str, Any]:
        whens = [(bit, part.when) for bit, part in self.parts]
        if len(whens) == 1:
            return {} if whens[0][1] is None else {"when": whens[0][1]}
        return {f"when {bit}": "every row" if when is None else when for bit, when in whens}

    @property
    def functions(self) -> bool:
        return any(callable(part.when) and not isinstance(part.when, Expr) for _, part in self.parts)

    def may_set(self, column: str) -> bool:
        return column == BITS

    def apply(self, table: pa.Table) -> pa.Table:
        return self._kept(table, table)

    def carrying(self, table: pa.Table, column: str) -> pa.Table:
        return self._kept(table, table.drop_columns([column]))

    def before(self, columns: frozenset[str] | None) -> frozenset[str] | None:
        if columns is None or self.functions:
            return None
        read = {name for _, part in self.parts if isinstance(part.when, Expr) for name in part.when.columns}
        return (columns - {BITS}) | read | ({self.weight} if self.weight is not None else set())

    def _bits(self, table: pa.Table) -> np.ndarray:
        bits = np.zeros(table.num_rows, np.int64)
        for bit, part in self.parts:
            if part.when is None:
                bits |= bit
                continue
            with takes_arrow(part.when, "OnSignal(when=)"):
                bits |= np.where(truth(part.when, table), bit, 0)
        return bits

    def _kept(self, table: pa.Table, rows: pa.Table) -> pa.Table:
        """The table less the rows that are no signals, which `rows` has without hidden columns."""
        bits = self._bits(rows)
        kept = bits != 0
        if self.weight is not None:
            weights = weights_of(rows, self.weight)
            bits[weights <= 0] = 0
            # A message that cannot be read has no weight, and is counted as a bad row.
            kept = (kept & (weights > 0)) | (weights == 0)
        return table.append_column(BITS, pa.array(bits)).filter(pa.array(kept))


def plain(schema: pa.Schema) -> pa.Schema:
    """The columns of a user, without that which says what a signal is for.

    >>> plain(pa.schema({"x": pa.int64(), BITS: pa.int64()})).names
    ['x']
    """
    return schema.remove(schema.names.index(BITS)) if BITS in schema.names else schema


@dataclass(frozen=True)
class SignalInput:
    """A flow of signals, as a grouping gets its rows."""

    time: str
    """The column of event times."""


class SignalLift(EveryShardLift):
    """Makes a parcel of signals for each shard; the first one counts those that are bad.

    >>> rows = pa.table({"ts": pa.array([5], pa.timestamp("us")), BITS: [1]})
    >>> [parcel.table[BITS].to_pylist() for _, parcel in SignalLift("ts", 2)(rows, at=7)]
    [[1], [4611686018427387905]]
    """

    def __call__(self, rows: pa.Table, at: int | np.ndarray) -> list[tuple[int, Parcel]]:
        place, own = rows.column_names.index(BITS), int64_column(rows[BITS])
        others = rows.set_column(place, BITS, pa.array(own | COUNTED))
        return [*super().__call__(rows, at)[:1], *super().__call__(others, at)[1:]]


@dataclass(frozen=True)
class Told:
    """The signals of a bundle."""

    bits: int
    """The bits of the parts of the trigger for which there is a signal."""
    bad: np.ndarray
    """The places of signals without a usable time, counted through all ports; they fire nothing."""


def told(inputs: Sequence[SignalInput], tables: Sequence[pa.Table], latest: int) -> Told:
    """The signals of the tables of all ports; `latest` is the last time that a row may have."""
    bits, bad, start = 0, [np.empty(0, np.int64)], 0
    for input, table in zip(inputs, tables, strict=True):
        if table.num_rows:
            times, valid = time_column(flat(table[input.time]))
            good = valid & (times <= latest)
            own = int64_column(table[BITS])
            bits |= int(np.bitwise_or.reduce(own[good], initial=0)) & ~COUNTED
            bad.append(start + np.flatnonzero(~good & (own & COUNTED == 0)))
        start += table.num_rows
    return Told(bits=bits, bad=np.concatenate(bad))


__all__ = ["BITS", "MOST", "SIDES", "SignalInput", "Signals", "Told", "told"]
