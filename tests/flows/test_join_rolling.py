"""Labels with features of the events that were known at their time, against a double loop, and served as computed."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest
from by_double_loop import check, expected
from every import ONE_OF_EACH
from label_rows import PERIODS, SECOND, SOME, TIME, events_of, features, labels_of, results, seen_by, served
from seeds import seeds

import uncombine as uc
from uncombine.errors import InvalidArgument, TypeMismatch

pytestmark = pytest.mark.filterwarnings("ignore:.*has no bound for its rounding", "ignore:.*'diff'")

ALL = pytest.mark.parametrize("combiners", [SOME, pytest.param(ONE_OF_EACH, marks=pytest.mark.full)])


@ALL
@pytest.mark.parametrize("seed", seeds(4))
def test_rule_90_every_combiner_as_known_at_the_label(seed: int, combiners: dict[str, uc.Combiner]) -> None:
    draw = random.Random(seed)
    labels, events = labels_of(15, seed), events_of(30, seed)
    names, closed = draw.sample(sorted(PERIODS), 2), draw.choice(["right", "left", "both", "neither"])
    options = {"closed": closed, "coarse": draw.choice([None, 5 * SECOND]), "min_rows": draw.choice([1, 1, 2])}
    rolled = features(uc.flow(labels), uc.flow(events), names, available="came", **options)
    found = rolled.combine(**combiners).run().to_arrow().sort_by("id")
    assert found.select(labels.column_names).to_pylist() == labels.to_pylist()
    for name in names:
        every = seen_by(labels, events, PERIODS[name][1], closed, options["coarse"])
        seen = [None if len(places) < options["min_rows"] > 1 else places for places in every]
        check(combiners, results(found, name, combiners), expected(combiners, events, seen), events)


@ALL
@pytest.mark.parametrize("seed", seeds(3))
@pytest.mark.parametrize("available", [None, "came"])
def test_rule_91_what_is_served_is_what_is_trained_on(
    seed: int, available: str | None, combiners: dict[str, uc.Combiner]
) -> None:
    """The first row that a stream gives of a label is that of the table; later ones are corrections."""
    labels, events = labels_of(8, seed), events_of(16, seed)
    names = ["s3", "ever"]
    backfill = features(uc.flow(labels), uc.flow(events), names, available="came").combine(**combiners).run()
    wanted = backfill.to_arrow().sort_by("id")
    stream = features(
        uc.flow(labels.schema, name="labels", watermark="1 hour"),
        uc.flow(events.schema, name="events", watermark="1 hour"),
        names,
        available=available,
    )
    given = stream.combine(**combiners).run(served(labels, events)).to_arrow()
    first: dict[int, int] = {}
    for place, (label, diff) in enumerate(zip(given["id"].to_pylist(), given["diff"].to_pylist(), strict=True)):
        assert diff == 1 or label in first
        first.setdefault(label, place)
    found = given.take(pa.array([first[label] for label in range(len(labels))]))
    for name in names:
        check(combiners, results(found, name, combiners), results(wanted, name, combiners), events)
    # What is known later is seen by no label that was given.
    assert (len(given) == len(labels)) == (available is not None)


def test_a_late_event_corrects_the_labels_that_see_it() -> None:
    labels = uc.flow(pa.schema({"ts": TIME, "id": pa.int64()}), name="labels", watermark="1 minute")
    events = uc.flow(
        pa.schema({"ts": TIME, "x": pa.int64(), "w": pa.int64()}), name="events", diff="w", watermark="1 s"
    )
    flow = labels.join_rolling(events, "20 seconds").combine(total=uc.Sum("x"))

    def event(at: int, x: int, w: int = 1) -> uc.Elements:
        return uc.Elements([{"ts": at * 1_000_000, "x": x, "w": w}], input="events")

    label = uc.Elements([{"ts": 30_000_000, "id": 1}], input="labels")
    script = [event(15, 1), label, event(10, 8), event(20, 2), event(31, 4), event(15, 1, -1)]
    rows_ = flow.run(script).to_arrow().select(["total", "diff"]).to_pylist()
    assert [tuple(row.values()) for row in rows_] == [(1, 1), (1, -1), (3, 1), (3, -1), (2, 1)]


def test_emit_final_waits_for_both_watermarks() -> None:
    schema = pa.schema({"ts": TIME, "x": pa.int64()})
    labels, events = (uc.flow(schema, name=name, watermark="1 hour") for name in ("labels", "events"))
    flow = labels.join_rolling(events, "20 seconds", emit="final").combine(n=uc.Count())
    script: list[Any] = [uc.Elements([{"ts": 5_000_000, "x": 1}], input=name) for name in ("labels", "events")]
    marks = [uc.Watermark(6_000_000, input=name) for name in ("labels", "events")]
    assert flow.run([*script, marks[0]]).to_arrow().num_rows == 0
    assert flow.run([*script, *marks]).to_arrow().select(["x", "n", "diff"]).to_pylist() == [
        {"x": 1, "n": 1, "diff": 1}
    ]


def test_events_without_a_key_or_an_arrival_are_not_seen() -> None:
    labels = uc.flow(pa.table({"ts": pa.array([9, 9], TIME), "user": ["a", None]}))
    events = pa.table(
        {
            "ts": pa.array([1, 2, 3], TIME),
            "user": ["a", None, "a"],
            "came": pa.array([1, 2, None], TIME),
            "id": [1, 2, 3],
        }
    )
    flow = labels.join_rolling(uc.flow(events), {"ever": None}, by="user", available="came").combine(
        ids=uc.CollectSet("id")
    )
    result = flow.run()
    assert dict(zip(result["user"].to_pylist(), result["ever_ids"].to_pylist(), strict=True)) == {"a": [1], None: []}
    assert result.left_out["why"].to_pylist() == ["bad"]


def test_a_panel_of_names_in_both_flows() -> None:
    """Columns of both flows may have one name and two types; the result has those of the labels."""
    labels = uc.flow(pa.table({"event_time": pa.array([9], TIME), "x": ["text"], "pane": [1]}), time="event_time")
    events = uc.flow(pa.table({"ts": pa.array([9], pa.timestamp("ns")), "x": [2.5], "pane": [3]}))
    found = labels.join_rolling(events, "1 second").combine(total=uc.Sum("x"), best=uc.Max("pane")).run().to_arrow()
    row = {"x": "text", "pane": 1, "total": 2.5, "best": 3, "diff": 1}
    assert found.select(list(row)).to_pylist() == [row]


def test_features_of_windows_and_of_labels_that_are_given_on() -> None:
    table = pa.table({"ts": pa.array([1_000_000, 2_000_000, 65_000_000], TIME), "x": [1, 2, 4]})
    minutes = uc.flow(table).window("1 minute").combine(total=uc.Sum("x"))
    labels = uc.flow(pa.table({"ts": pa.array([59_999_999, 130_000_000], TIME)}))
    best = labels.join_rolling(minutes, "1 hour").combine(best=uc.Max("total")).where(uc.col("best") > 2)
    assert best.run()["best"].to_pylist() == [3, 4]


def test_options_that_do_not_fit() -> None:
    labels = uc.flow(pa.schema({"ts": TIME, "user": pa.string()}))
    events = uc.flow(pa.schema({"ts": TIME, "user": pa.int64(), "x": pa.int64()}))
    with pytest.raises(TypeMismatch, match="the key 'user' of the labels is string"):
        labels.join_rolling(events, "1 day", by="user").combine(n=uc.Count())
    with pytest.raises(InvalidArgument, match="takes a flow"):
        labels.join_rolling([], "1 day")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="rename the result"):
        labels.join_rolling(events, "1 day").combine(user=uc.Count())
    with pytest.raises(InvalidArgument, match="'rows'"):
        labels.join_rolling(events, rows=3)
    with pytest.raises(Exception, match="'later'"):
        labels.join_rolling(events, "1 day", available="later").combine(n=uc.Count())
    with pytest.raises(TypeMismatch, match="must hold timestamps"):
        labels.join_rolling(events, "1 day", available="x").combine(n=uc.Count())
    with pytest.raises(AttributeError, match="combine"):
        labels.join_rolling(events, "1 day").run()  # type: ignore[attr-defined]
