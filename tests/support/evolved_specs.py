"""Random flows that are changed, their rows, and what is left of their changelogs, for tests of changed flows."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from row_steps import SCHEMA, SECOND, START

import uncombine as uc

FAR = 4_070_908_800 * SECOND
"""A time in the year 2099, which makes a bad row."""

COMBINERS: Mapping[str, uc.Combiner] = {
    "n": uc.Count(),
    "total": uc.Sum("x"),
    "most": uc.Max("x"),
    "middle": uc.Median("x"),
    "ids": uc.CountDistinct("id"),
    "mean": uc.Mean("x"),
    "last": uc.ArgMax("x", by="ts"),
    "spread": uc.Variance("x").where(uc.col("id") > 1),
}
WINDOWS = ["1 minute", "5 minutes", "sessions 40 seconds", "global", uc.Sliding("2 minutes", "1 minute")]
TRIGGERS = ["each row", "early every 2 rows, late every 1 row", "early every 30 seconds, late each row", None]


@dataclass(frozen=True)
class Spec:
    """A flow as a value that can be changed."""

    combiners: Mapping[str, str]
    """The name in `COMBINERS` of each result."""
    window: Any
    trigger: Any
    by: tuple[str, ...]
    lateness: str = "1 day"
    least: int | None = None
    """Rows below are filtered out."""
    doubled: bool = False
    second: bool = False
    shown: bool = False
    """True if columns are selected at the end."""

    def __post_init__(self) -> None:
        if self.window == "global" and self.second:
            # The event time of a pane of all time depends on its firing, and a second step reads it.
            object.__setattr__(self, "window", "5 minutes")
        if self.window == "global" and self.trigger is None:
            object.__setattr__(self, "trigger", "each row")

    @property
    def flow(self) -> uc.Flow:
        return self.over(uc.flow(SCHEMA, watermark="30 seconds", diff="w"))

    def over(self, flow: uc.Flow) -> uc.Flow:
        """The flow over a source."""
        if self.least is not None:
            flow = flow.where(uc.col("x") >= self.least)
        if self.doubled:
            flow = flow.with_columns(x=uc.col("x") * 2)
        combiners = {name: COMBINERS[of] for name, of in self.combiners.items()}
        options = {"mode": "retracting", "allowed_lateness": self.lateness}
        flow = flow.window(self.window, self.trigger, **options).combine(by=self.by, **combiners)
        if self.second:
            first = next(iter(combiners))
            later = flow.window("10 minutes", "each row", **options)
            flow = later.combine(
                by=self.by[:1], groups=uc.Count(), any=uc.Max("event_time"), values=uc.CountDistinct(first)
            )
        elif self.shown:
            flow = flow.select(*self.by, "window", *combiners, "event_time", "diff")
        return flow


def draw_spec(r: random.Random) -> Spec:
    names = r.sample(sorted(COMBINERS), r.randrange(1, 5))
    by = r.choice([("k",), ("k", "id"), ()])
    return Spec(
        combiners={name: name for name in names},
        window=r.choice(WINDOWS),
        trigger=r.choice(TRIGGERS),
        by=by,
        least=r.choice([None, 10]),
        second=r.random() < 0.3,
        shown=r.random() < 0.3,
    )


def changed(r: random.Random, spec: Spec) -> Spec:
    """The flow after one change."""
    own, others = list(spec.combiners.items()), [name for name in COMBINERS if name not in spec.combiners.values()]
    kinds: dict[str, Callable[[], Spec]] = {
        "add": lambda: replace(spec, combiners={**spec.combiners, f"new {others[0]}": r.choice(others)}),
        "remove": lambda: replace(spec, combiners=dict(r.sample(own, max(1, len(own) - 1)))),
        "rename": lambda: replace(spec, combiners={f"{own[0][0]}_": own[0][1], **dict(own[1:])}),
        "reorder": lambda: replace(spec, combiners=dict(r.sample(own, len(own)))),
        "trigger": lambda: replace(spec, trigger=r.choice(TRIGGERS)),
        "window": lambda: replace(spec, window=r.choice(WINDOWS)),
        "keys": lambda: replace(spec, by=r.choice([("k",), ("k", "id"), ()])),
        "filter": lambda: replace(spec, least=r.choice([None, 10, 25])),
        "function": lambda: replace(spec, doubled=not spec.doubled),
        "step": lambda: replace(spec, second=not spec.second),
        "select": lambda: replace(spec, shown=not spec.shown),
    }
    return kinds[r.choice(list(kinds))]()


def draw_script(r: random.Random, entries: int = 12) -> list[Any]:
    """Rows, some of them retracted later, and clocks; the watermark is that of the flows, and few rows are bad."""
    rows: list[dict[str, Any]] = []
    script: list[Any] = []
    now = START
    for _ in range(entries):
        now += r.choice([1, 20, 90]) * SECOND
        bundle = []
        for _ in range(r.randrange(4)):
            row = {"ts": now - r.randrange(100) * SECOND, "k": r.choice(["p", "q", None]), "id": r.randrange(3)}
            row |= {"x": r.choice([None, *range(50)]), "w": 1, "seen": now}
            row |= {"ts": FAR} if r.random() < 0.05 else {}
            if rows and r.random() < 0.3:
                row = {**rows.pop(r.randrange(len(rows))), "w": -1}
            else:
                rows.append(row)
            bundle.append(row)
        script.append(uc.Elements(pa.Table.from_pylist(bundle, SCHEMA), at=now) if bundle else uc.Clock(now))
    return [*script, uc.Watermark(None)]


def rows_before(script: list[Any]) -> pa.Table:
    return pa.concat_tables([SCHEMA.empty_table(), *(one.rows for one in script if isinstance(one, uc.Elements))])


def left(*parts: pa.Table, names: list[str]) -> Counter[str]:
    """The rows that are left of changelogs, in these columns, of which those that a part lacks are null."""
    rows: Counter[str] = Counter()
    for part in parts:
        for row in part.to_pylist():
            rows[repr([_plain(row.get(name)) for name in names])] += row["diff"]
    return Counter({row: count for row, count in rows.items() if count})


def _plain(value: Any) -> Any:
    return round(value, 9) if isinstance(value, float) else value


def columns(flow: uc.Flow) -> list[str]:
    return [name for name in flow.schema.names if name not in ("diff", "pane")]
