"""A join compiled against the schemas of its two inputs: names, types, and how long rows of each side stay.

The time of a row plus `reach` is the latest time of a match; the row leaves when the watermark has passed that by the
allowed lateness. The number of matches of a row may matter for longer than the matches themselves can get new pairs.
Such matches are then kept as witnesses, with key, time and weight alone, for `witness` after their time.

Guarded by tests/panes/join/test_join_cases.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from ...combiners.aggregate import weights_of
from ...combiners.rows.hashing import require_hash
from ...combiners.rows.ordering import require_order
from ...combiners.rows.plain_types import plain_type
from ...errors import InvalidArgument, TypeMismatch, UnknownColumn, nearest, require_column
from ...windows import span
from ...windows.grid import later
from ...windows.times import MIN_TIME, NEVER, UTC_MICROS
from ..state.pane_type import PANE
from .join import JoinOptions
from .ranges import FAR

NARROW = ("time", "weight")
"""The columns of a stored row beside `key.i` and `value.i`."""


@dataclass(frozen=True)
class Side:
    """One input of a join. `low` and `high` bound the other side's time minus this side's."""

    name: str
    schema: pa.Schema
    keys: tuple[str, ...]
    """The key columns; in a join of windows the last one is the window."""
    values: tuple[str, ...]
    """The other columns that the output has, or that tell rows apart."""
    time: str
    diff: str | None
    low: int
    high: int
    windowed: bool
    lateness: int
    kept: int | None
    """The length of time beyond its reach for which a row is taken and stays, without lateness; None for ever."""
    alone: bool
    """True if rows without a match are emitted."""
    counted: bool
    """True if the output depends on the number of matches of a row."""
    witness: int | None
    """The length of time after its own for which a row is a witness, without lateness; None if it need not be one."""

    @cached_property
    def narrow(self) -> list[str]:
        """The columns of a witness."""
        return [*NARROW, *(f"key.{i}" for i in range(len(self.keys)))]

    @cached_property
    def stored(self) -> pa.Schema:
        """The columns of a row in the state."""
        keys = [(f"key.{i}", kept_type(self.schema.field(name).type)) for i, name in enumerate(self.keys)]
        values = [(f"value.{i}", kept_type(self.schema.field(name).type)) for i, name in enumerate(self.values)]
        return pa.schema([*((name, pa.int64()) for name in NARROW), *keys, *values])

    @cached_property
    def witnessed(self) -> pa.Schema:
        """The columns of a witness, with their types."""
        stored = self.stored
        return pa.schema([stored.field(name) for name in self.narrow])

    def expiry(self, times: np.ndarray, ends: np.ndarray | None) -> np.ndarray:
        """The watermark at which a row leaves; `ends` are the ends of the windows of a join of windows."""
        if self.kept is None:
            return np.full(len(times), NEVER)
        if ends is not None:
            return later(ends, self.lateness)
        return later(times, max(self.high, 0) + self.kept + self.lateness + 1)

    def earliest(self, watermark: int) -> int:
        """The earliest time of a row that is taken under a watermark."""
        return MIN_TIME if self.kept is None else max(watermark - self.kept - self.lateness, MIN_TIME)

    def witness_expiry(self, times: np.ndarray) -> np.ndarray:
        """The watermark at which a witness leaves."""
        assert self.witness is not None
        return later(times, self.witness + self.lateness + 1)


@dataclass(frozen=True)
class CompiledJoin:
    """A join with its sides and its output columns.

    >>> import pyarrow as pa
    >>> from uncombine.panes.join.join import Join
    >>> from uncombine.panes.join.compiled import CompiledJoin
    >>> ads = pa.schema({"ad": pa.string(), "ts": pa.timestamp("us")})
    >>> clicks = pa.schema({"ad": pa.string(), "ts": pa.timestamp("us"), "user": pa.string()})
    >>> CompiledJoin.of(Join("ad", within=("0 s", "1 hour")), ads, clicks).output_schema.names
    ['ad', 'ts_left', 'ts_right', 'user', 'event_time', 'diff']
    """

    join: JoinOptions
    left: Side
    right: Side
    output_schema: pa.Schema

    @classmethod
    def of(cls, join: JoinOptions, left: pa.Schema, right: pa.Schema) -> CompiledJoin:
        """Check the join against both schemas."""
        sides = _side(join, "left", left), _side(join, "right", right)
        for mine, other in zip(sides[0].keys, sides[1].keys, strict=True):
            _require_same_type(join.option, mine, other, left, right)
        return cls(join, *sides, _output_schema(join, *sides))

    @property
    def sides(self) -> tuple[Side, Side]:
        return self.left, self.right


def kept_type(kind: pa.DataType) -> pa.DataType:
    """The type in which values of this type are kept and emitted: plain, and dictionaries decoded."""
    plain = plain_type(kind)
    return plain.value_type if pa.types.is_dictionary(plain) else plain


def _side(join: JoinOptions, name: str, schema: pa.Schema) -> Side:
    at = ("left", "right").index(name)
    time, diff = ((join.left_time, join.left_diff), (join.right_time, join.right_diff))[at]
    _require_time(name, time, schema)
    if diff is not None:
        require_column(diff, schema.names, f"{name}_diff=")
        weights_of(schema.empty_table(), diff)
    keys = tuple(pair[at] for pair in join.on)
    for key in keys:
        _require_key(join, name, key, diff, schema)
    low, high = (0, 0) if join.reach is None else (max(min(int(span(b)), FAR), -FAR) for b in join.reach)
    if at:
        low, high = -high, -low
    windowed = join.reach is None
    if windowed:
        _require_window(name, schema)
        keys = (*keys, "window")
    info = [field.name for field in schema if field.name == "pane" and field.type == PANE]
    gone = {*keys, *info, *([] if diff is None else [diff]), *(["event_time"] if time == "event_time" else [])}
    values = tuple(column for column in schema.names if column not in gone)
    shown = join.pairs or name == "left"
    if not shown and diff is None:
        values = ()
    witness = None
    if not windowed and join.counted(("right", "left")[at]):
        witness = high + max(-low, 0)
        witness = witness if witness > max(high, 0) else None
    kept = join.kept(name)
    side = Side(
        name=name, schema=schema, keys=keys, values=values, time=time, diff=diff, low=low, high=high, windowed=windowed,
        lateness=min(int(join.allowed_lateness), FAR), kept=None if kept is None else min(int(kept), FAR),
        alone=join.alone(name), counted=join.counted(name), witness=witness,
    )  # fmt: skip
    for column in values:
        if shown:
            _require_free_name(name, column)
        _require_value(join, column, schema)
    return side


def _require_time(name: str, time: str, schema: pa.Schema) -> None:
    require_column(time, schema.names, f"{name}_time=")
    kind = schema.field(time).type
    if not (pa.types.is_timestamp(kind) or pa.types.is_date(kind)):
        raise TypeMismatch(f"{name}_time= takes a timestamp column, and {time!r} is {kind}: cast it to timestamp first")


def _require_key(join: JoinOptions, name: str, key: str, diff: str | None, schema: pa.Schema) -> None:
    option = join.option
    if key not in schema.names:
        raise UnknownColumn(
            f"{option} of the {name} input needs column {key!r}, which the input does not have: "
            f"{nearest(key, schema.names)} (write {option}[('left name', 'right name')] where the names differ)",
            key,
        )
    require_column(key, schema.names, f"{option} of the {name} input")
    if join.reach is None and key == "window":
        raise InvalidArgument("on= names 'window', but without within= only rows of one window match: leave it out")
    if key == "event_time":
        raise InvalidArgument(
            f"{option} names 'event_time', which every result has too: leave it out, or join on a copy of it that "
            "with_columns() gives another name"
        )
    if key == diff:
        raise InvalidArgument(
            f"{option} names {key!r}, which is the weight of the {name} input: join on another column"
        )
    if key == "pane" and schema.field(key).type == PANE:
        raise InvalidArgument(f"{option} names 'pane', which a join leaves out: join on another column")
    require_order(kept_type(schema.field(key).type), option, key)


def _require_free_name(name: str, column: str) -> None:
    if column.casefold() in ("event_time", "diff"):
        remedy = f"rename it, or name it as {name}_{'diff' if column.casefold() == 'diff' else 'time'}="
        raise InvalidArgument(f"the {name} input has a column {column!r}, which every result has too: {remedy}")


def _require_value(join: JoinOptions, column: str, schema: pa.Schema) -> None:
    kind = kept_type(schema.field(column).type)
    if pa.types.is_map(kind):
        kind = pa.list_(pa.struct([kind.key_field, kind.item_field]))
    if join.left_diff is not None or join.right_diff is not None or join.how != "inner" or join.counted("left"):
        require_hash(kind, "a join with retractions", column)


def _require_window(name: str, schema: pa.Schema) -> None:
    if "window" not in schema.names:
        raise InvalidArgument(
            f"a join without within= matches rows of one window, and the {name} input has no column 'window': "
            "give within=, or keep= for all rows of a key, or how='lookup' for those that are valid when a row comes, "
            "or group that input by windows first"
        )
    kind = schema.field("window").type
    bounds = [kind.field(n) for n in ("start", "end")] if pa.types.is_struct(kind) and _has_bounds(kind) else []
    if not bounds or not all(pa.types.is_timestamp(bound.type) for bound in bounds):
        raise TypeMismatch(
            f"the column 'window' of the {name} input is {kind}, and not a struct of timestamps start and end: "
            "give within=, or rename the column"
        )


def _has_bounds(kind: pa.StructType) -> bool:
    return {"start", "end"} <= {kind.field(i).name for i in range(kind.num_fields)}


def _require_same_type(option: str, left: str, right: str, left_schema: pa.Schema, right_schema: pa.Schema) -> None:
    kinds = kept_type(left_schema.field(left).type), kept_type(right_schema.field(right).type)
    if kinds[0] != kinds[1]:
        raise TypeMismatch(
            f"{option} joins the left column {left!r}, which is {kinds[0]}, with the right column {right!r}, which is "
            f"{kinds[1]}: cast one of them to the type of the other"
        )


def _output_schema(join: JoinOptions, left: Side, right: Side) -> pa.Schema:
    fields = [(name, kept_type(left.schema.field(name).type)) for name in left.keys]
    both = (left, right) if join.pairs else (left,)
    for side, suffix in zip(both, join.suffixes, strict=False):
        others = {*left.keys, *(name for other in both if other is not side for name in other.values)}
        fields += [
            (name + suffix if name in others else name, kept_type(side.schema.field(name).type)) for name in side.values
        ]
    fields += [("event_time", UTC_MICROS), ("diff", pa.int64())]
    names: dict[str, str] = {}
    for name, _ in fields:
        if name.casefold() in names:
            raise InvalidArgument(
                f"the output would have columns {names[name.casefold()]!r} and {name!r}, which are one name: rename a "
                "column, or give other suffixes="
            )
        names[name.casefold()] = name
    return pa.schema(fields)
