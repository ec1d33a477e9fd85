"""The table of a run in this process.

Guarded by tests/tables/test_tables.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from ..flows.flow import Flow
from ..flows.result import Result
from ..tables import write_result


@dataclass(frozen=True)
class TableWriter:
    """Writes the panes of a flow into a table; in another mode the rows go through the flow again."""

    flow: Flow
    panes: pa.Table
    again: Callable[[Flow], Result]
    run: str
    """The id of the run, which its seed has too."""

    def __call__(self, target: str, keys: str | Sequence[str] | None) -> None:
        write_result(self.flow, target, keys, self._panes, self.run)

    def _panes(self, flow: Flow) -> pa.Table:
        return self.panes if flow is self.flow else self.again(flow).panes


__all__ = ["TableWriter"]
