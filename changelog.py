"""Changelogs of other systems, in both directions: Debezium, Delta, Flink, Kafka, PostgreSQL, Spark.

`uc.flow(df, changelog=uc.changelog.Debezium())` reads the messages of a system as rows with weights, and
`uc.changelog.to("debezium")` writes the rows of a flow as such messages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .changelogs import Changelog, Debezium, DeltaFeed, Flink, KafkaUpsert, Ops, Postgres, SparkUpdate
from .changelogs.writing import NAMES, Writing
from .combiners.aggregate import as_table
from .errors import InvalidArgument, nearest
from .flows.result import Result


@dataclass(frozen=True)
class To:
    """A function that writes rows with weights as messages.

    It takes an Arrow table, the result of `flow.run()`, a pandas DataFrame, or a DataFrame of Spark.

    >>> import pyarrow as pa, uncombine as uc
    >>> uc.changelog.to("flink")(pa.table({"n": [1], "diff": [-1]})).to_pylist()
    [{'n': 1, 'row_kind': '-D'}]
    """

    writing: Writing

    def __call__(self, rows: Any) -> Any:
        """The messages of the rows; of a DataFrame of Spark, a DataFrame, streaming if it is."""
        if hasattr(rows, "sparkSession"):
            from .sparkops.changelogs import written

            return written(rows, self.writing)
        if isinstance(rows, Result):
            rows = rows.panes.drop_columns(["step"])
        return self.writing(as_table(rows))


def to(
    format: str | Changelog,
    keys: str | Sequence[str] | None = None,
    *,
    diff: str = "diff",
    pane: bool = False,
) -> To:
    """Write the rows of a flow in the convention of another system.

    The result is a function: of an Arrow table, of the result of `flow.run()`, or of a DataFrame of Spark, as in
    `flow.df.transform(uc.changelog.to("debezium", keys=["user", "window"]))`.

    "debezium" (the envelope as structs), "debezium_json" (as JSON in `key` and `value`), "delta", "flink" and
    "postgres" (wal2json, format 2) write the old row of an update and the new one. "debezium_flat", "flink_upsert",
    "kafka" (JSON in `key` and `value`) and "spark_update" write the last row of each key that changed, and need keys.

    Parameters
    ----------
    format
        One of these names, or a format such as `uc.changelog.Ops("op", {"I": 1, "D": -1})`.
    keys
        The columns that tell one row from another: the keys of the last grouping, with `window`. Without them an
        update is a deletion and an insertion.
    diff
        The column of weights.
    pane
        True keeps the column `pane`. A row and its retraction differ in it, so systems that compare rows need it left
        out.

    Examples
    --------
    >>> import pyarrow as pa, uncombine as uc
    >>> rows = pa.table({"k": ["a", "a", "a"], "n": [1, 1, 2], "diff": [1, -1, 1]})
    >>> uc.changelog.to("debezium", keys="k")(rows)["op"].to_pylist()
    ['c', 'u']
    >>> uc.changelog.to("kafka", keys="k")(rows).to_pylist()
    [{'key': '{"k":"a"}', 'value': '{"k":"a","n":2}'}]
    """
    if not isinstance(format, str | Changelog):
        raise InvalidArgument(f"to() takes the name of a format or a format, not {format!r}")
    if isinstance(format, str) and format not in NAMES:
        raise InvalidArgument(f"to() knows no format {format!r}: {nearest(format, NAMES)}")
    return To(Writing.of(format, keys, diff, pane))


__all__ = ["Changelog", "Debezium", "DeltaFeed", "Flink", "KafkaUpsert", "Ops", "Postgres", "SparkUpdate", "To", "to"]


def __dir__() -> list[str]:
    return __all__
