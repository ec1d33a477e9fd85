"""The law of changed flows: a flow that is changed in the middle leaves the rows that it would leave from the start.

Guarded by tests/testing/test_evolutions.py.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import pyarrow as pa

from ..combiners.rows.columns import flat
from ..errors import InvalidArgument
from ..flows.evolution.changed_seed import stored_rows
from ..flows.evolution.plan import in_mode_of
from ..flows.flow import Flow
from ..flows.flow_steps import leaves_of, weight_of
from ..local.evolved_seeds import evolve_here, plan_here
from ..local.local_inputs import source_tables
from ..local.running import run
from ..local.script import Elements, Entry
from ..panes.grouping.loaded_windows import OUTSTANDING
from ..panes.state.seed import Seed
from .check import Check, Problem, check_one, compared
from .kit import search
from .row_values import expected_rows, left_of, unit_of
from .survivors import Unclear, run_traced


@dataclass(frozen=True)
class EvolutionCheck(Check):
    """A flow in whose place another one was, and the function that gives its right result."""

    before: Flow | None = None
    renames: Mapping[str, str] = field(default_factory=dict)

    def problem(self, script: Sequence[Entry]) -> Problem | None:
        """The fault that a script shows, in whose middle the flow is changed."""
        assert self.before is not None
        traced = run_traced(self.flow, script)
        if run(self.before, script).counts().get("dropped"):
            raise Unclear("the flow as it was leaves late rows out")
        cut = cut_of(script)
        try:
            panes = self._changed(list(script), cut)
        except Unclear:
            raise
        except Exception as error:
            return Problem(kind="evolution", text=f"raised {type(error).__name__}: {error}", lines=(), cause=error)
        left, frames = left_of(panes, self.weight), traced.frames
        answer = self.expected(frames[None] if None in frames else {str(n): frame for n, frame in frames.items()})
        fault = compared(left, expected_rows(answer, left), self.tolerance, self.tolerance * unit_of(frames.values()))
        if fault is None:
            return None
        text = f"changed before entry {cut} of the script, {fault.text}"
        return replace(fault, kind="evolution", text=text)

    def _changed(self, script: list[Entry], cut: int) -> pa.Table:
        """The changelog of the flow as it was, and then of the flow as it is now."""
        assert self.before is not None
        with tempfile.TemporaryDirectory() as folder:
            first = run(self.before, script[:cut])
            seed = first.seed(f"{folder}/before")
            if shown_in(seed) != left_of(first.panes, weight_of(self.before)).rows.total():
                raise Unclear("windows expired before the change, and stay as they were shown")
            history = history_of(self.flow, script[:cut])
            flow = in_mode_of(self.flow, [step.made_by for step in seed.steps])
            plan = plan_here(seed, flow, True, self.renames)
            rest = run(flow, script[cut:], evolve_here(seed, flow, plan, history, f"{folder}/now")).panes
        place = rest.column_names.index("step")
        steps = pa.array([step + cut for step in rest["step"].to_pylist()], pa.int64())
        return pa.concat_tables([_in_columns(first.panes, rest.schema), rest.set_column(place, "step", steps)])


def check_evolution(
    before: Flow,
    after: Flow,
    expected: Callable[..., Any],
    *,
    renames: Mapping[str, str] | None = None,
    examples: int = 50,
    seed: int | None = None,
    tolerance: float = 1e-9,
    script: Sequence[Entry] | None = None,
    name: str = "after",
    rows: int = 20,
    bundles: int = 12,
    keys: int = 3,
    columns: Mapping[str, Any] | None = None,
    nulls: bool = True,
) -> None:
    """Raise `FlowViolation` if a flow that takes the place of another leaves other rows than from the start.

    Random scripts without late rows run through `before`, which is changed to `after` at some entry by `uc.evolve` with
    the rows so far as the history, and go on. The rows that are left of both changelogs together must be those that
    `expected` computes from all rows. A window that has expired stays as it was shown, so scripts in which one does
    before the change are not compared.

    Parameters
    ----------
    before, after
        The flow as it was and as it is now, over `uc.flow(schema)`.
    expected
        A function of a DataFrame that gives the right rows of `after`, as that of `check_flow`.
    renames
        As for `uc.evolve`.
    script
        One script to check, such as that of a violation, in the place of random ones.
    examples, seed, tolerance, name, rows, bundles, keys, columns, nulls
        As for `check_flow`.

    Examples
    --------
    >>> import pyarrow as pa, uncombine as uc
    >>> time = pa.timestamp("us", "UTC")
    >>> columns = pa.schema({"ts": time, "user": pa.string(), "x": pa.int64()})
    >>> whole = uc.flow(columns).window("global", "each row", mode="retracting")
    >>> counts = whole.combine(by="user", n=uc.Count())
    >>> sums = whole.combine(by="user", n=uc.Count(), total=uc.Sum("x"))
    >>> def expected(rows):
    ...     users = rows.groupby("user", dropna=False)
    ...     return users.x.agg(n="size", total=lambda x: x.sum(min_count=1)).reset_index()
    >>> uc.testing.check_evolution(counts, sums, expected, examples=10)
    """
    __tracebackhide__ = True
    made = partial(EvolutionCheck, before=before, renames=dict(renames or {}))
    if script is not None:
        check_one(made(flow=after, expected=expected, tolerance=tolerance), script)
        return
    if not isinstance(before, Flow):
        raise InvalidArgument(f"check_evolution() takes the flow as it was, but was given {before!r}")
    options = {"rows": rows, "bundles": bundles, "keys": keys, "columns": columns, "nulls": nulls, "late": False}
    search(
        after,
        expected,
        examples=examples,
        seed=seed,
        tolerance=tolerance,
        name=name,
        draw=None,
        replay=None,
        replays=0,
        allow=(),
        made=made,
        scale=None,
        **options,
    )


def cut_of(script: Sequence[Entry]) -> int:
    """The entry before which the flow is changed: any that has no end after it, and the same for the same script."""
    count = sum(len(entry.rows) for entry in script if isinstance(entry, Elements))
    return (7 * count + len(script)) % max(len(script), 1)


def shown_in(seed: Seed) -> int:
    """The number of panes that the state of the last step takes for shown."""
    files = [file for file in seed.steps[-1].files if file.store == "windows"]
    tables = [stored_rows(seed.folder, file).living()[1] for file in files]
    return sum(len(flat(table[OUTSTANDING]).flatten()) for table in tables)


def history_of(flow: Flow, script: Sequence[Entry]) -> Any:
    """The rows of a script, of each source by its name if there are several."""
    tables: dict[str | None, pa.Table] = {}
    for source, settings in leaves_of(flow):
        own = [entry for entry in script if isinstance(entry, Elements) and entry.input in (None, settings.name)]
        some = [table for table in source_tables(source, settings, own) if table is not None]
        tables[settings.name] = pa.concat_tables([source.schema.empty_table(), *some])
    return tables if len(tables) > 1 else next(iter(tables.values()))


def _in_columns(panes: pa.Table, schema: pa.Schema) -> pa.Table:
    """Panes in the columns of others; one that they do not have is null."""
    columns = [
        panes[one.name].cast(one.type) if one.name in panes.column_names else pa.nulls(panes.num_rows, one.type)
        for one in schema
    ]
    return pa.table(columns, schema=schema)


__all__ = ["check_evolution"]
