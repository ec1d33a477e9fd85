"""Texts and lists of any layout and any size: what is computed of them is what is computed of plain ones."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from opened import run_script
from pipelines import Stage, pipeline
from seeds import seeds

import uncombine as uc
from uncombine.combiners.rows.plain_types import plain_type
from uncombine.errors import OutOfRange
from uncombine.panes.grouping.final_panes import Final
from uncombine.panes.grouping.grouping import Grouping

aggregation = sys.modules["uncombine.combiners.aggregate"]
ROWS = 60
WORDS = pa.array([None if i % 13 == 0 else f"wörd {i * 7 % 11}" for i in range(ROWS)])
BYTES = WORDS.cast(pa.binary())
LISTS = pa.array([None if i % 9 == 0 else [f"{j}" for j in range(i % 4)] for i in range(ROWS)], pa.list_(pa.string()))
NUMBERS = pa.array([i * 5 % 17 for i in range(ROWS)])
STRUCTS = pa.StructArray.from_arrays([WORDS, NUMBERS], ["a", "b"])

UUIDS = pa.array([None if i % 13 == 0 else bytes([i * 7 % 11] * 16) for i in range(ROWS)], pa.binary(16))

KINDS: list[tuple[pa.Array, pa.DataType]] = [
    (WORDS, pa.string_view()),
    (WORDS, pa.large_string()),
    (WORDS, pa.dictionary(pa.int32(), pa.large_string())),
    (BYTES, pa.binary_view()),
    (BYTES, pa.large_binary()),
    (WORDS, pa.dictionary(pa.uint32(), pa.string_view())),
    (BYTES, pa.dictionary(pa.int8(), pa.binary_view())),
    (STRUCTS, pa.struct({"a": pa.string_view(), "b": pa.int64()})),
    (UUIDS, pa.uuid()),
]
LAYOUTS: list[tuple[pa.Array, pa.DataType]] = [
    (LISTS, pa.large_list(pa.string())),
    (LISTS, pa.large_list(pa.large_string())),
    (LISTS, pa.list_(pa.string_view())),
]


def named(value: Any) -> str:
    return str(value) if isinstance(value, pa.DataType) else ""


SORTED: dict[str, uc.Combiner] = {
    "count": uc.Count("v"),
    "least": uc.Min("v"),
    "greatest": uc.Max("v"),
    "different": uc.CountDistinct("v"),
    "pairs": uc.CountDistinct(["v", "n"]),
    "collected": uc.CollectList("v"),
    "set": uc.CollectSet("v"),
    "often": uc.Mode("v"),
    "top": uc.TopK("v", 3),
    "at": uc.ArgMax("v", by="n"),
    "of": uc.ArgMax("n", by="v"),
    "some": uc.Count("v").where(uc.col("n") > 5),
    "known": uc.CountIf(uc.col("v").is_null()),
    "each": uc.PerKey(uc.Count(), by="v"),
    "hash": uc.Fingerprint("v"),
    "about": uc.ApproxCountDistinct("v"),
}
NESTED = ["count", "known", "hash", "some"]


def results(column: Any, by: bool, names: list[str], diff: str | None = None) -> pa.Table:
    weights = np.tile([1, 2, 1, 1], ROWS // 4)
    table = pa.table({"v": column, "n": NUMBERS, "k": column if by else NUMBERS, "diff": weights})
    chosen = {name: SORTED[name] for name in names}
    return uc.aggregate(table, by="k", diff=diff, **chosen)


@pytest.mark.weekly
@pytest.mark.parametrize(("plain", "kind"), [*KINDS, *LAYOUTS], ids=named)
@pytest.mark.parametrize("diff", [None, "diff"])
def test_large_types_and_views_give_what_plain_ones_give(plain: pa.Array, kind: pa.DataType, diff: str | None) -> None:
    nested = pa.types.is_nested(kind)
    names = NESTED if pa.types.is_list(kind) or pa.types.is_large_list(kind) else list(SORTED)
    if nested and names is not NESTED:
        names = [name for name in names if name not in ("often", "about")]
    column = pa.array(plain.to_pylist(), kind.value_type).dictionary_encode() if pa.types.is_dictionary(kind) else None
    column = plain.cast(kind) if column is None else column
    found = results(column, False, names, diff)
    assert found.equals(results(plain, False, names, diff))
    if not (pa.types.is_list(plain.type)):
        assert results(column, True, names, diff).equals(results(plain, True, names, diff))


@pytest.mark.parametrize(("plain", "kind"), [*KINDS, *LAYOUTS], ids=named)
def test_plain_types(plain: pa.Array, kind: pa.DataType) -> None:
    assert plain_type(kind) == plain.type
    assert plain_type(plain.type) == plain.type


@pytest.mark.parametrize(("plain", "kind"), KINDS[:2], ids=named)
def test_local_runs_and_bound_combiners(plain: pa.Array, kind: pa.DataType) -> None:
    def run(column: pa.Array, schema: pa.Schema | None = None) -> pa.Table:
        rows = pa.table({"ts": pa.array(range(ROWS)).cast(pa.timestamp("us", "UTC")), "v": column})
        script = [uc.Elements(rows.slice(0, 20)), uc.Elements(rows.slice(20)), uc.Watermark(None)]
        options = {"window": uc.Fixed("1 minute"), "by": "v", "n": uc.Count(), "most": uc.Max("v")}
        return run_script(script, schema=schema, **options).panes

    assert run(plain.cast(kind)).equals(run(plain))
    told = pa.schema([("ts", pa.timestamp("us", "UTC")), ("v", kind)])
    assert run(plain, told).equals(run(plain))
    bound = uc.Max("v").bind(pa.schema({"v": kind}))
    assert bound.output == pa.string()
    assert bound.result(bound.accumulate({"v": ["a", "c", "b"]})) == "c"


@pytest.mark.parametrize(("plain", "kind"), [KINDS[0], KINDS[1], KINDS[4]], ids=named)
def test_groupings_of_rows_that_come_so(plain: pa.Array, kind: pa.DataType) -> None:
    """A function between stages may give any type, and so may a task's rows."""
    times = pa.array(range(ROWS)).cast(pa.timestamp("us", "UTC"))

    def final(column: pa.Array) -> list[dict[str, Any]]:
        rows = pa.table({"ts": times, "v": column})
        grouping = Grouping({"n": uc.Count(), "most": uc.Max("v")}, uc.Fixed("1 minute"), by=("v",))
        ended = Final(grouping, rows.schema)
        panes = ended.panes(ended.merged([parcel for _, parcel in ended.lift(3)(rows)]))
        assert panes.schema.field("v").type == plain.type
        return sorted(panes.select(["v", "n", "most"]).to_pylist(), key=repr)

    def staged(to: pa.DataType) -> pa.Table:
        def cast(panes: pa.Table) -> pa.Table:
            return panes.set_column(panes.column_names.index("v"), "v", panes["v"].cast(to))

        script = [uc.Elements(pa.table({"ts": times, "v": plain})), uc.Watermark(None)]
        first = Stage(uc.Fixed("1 minute"), by="v", n=uc.Count(), then=cast)
        second = Stage(uc.Fixed("1 hour"), by="v", n=uc.Sum("n"), most=uc.Max("v"))
        return pipeline([first, second], script).panes

    assert final(plain.cast(kind)) == final(plain)
    assert staged(kind).equals(staged(plain.type))


