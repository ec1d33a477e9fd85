"""The result of a run in this process: an Arrow table of panes, with rows left out, counts and output watermarks.

Guarded by tests/local/test_local_result.py, tests/flows/test_answers.py and tests/panes/test_showing.py.
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import wraps
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from ..advice import OF_RESULTS
from ..combiners.aggregate import weights_of
from ..combiners.rows.group_sums import sum_weights
from ..combiners.rows.groups import group_rows
from ..combiners.rows.key_codes import normal_keys
from ..errors import InvalidArgument, LibraryMissing, NoSuchStep
from ..panes.grouping.grouping import Grouping
from ..panes.showing import ROWS, TablePreview, shown_rows
from .left_out import past_all_steps
from .settle import shows_again
from .source_watermarks import SourceWatermarks

if TYPE_CHECKING:
    import pandas as pd

    from ..panes.state.seed import Seed
    from .early_end.seen import Seen
    from .event_time import EventTime

_WITH_A_TABLE = ("equals", "join", "join_asof")
"""The methods of an Arrow table that take another table."""


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """The result of `flow.run()`. `panes` is an Arrow table, and the result can be used as that table.

    >>> import uncombine as uc
    >>> script = [uc.Elements([{"ts": 0, "x": 5}]), uc.Watermark(None)]
    >>> result = uc.flow(script).window("1 minute").combine(total=uc.Sum("x")).run()
    >>> result.num_rows, result["total"].to_pylist(), result.counts()["dropped"]
    (1, [5], 0)
    """

    panes: pa.Table
    """The columns of the flow, and `step`: the entry of the script that gave the row."""
    of_stages: Sequence[Mapping[str, int]] = ()
    dropped_rows: Sequence[tuple[int, int]] = field(default_factory=list)
    """The rows whose window had expired: the entry of the script, and the place of the row among the rows of that entry
    at the first grouping."""
    output_watermarks: Sequence[int] = field(default_factory=list)
    """The output watermark of the last grouping after each entry of the script, in microseconds."""
    rows_kept: bool = True
    """True if all rows of the script came to the first grouping, so that `dropped_rows` has places in the script."""
    left_out: pa.Table = field(default_factory=lambda: pa.table({}))
    """The rows that every step left out: `stage`, `side` (of a join), `why` ("late", "bad", "unassigned", "finished",
    or "unreadable" for a row of a file), `row`, the `file`, `line` and `text` of an unreadable row, and `step`: the
    entry of the script."""
    last: Grouping | None = None
    """The grouping whose panes these are, if it is the last step."""
    each_batch: bool = False
    """True if the watermark ran from the beginning to the end of time in each bundle."""
    write: Callable[[str, str | Sequence[str] | None], None] | None = None
    """Writes the net result into a table."""
    watermarks: Sequence[SourceWatermarks] = field(default_factory=list)
    """The watermarks of the sources at each entry of the script."""
    weight: str = "diff"
    """The column that has the weights of the rows."""
    save: Callable[[str], Seed] | None = None
    """Writes the state of the run as a seed."""
    times: Mapping[str | None, str] = field(default_factory=dict)
    """The column of event times of each source, by the name of the source."""
    computed: Mapping[str | None, EventTime] = field(default_factory=dict)
    """The computation of the event times of each source whose rows do not have them, by the name of the source."""
    note: str = ""
    """A sentence on what the run has left open, such as windows that wait for the watermark; empty without any."""
    seen: Seen | None = None
    """The share of the files that a run with `until=` has read; None of other runs."""

    def counts(self, stage: int | None = None) -> dict[str, int]:
        """The number of rows without a result, by the reason, and of windows that are still held at the end.

        The counts are of one grouping (`stage` starts at 1), or of all groupings together. `dropped` has the rows whose
        reason in `left_out` is `late`.

        >>> import uncombine as uc
        >>> script = [uc.Elements([{"ts": 0, "x": 1}]), uc.Watermark("1970-01-02")]
        >>> uc.flow(script).window("1 minute").combine(n=uc.Count()).run().counts()
        {'dropped': 0, 'finished': 0, 'unassigned': 0, 'bad': 0, 'unreadable': 0, 'held': 0}
        """
        if stage is not None:
            return dict(self.of_stages[self._place(stage)])
        past = past_all_steps(self.left_out)
        names = self.of_stages[0] if self.of_stages else ("bad", "unreadable")
        return {name: sum(of_stage[name] for of_stage in self.of_stages) + past[name] for name in names}

    @property
    def dropped(self) -> int:
        """The number of rows whose window had expired.

        >>> import uncombine as uc
        >>> script = [uc.Watermark("1970-01-02"), uc.Elements([{"ts": 0, "x": 1}])]
        >>> result = uc.flow(script).window("1 minute").combine(n=uc.Count()).run()
        >>> result.dropped, result.dropped_rows
        (1, [(1, 0)])
        """
        return self.counts()["dropped"] if self.of_stages else 0

    def collect(self) -> list[dict[str, Any]]:
        """The panes as a list of dicts, in their order. A window is a dict of `start` and `end`.

        >>> import uncombine as uc
        >>> uc.flow([{"ts": 0, "user": "ada", "x": 5}]).select("user", "x").run().collect()
        [{'user': 'ada', 'x': 5, 'step': 0}]
        """
        return self.panes.to_pylist()

    def to_arrow(self, *, flat: bool = False) -> pa.Table:
        """The panes as an Arrow table.

        With `flat=True` all columns are plain: `window_start` and `window_end` in the place of `window`, and `timing`
        and `processing_time` in the place of `pane`.

        >>> import uncombine as uc
        >>> script = [uc.Elements([{"ts": 0, "x": 5}]), uc.Watermark(None)]
        >>> result = uc.flow(script).window("1 minute").combine(total=uc.Sum("x")).run()
        >>> result.to_arrow(flat=True).column_names[:3]
        ['window_start', 'window_end', 'total']
        """
        return flat_panes(self.panes) if flat else self.panes

    def to_pandas(self, *, flat: bool = False, **options: Any) -> pd.DataFrame:
        """The panes as a pandas DataFrame; `options` are those of `pyarrow.Table.to_pandas`.

        With `flat=True` all columns are plain, as those of `to_arrow(flat=True)`.
        """
        return self.to_arrow(flat=flat).to_pandas(**options)

    def to_polars(self, *, flat: bool = False) -> Any:
        """The panes as a DataFrame of Polars; with `flat=True` all columns are plain, as those of `to_arrow`."""
        try:
            import polars
        except ImportError:
            raise LibraryMissing(
                "to_polars() needs a library that is not installed: pip install 'uncombine[polars]'"
            ) from None
        return polars.from_arrow(self.to_arrow(flat=flat))

    def head(self, rows: int = 5) -> Result:
        """The first panes, as a result whose counts and rows left out are those of the whole run.

        >>> import uncombine as uc
        >>> uc.flow([{"ts": 0, "x": 5}, {"ts": 1, "x": 9}]).run().head(1)["x"].to_pylist()
        [5]
        """
        return replace(self, panes=self.panes.slice(0, _checked(rows)), write=None, save=None)

    def show(self, rows: int = ROWS) -> None:
        """Print the first panes, as the repr of the result has them.

        >>> import uncombine as uc
        >>> rows = uc.flow([{"ts": 0, "x": 5}, {"ts": 1, "x": 9}])
        >>> rows.combine(total=uc.Sum("x")).select("total").run().show()
        total  step
           14     1
        """
        sys.stdout.write(f"{self._shown(_checked(rows)).text()}\n")

    def table(self, flat: bool = False) -> pa.Table:
        """The net result of the changelog: each distinct row with the sum of its `diff`, unless that is zero.

        With `flat=True` it has `window_start` and `window_end` in the place of `window`. Only retracting panes say
        which rows they replace; a warning says so if windows of another mode were shown again.

        >>> import uncombine as uc
        >>> first, second = uc.Elements([{"ts": 0, "x": 5}]), uc.Elements([{"ts": 1, "x": 2}])
        >>> script = [first, second, uc.Watermark(None)]
        >>> minutes = uc.flow(script).window("1 minute", "every 1 row", "retracting")
        >>> result = minutes.combine(total=uc.Sum("x")).run()
        >>> result["total"].to_pylist(), result.table()["total"].to_pylist()
        ([5, 5, 7], [7])
        """
        panes, weight = self.panes, self.weight
        warn_of_panes_that_stay(self)
        left_out = (weight, "pane", "step") if self.of_stages else (weight, "step")
        names = [name for name in panes.column_names if name not in left_out]
        if weight not in panes.column_names:
            rows = panes.select(names)
            return flat_panes(rows) if flat else rows
        diffs = weights_of(panes, weight)
        if not names:
            return pa.table({weight: pa.array([total for total in [int(diffs.sum())] if total], pa.int64())})
        columns = [normal_keys(_comparable(panes[name])) for name in names]
        groups, first = group_rows(columns, panes.num_rows)
        weights = sum_weights(groups, diffs)
        rows = panes.select(names).take(pa.array(first)).append_column(weight, pa.array(weights))
        rows = rows.filter(pa.array(weights != 0))
        return flat_panes(rows) if flat else rows

    def to_table(self, target: str, keys: str | Sequence[str] | None = None) -> None:
        """Write the net result into a new table, all of it or nothing, as `flow.to_table` does for a bounded flow.

        `target` and `keys` are those of `flow.to_table`. Where the mode is left open, a grouping that can show a window
        again retracts its panes; the script then runs again in that mode.

        >>> import tempfile, uncombine as uc
        >>> script = [uc.Elements([{"ts": 0, "user": "ada", "x": 5}]), uc.Watermark(None)]
        >>> result = uc.flow(script).window("1 minute").combine(by="user", total=uc.Sum("x")).run()
        >>> result.to_table(f"duckdb:{tempfile.mkdtemp()}/shop.db#totals")
        """
        if self.write is None:
            raise InvalidArgument(
                "to_table() takes a whole result of flow.run(), and not a part of one: write flow.to_table(target)"
            )
        self.write(target, keys)

    def seed(self, to: str | PathLike[str]) -> Seed:
        """Write the state at the end of the run as a seed, into a new folder, from which a run or a query goes on.

        >>> import tempfile, uncombine as uc
        >>> hours = uc.flow([{"ts": 0, "x": 5}], watermark="1 minute").window("1 hour")
        >>> totals = hours.combine(n=uc.Sum("x"))
        >>> first = [uc.Elements([{"ts": 0, "x": 5}])]
        >>> seed = totals.run(first).seed(f"{tempfile.mkdtemp()}/seed")
        >>> then = [uc.Elements([{"ts": 1, "x": 9}]), uc.Watermark(None)]
        >>> totals.run(then, start=seed)["n"].to_pylist()
        [14]
        """
        if self.save is None:
            raise InvalidArgument("seed() takes a whole result of flow.run(), and not a part of one")
        return self.save(fspath(to))

    def _place(self, stage: int) -> int:
        stages = len(self.of_stages)
        if isinstance(stage, bool) or not isinstance(stage, int) or not 1 <= stage <= stages:
            raise InvalidArgument(f"stage= must be a number from 1 to {stages}, but is {stage!r}")
        return stage - 1

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name in OF_RESULTS and not hasattr(pa.Table, name):
            raise NoSuchStep(f"the result of flow.run() has no {name}: {OF_RESULTS[name]}")
        value = getattr(self.panes, name)
        return _of_tables(value) if name in _WITH_A_TABLE else value

    def __getitem__(self, key: Any) -> Any:
        return self.panes[key]

    def __len__(self) -> int:
        return int(self.panes.num_rows)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.panes.to_pylist())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.panes.__arrow_c_stream__(requested_schema)

    def __eq__(self, other: object) -> bool:
        theirs = other.panes if isinstance(other, Result) else other
        return isinstance(theirs, pa.Table) and bool(self.panes.equals(theirs))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return self._shown().text()

    def _repr_html_(self) -> str:
        return self._shown().html()

    def __rich__(self) -> Any:
        return self._shown().rich()

    def _shown(self, rows: int = ROWS) -> TablePreview:
        shown = shown_rows(self.panes, rows)
        more = "0 panes" if self.note and not self.panes.num_rows else shown.more
        seen = "" if self.seen is None else self.seen.words
        return replace(shown, more="; ".join(filter(None, [more, seen, self.note, self._words_of_left_out])))

    @property
    def _words_of_left_out(self) -> str:
        """The number of rows that were left out, and the reasons; empty if there are none."""
        count = self.left_out.num_rows
        if not count:
            return ""
        reasons = Counter(self.left_out["why"].to_pylist())
        why = ", ".join(f"{some:,} {reason}" for reason, some in sorted(reasons.items()))
        return f"{count:,} row{'s' * (count > 1)} left out ({why}): see left_out"


def _checked(rows: object) -> int:
    """A number of rows to show."""
    if isinstance(rows, bool) or not isinstance(rows, int) or rows < 0:
        raise InvalidArgument(f"rows= must be a whole number of at least 0, but is {rows!r}")
    return rows


def _of_tables(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method of an Arrow table that takes a result where it takes a table."""

    @wraps(method)
    def called(*arguments: Any, **options: Any) -> Any:
        tables = [value.panes if isinstance(value, Result) else value for value in arguments]
        named = {name: value.panes if isinstance(value, Result) else value for name, value in options.items()}
        return method(*tables, **named)

    return called


