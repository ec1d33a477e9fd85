"""Random labels and events, what each label sees of the events in plain Python, and how a stream brings both."""

from __future__ import annotations

import datetime as dt
import random
from typing import Any

import pyarrow as pa
from by_double_loop import EPOCH, seen_from
from every import rows

import uncombine as uc

SECOND = dt.timedelta(seconds=1)
TIME = pa.timestamp("us", "UTC")
PERIODS: dict[str, tuple[Any, Any]] = {
    "s3": ("3 seconds", 3 * SECOND),
    "s20": ("20 seconds", 20 * SECOND),
    "m1": ("1 month", 1),
    "ever": (None, None),
}

SOME: dict[str, uc.Combiner] = {
    "n": uc.Count(),
    "total": uc.Sum("x_long"),
    "exact": uc.Sum("x_double", exact=True),
    "best": uc.Max("x_text"),
    "middle": uc.Median("x_long"),
    "kinds": uc.CountDistinct("x_text"),
    "mode": uc.Mode("x_text"),
    "top": uc.TopK("x_long", 2),
    "found": uc.CollectList("x_text"),
}


def events_of(count: int, seed: int) -> pa.Table:
    """Random events at few times, most of them known soon, some long after, some before their time."""
    draw = random.Random(seed)
    times = [EPOCH + draw.randrange(40) * SECOND for _ in range(count)]
    delays = [draw.choice([0, 0, 0, 1, 2, 5, 30, -3]) * SECOND for _ in range(count)]
    known = [time + delay for time, delay in zip(times, delays, strict=True)]
    table = rows(count, seed).drop_columns(["diff"])
    return table.append_column("ts", pa.array(times, TIME)).append_column("came", pa.array(known, TIME))


def labels_of(count: int, seed: int) -> pa.Table:
    draw = random.Random(seed + 1)
    columns = {
        "id": pa.array(range(count)),
        "user": [draw.choice(["hot", "hot", "b", "c", "alone", "unknown", None]) for _ in range(count)],
        "ts": pa.array([EPOCH + draw.randrange(50) * SECOND for _ in range(count)], TIME),
    }
    return pa.table(columns)


def seen_by(labels: pa.Table, events: pa.Table, period: Any, closed: str, coarse: Any = None) -> list[list[int]]:
    """The places of the events that each label sees."""
    keys, times, known = (events[name].to_pylist() for name in ("g", "ts", "came"))
    out = []
    for label in labels.to_pylist():
        within = seen_from(label["ts"], times, period, closed, coarse)
        out.append([i for i in within if label["user"] == keys[i] is not None and known[i] <= label["ts"]])
    return out


def features(labels: uc.Flow, events: uc.Flow, names: list[str], **options: Any) -> Any:
    return labels.join_rolling(events, {name: PERIODS[name][0] for name in names}, by={"user": "g"}, **options)


def results(found: pa.Table, name: str, combiners: dict[str, uc.Combiner]) -> pa.Table:
    return found.select([f"{name}_{one}" for one in combiners]).rename_columns(list(combiners))


def served(labels: pa.Table, events: pa.Table) -> list[uc.Elements]:
    """Labels at their times, and events as they become known; events of an instant come before its labels."""
    arrivals: dict[Any, list[Any]] = {}
    for event in events.to_pylist():
        arrivals.setdefault((max(event["came"], event["ts"]), "events"), []).append(event)
    for label in labels.to_pylist():
        arrivals.setdefault((label["ts"], "labels"), []).append(label)
    return [uc.Elements(arrivals[at], input=at[1]) for at in sorted(arrivals)]
