"""The planner of topics over a cluster that is only told: each offset once, over restarts and new partitions."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

import uncombine as uc
from uncombine.errors import InvalidArgument, MessagesLost, StateMismatch
from uncombine.kafka.partitions import Bounds, Partition
from uncombine.sparkops.planners import topic_planner
from uncombine.sparkops.planners.planner import Offset
from uncombine.sparkops.planners.topic_offset import TopicOffset
from uncombine.sparkops.planners.topic_planner import TopicPlanner, reads_of

SECOND = 1_000_000


class Told:
    """A cluster: the beginning and the end of each partition, messages of open transactions, and the time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.bounds: dict[Partition, list[int]] = {}
        self.open: dict[Partition, int] = {}
        self.now = 1_000 * SECOND
        self.committed: list[Mapping[Partition, int]] = []
        self.first_answers: list[dict[Partition, list[int]]] = []
        """Answers before that of `bounds`, as of a broker that comes back."""
        fakes: dict[str, Any] = {
            "partitions_of": lambda *_: sorted(self.bounds),
            "bounds_of": lambda _, partitions: self._bounds_of(partitions),
            "open_ends": lambda _, some: {one: self.open.get(one, self.bounds[one][1]) for one in some},
            "commit": lambda _, group, offsets: self.committed.append(dict(offsets)),
        }
        for name, fake in fakes.items():
            monkeypatch.setattr(topic_planner, name, fake)
        monkeypatch.setattr(topic_planner.time, "time_ns", lambda: self.now * 1_000)
        monkeypatch.setattr(topic_planner, "PAUSE", 0)
        monkeypatch.setattr(topic_planner, "BACK_WITHIN", 0)

    def _bounds_of(self, partitions: Iterable[Partition]) -> dict[Partition, Bounds]:
        bounds = self.first_answers.pop(0) if self.first_answers else self.bounds
        return {one: Bounds(*bounds[one]) for one in partitions}


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Told:
    return Told(monkeypatch)


def planner(**options: Any) -> TopicPlanner:
    return TopicPlanner(uc.Kafka("nowhere:1", "t", value="string", idle_after="10 seconds", **options), cores=2)


def after(plan: TopicPlanner, offset: Offset, most: int | None = None) -> Offset:
    """The next offset, as Spark hands it back."""
    found: Offset = json.loads(json.dumps(plan.after(offset, most)))
    return found


def read(plan: TopicPlanner, start: Offset, end: Offset) -> tuple[list[tuple[int, int]], dict[str, Any]]:
    offsets, reads = [], []
    for batch in plan.tasks(start, end):
        for row in batch.to_pylist():
            if row["about"] is not None:
                reads.append(reads_of(row["about"])[0])
            else:
                offsets += [(row["partition"], offset) for offset in range(row["first"], row["last"])]
    assert len(reads) == 1
    return offsets, {name: tuple(one) for name, one in reads[0].items()}


ONE, OTHER = Partition("t", 0), Partition("t", 1)


@pytest.mark.parametrize("seed", range(60))
def test_rule_74_random_plans_read_each_offset_once(told: Told, seed: int) -> None:
    r = random.Random(seed)
    told.bounds = {
        Partition("t", n): [(begin := r.randrange(5)), begin + r.randrange(9)] for n in range(r.randrange(1, 4))
    }
    begun = {one: begin for one, (begin, _) in told.bounds.items()}
    plan = planner()
    place, seen = plan.begin(), list[tuple[int, int]]()
    for _ in range(40):
        if r.random() < 0.5:
            told.bounds[r.choice(list(told.bounds))][1] += r.randrange(6)
        if r.random() < 0.1 and len(told.bounds) < 5:
            new = Partition("t", len(told.bounds))
            told.bounds[new], begun[new] = [0, r.randrange(4)], 0
        if r.random() < 0.2:
            plan = planner()  # the process of the planner ends
        most = r.choice([None, 1, 2, 7])
        end = after(plan, place, most)
        told.now += r.randrange(8) * SECOND
        if end == place:
            continue
        offsets, reads = read(plan, place, end)
        assert most is None or len(offsets) <= most, seed
        assert read(planner(), place, end) == (offsets, reads), seed  # the batch is done again
        for one, (_, stop) in told.bounds.items():
            offset, known, idle = reads[one.name]
            assert known == stop
            assert not idle or offset == stop, seed  # none that lags is idle
        seen += offsets
        place = end
    while (end := after(plan, place, None)) != place:
        seen += read(plan, place, end)[0]
        place = end
    assert sorted(seen) == sorted(
        (one.number, n) for one, (_, stop) in told.bounds.items() for n in range(begun[one], stop)
    )


def test_rule_75_a_partition_is_idle_after_a_while_at_its_end_and_not_while_a_transaction_is_open(told: Told) -> None:
    told.bounds = {ONE: [0, 5], OTHER: [0, 0]}
    plan = planner()
    first = after(plan, plan.begin())
    assert read(plan, plan.begin(), first)[1] == {"t/0": (5, 5, False), "t/1": (0, 0, False)}
    told.now += 9 * SECOND
    assert after(plan, first) == first
    told.now, told.open = told.now + SECOND, {ONE: 7}
    second = after(plan, first)
    assert read(plan, first, second) == ([], {"t/0": (5, 5, False), "t/1": (0, 0, True)})
    told.open = {}
    third = after(plan, second)
    assert read(plan, second, third)[1] == {"t/0": (5, 5, True), "t/1": (0, 0, True)}
    assert after(plan, third) == third
    told.bounds[OTHER][1] = 1
    assert read(plan, third, after(plan, third)) == ([(1, 0)], {"t/0": (5, 5, True), "t/1": (1, 1, False)})


