"""State that an earlier version stored is gone on with; formats that are not known are refused."""

from __future__ import annotations

import contextlib
import json
import random
import statistics
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import every
import numpy as np
import pyarrow as pa
import pytest
import stored
from engine import Engine
from pyspark.sql import SparkSession
from pyspark.sql.types import StructField
from seeds import seeds, share
from streams import START, rows_flow

import uncombine as uc
from uncombine.combiners import read_repr
from uncombine.combiners.rows.groups import Groups
from uncombine.errors import StateMismatch
from uncombine.sparkops.stored import codec
from uncombine.sparkops.stored.column_expressions import EXPRESSIONS

expressions = pytest.mark.skipif(not EXPRESSIONS, reason="expressions of accumulators need Spark 4.1")


def test_a_checkpoint_of_an_earlier_version_is_gone_on_with(spark: SparkSession, tmp_path: Path) -> None:
    state = stored.unpacked(stored.CHECKPOINT, tmp_path / "state")
    expected = (state / "panes.jsonl").read_text().splitlines()
    rows = tmp_path / "rows"
    stored.write_batches(stored.batches(), rows, 0)
    stored.at_home(state / "checkpoint", rows)
    found = stored.panes(spark, rows, state / "checkpoint")
    assert [line.replace(',"since":null', "") for line in found] == expected, "a field that panes did not have"
    first = [json.loads(line) for line in expected if json.loads(line)["batch"] == stored.BEFORE]
    for flow in ("minutes", "visits"):
        retracted = [line["row"] for line in first if line["flow"] == flow and line["row"]["diff"] == -1]
        seen = {json.dumps(row["window"]) for row in retracted if row["pane"]["index"] == 0}
        assert seen, "a pane from before the stop is retracted after it"


@pytest.fixture
def days(spark: SparkSession, tmp_path: Path) -> list[Any]:
    """The stored accumulators of both days."""
    folder = stored.unpacked(stored.ACCUMULATORS, tmp_path / "accumulators")
    return [spark.read.parquet(str(folder / str(number))) for number in (1, 2)]


def plain(rows: pa.Table) -> dict[str | None, dict[str, Any]]:
    """The results for each user, computed without the library."""
    out = {}
    for user in {row["user"] for row in rows.to_pylist()}:
        of = [row for row in rows.to_pylist() if row["user"] == user]
        xs, vs = [row["x"] for row in of if row["x"] is not None], [row["v"] for row in of]
        exact = sum(map(Fraction, xs))
        out[user] = {
            "n": len(of),
            "total": float(exact),
            "whole": sum(vs),
            "mean": float(exact / len(xs)),
            "fast": float(Fraction(sum(vs), len(vs))),
            "spread": float(statistics.variance(map(Fraction, vs))),
            "median": float(statistics.median(vs)),
            "most": max(vs),
            "different": len(set(vs)),
            "about": len(set(vs)),
            "top": sorted(vs, reverse=True)[:3],
            "all": sorted(vs),
            "best": max(row["kind"] for row in of if row["v"] == max(vs)),
            "shares": dict(Counter(row["kind"] for row in of)),
        }
    return out


ACCUMULATORS = {
    name: uc.Accumulator(combiner, name, schema=stored.SCHEMA) for name, combiner in stored.COMBINERS.items()
}


def results(df: Any) -> dict[str | None, dict[str, Any]]:
    shown = df.select("user", *(accumulator.extract(name) for name, accumulator in ACCUMULATORS.items()))
    found = {row["user"]: row.asDict() for row in shown.collect()}
    for row in found.values():
        del row["user"]
        row["all"] = sorted(row["all"])
    return found


