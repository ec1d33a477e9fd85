"""Local runs: a script of elements, watermark reports and clock times through any flow, without Spark.

Guarded by tests/local/test_local.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from ..combiners import Combiner
from ..combiners.rows.plain_types import plain_schema
from ..errors import InvalidArgument, UnknownColumn, require_options
from ..flows.flow import OPTIONS, Flow, flow_of
from ..flows.settings import Settings
from ..windows import Span, Window, span
from .local_result import Result
from .script import Entry, check_script, tables_of
from .script_run import LocalRun
from .sources import LocalSource

_FLOW_FIRST = (
    "local.run() takes the flow after the script: local.run(script, flow), or local.run(flow=flow) without a script"
)


def run(
    script: Sequence[Entry] | None = None,
    flow: Flow | None = None,
    *,
    window: Window | None = None,
    time: str = "ts",
    watermark: str | None = None,
    idle_after: str | Span | None = None,
    schema: pa.Schema | None = None,
    **options: Any,
) -> Result:
    """Run a script through a flow and return the panes in their order.

    Before an entry moves processing time on, every timer that is due by then fires at its own time.

    Parameters
    ----------
    script
        A list of `Elements`, `Watermark` and `Clock`. Without a script the rows of the table of `uc.local.source` come
        as one bundle, and then the input ends.
    flow
        Any flow, of any number of groupings: over `uc.local.source`, or the flow over Spark that is deployed. Its rows
        report watermarks by the flow's own strategy, and a script may report more. A row arrives at the time in the
        flow's `processing_time` column; if it has none there, at the time of its entry.
    window, time, **options
        The short form, instead of a flow of one grouping. Options are those of `Grouping`: trigger=, mode=, by=,
        diff=, allowed_lateness=, on_time=, closing=, only_updated=, eager_retractions=, late=, granularity=,
        timestamp=, allow_finish=, max_future=. Every other name is a result, and its value a combiner. The mode is
        "accumulating" if not given, and "retracting" with diff=.
    watermark
        "each_batch", in the short form: within each bundle the watermark runs from the beginning to the end of time.
    idle_after
        In the short form: a source that reports nothing for this long is idle and no longer holds the watermark back.
    schema
        In the short form: the types of the rows, for a script whose rows do not show them.

    Returns
    -------
    Result
        An Arrow table of the keys, `window`, the results, `event_time`, `diff`, `pane` and `step` (the entry that the
        row came from), with `.table()`, `.counts()`, `.left_out`, `.dropped_rows` and `.output_watermarks`.

    Examples
    --------
    >>> import uncombine as uc
    >>> script = [
    ...     uc.Elements([{"ts": "2016-01-20T12:00:26Z", "score": 5}]),
    ...     uc.Watermark("2016-01-20T12:02:00Z"),
    ... ]
    >>> panes = uc.local.run(script, window=uc.Fixed("2 minutes"), total=uc.Sum("score"))
    >>> panes.select(["total", "diff", "step"]).to_pylist()
    [{'total': 5, 'diff': 1, 'step': 1}]
    """
    if flow is None:
        if window is None or script is None:
            if isinstance(script, Flow):
                raise InvalidArgument(_FLOW_FIRST)
            raise InvalidArgument("local.run() takes a script and a flow, or a script, window= and combiners")
        entries = check_script(script)
        flow = _short_form(entries, window, time, watermark, schema, options)
        return LocalRun(flow, None if idle_after is None else int(span(idle_after))).all(entries)
    if isinstance(script, Flow):
        raise InvalidArgument(_FLOW_FIRST)
    if not isinstance(flow, Flow):
        raise InvalidArgument(f"local.run(script, flow) takes a flow, but was given {flow!r}")
    short = {"window": window, "watermark": watermark, "idle_after": idle_after, "schema": schema, **options}
    if given := [name for name, value in short.items() if value is not None] + ["time"] * (time != "ts"):
        raise InvalidArgument(f"local.run(script, flow) takes no {given[0]}=: give it where the flow is built")
    return LocalRun(flow).of_tables() if script is None else LocalRun(flow).all(check_script(script))


def _short_form(
    entries: list[Entry],
    window: Window,
    time: str,
    watermark: str | None,
    schema: pa.Schema | None,
    options: Mapping[str, Any],
) -> Flow:
    """Build the flow of one grouping that the short form of `run` describes."""
    if watermark not in (None, "each_batch"):
        raise InvalidArgument(f"watermark= must be None or 'each_batch', but is {watermark!r}")
    combiners = {name: value for name, value in options.items() if isinstance(value, Combiner)}
    given = {name: value for name, value in options.items() if name not in combiners}
    require_options(given, [*OPTIONS, "by"], "local.run()")
    by, diff = given.pop("by", ()), given.pop("diff", None)
    if schema is None:
        tables = tables_of(entries, [time])
        schema = next((table.schema for table in tables if table is not None and table.num_columns), None)
    if schema is None:
        raise UnknownColumn("the script has no rows, so its columns are unknown: give schema=")
    rows = LocalSource(plain_schema(schema), streaming=False)
    settings = Settings(time, watermark, diff)
    return flow_of(rows, settings).window(window, **given).combine(by=by, **combiners)


__all__ = ["run"]
