"""The planner of versions against plain lists: each version in one batch, whatever is asked again."""

from __future__ import annotations

import json
from typing import Any

import pytest

import uncombine as uc
from uncombine.errors import StateMismatch
from uncombine.lakehouse.changed_files import ChangedFile, Part
from uncombine.sparkops.planners import version_planner
from uncombine.sparkops.planners.version_offset import VersionOffset
from uncombine.sparkops.planners.version_planner import VersionPlanner


class Versions:
    """Versions of a table that a test makes."""

    table = "t"

    def __init__(self, newest: int) -> None:
        self.last = newest

    def newest(self, known: int | None = None) -> int:
        return self.last

    def require(self, version: int) -> None:
        assert version <= self.last

    def after(self, version: int, last: int) -> list[int]:
        return list(range(version + 1, last + 1))

    def snapshot(self, version: int) -> list[Part]:
        return [_part(version, "snapshot")]

    def changes(self, after: int, last: int) -> list[Part]:
        return [_part(version, "changes") for version in self.after(after, last)]


def _part(version: int, path: str) -> Part:
    return Part(version=version, at=0, files=(ChangedFile(path=path, weight=1, size=9, partition={}),))


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(version_planner, "PAUSE", 0)


def planner(versions: Any, **options: Any) -> VersionPlanner:
    return VersionPlanner(uc.TableChanges("delta:/nowhere", **options), versions, cores=2)


def read(plan: VersionPlanner, start: Any, end: Any) -> list[tuple[int, str]]:
    parts = [Part.of_text(text) for task in plan.tasks(start, end) for text in task["part"].to_pylist()]
    return sorted((part.version, part.files[0].path) for part in parts)


def after(plan: VersionPlanner, offset: Any, most: int | None = None) -> Any:
    """The next offset, as Spark keeps it."""
    return json.loads(json.dumps(plan.after(offset, most)))


def test_rule_87_a_stream_reads_the_rows_of_a_version_and_each_later_version_once() -> None:
    versions = Versions(3)
    plan = planner(versions)
    begin = plan.begin()
    first = after(plan, begin)
    assert read(plan, begin, first) == [(3, "snapshot")]
    assert after(plan, first) == first
    versions.last = 6
    again = planner(versions)  # after a restart
    second = after(again, first, 2)
    assert read(again, first, second) == read(again, first, second) == [(4, "changes"), (5, "changes")]
    third = after(again, second, 2)
    assert read(again, second, third) == [(6, "changes")]


@pytest.mark.parametrize(("start", "found"), [(1, [2, 3]), ("earliest", [0, 1, 2, 3]), ("latest", [])])
def test_rule_87_a_start_reads_changes_alone(start: Any, found: list[int]) -> None:
    plan = planner(Versions(3), start=start)
    assert [version for version, _ in read(plan, plan.begin(), after(plan, plan.begin()))] == found


def test_what_comes_after_a_freeze_waits_for_another_run() -> None:
    versions = Versions(1)
    plan = planner(versions)
    plan.freeze()
    versions.last = 5
    first = after(plan, plan.begin())
    assert VersionOffset.of(first).version == 1
    assert after(plan, first) == first


def test_a_stream_from_a_seed_goes_on_after_its_version() -> None:
    versions = Versions(4)
    begun = planner(versions).begun(VersionOffset(table="t", version=2).stored)
    assert read(begun, begun.begin(), after(begun, begun.begin())) == [(3, "changes"), (4, "changes")]
    assert VersionOffset.of(after(begun, begun.begin())).begun == 2


@pytest.mark.parametrize(
    ("stored", "words"),
    [
        ({"topics": {}, "form": 1}, "was not written by a stream of uc.TableChanges"),
        ({"table": "t", "version": 1, "begun": None, "form": 9}, "was not written by a stream of uc.TableChanges"),
        ({"table": "u", "version": 1, "begun": None, "form": 1}, "has read another table"),
    ],
)
def test_the_offset_of_another_source_is_refused(stored: dict[str, Any], words: str) -> None:
    with pytest.raises(StateMismatch, match=words):
        planner(Versions(3)).after(stored, None)
