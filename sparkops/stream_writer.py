"""The writer of the stream of a flow: Spark's own, which refuses what a changelog cannot be written as.

Guarded by tests/sparkops/test_stream_writer.py.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import cache, partial
from typing import Any, TypeAlias, TypeVar, cast

from pyspark.sql import SparkSession

from ..errors import InvalidArgument
from .starting import Noted, started
from .time_modes import check_choice
from .tuning.checkpoint_files import fit_for

_Value = TypeVar("_Value")

_Settings: TypeAlias = Callable[[], AbstractContextManager[Any]]

_TRIED_OUT = ("console", "memory", "noop")
"""The formats that nobody restarts a query from."""


def checked_writer(writer: _Value, wakes: bool | None = None) -> _Value:
    """The writer, which takes the output mode append alone, and warns if a query starts without a checkpoint.

    It also warns of a query that never ends: one that `wakes` under availableNow.
    """
    kind: Any = type(writer)
    made: Any = writer
    made.__class__ = _checked(kind)
    made._wakes = wakes
    return cast("_Value", made)


_TEMPORARY = "file:///"
"""A folder like that of the checkpoint that Spark makes for a query that is given none."""


class _Writer:
    """The part of a writer that looks at the output mode and at the checkpoint."""

    _checkpoint: str | None = None
    _format: str | None = None
    _function: Noted | None = None
    _wakes: bool | None = None

    def trigger(self, **options: Any) -> Any:
        if self._wakes and options.get("availableNow"):
            warnings.warn(
                "the flow can have timers of processing time, for which Spark runs batch after batch, so a query with "
                "trigger(availableNow=True) never ends: give uc.flow() tuning=uc.Tuning(wake=False), and timers fire "
                "with the next data, say timers = 'event_time' in the object of a process() that sets no other timers, "
                "or write flow.to_table(), which ends",
                stacklevel=2,
            )
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
        settings, start = self._checked(format, outputMode, options), super().start  # type: ignore[misc]

        def once() -> Any:
            with settings():
                return start(path, format, outputMode, *arguments, **options)

        return started(once, self._has_begun)

    def toTable(  # noqa: N802
        self,
        tableName: str,  # noqa: N803
        format: str | None = None,
        outputMode: str | None = None,  # noqa: N803
        *arguments: Any,
        **options: Any,
    ) -> Any:
        settings, start = self._checked(format, outputMode, options), super().toTable  # type: ignore[misc]

        def once() -> Any:
            with settings():
                return start(tableName, format, outputMode, *arguments, **options)

        return started(once, self._has_begun)

    def foreachBatch(self, func: Any) -> Any:  # noqa: N802
        if ".connect." not in type(self).__module__:  # where the function travels to the server
            self._function = func = Noted(func)
        return super().foreachBatch(func)  # type: ignore[misc]

    def _has_begun(self) -> bool:
        return self._function is not None and self._function.called

    def _note(self, options: Mapping[str, Any]) -> None:
        for key, value in options.items():
            if key.casefold() == "checkpointlocation":
                self._checkpoint = str(value)

    def _checked(self, format: str | None, mode: str | None, options: Mapping[str, Any]) -> _Settings:
        """The settings that hold while the query is started."""
        _check_mode(mode)
        self._note(options)
        spark = SparkSession.getActiveSession()
        given = spark.conf.get("spark.sql.streaming.checkpointLocation", None) if spark else None
        folder = self._checkpoint or given
        if folder and spark and self._wakes is not None:
            check_choice(self._wakes, spark, folder)
        if not folder and (format or self._format) not in _TRIED_OUT:
            warnings.warn(
                "the query has no checkpoint, so a restart forgets its windows and reads all rows again: write "
                ".option('checkpointLocation', folder) before start()",
                stacklevel=3,
            )
        return partial(fit_for, folder or _TEMPORARY, spark) if spark else nullcontext


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


__all__ = ["checked_writer"]