_PARTS = {"window": {"start": "window_start", "end": "window_end"}}
_PARTS |= {"pane": {"timing": "timing", "processing_time": "processing_time"}}
"""The columns that stand for parts of structs in flat panes."""


def warn_of_panes_that_stay(result: Result) -> None:
    """Warn of windows that are shown again in a mode that does not say which rows a pane replaces."""
    last = result.last
    if last is None or not last.mode.startswith("accumulating"):
        return
    if last.window.merging:  # the first pane of a window that merged others takes the place of theirs
        again = result.panes.num_rows > 0 and shows_again(last, result.each_batch)
    else:
        has_pane = "pane" in result.panes.column_names
        again = has_pane and not pc.all(pc.struct_field(result.panes["pane"], "is_first")).as_py()
    if again:
        warnings.warn(
            "windows can be shown again in mode='accumulating', where no pane retracts the one before it, so "
            "table() has all of them: use mode='retracting'",
            stacklevel=3,
        )


def flat_panes(panes: pa.Table) -> pa.Table:
    """Panes without structs of their own: with `window_start`, `window_end`, `timing` and `processing_time`.

    >>> import pyarrow as pa
    >>> flat_panes(pa.table({"window": [{"start": 1, "end": 2}], "n": [3]})).to_pylist()
    [{'window_start': 1, 'window_end': 2, 'n': 3}]
    """
    columns: list[tuple[str, pa.ChunkedArray]] = []
    for pane_field, column in zip(panes.schema, panes.columns, strict=True):
        parts = _PARTS.get(pane_field.name) if pa.types.is_struct(pane_field.type) else None
        if parts is None:
            columns.append((pane_field.name, column))
            continue
        columns += [(name, pc.struct_field(column, part)) for part, name in parts.items()]
    names = [name for name, _ in columns]
    for name in names:
        if names.count(name) > 1:
            raise InvalidArgument(f"flat=True gives a column {name!r}, which the result has already: rename that one")
    return pa.table([column for _, column in columns], names=names)


def _comparable(column: pa.ChunkedArray) -> pa.Array:
    """The column; its values as text if rows cannot be grouped by its type."""
    whole = column.combine_chunks()
    if isinstance(whole, pa.ChunkedArray):
        whole = pa.concat_arrays(whole.chunks) if whole.num_chunks else pa.array([], whole.type)
    if _groupable(whole.type):
        return whole
    return pa.array(
        [None if value is None else repr(_positive_zeros(value)) for value in whole.to_pylist()], pa.string()
    )


def _groupable(kind: pa.DataType) -> bool:
    """True if rows can be grouped by values of the type."""
    if pa.types.is_struct(kind):
        return all(_groupable(child.type) for child in kind)
    return not pa.types.is_nested(kind) and not pa.types.is_float16(kind)


def _positive_zeros(value: Any) -> Any:
    """The value with 0.0 for each -0.0 in it, as both are one value."""
    match value:
        case float():
            return value + 0.0
        case dict():
            return {name: _positive_zeros(part) for name, part in value.items()}
        case list() | tuple():
            return [_positive_zeros(part) for part in value]
        case _:
            return value


__all__ = ["Result", "flat_panes", "warn_of_panes_that_stay"]
