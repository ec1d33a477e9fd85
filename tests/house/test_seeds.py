"""The draw of seeds: an eighth of each suite, the same all day, others on the next."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import date, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from seeds import VARIABLE, drawn, few, has_seed, is_drawn, pin, seeds, share

pytestmark = pytest.mark.full

SUITE = """
import pytest
from seeds import seeds

@pytest.mark.parametrize("seed", seeds(40))
def test_random(seed):
    assert seed == {right}
"""


@pytest.fixture(autouse=True)
def _a_day(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "2026-11-25")
    monkeypatch.setattr("seeds._long", True)


def left_out(found: list[Any]) -> list[int]:
    return [one.values[0] for one in found if not isinstance(one, int)]


@pytest.mark.parametrize(("count", "most"), [(1, 0), (3, 0), (40, 0), (12, 1_012), (2, 40)])
def test_an_eighth_is_drawn_and_the_others_are_left_to_soak(count: int, most: int) -> None:
    found = few(count, most)
    assert len(found) == -(-count // 8)
    others = left_out(seeds(count, most))
    assert sorted([*found, *others]) == list(range(max(count, most)))
    assert all(one.marks[0].name == "soak" for one in seeds(count, most) if not isinstance(one, int))


def test_a_run_without_the_long_ones_has_those_of_the_day_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seeds._long", False)
    assert seeds(40, 1_000) == few(40, 1_000)
    assert len(seeds(40, 1_000)) == 5


def test_the_days_go_through_all_seeds() -> None:
    begun = date(2026, 11, 25)
    assert {seed for day in range(8) for seed in drawn(40, 40, begun + timedelta(day))} == set(range(40))
    assert {seed for day in range(50) for seed in drawn(12, 100, begun + timedelta(day))} == set(range(100))


def test_seeds_of_faults_are_always_drawn() -> None:
    absent = next(seed for seed in range(40) if seed not in few(40))
    assert absent in seeds(40, always=(absent,))


def test_the_first_seeds_of_bunches_are_drawn() -> None:
    assert len(few(200, 1_000, step=50)) == 1
    assert {seed % 50 for seed in few(200, 1_000, step=50)} == {0}


def test_all_and_none_stand_for_a_date(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "all")
    assert few(40, 100) == list(range(40))
    monkeypatch.setenv(VARIABLE, "none")
    assert left_out(seeds(40, 100, always=(3,))) == list(range(100))


def test_another_word_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "yesterday")
    with pytest.raises(pytest.UsageError, match=r"must be a date such as 2026-11-25, all or none, but is 'yesterday'"):
        pin()


def test_processes_of_a_run_draw_the_same_seeds_and_a_failure_says_which(tmp_path: Path) -> None:
    root = Path(__file__).resolve().parents[2]
    place = root / "out" / "seeds"
    place.mkdir(parents=True, exist_ok=True)
    suite = place / f"test_{tmp_path.name}_{os.getpid()}.py"
    suite.write_text(SUITE.format(right=few(40)[0]))
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "-p", "seeds", "-p", "no:cacheprovider", str(suite)]
    try:
        done = subprocess.run(command, cwd=root, env={**os.environ}, capture_output=True, text=True, check=False)
    finally:
        suite.unlink()
    assert "4 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    assert done.stdout.count("seeds of 2026-11-25 (UNCOMBINE_SEEDS=2026-11-25 repeats them)") == 1


def test_an_item_of_a_random_suite_is_known_by_its_seeds() -> None:
    def item(*values: Any) -> Any:
        marks = [
            pytest.mark.parametrize("form", ["a", "b"]).mark,
            *(pytest.mark.parametrize("n", v).mark for v in values),
        ]
        return SimpleNamespace(iter_markers=lambda name: [mark for mark in marks if mark.name == name])

    assert has_seed(item(seeds(40, 100)))
    assert not has_seed(item())
    assert not has_seed(item([1, 2], share([1, 2])))


def test_each_name_is_drawn_on_one_day_of_seven(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"tests/sparkops/test_join.py::test_{i}" for i in range(400)]
    days = [f"2026-11-{day}" for day in range(22, 29)]
    found: list[str] = []
    for day in days:
        monkeypatch.setenv(VARIABLE, day)
        here = [name for name in names if is_drawn(name, 7)]
        assert 30 < len(here) < 90
        found += here
    assert sorted(found) == sorted(names)
    for word, every in (("all", True), ("none", False)):
        monkeypatch.setenv(VARIABLE, word)
        assert {is_drawn(name, 7) for name in names} == {every}


def test_cases_that_are_not_drawn_are_left_to_the_full_run(monkeypatch: pytest.MonkeyPatch) -> None:
    cases = ["a", "b", pytest.param("c", marks=pytest.mark.spark, id="third"), "d", "e"]
    for day in ("2026-11-25", "2026-11-26", "2026-11-27"):
        monkeypatch.setenv(VARIABLE, day)
        left = [case for case in share(cases) if "full" in {mark.name for mark in getattr(case, "marks", ())}]
        assert len(left) == 4
        assert all("spark" in {mark.name for mark in case.marks} for case in left if case.id == "third")
    monkeypatch.setenv(VARIABLE, "all")
    assert share(cases) == cases
