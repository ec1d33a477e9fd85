"""Seeds and live tables in an object store, by a server of S3 on loopback."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow.fs as pafs
import pytest
from moto_server import bucket

import uncombine as uc
from uncombine.errors import InvalidArgument, StateMismatch

HOUR = 3_600_000_000
BASE = 1_600_000_000_000_000 // HOUR * HOUR


@pytest.fixture(scope="module")
def place() -> Iterator[str]:
    with bucket() as path:
        yield path


def row(hours: float, user: str, x: int) -> dict[str, object]:
    return {"ts": BASE + int(hours * HOUR), "user": user, "x": x}


FIRST = [row(0, "ada", 5), row(0.1, "bob", 7), row(1, "ada", 2)]
THEN = [row(0.5, "ada", 1), row(3, "cid", 4)]


def flow(**combiners: uc.Combiner) -> uc.Flow:
    rows = uc.flow(FIRST, watermark="1 minute")
    hours = rows.window("1 hour", "each row", "retracting", allowed_lateness="1 day")
    return hours.combine(by="user", **combiners)


def test_a_run_goes_on_from_a_seed_in_a_store(place: str) -> None:
    counts = flow(n=uc.Count())
    whole = counts.run([uc.Elements(FIRST), uc.Elements(THEN), uc.Watermark(None)]).panes.to_pylist()
    counts.run([uc.Elements(FIRST)]).seed(f"{place}/seeds/first")
    later = counts.run([uc.Elements(THEN), uc.Watermark(None)], start=f"{place}/seeds/first").panes
    assert [{**one, "step": 0} for one in later.to_pylist()] == [{**one, "step": 0} for one in whole if one["step"]]
    with pytest.raises(InvalidArgument, match="is not empty: give another one to to="):
        counts.run([uc.Elements(FIRST)]).seed(f"{place}/seeds/first")


def test_a_seed_in_a_store_is_evolved_into_another(place: str) -> None:
    counts, sums = flow(n=uc.Count()), flow(n=uc.Count(), total=uc.Sum("x"))
    seed = counts.run([uc.Elements(FIRST)]).seed(f"{place}/seeds/before")
    change = uc.evolve(seed, sums, history=FIRST, to=f"{place}/seeds/after")
    assert change.corrections == 6
    result = sums.run([uc.Elements(THEN), uc.Watermark(None)], start=f"{place}/seeds/after")
    left = {}
    for one in result.panes.to_pylist():
        key = one["user"], one["window"]["start"], one["total"]
        left[key] = left.get(key, 0) + one["diff"]
    whole = sums.run([uc.Elements(FIRST), uc.Elements(THEN), uc.Watermark(None)])
    expected = {}
    for one in whole.panes.to_pylist():
        key = one["user"], one["window"]["start"], one["total"]
        expected[key] = expected.get(key, 0) + one["diff"]
    kept = {key: count for key, count in left.items() if count and key[2] is not None}
    assert kept == {key: count for key, count in expected.items() if count}


def test_a_seed_in_a_store_that_lost_a_file_is_refused(place: str) -> None:
    counts = flow(n=uc.Count())
    seed = counts.run([uc.Elements(FIRST)]).seed(f"{place}/seeds/hole")
    system, path = pafs.FileSystem.from_uri(f"{place}/seeds/hole")
    system.delete_file(f"{path}/{seed.steps[0].files[0].name}")
    with pytest.raises(StateMismatch, match="has lost the file"):
        counts.run([uc.Elements(THEN)], start=f"{place}/seeds/hole")


def test_a_table_of_delta_lies_in_a_store(place: str) -> None:
    from deltalake import DeltaTable

    totals = uc.flow(FIRST).window("1 hour").combine(by="user", total=uc.Sum("x"))
    totals.to_table(f"delta:{place}/tables/totals", keys=["user", "window"])
    kept = DeltaTable(f"{place}/tables/totals").to_pyarrow_table().to_pylist()
    assert sorted((one["user"], one["total"]) for one in kept) == [("ada", 2), ("ada", 5), ("bob", 7)]


def test_a_table_of_parquet_needs_a_disk(place: str) -> None:
    totals = uc.flow(FIRST).window("1 hour").combine(by="user", total=uc.Sum("x"))
    with pytest.raises(InvalidArgument, match="write delta: for a table in an object store"):
        totals.to_table(f"parquet:{place}/tables/totals", keys=["user", "window"])
