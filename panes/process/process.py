"""The options of `process`, and the functions that it takes, checked when they are built."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from ...errors import InvalidArgument, TypeMismatch
from ..parcels import AT
from ..rows.options import DIFF, EVENT_TIME, Columns, RowOptions, held_type, key_columns, require_keys
from .broadcast import BroadcastInput
from .context import BroadcastContext, KeyContext
from .outputs import MAIN, OutputRows, checked_outputs, no_output

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
    """The columns of the rows that it emits, less those of the key. Where `process(outputs=)` names outputs, these are
    the columns of rows that are emitted without `to=`; a function that emits none can do without."""
    state: pa.Schema
    """The fields of the state of a key. All are null at first."""

    def on_row(self, row: dict[str, Any], state: dict[str, Any], ctx: KeyContext) -> None:
        """Handle a row of the key; `ctx.diff` is its weight and `ctx.time` its event time.

        A row whose time is before `ctx.watermark`, the watermark from before its bundle, is late and was still taken
        in, by `allowed_lateness=`.
        """

    def on_timer(self, tag: str, ctx: KeyContext) -> None:
        """Handle a timer whose time has come, and which is no longer set; the state is `ctx.state`.

        A function that sets no timers needs no such method. One that sets timers of event time alone may say so, by
        `timers = "event_time"`: a stream then needs no batches without data.
        """


class BroadcastFunction(KeyFunction, Protocol):
    """A `KeyFunction` for `process(broadcast=)`, with a state that broadcast rows change and all keys read.

    All keys read it as `ctx.shared`. It is kept in each shard, so it is small, and every shard makes the calls: they do
    the same with the same rows. Values in it are replaced and not changed in place by calls for keys.

    >>> import pyarrow as pa, uncombine as uc
    >>> class Above:
    ...     output, state = pa.schema({"x": pa.int64()}), pa.schema({})
    ...     shared = pa.schema({"bound": pa.int64()})
    ...     def on_broadcast(self, row, shared, ctx):
    ...         if ctx.diff > 0:
    ...             shared["bound"] = row["bound"]
    ...     def on_row(self, row, state, ctx):
    ...         if row["x"] > ctx.shared["bound"]:
    ...             ctx.emit({"x": row["x"]})
    >>> rows = uc.flow([{"ts": 1, "x": 5}, {"ts": 3, "x": 7}])
    >>> bounds = uc.flow([{"ts": 0, "bound": 4}, {"ts": 2, "bound": 8}])
    >>> rows.process(function=Above, broadcast=bounds).run()["x"].to_pylist()
    [5]
    """

    shared: pa.Schema
    """The fields of the shared state. All are null at first."""

    def on_broadcast(self, row: dict[str, Any], shared: dict[str, Any], ctx: BroadcastContext) -> None:
        """Handle a broadcast row; `ctx.diff` is its weight and `ctx.time` its event time."""

    def on_broadcast_key(self, row: dict[str, Any], key: Any, state: dict[str, Any], ctx: KeyContext) -> None:
        """Handle a broadcast row for a key that has state or a timer, after `on_broadcast`.

        A function that does nothing for keys needs no such method: with it, each broadcast row costs a call for every
        key.
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
    outputs
        The columns of outputs beside that of the function, by their names.
    broadcast
        The columns of event time and weights of broadcast rows, if the step gets such rows.

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
    outputs: Mapping[str, pa.Schema] | None = None
    broadcast: BroadcastInput | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "by", key_columns(self.by, "process(by=)"))
        if isinstance(self.function, type):
            object.__setattr__(self, "function", self.function())
        if not callable(getattr(self.function, "on_row", None)):
            raise InvalidArgument(f"process(function=): {self.name} has no method on_row(row, state, ctx): write one")
        result_names = {*self.by, EVENT_TIME, DIFF}
        if self.outputs is not None:
            object.__setattr__(self, "outputs", checked_outputs(self.outputs, {*result_names, AT}))
        for name in ("output", "state"):
            schema = getattr(self.function, name, None)
            if not isinstance(schema, pa.Schema) and (name == "state" or schema is not None or self.outputs is None):
                raise TypeMismatch(
                    f"process(function=): {self.name}.{name} must be an Arrow schema, such as "
                    "pa.schema({'n': pa.int64()})"
                )
        self._check_broadcast()
        if (timers := getattr(self.function, "timers", None)) not in (None, EVENT_TIME_ALONE):
            raise InvalidArgument(
                f"process(function=): {self.name}.timers must be {EVENT_TIME_ALONE!r}, or be left out for timers of "
                f"both domains, but is {timers!r}"
            )
        if both := [name for name in self.by_output.get(MAIN, pa.schema([])).names if name in result_names]:
            raise InvalidArgument(
                f"process(function=): {both[0]!r} is a column of every result: leave it out of {self.name}.output"
            )

    @property
    def name(self) -> str:
        """The name of the function in messages."""
        return type(self.function).__name__

    @property
    def by_output(self) -> dict[str, pa.Schema]:
        """The columns that the function emits to each output, in the types in which they are kept."""
        main = getattr(self.function, "output", None)
        every = {**({} if main is None else {MAIN: main}), **(self.outputs or {})}
        return {name: _plain_fields(schema) for name, schema in every.items()}

    @property
    def emitted(self) -> pa.Schema:
        """The columns of the step beside the key: those of the output, or a struct for each of several."""
        if self.outputs is None:
            return self.by_output[MAIN]
        every = self.by_output.items()
        return pa.schema([(name, pa.struct([f.with_nullable(True) for f in schema])) for name, schema in every])

    def rows_of(self, name: str) -> OutputRows:
        """The transform after the step that takes the rows of one output; raises if there is none of this name."""
        if not isinstance(name, str):
            raise TypeMismatch(f"output() takes the name of an output of the step, not {name!r}")
        if name not in (self.outputs or ()):
            raise no_output("output()", name, list(self.outputs or ()))
        every = self.by_output
        return OutputRows(name=name, columns=tuple(every[name].names), outputs=tuple(every))

    @property
    def rows_without_name(self) -> tuple[OutputRows, ...]:
        """The transforms after the step that take the rows which are emitted without `to=`."""
        every = self.by_output
        if self.outputs is None or MAIN not in every:
            return ()
        return (OutputRows(name=MAIN, columns=tuple(every[MAIN].names), outputs=tuple(every)),)

    def _check_broadcast(self) -> None:
        """Raise unless the function has what broadcast rows need, or nothing of it where there are none."""
        has = callable(getattr(self.function, "on_broadcast", None))
        if self.broadcast is None:
            if has:
                raise InvalidArgument(
                    f"process(function=): {self.name} has a method on_broadcast(), and no rows come to it: give "
                    "process(broadcast=) the flow of these rows"
                )
            return
        if not has:
            raise InvalidArgument(
                f"process(broadcast=): {self.name} has no method on_broadcast(row, shared, ctx): write one"
            )
        if not isinstance(getattr(self.function, "shared", None), pa.Schema):
            raise TypeMismatch(
                f"process(broadcast=): {self.name}.shared must be an Arrow schema, the fields of the state that all "
                "keys read, such as pa.schema({'bound': pa.int64()})"
            )

    def explicit_options(self) -> dict[str, str]:
        texts = super().explicit_options()
        if self.broadcast is not None:
            del texts["max_future"]  # each input has its own
        if self.outputs is not None:
            columns = {name: ", ".join(map(_words_of, schema)) for name, schema in self.outputs.items()}
            texts["outputs"] = repr(columns)
        return texts

    @property
    def state(self) -> pa.Schema:
        """The fields of the state of a key, in the types in which they are kept."""
        return _plain_fields(self.function.state)

    @property
    def shared(self) -> pa.Schema:
        """The fields of the shared state, in the types in which they are kept."""
        return _plain_fields(self.function.shared)

    @property
    def calls_keys(self) -> bool:
        """True if a broadcast row is a call for every key that has state."""
        return callable(getattr(self.function, "on_broadcast_key", None))

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


def _words_of(field: pa.Field) -> str:
    return f"{field.name}: {field.type}{'' if field.nullable else ' not null'}"


def _plain_fields(schema: pa.Schema) -> pa.Schema:
    return pa.schema([field.with_type(held_type(field.type)) for field in schema])


__all__ = ["BroadcastFunction", "KeyFunction", "Process"]
