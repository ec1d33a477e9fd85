"""The ways out of a flow: DataFrames, tables and a text. Each asks the source, which knows how to run a flow.

Guarded by tests/local/test_local_flows.py and tests/sparkops/test_flow.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any


class Outputs:
    """The ways out of a flow."""

    source: Any

    def __dir__(self) -> list[str]:
        """The names for users; the fields, of which engines build a query, are left out."""
        fields = getattr(type(self), "__dataclass_fields__", ())
        return sorted({name for name in dir(type(self)) if not name.startswith("_")} - set(fields))

    @property
    def df(self) -> Any:
        """The panes, as a DataFrame of the source's engine. It is streaming if the source is."""
        return self.source.df(self)

    def to_table(self, target: str, keys: str | Sequence[str] | None = None) -> None:
        """Write the result of a bounded flow into a new table, all of it or nothing.

        `target` and `keys` are those of `uc.live_table`, which keeps the result of a stream.

        >>> import tempfile, pyarrow as pa, uncombine as uc
        >>> scores = uc.local.source(pa.table({"ts": [0, 1, 2], "user": ["ada", "bob", "ada"], "score": [3, 5, 4]}))
        >>> totals = scores.window(uc.Global()).combine(by="user", total=uc.Sum("score"))
        >>> totals.to_table(f"duckdb:///{tempfile.mkdtemp()}/scores.db#totals")
        """
        self.source.to_table(self, target, keys)

    @property
    def left_out(self) -> Any:
        """The rows that the steps leave out, as a second DataFrame of the source's engine.

        Its columns are `stage` (from 1 on, through all flows of a union or a join), `side` ("left" or "right" in a
        join), `why` ("late", "bad", "unassigned" or "finished") and `row`, which has the columns of the step's input. A
        DataFrame of its own runs the flow a second time; `foreach_batch` writes both from one query.
        """
        return self.source.left_out(self)

    def foreach_batch(self, function: Callable[[Any, Any, int], None]) -> Any:
        """Write the panes of a stream and the rows that its steps leave out with one query.

        `function(panes, left_out, number)` gets both DataFrames of each micro-batch, and its number. The result is a
        writer of Spark's, as that of `flow.df.writeStream.foreachBatch(...)`: give it the checkpoint, and start it.
        """
        return self.source.foreach_batch(self, function)

    def write_stream(self, *, checkpoint: str, same: Sequence[str] = ()) -> Any:
        """A writer of the stream of panes that goes on from a checkpoint only where that is right.

        It is Spark's own writer with the location of the checkpoint: choose a format or `foreachBatch`, and start it.
        If the folder has a checkpoint, its steps are compared with those of the flow now, before anything starts.

        Parameters
        ----------
        checkpoint
            The folder of the checkpoint. It belongs to the flow.
        same
            The names of steps, as `explain()` prints them, that are written otherwise than when the checkpoint was
            written and compute the same: `same=("map 2",)`.

        >>> import tempfile, uncombine as uc
        >>> spark = uc.session()
        >>> rates = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()
        >>> flow = uc.flow(rates, "timestamp", "1 minute").window(uc.Fixed("1 hour")).combine(n=uc.Count())
        >>> query = flow.write_stream(checkpoint=tempfile.mkdtemp()).format("noop").trigger(once=True).start()
        >>> query.awaitTermination()
        """
        return self.source.write_stream(self, str(checkpoint), same)

    def explain(self) -> str:
        """A text that says how the flow runs, and why."""
        return self.source.explain(self)


__all__ = ["Outputs"]
