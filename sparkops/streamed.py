"""The streaming DataFrame of a flow: its writer refuses what a changelog cannot be written as.

Guarded by tests/sparkops/test_streamed.py.
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

_STEPS = (
    *("alias", "drop", "filter", "select", "selectExpr", "toDF", "union", "where"),
    *("withColumn", "withColumns", "withColumnRenamed", "withColumnsRenamed"),
)
"""The methods of a DataFrame that give rows of a changelog again."""

_TRIED_OUT = ("console", "memory", "noop")
"""The formats that nobody restarts a query from."""


def streamed(df: _Value, wakes: bool | None = None) -> _Value:
    """The DataFrame, with a writer as `checked_writer` makes it."""
    made: Any = _with(df, _Streamed)
    made._wakes = wakes
    return cast("_Value", made)


def checked_writer(writer: _Value, wakes: bool | None = None) -> _Value:
    """The writer, which takes the output mode append alone, and warns if a query starts without a checkpoint.

    It also warns of a query that never ends: one that `wakes` under availableNow.
    """
    made: Any = _with(writer, _Writer)
    made._wakes = wakes
    return cast("_Value", made)


_TEMPORARY = "file:///"
"""A folder like that of the checkpoint that Spark makes for a query that is given none."""


class _Streamed:
    """The part of a DataFrame that makes its writer."""

    _wakes: bool | None = None

    @property
    def writeStream(self) -> Any:  # noqa: N802
        return checked_writer(super().writeStream, self._wakes)  # type: ignore[misc]


def _same_kind(name: str) -> Any:
    def step(self: Any, *arguments: Any, **options: Any) -> Any:
        return streamed(getattr(super(_Streamed, self), name)(*arguments, **options), self._wakes)

    step.__name__ = name
    return step


for _name in _STEPS:
    setattr(_Streamed, _name, _same_kind(_name))


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
                "trigger(availableNow=True) never ends: give the flow wake=False, and timers fire with the next data, "
                "say timers = 'event_time' in the object of a process() that sets no other timers, "
                "or write uc.live_table(), which ends",
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
            "write uc.live_table(flow, target, checkpoint=folder) for a table of the current result"
        )


def _with(value: _Value, part: type) -> _Value:
    """The same object as a subclass of its own class and of a part of this module."""
    if not isinstance(value, part):
        kind: Any = type(value)
        value.__class__ = _joined(kind, part)
    return value


@cache
def _joined(kind: type, part: type) -> type:
    return type(kind.__name__, (part, kind), {"__module__": kind.__module__, "__doc__": kind.__doc__})


__all__ = ["checked_writer", "streamed"]
