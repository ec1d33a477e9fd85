"""Fingerprints of flows: every change that a state does not survive is named, and no other."""

from __future__ import annotations

import json
import random
from typing import Any

import pyarrow as pa
import pytest
from flow_changes import ON, PAIRS, SCHEMA, Pair, again, counted
from streams import rows_flow

import uncombine as uc
from uncombine.errors import InvalidArgument, StateMismatch
from uncombine.flows.fingerprint.differences import check_same, flow_changes, free_changes, refusal, unknown_parts
from uncombine.flows.fingerprint.flow import MOST_ENTRIES, Fingerprint
from uncombine.sparkops.restarts import step_names
from uncombine.sparkops.routes.streaming import StreamRoute


def source(schema: pa.Schema = SCHEMA, time: str = "ts", watermark: Any = "1 minute", **settings: Any) -> uc.Flow:
    return rows_flow(schema, time, watermark, **{"shards": 2, **settings})


def fingerprints(flow: uc.Flow) -> list[Fingerprint]:
    """The fingerprints of a flow as they come back from its state."""
    route = StreamRoute(flow, None)  # type: ignore[arg-type]
    return [json.loads(json.dumps(route.fingerprint(step))) for step in route.graph.steps]


def told(pair: Pair, same: tuple[str, ...] = ()) -> str | None:
    stored, now = (fingerprints(made(source)) for made in (pair.before, pair.after))
    changed = flow_changes(stored, now, same)
    return refusal([f"in stage {number}: " for number in range(1, len(now) + 1)], changed)


@pytest.mark.parametrize("name", PAIRS)
def test_a_changed_flow_is_refused_if_its_state_cannot_go_on(name: str) -> None:
    pair = PAIRS[name]
    said = told(pair)
    if pair.told == ON:
        assert said is None
        return
    assert said is not None
    assert said.startswith("the checkpoint was written by another pipeline, in stage ")
    assert pair.told in said
    assert ("give same=" in said) == bool(pair.same or name == "at_most_back=")
    if pair.same:
        assert f"or give same={pair.same!r} if its results are those of before" in said
        assert told(pair, pair.same) is None
        assert told(pair, ("stage 9",)) == said


@pytest.mark.parametrize("name", PAIRS)
def test_a_flow_equals_itself_when_it_is_made_again(name: str) -> None:
    for made in (PAIRS[name].before, PAIRS[name].after):
        assert told(Pair(made, made, ON)) is None


def test_event_times_that_are_computed_are_those_of_an_expression() -> None:
    schema = pa.schema([("ms", pa.int64()), *SCHEMA])

    def made(**options: Any) -> Any:
        flow = uc.flow(schema, watermark="1 minute", tuning=uc.Tuning(shards=2), **options)
        return lambda _: counted(flow)

    in_ms, in_us = ({"time": uc.col("ms").cast_time(unit)} for unit in ("ms", "us"))
    assert told(Pair(made(**in_ms), made(time="ms", time_format="ms"), ON)) is None
    for before, after, words in [
        (in_ms, in_us, "its event time was \"col('ms').cast_time('ms')\" and is \"col('ms').cast_time('us')\" (time=)"),
        ({}, in_ms, "its event time was 'ts' and is \"col('ms').cast_time('ms')\" (time=)"),
    ]:
        assert words in str(told(Pair(made(**before), made(**after), "")))


def test_there_are_sixty_changes() -> None:
    assert len(PAIRS) >= 60


def test_filters_that_may_change_are_told() -> None:
    pair = PAIRS["where before a grouping"]
    [stored], [now] = (fingerprints(made(source)) for made in (pair.before, pair.after))
    assert free_changes(stored, now) == ["where 1 was col('v') > 1 and is col('v') > 2"]


def test_parts_that_an_earlier_version_did_not_note_are_unknown() -> None:
    [now] = fingerprints(counted(source().map(lambda table: table)))
    parts = ("time", "messages", "steps", "filters", "code", "reads", "after", "shows")
    earlier = {name: value for name, value in now.items() if name not in parts}
    assert flow_changes([earlier], [now]) == [[]]
    assert unknown_parts(earlier) == [
        *("its event times", "the format of its messages", "the steps before it", "its functions"),
        *("the types of its columns", "the steps after it", "the columns that it shows"),
    ]
    assert unknown_parts(now) == []


