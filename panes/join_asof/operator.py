"""The operator of an as-of join: two changelogs by key and time, without an engine.

Guarded by tests/panes/join_asof/test_join_asof.py.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from ..join.operator import JoinOperator
from ..state.operator_state import OperatorState, StepResult
from ..state.store import Store
from .candidates import tie_columns
from .join_asof import JoinAsof
from .last_rows import LAST
from .step import AsofStep


class JoinAsofOperator(JoinOperator):
    """An as-of join compiled against the schemas of its inputs.

    >>> import pyarrow as pa
    >>> from uncombine.panes.join_asof.join_asof import JoinAsof
    >>> from uncombine.panes.join_asof.operator import JoinAsofOperator
    >>> trades = pa.schema({"stock": pa.string(), "ts": pa.timestamp("us", "UTC")})
    >>> quotes = trades.append(pa.field("bid", pa.int64()))
    >>> op = JoinAsofOperator(JoinAsof("stock"), trades, quotes)
    >>> trade = pa.table({"stock": ["a"], "ts": [7]}).cast(trades)
    >>> quote = pa.table({"stock": ["a"], "ts": [5], "bid": [90]}).cast(quotes)
    >>> first = op.step(op.initial(), (trade, quotes.empty_table()), watermark=0)
    >>> first.panes.select(["stock", "bid", "diff"]).to_pylist()
    [{'stock': 'a', 'bid': None, 'diff': 1}]
    >>> then = op.step(first.state, (trades.empty_table(), quote), watermark=0)
    >>> then.panes.select(["stock", "bid", "diff"]).to_pylist()
    [{'stock': 'a', 'bid': None, 'diff': -1}, {'stock': 'a', 'bid': 90, 'diff': 1}]
    """

    def __init__(self, join: JoinAsof, left: pa.Schema, right: pa.Schema) -> None:
        super().__init__(join, left, right)
        self.asof = join
        tie_columns(join, self.compiled.right)

    def initial(self) -> OperatorState:
        """The state before any row."""
        stores: dict[str, Store | None] = {}
        for side in self.compiled.sides:
            stores[side.name] = Store(side.stored)
            stores[f"{side.name}_early"] = None if side.diff is None else Store(side.stored)
        stores[LAST] = Store(self.compiled.right.stored)
        return OperatorState(stores)

    def _step(self, state: OperatorState, bundle: Sequence[pa.Table], after: int, now: int) -> StepResult:
        step = AsofStep(
            asof=self.asof, compiled=self.compiled, stores=state.stores, before=state.watermark, watermark=after
        )
        return step.run(state, bundle, now)


__all__ = ["JoinAsofOperator"]
