"""A method that flows do not have is refused with the words to write instead, also between `window` and `combine`."""

from __future__ import annotations

import pickle
import statistics
import types
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import uncombine as uc
from uncombine import advice
from uncombine.errors import InvalidArgument, NoSuchStep, UnknownName

ROWS = uc.flow(pa.schema({"ts": pa.timestamp("us", "UTC"), "user": pa.string(), "x": pa.int64()}))


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("toPandas", "a flow has no toPandas: write flow.to_pandas(), or flow.df.toPandas() on Spark"),
        ("groupBy", r"a flow has no groupBy: write flow.combine(by=...), or flow.window(...).combine(by=...)"),
        ("mean", "a flow has no mean: write flow.combine(total=uc.Sum('x')), or flow.window(...)"),
        ("limit", "a flow has no limit: write flow.head(n), or flow.df.limit(n) on Spark"),
        ("dropDuplicates", "a flow has no dropDuplicates: write flow.distinct("),
        ("sort_values", "a flow has no sort_values: write flow.in_order(by=...)"),
        ("merge", "a flow has no merge: write flow.join(other, on=..., within=...)"),
        ("withColumnRenamed", "a flow has no withColumnRenamed: write flow.rename({'old': 'new'})"),
        ("dropna", "a flow has no dropna: write flow.where(uc.col('x').is_not_null())"),
        ("keyBy", "a flow has no keyBy: give by= to flow.window(...).combine(by=..., ...)"),
        ("resample", "a flow has no resample: write flow.window(uc.Fixed('1 minute')).combine(...)"),
        ("execute", "a flow has no execute: write flow.run() in this process"),
    ],
)
def test_a_flow_names_what_to_write(name: str, says: str) -> None:
    with pytest.raises(NoSuchStep) as refused:
        getattr(ROWS, name)
    assert str(refused.value).startswith(says)


FIRST = "before its rows are combined: write flow.window(...).combine(...) first"


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("count", f"flow.window(...) has no count {FIRST}, then write flow.combine(n=uc.Count())"),
        ("groupBy", "flow.window(...) has no groupBy: write flow.combine(by=...), or flow.window(...).combine(by=...)"),
        ("trigger", "flow.window(...) has no trigger: give trigger= to flow.window(...)"),
        *(
            (name, f"flow.window(...) has no {name} {FIRST}")
            for name in ("df", "schema", "where", "filter", "show", "window")
        ),
    ],
)
def test_windows_without_combine_name_what_to_write(name: str, says: str) -> None:
    with pytest.raises(NoSuchStep) as refused:
        getattr(ROWS.window(uc.Global()), name)
    assert str(refused.value) == says


def test_every_step_of_a_flow_has_a_hint_before_combine() -> None:
    windowed = ROWS.window(uc.Global())
    assert [name for name in dir(windowed) if not name.startswith("_")] == ["combine"]
    for name in {*dir(ROWS), "filter", "assign"} - {"combine"}:
        with pytest.raises(NoSuchStep):
            getattr(windowed, name)


@pytest.mark.parametrize("value", [ROWS, ROWS.window(uc.Global())])
def test_an_unknown_name_is_an_attribute_error(value: object) -> None:
    assert not hasattr(value, "bogus")
    with pytest.raises(AttributeError, match="object has no attribute 'bogus'"):
        value.bogus  # type: ignore[attr-defined]


def test_an_error_inside_a_property_is_shown_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: object, flow: object) -> object:
        return None.columns  # type: ignore[attr-defined]

    monkeypatch.setattr(type(ROWS.source), "df", broken)
    with pytest.raises(AttributeError, match="'NoneType' object has no attribute 'columns'"):
        ROWS.df


@pytest.mark.parametrize("by", [["user"], ("user",), iter(["user"]), (uc.col(n) for n in ["user"]), uc.col("user")])
def test_keys_may_be_any_iterable_of_names_and_columns(by: object) -> None:
    counted = ROWS.window(uc.Global()).combine(by=by, n=uc.Count())  # type: ignore[arg-type]
    assert counted.schema.names[:2] == ["user", "window"]


