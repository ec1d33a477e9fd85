"""The formats of changelogs: values that read the messages of a system as rows with weights, and write them.

Guarded by tests/changelogs/test_changelogs_in.py and tests/changelogs/test_changelogs_out.py.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..combiners.column_names import column_names
from ..combiners.rows.columns import flat
from ..combiners.rows.plain_types import plain_schema
from ..errors import InvalidArgument, NamedOptions, TypeMismatch
from ..flows.changelog_reading import UpsertKeys, WeightedRows, without
from ..panes.upserts.unsent import marked

_DECIDING = ("column", "kind", "weights", "table", "flat")
"""The options of formats that decide it. Keys and orders are those of a step of their own."""


class Changelog(NamedOptions, ABC):
    """A convention for messages that say which rows of a table came, changed or left."""

    @property
    def meaning(self) -> str:
        """The format with the options that decide which rows messages have, and their weights, as text."""
        options = {name: getattr(self, name) for name in _DECIDING if hasattr(self, name)}
        if isinstance(options.get("weights"), Mapping):
            options["weights"] = dict(sorted(options["weights"].items(), key=repr))
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in options.items())})"

    def typed(self, columns: pa.Schema) -> pa.Schema:
        """The types of messages for those that were inferred from JSON, where null is a type that no value told."""
        return columns

    @abstractmethod
    def reading(self, columns: pa.Schema) -> Any:
        """The `Reading` of messages with these columns; raises if they do not fit."""

    @abstractmethod
    def written(self, rows: pa.Table, weights: np.ndarray, keys: tuple[str, ...]) -> pa.Table:
        """The messages for rows with weights."""


def upserted(keys: Any, order: Any, keep_deletes: str | None, mark: str | None = None) -> UpsertKeys | None:
    """The keys and the order of a feed without old values; None if no keys are given."""
    names, ordered = several(keys, "keys="), several(order, "order=")
    if not names and ordered:
        raise InvalidArgument("order= is for a feed without old values: give keys= too, or leave order= out")
    return UpsertKeys(keys=names, order=ordered, keep_deletes=keep_deletes, mark=mark) if names else None


def several(names: Any, what: str) -> tuple[str, ...]:
    """The names of columns that were given as none, one or several."""
    if names is None:
        return ()
    columns = column_names(names, what)
    out = (columns,) if isinstance(columns, str) else columns
    if not isinstance(out, tuple) or not all(isinstance(name, str) and name for name in out):
        raise InvalidArgument(f"{what} takes the name of a column or several, not {names!r}")
    return out


def signs(words: pa.ChunkedArray, weights: dict[Any, int], who: str) -> tuple[np.ndarray, np.ndarray]:
    """The weight of each word, and a mask of the words that are not known."""
    column = flat(words)
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    try:
        value_set = pa.array(list(weights)).cast(column.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
        raise TypeMismatch(f"{who} must be one of {_listed(weights)}, but its column is {column.type}") from None
    places = pc.index_in(column, value_set=value_set)
    numbers = np.array([*weights.values()], np.int64)
    bad = np.asarray(places.is_null())
    return numbers[np.asarray(places.fill_null(0))], bad


def fault_of(words: pa.ChunkedArray, bad: np.ndarray, choices: Sequence[Any], who: str) -> str:
    """The sentence about the first word that is not known."""
    if not bad.any():
        return ""
    word = words[int(np.flatnonzero(bad)[0])].as_py()
    return f"{who} must be one of {_listed(choices)}, but is {word!r} in a row"


def _listed(choices: Any) -> str:
    return ", ".join(map(str, choices))


def chosen(rows: pa.Table, weights: np.ndarray, mask: np.ndarray, bad: np.ndarray, fault: str) -> WeightedRows:
    """The changes of messages that are a row each; `mask` has those that say something of a row."""
    places = np.arange(len(weights))
    if not mask.all():
        places = np.flatnonzero(mask)
        rows, weights, bad = rows.take(pa.array(places)), weights[places], bad[places]
    changes = WeightedRows(rows=rows, weights=weights, places=places)
    return without(changes, bad, fault) if bad.any() else changes


def only_keys(rows: pa.Table, deleted: np.ndarray, keys: Sequence[str]) -> pa.Table:
    """The rows, of which the deleted ones keep their keys alone: their other columns may have any value."""
    if not deleted.any():
        return rows
    places = pa.array(np.arange(len(deleted)), mask=deleted)
    columns = [
        column if name in keys else column.take(places)
        for name, column in zip(rows.column_names, rows.columns, strict=True)
    ]
    return pa.table(columns, names=rows.column_names)


UNAVAILABLE = "__debezium_unavailable_value"
"""The text in place of a large value that PostgreSQL did not send, because an update did not change it."""


def lacking(rows: pa.Table, columns: Sequence[str] | None = None) -> np.ndarray:
    """A mask of the rows that lack a value of some columns, or of any."""
    mask = np.zeros(rows.num_rows, np.bool_)
    for name in rows.column_names:
        if columns is None or name in columns:
            mask |= marked(flat(rows[name]), UNAVAILABLE)
    return mask


def row_schema(fields: Sequence[pa.Field]) -> pa.Schema:
    """The columns of rows: plain types, and every column may be null, as those of a deleted row are."""
    return plain_schema(pa.schema([pa.field(f.name, f.type) for f in fields]))


__all__ = [
    "UNAVAILABLE",
    "Changelog",
    "chosen",
    "fault_of",
    "lacking",
    "only_keys",
    "row_schema",
    "several",
    "signs",
    "upserted",
]
