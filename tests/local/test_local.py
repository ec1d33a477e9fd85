"""The local runner at its edges, and what it says of combiners that do not fit the rows."""

from __future__ import annotations

import itertools
import random
import warnings
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from opened import run_script
from seeds import seeds

import uncombine as uc
from uncombine.combiners.rows.plain_types import plain_type
from uncombine.errors import InvalidArgument, TypeMismatch, UncombineError, UnknownColumn

SCHEMA = pa.schema({"ts": pa.timestamp("us", "UTC"), "k": pa.string(), "x": pa.list_(pa.int8())})


@pytest.mark.parametrize("late", ["drop", "duplicate"])
def test_an_empty_script_gives_an_empty_table_of_the_same_columns(late: str) -> None:
    options: dict[str, Any] = {"window": uc.Fixed("1 minute"), "by": "k", "late": late, "n": uc.Count()}
    nothing = run_script([], schema=SCHEMA, **options)
    assert nothing.num_rows == 0
    assert nothing.schema.equals(run_script([uc.Elements([])], schema=SCHEMA, **options).schema)
    assert nothing.counts() == {"dropped": 0, "finished": 0, "unassigned": 0, "bad": 0, "unreadable": 0, "held": 0}
    assert nothing.output_watermarks == nothing.dropped_rows == []
    assert (nothing.left_out.num_rows, nothing.left_out.schema.field("row").type) == (0, pa.struct(list(SCHEMA)))


@pytest.mark.parametrize(
    "combiner",
    [uc.Max("x"), uc.Max("y"), uc.CollectSet("x"), uc.ArgMax("y", by="x"), uc.Min("y").where(uc.col("k") == "a")],
)
def test_a_combiner_that_does_not_fit_is_named_as_it_was_written(combiner: uc.Combiner) -> None:
    with pytest.raises(UncombineError) as found:
        uc.flow(SCHEMA).window(uc.Fixed("1 minute")).combine(m=combiner).run([])
    assert "retractable" not in str(found.value)
    assert repr(combiner).split(".where")[0] in str(found.value)


def test_a_form_that_was_asked_for_is_named_too() -> None:
    with pytest.raises(UncombineError, match="retractable=False"):
        uc.flow(SCHEMA).window(uc.Fixed("1 minute")).combine(m=uc.Max("x", retractable=False)).run([])


def test_rows_are_made_to_fit_the_schema() -> None:
    schema = pa.schema({"ts": pa.timestamp("us", "UTC"), "x": pa.int32()})
    options: dict[str, Any] = {"schema": schema, "window": uc.Fixed("1 minute"), "xs": uc.CollectList("x")}
    script = [
        uc.Elements([{"x": 5, "ts": 0}, {"ts": 1}]),
        uc.Elements([]),
        uc.Elements([{"ts": 2}]),
        uc.Watermark(None),
    ]
    panes = run_script(script, **options)
    assert panes["xs"].to_pylist() == [[5]]
    assert panes.schema.field("xs").type.value_type == pa.int32()
    for value, text in ((2**40, "'x' of entry 0.*int32"), ("a", "'x' of entry 0.*int32")):
        with pytest.raises(TypeMismatch, match=text):
            run_script([uc.Elements([{"ts": 0, "x": value}])], **options)
    with pytest.raises(UnknownColumn, match=r"entry 1 of the script has column 'xx'.*mean 'x'"):
        run_script([uc.Elements([]), uc.Elements([{"ts": 0, "xx": 1}])], **options)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"by": "K", "k": uc.Count()}, "'K' and 'k' differ only by case"),
        ({"by": ("K", "k"), "n": uc.Count()}, "'K' and 'k' differ only by case"),
        ({"n": uc.Count(), "N": uc.Sum("n")}, "'n' and 'N' differ only by case"),
        ({"by": ("k", "k"), "n": uc.Count()}, "'k' is used twice"),
        ({"Pane": uc.Count()}, "'Pane' differs only by case from 'pane', which is a column of every result"),
        ({"by": "x", "n": uc.Count()}, r"'x' is list<item: int8>: name a column"),
        ({"by": "s", "n": uc.Count()}, r"'s' is struct<"),
        ({"by": ("k", "m"), "n": uc.Count()}, r"'m' is map<"),
    ],
)
def test_keys_and_names_that_spark_would_refuse_are_refused(options: dict[str, Any], says: str) -> None:
    more = {"K": pa.string(), "s": pa.struct({"a": pa.list_(pa.int64())}), "m": pa.map_(pa.string(), pa.int64())}
    schema = pa.schema([*SCHEMA, *more.items()])
    with pytest.raises(UncombineError, match=says) as told:
        run_script([], schema=schema, window=uc.Fixed("1 minute"), **options)
    assert "\n" not in str(told.value)


