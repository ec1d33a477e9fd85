"""The seed of a history, computed on Spark: the state that a flow has after rows that nobody has shown.

Files are listed once, before they are read, and the seed says which they were: a stream of them goes on after these.

Guarded by tests/sparkops/checkpoints/test_history_seeds.py.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from os.path import realpath
from typing import Any, TypeVar
from uuid import uuid4

from ...errors import StateMismatch
from ...files.listing import list_data_files
from ...flows.flow import Flow, FlowSource
from ...flows.flow_steps import leaves_of
from ...flows.histories import past_of, tell_bad
from ...kafka.bounded import parts_before
from ...panes.state.seed import Seed, SeedMaker, require_free, write_seed
from ..files_input import FilesInput
from ..inputs import Input
from ..lakehouse.versions_input import VersionsInput
from ..planners.file_offset import FileOffset
from ..planners.path_set import PathSet, hashes_of
from ..planners.topic_offset import Progress, TopicOffset
from ..planners.version_offset import VersionOffset
from ..routes.history import History
from ..routes.streaming import StreamRoute
from ..topics.topics_input import TopicsInput
from .accumulated_history import AccumulatedHistory, check_accumulators

_Kind = TypeVar("_Kind", bound=Input)


def seed_of_history(flow: Flow, input: Input, history: Any, until: datetime | str | int | None, folder: str) -> Seed:
    """Write the state that a flow has after the rows of its past, and the panes that it then shows, as a seed."""
    require_free(folder)
    past = listed(past_of(flow, history, until))
    of_flow = StreamRoute(flow, input)
    steps = History(past, input, folder=folder).steps(list(map(of_flow.fingerprint, of_flow.graph.steps)))
    tell_bad(steps)
    maker = SeedMaker(owner=uuid4().hex, batch=0)
    inputs = [source.input for source, _ in leaves_of(past)]  # type: ignore[attr-defined]
    # Of files that are cut by a time the stream has to read the rest.
    positions = tuple(map(_position, inputs)) if until is None else ()
    return write_seed(Seed(folder, tuple(steps), maker, positions=positions, corrects=True))


def seed_of_accumulators(flow: Flow, input: Input, accumulators: Any, folder: str) -> Seed:
    """Write the state that a flow has after a past of stored accumulators, and the panes that it shows, as a seed."""
    require_free(folder)
    past, of_flow = past_of(flow, [], None), StreamRoute(flow, input)
    history = AccumulatedHistory(past, input, folder=folder, accumulators=accumulators)
    check_accumulators(flow, history.lift(history.graph.steps[0], 0), accumulators)
    steps = history.steps(list(map(of_flow.fingerprint, of_flow.graph.steps)))
    return write_seed(Seed(folder, tuple(steps), SeedMaker(owner=uuid4().hex, batch=0), corrects=True))


def listed(flow: Flow, positions: Sequence[str] = (), present: Flow | None = None) -> Flow:
    """The flow over the files that there are now, of each source that is files.

    With the positions of a query these are the files that it has read, and those that it will not read, since they are
    elsewhere; `present` is the flow that goes on.
    """
    sources = [] if present is None else [source.input for source, _ in leaves_of(present)]  # type: ignore[attr-defined]
    places = iter(zip(positions, sources, strict=False))

    def over(one: Flow) -> Flow:
        source = one.source
        if isinstance(source, FlowSource):
            return replace(one, source=replace(source, inputs=tuple(map(over, source.inputs))))
        made = _listed(source.input, *next(places, ("-", None)))  # type: ignore[attr-defined]
        return replace(one, source=replace(source, input=made))  # type: ignore[type-var]

    return over(flow)


def _listed(input: Input, position: str, present: Input | None) -> Input:
    if isinstance(input, TopicsInput):
        return _named(input, None if position == "-" else json.loads(position))
    if isinstance(input, VersionsInput):
        if input.last is not None or input.streaming:
            return input
        return input.named() if position == "-" else replace(input, last=VersionOffset.of(json.loads(position)).last)
    if not isinstance(input, FilesInput):
        return input.over(lambda one: _listed(one, position, present))
    if input.listed is not None or input.streaming or input.format.as_spark:
        return input
    files = list_data_files(input.format.paths)
    offset = None if position == "-" else json.loads(position)
    if offset is None or not FileOffset.planned(offset):
        return replace(input, listed=tuple(files))
    read, stream = FileOffset.of(offset), None if present is None else next(_files(present), None)
    real = [file if "://" in file.path else replace(file, path=realpath(file.path)) for file in files]
    there = read.has(hashes_of([file.path for file in files])) | read.has(hashes_of([file.path for file in real]))
    roots = [] if stream is None else [realpath(one.fixed) if not one.address else one.fixed for one in stream.paths]
    own = [any(f"{file.path}/".startswith(f"{root.rstrip('/')}/") for root in roots) for file in real]
    gone = len(read.read) - int(there.sum())
    if gone > 0 and all(own):
        raise StateMismatch(
            f"{gone} of the {len(read.read)} files that the query has read are not in the history {input.describe()}, "
            "so what it saw cannot be computed again: restore them, or give the rows of the past from another place"
        )
    chosen = [file for file, has, below in zip(files, there, own, strict=True) if has or not below]
    return replace(input, listed=tuple(chosen))


def _named(input: TopicsInput, offset: Any) -> TopicsInput:
    """The topics up to where they end now, or up to the offsets of a query."""
    if input.parts is not None or input.streaming:
        return input
    if offset is None:
        return input.named()
    ends = {one: progress.offset for one, progress in TopicOffset.of(offset).partitions.items()}
    return replace(input, parts=tuple(parts_before(input.kafka, ends)))


def _position(input: Input) -> str:
    """The place after the files or topics of an input, as Spark notes that of a stream; a dash for other rows."""
    topics = next(_inputs(input, TopicsInput), None)
    if topics is not None and topics.parts is not None:
        partitions = {part.partition: Progress(part.last, part.last) for part in topics.parts}
        return json.dumps(TopicOffset(partitions).stored)
    versions = next(_inputs(input, VersionsInput), None)
    if versions is not None and versions.last is not None:
        return json.dumps(VersionOffset(table=versions.table_rows.versions.table, version=versions.last).stored)
    files = next(_files(input), None)
    if files is None or files.listed is None:
        return "-"
    read = PathSet(hashes_of([file.path for file in files.listed]))
    return json.dumps(FileOffset(read=read).stored)


def _files(input: Input) -> Iterator[FilesInput]:
    return _inputs(input, FilesInput)


def _inputs(input: Input, kind: type[_Kind]) -> Iterator[_Kind]:
    """The inputs of a kind that an input is made of."""
    if isinstance(input, kind):
        yield input
        return
    inner: list[_Kind] = []

    def found(one: Input) -> Input:
        inner.extend(_inputs(one, kind))
        return one

    input.over(found)
    yield from inner


__all__ = ["seed_of_accumulators", "seed_of_history"]
