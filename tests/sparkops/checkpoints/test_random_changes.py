"""Random changes, deletions and added steps through checkpoints of real streams, against a plain run."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from evolved_specs import Spec, changed, columns, draw_script, draw_spec, left
from pyspark.sql import SparkSession
from row_steps import START

import uncombine as uc
from uncombine.errors import StateMismatch
from uncombine.sparkops.planners.data_source import LIMITS

OPTIONS: dict[str, Any] = {"watermark": "30 seconds", "diff": "w"}


@dataclass
class Streams:
    """The queries of one case: one after the other over the same folder, each with a checkpoint of its own."""

    spark: SparkSession
    folder: Path
    shards: int
    spec: Spec
    shown: list[pa.Table] = field(default_factory=list)
    rows: list[pa.Table] = field(default_factory=list)
    number: int = 0

    @property
    def files(self) -> Path:
        return self.folder / "in"

    @property
    def checkpoint(self) -> Path:
        return self.folder / f"checkpoint-{self.number}"

    def flow(self, spec: Spec) -> uc.Flow:
        source = uc.Files(str(self.files), order="name", max_files_per_batch=2 if LIMITS else None)
        tuning = uc.Tuning(shards=self.shards)
        return spec.over(uc.flow(source, spark=self.spark, streaming=True, tuning=tuning, **OPTIONS))

    def put(self, tables: list[pa.Table]) -> None:
        """Let files come, one a table."""
        self.files.mkdir(exist_ok=True)
        for table in tables:
            pq.write_table(table, self.files / f"{len(self.rows):03}.parquet")
            self.rows.append(table)

    def run(self) -> None:
        """Run the query over all files that are there."""
        stream = self.flow(self.spec).write_stream(checkpoint=self.checkpoint)
        stream = stream.foreachBatch(lambda df, batch: self.shown.append(df.toArrow()))
        stream.trigger(availableNow=True).start().awaitTermination()

    def change(self, spec: Spec, history: bool) -> None:
        former = self.checkpoint
        self.number += 1
        past = str(self.files) if history else None
        uc.evolve(former, self.flow(spec), to=self.checkpoint, history=past)
        self.spec = spec

    def delete(self, key: str) -> None:
        """Delete what came of a key so far."""
        found = uc.checkpoint(self.checkpoint, spark=self.spark)
        self.number += 1
        found.delete(where=uc.col("k") == key, to=str(self.checkpoint))
        self.rows = [table.filter(pc.fill_null(pc.not_equal(table["k"], key), True)) for table in self.rows]

    def check(self) -> None:
        """Compare the rows that the queries have left with those that a run in this process leaves of all rows."""
        names = [name for name in columns(self.spec.flow) if name != "event_time"]
        run = self.spec.flow.run([uc.Elements(pa.concat_tables(self.rows), at=START)]).to_arrow()
        kinds = {name: run.schema.field(name).type for name in (*names, "diff")}
        shown = [
            pa.table({name: table[name].cast(kind) for name, kind in kinds.items() if name in table.column_names})
            for table in self.shown
        ]
        assert left(*shown, names=names) == left(run, names=names)


def settled(spec: Spec) -> Spec:
    """The flow, whose panes are right after each bundle, so that what is left does not depend on the bundles."""
    window = "5 minutes" if spec.second and spec.window == "global" else spec.window
    return replace(spec, trigger="each row", lateness="1000 days", window=window)


def begun(spark: SparkSession, folder: Path, r: random.Random) -> Streams:
    return Streams(spark, folder, r.randint(1, 3), settled(draw_spec(r)))


def drawn(r: random.Random, entries: int) -> Iterator[list[pa.Table]]:
    """Rows of two times, each as some tables."""
    script = [one for one in draw_script(r, entries) if isinstance(one, uc.Elements)]
    tables = [pa.Table.from_batches(one.rows.to_batches()) for one in script]
    cut = r.randint(1, len(tables) - 1)
    yield tables[:cut]
    yield tables[cut:]


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(100))
def test_a_query_that_is_changed_leaves_what_it_would_have_left(seed: int, spark: SparkSession, tmp_path: Path) -> None:
    r = random.Random(seed)
    case = begun(spark, tmp_path, r)
    first, then = drawn(r, 14)
    kind = r.choice(["changed", "changed", "converted", "deleted", "added", "twice"])
    if kind == "added":
        case.spec = replace(settled(replace(case.spec, second=True)), second=False, shown=False, by=("k",))
    case.put(first)
    case.run()
    if kind in ("changed", "twice"):
        case.change(settled(changed(r, case.spec)), history=True)
    elif kind == "converted":
        later = settled(replace(changed(r, case.spec), least=case.spec.least))
        is_added = later.second and not case.spec.second
        try:
            case.change(later, history=False)
        except StateMismatch:
            case.number -= 1
        else:
            if is_added:
                case.shown.clear()  # a step that is added without a history has a table of its own
            case.put([then.pop(0)])
            case.run()
        case.change(later, history=True)  # which fills what the state did not have
    elif kind == "added":
        case.change(settled(replace(case.spec, second=True)), history=False)
        case.shown.clear()
    if kind in ("deleted", "twice") and "k" in case.spec.by:
        if kind == "twice":
            case.put([then.pop(0)])
            case.run()
        case.delete(r.choice(["p", "q"]))
    case.put(then)
    case.run()
    case.check()