@pytest.mark.full
def test_the_size_is_bounded_and_the_last_step_counts() -> None:
    def long(last: int) -> uc.Flow:
        flow = source()
        for number in range(500):
            flow = flow.with_columns(v=uc.col("v") + (last if number == 0 else number))
            flow = flow.with_columns(**{f"c{number}": uc.col("v").cast(pa.float64())}) if number % 100 == 0 else flow
        return counted(flow.with_columns(v=uc.coalesce(*[uc.col("v")] * 3000)))

    [one], [other] = fingerprints(long(7)), fingerprints(long(8))
    assert len(json.dumps(one)) < 200 * MOST_ENTRIES + 4000
    assert flow_changes([one], [one]) == [[]]
    assert flow_changes([one], [other]) != [[]]


def test_names_of_same_are_those_of_explain() -> None:
    flow = counted(source().where(uc.col("v") > 1).map(lambda table: table).where(uc.col("v") > 2))
    flow = flow.where(uc.col("n") > 1)
    assert step_names(flow) == ["where 1", "map 1", "where 2", "where 3", "stage 1"]
    text = "\n".join(line.strip() for line in flow_text(flow))
    for line in ("where 1: col('v') > 1", "map 1: <lambda>", "where 3: col('n') > 1", "stage 1: Fixed('1 minute')"):
        assert line in text
    check_same(["map 1"], step_names(flow))
    with pytest.raises(InvalidArgument, match=r"same= names 'map 2', and no step of the flow is called so.*'map 1'"):
        check_same(["map 2"], step_names(flow))
    with pytest.raises(InvalidArgument, match=r"write same=\('map 1',\)"):
        check_same("map 1", step_names(flow))


def flow_text(flow: uc.Flow) -> list[str]:
    from uncombine.flows.description import description

    return description(flow)


def test_what_is_not_compared_is_told() -> None:
    class Model:
        """Stands for a model of another library."""

    Model.__module__ = "sklearn.linear_model"
    model = Model()
    flow = counted(source().map(lambda table: table.slice(0 if model else 1)))
    assert "    not compared at a restart: sklearn." in "\n".join(flow_text(flow))


def test_a_damaged_fingerprint_is_refused_in_a_sentence() -> None:
    """Whatever a part holds, it is another pipeline, the same, or a sentence that says it is damaged."""
    [now] = fingerprints(regrouped_first())
    rng = random.Random(7)
    odd: list[Any] = [None, 5, "x", [], {}, [[1]], [None], {"a": 1}, [["a", "b", "c"]], [[{"is": 1}]], {"n": 5}]
    refused = list[str]()
    for _ in range(2000):
        stored = dict(now) | {name: rng.choice(odd) for name in rng.sample(list(now), 2)}
        try:
            flow_changes([stored | {"stage": now["stage"]}], [now])
        except StateMismatch as error:
            refused.append(str(error))
    assert len(refused) > 100
    assert all("it is damaged" in text for text in refused)


def regrouped_first() -> uc.Flow:
    flow = source(diff="d").where(uc.col("v") > 1).with_columns(v=lambda table: table["v"])
    return counted(flow).where(uc.col("n") > 1)


def test_a_step_of_which_no_shard_has_state_yet_is_no_change() -> None:
    """A source that has had no rows has sent nothing to its grouping, so the checkpoint does not know the step."""
    one, other = (counted(source(name=name), **again()) for name in "ab")
    now = fingerprints(one.join(other, on="k", within=("0 s", "1 hour"), suffixes=("_a", "_b")))
    assert len(now) == 3
    assert flow_changes([now[0], now[2]], now) == [[], [], []]
    assert flow_changes([now[2]], now) == [[], [], []]
    [[change]] = flow_changes([now[0], now[2]], fingerprints(counted(source(), **again())))
    assert "its steps were" in change.text
