"""The net model: in plain Python, what a grouping makes of all that is left of its rows at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from reference.byrule.times import MAX_TIME, MIN_TIME
from reference.byrule.windows import assign, components, hull, merges
from uncombine.flows.settle import shows_again
from uncombine.panes import Grouping

from .by_rules import Outcome, data, passed_on
from .case import SECOND, Case, Row, prepared

LONG = 3_600 * SECOND
Net = Counter[Any]


def wrong(case: Case, groupings: Sequence[Grouping], found: Outcome) -> str | None:
    """The first grouping that gave otherwise than over all rows at once, or that lost rows; None if there is none."""
    for i, grouping in enumerate(groupings):
        lost = found.counts[i]
        if i and _promised(groupings[: i + 1]) and (lost["dropped"] or (lost["bad"] and not case.stages[i].moved)):
            return f"grouping {i + 1} lost rows: {lost}"
        if not _adds_up(grouping) or lost["dropped"] or lost["finished"] or lost["bad"]:
            continue
        before = [row for rows in found.rows[i - 1] for row in rows]
        if i:
            rows = prepared(case.stages[i], passed_on(before), False)
        else:
            given = [row for bundle in case.bundles for row in data(case, bundle.rows, bundle.at)]
            rows = prepared(case.stages[0], given, True)
        got = [row for rows in found.rows[i] for row in rows]
        if (parted := _disagreement(grouping, rows, got)) is not None:
            return f"grouping {i + 1}: {parted}"
    return None


def _promised(groupings: Sequence[Grouping]) -> bool:
    """True if no row may be too late for the last of the groupings (rule 37)."""
    waits = [int(grouping.allowed_lateness) for grouping in groupings]
    return waits == sorted(waits)


def _adds_up(grouping: Grouping) -> bool:
    """True if the panes of a grouping add up to all of its rows."""
    shown = grouping.closing != "never" and not grouping.mode.endswith("by_default")
    return shown and (grouping.mode != "accumulating" or not shows_again(grouping))


def _disagreement(grouping: Grouping, rows: Iterable[Row], got: Iterable[Row]) -> str | None:
    want = _computed(grouping, rows)
    given: Net = Counter()
    for row in got:
        values = tuple((name, row[name]) for name in ("n", "x", "hi") if name in row)
        given[tuple(row[name] for name in grouping.by), row["window"], values] += row["diff"]
    # A session that has expired has left, and a row in its time then opens another.
    apart = merges(grouping.window) and int(grouping.allowed_lateness) < LONG
    if grouping.mode == "discarding" or apart:
        sums, wanted = (_sums(net, not merges(grouping.window)) for net in (given, want))
        return None if sums == wanted else f"sums {sums}, and all rows at once give {wanted}"
    left = {row: weight for row, weight in given.items() if weight}
    return None if left == dict(want) else f"left {left}, and all rows at once give {dict(want)}"


def _computed(grouping: Grouping, rows: Iterable[Row]) -> Net:
    """The results over all rows at once, by key and window."""
    cells: dict[Any, list[Row]] = {}
    for row in rows:
        key = tuple(row[name] for name in grouping.by)
        for span in assign(grouping.window, row["ts"], row):
            cells.setdefault((key, span), []).append(row)
    if merges(grouping.window):
        cells = _merged(grouping, cells)
    out: Net = Counter()
    for (key, span), held in cells.items():
        weights = [row["d"] if grouping.changelog else 1 for row in held]
        if sum(weights) == 0 and grouping.retracting and grouping.changelog:
            continue
        left: Counter[int] = Counter()
        for row, weight in zip(held, weights, strict=True):
            if row["x"] is not None:
                left[row["x"]] += weight
        sum_ = sum(value * weight for value, weight in left.items())
        values: dict[str, Any] = {"n": sum(weights), "x": sum_ if sum(left.values()) or sum_ else None}
        if "hi" in grouping.combiners:
            values["hi"] = max((value for value, weight in left.items() if weight > 0), default=None)
        out[key, span, tuple(values.items())] += 1
    return out


def _merged(grouping: Grouping, cells: dict[Any, list[Row]]) -> dict[Any, list[Row]]:
    """The cells of windows that merge; over a changelog only what is left of the rows opens windows."""
    out: dict[Any, list[Row]] = {}
    for key in {key for key, _ in cells}:
        own = {span: held for (other, span), held in cells.items() if other == key}
        if grouping.changelog:
            own = {span: held for span, held in own.items() if _is_left(held)}
        for group in components(grouping.window, list(own)):
            out[key, hull(group)] = [row for span in group for row in own[span]]
    return out


def _is_left(held: Iterable[Row]) -> bool:
    """True unless the weights of the rows, and of each value, add up to zero."""
    weights: Counter[Any] = Counter()
    for row in held:
        weights["rows"] += row["d"]
        if row["x"] is not None:
            weights["x", row["x"]] += row["d"]
    return any(weights.values())


def _sums(net: Net, windows: bool) -> dict[Any, int]:
    """The sums of counts and of values, by key and, if windows do not merge, by window."""
    out: Counter[Any] = Counter()
    for (key, span, values), weight in net.items():
        place = (key, span if windows else (MIN_TIME, MAX_TIME))
        for name, value in values:
            if name != "hi":
                out[place, name] += (value or 0) * weight
    return {name: value for name, value in out.items() if value}