def test_the_first_place_is_kept_also_if_nothing_comes(told: Told) -> None:
    told.bounds = {ONE: [0, 5]}
    plan = planner(start="latest")
    first = after(plan, plan.begin())
    told.bounds = {ONE: [0, 8]}
    assert read(planner(start="latest"), plan.begin(), first)[0] == []
    assert read(plan, first, after(plan, first))[0] == [(0, 5), (0, 6), (0, 7)]


def test_rule_74_offsets_that_are_gone_are_refused_or_counted(told: Told) -> None:
    told.bounds = {ONE: [0, 5]}
    plan = planner()
    first = after(plan, plan.begin())
    told.bounds = {ONE: [7, 9]}
    with pytest.raises(MessagesLost, match="2 offsets of t/0, from 5 to 6"):
        after(plan, first)
    counting = planner(on_lost="count")
    end = after(counting, first)
    assert TopicOffset.of(end).lost == 2
    assert read(counting, first, end)[0] == [(0, 7), (0, 8)]
    told.bounds = {ONE: [0, 3]}
    with pytest.raises(MessagesLost, match="the topic was deleted, and perhaps made again"):
        after(counting, end)


@pytest.mark.parametrize("frozen", [False, True])
def test_rule_74_an_end_that_is_briefly_before_what_is_read_is_asked_for_again(
    told: Told, monkeypatch: pytest.MonkeyPatch, frozen: bool
) -> None:
    monkeypatch.setattr(topic_planner, "BACK_WITHIN", 60)
    told.bounds = {ONE: [0, 5], OTHER: [0, 2]}
    plan = planner()
    first = after(plan, plan.begin())
    plan = planner()
    told.bounds = {ONE: [0, 7], OTHER: [0, 2]}
    told.first_answers = [{ONE: [0, 3], OTHER: [0, 2]}, {ONE: [0, 0], OTHER: [0, 0]}]
    if frozen:
        plan.freeze()
    second = after(plan, first)
    assert read(plan, first, second)[0] == [(0, 5), (0, 6)]
    assert told.first_answers == []


def test_the_while_for_a_partition_begins_with_the_first_answer(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_planner, "BACK_WITHIN", 60)
    told.bounds = {ONE: [0, 5], OTHER: [0, 2]}
    plan = planner()
    first, now = after(plan, plan.begin(), 5), [0.0]
    answers = [[ONE], [ONE, OTHER]]

    def partitions_of(*_: Any) -> list[Partition]:
        now[0] += 100  # no broker was there
        return answers.pop(0)

    monkeypatch.setattr(topic_planner.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(topic_planner, "partitions_of", partitions_of)
    assert len(read(plan, first, after(plan, first))[0]) == 2
    assert answers == []


@pytest.mark.parametrize("most", [None, 1])
def test_rule_74_an_end_that_stays_before_what_is_read_is_refused_and_nothing_is_read_again(
    told: Told, most: int | None
) -> None:
    told.bounds = {ONE: [0, 5], OTHER: [0, 2]}
    plan = planner()
    first = after(plan, plan.begin())
    told.bounds = {ONE: [0, 3], OTHER: [0, 4]}
    plan = planner(on_lost="count")
    plan.freeze()
    with pytest.raises(MessagesLost, match="t/0 has no offset 5, which was read or promised before"):
        after(plan, first, most)


def test_a_partition_that_is_away_is_remembered(told: Told) -> None:
    told.bounds = {ONE: [0, 5], OTHER: [0, 2]}
    plan = planner()
    first = after(plan, plan.begin())
    there = told.bounds.pop(OTHER)
    second = after(plan, first)
    assert read(plan, first, second) == ([], {"t/0": (5, 5, False)})
    told.bounds[OTHER] = [0, there[1] + 1]
    assert read(plan, second, after(plan, second))[0] == [(1, 2)]
    told.bounds = {ONE: [0, 5]}
    with pytest.raises(MessagesLost, match="from 1 to 1"):
        after(plan, after_one_of(told, plan))


def after_one_of(told: Told, plan: TopicPlanner) -> Offset:
    """A place at which an offset of a partition is known and not read."""
    bounds, told.bounds = told.bounds, {ONE: [0, 5], OTHER: [0, 2]}
    place = after(plan, plan.begin(), 5)
    told.bounds = bounds
    return place


def test_a_group_is_told_what_is_done(told: Told) -> None:
    told.bounds = {ONE: [0, 5]}
    plan = planner(group="g")
    first = after(plan, plan.begin())
    assert told.committed == []
    after(plan, first)
    after(plan, first)
    assert told.committed == [{ONE: 5}]


def test_frozen_ends_are_those_of_the_start(told: Told) -> None:
    told.bounds = {ONE: [0, 5]}
    plan = planner()
    plan.freeze()
    told.bounds = {ONE: [0, 9]}
    first = after(plan, plan.begin())
    assert len(read(plan, plan.begin(), first)[0]) == 5
    told.now += 60 * SECOND
    assert after(plan, first) == first  # read to the end that was there, and yet not idle


def test_offsets_of_other_sources_are_refused() -> None:
    with pytest.raises(StateMismatch, match="not written by a stream"):
        TopicOffset.of({"files": {}, "form": 1})
    with pytest.raises(InvalidArgument, match="end= is for a bounded flow"):
        uc.Kafka("a:1", "t", value="string", end="2024-05-01").check_streaming()
