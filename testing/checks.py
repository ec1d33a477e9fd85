"""A check that a flow leaves the rows that a function of pandas gives, for random scripts or for one.

Guarded by tests/testing/test_testing.py.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from os import PathLike
from typing import Any

import pyarrow as pa

from ..errors import InvalidArgument
from ..flows.flow import Flow
from ..local.script import Entry
from ..windows import Span
from .check import Allowed, Check, Replay, check_one
from .kit import search


def check_flow(
    flow: Flow,
    expected: Callable[..., Any],
    *,
    examples: int = 100,
    seed: int | None = None,
    tolerance: float = 1e-9,
    spark: Any | None = None,
    replays: int = 3,
    draw: str | PathLike[str] | None = None,
    name: str = "flow",
    rows: int = 20,
    bundles: int = 12,
    keys: int = 3,
    columns: Mapping[str, Any] | None = None,
    nulls: bool = True,
    late: bool = True,
    scale: Span | str | None = None,
    allow: Collection[Allowed] = (),
) -> None:
    """Raise `FlowViolation`, with the smallest script found, if a flow leaves other rows than expected.

    Random scripts run through the flow: late, repeated and reordered rows, silent sources, and retractions where a
    source has `diff=`. At the end of each script, the rows that are left of the flow's changelog must be those that
    `expected` computes from the rows that survive. At no step may a row have been retracted more often than given.

    Parameters
    ----------
    flow
        A flow over `uc.flow(schema)`, of any steps and any number of sources. Sources of a union need names; those
        of a join are "left" and "right" without them.
    expected
        A function of a DataFrame, or of a dict of DataFrames by input if there are several. It gets the rows that
        survive, in the order in which they came: they were not late, had a time and were not retracted. A row
        of weight 2 is there twice. The index has the entry of the script (`step`) and the place in it (`row`). The
        function returns a DataFrame or dicts. Only the columns that it returns are compared, and `window.start` names
        a part of the column `window`.
    examples
        The number of scripts.
    seed
        A number that fixes the scripts. Without it they are the same in each run, too.
    tolerance
        Floats are equal if they differ by this part of the larger one. Near zero they may differ by this part of the
        largest float of the input, and at most by this much.
    spark, replays
        With a Spark session, so many of the scripts are also replayed on Spark, which must give the same rows. Each
        source then needs `watermark=` and `processing_time=`.
    draw
        A file for a picture of a violation, if matplotlib is installed and the flow ends with a grouping.
    name
        The name of the flow in the test that the message shows.
    rows, bundles, keys, columns, nulls, late, scale
        As for `scripts`.
    allow
        Reasons for which the flow may leave rows out, so that `expected` does not get them: "bad" (its time is more
        than `max_future` after processing time, or a step left it without a usable time), "unassigned" (no window takes
        it) and "finished" (the trigger of its window has finished). Without it such rows are expected to count, but
        for those that have no time in the script. If all rows of an input are left out so, nothing is compared, which
        is an error.

    Examples
    --------
    >>> import pyarrow as pa, uncombine as uc
    >>> time = pa.timestamp("us", "UTC")
    >>> columns = pa.schema({"ts": time, "user": pa.string(), "x": pa.int64()})
    >>> early = uc.AfterWatermark(early=uc.AfterCount(1))
    >>> minutes = uc.flow(columns).window(uc.Fixed("1 minute"), early, mode="retracting")
    >>> sums = minutes.combine(by="user", x=uc.Sum("x"))
    >>> def expected(rows):
    ...     start = rows.ts.dt.floor("1min").rename("window.start")
    ...     return rows.groupby(["user", start], dropna=False).x.sum(min_count=1)
    >>> uc.testing.check_flow(sums, lambda rows: expected(rows).reset_index(), examples=20)
    """
    __tracebackhide__ = True
    if not f"test_{name}".isidentifier():
        raise InvalidArgument(f"name= stands in the name of a test, so it has letters, digits and _, not {name!r}")
    options = {"rows": rows, "bundles": bundles, "keys": keys, "columns": columns, "nulls": nulls, "late": late}
    search(
        flow,
        expected,
        examples=examples,
        seed=seed,
        tolerance=tolerance,
        name=name,
        draw=draw,
        replay=_replay(spark),
        replays=replays,
        scale=scale,
        allow=allow,
        made=Check,
        **options,
    )


def check_script(
    script: Sequence[Entry],
    flow: Flow,
    expected: Callable[..., Any],
    *,
    tolerance: float = 1e-9,
    spark: Any | None = None,
    allow: Collection[Allowed] = (),
) -> None:
    """Raise `FlowViolation` if a flow leaves other rows than expected on this script; see `check_flow`.

    >>> import pyarrow as pa, uncombine as uc
    >>> rows = uc.flow(pa.schema({"ts": pa.timestamp("us", "UTC"), "x": pa.int64()}))
    >>> script = [uc.Elements([{"ts": 0, "x": 1}, {"ts": 1, "x": 5}]), uc.Watermark(None)]
    >>> large = rows.where(uc.col("x") > 2)
    >>> uc.testing.check_script(script, large, lambda frame: frame[frame.x > 2])
    """
    __tracebackhide__ = True
    check_one(Check(flow=flow, expected=expected, tolerance=tolerance, replay=_replay(spark), allow=allow), script)


def _replay(spark: Any | None) -> Replay | None:
    """The way to replay a script on Spark, if there is a session."""
    return None if spark is None else partial(_replayed, spark)


def _replayed(spark: Any, flow: Flow, script: Sequence[Entry]) -> pa.Table:
    from ..sparkops.source import replayed

    return replayed(spark, flow, script)


__all__ = ["check_flow", "check_script"]
