"""The results of the queries by pandas, from the rows that are left at the end: another computation, to check with."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pandas as pd
import pyarrow as pa

Frames = Mapping[str, pd.DataFrame]


def rows_left(tables: Mapping[str, pa.Table]) -> dict[str, pd.DataFrame]:
    """The rows of each kind that no change has retracted, each once."""
    out = {}
    for name, table in tables.items():
        columns = [column for column in table.column_names if column not in ("seen", "diff")]
        left = table.to_pandas().groupby(columns, sort=False)["diff"].sum()
        out[name] = left[left > 0].index.to_frame(index=False)
    return out


def q0(of: Frames) -> pd.DataFrame:
    return of["bids"]


def q1(of: Frames) -> pd.DataFrame:
    return of["bids"].assign(price=of["bids"]["price"] * 0.908)


def q2(of: Frames) -> pd.DataFrame:
    bids = of["bids"]
    return bids.loc[bids["auction"] % 123 == 0, ["bid", "auction", "price"]]


def q3(of: Frames) -> pd.DataFrame:
    sold = of["auctions"].query("category == 10")[["id", "seller"]]
    sellers = of["persons"].query("state in ('OR', 'ID', 'CA')")[["id", "name", "city", "state"]]
    return sold.merge(sellers.rename(columns={"id": "seller"}), on="seller")


def q4(of: Frames) -> pd.DataFrame:
    prices = _offers(of).groupby(["category", "auction"], as_index=False)["price"].max()
    return prices.groupby("category", as_index=False).agg(average=("price", "mean"))


def q5(of: Frames) -> pd.DataFrame:
    step, size = 2_000_000, 10_000_000
    bids = pd.DataFrame({"auction": of["bids"]["auction"], "at": of["bids"]["ts"].astype("int64")})
    parts = [bids.assign(start=bids["at"] // step * step - i * step) for i in range(size // step)]
    counts = pd.concat(parts).groupby(["start", "auction"], as_index=False).size().rename(columns={"size": "bids"})
    hot = counts[counts["bids"] == counts.groupby("start")["bids"].transform("max")]
    return hot.assign(start=pd.to_datetime(hot["start"], unit="us", utc=True))


def q6(of: Frames) -> pd.DataFrame:
    prices = _offers(of).groupby(["seller", "auction", "closes"], as_index=False)["price"].max()
    last = prices.sort_values(["closes", "price"], ascending=False).groupby("seller").head(10)
    return last.groupby("seller", as_index=False).agg(average=("price", "mean"))


def q7(of: Frames) -> pd.DataFrame:
    bids = of["bids"][["bid", "auction", "bidder", "price", "ts"]]
    highest = bids.groupby(bids["ts"].dt.floor("10s"))["price"].transform("max")
    return bids[bids["price"] == highest].drop(columns="ts")


def q8(of: Frames) -> pd.DataFrame:
    people, sold = (of[name].assign(start=of[name]["ts"].dt.floor("10s")) for name in ("persons", "auctions"))
    people = people.groupby(["start", "id", "name"], as_index=False).size().drop(columns="size")
    opened = sold.groupby(["start", "seller"], as_index=False).size().rename(columns={"seller": "id", "size": "opened"})
    return people.merge(opened, on=["start", "id"])


def q9(of: Frames) -> pd.DataFrame:
    offers = _offers(of).sort_values(["price", "ts", "bid"], ascending=[False, True, False])
    return offers.groupby("auction", as_index=False).first()[["auction", "bid", "price"]]


def q10(of: Frames) -> pd.DataFrame:
    at = of["bids"]["ts"].dt
    return of["bids"].assign(day=at.strftime("%Y-%m-%d"), hour=at.strftime("%H"))


def q11(of: Frames) -> pd.DataFrame:
    bids = of["bids"][["bidder", "ts"]].sort_values(["bidder", "ts"])
    gap = bids.groupby("bidder")["ts"].diff() >= pd.Timedelta("10s")
    session = gap.groupby(bids["bidder"]).cumsum().rename("session")
    found = bids.groupby(["bidder", session])["ts"].agg(["min", "size"]).reset_index()
    return found.rename(columns={"min": "start", "size": "bids"}).drop(columns="session")


def q12(tables: Mapping[str, pa.Table]) -> pd.DataFrame:
    """Of all that arrived, and not of what is left."""
    bids = tables["bids"].to_pandas()
    start = bids["seen"].dt.floor("10s").rename("start")
    return bids.groupby(["bidder", start]).size().rename("bids").reset_index()


OF_ROWS_LEFT: dict[str, Callable[[Frames], pd.DataFrame]] = {
    query.__name__: query for query in (q0, q1, q2, q3, q4, q5, q6, q7, q8, q9, q10, q11)
}


def expected(query: str, tables: Mapping[str, pa.Table]) -> pd.DataFrame:
    """The result of a query over all changes."""
    return q12(tables) if query == "q12" else OF_ROWS_LEFT[query](rows_left(tables))


def _offers(of: Frames) -> pd.DataFrame:
    """The bids that come while their auction is open."""
    auctions = of["auctions"][["id", "category", "seller", "ts", "expires"]]
    auctions = auctions.rename(columns={"id": "auction", "ts": "opens", "expires": "closes"})
    both = of["bids"][["bid", "auction", "price", "ts"]].merge(auctions, on="auction")
    return both[(both["ts"] >= both["opens"]) & (both["ts"] < both["closes"])]
