"""The queries as Spark's own SQL over the same files, where it can say them."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

OFFERS = """
    SELECT a.id AS auction, a.category, a.seller, a.expires AS closes, a.ts AS opens, b.bid, b.price, b.ts
    FROM auctions a JOIN bids b ON a.id = b.auction AND b.ts >= a.ts AND b.ts < a.expires
"""
SQL = {
    "q0": "SELECT * FROM bids",
    "q1": "SELECT bid, auction, bidder, price * 0.908D AS price, channel, url, extra, ts FROM bids",
    "q2": "SELECT bid, auction, price FROM bids WHERE auction % 123 = 0",
    "q3": """
        SELECT a.id, a.seller, p.name, p.city, p.state FROM auctions a JOIN persons p ON a.seller = p.id
        WHERE a.category = 10 AND p.state IN ('OR', 'ID', 'CA')""",
    "q4": f"""
        SELECT category, avg(price) AS average
        FROM (SELECT category, auction, max(price) AS price FROM ({OFFERS}) GROUP BY category, auction)
        GROUP BY category""",
    "q5": """
        WITH counts AS (
            SELECT auction, window(ts, '10 seconds', '2 seconds').start AS start, count(*) AS bids
            FROM bids GROUP BY auction, window(ts, '10 seconds', '2 seconds'))
        SELECT c.* FROM counts c JOIN (SELECT start, max(bids) AS most FROM counts GROUP BY start) m
        ON c.start = m.start AND c.bids = m.most""",
    "q6": f"""
        SELECT seller, avg(price) AS average FROM (
            SELECT *, row_number() OVER (PARTITION BY seller ORDER BY closes DESC, price DESC) AS place
            FROM (SELECT seller, auction, closes, max(price) AS price FROM ({OFFERS}) GROUP BY seller, auction, closes))
        WHERE place <= 10 GROUP BY seller""",
    "q7": """
        WITH highest AS (
            SELECT window(ts, '10 seconds') AS during, max(price) AS price
            FROM bids GROUP BY window(ts, '10 seconds'))
        SELECT b.bid, b.auction, b.bidder, b.price FROM bids b JOIN highest h
        ON b.price = h.price AND b.ts >= h.during.start AND b.ts < h.during.end""",
    "q8": """
        SELECT p.id, p.name, s.start, s.opened
        FROM (SELECT id, name, window(ts, '10 seconds').start AS start FROM persons
              GROUP BY id, name, window(ts, '10 seconds')) p
        JOIN (SELECT seller, window(ts, '10 seconds').start AS start, count(*) AS opened FROM auctions
              GROUP BY seller, window(ts, '10 seconds')) s
        ON p.id = s.seller AND p.start = s.start""",
    "q9": f"""
        SELECT auction, bid, price FROM (
            SELECT *, row_number() OVER (PARTITION BY auction ORDER BY price DESC, ts, bid DESC) AS place
            FROM ({OFFERS}))
        WHERE place = 1""",
    "q10": "SELECT *, date_format(ts, 'yyyy-MM-dd') AS day, date_format(ts, 'HH') AS hour FROM bids",
    "q11": """
        SELECT bidder, session_window(ts, '10 seconds').start AS start, count(*) AS bids
        FROM bids GROUP BY bidder, session_window(ts, '10 seconds')""",
    "q12": """
        SELECT bidder, window(seen, '10 seconds').start AS start, count(*) AS bids
        FROM bids GROUP BY bidder, window(seen, '10 seconds')""",
}


def query(spark: SparkSession, name: str, folder: Path) -> DataFrame:
    """A query over files of events that are not corrected."""
    for kind in ("persons", "auctions", "bids"):
        spark.read.parquet(str(folder / kind)).createOrReplaceTempView(kind)
    return spark.sql(SQL[name])


STREAMED = {
    "q0": "SELECT * FROM bids",
    "q1": SQL["q1"],
    "q2": SQL["q2"],
    "q11": "SELECT bidder, session_window, count(*) FROM bids GROUP BY bidder, session_window(ts, '10 seconds')",
    "q12": "SELECT bidder, window, count(*) FROM bids GROUP BY bidder, window(ts, '10 seconds')",
}
"""Those that Spark can run as one streaming query in append mode, with at most one step that keeps state.

A query over two aggregations of one stream, or an aggregation after a join in time, is refused by it or waits for
watermarks that it cannot correct.
"""


def stream(spark: SparkSession, name: str, folder: Path) -> DataFrame:
    """A query over the same files, one to a micro-batch."""
    path = str(folder / "bids")
    reader = spark.readStream.schema(spark.read.parquet(path).schema).option("maxFilesPerTrigger", 1)
    rows = reader.parquet(path)
    if name == "q12":
        rows = rows.drop("ts").withColumnRenamed("seen", "ts")
    rows.withWatermark("ts", "4 seconds").createOrReplaceTempView("bids")
    return spark.sql(STREAMED[name])
