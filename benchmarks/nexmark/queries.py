"""The queries of NEXMark as flows, over the changes that `events` makes.

Each is a function of sources, which may be read by any run: a local one, a batch, a replay or a stream.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import uncombine as uc

LATENESS = "2 minutes"
"""The lateness that a correction may have."""
MICROSECOND = timedelta(microseconds=1)
EACH = uc.Repeatedly(uc.AfterCount(1))
LATE = uc.AfterWatermark(late=uc.AfterCount(1))
RATE = 0.908
"""Euros for a dollar."""


@dataclass(frozen=True)
class Site:
    """The flows of a site of auctions.

    Parameters
    ----------
    given
        The flows of its people, auctions and bids by name, with the columns that `events` makes.
    longest
        The longest time that an auction is open.
    corrected
        True if bids can come twice or be corrected.
    """

    given: Mapping[str, uc.Flow]
    longest: timedelta
    corrected: bool = False

    @property
    def persons(self) -> uc.Flow:
        return self._of("persons")

    @property
    def auctions(self) -> uc.Flow:
        return self._of("auctions")

    @property
    def bids(self) -> uc.Flow:
        """The bids, each once."""
        bids = self._of("bids")
        return bids.distinct("bid", within="1 second", allowed_lateness=LATENESS) if self.corrected else bids

    def _of(self, name: str) -> uc.Flow:
        # A row and its retraction do not arrive at the same time, and are equal in all else.
        return self.given[name].select(*(column for column in self.given[name].schema.names if column != "seen"))

    @property
    def options(self) -> dict[str, Any]:
        """The options of windows."""
        return {"trigger": LATE, "mode": "retracting", "allowed_lateness": LATENESS} if self.corrected else {}

    @property
    def lateness(self) -> str | None:
        """The lateness of joins."""
        return LATENESS if self.corrected else None


def q0(site: Site) -> uc.Flow:
    """All bids, as they are."""
    return site.bids


def q1(site: Site) -> uc.Flow:
    """Bids in euros."""
    return site.bids.with_columns(price=uc.col("price") * RATE)


def q2(site: Site) -> uc.Flow:
    """Bids on some auctions."""
    return site.bids.where(uc.col("auction") % 123 == 0).select(*_kept(site.bids, "bid", "auction", "price"))


def q3(site: Site) -> uc.Flow:
    """Who sells in a category from some states."""
    sold = site.auctions.where(uc.col("category") == 10)
    sellers = site.persons.where(uc.col("state").isin(["OR", "ID", "CA"]))
    sold, sellers = (
        flow.select(*_kept(flow, *names))
        for flow, names in ((sold, ("id", "seller")), (sellers, ("id", "name", "city", "state")))
    )
    return sold.join(
        sellers,
        on={"seller": "id"},
        within=("-1 day", "1 day"),
        allowed_lateness=site.lateness,
        suffixes=("", "_seller"),
    )


def q4(site: Site) -> uc.Flow:
    """The average of the closing prices in each category."""
    prices = _offers(site).combine(by=["category", "auction"], price=uc.Max("price"))
    return prices.window(uc.Global(), EACH, "retracting").combine(by="category", average=uc.Mean("price"))


def q5(site: Site) -> uc.Flow:
    """The auctions with the most bids in the last ten seconds, every two seconds."""
    sliding = site.bids.window(uc.Sliding("10 seconds", "2 seconds"), **site.options)
    counts = sliding.combine(by="auction", bids=uc.Count())
    most = counts.window(uc.Inherit(), **site.options).combine(bids=uc.Max("bids"))
    return counts.join(most, on="bids", how="semi")


def q6(site: Site) -> uc.Flow:
    """The average of the closing prices of a seller's last ten auctions."""
    prices = _offers(site).combine(by=["seller", "auction", "closes"], price=uc.Max("price"))
    last = prices.window(uc.Global(), EACH, "retracting").combine(by="seller", prices=uc.TopK("price", 10, by="closes"))
    return last.map(_with_mean)


