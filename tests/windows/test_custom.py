"""Windows by the user's own functions: what they may do, and what is said when they do something else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import uncombine as uc
from uncombine.errors import InvalidArgument, TypeMismatch


def seconds(times: np.ndarray) -> tuple[Any, Any, Any]:
    start = times - times % 1_000_000
    return None, start, start + 1_000_000


def burst(times: np.ndarray) -> tuple[Any, Any, Any]:
    return np.arange(len(times)), times, times + 10


def by_tens(code: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    return code * 1_000 + start // 10


TIMES = np.array([3, 12, 17])
ZEROS = np.zeros(3, np.int64)


def test_a_function_of_times() -> None:
    assigned = uc.Custom(seconds).assign(np.array([1_500_000, -1]))
    assert assigned.row is None
    assert assigned.start.tolist() == [1_000_000, -1_000_000]
    assert assigned.end.tolist() == [2_000_000, 0]


def test_a_row_may_have_several_windows_or_none() -> None:
    assigned = uc.Custom(lambda times: ([2, 0, 2], [0, 1, 2], [5, 6, 7])).assign(TIMES)
    assert assigned.row is not None
    assert assigned.row.tolist() == [2, 0, 2]
    assert assigned.end.dtype == np.int64
    nothing = uc.Custom(lambda times: ([], [], [])).assign(TIMES)
    assert (len(nothing.start), nothing.start.dtype) == (0, np.int64)


def test_rule_05_custom_windows_merge_by_their_own_function() -> None:
    merged = uc.Custom(burst, by_tens).merge(np.array([0, 0, 0, 1]), np.array([3, 12, 17, 12]), np.full(4, 30))
    assert merged.window_id.tolist() == [0, 1, 1, 2]
    assert merged.code.tolist() == [0, 0, 1]
    assert merged.start.tolist() == [3, 12, 12]


def test_rule_05_a_merged_window_is_the_hull_of_its_parts() -> None:
    merged = uc.Custom(burst, lambda code, start, end: ZEROS).merge(ZEROS, TIMES[::-1], np.array([50, 90, 20]))
    assert (merged.start.tolist(), merged.end.tolist()) == ([3], [90])


def test_rule_05_merging_by_overlap_is_that_of_sessions() -> None:
    window = uc.Custom(burst, merge="overlap")
    merged = window.merge(ZEROS, TIMES, TIMES + 9)
    assert merged.start.tolist() == [3, 12]
    assert window.merging
    assert not uc.Custom(burst).merging


def test_functions_cannot_change_what_they_are_given() -> None:
    def careless(times: np.ndarray) -> Any:
        times += 1
        return None, times, times + 1

    with pytest.raises(ValueError, match="read-only"):
        uc.Custom(careless).assign(TIMES)
    assert TIMES.tolist() == [3, 12, 17]


@pytest.mark.parametrize(
    ("gives", "kind", "why"),
    [
        (lambda times: times, TypeMismatch, r"must give three arrays \(row, start, end\), but gave ndarray"),
        (lambda times: (times, times), TypeMismatch, "must give three arrays"),
        (lambda times: (None, times, times[:2] + 9), InvalidArgument, "gave 3 rows, 3 starts and 2 ends"),
        (lambda times: (None, [1], [2]), InvalidArgument, "gave 3 rows, 1 starts and 1 ends"),
        (lambda times: ([3], [1], [2]), InvalidArgument, "must give rows from 0 to 2, but gave row 3"),
        (lambda times: ([-1], [1], [2]), InvalidArgument, "must give rows from 0 to 2, but gave row -1"),
        (
            lambda times: ([0], [7], [7]),
            InvalidArgument,
            r"windows that end after their start, but gave \[7, 7\)",
        ),
        (
            lambda times: (None, times * 1.0, times * 2.0),
            TypeMismatch,
            "a start as an array of whole numbers",
        ),
        (lambda times: ([[0]], [1], [2]), TypeMismatch, "a row as an array of whole numbers"),
    ],
)
def test_wrong_assignments(gives: Callable[..., Any], kind: type[Exception], why: str) -> None:
    with pytest.raises(kind, match=f"the assign function of Custom.*{why}"):
        uc.Custom(gives).assign(TIMES)


@pytest.mark.parametrize(
    ("gives", "kind", "why"),
    [
        (lambda code, start, end: [0], InvalidArgument, "gave 1 numbers for 3 windows"),
        (lambda code, start, end: [0, 0, 0], InvalidArgument, "must not join windows of two keys"),
        (lambda code, start, end: ["a", "b", "c"], TypeMismatch, "a number as an array of whole numbers"),
    ],
)
def test_wrong_merges(gives: Callable[..., Any], kind: type[Exception], why: str) -> None:
    with pytest.raises(kind, match=f"the merge function of Custom.*{why}"):
        uc.Custom(burst, gives).merge(np.array([0, 0, 1]), TIMES, TIMES + 1)


def test_wrong_arguments() -> None:
    with pytest.raises(TypeMismatch, match="assign must be a function of times"):
        uc.Custom("1 minute")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="merge must be 'overlap', a function or None, but is 'touching'"):
        uc.Custom(burst, merge="touching")
