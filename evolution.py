"""The change of a running flow: a new checkpoint, or a seed, for the flow as it is now, of the state that there is.

Guarded by tests/flows/evolution/test_evolution.py and tests/sparkops/checkpoints/test_evolved_checkpoints.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike, fspath
from typing import Any

from .errors import InvalidArgument
from .flows.evolution.deletion import OUTSIDE
from .flows.evolution.plan import Planned, in_mode_of
from .flows.fingerprint.differences import words_of
from .flows.flow import Flow
from .panes.state.seed import Seed, read_seed
from .panes.upserts.stage import UpsertsStage


@dataclass(frozen=True)
class Evolution:
    """The state of a flow as it was, on its way to the flow as it is now; `uc.evolve` makes it.

    >>> import tempfile, uncombine as uc
    >>> rows = [{"ts": 0, "user": "ada", "x": 5}]
    >>> hours = uc.flow(rows, watermark="1 minute").window("1 hour")
    >>> before = hours.combine(by="user", n=uc.Count())
    >>> seed = before.run([uc.Elements(rows)]).seed(f"{tempfile.mkdtemp()}/before")
    >>> change = uc.evolve(seed, hours.combine(by="user", rows=uc.Count()), dry_run=True)
    >>> print(*change.plan.lines())
    step 1, a grouping by (user: string): converted: rows= was n=
    """

    plan: Planned
    rows: int
    """The rows of the state as it was."""
    bytes: int
    """The bytes of the state as it was."""
    seed: Seed | None = None
    """The seed for the flow as it is now; None if it was only asked what would become of the state."""
    remains: tuple[str, ...] = ()
    """The places that still have values of rows which the changed flow leaves out, in words."""

    @property
    def corrections(self) -> int:
        """The rows that the changed flow shows first, since they are not as they were shown."""
        steps = () if self.seed is None else self.seed.steps
        return sum(file.rows for step in steps for file in step.corrections)

    def __str__(self) -> str:
        about = f"{self.rows:,} rows of state in {self.bytes:,} bytes"
        more = "" if self.seed is None else f"; {self.corrections:,} rows to be shown first"
        return "\n".join([*self.plan.lines(), f"{about}{more}"])

    def __repr__(self) -> str:
        return str(self)


def evolve(
    checkpoint: str | PathLike[str] | Seed,
    flow: Flow,
    *,
    to: str | PathLike[str] | None = None,
    history: Any = None,
    shards: int | None = None,
    renames: Mapping[str, str] | None = None,
    dry_run: bool = False,
) -> Evolution:
    """Make a new checkpoint for a changed flow, of the checkpoint of the flow as it was, which stays as it is.

    What the change does not concern is kept, to the last bit. Combiners may be renamed, put in another order, removed,
    and read larger integers; the trigger may be another one, which starts fresh. All else is computed from the history:
    other combiners, keys, windows, functions, filters before a grouping, sources, and steps. Then all steps are.
    Over rows that can be retracted, a filter that is added before the only grouping and reads its key alone needs none:
    the keys for which it is not true leave the state. Without a history, a combiner that is added to the last grouping
    is null for windows that began before the change, and `pane.since` has the time from which on windows are whole. A
    history that is given later makes it whole.

    What was shown and is now different is retracted as it was shown and shown again: by a live table before its first
    batch, by any other sink with it. Both happen also when no new data come, but for another sink over a DataFrame of
    Spark's own sources, whose first batch waits for rows. What has expired stays as it was shown. The live table gets
    new columns; one that the flow has no more has nulls.

    Parameters
    ----------
    checkpoint
        The folder of the checkpoint, whose query has ended; or a seed, for a flow in this process.
    flow
        The flow as it is now.
    to
        A new folder: the checkpoint with which the changed flow is started, or the seed if a seed was given.
    history
        The rows that the former flow has read, as `flow.seed` takes them: files, a DataFrame, or the topics, as
        `uc.Kafka(...)`; needed where something is computed. Files that the query has read are found by its position,
        and messages by its offsets; later ones are left to it. A topic must still have its beginning.
    shards
        The number of shards, for a query on Spark; that of the flow if not given.
    renames
        The names before of combiners, where that is not clear: `{"total": "sum"}`.
    dry_run
        True to say what would be kept, computed and dropped, and to write nothing.

    Returns
    -------
    Evolution
        Its text has a line a step. `.seed` is the seed of the changed flow.

    Examples
    --------
    >>> import tempfile, uncombine as uc
    >>> rows = [{"ts": 0, "user": "ada", "x": 5}, {"ts": 1, "user": "ada", "x": 7}]
    >>> events = uc.flow(rows, watermark="1 minute")
    >>> hours = events.window("1 hour", "each row", mode="retracting")
    >>> before = hours.combine(by="user", n=uc.Count())
    >>> now = hours.combine(by="user", total=uc.Sum("x"))
    >>> folder = tempfile.mkdtemp()
    >>> seed = before.run([uc.Elements(rows)]).seed(f"{folder}/before")
    >>> change = uc.evolve(seed, now, history=rows, to=f"{folder}/now")
    >>> then = now.run([uc.Elements([{"ts": 2, "user": "ada", "x": 1}])], start=change.seed)
    >>> [(row["total"], row["diff"]) for row in then.collect()]
    [(None, -1), (12, 1), (12, -1), (13, 1)]
    """
    if not isinstance(flow, Flow):
        raise InvalidArgument(f"evolve() takes the flow as it is now, but was given {flow!r}")
    if to is None and not dry_run:
        raise InvalidArgument("evolve() writes into a new folder: give to=, or dry_run=True to see what it would do")
    if renames is not None and not isinstance(renames, Mapping):
        raise InvalidArgument(f"renames= takes a mapping such as {{'total': 'sum'}}, but was given {renames!r}")
    target, names = None if dry_run or to is None else fspath(to), dict(renames or {})
    if isinstance(checkpoint, Seed):
        if shards is not None:
            raise InvalidArgument("shards= is for checkpoints of Spark, and a seed has none: leave it out")
        return _of_seed(checkpoint, flow, target, history, names)
    from .sparkops.checkpoints.evolved import evolve_checkpoint
    from .sparkops.checkpoints.new_checkpoint import remaining

    former = fspath(checkpoint)
    plan, rows, size, seed = evolve_checkpoint(former, flow, target, history, shards, names)
    told = () if target is None else (*_remembered(plan), *remaining(former, target))
    return Evolution(plan, rows, size, seed, told)


def _of_seed(former: Seed, flow: Flow, target: str | None, history: Any, renames: Mapping[str, str]) -> Evolution:
    from .local.evolved_seeds import check_windows_here, evolve_here, plan_here

    former = read_seed(former.folder)
    if former.corrects:
        raise InvalidArgument(
            f"the seed {former.folder!r} takes panes for shown that nobody has seen yet: run its flow with it and "
            "evolve result.seed(to=), or make flow.seed(history, to=) of the changed flow"
        )
    flow = in_mode_of(flow, [step.made_by for step in former.steps])
    plan = plan_here(former, flow, history is not None, renames)
    rows = sum(count for step in former.steps for count in step.rows.values())
    if target is None:
        check_windows_here(former, flow, plan, history)
    seed = None if target is None else evolve_here(former, flow, plan, history, target)
    told = (*_remembered(plan), f"the seeds {former.folder!r} and {target!r}, until you delete them", *OUTSIDE)
    return Evolution(plan, rows, former.bytes, seed, () if seed is None else told)


def _remembered(plan: Planned) -> tuple[str, ...]:
    """The steps before which no filter can be, and which have the rows that one after them leaves out."""
    return tuple(
        f"step {one.step.number}, {words_of(one.made_by)}: the last row of each key, also where a filter leaves it "
        "out, until delete(where=) takes it from the new checkpoint, when its query has run"
        for one in plan.steps
        if isinstance(one.step.stage, UpsertsStage)
    )


__all__ = ["Evolution", "evolve"]
