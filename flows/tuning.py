"""The options about running a flow, which change no result, and those of the query of a table.

Guarded by tests/flows/test_tuning.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike, fspath
from typing import Any, Literal

from ..errors import InvalidArgument, NamedOptions
from ..panes.state.seed import Seed


@dataclass(frozen=True, kw_only=True)
class Tuning(NamedOptions):
    """The options about running a flow on Spark: they change its speed, and no result.

    Two of them bind the checkpoint of a stream, which goes on only with the same value: `shards`, and `wake`.

    Parameters
    ----------
    native
        "auto": final panes are computed by Spark's own aggregation where its results are the same, or, for plain sums
        and means of floats, within the same tolerance; so are `select`, `where` and `with_columns` of bounded rows, by
        Spark's own expressions. "never": the library computes them itself.
    files
        "auto": if a DataFrame is nothing but Parquet files, with plain conditions and a choice of columns, the tasks
        that combine its rows read the files themselves, as those of `uc.Files`. "never": Spark reads them.
    shards
        The number of parts into which keys are divided; the number of Spark's shuffle partitions if not given.
    wake
        A stream with timers of processing time runs batches without data when one is due: those of triggers, of
        `idle_after`, and of a `process` that can set some. Only a query of a bare `.df` needs `wake=False`, with
        `trigger(availableNow=True)`, under which it would never end; timers then fire with the next data. True: such
        batches for any `process`, as earlier versions ran them.

    >>> import uncombine as uc
    >>> uc.Tuning(shards=8).native
    'auto'
    """

    native: Literal["auto", "never"] = "auto"
    files: Literal["auto", "never"] = "auto"
    shards: int | None = None
    wake: bool | None = None

    def __post_init__(self) -> None:
        for option in ("native", "files"):
            if (value := getattr(self, option)) not in ("auto", "never"):
                raise InvalidArgument(f"{option}= must be 'auto' or 'never', but is {value!r}")
        if self.shards is not None and (type(self.shards) is not int or self.shards < 1):
            raise InvalidArgument(f"shards= must be a whole number of at least 1, but is {self.shards!r}")
        if self.wake not in (None, True, False):
            raise InvalidArgument(f"wake= must be True, False or None, but is {self.wake!r}")


@dataclass(frozen=True, kw_only=True)
class LiveQuery:
    """The options of the query that keeps a table or a topic up to date."""

    checkpoint: str
    trigger: Mapping[str, Any] | None
    same: Sequence[str]
    start: Seed | str | None = None
    """The seed with which the query begins."""
    query_name: str | None = None
    left_out: str | None = None
    """The table of the rows that are left out, beside that of the result."""

    @classmethod
    def of(
        cls,
        checkpoint: str | PathLike[str] | None,
        trigger: Mapping[str, Any] | None,
        same: Sequence[str],
        start: Seed | str | None,
        endless: bool,
        way: str = "to_table",
        query_name: str | None = None,
        left_out: str | None = None,
    ) -> LiveQuery | None:
        """The options that a user gave to a way out; None for one that is written once, of a flow that ends."""
        if trigger is not None and not isinstance(trigger, Mapping):
            raise InvalidArgument(
                'trigger= must be a mapping such as {"processingTime": "10 seconds"} or {"availableNow": True}, but '
                f"is {trigger!r}"
            )
        if query_name is not None and (not isinstance(query_name, str) or not query_name.strip()):
            raise InvalidArgument(f"query_name= must be a text such as 'totals', but is {query_name!r}")
        if checkpoint is not None:
            return cls(
                checkpoint=fspath(checkpoint),
                trigger=trigger,
                same=same,
                start=start,
                query_name=query_name,
                left_out=left_out,
            )
        if endless:
            raise InvalidArgument(
                f"{way}() of a stream needs checkpoint=, the folder in which the query keeps its progress"
            )
        if left_out is not None:
            raise InvalidArgument(
                f"left_out= of {way}() is for a stream: a run of a bounded flow has these rows in result.left_out, and "
                "on Spark flow.left_out is a DataFrame of them"
            )
        if trigger is not None or same or start is not None or query_name is not None:
            raise InvalidArgument(
                f"{way}() of a bounded flow writes once: leave trigger=, same=, start= and query_name= out"
            )
        return None


@dataclass(frozen=True, kw_only=True)
class TopicTarget:
    """The topic of Kafka that a flow is written to, as a user named it."""

    servers: str | Sequence[str]
    topic: str
    changelog: Any
    left_out: str | None
    wait: str
    options: Mapping[str, str | int | float | bool] | None = field(repr=False)


__all__ = ["LiveQuery", "TopicTarget", "Tuning"]
