"""The operator of a lookup join: a changelog beside rows that meet it as it is, without an engine.

Guarded by tests/panes/lookup/test_lookup.py.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from ..join.operator import JoinOperator
from ..state.operator_state import OperatorState, StepResult
from ..state.store import Store
from .given import given_schema
from .lookup import Lookup
from .step import LookupStep


class LookupOperator(JoinOperator):
    """A lookup join compiled against the schemas of its inputs.

    >>> import pyarrow as pa
    >>> from uncombine.panes.lookup.lookup import Lookup
    >>> from uncombine.panes.lookup.operator import LookupOperator
    >>> orders = pa.schema({"user": pa.string(), "ts": pa.timestamp("us", "UTC")})
    >>> users = orders.append(pa.field("city", pa.string()))
    >>> op = LookupOperator(Lookup("user"), orders, users)
    >>> user = pa.table({"user": ["a"], "ts": [9], "city": ["Rome"]}).cast(users)
    >>> order = pa.table({"user": ["a"], "ts": [7]}).cast(orders)
    >>> op.step(op.initial(), (order, user), watermark=0).panes.select(["user", "city", "diff"]).to_pylist()
    [{'user': 'a', 'city': 'Rome', 'diff': 1}]
    """

    def __init__(self, join: Lookup, left: pa.Schema, right: pa.Schema) -> None:
        super().__init__(join, left, right)
        self.lookup = join

    def initial(self) -> OperatorState:
        """The state before any row."""
        left, right = self.compiled.sides
        weighted = left.diff is not None
        stores: dict[str, Store | None] = {
            "left": Store(given_schema(self.compiled)) if weighted else None,
            "left_early": Store(left.stored) if weighted else None,
            "right": Store(right.stored),
            "right_early": None if right.diff is None else Store(right.stored),
        }
        return OperatorState(stores)

    def _step(self, state: OperatorState, bundle: Sequence[pa.Table], after: int, now: int) -> StepResult:
        step = LookupStep(compiled=self.compiled, stores=state.stores, before=state.watermark, watermark=after)
        return step.run(state, bundle, now)


__all__ = ["LookupOperator"]
