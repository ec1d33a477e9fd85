"""Messages that are written in one transaction: a reader of committed messages sees all of them or none.

The name of a transaction is that of its writer. A writer that begins ends what an earlier one of the same name has left
open, and the earlier one can write no more.

Guarded by tests/kafka/test_sending.py.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

from ..errors import BrokerUnreachable, InvalidArgument, MessageTooLarge, WriterReplaced
from .client import ONE_TRY, PAUSE, Cluster

if TYPE_CHECKING:
    from confluent_kafka import KafkaError

RECORD = pa.schema([("key", pa.binary()), ("value", pa.binary())])
"""The columns of messages that are written; a null value deletes its key."""

Records: TypeAlias = Mapping[str, pa.Table]
"""The messages for each topic, in their order: those of a topic are written before those of the next one."""

AT_ONCE = 10_000
"""The messages that become objects of Python at once."""

LEAST_TIME, MOST_TIME, PER_ROW = 60_000, 900_000, 0.1
"""The milliseconds for which a transaction may be open: at least, at most as brokers have it, and for a message."""

ANY = -1
"""The partition of a message that its key chooses."""

_MOST_BYTES = 1_000_000
"""The bytes of a message that the client takes, if options do not say otherwise."""

_REPLACED = ("_FENCED", "PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH", "INVALID_TXN_STATE", "INVALID_PRODUCER_ID_MAPPING")
_FINAL = ("UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC", "_UNKNOWN_PARTITION", "POLICY_VIOLATION", "INVALID_RECORD")


class Sender:
    """A writer of messages under the name of its transactions.

    The law: messages of `send` are in their topics once, and seen together, if it returns; if it raises, or the process
    ends in it, all of them are or none, and the next `begin` of a sender of the same name settles which.
    """

    def __init__(self, cluster: Cluster, name: str, rows: int) -> None:
        self.cluster, self.name = cluster, name
        self.failed: tuple[Any, bytes | None, str] | None = None
        most = int(min(MOST_TIME, LEAST_TIME + rows * PER_ROW))
        self.client = cluster.producer(name, self._note, **{"transaction.timeout.ms": most})

    def begin(self) -> None:
        """Take the place of earlier senders of this name, whose open transaction is ended."""
        from confluent_kafka import KafkaError

        try:
            self.cluster.asked("begin a transaction", lambda: self.client.init_transactions(ONE_TRY))
        except BrokerUnreachable as error:
            fault = getattr(error.__context__, "args", (None,))[0]
            if getattr(fault, "code", lambda: None)() == KafkaError.INVALID_TRANSACTION_TIMEOUT:
                raise InvalidArgument(
                    f"the cluster {self.cluster.servers} lets no transaction be open so long: give "
                    "'transaction.timeout.ms' in options=, at most the transaction.max.timeout.ms of its brokers"
                ) from None
            raise

    def send(self, records: Records, first: str | None = None) -> None:
        """Write messages in one transaction, again if it was aborted; those of topic `first` to its first partition."""
        until: float | None = None
        while True:
            self.failed = None
            fault = self._once(records, first)
            if fault is None:
                return
            self._abort()
            self._check(fault)
            until = until or time.monotonic() + self.cluster.wait
            if time.monotonic() >= until:
                raise self.cluster.silence(f"write to {', '.join(records)}", fault)
            time.sleep(PAUSE)

    def _once(self, records: Records, first: str | None) -> KafkaError | None:
        """Write and commit; the fault because of which the transaction is to be aborted, if there is one."""
        from confluent_kafka import KafkaException

        try:
            self.client.begin_transaction()
            for topic, table in records.items():
                self._produce(topic, table, 0 if topic == first else ANY)
                self._flush(topic)
            return self._commit()
        except KafkaException as error:
            fault: KafkaError = error.args[0]
            if fault.fatal():
                raise self._replaced(fault) from None
            return fault

    def _produce(self, topic: str, table: pa.Table, partition: int) -> None:
        from confluent_kafka import KafkaError, KafkaException

        for key, value in _messages(table):  # the client takes one message at a time
            while True:
                try:
                    self.client.produce(topic, value, key, partition)
                    break
                except BufferError:
                    self.client.poll(0.1)
                except KafkaException as error:
                    if error.args[0].code() == KafkaError.MSG_SIZE_TOO_LARGE:
                        self.failed = (error.args[0], key, topic)
                        self._abort()
                        raise self._too_large(key, topic, len(key or b"") + len(value or b"")) from None
                    raise
            self.client.poll(0)

    def _flush(self, topic: str) -> None:
        """Wait until all messages are written or have failed, as long as some are written."""
        left, since = len(self.client), time.monotonic()
        while (now := self.client.flush(1.0)) > 0:
            if now < left:
                left, since = now, time.monotonic()
            elif time.monotonic() - since > self.cluster.wait:
                raise self.cluster.silence(f"write to {topic}")

    def _commit(self) -> KafkaError | None:
        from confluent_kafka import KafkaException

        until = time.monotonic() + self.cluster.wait
        while True:
            try:
                self.client.commit_transaction(ONE_TRY)
                return None
            except KafkaException as error:
                fault: KafkaError = error.args[0]
                if fault.txn_requires_abort() or fault.fatal():
                    raise
                if not fault.retriable():
                    raise self.cluster.refusal("commit a transaction", fault) from None
                if time.monotonic() >= until:  # it may be committed: the next sender of this name finds out
                    raise self.cluster.silence("commit a transaction", fault) from None

    def _abort(self) -> None:
        from confluent_kafka import KafkaException

        until = time.monotonic() + self.cluster.wait
        while True:
            try:
                self.client.abort_transaction(ONE_TRY)
                return
            except KafkaException as error:
                fault: KafkaError = error.args[0]
                if fault.fatal():
                    raise self._replaced(fault) from None
                if not fault.retriable() or time.monotonic() >= until:
                    raise self.cluster.silence("abort a transaction", fault) from None

    def _check(self, fault: KafkaError) -> None:
        """Raise if another try would fail too."""
        from confluent_kafka import KafkaError

        first, key, topic = self.failed or (fault, None, "")
        if first.code() == KafkaError.MSG_SIZE_TOO_LARGE:
            raise self._too_large(key, topic, None)
        if first.name() == "INVALID_RECORD":
            raise InvalidArgument(
                f"topic {topic!r} refuses a message of key {_shown(key)}: a compacted topic takes none without a key, "
                "so give keys=, or another topic"
            )
        if first.name() in _FINAL or first.name().endswith("AUTHORIZATION_FAILED"):
            raise self.cluster.refusal(f"take messages of topic {topic!r}", first)

    def _note(self, error: Any, message: Any) -> None:
        """Keep the first message that could not be written."""
        if error is not None and self.failed is None and error.name() not in ("_PURGE_QUEUE", "_PURGE_INFLIGHT"):
            self.failed = (error, message.key(), message.topic())

    def _too_large(self, key: bytes | None, topic: str, size: int | None) -> MessageTooLarge:
        words = "" if size is None else f" of {size:,} bytes"
        own = int(self.cluster.options.get("message.max.bytes", _MOST_BYTES))
        if size is not None:
            return MessageTooLarge(
                f"the message of key {_shown(key)} for topic {topic!r}{words} is larger than the client's limit of "
                f"{own:,}: give 'message.max.bytes' in options=, and the topic such a max.message.bytes, or leave such "
                "rows out with where()"
            )
        most = self._most_bytes(topic)
        limit = "its max.message.bytes" if most is None else f"its max.message.bytes of {most:,}"
        return MessageTooLarge(
            f"the message of key {_shown(key)} is larger than topic {topic!r} takes: raise {limit}, or leave such rows "
            "out with where()"
        )

    def _most_bytes(self, topic: str) -> int | None:
        value = setting_of(self.cluster, topic, "max.message.bytes")
        return None if value is None else int(value)

    def _replaced(self, fault: KafkaError) -> Exception:
        if fault.name() in _REPLACED:
            return WriterReplaced(
                f"the transaction {self.name} is another writer's now, or was open too long and is aborted: let one "
                "run at a time write with a checkpoint, and if it is the only one, give a longer "
                "'transaction.timeout.ms' in options="
            )
        return self.cluster.refusal("take a transaction", fault)


def setting_of(cluster: Cluster, topic: str, name: str) -> str | None:
    """A setting of a topic; None if the cluster does not tell."""
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import ConfigResource

    asked = ConfigResource(ConfigResource.Type.TOPIC, topic)
    try:
        [future] = cluster.admin.describe_configs([asked], request_timeout=ONE_TRY).values()
        return str(future.result()[name].value)
    except (KafkaException, KeyError):
        return None


def _messages(table: pa.Table) -> Iterator[tuple[bytes | None, bytes | None]]:
    for start in range(0, table.num_rows, AT_ONCE):
        some = table.slice(start, AT_ONCE)
        yield from zip(some["key"].to_pylist(), some["value"].to_pylist(), strict=True)


def _shown(key: bytes | None) -> str:
    return "null" if key is None else repr(key.decode("utf-8", "replace")[:200])


__all__ = ["RECORD", "Records", "Sender", "setting_of"]
