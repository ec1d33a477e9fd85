"""The options of `process`, and the functions that it takes, checked when they are built."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from ...errors import InvalidArgument, TypeMismatch
from ..rows.options import DIFF, EVENT_TIME, Columns, RowOptions, held_type, key_columns, require_keys
from .context import KeyContext

EVENT_TIME_ALONE = "event_time"
"""The value of `timers` of a function that sets no timers of processing time."""


class KeyFunction(Protocol):
    """A computation with state and timers for each key. One object serves all keys, so it keeps nothing itself.

    >>> import pyarrow as pa, uncombine as uc
    >>> class Rising:
    ...     output = pa.schema({"x": pa.int64()})
    ...     state = pa.schema({"most": pa.int64()})
    ...     def on_row(self, row, state, ctx):
    ...         if state["most"] is None or row["x"] > state["most"]:
    ...             state["most"] = row["x"]
    ...             ctx.emit({"x": row["x"]})
    >>> numbers = uc.flow(pa.table({"ts": [0, 1, 2], "x": [5, 3, 8]}))
    >>> numbers.process(function=Rising).run()["x"].to_pylist()
    [5, 8]
    """

    output: pa.Schema
    """The columns of the rows that it emits, less those of the key."""
    state: pa.Schema
    """The fields of the state of a key. All are null at first."""

    def on_row(self, row: dict[str, Any], state: dict[str, Any], ctx: KeyContext) -> None:
        """Handle a row of the key; `ctx.diff` is its weight and `ctx.time` its event time."""

    def on_timer(self, tag: str, ctx: KeyContext) -> None:
        """Handle a timer whose time has come, and which is no longer set; the state is `ctx.state`.

        A function that sets no timers needs no such method. One that sets timers of event time alone may say so, by
        `timers = "event_time"`: a stream then needs no batches without data.
        """


@dataclass(frozen=True, repr=False)
class Process(RowOptions):
    """A computation of the user with state and timers for each key.

    Parameters
    ----------
    by
        The key columns. Without any, all rows are of one key.
    function
        An object as `KeyFunction` describes it, or a class of such objects.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from uncombine.panes.process.process import Process
    >>> class Doubled:
    ...     '''Emits 1, 2, 4, 8, ... rows of a key.'''
    ...     output = pa.schema({"rows": pa.int64()})
    ...     state = pa.schema({"n": pa.int64()})
    ...     def on_row(self, row, state, ctx):
    ...         state["n"] = (state["n"] or 0) + ctx.diff
    ...         if state["n"] & (state["n"] - 1) == 0:
    ...             ctx.emit({"rows": state["n"]})
    >>> Process(Doubled, by="user").by
    ('user',)
    """

    function: Any
    by: Sequence[str] | str = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "by", key_columns(self.by, "process(by=)"))
        if isinstance(self.function, type):
            object.__setattr__(self, "function", self.function())
        if not callable(getattr(self.function, "on_row", None)):
            raise InvalidArgument(f"process(function=): {self.name} has no method on_row(row, state, ctx): write one")
        for name in ("output", "state"):
            if not isinstance(getattr(self.function, name, None), pa.Schema):
                raise TypeMismatch(
                    f"process(function=): {self.name}.{name} must be an Arrow schema, such as "
                    "pa.schema({'n': pa.int64()})"
                )
        if (timers := getattr(self.function, "timers", None)) not in (None, EVENT_TIME_ALONE):
            raise InvalidArgument(
                f"process(function=): {self.name}.timers must be {EVENT_TIME_ALONE!r}, or be left out for timers of "
                f"both domains, but is {timers!r}"
            )
        result_names = {*self.by, EVENT_TIME, DIFF}
        if both := [name for name in self.function.output.names if name in result_names]:
            raise InvalidArgument(
                f"process(function=): {both[0]!r} is a column of every result: leave it out of {self.name}.output"
            )

    @property
    def name(self) -> str:
        """The name of the function in messages."""
        return type(self.function).__name__

    @property
    def output(self) -> pa.Schema:
        """The columns of the rows that the function emits, in the types in which they are kept."""
        return _plain_fields(self.function.output)

    @property
    def state(self) -> pa.Schema:
        """The fields of the state of a key, in the types in which they are kept."""
        return _plain_fields(self.function.state)

    @property
    def wakes(self) -> bool:
        """True if the function can set timers of processing time."""
        takes_timers = callable(getattr(self.function, "on_timer", None))
        return takes_timers and getattr(self.function, "timers", None) is None

    def check_timers(self, domain: str = "event") -> None:
        """Raise unless the function takes timers of this domain."""
        if not callable(getattr(self.function, "on_timer", None)):
            raise InvalidArgument(
                f"process(function=): {self.name} sets a timer, and has no method on_timer(tag, ctx): write one"
            )
        if domain == "processing" and not self.wakes:
            raise InvalidArgument(
                f"process(function=): {self.name} sets a timer of processing time, and has timers = "
                f"{EVENT_TIME_ALONE!r}: leave that out, or set the timer in the domain 'event'"
            )

    def checked(self, schema: pa.Schema) -> Columns:
        """The columns of an input of this schema; raises if they do not fit."""
        columns = self.columns(schema, "process()")
        require_keys(self.by, schema, "process(by=)")
        return columns

    def keys(self, schema: pa.Schema) -> pa.Schema:
        """The key columns."""
        return pa.schema([(name, held_type(schema.field(name).type)) for name in self.by])


def _plain_fields(schema: pa.Schema) -> pa.Schema:
    return pa.schema([field.with_type(held_type(field.type)) for field in schema])


__all__ = ["KeyFunction", "Process"]
