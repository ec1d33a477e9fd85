"""`uc.rolling` over random tables against a double loop in plain Python, for every combiner of the library."""

from __future__ import annotations

import datetime as dt
import random
import re
import threading
import warnings
from typing import Any

import pyarrow as pa
import pytest
from by_double_loop import EPOCH, check, expected, seen_by_count, seen_from, ticks_seen
from every import EVERY, ONE_OF_EACH, rows
from seeds import seeds

import uncombine as uc
from uncombine.lookbacks import range_states, results

pytestmark = pytest.mark.filterwarnings("ignore:.*has no bound for its rounding", "ignore:.*'diff'")

SECOND = dt.timedelta(seconds=1)
PERIODS: dict[str, tuple[Any, Any]] = {
    "s3": ("3 seconds", 3 * SECOND),
    "s20": ("20 seconds", 20 * SECOND),
    "m1": ("1 month", 1),
    "y1": ("1 year", 12),
    "ever": (None, None),
}


def table(count: int, seed: int, nulls: float = 0.1) -> pa.Table:
    """Random rows at few times, so that there are ties, some a month apart, some without a time."""
    draw = random.Random(seed)
    base = dt.datetime(2024, 3, draw.choice([1, 29, 31]), tzinfo=dt.UTC)
    times = [
        None
        if draw.random() < nulls
        else base - dt.timedelta(days=draw.choice([0, 0, 0, 29, 31, 60])) + draw.randrange(25) * SECOND
        for _ in range(count)
    ]
    return rows(count, seed).append_column("ts", pa.array(times, pa.timestamp("us", "UTC")))


def by_key(source: pa.Table) -> list[list[int]]:
    """The places of the rows of each key."""
    keys = source["g"].to_pylist()
    return [[i for i, key in enumerate(keys) if key == one] for one in dict.fromkeys(keys)]


def all_seen(source: pa.Table, see: Any, min_rows: int = 1) -> list[list[int] | None]:
    times = source["ts"].to_pylist()
    out: list[list[int] | None] = [None] * len(times)
    for places in by_key(source):
        for number, place in enumerate(places):
            if times[place] is not None:
                seen = [places[i] for i in see(number, [times[i] for i in places], places)]
                out[place] = seen if len(seen) >= min_rows or min_rows <= 1 else None
    return out


