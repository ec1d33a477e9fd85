"""The net difference of two flows, results, changelogs or tables, in this process or on Spark.

Guarded by tests/test_comparing.py and tests/sparkops/comparison/test_spark_comparison.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

from .errors import InvalidArgument
from .local.compared_sides import compared_stream, compared_value, is_of_spark, local_side
from .tables.comparison.common_types import MOST_DIGITS
from .tables.comparison.comparison import Comparison
from .tables.comparison.local_comparison import compared
from .tables.comparison.options import ComparisonOptions
from .tables.comparison.sides import aligned

if TYPE_CHECKING:
    from .sparkops.comparison.live_comparison import LiveComparison


@overload
def compare(
    old: Any,
    new: Any,
    *,
    keys: str | Sequence[str] | None = None,
    diff: str | None = None,
    tolerance: float | None = None,
    examples: int = 10,
    trigger: None = None,
    on_batch: None = None,
) -> Comparison: ...


@overload
def compare(
    old: Any,
    new: Any,
    *,
    keys: str | Sequence[str] | None = None,
    diff: str | None = None,
    tolerance: float | None = None,
    examples: int = 10,
    trigger: Mapping[str, Any],
    on_batch: Callable[[Comparison, int], object] | None = None,
) -> LiveComparison: ...


def compare(
    old: Any,
    new: Any,
    *,
    keys: str | Sequence[str] | None = None,
    diff: str | None = None,
    tolerance: float | None = None,
    examples: int = 10,
    trigger: Mapping[str, Any] | None = None,
    on_batch: Callable[[Comparison, int], object] | None = None,
) -> Comparison | LiveComparison:
    """Compare two flows, results, changelogs or tables: the rows that only one of them has, and those that changed.

    Both sides are netted, and the order of rows and of columns does not count. Null equals null, NaN equals NaN, and
    -0.0 equals 0.0, also in lists and structs. Whole numbers, decimals, floats and times of two widths, scales or units
    are compared by value; two types of which none holds the values of both, such as int64 and float64, are refused. If
    one side is on Spark, Spark compares them: it shuffles rows by their keys, and only counts and examples come here.

    Parameters
    ----------
    old, new
        Each is one of these:

        * a bounded flow, here or on Spark, or the result of `flow.run()`. Retractions count, the columns `pane` and
          `step` do not, and `window` fits a table with `window_start` and `window_end`;
        * a table: of pyarrow, pandas, Polars, DuckDB, or anything else that `uc.flow` takes as one;
        * a DataFrame of Spark that is no stream;
        * a path or a pattern of files, a list of them, or `uc.Files`. The columns `pane` and `step`
          that flows wrote into both do not count.
    keys
        The columns that identify a row. With them a row of other values is changed; no two rows of a side may share
        them. Without them rows are whole rows, and each counts as often as it is there.
    diff
        The column of weights of the tables that have it. Without it whole numbers in a column `diff` are weights.
    tolerance
        With `keys=`: two floats are equal that differ by at most `tolerance * max(1, |x|, |y|)`, which is absolute for
        numbers up to 1, and relative to the larger one above, as `math.isclose` has it with both of its tolerances. It
        counts in lists and structs too, but not in keys.
    examples
        The number of rows that differ to show, of each kind as many as there is room for.
    trigger
        To compare two streams on Spark as they go: that of the one query that reads both, such as
        `{"availableNow": True}` for the rows that are there, or `{"processingTime": "10 seconds"}`. The rows that
        differ are kept in this process. Each side is a flow, or a streaming DataFrame whose rows are a changelog.
    on_batch
        A function of the comparison so far and of the number of the batch, called after each batch of streams.

    Returns
    -------
    Comparison or LiveComparison
        The verdict (`.same`), counts, examples, and all rows that differ (`.to_arrow()`, or `.df` on Spark). For
        streams the query, whose `.comparison` has this after the last batch.

    Examples
    --------
    >>> import uncombine as uc
    >>> rows = [{"ts": 0, "user": "ada", "x": 5}, {"ts": 1, "user": "bob", "x": 2}]
    >>> totals = uc.flow(rows).window("1 minute").combine(by="user", total=uc.Sum("x"))
    >>> best = uc.flow(rows).window("1 minute").combine(by="user", total=uc.Max("x"))
    >>> uc.compare(totals, best, keys=["user", "window"])
    old and new are the same: 2 rows

    >>> yesterday = {"user": ["ada", "bob"], "total": [5, 2]}
    >>> changes = {"user": ["bob", "bob", "bob"], "total": [1, 1, 3], "diff": [1, -1, 1]}
    >>> uc.compare(yesterday, changes, keys="user")
    old and new differ: 1 row changed, 1 only in old, 0 equal
    changed columns: total (1)
    difference   user  total_old  total_new
    changed      bob           2          3
    only in old  ada           5
    """
    options = ComparisonOptions.of(keys, diff, tolerance, examples)
    if trigger is not None:
        from .sparkops.comparison.live_comparison import compared_live

        if not isinstance(trigger, Mapping):
            raise InvalidArgument(
                f"trigger= takes a mapping such as {{'availableNow': True}}, but was given {trigger!r}"
            )
        streams = compared_stream(old, "old"), compared_stream(new, "new")
        return compared_live(*streams, options, trigger, on_batch)
    if on_batch is not None:
        raise InvalidArgument("on_batch= is for streams: give trigger= too, such as {'availableNow': True}")
    values = compared_value(old, "old"), compared_value(new, "new")
    if any(map(is_of_spark, values)):
        from .sparkops.comparison.spark_comparison import compared_on_spark

        return compared_on_spark(*values, options)
    sides, _, options = aligned([local_side(value, options) for value in values], options, MOST_DIGITS)
    one, other = (side.rows() for side in sides)
    return compared(one, other, options)


__all__ = ["compare"]
