"""The state of a shard that all its keys read: from the store to a dict, and back.

Guarded by tests/panes/process/test_broadcast.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa

from ...errors import InvalidArgument, TypeMismatch, nearest
from ..state.operator_state import OF_ALL_SHARDS
from ..state.store import Store


def shared_store(fields: pa.Schema) -> Store:
    """A store for a state of these fields."""
    return Store(pa.schema([(OF_ALL_SHARDS, pa.struct([field.with_nullable(True) for field in fields]))]))


@dataclass(frozen=True)
class Shared:
    """The state of one shard in a step. It becomes Python objects when something first reads it."""

    store: Store
    """One row with a struct of the fields of the state, or none while all are null."""

    @cached_property
    def values(self) -> dict[str, Any]:
        """The fields, which `on_broadcast` changes."""
        rows: list[dict[str, Any]] = self.store.rows()[OF_ALL_SHARDS].to_pylist()
        return rows[0] if rows else dict.fromkeys(field.name for field in self._kind)

    @property
    def _kind(self) -> pa.StructType:
        return self.store.schema.field(OF_ALL_SHARDS).type

    @cached_property
    def view(self) -> Mapping[str, Any]:
        """The fields for the calls of keys."""
        return MappingProxyType(self.values)

    def stored(self, name: str) -> Store:
        """The state as it is stored now; `name` is that of the function."""
        values, fields = self.values, [field.name for field in self._kind]
        if not values.keys() <= set(fields):
            odd = next(field for field in values if field not in fields)
            raise InvalidArgument(f"{name}.shared has no field {odd!r}: {nearest(str(odd), fields)}")
        empty = Store(self.store.schema)
        if all(value is None for value in values.values()):
            return empty
        try:
            table = pa.table([pa.array([values], self._kind)], schema=empty.schema)
        except (pa.ArrowException, OverflowError) as error:
            raise TypeMismatch(f"the shared state does not fit {name}.shared: {error}") from None
        return empty.put(np.zeros(1, np.uint64), table, {})


__all__ = ["Shared", "shared_store"]
