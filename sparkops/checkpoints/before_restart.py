"""A restart of a flow, looked at before it is deployed.

Guarded by tests/sparkops/test_restart_checks.py.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...errors import InvalidArgument
from ...flows.fingerprint.differences import check_same
from ...flows.flow import Flow
from ...tables.layout import retracting_flow
from ..query_log import is_checkpoint
from ..restarts import Restart, restart_of, step_names
from ..routes.streaming import StreamRoute
from ..source import spark_source
from ..time_modes import as_stored


def check_restart(flow: Flow, checkpoint: str, same: Sequence[str] = ()) -> Restart:
    """Say what a restart of a streaming flow from a checkpoint would do, without starting it.

    The checkpoint does not say if its rows go into a table, so the mode that fits it better is taken.
    """
    source = spark_source(flow) if flow.source.streaming else None
    route = None if source is None else source.route(as_stored(flow, source.input.spark, checkpoint))
    if not isinstance(route, StreamRoute):
        raise InvalidArgument("a checkpoint is that of a stream with steps on Spark, and this flow is none")
    check_same(same, step_names(flow))
    if not is_checkpoint(route.input.spark, checkpoint):
        raise InvalidArgument(
            f"{checkpoint!r} is no checkpoint of a streaming query: it has no file 'metadata', which a query writes as "
            "it starts, so give the folder of write_stream(checkpoint=)"
        )
    restart = restart_of(route, checkpoint, same) or Restart(())
    if restart.refusal is None or source is None or (table := _of_a_table(flow)) is flow:
        return restart
    other = source.route(as_stored(table, source.input.spark, checkpoint))
    of_table = restart_of(other, checkpoint, same) if isinstance(other, StreamRoute) else None
    return restart if of_table is None or _changes(of_table) >= _changes(restart) else of_table


def _of_a_table(flow: Flow) -> Flow:
    """The flow as a live table, or a topic, runs it: a mode that its last grouping leaves open is "retracting"."""
    try:
        return retracting_flow(flow)
    except InvalidArgument:  # none can be made of it
        return flow


def _changes(restart: Restart) -> int:
    """The number of changes for which a restart is refused."""
    return sum(len(step.changes) for step in restart.steps)


__all__ = ["check_restart"]
