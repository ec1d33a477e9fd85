"""The writer of the stream of a flow: Spark's own, which looks before it starts a query, and sees that it ends.

Guarded by tests/sparkops/test_stream_writer.py and tests/sparkops/test_time_modes.py.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

from pyspark.sql import SparkSession

from ..errors import InvalidArgument
from ..flows.left_out import LEFT_OUT
from ..tables.target import NONE_YET
from .ending import end_without_input
from .inputs import column
from .query_log import last_plan, require_place
from .starting import BatchFunction, started
from .time_modes import check_choice
from .tuning.checkpoint_files import fit_for

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_Value = TypeVar("_Value")

_TRIED_OUT = ("console", "memory", "noop")
"""The formats that nobody restarts a query from."""

_TEMPORARY = "file:///"
"""A folder like that of the checkpoint that Spark makes for a query that is given none."""


EachBatch: TypeAlias = "Callable[[DataFrame, DataFrame, int], None]"
"""A function of the panes of a micro-batch, of the rows that were left out, and of the number of the batch."""


@dataclass(frozen=True)
class BatchParts:
    """Calls a function with both parts of a micro-batch, which is computed once."""

    function: EachBatch

    def __call__(self, batch: DataFrame, number: int) -> None:
        batch = batch.persist()
        try:
            left_out = column(LEFT_OUT)
            panes = batch.where(left_out.isNull()).drop(LEFT_OUT)
            self.function(panes, batch.where(left_out.isNotNull()).select(f"{LEFT_OUT}.*"), number)
        finally:
            batch.unpersist()


def checked_writer(writer: _Value, wakes: bool | None = None) -> _Value:
    """The writer, which takes the output mode append alone, and warns if a query starts without a checkpoint.

    A query that `wakes` for timers, for which Spark runs batch after batch, ends under availableNow when all rows are
    taken.
    """
    kind: Any = type(writer)
    made: Any = writer
    made.__class__ = _checked(kind)
    made._wakes = wakes
    return cast("_Value", made)


class _Writer:
    """The part of a writer that looks at the output mode, the trigger and the checkpoint."""

    _checkpoint: str | None = None
    _format: str | None = None
    _function: BatchFunction | None = None
    _wakes: bool | None = None
    _now = False
    """True if the query takes what is there now."""

    def trigger(self, **options: Any) -> Any:
        self._now = bool(options.get("availableNow"))
        return super().trigger(**options)  # type: ignore[misc]

    def outputMode(self, outputMode: str) -> Any:  # noqa: N802, N803
        _check_mode(outputMode)
        return super().outputMode(outputMode)  # type: ignore[misc]

    def format(self, source: str) -> Any:
        self._format = source
        return super().format(source)  # type: ignore[misc]

    def option(self, key: str, value: Any) -> Any:
        self._note({key: value})
        return super().option(key, value)  # type: ignore[misc]

    def options(self, **options: Any) -> Any:
        self._note(options)
        return super().options(**options)  # type: ignore[misc]

    def start(
        self,
        path: str | None = None,
        format: str | None = None,
        outputMode: str | None = None,  # noqa: N803
        *arguments: Any,
        **options: Any,
    ) -> Any:
        start = super().start  # type: ignore[misc]
        return self._started(start, (path, format, outputMode, *arguments), options)

    def toTable(  # noqa: N802
        self,
        tableName: str,  # noqa: N803
        format: str | None = None,
        outputMode: str | None = None,  # noqa: N803
        *arguments: Any,
        **options: Any,
    ) -> Any:
        start = super().toTable  # type: ignore[misc]
        return self._started(start, (tableName, format, outputMode, *arguments), options)

    def foreachBatch(self, func: Any) -> Any:  # noqa: N802
        if ".connect." not in type(self).__module__:  # where the function travels to the server
            self._function = func = BatchFunction(func)
        return super().foreachBatch(func)  # type: ignore[misc]

    def _note(self, options: Mapping[str, Any]) -> None:
        for key, value in options.items():
            if key.casefold() == "checkpointlocation":
                self._checkpoint = str(value)

    def _started(self, start: Callable[..., Any], arguments: tuple[Any, ...], options: Mapping[str, Any]) -> Any:
        """Start a query with the arguments of a method of the writer."""
        _, format, mode, *_ = arguments
        _check_mode(mode)
        self._note(options)
        spark = SparkSession.getActiveSession()
        default = spark.conf.get("spark.sql.streaming.checkpointLocation", None) if spark else None
        folder = self._checkpoint or default
        if folder and spark:
            require_place(spark, folder)
        if folder and spark and self._wakes is not None:
            check_choice(self._wakes, spark, folder)
        if not folder and (format or self._format) not in _TRIED_OUT:
            warnings.warn(
                "the query has no checkpoint, so a restart forgets its windows and reads all rows again: write "
                ".option('checkpointLocation', folder) before start()",
                stacklevel=3,
            )
        endless = bool(self._wakes) and self._now
        begun = last_plan(spark, folder) if endless and folder and spark else NONE_YET

        def once() -> Any:
            with fit_for(folder or _TEMPORARY, spark) if spark else nullcontext():
                return start(*arguments, **options)

        begins = f"a query starts {f'with checkpoint {folder}' if folder else 'without a checkpoint'}"
        query = started(once, lambda: self._function is not None and self._function.called, begins)
        if endless:
            end_without_input(query, begun)
        return query


def _check_mode(mode: str | None) -> None:
    if mode is not None and mode.casefold() != "append":
        raise InvalidArgument(
            f"outputMode({mode!r}) does not fit the rows of a flow, which are a changelog to append: leave it out, and "
            "write flow.to_table(target, checkpoint=folder) for a table of the current result"
        )


@cache
def _checked(kind: type) -> type:
    """A class of Spark's writers whose methods look first."""
    return type(kind.__name__, (_Writer, kind), {"__module__": kind.__module__, "__doc__": kind.__doc__})


__all__ = ["BatchParts", "EachBatch", "checked_writer"]
