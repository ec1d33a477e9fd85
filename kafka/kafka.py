"""Kafka: the value that names topics, and says how their messages are read.

It asks no broker. A flow over it asks for the partitions when it is made, and reads messages when it runs.

Guarded by tests/kafka/test_kafka_value.py, tests/kafka/test_local_kafka.py and tests/sparkops/topics/test_kafka.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

import pyarrow as pa

from ..errors import InvalidArgument, NamedOptions, TypeMismatch, nearest
from ..messages import Bytes, MessageFormat, format_of
from ..windows import span
from .client import FIRST_ANSWER, Cluster, require_client
from .partitions import is_pattern, partitions_of
from .places import Place, settled
from .rows import AROUND, MessageRows

_PLAIN: dict[str, Any] = {
    "key": None,
    "start": "earliest",
    "end": None,
    "columns": (),
    "max_rows_per_batch": None,
    "min_partitions": None,
    "idle_after": "1 minute",
    "on_bad_row": None,
    "on_lost": "error",
    "group": None,
    "wait": "1 minute",
}
"""The options that a repr leaves out where they are as they would be without them."""


class Kafka(NamedOptions):
    r"""Topics of Kafka, which a flow reads: `uc.flow(uc.Kafka("host:9092", "orders", value=schema))`.

    Without `spark=`, and on Spark without `streaming=True`, the messages that there are now are read once. With
    `streaming=True` they are a stream whose watermark waits for each partition. No jar is needed.

    Parameters
    ----------
    servers
        The servers to begin with, "host:port", several as a list or with commas.
    topic
        A topic, several, or a pattern of their names, which begins with "^", such as "^orders-.*".
    value
        The form of values: "string" or "binary" for a column `value`, a `pyarrow.Schema` for objects of JSON, or a
        format such as `uc.messages.Json(...)`, whose columns the rows have. With `changelog=` of `uc.flow` messages
        stay as they are, in the columns `key`, `value`, `topic`, `partition`, `offset` and `timestamp`.
    key
        The form of keys, as that of values; "string" and "binary" give a column `key`. Without it keys are not read.
    start
        Where reading begins: "earliest", "latest", a time (by the timestamps of messages), offsets such as
        `{"orders/0": 5}` or `{"orders": {0: 5}}`, or "group", which is what the consumer group `group` has committed.
        A partition that comes later is read from its beginning.
    end
        Where a bounded flow ends: a time or offsets, before which messages are read; without it all that there are.
    columns
        More columns of a message: "key" (as bytes), "topic", "partition", "offset", "timestamp" and "headers".
    max_rows_per_batch
        In a stream: the most offsets in a batch, which the partitions share as far as each is behind. From Spark 4.2.
    min_partitions
        The least number of tasks on Spark, which divide the offsets of a partition if there are fewer partitions.
    idle_after
        In a stream: the time for which a partition must have been read to its end to hold the watermark no longer. One
        that is not read to its end holds it however long that takes.
    on_bad_row
        The treatment of a message that cannot be read: "error", or "leave_out", which shows it in `left_out` with its
        partition, its offset and its beginning. Without it, bounded flows have "error", and streams and replays
        "leave_out".
    on_lost
        The treatment of offsets that were not read and that the cluster has no more: "error", or "count", which goes on
        after them and says how many they are.
    group
        A consumer group, in which a stream notes how far it has read, for those who watch groups. The checkpoint alone
        decides where it goes on.
    wait
        How long brokers may be away before a flow fails.
    options
        Options of librdkafka, such as `{"security.protocol": "SASL_SSL", "sasl.password": ...}`. Their values are never
        shown.

    Examples
    --------
    >>> import pyarrow as pa, uncombine as uc
    >>> row = pa.schema({"ts": pa.timestamp("ms", "UTC"), "score": pa.int64()})
    >>> uc.Kafka("host:9092", "scores", value=row, options={"sasl.password": "secret"})
    Kafka('host:9092', 'scores', value=Json('ts', 'score'), options=...)
    """

    def __init__(
        self,
        servers: str | Sequence[str],
        topic: str | Sequence[str],
        *,
        value: Literal["string", "binary"] | pa.Schema | MessageFormat,
        key: Literal["string", "binary"] | pa.Schema | MessageFormat | None = None,
        start: Place = "earliest",
        end: datetime | str | Mapping[str, Any] | None = None,
        columns: Sequence[str] = (),
        max_rows_per_batch: int | None = None,
        min_partitions: int | None = None,
        idle_after: str = "1 minute",
        on_bad_row: Literal["error", "leave_out"] | None = None,
        on_lost: Literal["error", "count"] = "error",
        group: str | None = None,
        wait: str = "1 minute",
        options: Mapping[str, str | int | float | bool] | None = None,
    ) -> None:
        require_client()
        self.servers = ",".join(_texts(servers, "servers, the first argument,"))
        self.topics = _texts(topic, "topic, the second argument,")
        self.value = format_of(value)
        self.key = None if key is None else format_of(key, "key=", "key")
        self.start, self.end = start, end
        self.begins = settled(start, "start=", ("earliest", "latest", "group"))
        self.ends = "latest" if end is None else settled(end, "end=", ("latest",))
        self.columns = _around(columns, self.key)
        self.max_rows_per_batch = _whole(max_rows_per_batch, "max_rows_per_batch=")
        self.min_partitions = _whole(min_partitions, "min_partitions=")
        self.idle_after, self.wait = idle_after, wait
        self.idle = _positive(idle_after, "idle_after=")
        self.on_bad_row, self.on_lost = on_bad_row, on_lost
        _one_of(on_bad_row, (None, "error", "leave_out"), "on_bad_row=")
        _one_of(on_lost, ("error", "count"), "on_lost=")
        if group is not None and (not isinstance(group, str) or not group):
            raise TypeMismatch(f"group= takes the name of a consumer group, not {group!r}")
        if start == "group" and group is None:
            raise InvalidArgument("start='group' begins where a consumer group is: name it with group=")
        self.group = group
        self.cluster = Cluster(self.servers, dict(options or {}), _positive(wait, "wait=") / 1_000_000)

    def opened(self, named: bool = False, more: Sequence[str] = (), changelog: bool = False) -> MessageRows:
        """The rows that messages have, after a look whether the topics are there.

        `named` asks for the column of the partition, `more` for columns that the flow names and the value lacks.
        """
        there = partitions_of(self.cluster, self.topics, min(FIRST_ANSWER, self.cluster.wait))
        name = self.topics[0] if len(self.topics) == 1 and not is_pattern(self.topics[0]) else None
        if not there and not any(map(is_pattern, self.topics)):
            raise InvalidArgument(f"the topics {', '.join(self.topics)} have no partitions")
        value = self.value.settled(name, "value")
        key = None if self.key is None else self.key.settled(name, "key")
        if changelog:
            around = dict.fromkeys([*self.columns, "topic", "partition", "offset", "timestamp"])
            around.pop("key", None)
            return MessageRows(value, Bytes("key") if key is None else key, tuple(around), nested=True, named=named)
        own = {*value.schema.names, *(() if key is None else key.schema.names)}
        also = (one for one in more if one in AROUND and one not in own)
        return MessageRows(value, key, tuple(dict.fromkeys([*self.columns, *also])), named=named)

    def leaves_out(self, streaming: bool) -> bool:
        """True if a message that cannot be read is left out, and no error."""
        return streaming if self.on_bad_row is None else self.on_bad_row == "leave_out"

    def check_bounded(self) -> None:
        """Raise if an option is one of streams."""
        for name in ("max_rows_per_batch", "group"):
            if getattr(self, name) is not None and not (name == "group" and self.begins == "group"):
                raise InvalidArgument(
                    f"{name}= is for a stream: give uc.flow() spark= and streaming=True, or leave it out"
                )

    def check_streaming(self) -> None:
        """Raise if an option is one of bounded flows."""
        if self.end is not None:
            raise InvalidArgument("end= is for a bounded flow, and a stream has no end: leave one of them out")

    @property
    def words(self) -> str:
        """The topics in words."""
        return f"topic{'s' * (len(self.topics) > 1)} {', '.join(self.topics)} of Kafka at {self.servers}"

    def __repr__(self) -> str:
        topic = self.topics[0] if len(self.topics) == 1 else self.topics
        said = [f"{name}={getattr(self, name)!r}" for name, plain in _PLAIN.items() if getattr(self, name) != plain]
        secret = ["options=..."] if self.cluster.options else []
        return f"Kafka({', '.join([repr(self.servers), repr(topic), f'value={_shown(self.value)}', *said, *secret])})"


def _shown(form: MessageFormat) -> str:
    schema = getattr(form, "schema", None)
    inner = ", ".join(map(repr, schema.names)) if isinstance(schema, pa.Schema) else ""
    return f"{type(form).__name__}({inner})"


def _texts(value: Any, what: str) -> list[str]:
    several = [value] if isinstance(value, str) else value
    right = isinstance(several, list | tuple) and several and all(isinstance(one, str) and one for one in several)
    if not right:
        raise TypeMismatch(f"uc.Kafka takes a text or a list of texts as {what} not {value!r}")
    return list(several)


def _around(columns: Any, key: MessageFormat | None) -> tuple[str, ...]:
    names = [columns] if isinstance(columns, str) else list(columns)
    for name in names:
        if name not in AROUND:
            raise InvalidArgument(f"columns= has no column {name!r} of messages: {nearest(str(name), AROUND)}")
    return tuple(name for name in dict.fromkeys(names) if not (name == "key" and key is not None))


def _whole(value: Any, what: str) -> int | None:
    if value is not None and (type(value) is not int or value < 1):
        raise InvalidArgument(f"{what} must be a whole number of at least 1, but is {value!r}")
    return value


def _positive(value: Any, what: str) -> int:
    length = int(span(value))
    if length <= 0:
        raise InvalidArgument(f"{what} must be more than no time, but is {value!r}")
    return length


def _one_of(value: Any, values: Sequence[Any], what: str) -> None:
    if value not in values:
        raise InvalidArgument(f"{what} must be {' or '.join(repr(one) for one in values if one)}, but is {value!r}")


__all__ = ["Kafka"]