@pytest.mark.parametrize("seed", seeds(5))
@pytest.mark.parametrize("diff", [None, "diff"])
def test_pieces_give_what_one_pass_gives(seed: int, diff: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The path of columns beyond 2 GiB, with a lower limit."""
    rng = np.random.default_rng(seed)
    count = 300
    words = pa.array(["" if i % 7 == 0 else "wörd" * (i % 5) for i in rng.integers(0, 40, count)])
    v = pa.chunked_array([words.slice(0, 100), words.slice(100, 0), words.slice(100)])
    weights = rng.integers(0, 3, count)
    table = pa.table({"v": v, "n": rng.integers(0, 20, count), "k": rng.integers(0, 5, count), "diff": weights})
    calls: list[int] = []
    original = aggregation._State.of

    def counted(*args: Any) -> Any:
        calls.append(1)
        return original(*args)

    for by in ("k", ["k", "v"], []):
        whole = uc.aggregate(table, by=by, diff=diff, **SORTED)
        calls.clear()
        with monkeypatch.context() as lower:
            lower.setattr(aggregation, "PIECE_BYTES", 300)
            lower.setattr(aggregation._State, "of", counted)
            pieces = uc.aggregate(table, by=by, diff=diff, **SORTED)
        assert len(calls) > 3
        assert pieces.equals(whole)


def repeated(text: str, rows: int, size: int) -> pa.ChunkedArray:
    """A column of `size` bytes in all, whose chunks are one and the same."""
    chunk = pa.array([text] * rows)
    return pa.chunked_array([chunk] * (size // (len(text.encode()) * rows) + 1))


@pytest.mark.soak
def test_a_column_of_more_than_2_gib() -> None:
    v = repeated("é" * 512, 1 << 14, (2 << 30) + (100 << 20))
    table = pa.table({"v": v, "k": np.arange(len(v)) % 3})
    found = uc.aggregate(
        table, n=uc.Count("v"), most=uc.Max("v"), least=uc.Min("v"), different=uc.CountDistinct("v"),
        often=uc.Mode("v"), top=uc.TopK("v", 2), hash=uc.Fingerprint("v"), some=uc.Count("v").where(uc.col("k") == 1),
    )  # fmt: skip
    (row,) = found.drop_columns("hash").to_pylist()
    text = "é" * 512
    assert row == {
        "n": len(v), "most": text, "least": text, "different": 1, "often": text, "top": [text] * 2,
        "some": len(v) // 3 + (len(v) % 3 > 1),
    }  # fmt: skip
    assert uc.aggregate(table, by="v", n=uc.Count()).to_pylist() == [{"v": text, "n": len(v)}]
    assert uc.aggregate(table, by=["k", "v"], diff="k", n=uc.Count()).num_rows == 2


@pytest.mark.soak
def test_results_of_more_than_2_gib_are_refused_in_a_sentence() -> None:
    v = repeated("x" * 4096, 1 << 12, (2 << 30) + (100 << 20))
    with pytest.raises(OutOfRange, match="take more than 2 GiB"):
        uc.aggregate(pa.table({"v": v}), all=uc.CollectList("v"))
    groups = pa.table({"v": v, "k": range(len(v))})
    with pytest.raises(OutOfRange, match="take more than 2 GiB"):
        uc.aggregate(groups, by="k", most=uc.Max("v"))


def test_what_outgrows_its_offsets_is_told_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(arrays: Any) -> pa.Array:
        raise pa.ArrowInvalid("offset overflow while concatenating arrays, consider casting input")

    monkeypatch.setattr("uncombine.combiners.rows.columns.pa.concat_arrays", full)
    with pytest.raises(OutOfRange, match="take more than 2 GiB"):
        uc.aggregate(pa.table({"v": pa.chunked_array([["a"], ["b"]])}), n=uc.Max("v"))


def test_intervals_of_pandas_are_structs() -> None:
    """A category of intervals, as `pandas.cut` makes it, is a dictionary of values of an extension type."""
    frame = pd.DataFrame({"ts": pd.to_datetime(range(4), unit="s", utc=True), "x": [1, 5, 9, 20]})
    frame["k"] = pd.cut(frame["x"], [0, 4, 10])
    expected = [({"left": 0, "right": 4}, 1), ({"left": 4, "right": 10}, 2), (None, 1)]
    flow = uc.flow(frame)
    panes = flow.window(uc.Fixed("1 minute")).combine(by="k", n=uc.Count(), most=uc.Max("k")).run()
    for found in (uc.aggregate(frame, by="k", n=uc.Count(), most=uc.Max("k")), panes):
        rows = [(row["k"], row["n"], row["most"]) for row in found.to_pylist()]
        assert sorted(rows, key=repr) == sorted(((k, n, k) for k, n in expected), key=repr)
    assert flow.window(uc.Fixed("1 minute")).combine(n=uc.Count()).run()["n"].to_pylist() == [4]