@pytest.mark.parametrize("closed", ["right", "left", "both", "neither"])
@pytest.mark.parametrize("seed", seeds(8))
def test_every_combiner_over_periods(seed: int, closed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where states have no room, so that ranges have trees of few rows."""
    source, draw = table(20, seed), random.Random(seed)
    room = draw.choice([1, 3_000, range_states.AT_ONCE])
    for module in (range_states, results):
        monkeypatch.setattr(module, "AT_ONCE", room)
    labels = draw.sample(sorted(PERIODS), draw.choice([2, 4]))
    combiners = EVERY if closed == "right" else ONE_OF_EACH
    coarse = draw.choice([None, None, 5 * SECOND, dt.timedelta(minutes=1)])
    min_rows = draw.choice([1, 1, 2, 3])
    found = uc.rolling(
        source,
        {label: PERIODS[label][0] for label in labels},
        by="g",
        closed=closed,
        coarse=coarse,
        min_rows=min_rows,
        **combiners,
    )
    assert repr(found.select(source.column_names).to_pylist()) == repr(source.to_pylist())
    for label in labels:
        period = PERIODS[label][1]
        seen = all_seen(
            source,
            lambda i, times, _, period=period: seen_from(times[i], times, period, closed, coarse),
            min_rows,
        )
        mine = found.select([f"{label}_{name}" for name in combiners]).rename_columns(list(combiners))
        check(combiners, mine, expected(combiners, source, seen), source)


@pytest.mark.parametrize("seed", seeds(8))
def test_every_combiner_over_the_last_rows(seed: int) -> None:
    source, draw = table(20, seed), random.Random(seed)
    count, order = draw.choice([1, 2, 5, 100]), draw.choice([None, "x_long", "x_text"])
    combiners = ONE_OF_EACH
    found = uc.rolling(source, rows=count, by="g", order=order, min_rows=2, **combiners)
    then = [0] * len(source) if order is None else source[order].to_pylist()
    seen = all_seen(
        source, lambda i, times, places: seen_by_count(i, times, [then[place] for place in places], count), 2
    )
    check(combiners, found, expected(combiners, source, seen), source)


@pytest.mark.weekly
@pytest.mark.parametrize("seed", seeds(8))
def test_every_combiner_at_ticks(seed: int) -> None:
    """A row is at ten ticks or more, so few rows are enough for each seed."""
    source, draw = table(8, seed), random.Random(seed)
    times, closed = source["ts"].to_pylist(), draw.choice(["right", "left", "both", "neither"])
    every = draw.choice([2, 7]) * SECOND
    periods = {"s3": 3 * SECOND, "s20": 20 * SECOND}
    combiners = ONE_OF_EACH
    found = uc.rolling(source, {"s3": "3 s", "s20": "20 s"}, by="g", closed=closed, every=every, **combiners)
    keys, ticks = [], []
    seen: dict[str, list[list[int] | None]] = {label: [] for label in periods}
    for places in by_key(source):
        for tick, by_label in ticks_seen([times[i] for i in places], every, periods, closed):
            keys.append(source["g"][places[0]].as_py())
            ticks.append(tick)
            for label, numbers in by_label.items():
                seen[label].append([places[i] for i in numbers])
    assert found["g"].to_pylist() == keys
    assert found["ts"].to_pylist() == ticks
    for label in periods:
        mine = found.select([f"{label}_{name}" for name in combiners]).rename_columns(list(combiners))
        check(combiners, mine, expected(combiners, source, seen[label]), source)


def test_no_rows_and_no_times() -> None:
    for source in (table(0, 1), table(3, 1, nulls=1.0)):
        found = uc.rolling(source, "1 day", by="g", **ONE_OF_EACH)
        wanted = expected(ONE_OF_EACH, source, [None] * len(source))
        check(ONE_OF_EACH, found, wanted, source)
        assert uc.rolling(source, "1 day", by="g", every="1 hour", n=uc.Count()).num_rows == 0


def test_a_tick_says_that_the_period_is_empty_again() -> None:
    source = pa.table({"ts": [EPOCH + 61 * SECOND], "x": [5]})
    found = uc.rolling(source, "2 minutes", every="1 minute", n=uc.Count(), total=uc.Sum("x"))
    assert [(row["ts"].minute, row["n"], row["total"]) for row in found.to_pylist()] == [
        (2, 1, 5),
        (3, 1, 5),
        (4, 0, None),
    ]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"time_format": "%d.%m.%Y"}, r"has no option 'time_format': for times in texts .* write uc\.flow\(rows"),
        ({"banana": 3}, r"has no option 'banana': known are 'period', 'rows', 'by', 'time', .*total=uc\.Sum\('x'\)"),
        (
            {"diff": "w"},
            r"retracted write uc\.flow\(table, diff='w'\)\.rolling\('7 days'\)\.combine\(total=",
        ),
        ({"diff": "w", "time": "at"}, r"write uc\.flow\(table, time='at', diff='w'\)\.rolling"),
        ({"changelog": uc.changelog.Flink()}, r"write uc\.flow\(table, changelog=\.\.\.\)\.rolling\("),
        ({"closd": "both"}, "has no option 'closd': did you mean 'closed'"),
        ({"group_by": "x"}, "write keys as by='x'"),
        ({"total": "sum"}, r"total= takes a combiner .* write uc\.Sum\('x'\)"),
    ],
)
def test_an_option_that_there_is_not(given: dict[str, Any], says: str) -> None:
    table = pa.table({"ts": [dt.datetime(2024, 5, 1)], "x": [1]})
    with pytest.raises(uc.errors.InvalidArgument, match=says):
        uc.rolling(table, "1 day", **given)


@pytest.mark.parametrize("time", ["ts", "at"])
def test_weights_that_nobody_named_give_a_warning_with_the_flow_to_write(time: str) -> None:
    """The flow that the warning and the error name is the one that reads the weights."""
    rows = [{time: dt.datetime(2024, 5, 1, tzinfo=dt.UTC), "x": 1, "diff": weight} for weight in (1, 1, -1)]
    table = pa.Table.from_pylist(rows)
    with pytest.warns(UserWarning, match=r"column 'diff', and every row counts as an addition: write uc\.") as told:
        rolled = uc.rolling(table, "7 days", time=time, total=uc.Sum("x"))
    assert rolled["total"].to_pylist() == [3, 3, 3]
    with pytest.raises(uc.errors.InvalidArgument) as refused:
        uc.rolling(table, "7 days", time=time, diff="diff", total=uc.Sum("x"))
    for text in (str(told[0].message), str(refused.value)):
        assert (written := re.search(r"write (uc\.flow.*combine\(.*\('x'\)\))", text)) is not None
        assert eval(written[1], {"uc": uc, "table": table}).run()["total"].to_pylist() == [1]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        uc.rolling(table, "7 days", time=time, total=uc.Sum("diff"))


def test_texts_are_times_by_a_flow() -> None:
    rows = [{"ts": "01.05.2024", "x": 1}, {"ts": "02.05.2024", "x": 2}]
    with pytest.raises(uc.errors.TypeMismatch, match=r"write uc\.flow\(rows, time='ts', time_format='%d\.%m\.%Y'\)"):
        uc.rolling(rows, "7 days", total=uc.Sum("x"))
    result = uc.flow(rows, time="ts", time_format="%d.%m.%Y").rolling("7 days").combine(total=uc.Sum("x")).run()
    assert result["total"].to_pylist() == [1, 3]


@pytest.mark.parametrize("every", [None, "7 seconds"])
@pytest.mark.parametrize(
    ("combiner", "threaded"),
    [
        (uc.Sum("x_double"), True),
        (uc.Sum("x_double", exact=True), True),
        (uc.Max("x_text"), True),
        (uc.Median("x_long"), True),
        (uc.CountDistinct("x_text"), True),
        (uc.Mode("x_text"), False),
        (uc.CollectList("x_text"), False),
    ],
)
def test_threads_give_what_one_thread_gives(
    combiner: uc.Combiner, threaded: bool, every: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Accumulators that are merged, which may take much memory, are merged by one."""
    source, found, workers = table(40, 3), [], set()
    over = results.Results.over

    def noted(self: Any, *args: Any) -> Any:
        workers.add(threading.current_thread())
        return over(self, *args)

    monkeypatch.setattr(results.Results, "over", noted)
    periods = {f"s{seconds}": f"{seconds} seconds" for seconds in (1, 3, 5, 20)}
    for threads in (1, 3):
        monkeypatch.setattr(pa, "cpu_count", lambda threads=threads: threads)
        workers.clear()
        found.append(uc.rolling(source, periods, by="g", every=every, r=combiner))
    assert repr(found[0].to_pylist()) == repr(found[1].to_pylist())
    assert (len(workers) > 1) == threaded


def test_functions_of_a_user_are_called_by_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pa, "cpu_count", lambda: 3)
    callers = set()

    def noted(value: int) -> int:
        callers.add(threading.current_thread())
        return value

    uc.rolling(table(40, 3), {one: f"{one} s" for one in "12345"}, by="g", r=uc.Sum("x_long").map(noted))
    assert callers == {threading.main_thread()}


@pytest.mark.parametrize("room", [1, 3_000])
def test_results_are_the_same_where_states_have_no_room(room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ranges then have trees of the rows among which they lie, in place of one of all rows."""
    source = table(20, 7)
    for module in (range_states, results):
        monkeypatch.setattr(module, "AT_ONCE", room)
    found = uc.rolling(source, "20 seconds", by="g", **ONE_OF_EACH)
    seen = all_seen(source, lambda i, times, _: seen_from(times[i], times, 20 * SECOND, "right", None))
    check(ONE_OF_EACH, found, expected(ONE_OF_EACH, source, seen), source)
