"""Advice: our name for what other libraries have under theirs, and what to write instead of a method that is not here.

Guarded by tests/test_advice.py.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from .errors import NoSuchStep, UnknownName


def each(names: str, advice: str) -> dict[str, str]:
    """The same advice for each name, with the name in place of {}."""
    return {name: advice.replace("{}", name) for name in names.split()}


OF_EXPRESSIONS: Mapping[str, str] = {
    **each("isnull isNull isna is_na", "write x.is_null()"),
    **each("notnull notna isNotNull is_valid", "write x.is_not_null()"),
    **each("isnan isNaN", "write x.is_nan()"),
    **each("fillna nvl ifnull coalesce", "write x.fill_null(0), or uc.coalesce(x, y)"),
    "astype": "write x.cast('int64')",
    **each("try_cast to_numeric", "write x.cast('int64', strict=False)"),
    **each("to_datetime to_timestamp strptime from_unixtime", "write x.cast_time('%d.%m.%Y'), or x.cast_time('s')"),
    **each("is_in isIn", "write x.isin([...])"),
    **each("getField get_field getItem get", "write x.field('name')"),
    **each("otherwise when", "write uc.when(condition, then, otherwise)"),
    **each("alias name rename label", "write the name before it, as in with_columns(name=...)"),
    "between": "write (x >= low) & (x <= high)",
    "eqNullSafe": "write (x == y) | (x.is_null() & y.is_null())",
    **each("lower to_lowercase", "write x.str.to_lowercase()"),
    **each("upper to_uppercase", "write x.str.to_uppercase()"),
    **each("strip trim strip_chars", "write x.str.strip_chars()"),
    **each("contains like ilike rlike match", "write x.str.contains('a.c')"),
    **each("startswith startsWith starts_with", "write x.str.starts_with('a')"),
    **each("endswith endsWith ends_with", "write x.str.ends_with('a')"),
    **each("replace replace_all regexp_replace", "write x.str.replace_all('a', 'b', literal=True)"),
    **each("split split_part", "write x.str.split_part(',', 0)"),
    **each("substr substring slice", "write x.str.slice(0, 3)"),
    **each("length len len_chars", "write x.str.len_chars()"),
    **each("concat cat", "write uc.concat(x, y)"),
    **each("year quarter month week day weekday hour minute second date total_seconds", "write x.dt.{}()"),
    **each("date_trunc truncate trunc", "write x.dt.truncate('1 hour')"),
    **each("round floor ceil sqrt exp ln log10 log2 sign sin cos tan", "write x.call('{}')"),
    "log": "write x.call('ln')",
    **each("clip", "write uc.when(x > high, high, x)"),
    **each("map apply map_elements", "write a function of an Arrow table, such as lambda rows: pc.ln(rows['x'])"),
}

OF_COMBINERS: Mapping[str, str] = {
    **each("filter filter_ when", "write .where(uc.col('x') > 0)"),
    **each("alias name as_ label rename", "write the name before it, as in total=uc.Sum('x')"),
    **each("over partitionBy partition_by", "write the keys as by=, and the time as flow.window(...)"),
    **each("distinct unique", "write uc.CountDistinct('x') or uc.CollectSet('x')"),
    **each("round cast fillna coalesce apply", "write .map(function), which gets the results as an Arrow array"),
}

OF_RESULTS: Mapping[str, str] = {
    **dict.fromkeys(("df", "toPandas", "to_df"), "write result.to_pandas(flat=True)"),
    **dict.fromkeys(
        ("write", "to_csv", "to_parquet"), "write result.to_table('parquet:folder'), or to_pandas(flat=True)"
    ),
    "plot": "write uc.plot.panes(result, script)",
}
"""Advice for names of DataFrames that an Arrow table does not have."""

_STEPS = {
    **each("groupBy groupby group_by", "write flow.combine(by=...), or flow.window(...).combine(by=...)"),
    **each(
        "aggregate reduce sum mean avg min max reduceByKey combine_per_key",
        "write flow.combine(total=uc.Sum('x')), or flow.window(...).combine(total=uc.Sum('x'))",
    ),
    **dict.fromkeys(("key_by", "keyBy"), "give by= to flow.window(...).combine(by=..., ...)"),
    **dict.fromkeys(("resample", "tumble"), "write flow.window(uc.Fixed('1 minute')).combine(...)"),
    **dict.fromkeys(("hop",), "write flow.window(uc.Sliding('10 minutes', '1 minute')).combine(...)"),
    **dict.fromkeys(
        ("assign_timestamps_and_watermarks", "assignTimestampsAndWatermarks"),
        "give time= and watermark= to uc.flow()",
    ),
    "withWatermark": "give watermark= to uc.flow()",
    "trigger": "give trigger= to flow.window(...)",
}

_RESULTS = {
    **each("withColumn withColumns", "write flow.with_columns(name=...)"),
    "count": "write flow.combine(n=uc.Count())",
    **each("first take limit", "write flow.head(n), or flow.df.limit(n) on Spark"),
    **each("toPandas to_df", "write flow.to_pandas(), or flow.df.toPandas() on Spark"),
    "toArrow": "write flow.to_arrow(), or flow.df.toArrow() on Spark",
    **each("to_list to_dicts", "write flow.collect()"),
    "write": "write flow.df.write",
    "writeStream": "write flow.write_stream(checkpoint=...)",
    "printSchema": "print flow.schema",
    "columns": "write flow.schema.names",
    "dtypes": "write flow.schema",
    "union": "write uc.union(flow, other)",
    "unionByName": "write uc.union(flow, other)",
    "merge": "write flow.join(other, on=..., within=...)",
    **each("merge_asof asof_join asof", "write flow.join_asof(other, by=...)"),
    **each("lookup lookup_join temporal_join", "write flow.join(other, on=..., how='lookup')"),
    "mapInArrow": "write flow.map(function)",
    "mapInPandas": "write flow.map(function)",
    "flatMap": "write flow.flat_map(function)",
    **each("transformWithState transformWithStateInPandas", "write flow.process(by=..., function=...)"),
    **each("getSideOutput with_outputs", "write flow.process(..., outputs={'a': schema}) and .output('a')"),
    **dict.fromkeys(
        ("drop_duplicates", "dropDuplicates", "dropDuplicatesWithinWatermark", "deduplicate"),
        "write flow.distinct('id', within='1 hour')",
    ),
    **dict.fromkeys(("dropna", "isna", "isnull"), "write flow.where(uc.col('x').is_not_null())"),
    **dict.fromkeys(("fillna", "na"), "write flow.with_columns(x=uc.col('x').fill_null(0))"),
    **each("withColumnRenamed withColumnsRenamed alias rename_columns", "write flow.rename({'old': 'new'})"),
    **each("apply map_partitions map_batches", "write flow.map(function)"),
    "transform": "write flow.pipe(function)",
    "explode": "write flow.flat_map(function)",
    **dict.fromkeys(("cache", "persist"), "write flow.df.cache()"),
    **dict.fromkeys(
        ("start", "execute", "awaitTermination"),
        "write flow.run() in this process, flow.df on Spark, flow.to_table(target) for a table, or "
        "flow.write_stream(checkpoint=...) for a stream",
    ),
    **dict.fromkeys(
        ("sink", "sink_to", "add_sink", "execute_insert", "toTable", "to_sql"),
        "write flow.to_table(target), or flow.write_stream(checkpoint=...) for a sink of Spark",
    ),
    **dict.fromkeys(("sort", "orderBy", "sort_values"), "write flow.in_order(by=...)"),
}
"""Advice about rows and panes, which a flow has and `flow.window(...)` does not have before `combine`."""

_OF_A_FLOW = [
    *("assign", "collect", "df", "distinct", "drop", "explain", "filter", "flat_map", "foreach_batch", "head"),
    *("in_order", "join", "join_asof", "join_rolling", "left_out", "map", "output", "pipe", "process", "rename"),
    *("replay", "rolling", "run"),
    *("sample", "schema", "seed", "select", "show"),
    *("to_arrow", "to_kafka", "to_pandas", "to_polars", "to_table", "where", "window", "with_columns", "with_time"),
    "write_stream",
]

_OURS = {
    # windows
    "Fixed": "FixedWindows FixedWindow Tumbling TumblingWindow TumblingWindows TumblingEventTimeWindows Tumble",
    "Sliding": "SlidingWindows SlidingWindow Hopping HoppingWindow HoppingWindows Hop SlidingEventTimeWindows Slide",
    "Sessions": "Session SessionWindow SessionWindows EventTimeSessionWindows",
    "Global": "GlobalWindow GlobalWindows",
    "Calendar": "CalendarWindow CalendarWindows Monthly Daily Weekly Days Months Years",
    "Custom": "CustomWindow WindowFn NonMergingWindowFn WindowAssigner",
    # triggers
    "AfterWatermark": "AfterEndOfWindow AfterPastEndOfWindow EventTimeTrigger OnWatermark",
    "AfterDelay": "AfterProcessingTime ProcessingTimeTrigger AfterSynchronizedProcessingTime",
    "AtPeriod": "ContinuousProcessingTimeTrigger ContinuousEventTimeTrigger Periodically AfterPeriod",
    "FirstOf": "AfterAny AfterFirst AnyOf Or",
    "AllOf": "AfterAll And",
    "SequenceOf": "AfterEach InOrder",
    "Repeatedly": "Forever RepeatForever Repeat DefaultTrigger",
    "AfterCount": "CountTrigger AfterPane AfterElements ElementCount",
    "Always": "EachElement AfterEveryElement Continuous",
    # strategies and scripts
    "BoundedLag": "BoundedOutOfOrderness WithWatermark forBoundedOutOfOrderness",
    "Monotonic": "AscendingTimestamps MonotonousTimestamps forMonotonousTimestamps",
    "Elements": "TestStream AddElements Rows",
    "Watermark": "AdvanceWatermarkTo AdvanceWatermark",
    "Clock": "AdvanceProcessingTime",
    "WatermarkStrategy": "Strategy TimestampAssigner WatermarkGenerator",
    "KeyFunction": "ProcessFunction KeyedProcessFunction StatefulProcessor DoFn StatefulDoFn",
    # combiners
    "Mean": "Avg Average MeanCombineFn",
    "StdDev": "Stddev StdDevSamp StdDevPop Std Stdev stddev_samp",
    "Variance": "Var VarSamp VarPop var_samp",
    "Count": "Size Len CountStar Counter",
    "CountIf": "CountWhere",
    "CountDistinct": "NUnique Distinct CountUnique DistinctCount",
    "ApproxCountDistinct": "HyperLogLog HLL ApproxDistinct ApproximateUnique approx_count_distinct",
    "ApproxQuantiles": "TDigest KLL ApproxPercentile ApproximateQuantiles percentile_approx",
    "HeavyHitters": "ApproxTopK TopKFrequent SpaceSaving CountMinSketch",
    "Quantile": "Percentile",
    "Correlation": "Corr",
    "Covariance": "Cov Covar CovarSamp CovarPop",
    "LinearRegression": "RegrSlope LinReg",
    "Skewness": "Skew",
    "Kurtosis": "Kurt",
    "ArgMax": "MaxBy",
    "ArgMin": "MinBy",
    "BoolAnd": "Every All",
    "BoolOr": "Some Any AnyValue",
    "BitXor": "Xor",
    "CollectList": "ArrayAgg List ToList ListAgg",
    "CollectSet": "Set ToSet",
    "TopK": "Largest NLargest Top",
    "BottomK": "Smallest NSmallest Bottom",
    "Product": "Prod Multiply",
    "Struct": "Tuple TupleCombineFn StructAgg",
    "from_scalar": "udaf aggregator from_combine_fn",
    "CombineFn": "AggregateFunction Aggregator",
    # functions
    "flow": "from_dataframe read from_df stream pipeline",
    "Files": "read_parquet read_csv read_json read_files",
    "col": "column Col",
    "when": "case case_when If",
    "concat": "concat_str concat_ws",
    "session": "spark SparkSession",
    "span": "timedelta interval duration",
}

_OTHER = {
    "lit": "write the value itself, as in uc.col('x') > 3, or uc.coalesce(3) for a column of it",
    "expr": "write an expression of uc.col, such as uc.col('x') + 1",
    "F": "write uc.col for columns, and uc.Sum and others for aggregates",
    "accumulating": "give mode='accumulating' to flow.window(...)",
    "discarding": "give mode='discarding' to flow.window(...)",
    "AccumulationMode": "give mode='accumulating', 'discarding' or 'retracting' to flow.window(...)",
    "WindowInto": "write flow.window(uc.Fixed('1 minute'))",
    "run": "write flow.run() in this process, flow.df on Spark, or flow.to_table(target)",
    "replay": "write uc.flow(...).replay(), and then the windows",
    "sink": "write flow.to_table(target), or flow.write_stream(checkpoint=...)",
    "to_table": "write flow.to_table(target)",
    "OrFinally": "write trigger.or_finally(...)",
    "Rolling": "write uc.Sliding('10 minutes', '1 minute'), for windows that overlap",
    **each(
        "accumulate merge_accumulated uncombine_accumulated extract_accumulated add_udf merge_udf uncombine_udf "
        "extract_udf as_arrow_udf as_pandas_udf register pandas_udf arrow_udf",
        "write uc.Accumulator(combiner), which has add, merge, uncombine, extract, udf and register",
    ),
}

_OUR_NAMES = {other: ours for ours, others in _OURS.items() for other in others.split()}


class Adviser:
    """A value that says what to write instead of a name of another library.

    >>> class Counter(Adviser):
    ...     def _no_such(self, name):
    ...         return no_such_method("a counter", self, name, {"size": "write len(counter)"})
    >>> Counter().size
    Traceback (most recent call last):
    ...
    uncombine.errors.NoSuchStep: a counter has no size: write len(counter)
    """

    def _no_such(self, name: str) -> AttributeError:
        """The error for an attribute that the value does not have."""
        return AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if hasattr(type(self), name):
                # A property that raises an AttributeError leads here. Read again, it shows its own error.
                return object.__getattribute__(self, name)
            raise self._no_such(name)


def own_names(kind: type) -> set[str]:
    """The public names of a class, without second names of a method, which other libraries have for it.

    >>> from uncombine.flows import Flow
    >>> "where" in own_names(Flow), "filter" in own_names(Flow)
    (True, False)
    """
    named = {name: getattr(kind, name) for name in dir(kind) if not name.startswith("_")}
    return {name for name, value in named.items() if getattr(value, "__name__", name) == name}


def no_such_method(owner: str, value: object, name: str, advice: Mapping[str, str]) -> AttributeError:
    """The error for an attribute that an expression or a combiner does not have.

    >>> no_such_method("an expression", 5, "isnull", OF_EXPRESSIONS)
    NoSuchStep('an expression has no isnull: write x.is_null()')
    """
    if name in advice:
        return NoSuchStep(f"{owner} has no {name}: {advice[name]}")
    return AttributeError(f"{type(value).__name__!r} object has no attribute {name!r}")


def no_such_step(name: str) -> AttributeError:
    """The error for an attribute that a flow does not have.

    >>> no_such_step("fillna")
    NoSuchStep("a flow has no fillna: write flow.with_columns(x=uc.col('x').fill_null(0))")
    """
    advice = _STEPS.get(name) or _RESULTS.get(name)
    return NoSuchStep(f"a flow has no {name}: {advice}") if advice else _unknown("Flow", name)


def no_such_step_before_combine(name: str, step: str = "window") -> AttributeError:
    """The error for an attribute that `flow.window(...)` or `flow.rolling(...)` does not have.

    >>> no_such_step_before_combine("df")
    NoSuchStep('flow.window(...) has no df before its rows are combined: write flow.window(...).combine(...) first')
    """
    if name in _STEPS:
        return NoSuchStep(f"flow.{step}(...) has no {name}: {_STEPS[name]}")
    if name not in _RESULTS and name not in _OF_A_FLOW:
        return _unknown({"window": "WindowedRows", "rolling": "RollingRows"}[step], name)
    then = f", then {_RESULTS[name]}" if name in _RESULTS else ""
    return NoSuchStep(
        f"flow.{step}(...) has no {name} before its rows are combined: write flow.{step}(...).combine(...) first{then}"
    )


def _unknown(owner: str, name: str) -> AttributeError:
    return AttributeError(f"{owner!r} object has no attribute {name!r}")


def no_such_name(name: str, names: Iterable[str]) -> UnknownName:
    """The error for a name that the package does not have, with the name to write if one is near.

    >>> no_such_name("Avg", ["Mean"])
    UnknownName("uncombine has no name 'Avg': did you mean uc.Mean?")
    """
    said = f"uncombine has no name {name!r}"
    if percent := re.fullmatch(r"[pP](\d{2,9})", name):
        share = f"0.{percent[1]}"
        return UnknownName(f"{said}: write uc.Quantile('x', {share}), or uc.ApproxQuantiles('x', [{share}])")
    if name in _OTHER:
        return UnknownName(f"{said}: {_OTHER[name]}")
    ours = _OUR_NAMES.get(name) or our_name(name, names)
    return UnknownName(f"{said}: did you mean uc.{ours}?" if ours else said)


def our_name(name: str, names: Iterable[str]) -> str | None:
    """The one of our names for a name that is written nearly so, in any case of letters, here or in other libraries.

    >>> our_name("tumbling", ["Fixed", "Sliding"]), our_name("fixd", ["Fixed", "Sliding"])
    ('Fixed', 'Fixed')
    """
    ours = {one.casefold(): one for one in names}
    others = {other.casefold(): one for other, one in _OUR_NAMES.items() if one in ours.values()}
    plain = name.casefold().replace("_", "")
    if plain in ours:
        return ours[plain]
    if plain in others:
        return others[plain]
    close = difflib.get_close_matches(plain, ours, n=1, cutoff=0.75)
    return ours[close[0]] if close else None


_AGGREGATES = (
    *("Sum", "Mean", "Min", "Max", "Count", "CountDistinct", "Median", "StdDev", "Variance", "First", "Last", "Mode"),
    *("Product", "BoolAnd", "BoolOr", "CollectList", "CollectSet", "Skewness", "Kurtosis", "ApproxCountDistinct"),
)
_CALLED = re.compile(r"Column<'(?P<f>\w+)\((?P<x>\w*)\)( AS \w+)?'>|col\(\"(?P<y>\w+)\"\)\.(?P<g>\w+)\(\)")
"""An aggregate as it prints itself: one of Spark, or one of Polars."""


def combiner_for(value: object) -> str | None:
    """The combiner to write in the place of what other libraries take for one; None if it is not known.

    >>> combiner_for("sum"), combiner_for(len), combiner_for(("score", "mean"))
    ("uc.Sum('x')", 'uc.Count()', "uc.Mean('score')")
    """
    column = "x"
    if isinstance(value, tuple) and len(value) == 2:  # as pandas names an aggregate and its column
        column, value = str(value[0]), value[1]
    if found := _CALLED.fullmatch(str(value)):
        column, value = found["x"] or found["y"] or "x", found["f"] or found["g"]
    name = value if isinstance(value, str) else getattr(value, "__name__", "") if callable(value) else ""
    ours = our_name(name, _AGGREGATES)
    return None if ours is None else "uc.Count()" if ours == "Count" else f"uc.{ours}({column!r})"


DIFF = "diff"
"""The name that the library gives to columns of weights."""

NAME_WEIGHTS = f"give diff='{DIFF}' if it has the weights of the rows"


def uncounted(what: str, column: str, remedy: str) -> str:
    """The warning about a column that looks like one of changes, where the rows are not read as changes.

    >>> uncounted("the table", "diff", NAME_WEIGHTS)[:66]
    "the table has a column 'diff', and every row counts as an addition"
    """
    return (
        f"{what} has a column {column!r}, and every row counts as an addition: {remedy}, or rename the column if "
        "it says nothing of changes"
    )


__all__ = [
    "DIFF",
    "NAME_WEIGHTS",
    "OF_COMBINERS",
    "OF_EXPRESSIONS",
    "OF_RESULTS",
    "Adviser",
    "combiner_for",
    "each",
    "no_such_method",
    "no_such_name",
    "no_such_step",
    "no_such_step_before_combine",
    "our_name",
    "own_names",
    "uncounted",
]
