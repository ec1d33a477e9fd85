"""Random as-of joins over the scripts of two changelogs, and their results by a plain double loop."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from random import Random
from typing import Any

from join_scripts import KEYS, Case, Oracle, Row

from uncombine.panes.join_asof.join_asof import DIRECTIONS, JoinAsof
from uncombine.windows.times import MAX_TIME


def random_asof(random: Random, direction: str, emit: str, diff: bool) -> Case:
    stages = random.random() < 0.5, random.random() < 0.5
    tolerance = random.choice([None, None, 1, 4, 11])
    asof = JoinAsof(
        "k",
        direction,
        None if tolerance is None else timedelta(microseconds=tolerance),
        random.random() < 0.6,
        random.choice(["left", "inner"]),
        random.choice(["v", ()]),
        allowed_lateness=timedelta(microseconds=random.choice([0, 0, 3, 9])),
        emit=emit,
        left_time="event_time" if stages[0] else "ts",
        right_time="event_time" if stages[1] else "ts",
        left_diff="diff" if diff else None,
        right_diff="diff" if diff else None,
    )
    return Case(asof, random.choice(sorted(KEYS)), *stages)


def met(
    left: int, rights: list[tuple[int, Any]], direction: str, tolerance: int | None, allow_exact: bool
) -> tuple[int, Any] | None:
    """The right time and rank that a left time meets, by looking at all of them."""
    best: tuple[Any, ...] | None = None
    for time, rank in rights:
        apart = time - left
        on_its_side = {"backward": apart <= 0, "forward": apart >= 0, "nearest": True}[direction]
        if not on_its_side or (tolerance is not None and abs(apart) > tolerance) or (apart == 0 and not allow_exact):
            continue
        nearness = -abs(apart), time, rank
        if best is None or nearness > best:
            best = nearness
    return None if best is None else (best[1], best[2])


def _rank(row: Row) -> tuple[bool, int]:
    return row[1] is not None, row[1] or 0


class AsofOracle(Oracle):
    """The rows that were in time, and the output of the as-of join over them."""

    def expected(self) -> Counter[tuple[Any, ...]]:
        """The rows of output with their weights."""
        asof, case = self.case.join, self.case
        assert isinstance(asof, JoinAsof)
        tolerance = None if asof.tolerance is None else int(asof.tolerance)
        out: Counter[tuple[Any, ...]] = Counter()
        for row, count in self.held["left"].items():
            if count <= 0:
                continue
            rights = {
                (other[2], _rank(other)): other
                for other, times in self.held["right"].items()
                if times > 0 and row[0] is not None and row[0] == other[0]
            }
            found = met(row[2], list(rights), asof.direction, tolerance, asof.allow_exact)
            if asof.final and not self._certain(row, found, tolerance):
                continue
            if found is None and asof.how == "inner":
                continue
            left = [row[1]] if case.left_stage else [row[1], row[2]]
            right: list[Any] = [None] if case.right_stage else [None, None]
            if found is not None:
                other = rights[found]
                right = [other[1]] if case.right_stage else [other[1], other[2]]
            out[(row[0], *left, *right, row[2])] += count
        return out

    def _certain(self, row: Row, found: tuple[int, Any] | None, tolerance: int | None) -> bool:
        """True if no row that may still come changes the match."""
        asof, time = self.case.join, row[2]
        assert isinstance(asof, JoinAsof)
        if self.watermark == MAX_TIME:
            return True
        if asof.direction == "backward" or row[0] is None:
            last = time
        elif found is not None:
            last = time + abs(found[0] - time)
        elif tolerance is not None:
            last = time + tolerance
        else:
            return False
        return self.watermark > last + int(asof.allowed_lateness)


__all__ = ["DIRECTIONS", "AsofOracle", "met", "random_asof"]
