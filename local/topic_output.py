"""The way of a flow out to Kafka: the messages of its rows, and of the rows that it leaves out, each with its topic.

Guarded by tests/kafka/test_local_to_kafka.py and tests/sparkops/tables/test_to_kafka.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import pyarrow as pa

from ..changelogs.json_out import texts_of
from ..changelogs.records import RecordForm
from ..combiners.rows.hashing import require_hash
from ..combiners.rows.plain_types import plain_table
from ..errors import InvalidArgument, TypeMismatch, require_column
from ..flows.flow import Flow, check_filters
from ..flows.flow_steps import input_of
from ..flows.tuning import TopicTarget
from ..kafka.client import FIRST_ANSWER, Cluster, require_client
from ..kafka.partitions import is_pattern, partitions_of
from ..kafka.sending import RECORD, Sender
from ..panes.grouping.grouping import DIFF
from ..panes.grouping.stage import GroupingStage
from ..tables.layout import is_pane, keys_of, require_weights, retracting_flow
from ..windows import span
from .running import run

WHO = "to_kafka()"


@dataclass(frozen=True)
class TopicOutput:
    """The topics that a flow is written to, and the form of the messages; a value that travels to the tasks."""

    cluster: Cluster
    topic: str
    left_out: str | None
    """The topic of the rows that are left out."""
    form: RecordForm
    names: tuple[str, ...]
    """The columns of the flow that are written, with the weights."""
    dividing: tuple[str, ...]
    """The columns by which rows are divided into shards: rows that are netted meet in one."""

    def records(self, rows: pa.Table, left_out: pa.Table | None = None) -> dict[str, pa.Table]:
        """The messages of each topic; none for a topic without any."""
        out = {self.topic: self.form(rows.select(list(self.names)))}
        if self.left_out is not None and left_out is not None:
            values = texts_of(plain_table(left_out).combine_chunks()).cast(pa.binary())
            out[self.left_out] = pa.table([pa.nulls(len(values), pa.binary()), values], schema=RECORD)
        return {topic: table for topic, table in out.items() if table.num_rows}

    def check(self) -> None:
        """Raise unless the cluster answers and has the topics."""
        for topic in (self.topic, *([self.left_out] if self.left_out is not None else [])):
            try:
                partitions_of(self.cluster, [topic], min(FIRST_ANSWER, self.cluster.wait))
            except InvalidArgument as error:
                raise InvalidArgument(
                    f"{error} to_kafka() makes no topic but that of its markers: make it with the partitions that you "
                    "want, and cleanup.policy=compact if its messages are the last row of each key"
                ) from None


def topic_flow(flow: Flow, target: TopicTarget, keys: str | Sequence[str] | None) -> tuple[Flow, TopicOutput]:
    """The flow, settled so that its rows are a changelog, and its way out; no broker is asked."""
    require_client("flow.to_kafka() writes messages")
    cluster = _cluster(target)
    flow = retracting_flow(flow, "a topic")
    check_filters(flow)
    require_weights(flow, "a topic")
    output, schema = input_of(flow), flow.schema
    names = [
        field.name
        for field in schema
        if not is_pane(field) and not (output.diff is None and output.panes and field.name == DIFF)
    ]
    form = RecordForm.of(target.changelog, _keys(flow, schema, target, keys), output.diff)
    for name in names:
        require_hash(schema.field(name).type, "a topic", name)
    rest = [name for name in names if name != output.diff]
    plain = [name for name in rest if not pa.types.is_nested(schema.field(name).type)]
    written = TopicOutput(
        cluster=cluster,
        topic=target.topic,
        left_out=target.left_out,
        form=form,
        names=tuple(names),
        dividing=form.keys or tuple(plain or rest),
    )
    written.records(schema.empty_table())  # columns that have no JSON raise now, and not at the first row
    return flow, written


def write_topic(flow: Flow, target: TopicTarget, keys: str | Sequence[str] | None) -> None:
    """Write the rows of a bounded flow in one transaction."""
    settled, output = topic_flow(flow, target, keys)
    output.check()
    result = run(settled, None)
    records = output.records(result.panes, result.left_out if output.left_out is not None else None)
    sender = Sender(output.cluster, f"uncombine-{uuid4().hex}", sum(table.num_rows for table in records.values()))
    sender.begin()
    if records:
        sender.send(records)


def _keys(flow: Flow, schema: pa.Schema, target: TopicTarget, keys: str | Sequence[str] | None) -> tuple[str, ...]:
    """The columns of the key: those that are named, by the call or the format, or those of the last grouping."""
    named: Any = keys if keys is not None else getattr(target.changelog, "keys", None)
    if named is None and not (flow.stages and isinstance(flow.stages[-1], GroupingStage)):
        return ()
    columns = keys_of(flow, schema, named)
    for name in columns:
        require_column(name, schema.names, "keys=")
    return tuple(columns)


def _cluster(target: TopicTarget) -> Cluster:
    for what, value in (("topic", target.topic), ("left_out=", target.left_out)):
        if value is not None and (not isinstance(value, str) or not value or is_pattern(value)):
            raise TypeMismatch(f"to_kafka() takes the name of one topic as {what}, not {value!r}")
    if target.left_out == target.topic:
        raise InvalidArgument(f"left_out= of to_kafka() is {target.topic!r}, the topic of the rows: name another topic")
    servers = [target.servers] if isinstance(target.servers, str) else target.servers
    if not isinstance(servers, list | tuple) or not servers or not all(isinstance(one, str) and one for one in servers):
        raise TypeMismatch(f"to_kafka() takes a text or a list of texts as servers, not {target.servers!r}")
    wait = int(span(target.wait)) / 1_000_000
    return Cluster(",".join(servers), dict(target.options or {}), wait, who=WHO, writes=True)


__all__ = ["TopicOutput", "topic_flow", "write_topic"]