@pytest.mark.parametrize("kind", [pa.timestamp("us", "UTC"), pa.timestamp("us")])
@pytest.mark.parametrize("text", ["2024-05-01T12:01:00", "2024-05-01T12:01:00Z", "2024-05-01T14:01:00+02:00"])
def test_a_watermark_column_takes_text_as_the_time_column_does(kind: pa.DataType, text: str) -> None:
    schema = pa.schema({"ts": pa.timestamp("us", "UTC"), "until": kind})
    rows = uc.flow(schema, watermark=uc.Punctuated("until"))
    counted = rows.window(uc.Fixed("1 minute")).combine(n=uc.Count())
    panes = counted.run([uc.Elements([{"ts": "2024-05-01T12:00:00", "until": text}])])
    assert [row["pane"]["timing"] for row in panes.to_pylist()] == ["ON_TIME"]


def test_a_watermark_column_with_other_text_is_refused() -> None:
    schema = pa.schema({"ts": pa.timestamp("us", "UTC"), "until": pa.timestamp("us", "UTC")})
    counted = uc.flow(schema, watermark=uc.Punctuated("until")).window(uc.Fixed("1 minute")).combine(n=uc.Count())
    with pytest.raises(
        uc.errors.InvalidArgument, match="column 'until' of entry 0 of the script: 'soon' is not an ISO"
    ):
        counted.run([uc.Elements([{"ts": "2024-05-01T12:00:00", "until": "soon"}])])


TABLE = pa.table({"ts": ["2016-01-20T12:00:26Z"], "user": ["ada"], "x": [5]})
SOURCE = uc.flow(TABLE)
MINUTES = SOURCE.window(uc.Fixed("1 minute"))


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (
            lambda: MINUTES.combine(uc.Count()),
            "by= takes names of columns, but was given Count(): a combiner comes after",
        ),
        (
            lambda: MINUTES.combine("user", uc.Count()),
            "combine() takes combiners by name, but was given Count() without",
        ),
        (lambda: MINUTES.combine("user", "x"), "combine() takes one by= and combiners by name, but was also given 'x'"),
        (
            lambda: MINUTES.combine(n=uc.Count),
            "n= takes a combiner such as Sum('x'), but was given the class Count: write",
        ),
        (lambda: uc.aggregate(TABLE, uc.Count()), "by= takes names of columns, but was given Count()"),
        (lambda: uc.aggregate(TABLE, "user", uc.Count()), "aggregate() takes combiners by name, but was given Count()"),
        (
            lambda: uc.aggregate(TABLE, by=5, n=uc.Count()),
            "by= takes the name of a column or several names, but was given 5",
        ),
        (lambda: uc.Sessions("1 minute", period="1 s"), "Sessions() has no option 'period': known are 'gap'"),
        (
            lambda: uc.Sliding("1 minute", every="1 s"),
            "Sliding() has no option 'every': did you mean 'period'?",
        ),
        (
            lambda: SOURCE.rolling("7 days", diff="diff"),
            "rolling() has no option 'diff': give it where the rows come in, as in uc.flow(rows, diff=...)",
        ),
        (
            lambda: SOURCE.distinct("user", watermark="1 hour"),
            "distinct() has no option 'watermark': give it where the rows come in, as in uc.flow(rows, watermark=...)",
        ),
        (lambda: uc.Sum("x", exakt=True), "Sum() has no option 'exakt': did you mean 'exact'?"),
        (
            lambda: uc.CountDistinct(),
            "CountDistinct() needs a column, but was given no arguments: write CountDistinct('x')",
        ),
        (lambda: uc.changelog.Debezium(scheme=1), "Debezium() has no option 'scheme': did you mean 'schema'?"),
        (
            lambda: MINUTES.combine(n=uc.Sum(uc.col("x") > 3)),
            "Sum(col('x') > 3) takes numbers, but col('x') > 3 is bool: count what is true with CountIf(col('x') > 3)",
        ),
        (
            lambda: uc.aggregate({"x": ["1"]}, n=uc.Sum("x")),
            "Sum('x') takes numbers, but 'x' is string: cast it (a column of files has the type that schema=",
        ),
        (
            lambda: uc.aggregate({"yes": [True]}, n=uc.Mean("yes")),
            "Mean('yes') takes numbers, but 'yes' is bool: count what is true with CountIf('yes'), or cast it",
        ),
        (
            lambda: uc.AfterWatermark(erly=uc.AfterCount(1)),
            "AfterWatermark() has no option 'erly': did you mean 'early'?",
        ),
        (lambda: SOURCE.map(lambda df: df.assign(y=1)), "map() calls <lambda> with an Arrow table, not with a pandas"),
        (lambda: SOURCE.map(lambda df: df[df["x"] > 2]), "map() calls <lambda> with an Arrow table, not with a pandas"),
        (lambda: SOURCE.map(lambda df: df.x, remember=True), "map(remember=True) calls <lambda> with an Arrow table"),
        (lambda: SOURCE.where(lambda df: df.x > 2), "where() calls <lambda> with an Arrow table, not with a pandas"),
        (lambda: SOURCE.where(lambda df: df["x"] > 2).schema, "where() calls <lambda> with an Arrow table"),
        (lambda: SOURCE.with_columns(y=lambda df: df["x"] * 2), "with_columns(y=) calls <lambda> with an Arrow table"),
        (lambda: uc.progress(SOURCE), "progress() takes a running query, but was given a Flow: write query = flow.df."),
        (lambda: uc.watch(SOURCE), "watch() takes a running query, but was given a Flow: write query = flow.df."),
        (lambda: uc.flow("/no/data"), "there are no files in /no/data"),
        (lambda: uc.flow(SOURCE), "uc.flow() was given a flow, which needs no other start: use it as it is"),
        (
            lambda: uc.flow(object(), spark="/data"),
            "spark= takes a session, such as uc.session(), but was given '/data'",
        ),
    ],
)
def test_a_wrong_call_is_refused_in_one_sentence(wrong: Callable[[], object], says: str) -> None:
    with pytest.raises(uc.UncombineError) as refused:
        wrong()
    assert str(refused.value).startswith(says)
    assert "\n" not in str(refused.value)


