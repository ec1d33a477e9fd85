"""The writing of rows with weights as messages of a changelog.

Guarded by tests/changelogs/test_changelogs_out.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from ..combiners.aggregate import weights_of
from ..combiners.rows.plain_types import plain_table
from ..errors import require_column
from ..panes.state.pane_type import PANE
from .base import Changelog, several
from .debezium import Debezium
from .kafka import KafkaUpsert
from .postgres import Postgres
from .worded import DeltaFeed, Flink, SparkUpdate

NAMES: Mapping[str, Callable[[tuple[str, ...]], Changelog]] = {
    "debezium": lambda keys: Debezium(),
    "debezium_flat": lambda keys: Debezium(keys, flat=True),
    "debezium_json": lambda keys: Debezium(json=True),
    "delta": lambda keys: DeltaFeed(),
    "flink": lambda keys: Flink(),
    "flink_upsert": lambda keys: Flink(keys=keys),
    "kafka": lambda keys: KafkaUpsert(keys),
    "postgres": lambda keys: Postgres(),
    "spark_update": lambda keys: SparkUpdate(keys),
}
"""The formats by name, for some keys."""


@dataclass(frozen=True)
class Writing:
    """Writes tables in a format."""

    format: Changelog
    keys: tuple[str, ...] = ()
    diff: str = "diff"
    pane: bool = False
    """True if the column `pane` is written."""

    @classmethod
    def of(cls, format: str | Changelog, keys: str | Sequence[str] | None, diff: str, pane: bool) -> Writing:
        """The writing with keys as users give them; if they give none, with those of the format."""
        if isinstance(format, str):
            named = several(keys, "keys=")
            return cls(format=NAMES[format](named), keys=named, diff=diff, pane=pane)
        names = keys if keys is not None else getattr(format, "keys", None)
        return cls(format=format, keys=several(names, "keys="), diff=diff, pane=pane)

    def __call__(self, rows: pa.Table) -> pa.Table:
        """The messages for the rows, in their order."""
        weights = weights_of(rows, self.diff)
        hidden = {self.diff} | {f.name for f in rows.schema if f.name == "pane" and f.type == PANE}
        if self.pane:
            hidden.discard("pane")
        rows = plain_table(rows.select([name for name in rows.column_names if name not in hidden]))
        for name in self.keys:
            require_column(name, rows.column_names, "keys=")
        return self.format.written(rows.combine_chunks(), weights, self.keys)


__all__ = ["NAMES", "Writing"]
