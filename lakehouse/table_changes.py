"""TableChanges: the value that names a table of a lakehouse whose rows and changes a flow reads.

It opens nothing. A flow over it looks at the table when it is made, and reads rows when it runs.

Guarded by tests/lakehouse/test_table_changes_value.py, tests/lakehouse/test_delta_changes.py and
tests/sparkops/lakehouse/test_table_streams.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal

from ..errors import InvalidArgument, NamedOptions, TypeMismatch, nearest
from ..tables.delta import Delta
from ..tables.iceberg import Iceberg
from ..tables.targets import is_target, target_of
from ..windows import timestamp
from .delta_versions import DeltaVersions
from .iceberg_versions import IcebergVersions
from .table_rows import ABOUT, TIMESTAMP, TableRows
from .versions import NOTHING, TableVersions


class TableChanges(NamedOptions):
    """A table of Delta or Iceberg whose rows and changes a flow reads: `uc.flow(uc.TableChanges("delta:/data/a"))`.

    Without `spark=`, and on Spark without `streaming=True`, a flow reads the table up to its version of now. With
    `streaming=True` it goes on with each later version. A column of weights, `diff` if `diff=` of `uc.flow` gives it no
    other name, says of each row if it comes (1) or is retracted (-1). No jar is needed.

    Parameters
    ----------
    table
        The table, as `flow.to_table` names one: `delta:` and a path or a URL of an object store, or `iceberg:`, a
        catalog, `#` and a table. Credentials come from the environment.
    start
        The version after which changes are read: its number (for Iceberg the id of a snapshot), a time, which means the
        last version up to it, "earliest" for the changes of all versions, or "latest" for those that come. Without it
        the rows of the table come first, and then the changes of later versions.
    end
        In a bounded flow: the last version that is read, as a number or a time. So the `end=` of one run is the
        `start=` of the next.
    columns
        More columns: "_commit_version" and "_commit_timestamp", of the commit by which a row came or was retracted.
    max_versions_per_batch
        In a stream: the most versions in a batch. From Spark 4.2.

    Examples
    --------
    >>> import datetime, tempfile, deltalake, pyarrow as pa, uncombine as uc
    >>> path, day = tempfile.mkdtemp(), datetime.datetime(2024, 5, 1, tzinfo=datetime.UTC)
    >>> rows = pa.table({"ts": [day, day], "user": ["ada", "bob"], "score": [3, 5]})
    >>> deltalake.write_deltalake(path, rows)
    >>> _ = deltalake.DeltaTable(path).delete("score = 5")
    >>> changes = uc.flow(uc.TableChanges(f"delta:{path}", start=0))
    >>> [(row["user"], row["diff"]) for row in changes.run().to_pylist()]
    [('bob', -1)]
    """

    def __init__(
        self,
        table: str,
        *,
        start: int | datetime | str | None = None,
        end: int | datetime | str | None = None,
        columns: Sequence[Literal["_commit_version", "_commit_timestamp"]] = (),
        max_versions_per_batch: int | None = None,
    ) -> None:
        self.target = _target(table)
        self.start, self.end = start, end
        self.begins = _place(start, "start=", ("earliest", "latest"))
        self.ends = _place(end, "end=", ())
        names = [columns] if isinstance(columns, str) else list(columns)
        for name in names:
            if name not in ABOUT.names:
                raise InvalidArgument(f"columns= has no column {name!r} of commits: {nearest(str(name), ABOUT.names)}")
        self.columns = tuple(dict.fromkeys(names))
        if max_versions_per_batch is not None and (
            type(max_versions_per_batch) is not int or max_versions_per_batch < 1
        ):
            raise InvalidArgument(
                f"max_versions_per_batch= must be a whole number of at least 1, but is {max_versions_per_batch!r}"
            )
        self.max_versions_per_batch = max_versions_per_batch

    def opened(self, weight: str, more: Sequence[str] = ()) -> TableRows:
        """The rows of the table, after a look at it; `more` has columns that the flow names."""
        versions: TableVersions
        if isinstance(self.target, Delta):
            versions = DeltaVersions(self.target, self.ends if isinstance(self.ends, int) else None)
        else:
            versions = IcebergVersions(self.target)
        also = (name for name in more if name in ABOUT.names and name not in versions.schema.names)
        return TableRows(versions, weight, tuple(dict.fromkeys([*self.columns, *also])))

    def first(self, versions: TableVersions) -> int | None:
        """The version after which reading begins; None if the rows of the table come first."""
        match self.begins:
            case None:
                return None
            case "earliest":
                return NOTHING
            case "latest":
                return versions.newest()
            case ("at", time):
                return versions.at(time)
        assert isinstance(self.begins, int)
        versions.require(self.begins)
        return self.begins

    def last(self, versions: TableVersions) -> int:
        """The version with which reading ends, of those that there are now."""
        match self.ends:
            case None:
                return versions.newest()
            case ("at", time):
                return versions.at(time)
        assert isinstance(self.ends, int)
        versions.require(self.ends)
        return self.ends

    def check_bounded(self) -> None:
        """Raise if an option is one of streams."""
        if self.max_versions_per_batch is not None:
            raise InvalidArgument(
                "max_versions_per_batch= is for a stream: give uc.flow() spark= and streaming=True, or leave it out"
            )
        if self.begins == "latest":
            raise InvalidArgument(
                "start='latest' is for a stream, and leaves nothing to read without one: leave it out"
            )

    def check_streaming(self) -> None:
        """Raise if an option is one of bounded flows."""
        if self.end is not None:
            raise InvalidArgument("end= is for a bounded flow, and a stream has no end: leave one of them out")

    @property
    def words(self) -> str:
        """The table in words."""
        begin = "" if self.start is None else f" after {self.start}"
        return f"the rows and changes of {self.target.name}{begin}"

    def __repr__(self) -> str:
        plain = {"start": None, "end": None, "columns": (), "max_versions_per_batch": None}
        said = [f"{name}={getattr(self, name)!r}" for name, none in plain.items() if getattr(self, name) != none]
        return f"TableChanges({', '.join([self.target.name, *said])})"


def _target(table: object) -> Delta | Iceberg:
    target = target_of(table) if is_target(table) else None
    if isinstance(target, Delta | Iceberg):
        return target
    if not isinstance(table, str):
        raise TypeMismatch(f"uc.TableChanges takes a text such as 'delta:/data/orders', not {type(table).__name__}")
    if target is not None:
        raise InvalidArgument(
            f"{target.name} keeps no versions, so it has no changes: give uc.flow() its rows, or a table of Delta or "
            "Iceberg"
        )
    raise InvalidArgument(
        "uc.TableChanges takes 'delta:' and the path of a table, or 'iceberg:catalog#namespace.table', but was given "
        "neither"
    )


def _place(place: Any, what: str, words: tuple[str, ...]) -> Any:
    """A version, a word, or the time of one in microseconds as `("at", time)`."""
    if place is None or (type(place) is int) or (isinstance(place, str) and place in words):
        return place
    if isinstance(place, str | datetime):
        try:
            return "at", timestamp(place)
        except (ValueError, TypeError):
            pass
    these = ", ".join([*map(repr, words), "a version", "a time"])
    raise InvalidArgument(f"{what} takes {these}, but was given {place!r}")


def check_columns(names: Sequence[str | None]) -> None:
    """Raise if a flow takes the time of a commit for the event time of its rows."""
    if TIMESTAMP in names:
        raise InvalidArgument(
            f"time={TIMESTAMP!r} gives a retraction another event time than its row has, so that it would not find it: "
            f"name a column of the table in time=, and give {TIMESTAMP!r} to processing_time="
        )


__all__ = ["TableChanges", "check_columns"]
