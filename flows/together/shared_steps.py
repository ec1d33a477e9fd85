"""The steps that several flows share: two steps are one if the same rows come to them and they do the same with them.

Sources are the same if they are one object and are read with equal options. Options, expressions and functions count by
their content, and what cannot be looked into, such as a model, by the object itself. Not promised: that two steps which
compute the same are found if they are written otherwise.

Guarded by tests/flows/together/test_together.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any, TypeAlias

from ...panes.stage import Stage
from ...panes.transforms import Transform
from ..fingerprint.content import content_of, user_parts, without_addresses

Key: TypeAlias = tuple[Any, ...]
"""A value that is equal for two sources, or two steps, that are one."""

_NOT_COMPARED = frozenset({"transforms", "open_grouping"})
"""The fields of a stage that say nothing of its state: its feeds have the transforms."""


class SharedSteps:
    """Finds equal steps while a graph is made. It keeps the values that it has looked at alive, with their content."""

    def __init__(self) -> None:
        self._contents: dict[int, tuple[Any, Key]] = {}

    def of_source(self, source: object, settings: object) -> Key:
        """The key of a source and the options with which it is read."""
        return ("source", id(source), self._content(settings))

    def of_step(self, stage: Stage, feeds: Sequence[tuple[object, Sequence[Transform]]], ports: Sequence[int]) -> Key:
        """The key of a step over rows of these origins, which are shared already, through these transforms."""
        own = [field.name for field in fields(stage) if field.name not in _NOT_COMPARED]
        options = tuple(self._content(getattr(stage, name)) for name in own)
        return (type(stage), options, tuple(map(self._of_feed, feeds)), tuple(ports))

    def _of_feed(self, feed: tuple[object, Sequence[Transform]]) -> Key:
        origin, transforms = feed
        return (id(origin), *map(self._content, transforms))

    def _content(self, value: Any) -> Key:
        if id(value) not in self._contents:
            self._contents[id(value)] = value, _content(value)
        return self._contents[id(value)][1]


def _content(value: Any) -> Key:
    """A value of the library by its repr, and by the functions and objects of the user in it."""
    return (type(value), without_addresses(repr(value)), *map(_of_user, user_parts(value)))


def _of_user(part: Any) -> Key:
    content = content_of(part)
    return (content.source, content.code, id(part) if content.unknown else None)


__all__ = ["Key", "SharedSteps"]
