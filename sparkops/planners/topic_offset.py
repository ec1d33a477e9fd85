"""The offset of a stream of topics, which says how far each partition is read, and which are idle.

Guarded by tests/sparkops/planners/test_topic_planner.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass, field
from typing import Any

from ...errors import StateMismatch
from ...kafka.partitions import Partition, partition_of
from .planner import Offset

FORM = 1
"""The number of the form of an offset; another one is refused."""


@dataclass(frozen=True)
class Progress:
    """The place to which a partition is read."""

    offset: int
    """The next offset to be read."""
    end: int
    """The end of the partition when the batch was planned."""
    since: int | None = None
    """The processing time since which the partition has been read to its end, in microseconds; None if it is not."""
    idle: bool = False
    first: int | None = None
    """The offset at which the batch begins to read a partition that is new, or whose next offsets are gone, or None."""
    gone: bool = False
    """True for a partition that is not in the cluster. It is remembered, as it may come back."""


@dataclass(frozen=True)
class TopicOffset:
    """The place in a stream of topics after a batch.

    >>> TopicOffset.of(TopicOffset({Partition("t", 0): Progress(5, 9)}).stored).partitions
    {Partition(topic='t', number=0): Progress(offset=5, end=9, since=None, idle=False, first=None, gone=False)}
    """

    partitions: Mapping[Partition, Progress] = field(default_factory=dict)
    lost: int = 0
    """The offsets that the batch counts as lost."""
    initial: bool = False
    """True before the first batch of all."""

    @property
    def stored(self) -> Offset:
        """The offset as Spark keeps it."""
        about = {one.name: list(astuple(progress)) for one, progress in self.partitions.items()}
        return {"topics": about, "lost": self.lost, "initial": self.initial, "form": FORM}

    @staticmethod
    def planned(stored: Any) -> bool:
        """True for the offset of topics, in whatever form."""
        return isinstance(stored, Mapping) and "topics" in stored

    @classmethod
    def of(cls, stored: Offset) -> TopicOffset:
        """The offset that Spark has kept; raises if it is that of another source."""
        if not cls.planned(stored) or stored.get("form") != FORM:
            raise StateMismatch(
                "the checkpoint was not written by a stream of uc.Kafka of this version, so it does not say which "
                "offsets are read: go on as it was, or start from a new checkpoint"
            )
        partitions = {partition_of(name): Progress(*progress) for name, progress in stored["topics"].items()}
        return cls(partitions, int(stored["lost"]), bool(stored["initial"]))


__all__ = ["Progress", "TopicOffset"]
