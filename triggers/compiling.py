"""Compiles a trigger to the nodes that evaluate it.

Guarded by tests/panes/grouping/test_rules.py and test_reference.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from ..errors import InvalidArgument
from ..windows import timestamp
from .composite_nodes import (
    AllOfNode,
    ClearingNode,
    FirstOfNode,
    RepeatCountNode,
    RepeatedlyNode,
    RepeatUntilNode,
    SequenceOfNode,
)
from .composites import AllOf, Clearing, FirstOf, RepeatCount, Repeatedly, SequenceOf
from .input_columns import bytes_of, truth
from .language import Predicate, RepeatUntil, Trigger
from .leaf_nodes import (
    AlwaysNode,
    NeverNode,
    PercentileNode,
    PunctuationNode,
    ResultNode,
    SignalNode,
    TallyNode,
    TimerNode,
    WatermarkNode,
)
from .leaves import (
    AfterBytes,
    AfterCount,
    AfterDelay,
    AfterWatermark,
    Always,
    AtPeriod,
    Never,
    OnPunctuation,
    OnResult,
    OnSignal,
    WatermarkPercentile,
)
from .program import Fact, Node
from .user import UserTrigger
from .user_node import UserNode

_GROUPS: dict[type[Trigger], type[Node]] = {FirstOf: FirstOfNode, AllOf: AllOfNode, SequenceOf: SequenceOfNode}


def compile_trigger(trigger: Trigger, path: str = "t") -> Node:
    """The node of a trigger, with the nodes of its children below it."""
    below = tuple(compile_trigger(child, f"{path}.{i}") for i, child in enumerate(trigger.children))
    match trigger:
        case FirstOf() | AllOf() | SequenceOf():
            return _GROUPS[type(trigger)](path, below)
        case Repeatedly():
            return RepeatedlyNode(path, below)
        case Clearing():
            return ClearingNode(path, below)
        case RepeatUntil():
            return RepeatUntilNode(path, below)
        case RepeatCount(n=n):
            return RepeatCountNode(path, below, n)
        case AfterWatermark(early=early, late=late):
            return WatermarkNode(path, below[0] if early is not None else None, below[-1] if late is not None else None)
        case WatermarkPercentile(percent=percent):
            return PercentileNode(path, float(percent))
        case AtPeriod(period=period, origin=origin, domain=domain):
            return TimerNode(path, domain, period=int(period), origin=0 if origin is None else timestamp(origin))  # type: ignore[arg-type]
        case AfterDelay(delay=delay, domain=domain):
            return TimerNode(path, domain, delay=int(delay))  # type: ignore[arg-type]
        case AfterCount(n=n):
            return TallyNode(path, n, "rows")
        case AfterBytes(n=n, of=of):
            name = f"{path}.bytes"
            return TallyNode(path, n, name, Fact(name, _bytes_of(of)))
        case OnPunctuation(predicate=predicate):
            return PunctuationNode(path, Fact(f"{path}.punctuated", _satisfies(predicate)))
        case OnResult(predicate=predicate):
            return ResultNode(path, predicate)
        case OnSignal():
            return SignalNode(path)
        case Always():
            return AlwaysNode(path)
        case Never():
            return NeverNode(path)
        case UserTrigger():
            return UserNode(path, trigger, below)
    raise InvalidArgument(f"{trigger!r} cannot be evaluated: make your own trigger a subclass of UserTrigger")


def _satisfies(predicate: Predicate) -> Callable[[pa.Table], np.ndarray]:
    return lambda table: truth(predicate, table).astype(np.int64)


def _bytes_of(names: Sequence[str] | None) -> Callable[[pa.Table], np.ndarray]:
    def sizes(table: pa.Table) -> np.ndarray:
        total = np.zeros(table.num_rows, np.int64)
        for name in table.column_names if names is None else names:
            total += bytes_of(table[name], name)
        return total

    return sizes
