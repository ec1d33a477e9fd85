"""Flows and runs by one set of options, for tests that put options together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

import uncombine as uc
from uncombine.combiners import Combiner
from uncombine.flows.result import Result
from uncombine.local.script_run import LocalRun

_OF_FILES = ("format", "schema", "filter", "on_bad_file", "on_missing_column", "max_files_per_batch")
_TUNING = ("native", "files", "shards", "wake")
_OF_FLOW = ("time", "watermark", "diff", "changelog", "processing_time", "max_future", "name")


def opened(rows: Any, **options: Any) -> uc.Flow:
    """A flow by options of `uc.flow`, `uc.Files`, `uc.Tuning` and `replay` beside each other."""
    tuning = {name: options.pop(name) for name in _TUNING if name in options}
    replay, close_at_end = options.pop("replay", False), options.pop("close_at_end", False)
    known = {*_OF_FLOW, "spark", "streaming"}
    of_files = {name: options.pop(name) for name in [*options] if name not in known}
    if of_files:
        rows = uc.Files(rows, **of_files)
    flow = uc.flow(rows, **options, tuning=uc.Tuning(**tuning) if tuning else None)
    return flow.replay(close_at_end=close_at_end) if replay else flow


def run_script(
    script: Sequence[Any],
    *,
    window: Any,
    schema: pa.Schema | None = None,
    by: Any = (),
    idle_after: str | None = None,
    **options: Any,
) -> Result:
    """The result of a script through a flow of one grouping; every combiner among the options is a result."""
    combiners = {name: value for name, value in options.items() if isinstance(value, Combiner)}
    of_flow = {name: options.pop(name) for name in _OF_FLOW if name in options and name not in combiners}
    options = {name: value for name, value in options.items() if name not in combiners}
    flow = uc.flow(script if schema is None else schema, **of_flow).window(window, **options).combine(by, **combiners)
    return LocalRun(flow, None if idle_after is None else int(uc.span(idle_after))).all(list(script))
