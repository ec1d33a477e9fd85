"""Answers: the rows of a flow for those who ask for them, in this process and at once.

Each method runs the flow and asks its result: `flow.collect()` is `flow.run().collect()`. Over Spark it says how Spark
is asked.

Guarded by tests/flows/test_answers.py.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ..errors import InvalidArgument
from ..triggers import Trigger
from .engine import ended_early
from .result import Result

if TYPE_CHECKING:
    import pandas as pd

    from ..panes.state.seed import Seed


class Answers(ABC):
    """The rows of a flow, in the form that a method names.

    >>> import uncombine as uc
    >>> minutes = uc.flow([{"ts": 0, "x": 5}, {"ts": 1, "x": 9}]).window("1 minute").combine(total=uc.Sum("x"))
    >>> [row["total"] for row in minutes.collect()]
    [14]
    """

    @abstractmethod
    def _run(self, script: Sequence[Any] | None, start: Seed | str | None = None) -> Result:
        """The result of a run in this process, over the rows of a script if one is given, from a seed if one is."""

    @abstractmethod
    def _answer(self, way: str) -> Result:
        """The result of a run in this process, for the method that asks for it."""

    def run(
        self,
        script: Sequence[Any] | None = None,
        *,
        start: Seed | str | None = None,
        until: Trigger | str | None = None,
    ) -> Result:
        """Run the flow in this process, and return its panes in their order.

        Parameters
        ----------
        script
            A list of `Elements`, `Watermark` and `Clock`, whose rows take the place of those of the source. With a
            script any flow runs here, also one over Spark, so that what is deployed is tested: its watermark strategy
            and its changelog apply to these rows, and the script may report more watermarks. Before an entry moves
            processing time on, every timer that is due by then fires at its own time. A row arrives at the time in the
            flow's `processing_time` column; if it has none there, at the time of its entry. Without a script the rows
            of the source come as one bundle, and then the input ends.
        start
            A seed, or its folder: the run goes on where the run, the query or the history ended that it was made of.
        until
            For files: the trigger that ends their reading early, when enough is known, such as "90 % of the files",
            "1000000 rows", "10 minutes", or "90 % of the files or 10 minutes". The result is that of the rows that were
            read, all windows closed, and `.seen` is the share of the files that it is of.

        Returns
        -------
        Result
            An Arrow table of the keys, `window`, the results, `event_time`, `diff`, `pane` and `step` (the entry that
            the row came from), with `.table()`, `.counts()`, `.left_out`, `.dropped_rows` and `.output_watermarks`. An
            interrupt (Ctrl-C) is a `KeyboardInterrupt` whose attribute `result` has the result so far.

        Examples
        --------
        >>> import uncombine as uc
        >>> rows = [{"ts": "2016-01-20T12:00:26Z", "score": 5}]
        >>> totals = uc.flow(rows).window("2 minutes").combine(total=uc.Sum("score"))
        >>> totals.run()["total"].to_pylist()
        [5]
        >>> script = [uc.Elements(rows), uc.Elements(rows), uc.Watermark("2016-01-20T12:02:00Z")]
        >>> totals.run(script).select(["total", "diff", "step"]).to_pylist()
        [{'total': 10, 'diff': 1, 'step': 2}]
        """
        if until is None:
            return self._run(script, start)
        if script is not None:
            raise InvalidArgument(
                "until= ends the reading of files, and a script ends where you end it: give one of them"
            )
        ended, seen = ended_early(self, until)
        return replace(ended.run(start=start), seen=seen())

    def collect(self) -> list[dict[str, Any]]:
        """Run the flow in this process; its rows as a list of dicts, as `run().collect()` gives them."""
        return self._answer("collect").collect()

    def to_arrow(self, *, flat: bool = False) -> pa.Table:
        """Run the flow in this process; its rows as an Arrow table, as `run().to_arrow()` gives them."""
        return self._answer("to_arrow").to_arrow(flat=flat)

    def to_pandas(self, *, flat: bool = False) -> pd.DataFrame:
        """Run the flow in this process; its rows as a DataFrame of pandas, as `run().to_pandas()` gives them."""
        return self._answer("to_pandas").to_pandas(flat=flat)

    def to_polars(self, *, flat: bool = False) -> Any:
        """Run the flow in this process; its rows as a DataFrame of Polars, as `run().to_polars()` gives them."""
        return self._answer("to_polars").to_polars(flat=flat)

    def head(self, rows: int = 5) -> Result:
        """Run the flow in this process; a result of its first rows, as `run().head()` gives it."""
        return self._answer("head").head(rows)

    def show(self, rows: int = 20) -> None:
        """Run the flow in this process, and print its first rows."""
        self._answer("show").show(rows)


__all__ = ["Answers"]
