"""The memory of processes over time: the bytes that are their own, by the job that each does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

Memory = dict[str, list[int]]
"""The bytes of each process, by its job."""


def memory_of(processes: Iterable[int]) -> Memory:
    """The bytes of their own that processes have."""
    found = Memory()
    for process in processes:
        with suppress(OSError, StopIteration):
            place = Path(f"/proc/{process}")
            lines = (place / "status").read_text().splitlines()
            size = next(1024 * int(line.split()[1]) for line in lines if line.startswith("RssAnon:"))
            found.setdefault(job_of((place / "cmdline").read_text().split("\0")), []).append(size)
    return found


def job_of(command: list[str]) -> str:
    """The job of a process.

    >>> job_of(["/usr/bin/java", "-cp", "/jars/*", "kafka.Kafka", "settings"])
    'broker'
    >>> job_of(["python", "-m", "pyspark.daemon", "pyspark.worker"])
    'worker'
    """
    words = " ".join(command)
    if "java" in command[0]:
        return "broker" if "kafka.Kafka" in command else "JVM of Spark"
    if "daemon" in words:
        return "worker"
    return "planner" if "streaming" in words else "driver"


def largest(samples: Sequence[Mapping[str, Sequence[int]]], first: float, last: float) -> dict[str, int]:
    """The largest process of each job in a part of the samples, such as from 0.25 to 0.5 of them.

    How many there are of a job is Spark's choice: one that comes late gets another beside it.

    >>> largest([{"a": [1]}, {"a": [5]}, {"a": [2, 4]}, {"a": [3]}], 0.5, 1)
    {'a': 4}
    """
    part = samples[int(len(samples) * first) : int(len(samples) * last)]
    jobs = dict.fromkeys(job for sample in part for job in sample)
    return {job: max(max(sample.get(job, [0])) for sample in part) for job in jobs}
