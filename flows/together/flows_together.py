"""Several flows that run as one: what they share is computed once, and has one state.

It is a graph in which a step may have several readers. A step of two flows is one if the same rows come to it and it
does the same with them, as `shared_steps.py` says. The result of each flow is that of the flow by itself; only time
passes for all of them, so that a timer of processing time is due by the rows of any source.

Guarded by tests/flows/together/test_together.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from types import MappingProxyType
from typing import Any

from ...advice import Adviser, no_such_method
from ...errors import InvalidArgument, nearest
from ...panes.process.outputs import OutputRows
from ..engine import Engine
from ..flow import Flow, WindowedRows
from ..flow_steps import leaves_of
from ..graph import Feed, Graph, Leaf, Step, graph_together
from ..result import Result
from ..settings import check_sources
from ..transform_names import transform_names
from ..tuning import LiveQuery

_OTHERS = {
    "df": "write write_stream(checkpoint=...).foreach_batch(function), or each flow's own df",
    "foreach_batch": "write write_stream(checkpoint=...).foreach_batch(function)",
    "to_table": "write to_tables({name: target, ...}, checkpoint=...)",
    "to_kafka": "write each flow's own to_kafka(...)",
    "left_out": "write each flow's own left_out",
    "collect": "write run()[name].collect()",
    "to_pandas": "write run()[name].to_pandas()",
    "to_polars": "write run()[name].to_polars()",
    "to_arrow": "write run()[name].to_arrow()",
}


@dataclass(frozen=True, eq=False, repr=False)
class Together(Adviser):
    """Flows that run as one, by their names. `uc.together` makes it.

    >>> import uncombine as uc
    >>> minutes = uc.flow([{"ts": 0, "x": 5}]).window("1 minute").combine(total=uc.Sum("x"))
    >>> high = minutes.where(uc.col("total") > 3)
    >>> list(uc.together(minutes=minutes, high=high).flows)
    ['minutes', 'high']
    """

    flows: Mapping[str, Flow]

    def run(self, script: Sequence[Any] | None = None) -> dict[str, Result]:
        """Run the flows in this process, and return the result of each by its name.

        A script is that of `flow.run`: an entry goes to the source that its `input=` names, and to all flows over it.
        Without a script the rows of the sources come as one bundle, and then the input ends. An interrupt (Ctrl-C) has
        the results so far, by name, as its attribute `result`.

        >>> import uncombine as uc
        >>> minutes = uc.flow([{"ts": 0, "x": 5}]).window("1 minute").combine(total=uc.Sum("x"))
        >>> both = uc.together(all=minutes, high=minutes.where(uc.col("total") > 9))
        >>> {name: result.num_rows for name, result in both.run().items()}
        {'all': 1, 'high': 0}
        """
        flows = list(self.flows.values())
        try:
            results = self._engine.run_together(flows, script)
        except KeyboardInterrupt as interrupt:
            if isinstance(so_far := getattr(interrupt, "result", None), list):
                interrupt.result = dict(zip(self.flows, so_far, strict=True))  # type: ignore[attr-defined]
            raise
        return dict(zip(self.flows, results, strict=True))

    def write_stream(self, *, checkpoint: str | PathLike[str]) -> Any:
        """The stream of the flows on Spark as one query, of which `.foreach_batch(function)` makes Spark's writer.

        The function gets the rows of each flow in a batch, as a DataFrame by its name, and the number of the batch.
        They are computed once. A batch may come again after a failure, with the same number.

        Parameters
        ----------
        checkpoint
            The folder in which Spark keeps the state of all steps. It goes on only with the same flows.
        """
        return self._engine.stream_together(self.flows, fspath(checkpoint))

    def to_tables(
        self,
        targets: Mapping[str, str],
        *,
        checkpoint: str | PathLike[str],
        keys: Mapping[str, str | Sequence[str]] | None = None,
        trigger: Mapping[str, Any] | None = None,
        query_name: str | None = None,
    ) -> Any:
        """Start a query on Spark that keeps the current result of each flow in a table of its own.

        Each table takes each batch once, as that of `flow.to_table`. Two tables may be a batch apart while one is
        written. The result is a mapping with a `LiveTable` for each name, and has the methods of the query.

        Parameters
        ----------
        targets
            The table of each flow, by its name, such as `{"alerts": "duckdb:shop.db#alerts"}`.
        checkpoint
            The folder in which Spark keeps the state of all steps. It goes on only with the same flows.
        keys
            The key columns of tables, by name; without them those of `flow.to_table`.
        trigger
            When Spark runs batches, such as `{"processingTime": "10 seconds"}` or `{"availableNow": True}`.
        query_name
            Name of the query in the log, the metrics and Spark's pages; that of all its tables if not given.
        """
        for what, given in (("to_tables()", targets), ("keys=", keys or {})):
            if not isinstance(given, Mapping):
                raise InvalidArgument(f"{what} takes a mapping by the names of flows, not {given!r}")
            for name in given:
                if name not in self.flows:
                    raise InvalidArgument(
                        f"{what} names {name!r}, and no flow is called so: {nearest(str(name), list(self.flows))}"
                    )
        if missing := [name for name in self.flows if name not in targets]:
            raise InvalidArgument(f"to_tables() has no table for {missing[0]!r}: name one for each flow")
        query = LiveQuery.of(checkpoint, trigger, (), None, True, "to_tables", query_name)
        assert query is not None
        return self._engine.tables_together(self.flows, targets, keys or {}, query)

    @property
    def _engine(self) -> Engine[Flow]:
        return next(iter(self.flows.values())).source.engine

    def explain(self) -> str:
        """A text with each source and step once, and the names of the flows that read it."""
        graph = graph_together(list(self.flows.values()))
        return "\n".join([f"{len(self.flows)} flows, {_steps_of(graph)}:", *self._lines(graph)])

    def _lines(self, graph: Graph) -> Iterator[str]:
        names = transform_names(*self.flows.values())
        for leaf in graph.leaves:
            yield f"  {_name_of(leaf)}: {leaf.source.describe()}"
        for step in graph.steps:
            inputs = ", ".join(_through(feed, names) for feed in step.feeds)
            first, *more = step.stage.describe()
            yield f"  stage {step.number} of {inputs}: {first}"
            yield from (f"  {line}" for line in more)
            readers = [name for place, name in enumerate(self.flows) if step in graph.steps_of(place)]
            if len(readers) > 1:
                yield f"    shared by {' and '.join([', '.join(readers[:-1]), readers[-1]])}"
        for name, ends in zip(self.flows, graph.results, strict=True):
            yield f"  {name}: {', '.join(_through(feed, names) for feed in ends)}"

    def __repr__(self) -> str:
        return self.explain()

    def _no_such(self, name: str) -> AttributeError:
        return no_such_method("flows together", self, name, _OTHERS)


def together(**flows: Flow) -> Together:
    """Run several flows as one, so that the steps which they share are computed once and have one state.

    The flows may share a source, or any number of steps after it: build the shared part once, and each flow on it. The
    result of each is the same as without the others. Sources are shared if they are one flow's start, from one call of
    `uc.flow`.

    Parameters
    ----------
    flows
        Two flows or more, by the names of their results.

    Examples
    --------
    >>> import uncombine as uc
    >>> rows = [{"ts": 0, "user": "ada", "x": 5}, {"ts": 1, "user": "bob", "x": 9}]
    >>> users = uc.flow(rows).window("1 minute").combine(by="user", total=uc.Sum("x"))
    >>> top = users.window("1 minute").combine(best=uc.Max("total"))
    >>> results = uc.together(users=users, top=top).run()
    >>> results["users"]["total"].to_pylist(), results["top"]["best"].to_pylist()
    ([5, 9], [9])
    """
    for name, flow in flows.items():
        if isinstance(flow, WindowedRows):
            raise InvalidArgument(f"together() takes flows, and {name!r} ends with window(...): add .combine(...)")
        if not isinstance(flow, Flow):
            raise InvalidArgument(f"together() takes flows by name, but {name}= is a {type(flow).__name__}")
    if len(flows) < 2:
        raise InvalidArgument(f"together() takes two flows or more, not {len(flows)}: write together(a=..., b=...)")
    check_sources([leaf for flow in flows.values() for leaf in leaves_of(flow)], "together()")
    _check_alike(flows)
    return Together(MappingProxyType(dict(flows)))


def _check_alike(flows: Mapping[str, Flow]) -> None:
    """Raise unless all flows play their rows in the same way."""
    (first, one), *others = flows.items()
    for name, other in others:
        for what, words in (("replay", "replay()"), ("close_at_end", "close_at_end="), ("each_batch", "EachBatch()")):
            if getattr(one.settings, what) != getattr(other.settings, what):
                raise InvalidArgument(
                    f"together() takes flows that play their rows in one way, and only one of {first!r} and {name!r} "
                    f"has {words}: give it to both"
                )


def _steps_of(graph: Graph) -> str:
    many = len(graph.steps)
    return f"{many} step{'s' * (many != 1)} that keep{'s' * (many == 1)} state"


def _name_of(origin: Leaf | Step) -> str:
    return f"stage {origin.number}" if isinstance(origin, Step) else origin.settings.name or "source"


def _through(feed: Feed, names: Mapping[int, str]) -> str:
    """The origin of some rows, and the transforms that they go through."""
    steps = [
        f"output {transform.name!r}" if isinstance(transform, OutputRows) else names[id(transform)]
        for transform in feed.transforms
        if id(transform) in names
    ]
    return " > ".join([_name_of(feed.origin), *steps])


__all__ = ["Together", "together"]
