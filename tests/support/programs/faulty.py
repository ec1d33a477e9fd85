"""An application of its own whose Python workers die, each once, in every place where the user's functions run."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import uncombine as uc


def main() -> None:
    folder = Path(sys.argv[1])
    # Of every task up to three attempts, where a local master would make one.
    spark = uc.session("faulty", cores="2,3", settings={"spark.driver.memory": "700m"})

    def deadly(name: str) -> object:
        marker = folder / name

        def same(table: pa.Table) -> pa.Table:
            if table.num_rows and not marker.exists():
                marker.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            return table

        return same

    df = spark.read.parquet(str(folder / "rows.parquet")).repartition(3)
    results = {"n": uc.Count(), "mid": uc.Median("x"), "total": uc.Sum("x")}
    final = uc.flow(df).map(deadly("lift")).window(uc.Sessions("1 minute")).combine(by="k", **results)
    lengths = final.map(deadly("merge")).window(uc.Fixed("1 hour")).combine(sessions=uc.Count(), rows=uc.Sum("n"))
    pq.write_table(lengths.map(deadly("last")).df.toArrow(), folder / "final.parquet")
    played = uc.flow(df, watermark="1 minute", processing_time="at").replay(close_at_end=True)
    replay = played.map(deadly("lift of a replay")).window(uc.Fixed("1 minute"), mode="retracting")
    panes = replay.combine(by="k", **results).map(deadly("replay"))
    pq.write_table(panes.df.toArrow(), folder / "replay.parquet")
    spark.stop()


if __name__ == "__main__":
    main()
