"""The same windows and sessions in other systems, over the same files, each system in an environment of its own."""

from __future__ import annotations

import math
import statistics
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
from contenders.environments import Answer, Contender
from datasets import files, purchases
from harness import Row

TITLE = "Other systems"

ROWS, KEYS = 6_000_000, 100_000
FEW, KEYS_OF_FEW = 1_000_000, 20_000
RUNS = 5
WARM = 5
"""The runs of a job of ours that do not count: the JVM compiles code that runs often. Others get one."""
FAST = ("duckdb", "polars", "pandas")
SLOW = ("pathway", "flink", "beam")
"""Systems that get fewer rows, and one run."""
PATIENCE = 150.0
"""The seconds after which such a system is stopped."""
TITLES = {
    "duckdb": "DuckDB",
    "polars": "Polars",
    "pathway": "Pathway",
    "flink": "Flink's Table API",
    "beam": "Beam's direct runner",
}


def rows() -> Iterator[Row]:
    with Contender("uncombine") as ours:
        with Contender("local") as local:
            yield from of_parquet(ours, local)
        small = coarse(files(FEW, KEYS_OF_FEW))
        csv = as_csv(small)
        for system in SLOW:
            with Contender(system) as other:
                for task in other.tasks:
                    of_csv = task.endswith("CSV")
                    titled = task.replace(" of", ", 1 M rows of") if of_csv else f"{task}, 1 M rows"
                    titled += ", on Spark"
                    yield against_slow(ours, other, task, csv if of_csv else small, titled)


def of_parquet(ours: Contender, local: Contender) -> Iterator[Row]:
    """Systems that are fast enough for six million rows, and what reading alone takes."""
    with ExitStack() as stack:
        others = {system: stack.enter_context(Contender(system)) for system in FAST}
        for what, folder in (("", files(ROWS, KEYS)), ("purchases, ", purchases(ROWS, KEYS))):
            for task, most in (("windows", 1.3), ("sessions", 1.0)):
                for system, other in others.items():
                    goal = None if system == "pandas" else most
                    yield against(local, other, task, folder, f"{what}{task}, 6 M rows", goal)
                    yield against(ours, other, task, folder, f"{what}{task}, 6 M rows, on Spark", goal)
            reading, alone = (
                "reading the files with pyarrow",
                partial(against, task="windows", folder=folder, most=None),
            )
            for one, where in ((local, ""), (ours, ", on Spark")):
                yield alone(
                    one, others["pandas"], what=f"{what}windows, 6 M rows{where}", theirs="reading", name=reading
                )
            idle = "a mapInArrow on Spark that does nothing"
            yield alone(ours, ours, what=f"{what}windows, 6 M rows, on Spark", theirs="idle", name=idle)


def against(
    ours: Contender,
    other: Contender,
    task: str,
    folder: str,
    what: str,
    most: float | None,
    theirs: str | None = None,
    name: str | None = None,
) -> Row:
    """Both do a task in turn, after runs that do not count, whose results agree."""
    first, second = ours.run(task, folder, facts=True), other.run(theirs or task, folder, facts=theirs is None)
    if theirs is None:
        agree(what, other.system, first, second)
    for _ in range(WARM - 1):
        ours.run(task, folder)
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(RUNS):
        times[0].append(ours.run(task, folder).seconds)
        times[1].append(other.run(theirs or task, folder).seconds)
    return Row(what, statistics.median(times[0]), statistics.median(times[1]), most, name or title(other), "s")


def against_slow(ours: Contender, other: Contender, task: str, folder: str, what: str) -> Row:
    """One run of a system that may not end, and the median of ours."""
    first, *rest = (ours.run(task, folder, facts=True) for _ in range(WARM + 1))
    seconds = statistics.median(answer.seconds for answer in rest)
    try:
        answer = other.run(task, folder, facts=True, limit=PATIENCE)
    except TimeoutError:
        return Row(what, seconds, PATIENCE, None, f"{title(other)}, stopped then", "s")
    agree(what, other.system, first, answer)
    return Row(what, seconds, answer.seconds, None, title(other), "s")


def agree(what: str, system: str, ours: Answer, other: Answer) -> None:
    """Two systems that do not do the same are not compared."""
    same = [math.isclose(a, b, rel_tol=1e-9) for a, b in zip(ours.facts or (), other.facts or (), strict=True)]
    if not same or not all(same):
        raise SystemExit(f"{what}: {system} has {other.facts} (rows, sum, greatest sum), and uncombine {ours.facts}")


def title(contender: Contender) -> str:
    return f"{TITLES.get(contender.system, contender.system)} {contender.version}"


def coarse(folder: str) -> str:
    """The same rows with times that are multiples of seven milliseconds.

    Flink's times and Beam's windows are milliseconds, and no two rows are a whole gap of sessions apart, which systems
    take for one session or for two.
    """
    made = Path(tempfile.mkdtemp(prefix="uncombine-world-"))
    for path in Path(folder).glob("*.parquet"):
        table = pq.read_table(path, columns=["k", "ts", "v"])
        micros = table["ts"].cast(pa.int64()).to_numpy() // 7_000 * 7_000
        pq.write_table(table.set_column(1, "ts", pa.array(micros).cast(table["ts"].type)), made / path.name)
    return str(made)


def as_csv(folder: str) -> str:
    """The same rows as CSV, their times as microseconds."""
    made = Path(tempfile.mkdtemp(prefix="uncombine-world-"))
    for path in Path(folder).glob("*.parquet"):
        table = pq.read_table(path)
        pc.write_csv(table.set_column(1, "ts", table["ts"].cast(pa.int64())), made / f"{path.stem}.csv")
    return str(made)
