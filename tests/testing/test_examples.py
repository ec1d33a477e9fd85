"""The worked examples of docs/examples: their flows, as the pages define them, against pandas from the raw rows."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import strategies as st
from pages import names_of

import uncombine as uc
from uncombine.testing import check_flow, check_script

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"
START = pd.Timestamp("2024-05-01T12:00:00Z")
Frame = pd.DataFrame
Frames = dict[str, Frame]


@cache
def page(name: str) -> dict[str, Any]:
    return names_of(EXAMPLES / f"{name}.md")


def seconds(number: float) -> pd.Timedelta:
    return pd.Timedelta(number, "s")


def spikes(rows: Frame) -> list[dict[str, Any]]:
    """A start where a window has more than twice what was usual in the minute before, a stop where it has no longer."""
    out = []
    words = rows.assign(end=rows.ts.dt.floor("10s") + seconds(10))
    keys = ["language", "word"]
    searches = words.groupby([*keys, "end"], dropna=False).size().rename("n").reset_index()
    minutes = searches.assign(minute=(searches.end - seconds(10)).dt.floor("60s") + seconds(60))
    usual = minutes.groupby(["language", "minute"], dropna=False).n.mean().reset_index()
    for (language, _), found in searches.groupby(keys, dropna=False):
        counts, high = found.set_index("end").n, False
        own = usual[usual.language.isna() if pd.isna(language) else usual.language == language].sort_values("minute")
        for end in sorted({*counts.index, *(counts.index + seconds(10))}):
            expected = own.n[own.minute <= end - seconds(10)]
            spike = bool(len(expected)) and counts.get(end, 0) > 2 * expected.iloc[-1]
            if spike != high:
                out.append({"what": "start" if spike else "stop", "event_time": end})
            high = spike
    return out


def unpopular_ads(rows: Frame) -> Frame:
    rows = rows.sort_values(["campaign", "ad", "ts"])
    keys = rows[["campaign", "ad"]].fillna("null")
    opens = (rows.ts.diff() >= seconds(60)) | (keys != keys.shift()).any(axis=1)
    groups = rows.groupby(opens.cumsum())
    sessions = groups.agg(campaign=("campaign", "first"), ad=("ad", "first"), last=("ts", "max"), n=("ts", "size"))
    few = sessions[sessions.n < 3]
    start = (few["last"] + seconds(60) - pd.Timedelta(1, "us")).dt.floor("10min").rename("window.start")
    return few.groupby(["campaign", start], dropna=False).agg(sessions=("n", "size"))


def auctions(rows: Frames) -> Frame:
    opened, bids = (rows[name].dropna(subset="auction") for name in ("auctions", "bids"))
    pairs = opened.assign(closes=opened.opens + opened.length).merge(bids, on="auction")
    pairs = pairs[(pairs.ts >= pairs.opens) & (pairs.ts < pairs.closes)]
    keys = ["category", "auction", "opens", "closes"]
    prices = pairs.groupby(keys, dropna=False).agg(price=("price", "max")).reset_index()
    start = (prices.closes - pd.Timedelta(1, "us")).dt.floor("1h").rename("window.start")
    groups = prices.groupby(["category", start], dropna=False)
    return groups.agg(auctions=("price", "size"), average=("price", "mean"))


def once(rows: Frame) -> Frame:
    """The entries whose id did not come before."""
    shown: dict[Any, list[Any]] = {}
    kept = []
    rows = rows.sort_values(["step", "ts"], kind="stable")
    for key, time in zip(rows.id, rows.ts, strict=True):
        new = all(abs(time - other) >= pd.Timedelta("1h") for other in shown.setdefault(key, []))
        kept.append(new)
        if new:
            shown[key].append(time)
    return rows[kept]


def audit_log(rows: Frame) -> list[dict[str, Any]]:
    """The number of entries, and the last digest, of each account and minute."""
    seals: dict[Any, dict[str, Any]] = {}
    for account, entries in once(rows).sort_values("ts", kind="stable").groupby("account", dropna=False):
        digest, lines = "", []
        following = [*entries.ts.iloc[1:], None]
        for time, text, after in zip(entries.ts, entries.text, following, strict=True):
            silent = after is None or after - time >= seconds(60)
            lines += [(time, None if pd.isna(text) else text), *([(time + seconds(60), "MARK")] * silent)]
        for time, text in lines:
            line = f"{digest}|{(time - pd.Timestamp(0, tz='UTC')) // pd.Timedelta('1us')}|{text}"
            digest, start = hashlib.sha256(line.encode()).hexdigest()[:8], time.floor("60s")
            number = seals.get((account, start), {"entries": 0})["entries"] + 1
            seals[account, start] = {"account": account, "window.start": start, "entries": number, "seal": digest}
    return list(seals.values())


LENGTHS = st.sampled_from([seconds(n).to_pytimedelta() for n in (60, 600, 1800, 3600)])
SPIKES, ADS, AUCTIONS, AUDIT = "spikes", "unpopular_ads", "auctions", "audit_log"
ORACLES: dict[str, Callable[..., Any]] = {SPIKES: spikes, ADS: unpopular_ads, AUCTIONS: auctions, AUDIT: audit_log}


def flow_of(name: str) -> uc.Flow:
    own = page(name)
    flows = {
        SPIKES: lambda: own["spikes"](own["searches"]),
        ADS: lambda: own["unpopular"](own["clicks"]),
        AUCTIONS: lambda: own["averages"](own["auctions"], own["bids"]),
        AUDIT: lambda: own["seals"](own["entries"]),
    }
    flow: uc.Flow = flows[name]()
    return flow


@pytest.mark.weekly
@pytest.mark.parametrize("examples", [3, pytest.param(200, marks=pytest.mark.soak)])
@pytest.mark.parametrize("name", ORACLES)
def test_scripts_of_any_kind(name: str, examples: int) -> None:
    columns = {AUCTIONS: {"length": LENGTHS}}.get(name)
    # A late click that is in time does not meet a session that has expired.
    check_flow(flow_of(name), ORACLES[name], examples=examples, columns=columns, late=name != ADS)


def made(name: str, random: np.random.Generator) -> Iterator[tuple[str | None, str, dict[str, Any]]]:
    """Dense rows of a quarter of an hour: the input, the column of the time, and the other columns."""
    for _ in range(int(random.integers(60, 120))):
        some = random.choice(["a", "b"])
        match name:
            case "spikes":
                yield None, "ts", {"language": random.choice(["en", "fr"]), "word": random.choice([some, "c", "d"])}
            case "unpopular_ads":
                yield None, "ts", {"campaign": some, "ad": random.choice(["x", "y", "z"]), "weight": 1}
            case "auctions" if random.random() < 0.3:
                length = seconds(60 * int(random.integers(1, 9))).to_pytimedelta()
                names = {"auction": random.choice(["p", "q", "r"]), "category": some}
                yield "auctions", "opens", {**names, "length": length, "weight": 1}
            case "auctions":
                yield "bids", "ts", {"auction": random.choice(["p", "q", "r"]), "price": int(random.integers(0, 90))}
            case _:
                yield (
                    None,
                    "ts",
                    {"id": f"{random.integers(0, 400)}", "account": some, "text": random.choice(["in", "out"])},
                )


def dense(name: str, seed: int) -> list[uc.Elements | uc.Watermark]:
    """Rows that come up to two minutes late, some twice, some retracted, with watermarks that pass some of them."""
    random = np.random.default_rng(seed)
    events = []
    for place, time, row in made(name, random):
        at = int(random.integers(0, 400 if name == SPIKES else 900))
        row = {time: START + seconds(at), **row}
        come = at + int(random.integers(0, 120)) * (random.random() < 0.3)
        events.append((come, place, row))
        if "weight" in row and random.random() < 0.25:
            events.append((come + int(random.integers(0, 100)), place, {**row, "weight": -1}))
        elif random.random() < 0.15:
            events.append((come + int(random.integers(0, 100)), place, row))
    events.sort(key=lambda event: event[0])
    inputs = sorted({place for _, place, _ in events}, key=str)
    script: list[uc.Elements | uc.Watermark] = []
    while events:
        bundle = [events.pop(0) for _ in range(min(len(events), int(random.integers(4, 16))))]
        seen = START + seconds(bundle[-1][0])
        rows = {place: [row for _, own, row in bundle if own == place] for place in inputs}
        script += [uc.Elements(own, at=seen, input=place) for place, own in rows.items()]
        if random.random() < 0.6:
            script += [uc.Watermark(seen - seconds(10), input=place) for place in inputs]
    return [*script, *(uc.Watermark(None, input=place) for place in inputs)]


@pytest.mark.weekly
@pytest.mark.parametrize("seed", [3, *(pytest.param(n, marks=pytest.mark.soak) for n in range(4, 40))])
@pytest.mark.parametrize("name", ORACLES)
def test_dense_rows_late_repeated_and_retracted(name: str, seed: int) -> None:
    check_script(dense(name, seed), flow_of(name), ORACLES[name])


@pytest.mark.weekly
@pytest.mark.parametrize("name", ORACLES)
def test_the_script_of_the_page(name: str) -> None:
    inputs = {AUCTIONS: ("auctions", "bids")}.get(name, (None,))
    script = [*page(name)["script"], *(uc.Watermark(None, input=place) for place in inputs)]
    check_script(script, flow_of(name), ORACLES[name])