def q7(site: Site) -> uc.Flow:
    """The highest bids of every ten seconds."""
    length = timedelta(seconds=10)
    highest = site.bids.window(uc.Fixed(length), **site.options).combine(price=uc.Max("price"))
    bids = site.bids.select(*_kept(site.bids, "bid", "auction", "bidder", "price"))
    return highest.join(bids, on="price", within=(MICROSECOND - length, timedelta()), allowed_lateness=site.lateness)


def q8(site: Site) -> uc.Flow:
    """Who registers and sells within the same ten seconds."""
    window, options = uc.Fixed("10 seconds"), site.options
    people = site.persons.window(window, **options).combine(by=["id", "name"], registered=uc.Count())
    sellers = site.auctions.window(window, **options).combine(by="seller", opened=uc.Count())
    return people.join(sellers, on={"id": "seller"})


def q9(site: Site) -> uc.Flow:
    """The winning bid of each auction: the highest one, of equal ones the earliest."""
    waited = (uc.col("ts") - uc.col("opens")).cast(pa.int64())
    second = 1_000_000
    return _offers(site, rank=uc.col("price") * second - waited).combine(
        by="auction", bid=uc.ArgMax("bid", by="rank"), price=uc.Max("price")
    )


def q10(site: Site) -> uc.Flow:
    """All bids with the folders of the files into which they are written."""
    return site.bids.map(_with_folders)


def q11(site: Site) -> uc.Flow:
    """The number of bids of a person in each session."""
    return site.bids.window(uc.Sessions("10 seconds"), **site.options).combine(by="bidder", bids=uc.Count())


def q12(site: Site) -> uc.Flow:
    """The number of bids of a person that arrived in every ten seconds, which no correction changes."""
    if site.corrected:
        raise uc.errors.InvalidArgument("q12 counts arrivals: give it bids that are not corrected")
    return (
        site.given["bids"]
        .with_time(uc.col("seen"))
        .window(uc.Fixed("10 seconds"))
        .combine(by="bidder", bids=uc.Count())
    )


QUERIES: dict[str, Callable[[Site], uc.Flow]] = {
    query.__name__: query for query in (q0, q1, q2, q3, q4, q5, q6, q7, q8, q9, q10, q11, q12)
}


def _offers(site: Site, **more: Any) -> Any:
    """Bids that come while their auction is open, in the window of the auction."""
    auctions, bids = site.auctions, site.bids
    auctions = auctions.with_columns(opens=uc.col("ts"), closes=uc.col("expires"))
    auctions = auctions.select(*_kept(auctions, "id", "category", "seller", "opens", "closes"))
    bids = bids.select(*_kept(bids, "bid", "auction", "bidder", "price"))
    offers = auctions.join(
        bids,
        on={"id": "auction"},
        within=(timedelta(), site.longest),
        allowed_lateness=site.lateness,
        suffixes=("_auction", ""),
    ).where(uc.col("ts") < uc.col("closes"))
    own = uc.Custom(_from_open_to_close, columns=["opens", "closes"])
    return offers.with_columns(auction=uc.col("id"), **more).window(own, **site.options)


def _from_open_to_close(times: Any, rows: pa.Table) -> tuple[None, Any, Any]:
    start, end = (rows[name].cast("int64").to_numpy() for name in ("opens", "closes"))
    return None, start, end


def _kept(flow: uc.Flow, *names: str) -> list[str]:
    """Columns, and those of time and weight."""
    return [*names, *(name for name in ("ts", "event_time", "diff") if name in flow.schema.names)]


def _with_mean(table: pa.Table) -> pa.Table:
    lists = table["prices"].combine_chunks()
    sums = pa.TableGroupBy(
        pa.table({"row": pc.list_parent_indices(lists), "price": pc.list_flatten(lists)}), "row", use_threads=False
    ).aggregate([("price", "mean")])
    return table.drop_columns("prices").append_column("average", sums.sort_by("row")["price_mean"])


def _with_folders(table: pa.Table) -> pa.Table:
    for name, form in (("day", "%Y-%m-%d"), ("hour", "%H")):
        table = table.append_column(name, pc.strftime(table["ts"].cast(pa.timestamp("s", "UTC"), safe=False), form))
    return table
