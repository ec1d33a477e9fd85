"""The fingerprint of each step of a flow: all on which the state of the step, and the rows that it showed, depend.

It is a value for JSON, kept with the state of every shard, so its size is bounded. A part that an earlier version did
not note is unknown there. `differences.py` compares two of them.

Guarded by tests/flows/fingerprint/test_fingerprint.py.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import pyarrow as pa

from ...combiners.expressions.expr import Expr
from ...combiners.rows.plain_types import plain_type
from ...panes.grouping.stage import GroupingStage
from ...panes.stage import Stage
from ...panes.transforms import Transform
from ...panes.watermarks.watermark_strategies import IngressTime
from ..flow import Flow
from ..graph import Feed, Graph, Leaf, Step
from ..transform_names import transform_names
from .content import content_of, content_of_all, user_parts, without_addresses
from .row_hashes import hash_of

Fingerprint: TypeAlias = Mapping[str, Any]

Entry: TypeAlias = Mapping[str, Any]
"""A transform: its name in `explain`, the method that adds it, and what it says of the columns that matter."""

NAMELESS = "columns"
"""The name of a transform that no method adds, such as that which gives a side of a union its columns."""

MOST_ENTRIES = 40
"""The most transforms of a feed that are kept each for itself."""

MOST_TEXT = 200
"""The longest text that is kept as it is; of a longer one the beginning and a hash."""


class Fingerprints:
    """Makes the fingerprints of the steps of a flow, or of several that run together."""

    def __init__(self, graph: Graph, *flows: Flow) -> None:
        self.graph, self.names = graph, transform_names(*flows)

    def __call__(
        self, step: Step, schemas: Sequence[pa.Schema], shards: int, whole_keys: bool, near: int
    ) -> Fingerprint:
        """The fingerprint of a step over rows of these columns, for each port.

        Keys, combiners and inputs are lists, since the state has them by place. A flow of one source does not name it.
        """
        stage, graph = step.stage, self.graph
        ways = [self._entries(feed, stage.columns(feed.output_schema), stage.filters_may_change) for feed in step.feeds]
        # What is shown and never retracted stays right as it is, whatever comes after the step.
        ends = [feed for feed in graph.ends if feed.origin is step and stage.output().diff is not None]
        planned = [bool(feed.leaf and getattr(feed.leaf.source, "planned", False)) for feed in step.feeds]
        after = [self._entries(feed, frozenset(feed.output_schema.names), False)[0] for feed in ends]
        return {
            **({"inputs": inputs_of(step)} if len(graph.leaves) > 1 else {}),
            "stage": f"{step.number} of {len(graph.steps)}",
            **({"together": True} if len(graph.results) > 1 else {}),
            "shards": shards,
            "whole_keys": whole_keys,
            **({"near": near} if near and not whole_keys else {}),
            **{name: _stable(value) for name, value in stage.state_options(*schemas).items()},
            "time": [_own_time(stage), *(_time_of(feed.leaf) for feed in step.feeds)],
            **({"planned": planned} if any(planned) else {}),
            "future": [_future(feed.leaf) for feed in step.feeds],
            **({"typed": typed} if any(typed := [_typed(step, feed) for feed in step.feeds]) else {}),
            "messages": [None if feed.leaf is None else feed.leaf.settings.changelog for feed in step.feeds],
            "steps": [bounded(fixed) for fixed, _ in ways],
            "filters": [bounded(free) for _, free in ways],
            "code": code_of(stage.code),
            "reads": _reads(step, schemas),
            "after": [bounded(entries) for entries in after],
            "shows": [[field.name, str(field.type)] for feed in ends for field in feed.output_schema],
        }

    def _entries(
        self, feed: Feed, wanted: frozenset[str] | None, filters_may_change: bool
    ) -> tuple[list[Entry], list[Entry]]:
        """The transforms of a feed that decide these columns, and its filters that may change."""
        fixed, free = list[Entry](), list[Entry]()
        for transform in reversed(feed.transforms):
            lenient = transform.filters and filters_may_change
            if entry := self._entry(transform, wanted):
                (free if lenient else fixed).append(entry)
            if not lenient:
                wanted = transform.sources(wanted)
        return fixed[::-1], free[::-1]

    def _entry(self, transform: Transform, wanted: frozenset[str] | None) -> Entry | None:
        meaning = {name: said(value) for name, value in transform.meaning(wanted).items()}
        if not meaning:
            return None
        word = transform.word or NAMELESS
        return {"name": self.names.get(id(transform), word), "is": word, "what": meaning}


def _own_time(stage: Stage) -> str | None:
    """The column of event times that a grouping reads, which `window(time=)` can name."""
    return stage.grouping.time if isinstance(stage, GroupingStage) else None


def _time_of(leaf: Leaf | None) -> str | None:
    """The event times of a source: a column, or those of the arrival of its rows."""
    if leaf is None:
        return None
    if isinstance(leaf.settings.strategy, IngressTime):
        return "the time of arrival"
    computed = leaf.settings.event_time
    return leaf.settings.time if computed is None else _short(repr(computed.value))


def _future(leaf: Leaf | None) -> list[str | None] | None:
    """The microseconds by which rows of a source may lie in the future, and the column of their processing times."""
    if leaf is None or leaf.settings.max_future is None:
        return None
    return [str(int(leaf.settings.max_future)), leaf.settings.processing_time]


def _typed(step: Step, feed: Feed) -> list[list[str]] | None:
    """The columns of files of text with the types that their values must have, so that a row can be read."""
    texts: pa.Schema | None = None if feed.leaf is None else getattr(feed.leaf.source, "texts", None)
    if feed.leaf is None or texts is None:
        return None
    wanted = [name for name in _columns(step, feed, feed.leaf) if name in texts.names]
    return [[name, str(texts.field(name).type)] for name in wanted[:MOST_ENTRIES]]


def inputs_of(step: Step) -> list[str]:
    """The inputs of a step in their order: the name and the columns that it reads of a source, or a stage's number."""
    return [
        text if feed.leaf is None else f"{text.partition('(')[0]}({', '.join(_columns(step, feed, feed.leaf))})"
        for text, feed in zip(step.inputs, step.feeds, strict=True)
    ]