@expressions
def test_accumulators_of_an_earlier_version_are_merged_and_uncombined(days: list[Any]) -> None:
    """All columns at once, as expressions."""
    first, second = days
    assert {name: uc.Accumulator.read(first, name) for name in first.columns[1:]} == ACCUMULATORS
    both = pa.concat_tables([stored.day(1), stored.day(2)])
    by_user = first.unionByName(second).groupBy("user")
    merged = by_user.agg(*(accumulator.merge(name) for name, accumulator in ACCUMULATORS.items()))
    assert results(merged) == plain(both)
    rows = first.sparkSession.createDataFrame(stored.day(2))
    today = rows.groupBy("user").agg(
        *(a.add(*(a.combiner.bind(stored.SCHEMA).columns or ["user"])) for a in ACCUMULATORS.values())
    )
    for others in (second, today):  # those of today are equal
        renamed = others.toDF("of", *(f"{name}_2" for name in others.columns[1:]))
        joined = merged.join(renamed, merged["user"].eqNullSafe(renamed["of"]), "left")
        left = joined.select("user", *(a.uncombine(name, f"{name}_2") for name, a in ACCUMULATORS.items()))
        assert results(left.where("n.rows > 0")) == plain(stored.day(1))


@pytest.mark.parametrize("name", share(["total", "median", "shares"]))
def test_a_column_of_an_earlier_version_as_a_dataframe(days: list[Any], name: str) -> None:
    """Its metadata names its maker, so the types of the rows need not be given."""
    first, second = days
    accumulator = uc.Accumulator(stored.COMBINERS[name], name)
    merged = accumulator.merge(first.unionByName(second), by="user")
    today = accumulator.add(first.sparkSession.createDataFrame(stored.day(2)), by="user")
    for df, rows in (
        (merged, pa.concat_tables([stored.day(1), stored.day(2)])),
        (accumulator.uncombine(merged, second, by="user"), stored.day(1)),
        (accumulator.uncombine(merged, today, by="user"), stored.day(1)),
    ):
        found = dict(map(tuple, accumulator.extract(df).collect()))
        assert found == {user: row[name] for user, row in plain(rows).items()}


def test_accumulators_of_every_combiner_are_stored_as_they_were() -> None:
    """A column of another type, or of another mark, cannot be merged with those that are stored: it is a new format."""
    written = json.loads(stored.COLUMNS.read_text())
    combiners = {name: read_repr.read_combiner(name) for name in written}
    assert {name: combiner and stored.column_of(combiner) for name, combiner in combiners.items()} == written
    missing = [repr(combiner) for combiner in stored.unstored()]
    assert missing == [], "run tests/support/write_stored.py columns"


def test_a_form_without_a_stored_column_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    new = uc.TopK("x_long", 9)
    monkeypatch.setattr(every, "ONE_OF_EACH", {"old": uc.TopK("x_text", 2), "new": new})
    assert stored.unstored() == [new]


@pytest.mark.parametrize("number", [1, 3, 99])
def test_accumulators_of_a_format_that_is_not_known_are_refused(number: int) -> None:
    """The format is refused by the metadata of the column, or else by the marks of the rows."""
    schema = pa.schema({"x": pa.int64()})
    today = codec.Maker(uc.Sum("x").bind(schema))
    told = (
        f"is stored in format {number}, but this version of uncombine reads format 2: "
        "accumulate the rows again, or use the version of uncombine that wrote it"
    )
    metadata = {codec.KEY: {**today.metadata[codec.KEY], "format": number}}
    with pytest.raises(StateMismatch) as refused:
        codec.maker_of("total", StructField("total", today.spark_type, metadata=metadata), uc.Sum("x"))
    assert str(refused.value) == f"column 'total' {told}"

    column = today.add(Groups.single(2), [pa.array([3, 4])])
    mark = pa.array([codec._mark("Sum('x')", today.inputs, number)])
    as_wide = pa.StructArray.from_arrays([mark, *column.flatten()[1:]], names=[f.name for f in today.type])
    narrower = pa.StructArray.from_arrays([mark, *column.flatten()[1:3]], names=[f.name for f in today.type][:3])
    for other in (as_wide, narrower):
        with pytest.raises(StateMismatch) as refused:
            today.merge(Groups.single(1), other)
        assert str(refused.value) == f"an accumulator of Sum('x') over (x bigint) {told}"


NEWER = (
    b'{"version":6,"token":"t"}\n{}',
    b'{"version": 99, "chunks": [], "made_by": 3}',
    b'{"version":1,"token":"t"}\n\x93 no JSON',
    b"\x93NEW no JSON",
    b"",
)


