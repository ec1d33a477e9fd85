"""Texts of keys that files have as dictionaries stay dictionaries until they are grouped."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from combining import drawn_combining
from engine import Engine
from seeds import seeds
from streams import START, in_order, rows_flow

import uncombine as uc
from uncombine.combiners.rows.columns import joined_tables
from uncombine.files.reading import FileFormat, Split, read
from uncombine.panes.grouping.grouping import Grouping
from uncombine.sparkops.routes.streaming import StreamRoute
from uncombine.sparkops.routes.tasks import LiftFinal, MergeFinal
from uncombine.sparkops.scans.faster import RenamingTask

SCHEMA = pa.schema({"k": pa.string(), "j": pa.string(), "ts": pa.timestamp("us", "UTC"), "x": pa.int64()})
KEYS = frozenset({"k", "j"})


def rows(seed: int, count: int = 300) -> pa.Table:
    rng = np.random.default_rng(seed)
    texts = pa.array([f"user {i}" for i in range(40)])
    k, j = (texts.take(pa.array(rng.integers(0, n, count), mask=rng.random(count) < 0.1)) for n in (40, 3))
    ts = START + rng.integers(0, 200_000_000, count)
    return pa.table([k, j, ts, rng.integers(0, 9, count)], names=SCHEMA.names).cast(SCHEMA)


def files(folder: Path) -> list[Split]:
    """Files of the same columns: texts in dictionaries, in none, in one that has a null, and long ones."""
    tables = [rows(seed) for seed in range(5)]
    pq.write_table(rows(0, 900), folder / "0.parquet", row_group_size=300)
    pq.write_table(tables[1], folder / "1.parquet", use_dictionary=False)
    long = pa.array(["x" * 2_000, None, "user 1"]).take(pa.array(np.arange(300) % 3))
    pq.write_table(tables[2].set_column(0, "k", long), folder / "2.parquet")
    pq.write_table(tables[3], folder / "3.parquet")
    null = pa.DictionaryArray.from_arrays(pa.array(np.arange(300) % 2, pa.int8()), pa.array(["user 1", None]))
    pq.write_table(tables[4].set_column(0, "k", null.cast(pa.string()).dictionary_encode()), folder / "4.parquet")
    return [Split(str(folder / f"{i}.parquet")) for i in range(5)]


def bad(path: str, reason: str) -> None:
    raise AssertionError(reason)


def test_short_texts_in_dictionaries_stay_there(tmp_path: Path) -> None:
    given = files(tmp_path)
    form = FileFormat("parquet", SCHEMA, str(tmp_path), coded=KEYS)
    kinds = []
    for split in given:
        table = joined_tables(list(read(form, [split], bad)))
        plain = joined_tables(list(read(replace(form, coded=frozenset()), [split], bad)))
        assert plain.schema.types == SCHEMA.types
        assert table.to_pylist() == plain.to_pylist()
        kinds.append([pa.types.is_dictionary(kind) for kind in table.schema.types])
    assert kinds[:3] == [[True, True, False, False], [False] * 4, [False, True, False, False]]
    filtered = replace(form, filter=uc.col("x") > 3, columns=("k", "x"))
    (some,) = read(filtered, given[:1], bad)
    assert (pa.types.is_dictionary(some.schema.field("k").type), min(some["x"].to_pylist())) == (True, 4)


@pytest.mark.weekly
@pytest.mark.parametrize(
    "window", [uc.Fixed("1 minute"), uc.Sliding("1 minute", "20 seconds"), uc.Sessions("1 second")]
)
@pytest.mark.parametrize("seed", seeds(3))
def test_final_panes_do_not_depend_on_the_form_of_texts(window: uc.Window, seed: int, tmp_path: Path) -> None:
    grouping = Grouping({"n": uc.Count(), "total": uc.Sum("x")}, window, by=("j", "k"))
    lift, merge = LiftFinal(grouping, SCHEMA, (), (0, 1)), MergeFinal(grouping, SCHEMA)
    assert lift.coded == KEYS
    given, form = files(tmp_path), FileFormat("parquet", SCHEMA, str(tmp_path))
    found = []
    for coded in (frozenset[str](), KEYS):
        with drawn_combining(seed):
            sent = [
                list(lift(read(replace(form, coded=coded), some, bad))) for some in (given[:3], given[3:], given[:1])
            ]
        panes = pa.Table.from_batches(merge([batch for batches in sent for batch in batches]))
        found.append(sorted(map(repr, panes.to_pylist())))
    assert found[0] == found[1]
    assert len(found[0]) > 500


@pytest.mark.weekly
def test_panes_of_a_stream_do_not_depend_on_the_form_of_texts() -> None:
    flow = rows_flow(SCHEMA, "ts", uc.BoundedLag("1 second"), 2).window(uc.Fixed("1 minute")).combine("k", n=uc.Count())
    for seed in range(3):
        plain, coded, found = Engine(flow, seed), Engine(flow, seed), list[Any]()
        for i in range(3):
            table = rows(seed + i)
            other = table.set_column(0, "k", table["k"].dictionary_encode())
            with drawn_combining(seed):
                for engine, some in ((plain, [table, table]), (coded, [other, table])):
                    panes, _ = engine.batch(some, START // 1000 + i)
                    found.append(in_order(panes.append_column("step", pa.array([i] * panes.num_rows, pa.int64()))))
        assert found[::2] == found[1::2]


def test_keys_under_other_names_stay_dictionaries() -> None:
    """A column of a file can have several names, of which another is read otherwise."""
    grouping = Grouping({"n": uc.Count(), "most": uc.Max("m")}, uc.Fixed("1 minute"), by=("k", "j"))
    schema = pa.schema([*SCHEMA, pa.field("m", pa.string())])
    lift = LiftFinal(grouping, schema, (), (0,))
    names = ("ts", "k", "j", "m")
    assert RenamingTask(lift, ("ts", "a", "b", "c"), names, None).coded == {"a", "b"}
    assert RenamingTask(lift, ("ts", "a", "b", "b"), names, None).coded == {"a"}
    assert RenamingTask(lift, ("ts", "a", "a", "c"), names, None).coded == {"a"}


def test_only_keys_that_nothing_else_reads_stay_dictionaries() -> None:
    def lift(*transforms: Any, **options: Any) -> LiftFinal:
        options = {"combiners": {"n": uc.Count()}, "window": uc.Fixed("1 minute"), "by": ("k", "j"), **options}
        return LiftFinal(Grouping(**options), SCHEMA, transforms, (0,))

    assert lift().coded == KEYS
    assert lift(combiners={"most": uc.Max("k")}).coded == {"j"}
    assert lift(combiners={"n": uc.Count().where(uc.col("k") == "a")}).coded == {"j"}
    assert lift(window=uc.Sessions("1 minute"), diff="x", mode="retracting").coded == set()  # rows travel as rows

    def stream(strategy: Any = uc.Monotonic(), **options: Any) -> frozenset[str]:  # noqa: B008
        flow = rows_flow(SCHEMA, "ts", strategy, **options.pop("settings", {}))
        beside = options.pop("beside", False)
        if options.pop("moved", False):
            flow = flow.where(uc.col("k") != "a")
        flow = flow.window(uc.Fixed("1 minute"), **options).combine(by=("k", "j"), n=uc.Count())
        route = StreamRoute(flow, flow.source.input, beside)
        return route.lift(route.graph.steps[0], 0).coded

    assert stream() == KEYS
    assert stream(uc.PerSource("k", "1 second")) == {"j"}
    assert stream(moved=True) == set()
    assert stream(beside=True) == set()
    assert stream(trigger=uc.Repeatedly(uc.AfterBytes(10, "k"))) == set()
