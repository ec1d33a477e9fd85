"""The memory of processes over time: the bytes that are their own, by the job that each does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path


def memory_of(processes: Iterable[int]) -> dict[str, int]:
    """The bytes of their own that processes have, by job; those of one job are added."""
    found = dict[str, int]()
    for process in processes:
        with suppress(OSError, StopIteration):
            place = Path(f"/proc/{process}")
            lines = (place / "status").read_text().splitlines()
            size = next(1024 * int(line.split()[1]) for line in lines if line.startswith("RssAnon:"))
            job = job_of((place / "cmdline").read_text().split("\0"))
            found[job] = found.get(job, 0) + size
    return found


def job_of(command: list[str]) -> str:
    """The job of a process.

    >>> job_of(["/usr/bin/java", "-cp", "/jars/*", "kafka.Kafka", "settings"])
    'broker'
    >>> job_of(["python", "-m", "pyspark.daemon", "pyspark.worker"])
    'workers'
    """
    words = " ".join(command)
    if "java" in command[0]:
        return "broker" if "kafka.Kafka" in command else "JVM of Spark"
    if "daemon" in words:
        return "workers"
    if "streaming" in words or "python_streaming" in words:
        return "planner"
    return "driver"


def largest(samples: list[Mapping[str, int]], first: float, last: float) -> dict[str, int]:
    """The largest size of each job in a part of the samples, such as from 0.25 to 0.5 of them.

    >>> largest([{"a": 1}, {"a": 5}, {"a": 2}, {"a": 3}], 0.5, 1)
    {'a': 3}
    """
    part = samples[int(len(samples) * first) : int(len(samples) * last)]
    jobs = dict.fromkeys(job for sample in part for job in sample)
    return {job: max(sample.get(job, 0) for sample in part) for job in jobs}
