"""Clients of a cluster of Kafka, made of options that nobody sees again, and patient with brokers that are away.

The client is librdkafka, which knows every way to log in. Its options pass through as they are. They may have secrets,
so no repr, error or log of the library has a value of one.

Guarded by tests/kafka/test_kafka_value.py and tests/sparkops/topics/test_kafka_faults.py.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from ..errors import BrokerUnreachable, InvalidArgument, LibraryMissing, TypeMismatch

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Producer
    from confluent_kafka.admin import AdminClient

_Value = TypeVar("_Value")

FIRST_ANSWER = 10.0
"""The seconds in which a cluster must answer when a flow over it is made."""

ONE_TRY = 5.0
"""The seconds of one request; a broker that is away is asked again."""

PAUSE = 0.2
"""The seconds between two requests."""

BACK_WITHIN = 10.0
"""The seconds in which a partition that is missing, or shorter than it was, may come back, as its broker starts."""

_FIXED = {
    "bootstrap.servers": "give them as servers, the first argument",
    "group.id": "give group=",
    "enable.auto.commit": "the library itself notes what is read",
    "auto.offset.reset": "give start=, and on_lost=",
    "isolation.level": "messages of a transaction are read once it is committed",
    "enable.partition.eof": "the library itself sees the end of a partition",
}
"""The options of the client that the library sets, and what a user does instead."""

_OF_WRITERS = {
    "transactional.id": "the checkpoint and the shards name the transactions",
    "enable.idempotence": "each message is written once",
    "acks": "a message counts when all replicas have it",
    "group.id": "nothing is read as a group",
    "auto.offset.reset": "nothing is read but the markers of batches",
}
"""The options of a client that writes, which the library sets too."""

_READER = {
    "group.id": "uncombine-reader",
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "auto.offset.reset": "error",
    "isolation.level": "read_committed",
    "enable.partition.eof": True,
}

_QUICK = {
    "fetch.wait.max.ms": 100,
    "fetch.error.backoff.ms": 50,
    "fetch.queue.backoff.ms": 5,
    "reconnect.backoff.max.ms": 1000,
}
"""Options with which the end of a partition is seen soon; those of the user come first.

