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
from ..state.store import Store


@dataclass(frozen=True)
class Shared:
    """The state of one shard in a step. It becomes Python objects when something first reads it."""

    store: Store
    """One row with the fields of the state, or none while all are null."""

    @cached_property
    def values(self) -> dict[str, Any]:
        """The fields, which `on_broadcast` changes."""
        rows: list[dict[str, Any]] = self.store.rows().to_pylist()
        return rows[0] if rows else dict.fromkeys(self.store.schema.names)

    @cached_property
    def view(self) -> Mapping[str, Any]:
        """The fields for the calls of keys."""
        return MappingProxyType(self.values)

    def stored(self, name: str) -> Store:
        """The state as it is stored now; `name` is that of the function."""
        schema, values = self.store.schema, self.values
        if not values.keys() <= set(schema.names):
            odd = next(field for field in values if field not in schema.names)
            raise InvalidArgument(f"{name}.shared has no field {odd!r}: {nearest(str(odd), schema.names)}")
        empty = Store(schema)
        if all(value is None for value in values.values()):
            return empty
        try:
            table = pa.Table.from_pylist([values], schema)
        except (pa.ArrowException, OverflowError) as error:
            raise TypeMismatch(f"the shared state does not fit {name}.shared: {error}") from None
        return empty.put(np.zeros(1, np.uint64), table, {})


__all__ = ["Shared"]
