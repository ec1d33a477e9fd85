"""A stored seed of each format: the flow, its script, and where the seed was made. Seeds of all formats are read."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

import uncombine as uc

STORED = Path(__file__).parents[1] / "data" / "stored"
BEFORE = 5
"""The entries of the script that are in the seed."""
SCHEMA = pa.schema({"ts": pa.timestamp("us", "UTC"), "k": pa.string(), "x": pa.float64(), "d": pa.int64()})


def seed_file(format: int) -> Path:
    """The file with the seed of a format."""
    return STORED / f"seed_{format}.zip"


def history_file(format: int) -> Path:
    """The file with the seed of a history, of a format."""
    return STORED / f"history_{format}.zip"


HISTORY = [{"ts": 1_000_000 * time, "k": "ab"[time % 2], "x": time / 4, "d": 1} for time in (0, 3, 61, 64, 70)]
SHOWN = [("a", 0.0), ("b", 0.75), ("a", 33.5), ("b", 15.25)]
"""The keys and sums that the history shows."""


def history_flow() -> uc.Flow:
    """A flow whose state takes panes for shown."""
    minutes = uc.flow(SCHEMA, watermark="10 seconds", diff="d").window("1 minute", "each row", mode="retracting")
    return minutes.combine(by="k", total=uc.Sum("x"))


def stored_flow() -> uc.Flow:
    """A flow with a state of each kind: ids, both sides of a join, rows in order, sessions, shown panes, timers."""
    rows = uc.flow(SCHEMA, watermark="10 seconds", diff="d", name="rows")
    others = uc.flow(SCHEMA, watermark=uc.PerSource("k", lag="5 seconds"), name="others").distinct(
        "k", "x", within="1 minute"
    )
    pairs = rows.join(others.select("event_time", "k", "x"), on="k", within=("-30 seconds", "30 seconds"))
    early = uc.AfterWatermark(early=uc.AfterDelay("10 seconds"), late=uc.AfterCount(1))
    sessions = pairs.window("sessions 20 seconds", early, mode="retracting", allowed_lateness="1 minute")
    totals = sessions.combine(by="k", n=uc.Count(), middle=uc.Median("x_left"), top=uc.TopK("x_right", 2))
    return totals.window("1 minute", "each row", mode="retracting").combine(n=uc.Sum("n"), most=uc.Max("middle"))


def stored_script() -> list[uc.Elements | uc.Watermark]:
    """Rows of both inputs, some of them late, and the end."""
    out: list[uc.Elements | uc.Watermark] = []
    for place in range(6):
        for name in ("rows", "others"):
            times = [20 * place + step for step in (0, 3, 3, 11, -14)]
            rows = [{"ts": time * 1_000_000, "k": "ab"[time % 2], "x": time / 4, "d": 1} for time in times if time >= 0]
            at = f"2024-05-01 12:00:{10 * place:02}"
            out.append(uc.Elements(rows, input=name, at=at))
    return [*out, uc.Watermark(None)]
