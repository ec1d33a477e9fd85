"""Cases through the library: the local runner, the tasks of a replay, and the tasks of a stream."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from bounded import bounded_flow, cut
from combining import drawn_combining
from engine import Engine
from opened import opened
from streams import rows_flow

import uncombine as uc
from reference.byrule.agree import _without_times
from reference.byrule.times import MAX_TIME, MIN_TIME
from uncombine.errors import InvalidArgument
from uncombine.sparkops.routes import route_with_left_out
from uncombine.sparkops.source import spark_source

from .by_rules import COUNTS
from .case import SCHEMA, Case, Row, grouped
from .draw import table

PANE = (
    *("index", "nonspeculative_index", "timing", "is_first", "is_last"),
    *("watermark", "watermark_percentile", "processing_time", "trigger"),
)


@dataclass
class Found:
    """The result of a way to run a flow; parts that it does not know are None."""

    rows: list[Row]
    counts: list[dict[str, int]] | None = None
    output_watermarks: dict[int, int] | None = None
    """After some of the bundles, by their place."""
    left_out: list[list[tuple[str, Row]]] | None = None
    """The rows that each stage left out, with the reasons."""


def locally(case: Case, flow: Any) -> Found:
    """A flow of any source, in the local runner: an entry for each bundle, now and then one for several."""
    r = random.Random(case.seed)
    entries = _joined(case, r, 0.15)
    script: list[Any] = [uc.Elements(table(some), at=r.choice([some[-1].at, None])) for some in entries]
    places = [case.bundles.index(some[-1]) for some in entries]
    if case.ends:
        script.append(uc.Watermark(None))
        places.append(len(case.bundles))
    result = flow.run(script)
    counts = [result.counts(stage=i + 1) for i in range(len(case.stages))]
    return Found(
        rows_of(result.drop_columns(["step"])),
        counts,
        dict(zip(places, result.output_watermarks, strict=True)),
        left_out_of(result.left_out, case),
    )


def left_out_of(rows: pa.Table, case: Case) -> list[list[tuple[str, Row]]]:
    """Rows that were left out, for each stage; a row without the fields of other stages, which are null."""
    out: list[list[tuple[str, Row]]] = [[] for _ in case.stages]
    whole = rows["row"].combine_chunks()
    fields = numbers_of(pa.table([whole.field(i) for i in range(whole.type.num_fields)], [f.name for f in whole.type]))
    for stage, why, row in zip(rows["stage"].to_pylist(), rows["why"].to_pylist(), fields, strict=True):
        out[stage - 1].append((why, {re.sub(r"_\d+$", "", n): v for n, v in row.items() if v is not None}))
    return out


def shows_left_out(case: Case) -> bool:
    """True for half of the cases, in which Spark's ways show the rows that are left out, beside the panes."""
    return case.seed % 2 == 0


def local_flow(case: Case) -> Any:
    """The flow over a local source, or that of a replay where only that can end."""
    try:
        return grouped(opened(SCHEMA, watermark=case.strategy, **case.settings), case.stages)
    except InvalidArgument as refused:
        if "can never fire on Global()" not in str(refused):
            raise
        return replay_flow(case)


def replay_flow(case: Case) -> Any:
    """The flow of a replay over the rows, cut into any tasks where their order does not count."""
    whole = table(case.bundles)
    parts = [whole] if case.in_order else cut(whole, 1 + case.seed % 4, case.seed)
    settings: dict[str, Any] = {"replay": True, "close_at_end": case.ends, "shards": case.shards, **case.settings}
    return grouped(bounded_flow(parts, "ts", case.strategy, case.seed, **settings), case.stages)


def replayed(case: Case, flow: Any) -> Found:
    with drawn_combining(case.seed, sharing=True):
        return _replayed(case, flow)


def _replayed(case: Case, flow: Any) -> Found:
    if not shows_left_out(case):
        return Found(rows_of(flow.df.toArrow()))
    return _with_left_out(route_with_left_out(flow, spark_source(flow).input).df().toArrow(), case)


def _with_left_out(both: pa.Table, case: Case) -> Found:
    """Panes, and beside them the rows that were left out."""
    no = pc.is_null(both["left_out"])
    found = Found(rows_of(both.filter(no).drop_columns(["left_out"])))
    rows = pa.Table.from_struct_array(both.filter(pc.invert(no))["left_out"].combine_chunks())
    found.left_out = left_out_of(rows, case)
    return found


def stream_flow(case: Case) -> Any:
    """The flow of a stream; None if a stream cannot have it, because it never ends."""
    settings = dict(case.settings)
    if case.clocked:
        settings["processing_time"] = None
    try:
        return grouped(rows_flow(SCHEMA, "ts", case.strategy, case.shards, **settings), case.stages)
    except InvalidArgument as refused:
        if "can never fire on Global()" not in str(refused):
            raise
        return None


def streamed(case: Case, flow: Any) -> Found:
    """In micro-batches cut anywhere, some of them with new workers, some run twice from the same checkpoint."""
    with drawn_combining(case.seed, sharing=True):
        return _streamed(case, flow)


def _streamed(case: Case, flow: Any) -> Found:
    r = random.Random(case.seed + 1)
    beside = shows_left_out(case)
    engine, panes = Engine(flow, None if case.in_order else case.seed, beside=beside), list[pa.Table]()
    totals: list[dict[str, int]] = [dict.fromkeys((*COUNTS, "unreadable", "held"), 0) for _ in case.stages]
    now = None
    for some in _joined(case, r, 0.0 if case.clocked else 0.4):
        if case.clocked:
            before, now = now, some[-1].at // 1000
            if before is not None and now - before > 1 and r.random() < 0.3:
                panes += _batch(engine, None, r.randrange(before + 1, now), totals)
        if r.random() < 0.2:
            engine.restart()
        if r.random() < 0.1:
            kept = engine.snapshot()
            engine.batch(table(some), now)
            engine = Engine(flow, None if case.in_order else case.seed, kept, beside)
        panes += _batch(engine, table(some), now, totals)
    every = pa.concat_tables(panes)
    found = _with_left_out(every, case) if beside else Found(rows_of(every))
    found.counts = totals
    return found


def _batch(engine: Engine, rows: pa.Table | None, now: int | None, totals: list[dict[str, int]]) -> list[pa.Table]:
    panes, numbers = engine.batch(rows, now)
    for known, some in zip(totals, numbers, strict=True):
        for name in COUNTS:
            known[name] += some.get(f"rows_{name}", 0)
        if rows is not None:
            known["held"] = some["windows_held"]
    return [panes]


def _joined(case: Case, r: random.Random, chance: float) -> list[list[Any]]:
    """The bundles, in runs of one or more."""
    out: list[list[Any]] = []
    for bundle in case.bundles:
        if out and r.random() < chance:
            out[-1].append(bundle)
        else:
            out.append([bundle])
    return out


def numbers_of(rows: pa.Table) -> list[Row]:
    """Rows with their times as microseconds."""
    plain = rows
    for at, column in enumerate(rows.schema):
        plain = plain.set_column(at, column.name, plain[column.name].cast(_without_times(column.type)))
    return plain.to_pylist()


def rows_of(panes: pa.Table) -> list[Row]:
    """Panes as the model gives them."""
    out = numbers_of(panes)
    for row in out:
        window = row["window"]
        row["window"] = (MIN_TIME, MAX_TIME) if window is None else (window["start"], window["end"])
        row["pane"] = {name: row["pane"][name] for name in PANE}
    return out


__all__ = ["Found", "local_flow", "locally", "replay_flow", "replayed", "rows_of", "stream_flow", "streamed"]
