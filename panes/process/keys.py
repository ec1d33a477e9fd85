"""The keys of a step with their state and timers: from the store to Python objects, and back.

Guarded by tests/panes/process/test_process.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ...combiners.rows.columns import flat
from ...combiners.rows.groups import group_rows
from ...errors import InvalidArgument, TypeMismatch, nearest
from .context import KeyContext, Scene, Timer

TIMERS = pa.list_(
    pa.struct(
        [
            ("tag", pa.string()),
            ("time", pa.int64()),
            ("domain", pa.string()),
            ("at", pa.int64()),
            ("holds", pa.bool_()),
        ]
    )
)


def stored_keys(keys: pa.Schema, state: pa.Schema) -> pa.Schema:
    """The columns of the store of keys."""
    columns = [(f"key.{i}", kind) for i, kind in enumerate(keys.types)]
    return pa.schema([*columns, ("state", pa.struct([f.with_nullable(True) for f in state])), ("timers", TIMERS)])


@dataclass(frozen=True)
class Keys:
    """The keys of a step, first those from the store, and the number of the key of each row."""

    schema: pa.Schema
    columns: list[pa.Array]
    contexts: list[KeyContext]
    row_codes: np.ndarray

    @classmethod
    def of(
        cls, keys: pa.Schema, state: pa.Schema, old_keys: pa.Table, arrays: Sequence[pa.Array], rows: int, scene: Scene
    ) -> Keys:
        """The keys that were found in the store, and those of the rows."""
        old = old_keys.num_rows
        both = [pa.concat_arrays([flat(old_keys[f"key.{i}"]), array]) for i, array in enumerate(arrays)]
        groups, first = group_rows(both, old + rows)
        columns = [column.take(pa.array(first)) for column in both]
        values = [column.to_pylist() for column in columns]
        named = values[0] if len(values) == 1 else list(zip(*values, strict=True)) if values else [()] * len(first)
        states, timers = old_keys["state"].to_pylist(), old_keys["timers"].to_pylist()
        contexts = []
        for number, key in enumerate(named):  # objects for calls of the user's Python
            state_of_key = states[number] if number < old else dict.fromkeys(state.names)
            set_now = timers[number] if number < old else ()
            by_tag = {
                t["tag"]: Timer(time=t["time"], domain=t["domain"], at=t["at"], holds=t["holds"]) for t in set_now
            }
            contexts.append(KeyContext(scene, number, key, state_of_key, by_tag))
        return cls(schema=stored_keys(keys, state), columns=columns, contexts=contexts, row_codes=groups.codes[old:])

    def table(self, name: str) -> tuple[pa.Table, dict[str, np.ndarray]]:
        """The keys that have state or timers as they are stored, and their clocks; `name` is that of the function."""
        kind = self.schema.field("state").type
        fields = frozenset(field.name for field in kind)
        numbers = []
        for number, ctx in enumerate(self.contexts):
            if not ctx.state.keys() <= fields:
                odd = next(field for field in ctx.state if field not in fields)
                raise InvalidArgument(f"{name}.state has no field {odd!r}: {nearest(str(odd), fields)}")
            if ctx.alive:
                numbers.append(number)
        alive = [self.contexts[number] for number in numbers]
        try:
            states = pa.array([ctx.state for ctx in alive], kind)
        except (pa.ArrowException, OverflowError) as error:
            raise TypeMismatch(f"the state of a key does not fit {name}.state: {error}") from None
        timers = [[{"tag": tag, **timer._asdict()} for tag, timer in sorted(ctx.timers.items())] for ctx in alive]
        places = pa.array(numbers, pa.int64())
        columns = [*(column.take(places) for column in self.columns), states, pa.array(timers, TIMERS)]
        wake = np.array([ctx.wake() for ctx in alive], np.int64).reshape(len(alive), 3)
        clocks = {name: wake[:, i].copy() for i, name in enumerate(("event", "processing", "hold"))}
        return pa.Table.from_arrays(columns, schema=self.schema), clocks


__all__ = ["Keys", "stored_keys"]
