"""Chains of groupings written as a list of stages, and run as one flow without Spark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

import uncombine as uc
from uncombine.changelogs.flows import flow_of
from uncombine.combiners.rows.plain_types import plain_schema
from uncombine.flows.flow import Flow
from uncombine.flows.result import Result
from uncombine.flows.settings import Settings
from uncombine.local.script import check_script, tables_of
from uncombine.local.script_run import LocalRun
from uncombine.local.sources import LocalSource


class Stage:
    """A grouping with its options and combiners; `then` is applied to its panes before the next one."""

    def __init__(self, window: uc.windows.Window, then: Any = None, **options: Any) -> None:
        self.window, self.then = window, then
        self.combiners = {name: value for name, value in options.items() if isinstance(value, uc.Combiner)}
        self.options = {name: value for name, value in options.items() if name not in self.combiners}


def chain(stages: Sequence[Stage], schema: pa.Schema, watermark: str | None = None) -> Flow:
    """The flow of the stages over local rows."""
    first = stages[0].options
    settings = Settings(first.get("time", "ts"), watermark, first.get("diff"))
    flow = flow_of(LocalSource(plain_schema(schema), streaming=False), settings)
    for stage in stages:
        options = {name: value for name, value in stage.options.items() if name != "by"}
        flow = flow.window(stage.window, **options).combine(by=stage.options.get("by", ()), **stage.combiners)
        if stage.then is not None and stage is not stages[-1]:
            flow = flow.map(stage.then)
    return flow


def pipeline(
    stages: Sequence[Stage],
    script: Sequence[Any],
    watermark: str | None = None,
    idle_after: str | None = None,
    schema: pa.Schema | None = None,
) -> Result:
    """The panes of a script with a chain of stages; the columns are those of the script if no schema is given."""
    entries = check_script(script)
    if schema is None:
        tables = tables_of(entries, [stages[0].options.get("time", "ts")])
        schema = next(table.schema for table in tables if table is not None and table.num_columns)
    idle = None if idle_after is None else int(uc.span(idle_after))
    return LocalRun(chain(stages, schema, watermark), idle).all(entries)
