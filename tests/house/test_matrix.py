"""The bounds in pyproject.toml, and what `make matrix` makes of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from matrix.pins import PROJECT, lowest
from matrix.run import LIBRARIES, QUICK, Result, constraints, counted, table

pytestmark = pytest.mark.full

ROOT = Path(__file__).resolve().parents[2]
TEXT = PROJECT.read_text()


def test_every_library_that_is_promised_has_a_lower_bound() -> None:
    assert set(lowest(TEXT)) == set(LIBRARIES)
    assert constraints("lowest", TEXT) == [f"{name}=={bound}" for name, bound in lowest(TEXT).items()]
    assert constraints("newest", TEXT) == []
    assert constraints("pyspark==4.2.1", TEXT) == ["pyspark==4.2.1"]


@pytest.mark.parametrize("path", QUICK)
def test_the_quick_part_is_there(path: str) -> None:
    assert (ROOT / path).exists()


@pytest.mark.parametrize("need", ["numpy", "numpy<3", "numpy>=2,>=3"])
def test_a_library_without_one_lower_bound_is_refused(need: str) -> None:
    with pytest.raises(ValueError, match="needs one lower bound"):
        lowest(f'[project]\ndependencies = ["{need}"]')


def test_the_figures_of_a_report() -> None:
    report = (
        '<testsuites><testsuite errors="1" failures="2" skipped="3" tests="10"/>'
        '<testsuite errors="0" failures="0" skipped="0" tests="5"/></testsuites>'
    )
    result = counted("lowest", ("3.11.2",), report)
    assert result == Result("lowest", ("3.11.2",), passed=9, failed=3, skipped=3)
    assert table([result]).splitlines()[-1] == "| lowest | 3.11.2 | 9 | 3 | 3 |"
