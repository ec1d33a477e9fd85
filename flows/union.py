"""The union of flows: their rows one under the other, each flow with its own source, columns and watermark.

Guarded by tests/flows/test_union.py and tests/sparkops/test_union.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from ..errors import InvalidArgument, TypeMismatch
from ..panes.grouping.grouping import DIFF, EVENT_TIME
from ..panes.stage import StageInput
from .cast_to import CastTo
from .flow import Flow, FlowSource, WindowedRows, followed_flow
from .flow_steps import input_of, leaves_of, with_name
from .settings import check_kept, check_sources, shared
from .settle import farthest


def union(*flows: Flow, side: str | None = None, **named: Flow) -> Flow:
    """Put the rows of several flows one under the other.

    The flows may have different sources, columns and watermark strategies. A column that a flow lacks is null in its
    rows. The watermark is the least of all flows that are not idle, and a flow that has not reported yet holds it. The
    event time is the column that all flows have for it, or `event_time` if they have different ones; `diff` has the
    weights if one of the flows has retractions or weights, in place of the columns that the flows have for them.

    Parameters
    ----------
    flows
        Two flows or more.
    side
        A column to add, with the name of the flow that a row came from.
    named
        Flows with names. In a script the name is the `input=` of a source without a name of its own.

    Examples
    --------
    >>> import pyarrow as pa, uncombine as uc
    >>> clicks = uc.flow(pa.table({"ts": ["2016-01-20T12:00:26Z"], "ad": ["a"]}))
    >>> bills = uc.flow(pa.table({"ts": ["2016-01-20T12:00:40Z"], "ad": ["a"], "cents": [12]}))
    >>> both = uc.union(clicks=clicks, bills=bills, side="kind")
    >>> clicked = uc.Count().where(uc.col("kind") == "clicks")
    >>> minutes = both.window(uc.Fixed("1 minute"))
    >>> totals = minutes.combine(by="ad", clicks=clicked, cents=uc.Sum("cents"))
    >>> totals.run().select(["ad", "clicks", "cents"]).to_pylist()
    [{'ad': 'a', 'clicks': 1, 'cents': 12}]
    """
    branches = _branches(flows, named)
    sides = [name or flow.settings.name for name, flow in zip([*(None for _ in flows), *named], branches, strict=True)]
    if side is not None:
        _check_side(side, sides)
    names = [name or f"flow {i + 1}" for i, name in enumerate(sides)]
    ready = [with_name(followed_flow(flow), name) for flow, name in zip(branches, sides, strict=True)]
    own_rows = [input_of(flow) for flow in ready]
    rows = _of_all(own_rows, names, ready)
    columns = [_columns(flow, own, rows) for flow, own in zip(ready, own_rows, strict=True)]
    schema = _widened(ready, columns)
    _check_case(schema)
    values: dict[str, Any] = {}
    if rows.diff is not None or rows.panes:  # rows without weights stand for one each
        values[DIFF] = 1
        if DIFF not in schema.names:
            schema = schema.append(pa.field(DIFF, pa.int64()))
    if side is not None:
        if side.casefold() in map(str.casefold, schema.names):
            raise InvalidArgument(f"side={side!r} is a column of the union: name the new column otherwise")
        schema = schema.append(pa.field(side, pa.string()))
    inputs = []
    for flow, own, name in zip(ready, columns, names, strict=True):
        fit = CastTo(schema=schema, columns=own, values=values if side is None else {**values, side: name})
        inputs.append(replace(flow, transforms=(*flow.transforms, fit)))
    settings = shared([flow.settings for flow in ready], rows, "the union")
    return Flow(
        source=FlowSource(schema=schema, inputs=tuple(inputs), output=rows), settings=settings, source_schema=schema
    )


def _branches(flows: Sequence[Any], named: Mapping[str, Any]) -> list[Flow]:
    branches = [*flows, *named.values()]
    for flow in branches:
        if isinstance(flow, WindowedRows):
            raise InvalidArgument("union() takes flows, and one of them ends with window(...): add .combine(...)")
        if not isinstance(flow, Flow):
            raise InvalidArgument(
                f"union() takes flows, such as uc.flow(df), but was given a {type(flow).__name__}: write union(a, b)"
            )
    if len(branches) < 2:
        raise InvalidArgument(f"union() takes two flows or more, not {len(branches)}")
    check_sources([leaf for flow in branches for leaf in leaves_of(flow)], "union()")
    return branches


def _check_side(side: object, sides: Sequence[str | None]) -> None:
    if not isinstance(side, str) or not side:
        raise InvalidArgument(f"side= takes the name of a new column, not {side!r}")
    if None in sides or len(set(sides)) < len(sides):
        raise InvalidArgument("side= needs a name of its own for each flow: write union(left=..., right=..., side=...)")


def _of_all(own: Sequence[StageInput], names: Sequence[str], flows: Sequence[Flow]) -> StageInput:
    """The input that all flows of a union are for the grouping after it."""
    for rows, name, flow in zip(own, names, flows, strict=True):
        check_kept(rows, flow.schema, f"flow {name!r} of the union")
    times = {rows.time for rows in own}
    lateness = [rows.allowed_lateness for rows in own if rows.allowed_lateness is not None]
    return StageInput(
        time=own[0].time if len(times) == 1 else EVENT_TIME,
        diff=DIFF if any(rows.diff is not None for rows in own) else None,
        panes=any(rows.panes for rows in own),
        retracts=any(rows.retracts for rows in own),
        allowed_lateness=max(lateness, default=None),
        max_future=farthest([rows.max_future for rows in own]),
    )


def _columns(flow: Flow, own: StageInput, all_: StageInput) -> dict[str, str]:
    """The column of the flow for each column of the union."""
    out = {name: name for name in flow.schema.names}
    for column, wanted, what in ((own.time, all_.time, "event time"), (own.diff, all_.diff, "weights")):
        if column is None or wanted is None or column == wanted:
            continue
        if wanted in out:
            raise InvalidArgument(
                f"the union has its {what} in {wanted!r}, and a flow has another column of that name beside "
                f"{column!r}: name it otherwise, or leave it out with select()"
            )
        out[wanted] = column
        if what == "weights":  # they are no values of the rows: a row and its retraction are equal but for them
            del out[column]
    if own.diff is None and all_.diff is not None and not own.panes and all_.diff in out:
        raise InvalidArgument(
            f"the union has its weights in {all_.diff!r}, and a flow without weights has a column of that name: name "
            "it in diff=, or name it otherwise"
        )
    return out


def _widened(flows: Sequence[Flow], columns: Sequence[Mapping[str, str]]) -> pa.Schema:
    """The columns of all flows, in types that hold the values of each."""
    kinds: dict[str, pa.DataType] = {}
    for flow, own in zip(flows, columns, strict=True):
        for name, column in own.items():
            kind = flow.schema.field(column).type
            kinds[name] = kind if name not in kinds else _wider(name, kinds[name], kind)
    return pa.schema(list(kinds.items()))


def _check_case(schema: pa.Schema) -> None:
    """Raise if two columns of the union differ by case only, which Spark takes for one column."""
    seen: dict[str, str] = {}
    for name in schema.names:
        if seen.setdefault(name.casefold(), name) != name:
            raise InvalidArgument(
                f"columns {seen[name.casefold()]!r} and {name!r} of the union differ by case only, and Spark takes "
                "them for one column: rename one of them"
            )


def _wider(name: str, one: pa.DataType, other: pa.DataType) -> pa.DataType:
    if one == other:
        return one
    one, other = (kind.value_type if pa.types.is_dictionary(kind) else kind for kind in (one, other))
    if one == other:
        return one
    if (wide := _decimal(one, other)) is not None:
        return wide
    try:
        both = [pa.schema([(name, kind)]) for kind in (one, other)]
        wide = pa.unify_schemas(both, promote_options="permissive").field(name).type
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        wide = None
    if wide is None or not all(_holds(wide, kind) for kind in (one, other)):
        raise TypeMismatch(
            f"column {name!r} is {one} in one flow of the union and {other} in another, and no type holds both: cast "
            "one of them"
        )
    return wide


_DIGITS = {8: 3, 16: 5, 32: 10, 64: 20}
"""The decimal digits of integers, by their bits."""


def _decimal(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """The decimal type that holds the values of a decimal type and of another one; None if there is none."""
    if not (pa.types.is_decimal(one) or pa.types.is_decimal(other)):
        return None
    scale = digits = 0
    for kind in (one, other):
        if pa.types.is_decimal(kind):
            scale, digits = max(scale, kind.scale), max(digits, kind.precision - kind.scale)
        elif pa.types.is_integer(kind):
            digits = max(digits, _DIGITS[kind.bit_width])
        else:
            return None
    return pa.decimal128(digits + scale, scale) if digits + scale <= 38 else None


def _holds(wide: pa.DataType, kind: pa.DataType) -> bool:
    """True if the wide type has every value of the other type, and texts and times look the same in it."""
    if wide == kind:
        return True
    if pa.types.is_floating(wide) and pa.types.is_integer(kind):
        return bool(kind.bit_width <= (24 if wide.bit_width == 32 else 32))
    if pa.types.is_integer(wide) and pa.types.is_integer(kind):
        signed = pa.types.is_signed_integer
        return bool(signed(kind) == signed(wide) or (signed(wide) and wide.bit_width > kind.bit_width))
    if pa.types.is_decimal(wide) or _is_text(wide) != _is_text(kind):
        return False
    strange = (pa.types.is_temporal, pa.types.is_binary, pa.types.is_large_binary, pa.types.is_nested)
    return not any(is_kind(kind) for is_kind in strange) and not (
        pa.types.is_floating(wide) and pa.types.is_decimal(kind)
    )


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


__all__ = ["union"]
