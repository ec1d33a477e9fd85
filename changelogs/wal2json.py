"""The reading of wal2json: messages of both formats, one by one where their shape is not the usual one.

Guarded by tests/changelogs/test_changelogs_json.py and tests/changelogs/test_changelogs_in.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ..combiners.rows.columns import flat
from ..combiners.rows.decimal_casts import cast_exactly
from ..errors import InvalidArgument
from ..flows.changelog_reading import UpsertKeys, WeightedRows, without
from ..messages.json_columns.json_texts import parsed, shown
from ..messages.json_columns.json_values import UNREADABLE, array_of, storable, times_of_texts, value_of
from .base import only_keys
from .wal2json_columns import SecondFormat

TRUNCATED = (
    "PostgreSQL reports that the table was truncated, which names no rows: start again from a new snapshot, or give "
    "truncate='bad', which counts the message as a bad row and keeps the rows"
)

Values = Mapping[str, Any]


@dataclass(frozen=True)
class Wal2Json:
    """Reads the messages of wal2json."""

    column: str
    row: pa.Schema
    table: str | None
    upserted: UpsertKeys | None
    stops: bool

    def __call__(self, messages: pa.Table, names: Sequence[str]) -> WeightedRows:
        texts = flat(messages[self.column])
        keys = None if self.upserted is None else self.upserted.keys
        usual = SecondFormat(names=tuple(self.row.names), table=self.table, keys=keys)(texts)
        others = np.flatnonzero(~usual.done)
        place, sign, images = self._one_by_one(texts.take(pa.array(others)))
        places = np.concatenate([usual.place, others[place]])
        signs = np.concatenate([usual.sign, sign])
        bad = signs == 0
        fault = next((str(image[""]) for image, weight in zip(images, sign, strict=True) if not weight), "")
        columns = {}
        order = pa.array(np.argsort(places, kind="stable"))
        for name in names:
            kind = self.row.field(name).type
            parts = [column_of(usual.texts(name), kind), column_of([image.get(name) for image in images], kind)]
            wrong = np.concatenate([part[1] for part in parts])
            if wrong.any():
                fault = fault or f"column {name!r} of a message of wal2json is no {kind}"
                bad = bad | wrong
            columns[name] = pa.concat_arrays([part[0] for part in parts]).take(order)
        rows, signs = pa.table(columns), signs[order]
        if self.upserted is not None:
            rows = only_keys(rows, signs < 0, self.upserted.columns)
        changes = WeightedRows(rows=rows, weights=signs, places=places[order])
        return without(changes, bad[order], fault) if bad.any() else changes

    def _one_by_one(self, texts: pa.Array) -> tuple[np.ndarray, np.ndarray, list[Values]]:
        """The rows of messages of any shape: the place and weight of each, and its values."""
        place, sign, images = list[int](), list[int](), list[Values]()
        # A message is a tree whose values have types of their own, so each one is parsed by itself.
        for i, text in enumerate(texts):
            for weight, values in self._changes(text):
                place.append(i)
                sign.append(weight)
                images.append(values)
        return np.array(place, np.int64), np.array(sign, np.int64), images

    def _changes(self, text: pa.Scalar) -> Iterator[tuple[int, Values]]:
        """The rows of a message, each with its weight; a bad one has its fault under the empty name."""
        if not text.is_valid:
            return
        try:
            message = parsed(text.as_py(), whole=str)
            changes = list(message.get("change", [message]))
        except UNREADABLE as error:
            yield 0, _bad(error)
            return
        for change in changes:
            try:
                yield from list(self._rows(change))
            except _Truncation:
                raise InvalidArgument(TRUNCATED) from None
            except UNREADABLE as error:
                yield 0, _bad(error)

    def _rows(self, change: Values) -> Iterator[tuple[int, Values]]:
        """The rows of one change."""
        first = "kind" in change
        kind = change["kind"][0].upper() if first else change["action"]
        if kind in ("B", "C", "M") or not self._is_of_table(change):
            return
        if kind == "T":
            if self.stops:
                raise _Truncation
            raise ValueError("a truncated table")
        yield from self._images(kind, *(_first_format(change) if first else _second_format(change)))

    def _images(self, kind: str, new: Values | None, old: Values | None) -> Iterator[tuple[int, Values]]:
        if kind not in ("I", "U", "D"):
            raise ValueError(f"action {kind!r}")
        if kind != "D":
            new = self._whole(new, old)
            if self.upserted is not None and kind == "U":
                keys = self.upserted.keys
                same = old is None or all(old.get(key, new[key]) == new[key] for key in keys)
                old = None if same else old
        wants_old = kind == "D" or (kind == "U" and self.upserted is None)
        needed = self.row.names if self.upserted is None else self.upserted.keys
        if wants_old and (old is None or not set(needed) <= set(old)):
            raise ValueError("no whole old row: give keys=, the primary key, or set REPLICA IDENTITY FULL")
        if kind != "I" and old is not None:
            yield -1, old
        if kind != "D":
            assert new is not None
            yield 1, new

    def _whole(self, new: Values | None, old: Values | None) -> Values:
        """The new row with large values of the old one, which PostgreSQL does not send again if they did not change."""
        if new is None:
            raise ValueError("no new row")
        whole = {**(old or {}), **new}
        if missing := [name for name in self.row.names if name not in whole]:
            raise ValueError(f"no value of column {missing[0]!r}: set REPLICA IDENTITY FULL")
        return whole

    def _is_of_table(self, change: Values) -> bool:
        if self.table is None:
            return True
        schema, _, name = self.table.rpartition(".")
        return change.get("table") == name and (not schema or change.get("schema") == schema)


class _Truncation(Exception):
    """A message that stops the flow."""


def _bad(error: Exception) -> Values:
    return {"": f"a message of wal2json cannot be read: {shown(error)}"}


def _second_format(change: Values) -> tuple[Values | None, Values | None]:
    pairs = ({c["name"]: c["value"] for c in change[key]} if key in change else None for key in ("columns", "identity"))
    new, old = pairs
    return new, old


def _first_format(change: Values) -> tuple[Values | None, Values | None]:
    new = dict(zip(change["columnnames"], change["columnvalues"], strict=True)) if "columnnames" in change else None
    keys = change.get("oldkeys")
    return new, None if keys is None else dict(zip(keys["keynames"], keys["keyvalues"], strict=True))


def column_of(values: pa.Array | list[Any], kind: pa.DataType) -> tuple[pa.Array, np.ndarray]:
    """A column of a type from values of JSON whose numbers are texts, and a mask of the values that are not of it."""
    wrong = np.zeros(len(values), np.bool_)
    try:
        texts = values if isinstance(values, pa.Array) else pa.array(map(_text, values), pa.string())
        if pa.types.is_timestamp(kind):
            return times_of_texts(texts, kind), wrong
        if not (pa.types.is_nested(kind) or pa.types.is_binary(kind)):
            return cast_exactly(texts, kind), wrong
    except UNREADABLE:
        pass
    out: list[Any] = []
    inner = storable(kind)
    for i, value in enumerate(values.to_pylist() if isinstance(values, pa.Array) else values):
        try:  # one by one, to find those that do not fit
            out.append(_one(value, kind, inner))
        except UNREADABLE:
            out.append(None)
            wrong[i] = True
    return array_of(pa.array(out, inner), kind), wrong


def _text(value: Any) -> Any:
    return str(value).lower() if isinstance(value, bool) else value


def _one(value: Any, kind: pa.DataType, inner: pa.DataType) -> Any:
    """One value, as it is read among others."""
    if isinstance(value, str) and pa.types.is_binary(kind):
        return bytes.fromhex(value.removeprefix("\\x"))
    text = _text(value)
    if isinstance(text, str) and not pa.types.is_nested(kind):
        try:
            column = pa.array([text], pa.string())
            column = times_of_texts(column, kind) if pa.types.is_timestamp(kind) else cast_exactly(column, kind)
            return column.view(inner)[0].as_py()
        except pa.ArrowException:  # such as 't' for true
            pass
    return value_of(value, kind)


__all__ = ["Wal2Json"]
