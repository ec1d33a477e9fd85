"""An offset knows the files that are read, those that are gone for a week more, and nothing of another source."""

from __future__ import annotations

import json
from datetime import date, timedelta
from typing import Any

import pytest

from uncombine.errors import StateMismatch
from uncombine.sparkops.planners.file_offset import FileOffset
from uncombine.sparkops.planners.path_set import hashes_of

DAY = date(2026, 11, 25)


def again(offset: FileOffset) -> FileOffset:
    """The offset as it comes back from the log of a checkpoint."""
    return FileOffset.of(json.loads(json.dumps(offset.stored)))


def sized(*names: str) -> dict[str, int]:
    """Files of a batch, each of some bytes."""
    return dict.fromkeys(names, 9)


def has(offset: FileOffset, *names: str) -> list[bool]:
    return [bool(known) for known in offset.has(hashes_of(names))]


def test_it_comes_back_as_it_was_stored() -> None:
    offset = FileOffset().after({"/in/b": 5, "/in/a": 7}, 5_000_000, hashes_of(["/in/a", "/in/b", "/in/c"]), DAY)
    stored = again(offset)
    assert (stored.files, stored.hold) == ({"/in/b": 5, "/in/a": 7}, 5_000_000)
    assert has(stored, "/in/a", "/in/b", "/in/c") == [True, True, False]
    assert json.dumps(stored.stored) == json.dumps(offset.stored)


def test_it_counts_files_that_are_read_and_files_that_wait() -> None:
    there = hashes_of(["/in/a", "/in/b", "/in/c"])
    offset = again(FileOffset().after(sized("/in/a"), None, there, DAY, waiting=2))
    assert (offset.waiting, offset.stored["counts"]) == (2, [1, 2])
    offset = again(offset.after(sized("/in/b", "/in/c"), None, there, DAY))
    assert offset.stored["counts"] == [3, 0]
    before = {name: value for name, value in offset.stored.items() if name != "counts"}
    assert FileOffset.of(before).waiting == 0


def test_a_file_that_is_gone_is_known_for_a_week() -> None:
    offset = FileOffset().after(sized("/in/a", "/in/b"), None, hashes_of(["/in/a", "/in/b"]), DAY)
    offset = again(offset.after(sized("/in/c"), None, hashes_of(["/in/b", "/in/c"]), DAY))
    assert has(offset, "/in/a", "/in/b", "/in/c") == [True, True, True]
    later = offset.after(sized("/in/d"), None, hashes_of(["/in/d"]), DAY + timedelta(6))
    assert has(again(later), "/in/a", "/in/b") == [True, True]
    later = again(later.after(sized("/in/e"), None, hashes_of(["/in/e"]), DAY + timedelta(7)))
    assert has(later, "/in/a", "/in/b", "/in/d") == [False, True, True]


def test_a_file_that_comes_back_is_not_read_again() -> None:
    """A folder that was away for a moment, such as a disk that was not mounted."""
    offset = FileOffset().after(sized("/in/a", "/in/b"), None, hashes_of(["/in/a", "/in/b"]), DAY)
    offset = again(offset.after(sized("/in/c"), None, hashes_of(["/in/c"]), DAY))
    offset = again(offset.after(sized("/in/d"), None, hashes_of(["/in/a", "/in/b", "/in/c", "/in/d"]), DAY))
    assert offset.gone == {}
    offset = offset.after(sized("/in/e"), None, hashes_of(["/in/a", "/in/b"]), DAY + timedelta(30))
    assert has(offset, "/in/a", "/in/b") == [True, True]


@pytest.mark.weekly
def test_its_size_is_that_of_the_files_that_are_there() -> None:
    """A file an hour for a year, each of which is moved away on the next day."""
    offset, names = FileOffset(), [f"/in/{hour}" for hour in range(24 * 365)]
    for i in range(0, len(names), 24):
        offset = offset.after(
            sized(*names[i : i + 24]),
            None,
            hashes_of(names[max(i - 24, 0) : i + 24]),
            DAY + timedelta(i // 24),
        )
    assert len(json.dumps(offset.stored)) < 24 * 9 * 20 + 1_000


@pytest.mark.parametrize(
    ("stored", "says"),
    [
        ({"logOffset": 3}, "was written without order= of uc.Files"),
        (3, "was written without order= of uc.Files"),
        ({"form": 99}, "was written by another version of the library"),
    ],
)
def test_an_offset_of_another_source_is_refused(stored: Any, says: str) -> None:
    with pytest.raises(StateMismatch, match=says):
        FileOffset.of(stored)