def test_an_error_of_the_user_stays_as_it_is() -> None:
    with pytest.raises(TypeError, match=r"^unsupported operand"):
        SOURCE.map(lambda table: 1 + "a")  # type: ignore[operator]
    with pytest.raises(AttributeError, match="'int' object has no attribute 'x'"):
        SOURCE.map(lambda table: (1).x)  # type: ignore[attr-defined]


def test_values_take_all_options_of_their_own() -> None:
    class Own(uc.UserTrigger):
        def __init__(self, **options: int) -> None:
            self.options = options

    assert Own(anything=1).options == {"anything": 1}
    assert uc.Sessions(gap="1 minute") == pickle.loads(pickle.dumps(uc.Sessions("1 minute")))


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("Avg", "uc.Mean"),
        ("Tumbling", "uc.Fixed"),
        ("Hopping", "uc.Sliding"),
        ("FixedWindows", "uc.Fixed"),
        ("AfterProcessingTime", "uc.AfterDelay"),
        ("AfterAny", "uc.FirstOf"),
        ("session_windows", "uc.Sessions"),
        ("sum", "uc.Sum"),
        ("CountDistnct", "uc.CountDistinct"),
        ("max_by", "uc.ArgMax"),
    ],
)
def test_a_name_of_another_library_gets_ours(name: str, ours: str) -> None:
    with pytest.raises(UnknownName) as refused:
        getattr(uc, name)
    assert str(refused.value) == f"uncombine has no name {name!r}: did you mean {ours}?"


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("as_arrow_udf", "uc.Accumulator(combiner), which has add, merge, uncombine, extract, udf and register"),
        ("Rolling", "uc.Sliding('10 minutes', '1 minute'), for windows that overlap"),
        ("P99", "uc.Quantile('x', 0.99), or uc.ApproxQuantiles('x', [0.99])"),
        ("p50", "uc.Quantile('x', 0.50), or uc.ApproxQuantiles('x', [0.50])"),
        ("P999", "uc.Quantile('x', 0.999), or uc.ApproxQuantiles('x', [0.999])"),
    ],
)
def test_a_name_of_several_of_ours_says_what_to_write(name: str, write: str) -> None:
    with pytest.raises(UnknownName) as refused:
        getattr(uc, name)
    assert str(refused.value) == f"uncombine has no name {name!r}: write {write}"


