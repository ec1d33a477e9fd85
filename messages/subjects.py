"""The subjects of a registry: the schema with which the messages of a topic are read.

Guarded by tests/messages/test_registry.py.
"""

from __future__ import annotations

from typing import Any

from ..errors import InvalidArgument, TypeMismatch
from .registry import Schema, SchemaRegistry


def require_one(format: str, schema: Any, registry: Any, subject: Any) -> None:
    """Raise unless a format has a schema, or a registry that has one."""
    if registry is not None and not isinstance(registry, SchemaRegistry):
        raise TypeMismatch(f"registry= of {format}(...) takes a uc.SchemaRegistry, not a {type(registry).__name__}")
    if registry is None and schema is None:
        raise InvalidArgument(f"{format}(...) needs schema=, or registry= with a registry of schemas")
    if registry is None and subject is not None:
        raise InvalidArgument(f"subject= of {format}(...) is the name of a schema in a registry: give registry= too")


def subject_schema(
    registry: SchemaRegistry, subject: str | None, topic: str | None, part: str, kind: str, format: str
) -> Schema:
    """The newest schema of a subject, which is by default that of a topic."""
    if subject is None and topic is None:
        raise InvalidArgument(
            f"{format}(registry=) has no columns without a topic: give subject=, or the schema to read with as schema="
        )
    found = registry.latest(subject or f"{topic}-{part}")
    if found.kind != kind:
        raise InvalidArgument(
            f"subject {subject or f'{topic}-{part}'!r} of the schema registry {registry.shown} has a schema of "
            f"{found.kind}, and {format}(...) reads {kind}"
        )
    return found


def written_schema(registry: SchemaRegistry, number: int, kind: str) -> Schema | str:
    """The schema of a number, with which a message was written; a reason if there is none of this kind."""
    found = registry.schema(number)
    if found is None:
        return f"the schema registry has no schema {number}"
    if found.kind != kind:
        return f"schema {number} of the registry is one of {found.kind}, and not of {kind}"
    return found


__all__ = ["require_one", "subject_schema", "written_schema"]
