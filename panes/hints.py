"""Advice for a method that DataFrames or other libraries have, and flows do not: what to write instead.

Tests: `tests/flows/test_hints.py`.
"""

from __future__ import annotations

from ..errors import NoSuchStep

_STEPS = {
    "combine": "write flow.window(uc.Global()).combine(...) to combine all rows, or another window",
    "agg": "write flow.window(...).combine(...)",
    "groupBy": "write flow.window(...).combine(by=...)",
    "groupby": "write flow.window(...).combine(by=...)",
    "group_by": "write flow.window(...).combine(by=...)",
    **dict.fromkeys(
        ("aggregate", "reduce", "sum", "mean", "avg", "min", "max", "reduceByKey", "combine_per_key"),
        "write flow.window(...).combine(total=uc.Sum('x'))",
    ),
    **dict.fromkeys(("key_by", "keyBy"), "give by= to flow.window(...).combine(by=..., ...)"),
    **dict.fromkeys(("resample", "tumble"), "write flow.window(uc.Fixed('1 minute')).combine(...)"),
    **dict.fromkeys(("rolling", "hop"), "write flow.window(uc.Sliding('10 minutes', '1 minute')).combine(...)"),
    **dict.fromkeys(
        ("assign_timestamps_and_watermarks", "assignTimestampsAndWatermarks"),
        "give time= and watermark= to uc.flow() or uc.files()",
    ),
    "withWatermark": "give watermark= to uc.flow() or uc.files()",
    "trigger": "give trigger= to flow.window(...)",
}

_RESULTS = {
    "filter": "write flow.where(uc.col('x') > 0)",
    "withColumn": "write flow.with_columns(name=...)",
    "show": "write flow.df.show()",
    "collect": "write flow.df.collect()",
    "count": "write flow.df.count(), or combine(n=uc.Count())",
    "first": "write flow.df.first()",
    "head": "write flow.df.head()",
    "toPandas": "write flow.df.toPandas()",
    "to_pandas": "write flow.df.toPandas()",
    "toArrow": "write flow.df.toArrow()",
    "write": "write flow.df.write",
    "writeStream": "write flow.df.writeStream",
    "printSchema": "print flow.schema",
    "columns": "write flow.schema.names",
    "dtypes": "write flow.schema",
    "union": "write uc.union(flow, other)",
    "unionByName": "write uc.union(flow, other)",
    "merge": "write flow.join(other, on=..., within=...)",
    "drop": "write flow.select(...) with the columns that stay",
    "assign": "write flow.with_columns(name=...)",
    "mapInArrow": "write flow.map(function)",
    "mapInPandas": "write flow.map(function)",
    "flatMap": "write flow.flat_map(function)",
    "transformWithState": "write flow.process(by=..., function=...)",
    "transformWithStateInPandas": "write flow.process(by=..., function=...)",
    **dict.fromkeys(
        ("drop_duplicates", "dropDuplicates", "dropDuplicatesWithinWatermark", "deduplicate"),
        "write flow.distinct('id', within='1 hour')",
    ),
    **dict.fromkeys(("dropna", "isna", "isnull"), "write flow.where(~uc.col('x').is_null())"),
    **dict.fromkeys(("fillna", "na"), "write flow.with_columns(x=uc.col('x').fill_null(0))"),
    **dict.fromkeys(
        ("rename", "withColumnRenamed", "withColumnsRenamed", "alias"),
        "write flow.with_columns(new=uc.col('old')), and flow.select(...) with the columns that stay",
    ),
    **dict.fromkeys(("apply", "pipe", "map_partitions", "map_batches"), "write flow.map(function)"),
    "explode": "write flow.flat_map(function)",
    "limit": "write flow.df.limit(...)",
    **dict.fromkeys(("cache", "persist"), "write flow.df.cache()"),
    **dict.fromkeys(
        ("start", "run", "execute", "awaitTermination"),
        "write uc.live_table(flow, target, checkpoint=...) or flow.df.writeStream for a stream, flow.df for a bounded "
        "flow, uc.local.run(script, flow) for a test",
    ),
    **dict.fromkeys(
        ("sink", "sink_to", "add_sink", "execute_insert", "toTable", "to_sql"),
        "write uc.live_table(flow, target, checkpoint=...), or flow.df.writeStream for a sink of Spark",
    ),
    **dict.fromkeys(("sort", "orderBy", "sort_values"), "write flow.in_order(by=...)"),
}
"""Advice about rows and panes, which a flow has and `flow.window(...)` does not have before `combine`."""

_OF_A_FLOW = (
    *("df", "distinct", "explain", "flat_map", "foreach_batch", "in_order", "join", "left_out", "map", "process"),
    *("schema", "select", "to_table", "where", "window", "with_columns", "with_time", "write_stream"),
)


def no_such_step(name: str) -> AttributeError:
    """The error for an attribute that a flow does not have.

    >>> no_such_step("show")
    NoSuchStep('a flow has no show: write flow.df.show()')
    """
    advice = _STEPS.get(name) or _RESULTS.get(name)
    return NoSuchStep(f"a flow has no {name}: {advice}") if advice else _unknown("Flow", name)


def no_such_step_before_combine(name: str) -> AttributeError:
    """The error for an attribute that `flow.window(...)` does not have.

    >>> no_such_step_before_combine("df")
    NoSuchStep('flow.window(...) has no df before its rows are combined: write flow.window(...).combine(...) first')
    """
    if name in _STEPS:
        return NoSuchStep(f"flow.window(...) has no {name}: {_STEPS[name]}")
    if name not in _RESULTS and name not in _OF_A_FLOW:
        return _unknown("Windowed", name)
    then = f", then {_RESULTS[name]}" if name in _RESULTS else ""
    return NoSuchStep(
        f"flow.window(...) has no {name} before its rows are combined: write flow.window(...).combine(...) first{then}"
    )


def _unknown(owner: str, name: str) -> AttributeError:
    return AttributeError(f"{owner!r} object has no attribute {name!r}")