def _columns(step: Step, feed: Feed, leaf: Leaf) -> list[str]:
    """The columns of a source that decide the state of a step."""
    wanted = step.stage.columns(feed.output_schema)
    for transform in reversed(feed.transforms):
        wanted = transform.sources(wanted)
    return [name for name in leaf.schema.names if wanted is None or name in wanted]


def code_of(values: Mapping[str, Any]) -> dict[str, Any]:
    """The content of the functions and objects of the user in each of these values."""
    parts = {name: list(user_parts(value)) for name, value in values.items()}
    return {name: content_of_all(own).stored() for name, own in parts.items() if own}


def not_compared(value: Any) -> list[str]:
    """The types of what is in the functions and objects of a value and cannot be compared with another run's."""
    return sorted({name for part in user_parts(value) for name in content_of(part).unknown})


def _reads(step: Step, schemas: Sequence[pa.Schema]) -> list[list[str]]:
    """The columns that the combiners, the window and the triggers of a grouping read; none for other steps."""
    stage = step.stage
    if not isinstance(stage, GroupingStage):
        return []
    schema, *_ = schemas
    names, grouping = stage.columns(schema), stage.grouping
    others = {grouping.time, grouping.diff, *grouping.by}
    read = [f for f in schema if f.name not in others and (names is None or f.name in names)]
    return sorted([field.name, str(_value_type(field.type))] for field in read)


def _value_type(kind: pa.DataType) -> pa.DataType:
    plain = plain_type(kind)
    return plain.value_type if pa.types.is_dictionary(plain) else plain


def said(value: Any) -> Any:
    """An expression or a value as text, a function as its content."""
    if isinstance(value, Expr) or not callable(value):
        return _short(_stable(repr(value)))
    return content_of(value).stored()


def _stable(value: Any) -> Any:
    """Texts without the addresses of objects, which differ from run to run."""
    return [_stable(part) for part in value] if isinstance(value, list) else without_addresses(value)


def _short(text: str) -> str:
    return text if len(text) <= MOST_TEXT else f"{text[: MOST_TEXT // 2]}... ({hash_of(text)})"


def bounded(entries: Sequence[Entry]) -> list[Entry]:
    """Not too many transforms: the later ones as one."""
    if len(entries) <= MOST_ENTRIES:
        return list(entries)
    others = entries[MOST_ENTRIES:]
    said = json.dumps([[entry["is"], entry["what"]] for entry in others], sort_keys=True)
    last = {"name": f"{len(others)} more steps", "is": "more", "what": {"of them": hash_of(said)}}
    return [*entries[:MOST_ENTRIES], last]


__all__ = [
    "NAMELESS",
    "Entry",
    "Fingerprint",
    "Fingerprints",
    "bounded",
    "code_of",
    "inputs_of",
    "not_compared",
    "said",
]
