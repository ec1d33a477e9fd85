"""Changelogs of other systems, in both directions: Flink's RowKind, Debezium's op, Delta's change data feed.

They write a word where `diff` has a sign. An update of a row is a retraction and an addition of the same key; the
systems differ only in the words for the two.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..combiners.rows.groups import group_rows
from ..combiners.rows.key_codes import normal_keys
from ..errors import InvalidArgument, TypeMismatch, require_column

_FLINK = {"+I": 1, "+U": 1, "-U": -1, "-D": -1}
_DELTA = {"insert": 1, "update_postimage": 1, "update_preimage": -1, "delete": -1}
_DEBEZIUM_OPS = ("c", "r", "u", "d")


def from_flink(table: pa.Table, kind: str = "row_kind", diff: str = "diff") -> pa.Table:
    """Turn Flink's RowKind (+I, -U, +U, -D) in column `kind` into weights in column `diff`.

    >>> import pyarrow as pa, uncombine as uc
    >>> uc.changelog.from_flink(pa.table({"x": [1, 1], "row_kind": ["+I", "-D"]})).to_pydict()
    {'x': [1, 1], 'diff': [1, -1]}
    """
    return _signed(table, kind, diff, _FLINK, "Flink's RowKind")


def to_flink(table: pa.Table, keys: Sequence[str], diff: str = "diff", kind: str = "row_kind") -> pa.Table:
    """Turn weights into Flink's RowKind; a retraction and then an addition of the same keys are an update (-U, +U).

    Rows stay in their order. A row with another weight than 1 and -1 becomes several rows.

    >>> import pyarrow as pa, uncombine as uc
    >>> t = pa.table({"k": ["a", "a", "a"], "n": [1, 1, 2], "diff": [1, -1, 1]})
    >>> uc.changelog.to_flink(t, keys=["k"])["row_kind"].to_pylist()
    ['+I', '-U', '+U']
    """
    return _worded(table, keys, diff, kind, ("+I", "+U", "-U", "-D"))


def from_delta(table: pa.Table, kind: str = "_change_type", diff: str = "diff") -> pa.Table:
    """Turn Delta's change data feed into weights.

    >>> import pyarrow as pa, uncombine as uc
    >>> t = pa.table({"x": [1, 1, 2], "_change_type": ["insert", "update_preimage", "update_postimage"]})
    >>> uc.changelog.from_delta(t)["diff"].to_pylist()
    [1, -1, 1]
    """
    return _signed(table, kind, diff, _DELTA, "Delta's _change_type")


def to_delta(table: pa.Table, keys: Sequence[str], diff: str = "diff", kind: str = "_change_type") -> pa.Table:
    """Turn weights into Delta's change data feed.

    >>> import pyarrow as pa, uncombine as uc
    >>> t = pa.table({"k": ["a", "a"], "n": [1, 1], "diff": [1, -1]})
    >>> uc.changelog.to_delta(t, keys=["k"])["_change_type"].to_pylist()
    ['insert', 'delete']
    """
    return _worded(table, keys, diff, kind, ("insert", "update_postimage", "update_preimage", "delete"))


def from_debezium(table: pa.Table, diff: str = "diff") -> pa.Table:
    """Turn Debezium's envelope (op, before, after) into weights: an update retracts `before` and adds `after`.

    >>> import pyarrow as pa, uncombine as uc
    >>> t = pa.table({"op": ["c", "u"], "before": [None, {"x": 1}], "after": [{"x": 1}, {"x": 2}]})
    >>> uc.changelog.from_debezium(t).to_pydict()
    {'x': [1, 1, 2], 'diff': [1, -1, 1]}
    """
    for name in ("op", "before", "after"):
        require_column(name, table.column_names, "Debezium's envelope")
    op = table["op"].combine_chunks()
    _known(op, _DEBEZIUM_OPS, "Debezium's op")
    removes = np.asarray(pc.is_in(op, value_set=pa.array(["u", "d"])))
    adds = np.asarray(pc.is_in(op, value_set=pa.array(["c", "r", "u"])))
    rows = np.arange(table.num_rows)
    place = np.concatenate([rows[removes], rows[adds]])
    sign = np.concatenate([np.full(int(removes.sum()), -1), np.ones(int(adds.sum()), np.int64)])
    order = np.argsort(place, kind="stable")
    images = {"before": table["before"].combine_chunks(), "after": table["after"].combine_chunks()}
    kind = images["after"].type if pa.types.is_struct(images["after"].type) else images["before"].type
    if not pa.types.is_struct(kind):
        raise TypeMismatch(f"Debezium's before and after must be structs, but are {kind}")
    both = pa.concat_arrays(
        [images["before"].cast(kind).filter(pa.array(removes)), images["after"].cast(kind).filter(pa.array(adds))]
    ).take(pa.array(order))
    columns = {field.name: both.field(field.name) for field in kind}
    return pa.table({**columns, diff: pa.array(sign[order], pa.int64())})


def to_debezium(table: pa.Table, keys: Sequence[str], diff: str = "diff") -> pa.Table:
    """Turn weights into Debezium's envelope; a retraction and then an addition of the same keys are one update.

    >>> import pyarrow as pa, uncombine as uc
    >>> t = pa.table({"k": ["a", "a", "a"], "n": [1, 1, 2], "diff": [1, -1, 1]})
    >>> uc.changelog.to_debezium(t, keys=["k"])["op"].to_pylist()
    ['c', 'u']
    """
    rows, sign, updated = _paired(table, keys, diff)
    image = pa.StructArray.from_arrays([c.combine_chunks() for c in rows.columns], names=rows.column_names)
    places = np.arange(len(sign))
    kept = ~(updated & (sign > 0))
    partner = np.where(updated & (sign < 0), np.minimum(places + 1, len(places) - 1), places)
    op = np.where(sign > 0, "c", np.where(updated, "u", "d"))[kept]
    before = image.take(pa.array(places[kept], mask=(sign > 0)[kept]))
    after = image.take(pa.array(partner[kept], mask=((sign < 0) & ~updated)[kept]))
    return pa.table({"op": pa.array(op), "before": before, "after": after})


def _signed(table: pa.Table, kind: str, diff: str, signs: dict[str, int], who: str) -> pa.Table:
    require_column(kind, table.column_names, who)
    words = table[kind].combine_chunks()
    _known(words, tuple(signs), who)
    place = pc.index_in(words, value_set=pa.array(list(signs)))
    weights = pa.array(list(signs.values()), pa.int64()).take(place)
    return table.drop_columns([kind]).append_column(diff, weights)


def _known(words: pa.Array, allowed: Sequence[str], who: str) -> None:
    odd = words.filter(pc.invert(pc.is_in(words, value_set=pa.array(list(allowed)))))
    if len(odd):
        raise InvalidArgument(f"{who} must be one of {', '.join(allowed)}, but is {odd[0].as_py()!r} in a row")


def _worded(table: pa.Table, keys: Sequence[str], diff: str, kind: str, words: tuple[str, str, str, str]) -> pa.Table:
    rows, sign, updated = _paired(table, keys, diff)
    insert, after, before, delete = words
    named = np.where(sign > 0, np.where(updated, after, insert), np.where(updated, before, delete))
    return rows.append_column(kind, pa.array(named))


def _paired(table: pa.Table, keys: Sequence[str], diff: str) -> tuple[pa.Table, np.ndarray, np.ndarray]:
    """Rows of weight 1 or -1, their signs, and a mask of the halves of updates: a retraction, then an addition."""
    require_column(diff, table.column_names, "diff=")
    for name in keys:
        require_column(name, table.column_names, "keys=")
    weights = np.asarray(table[diff].to_numpy())
    rows = table.drop_columns([diff]).take(pa.array(np.repeat(np.arange(len(weights)), np.abs(weights))))
    sign = np.repeat(np.sign(weights), np.abs(weights))
    codes = group_rows([normal_keys(rows[name].combine_chunks()) for name in keys], len(sign))[0].codes
    pair = (codes[:-1] == codes[1:]) & (sign[:-1] < 0) & (sign[1:] > 0)
    updated = np.zeros(len(sign), np.bool_)
    updated[:-1] |= pair
    updated[1:] |= pair
    return rows, sign, updated


__all__ = ["from_debezium", "from_delta", "from_flink", "to_debezium", "to_delta", "to_flink"]