A client whose queue is full, which is so after 100,000 small messages, asks for more after a second if it is not told
otherwise: most of the time nothing came.
"""

_WRITER: dict[str, Any] = {"partitioner": "murmur2_random", "linger.ms": 20, "delivery.report.only.error": True}
"""Options of a client that writes: a key has the partition that Java's clients give it. The user's come first."""

_SHOWN = frozenset({"security.protocol", "sasl.mechanism", "sasl.mechanisms", "client.id"})
"""The options whose values are no secrets, so that errors may have them."""

_AGAIN = (
    "_TRANSPORT", "_NOENT", "_TIMED_OUT", "_ALL_BROKERS_DOWN", "_RESOLVE", "_WAIT_COORD", "_TIMED_OUT_QUEUE",
    "LEADER_NOT_AVAILABLE", "NOT_LEADER_FOR_PARTITION", "REQUEST_TIMED_OUT", "BROKER_NOT_AVAILABLE",
    "REPLICA_NOT_AVAILABLE", "COORDINATOR_NOT_AVAILABLE", "COORDINATOR_LOAD_IN_PROGRESS", "NOT_COORDINATOR",
    "NETWORK_EXCEPTION", "FENCED_LEADER_EPOCH", "UNKNOWN_LEADER_EPOCH", "OFFSET_NOT_AVAILABLE", "KAFKA_STORAGE_ERROR",
)  # fmt: skip
"""The errors after which another try may succeed."""


_STALE = ("FENCED_LEADER_EPOCH", "UNKNOWN_LEADER_EPOCH", "NOT_LEADER_FOR_PARTITION")
"""The errors of a client that asks with what it knew before a broker came back, and does not learn: a new one does."""


@dataclass(frozen=True)
class Cluster:
    """The servers of a cluster, and how to reach them.

    >>> Cluster("127.0.0.1:9092", {"sasl.password": "secret"})
    Cluster(servers='127.0.0.1:9092')
    """

    servers: str
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    wait: float = field(default=60.0, repr=False)
    """The seconds for which a broker may be away."""
    who: str = field(default="uc.Kafka", repr=False)
    """The call that was given the servers and the options, in messages."""
    writes: bool = field(default=False, repr=False)
    """True if messages are written too."""

    def __post_init__(self) -> None:
        check_options(self.options, self.who, _FIXED | (_OF_WRITERS if self.writes else {}))

    @property
    def admin(self) -> AdminClient:
        """The client of this process that asks about topics."""
        key = ("admin", os.getpid(), *self._key)
        if key not in _clients:
            from confluent_kafka.admin import AdminClient

            _clients[key] = self._made(AdminClient, {})
        client: AdminClient = _clients[key]
        return client

    @contextmanager
    def consumer(self, **more: Any) -> Iterator[Consumer]:
        """A client that reads messages; one that was used without an error is used again."""
        from confluent_kafka import Consumer

        key = ("consumer", os.getpid(), *self._key, *sorted(more.items()))
        idle = _idle.setdefault(key, [])
        client = idle.pop() if idle else self._made(Consumer, _READER | _QUICK | dict(self.options) | more)
        try:
            yield client
        except BaseException:
            client.close()
            raise
        client.unassign()
        idle.append(client)

    def producer(self, transactional_id: str | None, failed: Callable[[Any, Any], None], **more: Any) -> Producer:
        """A new client that writes messages; `failed` gets the error and the message of one that was not written."""
        from confluent_kafka import Producer

        own: dict[str, Any] = {"enable.idempotence": True, "on_delivery": failed}
        if transactional_id is not None:
            own["transactional.id"] = transactional_id
        client: Producer = self._made(Producer, _WRITER | more | dict(self.options) | own)
        return client

    def asked(self, what: str, ask: Callable[[], _Value], wait: float | None = None) -> _Value:
        """The answer of the cluster, which is asked again while no broker answers; raise after `wait` seconds."""
        from confluent_kafka import KafkaException

        until = time.monotonic() + (self.wait if wait is None else wait)
        while True:
            try:
                return ask()
            except KafkaException as error:
                fault = error.args[0]
                if fault.name() not in _AGAIN:
                    raise self.refusal(what, fault) from None
                if time.monotonic() >= until:
                    raise self.silence(what, fault) from None
                if fault.name() in _STALE:
                    _clients.pop(("admin", os.getpid(), *self._key), None)
                time.sleep(PAUSE)

    def silence(self, what: str, fault: object = None) -> BrokerUnreachable:
        """The error for a cluster that does not answer."""
        return BrokerUnreachable(
            f"no broker of {self.servers} answers, to {what}{self._because(fault)}: start it, or look at the servers "
            f"and at the options= of {self.who}"
        )

    def refusal(self, what: str, fault: object) -> BrokerUnreachable:
        """The error for a cluster that answers, but not with what it was asked for."""
        return BrokerUnreachable(f"the cluster {self.servers} refuses to {what}{self._because(fault)}")

    def safe(self, text: str) -> str:
        """A text of the client without the values of options."""
        for name, value in self.options.items():
            if name not in _SHOWN and len(str(value)) > 1:
                text = text.replace(str(value), "...")
        return text

    def _because(self, fault: object) -> str:
        key = (os.getpid(), *self._key)
        told = _last_errors.get(key) if fault is None or "timed out" in str(fault).lower() else None
        said = told or (None if fault is None else getattr(fault, "str", lambda: str(fault))())
        return "" if not said else f" ({self.safe(str(said))})"

    @property
    def _key(self) -> tuple[Any, ...]:
        return (self.servers, *sorted((name, str(value)) for name, value in self.options.items()))

    def _made(self, kind: Any, options: Mapping[str, Any]) -> Any:
        from confluent_kafka import KafkaException

        key = (os.getpid(), *self._key)

        def note(error: Any) -> None:
            _last_errors[key] = error.str()

        own = {"bootstrap.servers": self.servers, "error_cb": note, "log_level": 2}
        try:
            return kind({**self.options, **options, **own})
        except (KafkaException, ValueError, TypeError) as error:
            fault = error.args[0] if error.args else error
            words = getattr(fault, "str", lambda: str(fault))()
            raise InvalidArgument(
                f"the client of Kafka does not take options= of {self.who}: {self.safe(words)}"
            ) from None


_clients: dict[tuple[Any, ...], Any] = {}
_idle: dict[tuple[Any, ...], list[Any]] = {}
_last_errors: dict[tuple[Any, ...], str] = {}
"""The last error that the client of a cluster has told, which says more than that a request timed out."""


def check_options(
    options: Mapping[str, Any], who: str = "uc.Kafka", fixed: Mapping[str, str] = MappingProxyType(_FIXED)
) -> None:
    """Raise for options that the client does not take, or that the library sets.

    >>> check_options({"group.id": "totals"})
    Traceback (most recent call last):
        ...
    uncombine.errors.InvalidArgument: options= of uc.Kafka cannot set 'group.id': give group=
    """
    for name, value in options.items():
        if name in fixed:
            raise InvalidArgument(f"options= of {who} cannot set {name!r}: {fixed[name]}")
        if not isinstance(name, str) or not isinstance(value, str | int | float | bool):
            raise TypeMismatch(
                f"options= of {who} takes texts, numbers and bools by the names of librdkafka, such as "
                f"{{'security.protocol': 'SSL'}}, but {name!r} is a {type(value).__name__}"
            )


def require_client(words: str = "uc.Kafka reads messages") -> None:
    """Raise unless the client is installed."""
    try:
        import confluent_kafka  # noqa: F401
    except ImportError:
        raise LibraryMissing(
            f"{words} with confluent-kafka, which is not installed: pip install 'uncombine[kafka]'"
        ) from None


__all__ = ["BACK_WITHIN", "FIRST_ANSWER", "ONE_TRY", "Cluster", "check_options", "require_client"]
