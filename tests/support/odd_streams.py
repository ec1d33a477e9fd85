"""Random streams of odd files, and what is left of their panes, in plain Python."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from odd_files import FORMATS, KEYS, START, TEXTS, TIME, VALUES, drawn_values, plain
from reference.byrule.times import MAX_TIME, MIN_TIME
from reference.byrule.windows import assign, united

import uncombine as uc

SECOND = 1_000_000
PARTS = ("text", "ids", "bytes", "float", "single", "decimal", "date", "instant", "long", "bool", "half")
"""The kinds of the column `v`."""

WINDOWS = (
    uc.Fixed("1 minute"),
    uc.Sliding("2 minutes", "40 seconds"),
    uc.Sliding("2 minutes", "39.999999 seconds", "1 microsecond"),
    uc.Sessions("25 seconds"),
    uc.Sessions("5 seconds"),
    uc.Global(),
)
COUNTED = uc.Repeatedly(uc.AfterCount(1))
TRIGGERS = (
    None,
    COUNTED,
    uc.AfterWatermark(late=uc.AfterCount(1)),
    uc.AfterWatermark(early=uc.AfterCount(1), late=uc.AfterCount(1)),
    uc.AfterWatermark(early=uc.AfterCount(3), late=uc.AfterCount(1)),
)


def _order(value: Any) -> Any:
    """A value that sorts as the values of a column do."""
    if isinstance(value, float):
        return (value != value, 0.0 if value != value else value)
    return value.encode() if isinstance(value, str) else value


def _mode(texts: list[str]) -> str | None:
    counts = Counter(texts)
    return min(counts, key=lambda text: (-counts[text], _order(text)), default=None)


def _ordered(values: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(sorted(values, key=_order))


COMBINERS: dict[str, tuple[uc.Combiner, str, Callable[[list[Any]], Any]]] = {
    "rows": (uc.Count(), "w", len),
    "known": (uc.Count("v"), "v", len),
    "total": (uc.Sum("x"), "x", lambda xs: sum(xs) if xs else None),
    "distinct": (uc.CountDistinct("s"), "s", lambda texts: len(set(texts))),
    "different": (uc.CountDistinct("v"), "v", lambda values: len({plain(value, zeros=True) for value in values})),
    "most": (uc.Max("s"), "s", lambda texts: max(texts, key=_order, default=None)),
    "least": (uc.Min("s"), "s", lambda texts: min(texts, key=_order, default=None)),
    "last": (uc.Max("v"), "v", lambda values: plain(max(values, key=_order, default=None), zeros=True)),
    "set": (uc.CollectSet("s"), "s", lambda texts: _ordered(set(texts))),
    "list": (uc.CollectList("s"), "s", _ordered),
    "top": (uc.TopK("s", 2), "s", lambda texts: _ordered(texts)[::-1][:2]),
    "mode": (uc.Mode("s"), "s", _mode),
}
"""Combiners, each with its column, and its result from the values that are not null."""

ADDITIVE = ("rows", "known", "total")


@dataclass(frozen=True)
class Program:
    """A stream: the rows of its files, and a grouping of them."""

    format: str
    schema: pa.Schema
    files: list[list[dict[str, Any]]]
    """The last one moves the watermark past the times of all others."""
    left: list[dict[str, Any]]
    """The rows that are not retracted."""
    diff: str | None
    options: Mapping[str, Any]
    by: Sequence[str]
    names: Sequence[str]
    """The names of the combiners."""

    def over(self, source: uc.Flow) -> uc.Flow:
        combiners = {name: COMBINERS[name][0] for name in self.names}
        return source.window(**self.options).combine(by=self.by, **combiners)

    def expected(self) -> Counter[Any]:
        """The key, the window and the results of each pane that must be left."""
        cells: dict[Any, list[dict[str, Any]]] = defaultdict(list)
        spans: dict[Any, list[tuple[int, int]]] = defaultdict(list)
        given = [*self.left, *self.files[-1]]
        window = self.options["window"]
        for values, row in zip(pa.Table.from_pylist(given, self.schema).to_pylist(), given, strict=True):
            key = tuple(plain(values[name], zeros=True) for name in self.by)
            for span in assign(window, row["ts"], row):
                cells[key, span].append(values)
                spans[key].append(span)
        if window.merging:
            merged: dict[Any, list[dict[str, Any]]] = defaultdict(list)
            for (key, span), held in cells.items():
                merged[key, next(h for h in united(spans[key]) if h[0] <= span[0] < h[1])] += held
            cells = merged
        return Counter((key, span, *self._results(held)) for (key, span), held in cells.items() if _is_near(span))

    def _results(self, held: list[dict[str, Any]]) -> list[Any]:
        found = []
        for name in self.names:
            _, column, of = COMBINERS[name]
            found.append(of([row[column] for row in held if row[column] is not None]))
        return found

    def shown(self, panes: pa.Table) -> Counter[Any]:
        """The same of panes, in their order."""
        out: Counter[Any] = Counter()
        last: dict[Any, Any] = {}
        for row in panes.to_pylist():
            key = tuple(plain(row[name], zeros=True) for name in self.by)
            held = row["window"]
            span = (MIN_TIME, MAX_TIME) if held is None else (uc.timestamp(held["start"]), uc.timestamp(held["end"]))
            if not _is_near(span):
                continue
            values = tuple(self._value(name, row[name]) for name in self.names)
            if self.options["mode"] == "retracting":
                out[key, span, *values] += row.get("diff", 1)
            elif self.options["mode"] == "discarding" and (key, span) in last:
                last[key, span] = tuple(map(_added, last[key, span], values))
            else:
                last[key, span] = values
        if last:
            return Counter((*cell, *values) for cell, values in last.items())
        return Counter({pane: count for pane, count in out.items() if count})

    def _value(self, name: str, value: Any) -> Any:
        if name in ("set", "list"):
            return _ordered(value or ())
        return plain(value, zeros=True)


def _added(one: Any, other: Any) -> Any:
    return other if one is None else one if other is None else one + other


def _is_near(span: tuple[int, int]) -> bool:
    """False for the windows of the last file, some of which are shown and some not."""
    return span[1] < START + 80_000 * SECOND or span[1] == MAX_TIME


def draw_program(r: random.Random, formats: Sequence[str] = FORMATS) -> Program:
    """A random stream whose rows are never too late; a changelog retracts rows of earlier files."""
    format = r.choice(formats)
    key = r.choice([name for name, kind in KEYS.items() if format in kind.formats])
    part = r.choice([name for name in PARTS if format in VALUES[name].formats])
    fields = {"ts": TIME, "k": KEYS[key].type, "j": pa.string(), "s": pa.string(), "v": VALUES[part].type}
    schema = pa.schema({**fields, "x": pa.int64(), "w": pa.int64()})
    changelog = r.random() < 0.35
    files, left = list[list[dict[str, Any]]](), list[dict[str, Any]]()
    for place in range(r.choice([2, 3, 4])):
        count = r.choice([1, 6, 30])
        columns = [drawn_values(r, kind, count, format) for kind in (KEYS[key], VALUES[part])]
        texts, some = [None, *r.sample(TEXTS, 3)], r.choice([["p"], ["p", "q", None], ["q"]])
        rows = []
        for k, v in zip(*columns, strict=True):
            at = r.choice([100 * place + r.randrange(-60, 160), r.randrange(-1000, 100)])
            row = {"ts": START + at * SECOND, "k": k, "j": r.choice(some), "s": r.choice(texts), "v": v}
            rows.append({**row, "x": r.choice([None, *range(-3, 9)]), "w": 1})
        back = r.sample(left, r.randrange(len(left) + 1)) if changelog else []
        left = [row for row in left if not any(row is other for other in back)] + rows
        files.append([*rows, *({**row, "w": -1} for row in back)])
    nothing = dict.fromkeys(schema.names)
    files.append([{**nothing, "ts": START + 86_400 * SECOND, "w": 1}])
    window = r.choice(WINDOWS)
    merging = changelog or window.merging
    mode = "retracting" if merging else r.choice(["retracting", "accumulating", "discarding"])
    trigger = COUNTED if isinstance(window, uc.Global) else r.choice(TRIGGERS)
    names = ADDITIVE if mode == "discarding" else [name for name in COMBINERS if name == "rows" or r.random() < 0.5]
    options = {"window": window, "trigger": trigger, "mode": mode, "allowed_lateness": "2 days"}
    by = r.choice([("k",), ("j", "k"), ("k", "j"), ("k", "s"), ("s",)])
    return Program(format, schema, files, left, "w" if changelog else None, options, by, names)
