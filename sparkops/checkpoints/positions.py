"""A flow whose sources go on where a seed ends.

Files in an order of the library go on by themselves. Other sources of Spark are told by an option of their own. A query
needs its seed until its steps have stored it, and a start without it is refused as far as the files tell.

Guarded by tests/sparkops/checkpoints/test_checkpoint_seeds.py.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow.fs as pafs
from pyspark.errors import AnalysisException

from ...errors import InvalidArgument, StateMismatch, UncombineError
from ...files.listing import list_data_files
from ...files.paths import locate
from ...flows.flow import Flow
from ...flows.flow_steps import leaves_of
from ...flows.graph import graph_of
from ...panes.state.seed import MANIFEST, Seed, opened_seed, read_seed
from ..files_input import FilesInput
from ..inputs import Input
from ..lakehouse.versions_input import VersionsInput
from ..planners.file_offset import FileOffset
from ..planners.file_planner import FilePlanner
from ..planners.path_set import PathSet, hashes_of
from ..planners.planner import Planner
from ..planners.topic_offset import TopicOffset
from ..planners.topic_planner import TopicPlanner
from ..planners.version_offset import VersionOffset
from ..planners.version_planner import VersionPlanner
from ..query_log import last_commit
from ..restarts import stored_fingerprints
from ..topics.topics_input import TopicsInput
from .seeds import positions
from .used_seeds import UsedSeed, drop_later

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


EVOLVED, FORMER = "seed", "former"
"""The folders in a new checkpoint of the seed that a changed flow begins with, and of that which it is made of."""


def seed_at_start(flow: Flow, start: Seed | str | None, spark: SparkSession, checkpoint: str) -> Seed | None:
    """The seed with which a query starts; None without one, and as soon as each step has stored its part of it."""
    own = _evolved(checkpoint)
    start = start or own
    if start is None and not _begun_with_seed(flow, spark, checkpoint):
        return None
    steps = len(graph_of(flow).steps)
    used = None if own is None else UsedSeed(checkpoint, EVOLVED, FORMER, steps)
    if last_commit(spark, checkpoint) >= 0 and len(stored_fingerprints(spark, checkpoint)) == steps:
        if used is not None:
            used.drop()
        return None
    if start is None:
        raise StateMismatch(
            f"the query of the checkpoint {checkpoint!r} began after files that a seed, or start= of uc.Files, had "
            "read, and has not stored all of its state yet: give the same start= again, until each source has had rows"
        )
    seed = opened_seed(start)
    if seed is not None and _planned_before(flow, seed, spark, checkpoint):
        raise StateMismatch(
            f"the first batch of the checkpoint {checkpoint!r} was planned before the seed {seed.folder!r} was made, "
            "which has read more: give the seed with which the query first started, or a new checkpoint"
        )
    if used is not None:
        drop_later(used)
    return seed


def is_evolved(checkpoint: str) -> bool:
    """True for a checkpoint that `uc.evolve` has made."""
    return _evolved(checkpoint) is not None


def in_shards(flow: Flow, checkpoint: str) -> Flow:
    """The flow in the number of shards that `uc.evolve` has named for a checkpoint."""
    folder = _evolved(checkpoint)
    shards = None if folder is None else read_seed(folder).shards
    return flow if shards is None else with_shards(flow, shards)


def with_shards(flow: Flow, shards: int) -> Flow:
    """The flow, and all that it is made of, in so many shards."""
    if type(shards) is not int or shards < 1:
        raise InvalidArgument(f"shards= must be a whole number of at least 1, but is {shards!r}")
    source = flow.source
    if source.inputs:
        inputs = tuple(with_shards(one, shards) for one in source.inputs)
        source = replace(source, inputs=inputs)  # type: ignore[type-var]
    return replace(flow, source=source, settings=replace(flow.settings, shards=shards))


def _evolved(checkpoint: str) -> str | None:
    """The folder of the seed that `uc.evolve` has left in a new checkpoint; raises if it was not finished."""
    try:
        system, inside = locate(checkpoint)
    except UncombineError:  # an address that Spark alone knows
        return None
    folders = [f"{inside}/{name}" for name in (EVOLVED, FORMER)]
    there = [info.type == pafs.FileType.Directory for info in system.get_file_info(folders)]
    manifest = system.get_file_info(f"{inside}/{EVOLVED}/{MANIFEST}").type == pafs.FileType.File
    if any(there) and not manifest:
        raise StateMismatch(
            f"the checkpoint {checkpoint!r} was begun by evolve() and not finished, so that it would start from "
            "nothing: delete the folder, and evolve the former checkpoint again"
        )
    return f"{checkpoint}/{EVOLVED}" if manifest else None


def started_at(flow: Flow, seed: Seed | None) -> Flow:
    """The flow, whose files begin after those that are in the state of a seed."""
    if seed is None or not seed.positions:
        return flow
    count = len(list(leaves_of(flow)))
    if count != len(seed.positions):
        raise StateMismatch(
            f"the seed {seed.folder!r} has the positions of {len(seed.positions)} sources, and the flow has {count}: "
            "give the seed of this flow"
        )
    return _started(flow, iter(seed.positions))


def _started(flow: Flow, positions: Iterator[str]) -> Flow:
    source = flow.source
    if source.inputs:
        inputs = tuple(_started(one, positions) for one in source.inputs)
        return replace(flow, source=replace(source, inputs=inputs))  # type: ignore[type-var]
    input = getattr(source, "input", None)
    position = next(positions)
    if not isinstance(input, Input):
        return flow
    return replace(flow, source=replace(source, input=_input_at(input, position)))  # type: ignore[type-var]


def _input_at(input: Input, position: str) -> Input:
    if isinstance(input, TopicsInput):
        return _topics_at(input, _offset(position))
    if isinstance(input, VersionsInput):
        return _versions_at(input, _offset(position))
    if not isinstance(input, FilesInput):
        return input.over(partial(_input_at, position=position))
    offset = _offset(position)
    if offset is None:
        return input
    if input.planner is None:
        if FileOffset.planned(offset) and not _reads_again(input, FileOffset.of(offset)):
            return input
        raise InvalidArgument(
            f"{input.describe()} are listed by Spark, whose new query knows nothing of those that the seed has read, "
            "and would read them again: give them an order, such as uc.Files(..., order='name')"
        )
    if input.planner.start:
        raise InvalidArgument(
            "the seed says which files are read already, and so does start= of uc.Files: leave one of them out"
        )
    FileOffset.of(offset)
    return replace(input, planner=input.planner.begun(offset))


def _topics_at(input: TopicsInput, offset: Any) -> Input:
    if input.planner is None or offset is None:
        return input
    if input.kafka.start != "earliest":
        raise InvalidArgument(
            "the seed says which offsets are read already, and so does start= of uc.Kafka: leave one of them out"
        )
    TopicOffset.of(offset)
    return replace(input, planner=input.planner.begun(offset))


def _versions_at(input: VersionsInput, offset: Any) -> Input:
    if input.planner is None or offset is None:
        return input
    if input.changes.start is not None:
        raise InvalidArgument(
            "the seed says which versions are read already, and so does start= of uc.TableChanges: leave one of them "
            "out"
        )
    return replace(input, planner=input.planner.begun(offset))


def _reads_again(input: FilesInput, offset: FileOffset) -> bool:
    """True if a stream whose files Spark lists would read a file that is read already."""
    return bool(offset.has(hashes_of([file.path for file in list_data_files(input.format.paths)])).any())


def _begun_with_seed(flow: Flow, spark: SparkSession, checkpoint: str) -> bool:
    """True if the first batch of a query began after files that it has not read, while Spark keeps its position."""
    return any(
        planner is not None and _begins_later(planner, position)
        for planner, position in _first_positions(flow, spark, checkpoint)
    )


def _planned_before(flow: Flow, seed: Seed, spark: SparkSession, checkpoint: str) -> bool:
    """True if the first batch of a query was planned when a file that a seed has read was not there, or not read."""
    first = _first_positions(flow, spark, checkpoint)
    return any(
        planner is not None and _lacks(_offset(read), _offset(planned))
        for (planner, planned), read in zip(first, seed.positions, strict=False)
    )


def _first_positions(flow: Flow, spark: SparkSession, checkpoint: str) -> list[tuple[Planner | None, str]]:
    """The planner of each source, if it has one, and the place at which the first batch of a query ends in it."""
    try:
        planned = positions(spark, checkpoint, 0)
    except AnalysisException:  # the query is new, or has gone on for long
        return []
    inputs = (getattr(source, "input", None) for source, _ in leaves_of(flow))
    return [
        (input.planner if isinstance(input, Input) else None, position)
        for input, position in zip(inputs, planned, strict=False)
    ]


def _offset(position: str) -> Any:
    """The offset that Spark has noted, which is a dash for a source that has had nothing."""
    return None if position == "-" else json.loads(position)


def _lacks(read: Any, planned: Any) -> bool:
    if TopicOffset.planned(read) and TopicOffset.planned(planned):
        topics, planned_topics = TopicOffset.of(read).partitions, TopicOffset.of(planned).partitions
        return any(
            one not in planned_topics or planned_topics[one].offset < progress.offset
            for one, progress in topics.items()
        )
    if VersionOffset.planned(read) and VersionOffset.planned(planned):
        return VersionOffset.of(planned).begun != VersionOffset.of(read).last
    if not FileOffset.planned(read) or not FileOffset.planned(planned):
        return False
    first, then = FileOffset.of(read), FileOffset.of(planned)
    return not then.has(first.read.hashes).all()


def _begins_later(planner: Planner, position: str) -> bool:
    """True if the first batch of a query began after what its planner would begin with now."""
    offset = _offset(position)
    if isinstance(planner, TopicPlanner):
        # The first batch of a query without a seed says where it began with each partition.
        partitions = TopicOffset.of(offset).partitions.values() if TopicOffset.planned(offset) else ()
        begun = not TopicOffset.of(planner.begin()).initial
        return not begun and any(progress.first is None for progress in partitions)
    if isinstance(planner, VersionPlanner):
        later = VersionOffset.planned(offset) and VersionOffset.of(offset).begun is not None
        return later and VersionOffset.of(planner.begin()).begun is None
    if not isinstance(planner, FilePlanner):
        return False
    if not FileOffset.planned(offset):  # Spark listed them, as the check of the flow will say
        return False
    first, then = FileOffset.of(planner.begin()), FileOffset.of(offset)
    read, batch = then.read.hashes, PathSet(hashes_of(list(then.files)))
    return not (first.has(read) | batch.has(read)).all()


__all__ = ["EVOLVED", "FORMER", "in_shards", "is_evolved", "seed_at_start", "started_at", "with_shards"]