def spark_column(text: str) -> object:
    """An aggregate as it prints itself; `F.sum` of Spark needs a session."""
    return type("Column", (), {"__repr__": lambda _: text})()


@pytest.mark.parametrize(
    ("value", "write"),
    [
        ("sum", "uc.Sum('x')"),
        ("nunique", "uc.CountDistinct('x')"),
        ("count", "uc.Count()"),
        (len, "uc.Count()"),
        (max, "uc.Max('x')"),
        (np.mean, "uc.Mean('x')"),
        (statistics.median, "uc.Median('x')"),
        (("x", "sum"), "uc.Sum('x')"),
        (("x", len), "uc.Count()"),
        (spark_column("Column<'avg(x)'>"), "uc.Mean('x')"),
        (spark_column("Column<'max(x) AS most'>"), "uc.Max('x')"),
        (spark_column("Column<'count(1)'>"), "uc.Count()"),
        (spark_column('col("x").sum()'), "uc.Sum('x')"),
        (uc.col("x"), "uc.Sum(col('x')), or another combiner of it"),
    ],
)
def test_an_aggregate_of_another_library_gets_ours(value: object, write: str) -> None:
    said = f"n= takes a combiner such as Sum('x'), but was given {value!r}: write {write}"
    for wrong in (lambda: MINUTES.combine(n=value), lambda: uc.aggregate(TABLE, n=value)):  # type: ignore[arg-type]
        with pytest.raises(InvalidArgument) as refused:
            wrong()
        assert str(refused.value) == said
    ours = eval(write.partition(", or")[0], {"uc": uc, "col": uc.col})
    assert MINUTES.combine(n=ours).run().num_rows == 1, "what it says can be written"


def test_what_no_combiner_stands_for_gets_no_advice() -> None:
    for value in ("score", lambda x: x, 3, None):
        with pytest.raises(InvalidArgument, match=r"^n= takes a combiner such as Sum\('x'\), but was given [^:]*$"):
            MINUTES.combine(n=value)  # type: ignore[arg-type]


def test_an_aggregate_of_spark_gets_ours(spark: SparkSession) -> None:
    with pytest.raises(InvalidArgument, match=r"but was given Column<'sum\(x\)'>: write uc.Sum\('x'\)$"):
        MINUTES.combine(n=F.sum("x"))  # type: ignore[arg-type]


def test_a_name_of_nothing_is_an_attribute_error() -> None:
    assert not hasattr(uc, "bogus")
    assert not hasattr(uc, "__wrapped__")
    with pytest.raises(UnknownName, match=r"^uncombine has no name 'qqq'$"):
        uc.qqq


def test_every_name_that_a_hint_gives_is_there() -> None:
    assert [ours for ours in advice._OURS if not hasattr(uc, ours)] == []
    known = [other for others in advice._OURS.values() for other in others.split()]
    assert sorted(known) == sorted(set(known))
    assert [other for other in known if hasattr(uc, other)] == []


@pytest.mark.parametrize("module", [uc, uc.plot, uc.changelog, uc.testing, uc.combiners, uc.windows, uc.panes])
def test_completion_shows_public_names_only(module: types.ModuleType) -> None:
    names = set(dir(module))
    assert set(module.__all__) <= names
    assert not names & {"annotations", "Any", "pa", "np", "TYPE_CHECKING", "import_module", "Sequence", "ON_SPARK"}
    assert all(hasattr(module, name) for name in names)


def test_completion_of_a_flow_shows_its_steps() -> None:
    names = dir(MINUTES.combine(n=uc.Count()))
    assert {"window", "where", "df", "join", "schema", "explain", "collect", "combine"} <= set(names)
    assert not {"stages", "transforms", "source_schema", "_then", "filter", "agg"} & set(names)
