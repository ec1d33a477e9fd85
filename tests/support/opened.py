"""Flows and runs by one set of options, for tests that put options together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

import uncombine as uc
from uncombine.changelogs.flows import flow_over as flow_of_opening
from uncombine.combiners import Combiner
from uncombine.flows.result import Result
from uncombine.flows.settings import Settings
from uncombine.local.script_run import LocalRun
from uncombine.local.sources import LocalSource
from uncombine.panes.state.seed import Seed
from uncombine.sparkops.changelogs import opened_over
from uncombine.triggers import Trigger, signals_of

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


def flow_over(given: Any, settings: Settings, changelog: Any) -> uc.Flow:
    """A flow over the messages of an input on Spark."""
    return flow_of_opening(opened_over(given, settings), settings, changelog)


def run_script(script: Sequence[Any], *, from_seed: Seed | None = None, **options: Any) -> Result:
    """The result of a script through a flow of one grouping; every combiner among the options is a result."""
    flow, idle_after = script_flow(script, **options)
    return LocalRun(flow, idle_after, from_seed).all(list(script))


def script_flow(
    script: Sequence[Any],
    *,
    window: Any,
    schema: pa.Schema | None = None,
    by: Any = (),
    idle_after: str | None = None,
    **options: Any,
) -> tuple[uc.Flow, int | None]:
    """A flow of one grouping over a script, and the time after which its sources are idle."""
    combiners = {name: value for name, value in options.items() if isinstance(value, Combiner)}
    of_flow = {name: options.pop(name) for name in _OF_FLOW if name in options and name not in combiners}
    options = {name: value for name, value in options.items() if name not in combiners}
    source = uc.flow(script if schema is None else schema, **of_flow)
    assert isinstance(source.source, LocalSource)
    # A script has an end, also where the watermark is that of each bundle.
    source = replace(source, source=replace(source.source, streaming=False))
    if isinstance(options.get("trigger"), Trigger):
        for part in signals_of(options["trigger"]):
            object.__setattr__(part, "flow", source)
    flow = source.window(window, **options).combine(by, **combiners)
    return flow, None if idle_after is None else int(uc.span(idle_after))
