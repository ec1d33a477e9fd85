"""The rows of sources that cannot be read, in a run in this process, and the steps that they were on their way to.

Guarded by tests/files/test_bad_rows.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa

from ..flows.graph import Feed, Graph, Leaf, Step, leaf_columns
from ..flows.left_out import unreadable_rows


class UnreadableRows:
    """The rows of the sources of a graph that cannot be read."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.by_leaf: dict[Leaf, list[pa.Table]] = {}

    def take(self, leaf: Leaf) -> Callable[[pa.Table], None]:
        """Takes the rows of a source that cannot be read. Threads call it, in any order."""
        return self.by_leaf.setdefault(leaf, []).append

    def shown(self, steps: Sequence[Step], ends: Sequence[Feed]) -> Iterator[tuple[Step | None, pa.Table]]:
        """The rows in their order, as rows that were left out, with each of these steps that they were on their way to.

        For a source that is at one of the ends without a step it is None.
        """
        for leaf, tables in self.by_leaf.items():
            if not tables:
                continue
            rows = pa.concat_tables(tables).sort_by([("file", "ascending"), ("line", "ascending")])
            for step in steps:
                for place, feed in enumerate(step.feeds):
                    if feed.leaf is leaf:
                        port = step.ports[place] if step.ports else 0
                        yield step, self.graph.left_out[step].unreadable(rows, port)
            for feed in ends:
                if feed.leaf is leaf:
                    yield None, unreadable_rows(rows, self.row)

    @property
    def row(self) -> pa.StructType:
        """The columns of rows that are left out: those of the inputs of all steps, or else of the sources."""
        return self.graph.left_out_row

    def needed(self, leaf: Leaf) -> frozenset[str] | None:
        """The columns of a source without which a row cannot be read, as its flows need them; None for all of them."""
        if any(feed.leaf is leaf for feed in self.graph.ends):
            return None
        at = leaf.settings.processing_time
        needed = frozenset(() if at is None else (at,))
        for step in self.graph.steps:
            for feed in step.feeds:
                if feed.leaf is leaf:
                    needed |= leaf_columns(step, feed, leaf)
        return needed


__all__ = ["UnreadableRows"]