class Stream:
    """A frame of another library: only an Arrow stream."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)


def test_elements_may_be_frames_and_streams() -> None:
    rows = [{"ts": "2016-01-20T12:00:26Z", "x": 5}, {"ts": "2016-01-20T12:00:40Z", "x": 7}]
    table = pa.Table.from_pylist(rows)
    found = [
        uc.flow([uc.Elements(given), uc.Watermark(None)]).window(uc.Fixed("1 minute")).combine(total=uc.Sum("x")).run()
        for given in (rows, table, table.to_pandas(), table.to_batches()[0], table.to_reader(), Stream(table))
    ]
    assert found[0]["total"].to_pylist() == [12]
    assert all(result == found[0] for result in found)
    with pytest.raises(InvalidArgument, match="must be a list of dicts, an Arrow table or a DataFrame"):
        uc.flow([uc.Elements(5)]).window(uc.Fixed("1 minute")).combine(n=uc.Count()).run()


def test_flat_results_have_plain_columns() -> None:
    script = [uc.Elements([{"ts": 0, "x": 5}, {"ts": 60_000_000, "x": 7}], at=90_000_000), uc.Watermark(None)]
    result = uc.flow(script).window(uc.Fixed("1 minute")).combine(total=uc.Sum("x")).run()
    frame = result.to_pandas(flat=True)
    assert list(zip(frame.window_start.dt.minute, frame.window_end.dt.minute, frame.timing, strict=True)) == [
        (0, 1, "ON_TIME"),
        (1, 2, "ON_TIME"),
    ]
    assert not any(isinstance(value, dict) for value in frame.to_numpy().flat)
    assert list(result.to_pandas().columns) == result.column_names
    assert result.table(flat=True).column_names == ["window_start", "window_end", "total", "event_time", "diff"]
    named = uc.flow(script).window(uc.Fixed("1 minute")).combine(timing=uc.Sum("x")).run()
    with pytest.raises(InvalidArgument, match="flat=True gives a column 'timing', which the result has already"):
        named.to_pandas(flat=True)


@pytest.mark.parametrize("window", [uc.Fixed("1 hour"), uc.Sessions("15 minutes")])
def test_a_table_of_panes_that_do_not_retract_is_warned_of(window: uc.Window) -> None:
    clicks = [0, 10, 30, 20]  # the last one joins two sessions
    script = [uc.Elements([{"ts": f"2024-05-01T12:{minute:02}:00Z"}]) for minute in clicks]
    shown = {"window": window, "trigger": uc.Always(), "allowed_lateness": "1 day", "n": uc.Count()}
    with pytest.warns(UserWarning, match="use mode='retracting'"):
        assert run_script(script, **shown).table().num_rows > 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert run_script(script, **shown, mode="retracting").table()["n"].to_pylist() == [4]
        once = uc.flow([*script, uc.Watermark(None)]).window(window).combine(n=uc.Count()).run()
        assert once.table()["n"].to_pylist() == [4]


@pytest.mark.parametrize("seed", seeds(40))
def test_dictionaries_give_what_their_values_give(seed: int) -> None:
    """Values may be repeated, null, of any type, others in each chunk, and more than an index of 8 bits has."""
    r = random.Random(seed)
    texts = [f"user {i}" for i in range(r.choice([3, 100]))]
    kind, known = r.choice([(pa.string(), texts), (pa.date32(), [0, 1, 2]), (pa.decimal128(9, 1), [Decimal("0.5")])])

    def chunk() -> pa.DictionaryArray:
        some = [f"{value} {r.random()}" if kind == pa.string() else value for value in known]
        values = pa.array([*some, None, *some] if r.random() < 0.5 else some, kind)
        places = [r.choice([None, *range(min(len(values), 128))]) for _ in range(r.choice([0, 5, 90]))]
        return pa.DictionaryArray.from_arrays(pa.array(places, pa.int8()), values)

    def entry() -> pa.Table:
        column = pa.chunked_array([chunk(), chunk()])
        times = pa.array(range(len(column)), pa.int64()).cast(pa.timestamp("us", "UTC"))
        return pa.table({"ts": times, "k": column})

    coded = [entry(), entry()]
    plain = [table.set_column(1, "k", table["k"].cast(kind)) for table in coded]
    options: dict[str, Any] = {"by": "k", "n": uc.Count(), "some": uc.Count("k"), "last": uc.Max("k")}
    found, want = (
        run_script([*map(uc.Elements, tables), uc.Watermark(None)], window=uc.Fixed("30 us"), **options)
        for tables in (coded, plain)
    )
    assert sorted(map(repr, found.to_pylist())) == sorted(map(repr, want.to_pylist()))


class Inside:
    """Random dictionaries inside lists, structs and maps, as Polars and DuckDB give them."""

    def __init__(self, seed: int) -> None:
        self.r = random.Random(seed)
        self.kind = self.r.choice([pa.string(), pa.large_string(), pa.string_view(), pa.int64()])
        self.form = self.r.choice([self.structs, self.lists, self.large_lists, self.fixed_lists, self.maps, self.deep])

    def texts(self, count: int) -> pa.DictionaryArray:
        """Values of which some are null, in the dictionary or outside it, repeated, or without a row."""
        known = ["a", None, "b", "", "a"] if self.kind != pa.int64() else [1, None, 2, 1]
        some = self.r.sample(known, self.r.randint(1, len(known)))
        places = [self.r.choice([None, *range(len(some))]) for _ in range(count)]
        return pa.DictionaryArray.from_arrays(pa.array(places, pa.int8()), pa.array(some, self.kind))

    def nulls(self, count: int) -> pa.Array:
        return pa.array([self.r.random() < 0.2 for _ in range(count)], pa.bool_())

    def ends(self, count: int) -> list[int]:
        return [0, *itertools.accumulate(self.r.choice([0, 1, 2]) for _ in range(count))]

    def structs(self, count: int) -> pa.Array:
        return pa.StructArray.from_arrays([self.texts(count)], names=["a"], mask=self.nulls(count))

    def lists(self, count: int, large: bool = False) -> pa.Array:
        ends, of = self.ends(count), pa.LargeListArray if large else pa.ListArray
        kind = pa.int64() if large else pa.int32()
        return of.from_arrays(pa.array(ends, kind), self.texts(ends[-1]), mask=self.nulls(count))

    def large_lists(self, count: int) -> pa.Array:
        return self.lists(count, large=True)

    def fixed_lists(self, count: int) -> pa.Array:
        return pa.FixedSizeListArray.from_arrays(self.texts(2 * count), 2)

    def maps(self, count: int) -> pa.Array:
        ends = self.ends(count)
        return pa.MapArray.from_arrays(ends, pa.array(map(str, range(ends[-1])), pa.string()), self.texts(ends[-1]))

    def deep(self, count: int) -> pa.Array:
        ends = self.ends(count)
        return pa.ListArray.from_arrays(ends, self.structs(ends[-1]))

    def table(self) -> pa.Table:
        """Rows in two chunks, of which each is a part of a longer array."""
        chunks = [self.form(count + 2).slice(1, count) for count in (self.r.choice([0, 3]), self.r.choice([1, 6]))]
        column = pa.chunked_array(chunks)
        times = pa.array(range(len(column)), pa.int64()).cast(pa.timestamp("us", "UTC"))
        return pa.table({"ts": times, "k": column, "x": list(range(len(column)))})


@pytest.mark.parametrize("seed", seeds(40))
def test_dictionaries_inside_others_give_what_their_values_give(seed: int) -> None:
    inside = Inside(seed)
    coded = [inside.table(), inside.table()]
    plain = []
    for table in coded:
        values = pa.array(table["k"].to_pylist(), plain_type(table.schema.field("k").type))
        plain.append(table.set_column(1, "k", values))
    flows: list[Any] = [
        lambda flow: flow.in_order(),
        lambda flow: flow.distinct("x", within="1 hour"),
        lambda flow: flow.join(flow.select("ts", "x"), on="x", within=("0 seconds", "1 hour"), how="left"),
        lambda flow: flow.window(uc.Fixed("3 us")).combine(n=uc.Count("k"), null=uc.CountIf(uc.col("k").is_null())),
    ]
    if pa.types.is_struct(coded[0].schema.field("k").type):
        flows.append(lambda flow: flow.window(uc.Sessions("2 us")).combine(by="k", all=uc.CollectList("k")))
        flows.append(lambda flow: flow.where(uc.col("k").field("a").is_null()))
    for build in flows:
        found, want = (
            build(uc.flow(tables[0].schema)).run([*map(uc.Elements, tables), uc.Watermark(None)])
            for tables in (coded, plain)
        )
        assert found.panes.schema.equals(want.panes.schema)
        assert sorted(map(repr, found.to_pylist())) == sorted(map(repr, want.to_pylist()))
