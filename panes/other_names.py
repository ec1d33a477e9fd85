"""Names that Beam, Flink, Spark, SQL and pandas have for what the package has under another name.

Guarded by tests/flows/test_hints.py.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from ..errors import UnknownName

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
    "BoundedLag": "BoundedOutOfOrderness WatermarkStrategy WithWatermark forBoundedOutOfOrderness",
    "Monotonic": "AscendingTimestamps MonotonousTimestamps forMonotonousTimestamps",
    "Elements": "TestStream AddElements Rows",
    "Watermark": "AdvanceWatermarkTo AdvanceWatermark",
    "Clock": "AdvanceProcessingTime",
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
    "files": "read_parquet read_csv read_json read_files",
    "col": "column Col",
    "when": "case case_when If",
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
    "concat": "write uc.union(a, b)",
    "WindowInto": "write flow.window(uc.Fixed('1 minute'))",
    "run": "write uc.local.run(script, flow) without Spark, flow.df or uc.live_table(flow, target, ...) on Spark",
    "replay": "write uc.flow(df, replay=True, ...), or uc.local.run(script, flow) without Spark",
    "sink": "write uc.live_table(flow, target, checkpoint=...), or flow.df.writeStream",
    "to_table": "write flow.to_table(target), or uc.live_table(flow, target, checkpoint=...) for a stream",
    "OrFinally": "write trigger.or_finally(...)",
}

_KNOWN = {other: ours for ours, others in _OURS.items() for other in others.split()}


def no_such_name(name: str, known: Iterable[str]) -> UnknownName:
    """The error for a name that the package does not have, with the name to write if one is near.

    >>> no_such_name("Avg", ["Mean"])
    UnknownName("uncombine has no name 'Avg': did you mean uc.Mean?")
    """
    said = f"uncombine has no name {name!r}"
    if name in _OTHER:
        return UnknownName(f"{said}: {_OTHER[name]}")
    ours = _KNOWN.get(name) or _near(name, known)
    return UnknownName(f"{said}: did you mean uc.{ours}?" if ours else said)


def _near(name: str, known: Iterable[str]) -> str | None:
    """Our name, or a name of others, that is written nearly so, in any case of letters."""
    ours = {one.casefold(): one for one in known}
    others = {other.casefold(): one for other, one in _KNOWN.items()}
    plain = name.casefold().replace("_", "")
    if plain in ours:
        return ours[plain]
    if plain in others:
        return others[plain]
    close = difflib.get_close_matches(plain, ours, n=1, cutoff=0.75)
    return ours[close[0]] if close else None


__all__ = ["no_such_name"]