@pytest.mark.parametrize("manifest", NEWER, ids=repr)
def test_a_state_of_a_format_that_is_not_known_is_refused(manifest: bytes) -> None:
    schema = pa.schema({"ts": pa.timestamp("us", "UTC"), "v": pa.int64()})
    flow = rows_flow(schema, watermark="1 second").window(uc.Fixed("1 minute")).combine(n=uc.Count())
    engine = Engine(flow)
    rows = pa.table([[START], [1]], schema=schema)
    engine.batch(rows, now=START // 1000)
    for handle in engine.store.values():
        handle.states["manifest"]["value"] = (manifest,)
    number = {0: "format 6", 1: "format 99", 2: "format 1"}.get(NEWER.index(manifest), "a format without a number")
    with pytest.raises(StateMismatch) as refused:
        Engine(flow, restored=engine.snapshot()).batch(rows, now=START // 1000)
    assert str(refused.value) == (
        f"the stored state has {number}, but this version of uncombine reads formats 2 to 5: "
        "use the version of uncombine that wrote it, or start from a new checkpoint"
    )


@pytest.mark.weekly
def test_nothing_stored_names_a_module() -> None:
    """Modules may move: what is stored names combiners, windows and triggers by what is written to make them."""
    flow = stored.visits(rows_flow(stored.SCHEMA, watermark="20 seconds", processing_time="at"))
    engine, chunks = Engine(flow), 0
    for batch in stored.batches():
        engine.batch(batch)
        for handle in engine.store.values():
            texts = [handle.states["manifest"]["value"][0]]
            for (value,) in handle.states["chunks"].values():
                if value.startswith(b"\xff\xff\xff\xff"):  # an Arrow stream, compressed
                    table = pa.ipc.open_stream(value).read_all()
                    texts.append(repr((table.schema.to_string(), table.schema.metadata, table.to_pydict())).encode())
                    chunks += 1
            for text in texts:
                assert b"uncombine" not in text
                assert b"pickle" not in text
                assert b"\\x80\\x0" not in text, "a pickle begins so"
    assert chunks > 10


def damaged_columns(r: random.Random, column: pa.StructArray) -> pa.Array:
    """Stored accumulators with other values in one of their fields, in Arrow's right form."""
    place = r.randrange(1, column.type.num_fields)
    fields = column.flatten()
    fields[place] = odd_values(r, fields[place])
    if r.random() < 0.2:
        fields[1] = pa.array(r.choices([0, -1, 2**62, 3], k=len(column)), pa.int64())
    return pa.StructArray.from_arrays(fields, fields=list(column.type))


def odd_values(r: random.Random, values: pa.Array) -> pa.Array:
    kind = values.type
    if r.random() < 0.15:
        return pa.nulls(len(values), kind)
    if pa.types.is_struct(kind):
        parts = values.flatten()
        place = r.randrange(len(parts))
        parts[place] = odd_values(r, parts[place])
        return pa.StructArray.from_arrays(parts, fields=list(kind))
    if pa.types.is_list(kind) and len(values):
        inner = odd_values(r, values.flatten())
        cuts = sorted(r.choices(range(len(inner) + 1), k=len(values) - 1))
        return pa.ListArray.from_arrays(pa.array([0, *cuts, len(inner)], pa.int32()), inner, type=kind)
    drawn = {
        "int": lambda: r.choice([0, -1, 1, 7, 100, 127]),
        "float": lambda: r.choice([float("nan"), float("inf"), -0.0, 1e300, 1.5]),
        "bytes": lambda: r.randbytes(r.choice([0, 1, 7, 64])),
        "text": lambda: r.choice(["", "a", "é" * 9]),
        "flag": lambda: r.random() < 0.5,
    }
    name = next((n for n, is_a in {
        "int": pa.types.is_integer, "float": pa.types.is_floating, "flag": pa.types.is_boolean,
        "text": pa.types.is_string, "bytes": pa.types.is_binary,
    }.items() if is_a(kind)), None)  # fmt: skip
    if name is None:
        return values.take(pa.array([r.randrange(len(values)) for _ in values], pa.int64()))
    made = [None if r.random() < 0.1 else drawn[name]() for _ in range(len(values))]
    return pa.array(
        [None if m is not None and name == "int" and m < 0 and "uint" in str(kind) else m for m in made], kind
    )


@pytest.mark.parametrize("seed", seeds(2, 60))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_damaged_accumulators_are_refused_or_give_a_result(seed: int) -> None:
    """A field of a stored accumulator can have any value of its type."""
    r = random.Random(seed)
    for name in sorted(every.ONE_OF_EACH):
        combiner = every.ONE_OF_EACH[name]
        rows = every.rows(6, seed)
        maker = codec.Maker(combiner.bind(rows.schema))
        arrays = [rows[column].combine_chunks() for column in maker.bound.columns]
        good = maker.add(Groups(np.arange(6) // 2, 3), arrays)
        damaged = damaged_columns(r, good)
        with contextlib.suppress(uc.UncombineError):
            maker.extract(damaged)
        with contextlib.suppress(uc.UncombineError):
            maker.nothing(damaged)
        with contextlib.suppress(uc.UncombineError):
            maker.extract(maker.merge(Groups.single(3), damaged))


METADATA = [
    None,
    "x",
    [],
    {},
    1,
    True,
    "[" * 5000,
    '{"type":"struct"}',
    '{"type":"struct","fields":[1]}',
    "x" * 200_000,
]


@pytest.mark.parametrize("part", ["combiner", "input", "made_by", "format", None])
def test_metadata_that_was_not_written_here_is_refused(part: str | None) -> None:
    today = codec.Maker(uc.Sum("x").bind(pa.schema({"x": pa.int64()})))
    for value in METADATA:
        made_by = value if part is None else {**today.metadata[codec.KEY], part: value}
        if part is None and value is None:
            continue
        field = StructField("total", today.spark_type, metadata={codec.KEY: made_by})
        with pytest.raises(StateMismatch, match=r"^(the metadata of )?column 'total'") as refused:
            codec.maker_of("total", field, uc.Sum("x"))
        assert len(str(refused.value)) < 1500
        with contextlib.suppress(StateMismatch):
            assert codec.combiner_of("total", field) == uc.Sum("x")


COSTLY = ["Sum('x' * 1500000000)", "-" * 5000 + "x", "(" * 5000 + "1" + ")" * 5000, "'%1400000000d' % 1", "2**10**9"]
COSTLY += ["Sum('%1400000000d' % 1)", "Sum(" * 2000 + "'x'" + ")" * 2000, "9" * 6000, "[" * 3000, "Sum('x' + 'y')"]
COSTLY += [
    "Sum('x')" + ".where(col('a') > 1)" * 3000,
    "x" * 200_000,
    "Sum(-'x')",
    "\0",
    "Sum((1, 2) * 10**9)",
    "1 << 10**10",
]


@pytest.mark.parametrize("text", COSTLY, ids=lambda text: text[:20])
def test_names_that_cost_too_much_are_no_combiners(text: str) -> None:
    assert read_repr.read_combiner(text) is None


@pytest.mark.parametrize("seed", seeds(1, 40))
def test_names_with_damage_are_combiners_or_none(seed: int) -> None:
    r, names = random.Random(seed), [repr(combiner) for combiner in every.ONE_OF_EACH.values()]
    pieces = [
        "'x'",
        "*",
        "%",
        "-",
        "(",
        ")",
        "[",
        ".where(",
        "col('x')",
        "10**9",
        "99999999999",
        "~",
        ",",
        "**",
        "é",
        "\ud800",
    ]
    for _ in range(250):
        text = r.choice(names)
        for _ in range(r.randrange(1, 4)):
            at = r.randrange(len(text) + 1)
            text = text[:at] + r.choice(pieces) + text[at + r.choice([0, 0, 1, 5]) :]
        made = read_repr.read_combiner(text)
        assert made is None or repr(made) == text
