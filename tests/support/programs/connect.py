"""An application of its own that knows Spark only through a Connect server, which it starts."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

import uncombine as uc
from uncombine.sparkops.scans.watermark import unused_watermark
from uncombine.sparkops.session import PROVIDER, ROCKSDB
from uncombine.sparkops.stored.column_expressions import EXPRESSIONS


def keep(spark: SparkSession, folder: Path, url: str) -> None:
    """Keep the totals of the files in a table, and print how many rows it has after each run."""

    def counts(shards: int, **combiners: uc.Combiner) -> uc.Flow:
        files, tuning = uc.Files(str(folder / "in"), order="name"), uc.Tuning(shards=shards)
        source = uc.flow(files, spark=spark, streaming=True, watermark="1 minute", tuning=tuning)
        return source.window(uc.Global(), uc.Always()).combine(by="k", **combiners)

    def run(name: str, shards: int, start: str | None = None) -> None:
        totals = counts(shards, n=uc.Count())
        now, checkpoint = {"availableNow": True}, str(folder / name)
        live = totals.to_table(url, checkpoint=checkpoint, trigger=now, start=start)
        live.awaitTermination()
        print(sum(live.arrow()["n"].to_pylist()), live.df(spark).count(), flush=True)

    run("checkpoint", 2)
    for more in folder.glob("*.parquet"):
        more.rename(folder / "in" / more.name)
    run("checkpoint", 2)
    uc.checkpoint(folder / "checkpoint", spark=spark).seed(to=str(folder / "seed"))
    shutil.copy(folder / "in" / "1.parquet", folder / "in" / "3.parquet")
    run("other", 3, str(folder / "seed"))
    found = uc.checkpoint(folder / "other", spark=spark)
    k = found.rows(1)["k"][0].as_py()
    assert uc.why(found, row={"ts": 0, "k": k}).startswith("the row would be taken in")
    history = uc.Files(str(folder / "in"))
    change = uc.evolve(folder / "other", counts(3, x=uc.Max("x")), history=history, to=folder / "evolved")
    assert [step.fate for step in change.plan.steps] == ["computed"]
    made = found.delete(where=uc.col("k") == k, to=str(folder / "deleted"))
    assert made.retracted == 1
    run("deleted", 3)


def run(spark: SparkSession, folder: Path) -> None:
    """Run a query over the files of a folder, and print the progress of each batch."""
    source = uc.flow(
        uc.Files(str(folder), on_bad_file="skip"), spark=spark, streaming=True, watermark="1 second", name="rows"
    )
    minutes = source.window(uc.Fixed("1 minute"), closing="never").combine(by="k", n=uc.Count())
    flow = minutes.window(uc.Fixed("1 hour")).combine(keys=uc.Count())
    writer = flow.df.writeStream.format("noop").option("checkpointLocation", f"{folder} checkpoint")
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    seen = uc.progress(query)
    assert seen is not None
    assert uc.progress(json.loads(query.lastProgress.json)) == seen
    shown = [
        [stage.rows_in, stage.rows_bad, stage.panes, stage.retractions, stage.windows_held, str(stage.watermark)]
        for stage in seen.flows["rows"].stages
    ]
    sizes = [stage.state_bytes > 0 and stage.clock_lag is not None for stage in seen.flows["rows"].stages]
    print(json.dumps([seen.batch, seen.files_skipped, shown, sizes]), flush=True)


def main() -> None:
    folder = Path(sys.argv[1])
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ["SPARK_TESTING"] = "1"  # only then does a client find a server whose port is any that is free
    builder = SparkSession.builder.remote("local[2]").config("spark.connect.grpc.binding.port", "0")
    spark = builder.config("spark.driver.memory", "700m").config("spark.log.level", "ERROR").getOrCreate()
    assert "connect" in type(spark).__module__
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    spark.conf.set(PROVIDER, ROCKSDB)
    if len(sys.argv) > 2:
        keep(spark, folder, sys.argv[2])
        spark.stop()
        return
    df = spark.read.parquet(str(folder / "rows.parquet"))
    rates = spark.readStream.format("rate").load()
    late = rates.withWatermark("timestamp", "1 minute")
    unused = [late, late.where("value > 1").withColumn("x", F.lit(1)), late.dropDuplicates(["value"]), rates, df]
    assert [unused_watermark(one) for one in unused] == ["timestamp", "timestamp", None, None, None]
    results = {"n": uc.Count(), "mid": uc.Median("x")}
    sessions = uc.flow(df).window(uc.Sessions("1 minute")).combine(by="k", **results)
    played = uc.flow(df, watermark="1 minute", processing_time="at").replay(close_at_end=True)
    flows = {
        "final": sessions.window(uc.Fixed("1 hour")).combine(sessions=uc.Count(), rows=uc.Sum("n")),
        "lowered": uc.flow(df).window(uc.Fixed("1 hour")).combine(by="k", n=uc.Count(), hi=uc.Max("x")),
        "files": uc.flow(str(folder / "rows.parquet"), spark=spark)
        .window(uc.Fixed("1 hour"))
        .combine(by="k", **results),
        "replay": played.where(uc.col("x") > 1).window(uc.Fixed("1 minute"), mode="retracting").combine(**results),
    }
    changes = spark.read.parquet(str(folder / "changes.parquet"))
    read = uc.flow(changes, changelog=uc.changelog.Debezium("id", order="source.lsn"))
    flows["changed"] = read.window(uc.Fixed("1 minute")).combine(by="k", n=uc.Count(), x=uc.Sum("x"))
    back = uc.flow(read.df, diff="diff").df.transform(uc.changelog.to("debezium", "id"))
    flows["handed on"] = uc.flow(back, changelog=uc.changelog.Debezium())
    for name in ("final", "replay"):
        assert "a DataFrame of Parquet files" in flows[name].explain(), flows[name].explain()
    floats = uc.flow(df.where(F.col("x") > 1.5)).window(uc.Fixed("1 hour")).combine(n=uc.Count())
    assert "whose files Spark reads: it compares" in floats.explain()
    chosen = df.where((F.lit("b") >= F.col("k")) & F.col("ts").isNotNull()).select("ts", F.col("k").alias("x"))
    rows = pq.read_table(folder / "rows.parquet")
    pq.write_table(rows.append_column("y", pc.subtract(50, rows["x"])), folder / "wide.parquet")
    wide = spark.read.parquet(str(folder / "wide.parquet"))
    swapped = wide.select("ts", F.col("x").alias("y"), F.col("y").alias("x"))
    # A column of another DataFrame is the one that it has there, whatever the name stands for by now; in Spark 4.0 it
    # is what the name stands for by now, so that its own rules are asked for.
    for frame in (chosen, swapped.where(wide["x"] > 40), wide.where(wide["x"] > 40).select(wide["*"])):
        by_files, by_spark = (
            uc.flow(frame, tuning=uc.Tuning(files=files, native="never"))
            .window(uc.Global())
            .combine(by="x", n=uc.Count())
            for files in ("auto", "never")
        )
        of_files = EXPRESSIONS or swapped.columns != frame.columns
        assert ("a DataFrame of Parquet files" in by_files.explain()) == of_files, by_files.explain()
        assert sorted(map(repr, by_files.df.collect())) == sorted(map(repr, by_spark.df.collect()))
    for name, flow in flows.items():
        pq.write_table(flow.df.toArrow(), folder / f"{name}.parquet")
    try:
        run(spark, folder / "stream")
    except uc.errors.InvalidArgument as refused:
        print(json.dumps(str(refused)), flush=True)
    pq.write_table(uc.sparkops.combine_per_key(df, "k", **results).toArrow(), folder / "key.parquet")
    mid = uc.Accumulator(uc.Median("x"), "mid", schema=df)
    hours = mid.add(df.withColumn("hour", F.hour("ts")), by=["k", "hour"])
    later = mid.uncombine(mid.merge(hours, by="k"), hours.where("hour = 0"), by="k")
    pq.write_table(mid.extract(later).toArrow(), folder / "later.parquet")
    if EXPRESSIONS:
        expressions(spark, df, mid, folder)
    spark.stop()


def expressions(spark: SparkSession, df: DataFrame, mid: uc.Accumulator, folder: Path) -> None:
    """Write what accumulators give as expressions, and as a function of SQL."""
    stored = df.groupBy("k", F.hour("ts").alias("hour")).agg(mid.add("x"))
    rolling = stored.select("k", "hour", mid.merge("mid").over(Window.partitionBy("k").orderBy("hour")))
    pq.write_table(mid.extract(rolling).toArrow(), folder / "rolling.parquet")
    plain = df.groupBy("k").agg(mid.udf("x").alias("mid"))
    mid.register(spark, "mid_of")
    df.createOrReplaceTempView("rows")
    plain = plain.union(spark.sql("SELECT k, mid_of(x) FROM rows GROUP BY k"))
    pq.write_table(plain.toArrow(), folder / "plain.parquet")


if __name__ == "__main__":
    main()
