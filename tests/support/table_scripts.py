"""Random lookups and joins of rows that are kept, and their results row by row, written from rules 99 to 101."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from random import Random
from typing import Any

from join_scripts import KEYS, Case, Oracle, Row, normal

from uncombine.panes.join.join import LOOKUPS
from uncombine.panes.join.kept import KeptJoin
from uncombine.panes.lookup.lookup import Lookup
from uncombine.windows.times import MAX_TIME

Bundle = dict[str, list[tuple[Row, int]]]

KEPT = [
    *((how, "at_once") for how in ("inner", "left", "right", "full", "semi", "anti")),
    *((how, "final") for how in ("left", "right", "full", "anti")),
]
"""The kinds of join with `keep`."""

STAY = {"left": ("right",), "semi": ("right",), "anti": ("right",), "right": ("left",), "full": ("left", "right")}
"""The sides that stay for ever, by the kind of join."""


def random_kept(random: Random, how: str, unmatched: str, diff: bool) -> Case:
    stages = random.random() < 0.5, random.random() < 0.5
    keep = [
        None
        if side in STAY.get(how, ()) or random.random() < 0.2
        else timedelta(microseconds=random.choice([0, 4, 15]))
        for side in ("left", "right")
    ]
    join = KeptJoin(
        "k",
        how,
        unmatched=unmatched,
        keep=tuple(keep),
        allowed_lateness=timedelta(microseconds=random.choice([0, 0, 3, 9])),
        left_time="event_time" if stages[0] else "ts",
        right_time="event_time" if stages[1] else "ts",
        left_diff="diff" if diff else None,
        right_diff="diff" if diff else None,
    )
    return Case(join, random.choice(sorted(KEYS)), *stages)


def random_lookup(random: Random, how: str, left: bool, right: bool) -> Case:
    """A lookup whose left and right rows may be retracted."""
    stages = random.random() < 0.5, random.random() < 0.5
    join = Lookup(
        "k",
        how,
        allowed_lateness=timedelta(microseconds=random.choice([0, 3, 9, 30])),
        left_time="event_time" if stages[0] else "ts",
        right_time="event_time" if stages[1] else "ts",
        left_diff="diff" if left else None,
        right_diff="diff" if right else None,
    )
    return Case(join, random.choice(sorted(KEYS)), *stages)


@dataclass
class TableOracle(Oracle):
    """The output so far, which is added to bundle by bundle: what was given stays."""

    out: Counter[tuple[Any, ...]] = field(default_factory=Counter)

    def expected(self) -> Counter[tuple[Any, ...]]:
        return Counter({row: n for row, n in self.out.items() if n})

    def give(self, row: tuple[Any, ...], weight: int) -> None:
        self.out[row] += weight

    def in_time(self, side: str, rows: list[tuple[Row, int]]) -> Counter[Row]:
        """The rows of a bundle that are in time, with the sums of their weights; the others are counted."""
        sums: Counter[Row] = Counter()
        for (key, value, time, end), weight in rows:
            if self.passed(side, time):
                self.late += 1
            else:
                sums[normal(key), value, time, end] += weight
        return sums

    def passed(self, side: str, time: int) -> bool:
        """True if the watermark has passed a row of this time by all that it is kept."""
        join = self.case.join
        kept = join.kept(side)
        if self.watermark == MAX_TIME:  # the input has ended
            return True
        return kept is not None and time + int(kept) + int(join.allowed_lateness) < self.watermark


class KeptOracle(TableOracle):
    """The join of the rows that are there: each bundle gives the difference that its rows make to it."""

    def take(self, bundle: Bundle, watermark: int) -> None:
        self.change(-1)
        for side, rows in bundle.items():
            for row, weight in self.in_time(side, rows).items():
                self.held[side][row] += weight
        self.change(1)
        self.watermark = max(self.watermark, watermark)
        if self.case.join.final:
            for side, row, weight in self.without_match():
                if self.passed(side, row[2]):
                    self.give(self.alone(side, row), weight)
        for side, held in self.held.items():
            self.held[side] = Counter({row: n for row, n in held.items() if not self.passed(side, row[2])})

    def there(self, side: str) -> list[tuple[Row, int]]:
        return [(row, n) for row, n in self.held[side].items() if n > 0]

    def change(self, sign: int) -> None:
        """Add the join of the rows that are there, or take it away."""
        join = self.case.join
        for left, n in self.there("left"):
            partners = [(right, m) for right, m in self.there("right") if left[0] is not None and left[0] == right[0]]
            for right, m in partners if join.pairs else ():
                self.give(self._row(left[0], left[3], left[1:3], right[1:3]), sign * n * m)
            if join.how == "semi" and partners:
                self.give(self.alone("left", left), sign * n)
        if not join.final:
            for side, row, n in self.without_match():
                self.give(self.alone(side, row), sign * n)

    def without_match(self) -> list[tuple[str, Row, int]]:
        out = []
        for side, other in (("left", "right"), ("right", "left")):
            keys = {row[0] for row, _ in self.there(other)} - {None}
            if self.case.join.how in {"left": ("left", "full", "anti"), "right": ("right", "full")}[side]:
                out += [(side, row, n) for row, n in self.there(side) if row[0] not in keys]
        return out

    def alone(self, side: str, row: Row) -> tuple[Any, ...]:
        mine, none = row[1:3], (None, None)
        return self._row(row[0], row[3], *((mine, none) if side == "left" else (none, mine)))


@dataclass
class LookupOracle(TableOracle):
    """Each left row with the right rows that are valid when it comes, and the memory of what it met."""

    given: dict[Row, list[tuple[int, list[tuple[Row, int]]]]] = field(default_factory=dict)
    """For each left row its turns, each with its weight and the right rows that it met."""
    waiting: Counter[Row] = field(default_factory=Counter)
    """Retractions of left rows that did not come yet."""

    def take(self, bundle: Bundle, watermark: int) -> None:
        for row, weight in self.in_time("right", bundle["right"]).items():
            self.held["right"][row] += weight
        for row, weight in self.in_time("left", bundle["left"]).items():
            if weight > 0:
                self.come(row, weight)
            else:
                self.go(row, -weight)
        self.watermark = max(self.watermark, watermark)
        for row in [row for row in (*self.given, *self.waiting) if self.passed("left", row[2])]:
            self.given.pop(row, None)
            self.waiting.pop(row, None)

    def come(self, row: Row, weight: int) -> None:
        paid = min(weight, self.waiting[row])
        self.waiting[row] -= paid
        if weight > paid:
            met = [(other, n) for other, n in self.held["right"].items() if n > 0 and row[0] is not None]
            met = [(other, n) for other, n in met if other[0] == row[0]]
            self.given.setdefault(row, []).append((weight - paid, met))
            self.show(row, weight - paid, met)

    def go(self, row: Row, weight: int) -> None:
        turns = self.given.get(row, [])
        while weight and turns:
            most, met = turns.pop()
            some = min(most, weight)
            self.show(row, -some, met)
            weight -= some
            if most > some:
                turns.append((most - some, met))
        self.waiting[row] += weight

    def show(self, row: Row, weight: int, met: list[tuple[Row, int]]) -> None:
        for other, n in met:
            self.give(self.looked_up(row, other[1:3]), weight * n)
        if not met and self.case.join.alone("left"):
            self.give(self.looked_up(row, (None, None)), weight)

    def looked_up(self, row: Row, right: tuple[Any, Any]) -> tuple[Any, ...]:
        return (*self._row(row[0], row[3], row[1:3], right)[:-1], row[2])


__all__ = ["KEPT", "LOOKUPS", "KeptOracle", "LookupOracle", "random_kept", "random_lookup"]
